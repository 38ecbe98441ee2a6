"""The permissions server: what may be done, why, and the questions that wait for a person."""
