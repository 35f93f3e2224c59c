"""The locator and the tracer on their own: what was found for one task, as a prediction in the form of the scorer.

A prediction has what a scorer of retrieval reads (`paper_id`, `task_index`, `ranked`) and beside it what people use:
the chain, its commands, how sure it is, `not_found`, and the requirements with their lines.

Requirements are wider here than in a curated task: where to look matters, not how many steps a judge has to score. The
steps of the run come first, then the definitions that are likely to be meant, whether or not the run enters them. What
is less likely is listed apart.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import Field

from pipeline.locator import Chain, Location, RepositoryIndex, TaskQuery, locate
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Requirement
from pipeline.tracing import Trace, trace
from pipeline.tracing.citing import DECIDED, CitedFile, chances, cite
from pipeline.tracing.coverage import NOTEBOOK_LIMIT, lines_of
from pipeline.tracing.source import cells_by_line

__all__ = ["Cited", "LocateResult", "cited", "engine_words", "explained", "located", "prediction", "problems_of"]

_SHOWN_PROBLEMS: Final = 50
"""Problems of a prediction; a repository of Python 2 has one for every file."""
_ELSEWHERE: Final = 0.05
"""Share of the lines of steps outside the cited definitions that published requirements cite."""
_DECIDED: Final = 0.95
"""Chance of a file that a model has looked into and kept."""


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
    cited: tuple[CitedFile, ...] = ()
    """What of which files is likely to be meant: where requirements lie, and where to look beside."""
    cells: dict[str, dict[int, int]] = Field(default_factory=dict)
    """Notebook -> line of the file -> number of its cell, for the notebooks where requirements lie."""
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
        location: where it was decided before, by a model or with its problems.
        engine: who decided: `keyless`, or the model's name.
    """
    found = location if location is not None else locate(index, query)
    snapshot = index.snapshot
    traced: Trace | None = None
    files: tuple[CitedFile, ...] = ()
    if found.chain is not None:
        traced = trace(snapshot, found.chain.sources, found.chain.usage, about=query.text)
        files = _files(snapshot, found, found.chain, decided=engine != "keyless")
    return LocateResult(
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        files=index.size,
        location=found,
        trace=traced,
        cited=files,
        cells=_cells(snapshot, traced, files),
        left_out=snapshot.problems,
        engine=engine,
    )


def _cells(snapshot: Snapshot, traced: Trace | None, files: Sequence[CitedFile]) -> dict[str, dict[int, int]]:
    spans = [span for step in (traced.requirements if traced is not None else ()) for span in step.spans]
    paths = {span.path for span in spans} | {file.path for file in files}
    return {
        path: cells_by_line(snapshot.text(path, NOTEBOOK_LIMIT)) for path in sorted(paths) if path.endswith(".ipynb")
    }


def _files(snapshot: Snapshot, found: Location, chain: Chain, *, decided: bool) -> tuple[CitedFile, ...]:
    """What is cited; a model has looked into the chain's files and decided, so nothing beside them."""
    paths = [source.path for source in chain.sources]
    if decided:
        return cite(snapshot, dict.fromkeys(paths, _DECIDED), paths, worth=DECIDED)
    return cite(snapshot, chances([(source.path, source.score) for source in found.ranked], paths), paths)


@dataclass(frozen=True, slots=True)
class Cited:
    """A requirement of a prediction."""

    requirement: Requirement
    likely: float
    """Share of its lines that published requirements would cite, see `CitedDefinition.likely`."""


def cited(result: LocateResult) -> tuple[list[Cited], list[Cited]]:
    """Requirements of a prediction, and those that are less likely.

    An entry point reaches most of its project; of the lines of steps in files that neither belong to the chain nor rank
    near it, one in twenty is cited by published requirements (103 tasks). The same holds of a script that a wrapper of
    the chain runs, and that says little of the task: all experiments run it. So a step counts where it lies in a
    definition that is cited.
    """
    definitions = [item for file in result.cited for item in file.definitions]
    likely = {place: item.likely for item in definitions for place in lines_of([item.requirement])}
    near = lines_of(item.requirement for item in definitions if item.near)
    inside: list[Cited] = []
    outside: list[Cited] = []
    steps = result.trace.requirements if result.trace is not None else ()
    for step in steps:
        places = [[(span.path, line) for line in range(span.start, span.end + 1)] for span in step.spans]
        held = [not near.isdisjoint(lines) for lines in places]
        for wanted, into in ((True, inside), (False, outside)):
            spans = tuple(span for span, own in zip(step.spans, held, strict=True) if own is wanted)
            lines = [place for own, span in zip(held, places, strict=True) if own is wanted for place in span]
            if spans:
                share = max(likely.get(place, _ELSEWHERE) for place in lines)
                into.append(Cited(step.evolve(spans=spans), share))
    held_lines = lines_of(steps)
    for item in definitions:
        if not lines_of([item.requirement]) <= held_lines:
            (inside if item.near else outside).append(Cited(item.requirement, item.likely))
    return inside, outside


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
        "embeddings": location.embeddings,
        "requirements": [_requirement(step, members, result.cells) for step in requirements],
        "requirements_elsewhere": [_requirement(step, members, result.cells) for step in elsewhere],
        "sources": [source.model_dump(mode="json") for source in chain.sources] if chain else [],
        "usage": [step.model_dump(mode="json") for step in chain.usage] if chain else [],
        "hyperparameters": [item.model_dump(mode="json") for item in traced.hyperparameters] if traced else [],
        "data_needs": list(traced.data_needs) if traced else [],
        "problems": [problem.model_dump(mode="json") for problem in problems_of(result)],
    }


def engine_words(result: LocateResult) -> str:
    """Who decided, for people."""
    who = "keyless (rules)" if result.engine == "keyless" else result.engine
    vectors = result.location.embeddings
    return f"{who}, with likeness of meaning by {vectors}" if vectors else who


def explained(result: LocateResult, shown: int) -> dict[str, Any]:
    """What `--explain` adds: every ranked file with its reasons, and the chains that were not chosen."""
    return {
        "ranking": [source.model_dump(mode="json") for source in result.location.ranked[:shown]],
        "alternatives": [chain.model_dump(mode="json") for chain in result.location.alternatives],
        "reached": list(result.trace.reached) if result.trace else [],
    }


def _requirement(item: Cited, members: Collection[str], cells: Mapping[str, Mapping[int, int]]) -> dict[str, Any]:
    """Spans with the `file` of the published data beside our own `path`, whether it is of the chain, and its cells."""
    spans: list[dict[str, Any]] = []
    for span in item.requirement.spans:
        made = {"file": span.path, **span.model_dump(mode="json"), "in_chain": span.path in members}
        if span.path in cells:
            known = cells[span.path]
            made["cells"] = sorted({known[line] for line in range(span.start, span.end + 1) if line in known})
        spans.append(made)
    return {"text": item.requirement.text, "spans": spans, "likely": item.likely}


def problems_of(result: LocateResult) -> list[Problem]:
    """What could not be read, parsed or decided, the gravest first."""
    found = [*result.left_out, *result.location.problems, *(result.trace.problems if result.trace else ())]
    unique = list(dict.fromkeys(found))
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    unique.sort(key=lambda problem: order.index(problem.severity))
    if len(unique) > _SHOWN_PROBLEMS:
        message = f"{len(unique) - _SHOWN_PROBLEMS} more problems are not listed"
        more = Problem(component="locator", where=result.repository, message=message, severity=Severity.INFO)
        return [*unique[:_SHOWN_PROBLEMS], more]
    return unique
