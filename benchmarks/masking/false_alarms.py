"""False alarms of masking on repositories and tasks that others published.

    python -m benchmarks.masking.false_alarms CASES.jsonl DIR [--out REPORT.json]

`CASES.jsonl` has one task a line (`paper_id`, `task_index`, `expected_outcome`, `sources`), `DIR/<paper_id>` is a git
repository (bare or not). For every task the mask is planned, applied and scanned; the report counts what was taken out
for which reason, lists every near-duplicate and number that was acted on (to be judged by eye), and what the scan says.
The claims are the numbers of the expected outcome with the metric's name that stands before them.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from masking.apply import apply_mask
from masking.leaks import scan_leaks
from masking.numbers import BLOCKING
from masking.plan import plan_mask
from pipeline.errors import ExpbenchError
from pipeline.paper import Paper
from pipeline.repository import Snapshot, open_snapshot
from pipeline.task import (
    Band,
    Expected,
    ExperimentTruth,
    Family,
    NumericClaim,
    Provenance,
    SourceScript,
    Status,
    Task,
)  # fmt: skip

_METRIC = re.compile(
    r"accurac\w*|auroc|auc|asr|f1|precision|recall|perplexity|ppl|bleu|error|mse|rmse|mae|loss|reward|return|success|"
    r"ari|nmi|map|iou|speedup|score|rate|exact match|edit similarity|shd",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])(\d+\.\d+|\d+(?=\s*%))(\s*%)?")


def claims_of(text: str) -> tuple[NumericClaim, ...]:
    """Numbers with decimals, or percentages, and the metric named last before each."""
    result: list[NumericClaim] = []
    for match in _NUMBER.finditer(text):
        names = _METRIC.findall(text[: match.start()]) or _METRIC.findall(text)
        value = float(match[1])
        result.append(
            NumericClaim(
                id=f"c{len(result) + 1}",
                metric=names[-1] if names else "",
                value=value,
                text=match[1],
                decimals=len(match[1].partition(".")[2]),
                unit="%" if match[2] else None,
                band=Band(low=value, high=value, source="printed precision"),
            )
        )
    return tuple(result)


def task_of(case: dict[str, Any], snapshot: Snapshot) -> Task | None:
    """A task whose masked scripts are the published ones that the repository has."""
    files = {file.path for file in snapshot.files}
    sources = [path for path in case["sources"] if path in files]
    if not sources:
        return None
    text = str(case["expected_outcome"])
    return Task(
        id=f"{case['paper_id']}-{case['task_index']}",
        family=Family.EXPERIMENT,
        status=Status.VALIDATED,
        paper=Paper(id=str(case["paper_id"]), title=""),
        repository=snapshot.ref,
        question=str(case["question"]),
        method=str(case["method"]),
        provenance=Provenance(engine="keyless"),
        truth=ExperimentTruth(
            sources=tuple(SourceScript(path=path, role="entry", score=1.0) for path in sources),
            expected=Expected(text=text, claims=claims_of(text)),
        ),
    )


def _kind(reason: str) -> str:
    for name, mark in (
        ("source", "source script"), ("readme", "README of"), ("results", "result:"), ("near-duplicate", "holds"),
        ("compiled", "compiled code"), ("number", "states claim"), ("paper", "the paper"), ("docs", "documentation of"),
        ("identical", "identical"), ("notebook", "outputs of"), ("git", "git"),
    ):  # fmt: skip
        if mark in reason:
            return name
    return "other"


def measure(case: dict[str, Any], snapshot: Snapshot, scratch: Path) -> dict[str, Any] | None:
    """Plan, apply and scan one task."""
    task = task_of(case, snapshot)
    if task is None:
        return None
    start = time.perf_counter()
    plan = plan_mask(task, snapshot)
    planned = time.perf_counter()
    masked = apply_mask(snapshot, plan, scratch / task.id)
    applied = time.perf_counter()
    report = scan_leaks(masked.path, snapshot=snapshot, plan=plan, task=task)
    scanned = time.perf_counter()
    shutil.rmtree(masked.path)
    kinds = Counter(_kind(item.reason) for item in plan.paths)
    return {
        "task": task.id,
        "claims": len(task.truth.expected.claims),
        "files": len(snapshot.files),
        "megabytes": round(report.bytes / 1e6, 2),
        "taken_out": dict(sorted(kinds.items())),
        "by_content": [
            f"{item.action} {item.path}: {item.reason}"
            for item in plan.paths
            if _kind(item.reason) in {"near-duplicate", "number", "compiled", "other"}
        ],
        "blocking": [hit.model_dump() for hit in report.hits if hit.score >= BLOCKING],
        "reported": dict(Counter(hit.kind for hit in report.hits if hit.score < BLOCKING)),
        "problems": [problem.message for problem in (*plan.problems, *report.problems)],
        "seconds": [round(planned - start, 2), round(applied - planned, 2), round(scanned - applied, 2)],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("directory", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.cases.read_text(encoding="utf-8").splitlines()]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        for paper in sorted({str(case["paper_id"]) for case in cases}):
            if not (options.directory / paper).exists():
                continue
            try:
                snapshot = open_snapshot(
                    options.directory / paper, into=Path(name) / "snapshots" / paper, allow_missing_submodules=True
                )
            except ExpbenchError as error:
                print(f"{paper}: {error}")
                continue
            for case in cases:
                row = measure(case, snapshot, Path(name)) if str(case["paper_id"]) == paper else None
                if row is not None:
                    rows.append(row)
                    print(
                        row["task"],
                        row["files"],
                        row["megabytes"],
                        row["taken_out"],
                        len(row["blocking"]),
                        row["seconds"],
                    )
    blocked = sum(bool(row["blocking"]) for row in rows)
    print(f"{len(rows)} tasks, {blocked} with a blocking hit after masking")
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
