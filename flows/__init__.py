"""Orchestration of the stages, and the command line (`expbench`)."""
