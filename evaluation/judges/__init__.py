"""Judges: design, implementation and conclusion, criterion by criterion."""
