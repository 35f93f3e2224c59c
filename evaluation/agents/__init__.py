"""Agents: adapters that say how to start an agent and how to read what it did."""
