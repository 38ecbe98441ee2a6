"""The command line: one tree of verbs over the services of every installed server."""
