"""The numbers that a rehearsed command showed: printed, written and plotted."""

from __future__ import annotations

from pipeline.rehearse.records import Rehearsal
from pipeline.sandbox.base import Command
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_run
from pipeline.witness.plotted import observe_plotted
from pipeline.witness.read import read_witness
from pipeline.witness.records import Perturbation

__all__ = ["read_rehearsal"]


def read_rehearsal(rehearsal: Rehearsal) -> tuple[Observation, ...]:
    """All numbers of its run, also of one that failed later; none where it did not run."""
    if rehearsal.result is None or rehearsal.directory is None:
        return ()
    commands = [Command(argv=step.argv, directory=step.directory) for step in rehearsal.usage]
    seen, _ = read_run(rehearsal.result, rehearsal.directory, commands)
    if not rehearsal.witnessed:
        return seen
    report = read_witness(rehearsal.directory, perturbation=Perturbation.NONE, amount=0)
    return (*seen, *observe_plotted(report))
