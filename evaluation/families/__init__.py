"""Families: how a task is set up and scored."""
