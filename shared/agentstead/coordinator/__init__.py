"""The coordinator (one process a home, hosting every server) and the shim that hosts start in its place.

Nothing is exported here, since the shim must stay as light as `os` and `socket`: import the module you need.
`shim`, `standalone` and `process` start processes, `control` talks to a running coordinator, `logs` reads its log.
"""
