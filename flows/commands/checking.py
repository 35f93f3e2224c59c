"""Commands that check tasks of a workspace: validate, mask, verify."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from rich.console import Console

from flows.commands.shared import (
    Json,
    ScaleOption,
    WriteScripts,
    escape,
    print_value,
    resumable,
    settings_with,
    status_text,
)
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.verify_stage import GateReport
    from pipeline.store import Workspace
    from pipeline.task import LeakHit, MaskedPath, Task

__all__ = ["app"]

app = typer.Typer()
_NOT_PASSED: Final = 6
"""Exit code when a check did not pass; the report says whether it failed or is unknown."""

Target = Annotated[
    Path,
    typer.Argument(
        help="A task's directory (WORKSPACE/tasks/TASK), a workspace, or a task's id inside a workspace.",
        metavar="TASK|WORKSPACE",
    ),
]
Within = Annotated[
    str | None,
    typer.Argument(help="With a workspace: a task's id, or a part that no other has; default: all.", metavar="TASK"),
]
_CODES = (
    "Exit codes: 0 everything passed; 6 something failed or is unknown (the report says which, and why); 2 usage; "
    "5 workspace; 7 the sandbox or the network failed, so that nothing is known."
)


def _targets(target: Path, within: str | None) -> tuple[Workspace, list[str], bool]:
    """The workspace, the tasks, and whether a single task was meant.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no such workspace or task.
    """
    from flows.views import find_task
    from pipeline.store import Workspace as _Workspace

    place = target.parent if target.name == "task.yaml" else target
    if not place.exists() and within is None:  # an id, given inside a workspace
        place, within = Path(), str(target)
    place = place.resolve()
    root = next((up for up in (place, *place.parents) if (up / "workspace.json").is_file()), place)
    workspace = _Workspace(root)
    workspace.info()
    if within is None and place != root:
        parts = place.relative_to(root).parts
        within = parts[1] if len(parts) > 1 and parts[0] == "tasks" else None
        if within is None:
            raise ExpbenchError(
                FailureKind.RECORD_INVALID, str(target), f"is neither a task nor the workspace {root}",
                consequence="Nothing was checked",
                next_step="Name the workspace, or one of " + ", ".join(f"tasks/{id_}" for id_ in workspace.task_ids()),
            )  # fmt: skip
    if within is None:
        return workspace, workspace.task_ids(), False
    return workspace, [find_task(workspace, within).id], True


@app.command(
    epilog="Examples:\n\n  expbench validate work/tasks/my-paper-table-2-accuracy\n\n"
    "  expbench validate work table-2-accuracy --json\n\n  expbench validate work\n\n"
    "  expbench validate work table-2-accuracy --scale smoke\n\n  expbench validate work --write-scripts\n\n" + _CODES
)
def validate(
    target: Target,
    task: Within = None,
    scale: ScaleOption = None,
    write_scripts: WriteScripts = False,
    json_output: Json = False,
) -> None:
    """Run the scripts of tasks again in clean sandboxes and compare what comes out with the paper's numbers.

    A task that passes becomes `validated`; mask it afterwards. Finished executions of the same code in the same
    environment are used again; `expbench verify` executes everything anew. At smoke scale the same program runs as
    small as its own options and configurations allow: that shows that it runs and computes, and confirms no number.
    """
    from flows.progress import TerminalReporter
    from flows.stages_alone import validate_task

    workspace, ids, single = _targets(target, task)
    settings = settings_with(scale=scale, write_scripts=write_scripts or None)
    if write_scripts and workspace.info().inputs.engine == "keyless":
        raise ExpbenchError(
            FailureKind.USAGE, "--write-scripts", "a language model writes them, and this workspace has none",
            consequence="Nothing was run",
            next_step="Curate with --engine model --write-scripts, or leave the option out",
        )  # fmt: skip
    results: list[dict[str, Any]] = []
    skipped: list[tuple[str, str]] = []
    with resumable("expbench validate"), TerminalReporter() as reporter:
        for task_id in ids:
            loaded = workspace.load_task(task_id)
            if not single and not loaded.truth.sources and not write_scripts:
                skipped.append((task_id, "no scripts were located for it"))
                continue
            done = validate_task(workspace, task_id, settings, reporter, then_mask=False)
            results.append(_validation_json(done))
    passed = bool(results) and all(result["verdict"] == "pass" for result in results)
    if json_output:
        overall = "pass" if passed else "fail" if any(r["verdict"] == "fail" for r in results) else "unknown"
        whole = {"workspace": str(workspace.root), "verdict": overall, "tasks": results, "skipped": skipped}
        print_value(results[0] if single else whole, True)
    else:
        _print_validations(results, skipped)
    if not passed:
        raise typer.Exit(_NOT_PASSED)


def _validation_json(task: Task) -> dict[str, Any]:
    report = task.validation
    return {
        "task": task.id,
        "status": task.status.value,
        "status_reason": task.status_reason,
        "verdict": report.verdict.value if report is not None else "unknown",
        "reason": report.reason if report is not None else task.status_reason,
        "outcome": report.outcome if report is not None else "unknown",
        "scale": report.scale if report is not None else None,
        "notes": report.notes if report is not None else (),
        "environment": task.environment.model_dump(mode="json"),
        "validation": report.model_dump(mode="json") if report is not None else None,
    }


def _print_validations(results: Sequence[dict[str, Any]], skipped: Sequence[tuple[str, str]]) -> None:
    console = Console()
    for result in results:
        console.print(f"{_verdict_text(result['verdict']):<20} {result['task']}  [dim]{escape(result['reason'])}[/dim]")
        for note in result["notes"]:
            console.print(f"  [dim]{escape(note)}[/dim]", soft_wrap=True, highlight=False)
        for match in (result["validation"] or {}).get("matches", ()):
            console.print(f"  {match['claim']:<5} {match['verdict']:<8} {escape(match['reason'])}", soft_wrap=True)
    for task_id, why in skipped:
        console.print(f"skipped  {task_id}  [dim]{escape(why)}[/dim]")


def _verdict_text(verdict: str) -> str:
    colour = {"pass": "green", "fail": "red"}.get(verdict, "yellow")
    return f"[{colour}]{verdict}[/{colour}]"


# --- mask ------------------------------------------------------------------------------------------------------------


@app.command(
    epilog="Examples:\n\n  expbench mask work/tasks/my-paper-table-2-accuracy --explain\n\n"
    "  expbench mask work table-2-accuracy --function lib/core.py::Solver.step --docstrings remove\n\n"
    "  expbench mask work table-2-accuracy --accept 3f2a91c04d --reviewer 'A. Person' --reason 'a year, not a result'"
    "\n\n" + _CODES
)
def mask(
    target: Target,
    task: Within = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Say what is taken out and why, and what the last scan found; run nothing."),
    ] = False,
    function: Annotated[
        list[str] | None,
        typer.Option(help="Mask only this function, method or class of a file: PATH::NAME. May be repeated."),
    ] = None,
    whole_files: Annotated[bool, typer.Option("--whole-files", help="Never mask single functions.")] = False,
    docstrings: Annotated[Literal["keep", "remove"], typer.Option(help="Docstrings of masked functions.")] = "keep",
    signatures: Annotated[Literal["keep", "remove"], typer.Option(help="Parameters of masked functions.")] = "keep",
    accept: Annotated[
        list[str] | None, typer.Option(help="Accept a hit of the last scan by its id. May be repeated.")
    ] = None,
    reviewer: Annotated[str, typer.Option(help="Who accepts it.")] = "",
    reason: Annotated[str, typer.Option(help="Why it gives nothing away.")] = "",
    json_output: Json = False,
) -> None:
    """Make the repository that an agent may see again: plan, apply, scan for leaks, round trip."""
    from flows.progress import TerminalReporter
    from masking.functions import FunctionPolicy
    from masking.partial import MaskPolicy

    workspace, ids, single = _targets(target, task)
    policy = MaskPolicy(
        level="file" if whole_files else "auto",
        functions=tuple(function or ()),
        kept=FunctionPolicy(docstrings=docstrings, signatures=signatures),
    )
    if (function or accept) and not single:
        raise _usage("--function and --accept", "they are about one task, and a workspace was named")
    if explain:
        _explain(workspace, ids, single, policy, json_output)
        return
    from flows.stages_alone import mask_task

    settings = settings_with()
    if accept:
        from masking.accepted import accept_hits

        accept_hits(
            workspace.task_dir(ids[0]), workspace.load_task(ids[0]).leaks, accept, reviewer=reviewer, reason=reason
        )
    done: list[Task] = []
    with resumable("expbench mask"), TerminalReporter() as reporter:
        for task_id in ids:
            loaded = workspace.load_task(task_id)
            passed = loaded.validation is not None and loaded.validation.verdict.value == "pass"
            if single or passed:
                done.append(mask_task(workspace, task_id, settings, reporter, policy=policy))
    _print_masked(workspace, done, single, json_output)
    if not done or any(item.status.value not in {"masked", "approved", "released"} for item in done):
        raise typer.Exit(_NOT_PASSED)


def _usage(what: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE,
        what,
        cause,
        consequence="Nothing was done",
        next_step="Name one task: `expbench mask --help`",
    )


def _print_masked(workspace: Workspace, done: Sequence[Task], single: bool, as_json: bool) -> None:
    results = [
        {
            "task": item.id,
            "status": item.status.value,
            "status_reason": item.status_reason,
            "verdict": "pass" if item.status.value in {"masked", "approved", "released"} else "fail"
            if item.status.value == "rejected" else "unknown",
            "repository": str(workspace.masked_repository(item.id)),
            "masked": [path.model_dump(mode="json") for path in item.masked],
            "leaks": None if item.leaks is None else _with_ids(item.leaks.model_dump(mode="json"), item.leaks.hits),
            "round_trip": None if item.round_trip is None else item.round_trip.model_dump(mode="json"),
        }
        for item in done
    ]  # fmt: skip
    if as_json:
        print_value(results[0] if single else {"workspace": str(workspace.root), "tasks": results}, True)
        return
    console = Console()
    for item in done:
        console.print(f"{status_text(item.status):<30} {item.id}  [dim]{escape(item.status_reason)}[/dim]")
        _print_hits(console, item.leaks.hits if item.leaks is not None else ())


def _with_ids(report: dict[str, Any], hits: Sequence[LeakHit]) -> dict[str, Any]:
    return report | {"hits": [dumped | {"id": hit.id} for dumped, hit in zip(report["hits"], hits, strict=True)]}


def _print_hits(console: Console, hits: Sequence[LeakHit]) -> None:
    for hit in hits:
        line = f"{hit.score:.2f} {hit.kind:<15} {hit.where}: {hit.detail}"
        console.print(f"  [dim]{hit.id}[/dim]  {escape(line)}", soft_wrap=True, highlight=False)


def _explain(workspace: Workspace, ids: Sequence[str], single: bool, policy: Any, as_json: bool) -> None:
    """The mask as it is recorded, otherwise as it would be made; with a policy always the latter."""
    from flows.explain import Explanation, explain_mask

    explained: list[Explanation] = [explain_mask(workspace, task_id, policy) for task_id in ids]
    if as_json:
        values = [item.model_dump(mode="json") for item in explained]
        print_value(values[0] if single else {"workspace": str(workspace.root), "tasks": values}, True)
        return
    console = Console()
    for item in explained:
        state = "as it was made" if item.source == "recorded" else "as it would be made now"
        console.print(f"[bold]{item.task}[/bold]  {len(item.masked)} path(s), {state}")
        _print_paths(console, item.masked)
        for problem in item.problems:
            console.print(f"  [yellow]{escape(problem.where)}: {escape(problem.message)}[/yellow]", soft_wrap=True)
        if item.hits or item.accepted:
            console.print(f"  leak scan: {len(item.hits)} hit(s), {len(item.accepted)} accepted")
        _print_hits(console, item.hits)
        for accepted in item.accepted:
            who = f"{accepted.hit.id} {accepted.hit.where}: accepted by {accepted.reviewer}: {accepted.reason}"
            console.print(f"  [dim]{escape(who)}[/dim]", soft_wrap=True)


def _print_paths(console: Console, paths: Sequence[MaskedPath]) -> None:
    for path in paths:
        console.print(f"  {path.action:<16} {escape(path.path)}  [dim]{escape(path.reason)}[/dim]", soft_wrap=True)


# --- verify ----------------------------------------------------------------------------------------------------------


@app.command(
    epilog="Examples:\n\n  expbench verify work/tasks/my-paper-table-2-accuracy\n\n"
    "  expbench verify work table-2-accuracy --json > gate.json\n\n  expbench verify work\n\n" + _CODES
)
def verify(target: Target, task: Within = None, json_output: Json = False) -> None:
    """The whole release gate, executed anew: mask, environment, original, leak scan, round trip.

    Nothing of the task is changed. The logs are kept in WORKSPACE/.verify/TASK.
    """
    from flows.progress import TerminalReporter
    from flows.verify_stage import WorkspaceGate, verify_task

    workspace, ids, single = _targets(target, task)
    reports: list[GateReport] = []
    skipped: list[tuple[str, str]] = []
    with resumable("expbench verify"), TerminalReporter() as reporter:
        for task_id in ids:
            loaded = workspace.load_task(task_id)
            if not single and loaded.status.value not in {"masked", "approved", "released"}:
                skipped.append((task_id, f"it is {loaded.status.value.replace('_', ' ')}"))
                continue
            reports.append(verify_task(workspace, task_id, settings_with(), reporter))
    gate = WorkspaceGate.of(workspace.root, tuple(reports), tuple(skipped))
    if json_output:
        print_value((reports[0] if single else gate).model_dump(mode="json"), True)
    else:
        console = Console()
        for report in reports:
            console.print(f"{_verdict_text(report.verdict.value)}  [bold]{report.task}[/bold]  {escape(report.reason)}")
            for check in report.checks:
                line = f"{check.name:<12} {escape(check.reason)}"
                console.print(f"  {_verdict_text(check.verdict.value):<20} {line}", soft_wrap=True)
        for task_id, why in skipped:
            console.print(f"skipped  {task_id}  [dim]{escape(why)}[/dim]")
    if gate.verdict.value != "pass":
        raise typer.Exit(_NOT_PASSED)
