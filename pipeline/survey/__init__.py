"""A repository at a glance: which commands could show what the paper states, in the order in which they are tried."""

from pipeline.survey.commands import Candidate, list_candidates

__all__ = ["Candidate", "list_candidates"]
