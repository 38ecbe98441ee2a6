"""The network server: channels, threads, rooms, inboxes and work between agents, over `compozy-network/v0`."""
