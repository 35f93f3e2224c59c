"""A workspace with release candidates, made without curating."""

from __future__ import annotations

from pathlib import Path

from pipeline.store import Workspace
from pipeline.task import ClaimMatch, Environment, RoundTrip, RunReport, Task, ValidationReport, Verdict
from tests.flows.support import empty_workspace
from tests.pipeline.test_store import make_task


def candidate(
    task_id: str = "paper-table-1-accuracy", *, flakiness: float | None = 0.0, confidence: float = 0.95
) -> Task:
    """A task that passed everything."""
    report = ValidationReport(
        verdict=Verdict.PASS,
        reason="1 of 1 claims were reproduced",
        sandbox="docker",
        runs=(RunReport(repeat=1, exit_codes=(0,), log="attempt-1/run-1"),),
        matches=(ClaimMatch(claim="c1", verdict=Verdict.PASS, observed=(87.31, 87.29), reason="observed 87.3"),),
        flakiness=flakiness,
    )
    trip = RoundTrip(
        verdict=Verdict.PASS, reason="as it should", original=Verdict.PASS, masked=Verdict.FAIL, restored=Verdict.PASS
    )
    return make_task(task_id).evolve(
        validation=report, round_trip=trip, confidence=confidence, environment=Environment(sandbox="docker")
    )


def review_workspace(root: Path, *tasks: Task) -> Workspace:
    """A workspace with these tasks, their repository and their masked repositories."""
    workspace = empty_workspace(root)
    scripts = root / "repository" / "scripts"
    scripts.mkdir(parents=True)
    (scripts / "run secret.py").write_text("print('accuracy 87.3')\n")
    (root / "repository" / "README.md").write_text("Ours reaches 87.3.\n")
    (root / "repository" / "other.py").write_text("print('other')\n")
    for task in tasks or (candidate(),):
        workspace.save_task(task)
        masked = workspace.masked_repository(task.id)
        masked.mkdir()
        (masked / "left.py").write_text("print('starter code')\n")
    return workspace
