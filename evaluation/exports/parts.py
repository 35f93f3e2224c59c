"""What exported tasks have in common: the verifier with what it expects, the oracle, the report.

The verifier's expectations and the oracle are ground truth: an export keeps them in files of their own, which the other
harness shows to its verifier only.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Collection, Sequence
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Field

from evaluation.agents.oracle import oracle_response, reproduce_script
from evaluation.submission import REPRODUCE, RESPONSE
from evaluation.task import EvaluationTask
from pipeline.files import write_text
from pipeline.schema import Record
from pipeline.task import Family
from pipeline.validation.tokens import SHARES, metric_name

__all__ = [
    "CANARY", "ExportReport", "expected_json", "not_exportable", "notes_for", "program", "times", "write_oracle",
]  # fmt: skip

CANARY: Final = "expbench-canary-33d1b1a6-0c53-5c46-9f5c-7f4f0d5b2a10"
"""Marks exported ground truth, as each release has a canary of its own."""
_EXTRA_S: Final = 120
"""The verifier's own time beside that of `reproduce.sh`."""


class ExportReport(Record):
    """What was written."""

    form: str
    directory: Path
    tasks: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...] = ()
    """(task, why it was not exported)."""
    without_oracle: tuple[tuple[str, str], ...] = ()
    """(task, why it has no solution)."""
    notes: tuple[str, ...] = Field(default=())


_VERIFIED: Final = {
    Family.EXPERIMENT: "execution and the numbers of the conclusion; design, implementation and integrity are not",
    Family.HISTOGRAM: "the histogram (`expbench score histogram`); that its values were computed is not",
    Family.TABLE: "tables, code and analysis (`expbench score table`, keyless); that they were computed is not",
}


def notes_for(tasks: Sequence[EvaluationTask], written: Collection[str]) -> tuple[str, ...]:
    """What the verifiers of the written tasks check, and what not; one line a family."""
    families = {task.public.family for task in tasks if task.id in written}
    return tuple(f"verified: {_VERIFIED[family]}" for family in _VERIFIED if family in families)


class Limits(NamedTuple):
    """Times of an exported task in seconds."""

    agent: int
    verifier: int


def times(task: EvaluationTask) -> Limits:
    """The agent's time is the task's; so is that of `reproduce.sh`."""
    wall = task.public.resources.wall_time_s
    return Limits(wall, wall + _EXTRA_S)


def not_exportable(task: EvaluationTask) -> str:
    """Why a task cannot be carried out by another harness; empty when it can."""
    if task.blocked or task.masked_repository is None:
        return task.blocked or "its masked repository is not at hand"
    if task.data is not None:
        return f"its runs download {len(task.data.files)} file(s), which only containers of expbench are given"
    if task.truth is None:
        return "the source holds no ground truth: there would be nothing to verify with"
    if not task.claims:
        return "its expected outcome states no number: nothing to verify without a judge"
    return ""


def program(name: str) -> str:
    """The text of a program that is copied into exports."""
    return resources.files("evaluation.exports._inside").joinpath(name).read_text(encoding="utf-8")


def expected_json(task: EvaluationTask) -> str:
    """What the verifier expects: the numbers with their conditions and bands. Ground truth."""
    claims = [
        {
            "id": claim.id,
            "metric": claim.metric,
            "conditions": {condition.name: condition.value for condition in claim.conditions},
            "low": claim.band.low,
            "high": claim.band.high,
            "share": (claim.unit or "").strip() == "%" or bool(metric_name(claim.metric).core & SHARES),
        }
        for claim in task.claims
    ]
    value = {"task": task.id, "canary": CANARY, "seconds": times(task).agent, "claims": claims}
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def write_oracle(task: EvaluationTask, directory: Path) -> str:
    """Write the files of a solution into `directory`: the chain's scripts, response and `reproduce.sh`.

    Returns:
        Why there is none; empty when it was written.
    """
    truth = task.truth
    if truth is None or not truth.usage:
        return "the ground truth has no commands"
    if task.original_tree is None:
        return "the original files are not at hand: export from the workspace, or a release with its private part"
    for source in truth.sources:
        origin = task.original_tree / source.path
        if not origin.is_file() or not origin.resolve().is_relative_to(task.original_tree.resolve()):
            return f"the original repository has no file {source.path}"
        target = directory / source.path
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(origin, target)
        target.chmod(0o755 if origin.stat().st_mode & 0o111 else 0o644)
    response = oracle_response(truth).model_dump_json(indent=1, exclude={"extra"})
    write_text(directory / RESPONSE, response + "\n")
    write_text(directory / REPRODUCE, reproduce_script(truth.usage))
    return ""
