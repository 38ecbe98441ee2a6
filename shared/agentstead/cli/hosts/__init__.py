"""Hosts that can be set up: where each keeps its MCP servers, and how its file is changed and nothing lost."""
