"""The launcher that runs inside a container: standard library only, handed over as text. See `launch`."""
