"""Programs that run inside sandboxes: standard library only, sent there as text. See `supervisor`."""
