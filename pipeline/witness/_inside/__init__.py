"""The program that runs inside: standard library only, mounted into an environment as one file. See `watch`."""
