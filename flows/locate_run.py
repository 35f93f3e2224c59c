"""The locator and the tracer on their own: one task, or all cases of a file, with results in the form of the scorer.

A prediction has what a scorer of retrieval reads (`paper_id`, `task_index`, `ranked`) and beside it what people use:
the chain, its commands, how sure it is, `not_found`, and the requirements with their lines. Cases are grouped by
repository, so that each is read once.

Requirements are wider here than in a curated task: where to look matters, not how many steps a judge has to score. The
steps of the run come first, then what the chain's files, and those that rank nearly as high, define beside them.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from flows.locate_inputs import Case
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.locator import Chain, Location, RepositoryIndex, TaskQuery, build_index, locate
from pipeline.locator.directory import directory_snapshot
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Requirement
from pipeline.tracing import Trace, trace
from pipeline.tracing.coverage import definitions_of, lines_of

__all__ = ["LocateResult", "cited", "explained", "located", "prediction", "run_cases"]

_SHOWN_PROBLEMS: Final = 50
"""Problems of a prediction; a repository of Python 2 has one for every file."""

# Recall and precision of the lines that 103 published tasks cite in their own files, macro over papers, by this gap:
# chain alone .50/.24, 0.6: .57/.24, 1: .60/.22, 1.5: .68/.20, 2: .74/.18, 3: .78/.16; given the true files .95/.54.
# A logistic choice by gap, rank, role, size and confidence, learnt out of fold, is no better: .72/.20, .63/.22.
_NEAR_GAP: Final = 1.5
"""A file whose score lies this near to the best one's may as well be the answer: its definitions are listed, too."""
_NEAR_RANK: Final = 6


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
    cited: tuple[str, ...] = ()
    """The chain's files and those that rank nearly as high: where requirements lie."""
    definitions: tuple[Requirement, ...] = ()
    """What these files define beyond the lines of the steps."""
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
    traced: Trace | None = None
    files: tuple[str, ...] = ()
    definitions: tuple[Requirement, ...] = ()
    if found.chain is not None:
        traced = trace(snapshot, found.chain.sources, found.chain.usage, about=query.text)
        files = _cited_files(found, found.chain, near=location is None)
        definitions = definitions_of(snapshot, files, lines_of(traced.requirements))
    return LocateResult(
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        files=index.size,
        location=found,
        trace=traced,
        cited=files,
        definitions=definitions,
        left_out=snapshot.problems,
        engine=engine,
    )


def _cited_files(found: Location, chain: Chain, *, near: bool) -> tuple[str, ...]:
    """The chain's files, then those near the best one; a model has looked into these and decided, so not beside it."""
    files = [source.path for source in chain.sources]
    if near and found.ranked:
        best = found.ranked[0].score
        files += [source.path for source in found.ranked[:_NEAR_RANK] if best - source.score <= _NEAR_GAP]
    return tuple(dict.fromkeys(files))


def cited(result: LocateResult) -> tuple[list[Requirement], list[Requirement]]:
    """Requirements of a prediction, and the steps that lie in other files than those of the prediction.

    An entry point reaches most of its project; of the lines of steps in files that neither belong to the chain nor rank
    near it, one in twenty is cited by published requirements (103 tasks).
    """
    inside: list[Requirement] = []
    outside: list[Requirement] = []
    for step in result.trace.requirements if result.trace is not None else ():
        own = tuple(span for span in step.spans if span.path in result.cited)
        other = tuple(span for span in step.spans if span.path not in result.cited)
        inside += [step.evolve(spans=own)] if own else []
        outside += [step.evolve(spans=other)] if other else []
    return [*inside, *result.definitions], outside


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
    requirements, elsewhere = cited(result)
    members = {source.path for source in chain.sources} if chain else set()
    return {
        "ranked": [source.path for source in location.ranked],
        "chain": [source.path for source in chain.sources] if chain else [],
        "not_found": location.not_found.model_dump(mode="json") if location.not_found else None,
        "confidence": round(location.confidence, 4),
        "requirements": [_requirement(step, members) for step in requirements],
        "requirements_elsewhere": [_requirement(step, members) for step in elsewhere],
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


def _requirement(step: Requirement, members: Collection[str]) -> dict[str, Any]:
    """Spans with the `file` of the published data beside our own `path`, and whether that file is of the chain."""
    spans = [
        {"file": span.path, **span.model_dump(mode="json"), "in_chain": span.path in members} for span in step.spans
    ]
    return {"text": step.text, "spans": spans}


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
