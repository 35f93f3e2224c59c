"""Readers of agents' own logs: from their formats to our events.

Each is tolerant: a log that breaks off, lines that are no JSON, and kinds of events that it does not know give what can
be read and a note about the rest. What a log says is the agent's word: it lies in a directory that the agent can write
to. The exact record of its model traffic is the gateway's.
"""
