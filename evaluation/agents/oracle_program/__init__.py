"""The program of the `oracle` agent: runs inside the container, on its standard library alone (Python 3.9 or later)."""
