"""Memory: durable facts that can be found, explained, dated, undone and forgotten."""
