"""Published tasks with known scripts, as a benchmark of the locator: reading, indexing, scoring.

A cases file has one JSON object a line: `paper_id`, `task_index`, `question`, `method`, `expected_outcome`, `sources`
(paths in the repository) and optionally `requirements` (`file`, `start`, `end`). Repositories are plain directories
`DIR/<paper_id>/`; nothing in them is executed.
"""

from __future__ import annotations

import json
import re
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from pipeline.locator import RepositoryIndex, TaskQuery, build_index
from pipeline.locator.directory import directory_snapshot

_ROOT_README = re.compile(r"readme(?:\.\w+)?", re.I)
METRICS = ("hit@1", "recall@5", "recall@10", "mrr", "full_set@10")


@dataclass(frozen=True)
class Case:
    """One published task."""

    paper: str
    number: int
    query: TaskQuery
    sources: frozenset[str]
    requirements: tuple[tuple[str, int, int], ...] = ()


@dataclass
class Benchmark:
    """Cases with the indexes of their repositories."""

    cases: list[Case]
    indexes: dict[str, RepositoryIndex]
    seconds: dict[str, float] = field(default_factory=dict)
    """Processor time to index each repository."""
    unanswered: list[Case] = field(default_factory=list)
    """Published tasks of the same papers to which, as their authors say, no script of the repository is the answer."""

    @property
    def papers(self) -> list[str]:
        """Papers, sorted."""
        return sorted(self.indexes)

    def macro(self, values: Sequence[Mapping[str, float]]) -> dict[str, float]:
        """Mean over the tasks of a paper, then over papers, for one dictionary a case."""
        grouped: dict[str, list[Mapping[str, float]]] = defaultdict(list)
        for case, value in zip(self.cases, values, strict=True):
            grouped[case.paper].append(value)
        names = values[0].keys()
        return {
            name: float(np.mean([np.mean([row[name] for row in rows]) for rows in grouped.values()])) for name in names
        }


def load(cases: Path, repositories: Path, published: Path | None = None, *, readme: bool = True) -> Benchmark:
    """Read the cases and index every repository that they need.

    Args:
        cases: tasks with known scripts.
        repositories: directory with the repositories.
        published: directory with published task files, `<paper_id>_complete_final.json`, for the tasks without scripts.
        readme: whether the README at the root is there; EXP-Bench's own harness removes it.
    """
    rows = [json.loads(line) for line in cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    loaded = [_case(row) for row in rows]
    indexes, seconds = {}, {}
    for paper in sorted({case.paper for case in loaded}):
        root = repositories / paper
        if not root.is_dir():
            raise SystemExit(f"{root}: no such directory. The cases of paper {paper} need its repository there.")
        snapshot = directory_snapshot(root)
        if not readme:
            kept = tuple(file for file in snapshot.files if not _ROOT_README.fullmatch(file.path))
            snapshot = snapshot.model_copy(update={"files": kept})
        start = time.process_time()
        indexes[paper] = build_index(snapshot)
        seconds[paper] = time.process_time() - start
    unanswered = _unanswered(published, set(indexes)) if published is not None else []
    return Benchmark(loaded, indexes, seconds, unanswered)


def _unanswered(published: Path, papers: set[str]) -> list[Case]:
    found: list[Case] = []
    for path in sorted(published.rglob("*_complete_final.json")):
        paper = path.name.split("_")[0]
        if paper not in papers:
            continue
        document = json.loads(path.read_text(encoding="utf-8"))
        rows = document if isinstance(document, list) else document.get("questions", [])
        for number, row in enumerate(rows):
            if row.get("no_answer"):
                texts = [str(row.get(name) or "") for name in ("question", "method", "expected_outcome")]
                query = TaskQuery(question=texts[0], method=texts[1], expected=texts[2])
                found.append(Case(paper, number, query, frozenset()))
    return found


def _case(row: dict[str, Any]) -> Case:
    query = TaskQuery(question=row["question"], method=row["method"], expected=row["expected_outcome"])
    spans = tuple(
        (item["file"], item["start"], item["end"]) for item in row.get("requirements", ()) if item.get("file")
    )
    return Case(str(row["paper_id"]), int(row["task_index"]), query, frozenset(row["sources"]), spans)


def score(ranked: Sequence[str], truth: frozenset[str]) -> dict[str, float]:
    """The retrieval metrics of one task."""
    first = next((place for place, path in enumerate(ranked, 1) if path in truth), 0)
    return {
        "hit@1": float(first == 1),
        "recall@5": len(truth & set(ranked[:5])) / len(truth),
        "recall@10": len(truth & set(ranked[:10])) / len(truth),
        "mrr": 1 / first if first else 0.0,
        "full_set@10": float(truth <= set(ranked[:10])),
    }


def table(rows: Sequence[tuple[str, Mapping[str, float]]], names: Sequence[str], *, head: bool = True) -> str:
    """Rows of the metrics `names` as a Markdown table, with its head or as more rows of one."""
    lines = ["| | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"] if head else []
    lines += [f"| {title} | " + " | ".join(f"{values[name]:.3f}" for name in names) + " |" for title, values in rows]
    return "\n".join(lines)
