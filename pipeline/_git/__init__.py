"""Machinery of `pipeline.repository`: git read as data, never trusted as a program.

Non-goal: a general git library. Nothing here checks out, commits or changes a repository that somebody gave us.
"""
