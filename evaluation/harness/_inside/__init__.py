"""Programs that run inside the agent's container: standard library only, handed over as text."""
