"""Why each path of a mask is masked: as it was made, or as it would be made; runs and writes nothing."""

from __future__ import annotations

from typing import Literal

from flows.validate_stage import snapshot_of
from masking.partial import MaskPolicy
from masking.plan import plan_mask
from pipeline.paper import Document
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record
from pipeline.store import Workspace
from pipeline.task import AcceptedHit, LeakHit, MaskedPath

__all__ = ["Explanation", "explain_mask"]


class Explanation(Record):
    """A mask with its reasons, and what the leak scan said of it."""

    task: str
    status: str
    source: Literal["recorded", "planned"]
    """`recorded`: the mask of the task; `planned`: it has none yet, or another policy was asked for."""
    masked: tuple[MaskedPath, ...]
    problems: tuple[Problem, ...] = ()
    hits: tuple[LeakHit, ...] = ()
    accepted: tuple[AcceptedHit, ...] = ()


def explain_mask(workspace: Workspace, task_id: str, policy: MaskPolicy | None = None) -> Explanation:
    """The reasons of one task's mask.

    Args:
        workspace: where it lies.
        task_id: the task.
        policy: how the mask is cut; one other than the default is planned, whatever is recorded.

    Raises:
        ExpbenchError: `RECORD_INVALID`: the task or its repository cannot be read; `USAGE`: see `plan_mask`.
    """
    task = workspace.load_task(task_id)
    leaks = task.leaks
    if task.masked and (policy is None or policy == MaskPolicy()):
        problems = tuple(problem for problem in task.problems if problem.component.startswith("mask."))
        return Explanation(
            task=task.id, status=task.status.value, source="recorded", masked=task.masked, problems=problems,
            hits=leaks.hits if leaks is not None else (), accepted=leaks.accepted if leaks is not None else (),
        )  # fmt: skip
    snapshot = snapshot_of(workspace, task, Snapshot.load(workspace.root / "repository"))
    document = workspace.read_json(workspace.paper_dir(workspace.info().paper_id) / "document.json", Document)
    plan = plan_mask(task, snapshot, documents=(document,), paper_sha256=document.sha256, policy=policy)
    return Explanation(
        task=task.id, status=task.status.value, source="planned", masked=plan.paths, problems=plan.problems
    )
