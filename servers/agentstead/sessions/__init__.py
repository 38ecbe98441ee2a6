"""The sessions server: durable sessions, tasks and runs."""
