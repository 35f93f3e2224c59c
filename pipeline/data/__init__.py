"""Data that experiments download: fetched once in a recorded data phase, kept by content, given to offline runs."""
