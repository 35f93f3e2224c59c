"""Workspaces and tasks on the terminal: `expbench status` and `expbench show`."""

from __future__ import annotations

from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.table import Table

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import is_locked
from pipeline.llm import CallLedger, CallRecord, Totals
from pipeline.llm.ledger import sum_records
from pipeline.paper import Document
from pipeline.schema import Record
from pipeline.store import Workspace, WorkspaceInfo
from pipeline.task import TO_BE_WRITTEN, Status, Task
from pipeline.text import shorten

__all__ = [
    "ModelCosts",
    "StatusReport",
    "find_task",
    "print_document",
    "print_status",
    "print_task",
    "print_tasks",
    "status_of",
    "styled_status",
]

_STYLES = {
    Status.MASKED: "green",
    Status.APPROVED: "green",
    Status.RELEASED: "green",
    Status.REJECTED: "red",
    Status.WITHDRAWN: "red",
}


class ModelCosts(Record):
    """What the model calls of one stage took."""

    stage: str
    calls: int
    """That left this machine."""
    cached: int
    """Answered from recorded exchanges."""
    failed: int
    input_tokens: int
    output_tokens: int
    unknown_usage: int
    """Calls whose tokens nobody counted."""
    cost_usd: Decimal | None
    """None: the price of a part is unknown."""

    @classmethod
    def of(cls, stage: str, totals: Totals) -> ModelCosts:
        """The sums of a stage."""
        return cls(
            stage=stage, calls=totals.calls, cached=totals.cached, failed=totals.failed,
            input_tokens=totals.input_tokens, output_tokens=totals.output_tokens, unknown_usage=totals.unknown_usage,
            cost_usd=totals.cost_usd,
        )  # fmt: skip


class StatusReport(Record):
    """What `expbench status` says."""

    info: WorkspaceInfo
    running: bool
    tasks: tuple[tuple[str, str, str], ...]
    """(task id, status, reason)."""
    seconds: tuple[tuple[str, float], ...]
    """(stage, seconds spent), in order of first use."""
    model_calls: tuple[ModelCosts, ...] = ()
    """By stage, in order of first use, `all` last; empty when no model was asked."""


def status_of(workspace: Workspace) -> StatusReport:
    """Collect what there is; a workspace in use can be read."""
    seconds: dict[str, float] = {}
    for entry in workspace.ledger.entries():
        seconds[entry.stage] = seconds.get(entry.stage, 0.0) + entry.duration_s
    return StatusReport(
        info=workspace.info(),
        running=is_locked(workspace.lock_path),
        tasks=tuple((task.id, task.status.value, task.status_reason) for task in workspace.tasks()),
        seconds=tuple((stage, round(spent, 1)) for stage, spent in seconds.items()),
        model_calls=_model_calls(workspace),
    )


def _model_calls(workspace: Workspace) -> tuple[ModelCosts, ...]:
    records = CallLedger(workspace.calls_path).records()
    stages: dict[str, list[CallRecord]] = {}
    for record in records:
        stages.setdefault(record.stage or "other", []).append(record)
    costs = [ModelCosts.of(stage, sum_records(found)) for stage, found in stages.items()]
    return (*costs, ModelCosts.of("all", sum_records(records))) if costs else ()


def print_status(report: StatusReport, console: Console) -> None:
    """The report as text."""
    inputs = report.info.inputs
    console.print(f"[bold]{escape(report.info.paper_id)}[/bold]  {escape(inputs.repository)} at {inputs.commit[:12]}")
    state = "[yellow]running[/yellow]" if report.running else "at rest"
    engine = f"model {escape(inputs.model)} at {escape(inputs.endpoint or '')}" if inputs.model else inputs.engine
    console.print(f"engine {engine}, sandbox {inputs.sandbox}, {inputs.repeats} repeat(s); {state}")
    for task, status, reason in report.tasks:
        console.print(f"  {styled_status(status):<30} {task}" + (f"  [dim]{escape(reason)}[/dim]" if reason else ""))
    if not report.tasks:
        console.print("  no tasks yet")
    if report.seconds:
        console.print("time      " + ", ".join(f"{stage} {spent:g} s" for stage, spent in report.seconds))
    if report.model_calls:
        console.print(_costs_table(report.model_calls))


def _costs_table(costs: tuple[ModelCosts, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("model calls", "made", "from record", "failed", "tokens in", "tokens out", "$"):
        table.add_column(heading, justify="left" if heading == "model calls" else "right")
    for cost in costs:
        unknown = f" + {cost.unknown_usage} unknown" if cost.unknown_usage else ""
        table.add_row(
            cost.stage, str(cost.calls), str(cost.cached), str(cost.failed), f"{cost.input_tokens:,}{unknown}",
            f"{cost.output_tokens:,}{unknown}", "unknown" if cost.cost_usd is None else f"{cost.cost_usd:.4f}",
        )  # fmt: skip
    return table


def print_document(document: Document, console: Console) -> None:
    """The outline of a paper, its tables and what was difficult."""
    console.print(f"[bold]{escape(document.title)}[/bold]")
    by_ocr = sum(page.ocr is not None for page in document.pages)
    console.print(f"{len(document.pages)} pages ({by_ocr} by OCR), {len(document.passages)} passages\n")
    for section in document.sections:
        number = f"{section.number} " if section.number else ""
        console.print(f"{'  ' * section.level}{escape(number + section.title)} [dim]p. {section.page}[/dim]")
    console.print()
    floats = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("label", "page", "size", "sure", "caption"):
        floats.add_column(heading, no_wrap=heading != "caption", justify="right" if heading == "page" else "left")
    for table in document.tables:
        size = f"{len(table.grid)} x {len(table.grid[0]) if table.grid else 0}"
        caption = escape(_without_label(table.caption, table.label))
        floats.add_row(escape(table.label), str(table.page), size, f"{table.confidence:.2f}", caption)
    for figure in document.figures:
        floats.add_row(
            escape(figure.label), str(figure.page), "", "", escape(_without_label(figure.caption, figure.label))
        )
    if floats.row_count:
        console.print(floats)
    for problem in document.problems:
        console.print(f"[yellow]{escape(problem.where)}: {escape(problem.message)}[/yellow]")


def _without_label(caption: str, label: str) -> str:
    """A caption as far as it fits into two lines, without the label that stands beside it."""
    return shorten(caption.removeprefix(label).lstrip(" .:"), 80)


def find_task(workspace: Workspace, name: str) -> Task:
    """The task whose id is `name`, or ends with it, or is the only one to hold it (`table-6`).

    Raises:
        ExpbenchError: `RECORD_INVALID` when none or several do; the message lists the ids.
    """
    ids = workspace.task_ids()
    matching = (
        [task_id for task_id in ids if task_id == name]
        or [task_id for task_id in ids if task_id.endswith(name)]
        or [task_id for task_id in ids if f"-{name}-" in f"-{task_id}-"]
    )
    if len(matching) > 1:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            name,
            f"fits {len(matching)} tasks ({', '.join(matching)})",
            consequence="Nothing was shown",
            next_step="Give the whole id",
        )
    return workspace.load_task(matching[0] if matching else name)


def styled_status(status: str) -> str:
    """A status with its colour as console markup."""
    label = "release candidate" if status == Status.MASKED else status.replace("_", " ")
    return f"[{_STYLES.get(Status(status), 'yellow')}]{label}[/]"


def print_tasks(tasks: list[Task], console: Console) -> None:
    """Three lines per task: status and id; what it has; its question. Ids alone are as wide as half a terminal."""
    if not tasks:
        console.print("No tasks yet: `expbench status` says how far the workspace is.")
    for task in tasks:
        entry = next((source.path for source in task.truth.sources if source.role == "entry"), "")
        claims = f"{len(task.truth.expected.claims)} claims" + (f", {escape(entry)}" if entry else ", no script")
        console.print(f"{styled_status(task.status)}  [bold]{escape(task.id)}[/bold]", highlight=False, soft_wrap=True)
        console.print(Padding(f"[dim]{claims}[/dim]", (0, 0, 0, 4)), highlight=False)
        console.print(Padding(escape(shorten(task.question, 150)), (0, 0, 0, 4)), highlight=False)


def print_task(task: Task, console: Console, *, truth: bool) -> None:
    """One task; with `truth` also what an agent must not see."""
    console.print(f"[bold]{task.id}[/bold]  {styled_status(task.status)}")
    if task.status_reason and truth:
        console.print(f"[yellow]{escape(task.status_reason)}[/yellow]")
    console.print(f"\n[bold]Question[/bold]  {escape(task.question)}")
    console.print(f"\n[bold]Method[/bold]  {escape(task.method or TO_BE_WRITTEN)}")
    if task.agent_instructions:
        console.print(f"\n[bold]Instructions[/bold]\n{escape(task.agent_instructions)}")
    if not truth:
        console.print("\n[dim]The ground truth is shown with --truth.[/dim]")
        return
    console.print(f"\n[bold]Expected[/bold]  {escape(task.truth.expected.text)}\n")
    _print_claims(task, console)
    console.print("\n[bold]Code[/bold]")
    for source in task.truth.sources:
        console.print(f"  {escape(source.path)}  ({source.role}, {source.score:.2f})")
    for usage in task.truth.usage:
        console.print(f"  $ {escape(' '.join(usage.argv))}  [dim]{escape(usage.reason)}[/dim]")
    console.print(f"\n[bold]Requirements[/bold]  {len(task.truth.requirements) or 'unknown: no run of it is recorded'}")
    for number, step in enumerate(task.truth.requirements, 1):
        spans = ", ".join(f"{span.path}:{span.start}-{span.end}" for span in step.spans)
        console.print(f"  {number}. {escape(step.text)} [dim]{escape(spans)}[/dim]")
    if task.leaks:
        console.print(
            f"\n[bold]Leak scan[/bold]  {task.leaks.verdict}, {len(task.leaks.hits)} hit(s), {task.leaks.files} files"
        )
    if task.round_trip:
        console.print(f"[bold]Round trip[/bold]  {task.round_trip.verdict}: {escape(task.round_trip.reason)}")


def _print_claims(task: Task, console: Console) -> None:
    matches = {match.claim: match for match in task.validation.matches} if task.validation else {}
    table = Table(box=None, padding=(0, 2, 0, 0))
    for heading in ("claim", "conditions", "paper", "re-executed", "verdict"):
        table.add_column(heading, overflow="fold")
    for claim in task.truth.expected.claims:
        match = matches.get(claim.id)
        conditions = "; ".join(f"{c.name}: {c.value}" for c in claim.conditions)
        observed = ", ".join(f"{value:.6g}" for value in match.observed) if match else ""
        verdict = match.verdict.value if match else ""
        table.add_row(escape(claim.metric), escape(conditions), escape(claim.text), observed, verdict)
    console.print(table)
