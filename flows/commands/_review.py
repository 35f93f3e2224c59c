"""What `expbench review` does: the queue as a table, and a decision on one task asked for in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import typer
from rich.console import Console
from rich.table import Table

from flows.commands.shared import escape, print_json
from flows.progress import TerminalReporter
from flows.refresh import refresh_page
from flows.review import (
    Answer,
    ReviewPolicy,
    Wording,
    approve_by_rule,
    content_digest,
    decide,
    parse_rule,
    queue_of,
    read_policy,
    write_policy,
)
from flows.views import find_task, print_task
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.store import Workspace
from pipeline.task import Task

__all__ = ["ask_in_prefect", "by_rule", "decide_on", "set_reviewers", "show_queue", "target"]

_DECISIONS = ("approve", "edit", "reject", "send-back")


def target(workspace: Path | None, task: str | None) -> tuple[Path, str | None]:
    """Which workspace and task are meant: one argument is a task's name where the current directory is a workspace."""
    here = Path()
    if workspace is None:
        return here, None
    if task is None and not (workspace / "workspace.json").exists() and (here / "workspace.json").is_file():
        return here, str(workspace)
    return workspace, task


def set_reviewers(workspace: Workspace, number: int) -> None:
    """Write the number of reviewers into the workspace's policy."""
    write_policy(workspace, read_policy(workspace).evolve(reviewers=number) if number else ReviewPolicy())


def by_rule(workspace: Workspace, text: str) -> dict[str, Any]:
    """Approve by a rule; says to what it applied."""
    rule = parse_rule(text)
    applied, waiting = approve_by_rule(workspace, rule)
    refresh_page(workspace)
    return {"rule": str(rule), "approved": applied, "waiting": waiting}


def ask_in_prefect(workspace: Workspace, as_json: bool) -> None:
    """Suspended review runs for all that waits."""
    from flows.orchestration.enqueue import enqueue_reviews, queue_url
    from flows.orchestration.submit import server_answers

    server_answers()
    made = enqueue_reviews(workspace)
    if print_json(made, as_json):
        return
    console = Console()
    for item in made:
        console.print(f"{item.risk:.2f}  {item.task}  {item.url}", soft_wrap=True, highlight=False)
    console.print(f"\n{len(made)} review(s) wait at {queue_url()}", soft_wrap=True, highlight=False)


def show_queue(workspace: Workspace, as_json: bool) -> None:
    """The queue, the most doubtful first."""
    queue = queue_of(workspace)
    if print_json(queue, as_json):
        return
    console = Console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("risk", "task", "look at"):
        table.add_column(heading, overflow="fold")
    for entry in queue:
        votes = "; ".join(f"{who}: {what}" for who, what in entry.votes)
        reasons = "; ".join(entry.reasons) + (f" [{votes}]" if votes else "")
        table.add_row(f"{entry.risk:.2f}", entry.task, escape(reasons))
    console.print(table if queue else "Nothing waits for a person.")
    needed = read_policy(workspace).reviewers
    if needed > 1:
        console.print(f"\n{needed} reviewers must agree on each task.")


def decide_on(
    workspace: Workspace, name: str, *, decision: str | None, reviewer: str | None, comment: str, edits: list[str]
) -> Task:
    """Show a task, ask for what was not given, record the decision and run the stages that it asks for.

    Raises:
        ExpbenchError: `USAGE` when the answer cannot be applied.
    """
    task = find_task(workspace, name)
    wording = _edited(task, edits)
    if decision is None:
        print_task(task, Console(stderr=True), truth=True)
        decision = typer.prompt("Decision (approve, edit, reject, send-back)", err=True)
        if decision not in _DECISIONS:
            raise _usage(decision, f"is none of {', '.join(_DECISIONS)}")
        if decision == "edit" and wording is None:
            wording = _edited_in_editor(task)
        comment = comment or typer.prompt("Comment", default="", show_default=False, err=True)
    reviewer = reviewer or typer.prompt("Your name", err=True)
    answer = Answer.model_validate(
        {
            "decision": decision.replace("-", "_"),
            "reviewer": reviewer,
            "comment": comment,
            "wording": wording,
            "shown": content_digest(task),
        }
    )
    decided = decide(workspace, task.id, answer)
    from flows.stages_alone import advance
    from pipeline.settings import Settings

    with TerminalReporter() as reporter:
        advanced = advance(workspace, decided.id, Settings(), reporter)
    refresh_page(workspace)
    return advanced


def _edited(task: Task, edits: list[str]) -> Wording | None:
    if not edits:
        return None
    wording = Wording.of(task)
    for edit in edits:
        field, equals, text = edit.partition("=")
        if not equals or field not in Wording.model_fields:
            raise _usage(edit, f"is not FIELD=TEXT with one of {', '.join(Wording.model_fields)}")
        wording = wording.evolve(**{field: text})
    return wording


def _edited_in_editor(task: Task) -> Wording:
    """Each field in $EDITOR; one that is closed without saving stays as it is."""
    wording = Wording.of(task)
    for field in Wording.model_fields:
        text = click.edit(getattr(wording, field), extension=".txt") if _wants(field) else None
        if text is not None:
            wording = wording.evolve(**{field: text})
    return wording


def _wants(field: str) -> bool:
    return typer.confirm(f"Edit {field}?", default=False, err=True)


def _usage(what: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE, what, cause, consequence="No decision was recorded", next_step="See expbench review --help"
    )
