"""The locator and the tracer on their own: one task, or all cases of a file, with results in the form of the scorer.

A prediction has what a scorer of retrieval reads (`paper_id`, `task_index`, `ranked`) and beside it what people use:
the chain, its commands, how sure it is, `not_found`, and the requirements with their lines. Cases are grouped by
repository, so that each is read once.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from flows.locate_inputs import Case
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.locator import Chain, Location, RepositoryIndex, TaskQuery, build_index, locate
from pipeline.locator.directory import directory_snapshot
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Requirement
from pipeline.tracing import Trace, trace

__all__ = ["LocateResult", "explained", "located", "prediction", "run_cases"]

_SHOWN_PROBLEMS: Final = 50
"""Problems of a prediction; a repository of Python 2 has one for every file."""


class LocateResult(Record):
    """What was found for one task."""

    repository: str
    commit: str
    """Of a git repository; for a directory, a digest of what it holds."""
    files: int
    """Files that could be ranked."""
    location: Location
    trace: Trace | None
    """None: no chain."""
    left_out: tuple[Problem, ...] = ()
    """What of the repository was not read at all: links, devices, missing submodules."""
    engine: str = "keyless"


def located(
    index: RepositoryIndex, query: TaskQuery, *, location: Location | None = None, engine: str = "keyless"
) -> LocateResult:
    """Locate and trace one task.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        location: where a model's answer takes the place of the deterministic one.
        engine: who decided.
    """
    found = location if location is not None else locate(index, query)
    snapshot = index.snapshot
    traced = _traced(snapshot, query, found.chain) if found.chain is not None else None
    return LocateResult(
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        files=index.size,
        location=found,
        trace=traced,
        left_out=snapshot.problems,
        engine=engine,
    )


def _traced(snapshot: Snapshot, query: TaskQuery, chain: Chain) -> Trace:
    return trace(snapshot, chain.sources, chain.usage, about=query.text)


def run_cases(
    cases: Sequence[Case], repositories: Path, out: Path, *, cache: Path | None, reporter: Reporter
) -> dict[str, Any]:
    """Search all cases and write one prediction a line, in the order of the cases.

    A repository that is missing leaves its cases without a prediction, with a warning: an empty one would say that the
    locator had found nothing.

    Args:
        cases: the tasks.
        repositories: directory with the repository of each paper as `<paper_id>/`.
        out: the JSON Lines file; replaced atomically when all is done.
        cache: for what each file says, see `build_index`.
        reporter: progress.

    Returns:
        Counts: cases, predictions, chains, not_found, missing (papers without a repository).

    Raises:
        ExpbenchError: `REPOSITORY_INVALID`: there is no directory, or none of the papers' repositories is in it.
    """
    if not repositories.is_dir():
        raise _no_repositories(repositories, "no such directory")
    rows: dict[tuple[str, int], dict[str, Any]] = {}
    missing: list[str] = []
    reporter.start("locate", len(cases))
    for paper, group in _by_paper(cases):
        root = repositories / paper
        if not root.is_dir():
            missing.append(paper)
            reporter.warn(f"{root}: no such directory; {len(group)} case(s) of paper {paper} have no prediction")
            continue
        index = build_index(directory_snapshot(root), cache=cache)
        for case in group:
            result = located(index, case.query)
            rows[case.paper_id, case.task_index] = {
                "paper_id": case.paper_id,
                "task_index": case.task_index,
                **prediction(result),
            }
            chain = result.location.chain
            reporter.step("locate", f"{paper}/{case.task_index}: {', '.join(chain.entries) if chain else 'not found'}")
    if not rows:
        raise _no_repositories(repositories, f"holds none of the repositories {', '.join(missing[:5])}")
    ordered = [rows[key] for case in cases if (key := (case.paper_id, case.task_index)) in rows]
    write_text(out, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ordered))
    reporter.end("locate", f"{len(ordered)} predictions")
    return {
        "cases": len(cases),
        "predictions": len(ordered),
        "chains": sum(row["not_found"] is None for row in ordered),
        "not_found": sum(row["not_found"] is not None for row in ordered),
        "missing": missing,
        "out": str(out),
    }


def _by_paper(cases: Sequence[Case]) -> Iterator[tuple[str, list[Case]]]:
    for paper, group in groupby(sorted(cases, key=lambda case: case.paper_id), key=lambda case: case.paper_id):
        yield paper, list(group)


def prediction(result: LocateResult) -> dict[str, Any]:
    """A result as JSON: paths first, then what supports them."""
    location, traced = result.location, result.trace
    chain = location.chain
    return {
        "ranked": [source.path for source in location.ranked],
        "chain": [source.path for source in chain.sources] if chain else [],
        "not_found": location.not_found.model_dump(mode="json") if location.not_found else None,
        "confidence": round(location.confidence, 4),
        "requirements": [_requirement(step) for step in traced.requirements] if traced else [],
        "sources": [source.model_dump(mode="json") for source in chain.sources] if chain else [],
        "usage": [step.model_dump(mode="json") for step in chain.usage] if chain else [],
        "hyperparameters": [item.model_dump(mode="json") for item in traced.hyperparameters] if traced else [],
        "data_needs": list(traced.data_needs) if traced else [],
        "problems": [problem.model_dump(mode="json") for problem in _problems(result)],
    }


def explained(result: LocateResult, shown: int) -> dict[str, Any]:
    """What `--explain` adds: every ranked file with its reasons, and the chains that were not chosen."""
    return {
        "ranking": [source.model_dump(mode="json") for source in result.location.ranked[:shown]],
        "alternatives": [chain.model_dump(mode="json") for chain in result.location.alternatives],
        "reached": list(result.trace.reached) if result.trace else [],
    }


def _requirement(step: Requirement) -> dict[str, Any]:
    """Spans with the `file` of the published data beside our own `path`."""
    return {"text": step.text, "spans": [{"file": span.path, **span.model_dump(mode="json")} for span in step.spans]}


def _problems(result: LocateResult) -> list[Problem]:
    found = [*result.left_out, *result.location.problems, *(result.trace.problems if result.trace else ())]
    unique = list(dict.fromkeys(found))
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    unique.sort(key=lambda problem: order.index(problem.severity))
    if len(unique) > _SHOWN_PROBLEMS:
        message = f"{len(unique) - _SHOWN_PROBLEMS} more problems are not listed"
        more = Problem(component="locator", where=result.repository, message=message, severity=Severity.INFO)
        return [*unique[:_SHOWN_PROBLEMS], more]
    return unique


def _no_repositories(root: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.REPOSITORY_INVALID,
        str(root),
        cause,
        consequence="No prediction was written",
        next_step="Put the files of each paper's repository into a directory of its own, DIR/<paper_id>/",
    )
