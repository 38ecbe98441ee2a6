"""The workspace server: versions of a directory tree, forks, checks with receipts, promotion and restore."""
