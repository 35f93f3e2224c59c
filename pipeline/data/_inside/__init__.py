"""The server that answers inside a container: standard library only, mounted as one file. See `replay`."""
