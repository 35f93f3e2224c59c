"""The summary of a workspace: `summary.json` for programs, `index.html` for people.

The page is one self-contained file: style and images are inside, nothing is fetched, and all text of papers and
repositories is escaped.
"""

from __future__ import annotations

import base64
from collections import Counter
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from extractors.crops import table_pictures
from extractors.drafting import DraftResult
from extractors.pdf import render_crop
from flows.outcome import Outcome
from pipeline.files import write_bytes
from pipeline.paper import Box, Document, Table
from pipeline.store import Workspace, WorkspaceInfo, write_if_changed
from pipeline.task import TO_BE_WRITTEN, ClaimMatch, CodeEvidence, Evidence, Status, TableEvidence, Task

__all__ = ["write_summary"]

_CROPS_PER_TASK = 4
_LOG_TAIL_LINES = 40


def write_summary(
    workspace: Workspace, document: Document, drafts: DraftResult, tasks: list[Task], info: WorkspaceInfo
) -> Outcome:
    """Write `summary.json` and `index.html`; returns what was written to the former."""
    outcome = Outcome(
        workspace=workspace.root,
        page=workspace.root / "index.html",
        engine=info.inputs.engine,
        sandbox=info.inputs.sandbox,
        tasks=tuple((task.id, task.status.value, task.status_reason) for task in tasks),
        candidates=sum(task.status in {Status.MASKED, Status.APPROVED, Status.RELEASED} for task in tasks),
    )
    pdf = workspace.paper_dir(info.paper_id) / "paper.pdf"
    environment = Environment(
        loader=PackageLoader("flows"), autoescape=select_autoescape(default=True), undefined=StrictUndefined
    )
    page = environment.get_template("summary.html.j2").render(
        document=document,
        info=info,
        problems=(*document.problems, *drafts.problems),
        to_be_written=TO_BE_WRITTEN,
        counts=_counts(tasks),
        tasks=[_view(workspace, document, pdf, task) for task in tasks],
    )
    write_if_changed(workspace.root / "index.html", page)
    write_if_changed(workspace.root / "summary.json", _relative(outcome, workspace).model_dump_json(indent=1) + "\n")
    return outcome


def _relative(outcome: Outcome, workspace: Workspace) -> Outcome:
    """Paths in the file are relative to the workspace, so that it can be moved."""
    return outcome.evolve(workspace=Path(), page=outcome.page.relative_to(workspace.root))


def _counts(tasks: list[Task]) -> list[tuple[str, int]]:
    counts = Counter(task.status for task in tasks)
    return [(status.value, counts[status]) for status in Status if counts[status]]


def _view(workspace: Workspace, document: Document, pdf: Path, task: Task) -> dict[str, Any]:
    """What the template shows of a task."""
    directory = workspace.task_dir(task.id)
    matches = {match.claim: match for match in task.validation.matches} if task.validation else {}
    return {
        "task": task,
        "claims": [(claim, _observed(matches.get(claim.id))) for claim in task.truth.expected.claims],
        "dropped": _dropped(task),
        "crops": _crops(pdf, document, task, directory / "evidence"),
        "logs": _logs(directory, task),
        "directory": directory.relative_to(workspace.root),
    }


def _observed(match: ClaimMatch | None) -> dict[str, Any]:
    if match is None:
        return {"verdict": "", "values": [], "where": "", "reason": ""}
    return {
        "verdict": match.verdict.value,
        "values": [f"{value:.6g}" for value in match.observed],
        "where": match.where,
        "reason": match.reason,
    }


def _dropped(task: Task) -> list[ClaimMatch]:
    """Claims of the paper that the re-execution does not support; they are not part of the task."""
    if task.validation is None:
        return []
    kept = {claim.id for claim in task.truth.expected.claims}
    return [match for match in task.validation.matches if match.claim not in kept]


def _crops(pdf: Path, document: Document, task: Task, into: Path) -> list[dict[str, str]]:
    """Images of the page regions that support the claims, the supporting boxes highlighted."""
    regions: dict[tuple[int, Box, str], list[tuple[int, Box]]] = {}
    for claim in task.truth.expected.claims:
        for evidence in claim.evidence:
            if isinstance(evidence, CodeEvidence):
                continue
            table = _table(document, evidence)
            region = (table.page, table.box, table.label) if table else (evidence.page, evidence.box, _name(evidence))
            regions.setdefault(region, []).append((evidence.page, evidence.box))
    pictures: list[tuple[str, bytes]] = []
    for (page, box, label), marks in list(regions.items())[:_CROPS_PER_TASK]:
        table = next((t for t in document.tables if (t.page, t.box, t.label) == (page, box, label)), None)
        boxes = {at: sorted({box for other, box in marks if other == at}) for at, _ in marks}
        title = f"{label}, page {page}"
        if table is None:
            pictures.append((title, render_crop(pdf, page, box, highlight=boxes[page])))
        else:
            pictures += [(title, png) for png in table_pictures(pdf, document, [table], highlight=boxes)]
    crops = []
    for number, (title, png) in enumerate(pictures, 1):
        path = into / f"{number}.png"
        if not path.is_file() or path.read_bytes() != png:
            write_bytes(path, png)
        crops.append({"title": title, "uri": _data_uri(png)})
    return crops


def _table(document: Document, evidence: Evidence) -> Table | None:
    """The table that a cell of evidence belongs to; a cell may stand on a further page of it."""
    if not isinstance(evidence, TableEvidence):
        return None
    for table in document.tables:
        if table.label == evidence.label and evidence.page in {table.page, *(page for page, _ in table.continued)}:
            return table
    return None


def _name(evidence: Evidence) -> str:
    return getattr(evidence, "section", None) or getattr(evidence, "label", None) or "text"


def _data_uri(png: bytes) -> str:
    return "data:image/png;base64," + base64.b64encode(png).decode("ascii")


def _logs(directory: Path, task: Task) -> list[dict[str, str]]:
    """The end of each command's output in the first run, and how all runs ended."""
    if task.validation is None:
        return []
    logs = []
    for run in task.validation.runs:
        for number, code in enumerate(run.exit_codes):
            stdout = directory / "validation" / run.log / f"{number}.stdout"
            stderr = directory / "validation" / run.log / f"{number}.stderr"
            logs.append(
                {
                    "title": f"run {run.repeat}, command {number + 1}: "
                    + (f"exit code {code}" if code is not None else f"ended: {run.failure}"),
                    "text": _tail(stdout) + (_tail(stderr) if code != 0 else ""),
                }
            )
    return logs


def _tail(path: Path) -> str:
    if not path.is_file():
        return ""
    lines = path.read_bytes()[-20_000:].decode("utf-8", "replace").splitlines()
    return "\n".join(lines[-_LOG_TAIL_LINES:]) + "\n"
