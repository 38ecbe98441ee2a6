"""What `agentstead doctor` looks at: small probes, each on its own, each finding with a fix that exists."""
