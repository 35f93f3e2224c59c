"""Run the candidate commands of a repository, bounded and offline, and keep what they printed, wrote and plotted."""

from pipeline.rehearse.numbers import read_rehearsal
from pipeline.rehearse.records import Rehearsal
from pipeline.rehearse.runs import rehearse

__all__ = ["Rehearsal", "read_rehearsal", "rehearse"]
