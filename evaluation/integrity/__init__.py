"""Integrity (M): evidence first, then a verdict with citations of events."""
