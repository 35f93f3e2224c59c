"""Episodes of agents, and their scores."""
