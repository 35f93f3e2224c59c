"""A workspace's page and summary made again after a decision, from what the workspace holds.

Non-goal: running a stage; what a page shows is `flows.summary`'s.
"""

from __future__ import annotations

import json

from pydantic import BaseModel, ConfigDict, ValidationError

from extractors.drafting import DraftResult
from flows.summary import write_summary
from pipeline.paper import Document
from pipeline.schema import Problem
from pipeline.store import Workspace

__all__ = ["refresh_page"]


class _Drafted(BaseModel):
    """What of a finished draft stage the page shows, of either engine."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    problems: tuple[Problem, ...] = ()
    drafts: object = None


def refresh_page(workspace: Workspace) -> bool:
    """Write `index.html` and `summary.json` again, tasks in the order they had; False: there is no page to refresh."""
    info = workspace.info()
    document = workspace.paper_dir(info.paper_id) / "document.json"
    summary = workspace.root / "summary.json"
    if not document.is_file() or not summary.is_file():
        return False
    order = [entry[0] for entry in json.loads(summary.read_bytes())["tasks"]]
    tasks = sorted(
        workspace.tasks(), key=lambda task: (order.index(task.id) if task.id in order else len(order), task.id)
    )
    drafts = DraftResult(drafts=(), problems=_problems(workspace))
    write_summary(workspace, Document.model_validate_json(document.read_bytes()), drafts, tasks, info)
    return True


def _problems(workspace: Workspace) -> tuple[Problem, ...]:
    """What the draft stage reported; nothing where its record is of another version (the stage would run again)."""
    path = workspace.root / ".stages" / "draft.json"
    if not path.is_file():
        return ()
    value = json.loads(path.read_bytes()).get("value", {})
    inner = value.get("drafts") if isinstance(value.get("drafts"), dict) else value
    try:
        return _Drafted.model_validate(inner).problems
    except ValidationError:
        return ()
