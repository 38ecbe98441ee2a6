"""The demonstration: a host, a person and a project, and the six servers over stdio."""
