"""The locator on its own: what was found for one task, as a prediction in the form of the scorer.

A prediction has what a scorer of retrieval reads (`paper_id`, `task_index`, `ranked`) and beside it what people use:
the chain, its commands, how sure it is, and `not_found`. What the chain does is only known when it has run.
"""

from __future__ import annotations

from typing import Any, Final

from pipeline.locator import Location, RepositoryIndex, TaskQuery, locate
from pipeline.schema import Problem, Record, Severity

__all__ = ["LocateResult", "engine_words", "explained", "located", "prediction", "problems_of"]

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
    left_out: tuple[Problem, ...] = ()
    """What of the repository was not read at all: links, devices, missing submodules."""
    engine: str = "keyless"


def located(
    index: RepositoryIndex, query: TaskQuery, *, location: Location | None = None, engine: str = "keyless"
) -> LocateResult:
    """Locate one task.

    Args:
        index: the repository, from `build_index`.
        query: the task.
        location: where it was decided before, by a model or with its problems.
        engine: who decided: `keyless`, or the model's name.
    """
    found = location if location is not None else locate(index, query)
    snapshot = index.snapshot
    return LocateResult(
        repository=snapshot.ref.url,
        commit=snapshot.ref.commit,
        files=index.size,
        location=found,
        left_out=snapshot.problems,
        engine=engine,
    )


def prediction(result: LocateResult) -> dict[str, Any]:
    """A result as JSON: paths first, then what supports them."""
    location, chain = result.location, result.location.chain
    return {
        "ranked": [source.path for source in location.ranked],
        "chain": [source.path for source in chain.sources] if chain else [],
        "not_found": location.not_found.model_dump(mode="json") if location.not_found else None,
        "confidence": round(location.confidence, 4),
        "sources": [source.model_dump(mode="json") for source in chain.sources] if chain else [],
        "usage": [step.model_dump(mode="json") for step in chain.usage] if chain else [],
        "problems": [problem.model_dump(mode="json") for problem in problems_of(result)],
    }


def engine_words(result: LocateResult) -> str:
    """Who decided, for people."""
    return "keyless (rules)" if result.engine == "keyless" else result.engine


def explained(result: LocateResult, shown: int) -> dict[str, Any]:
    """What `--explain` adds: every ranked file with its reasons, and the chains that were not chosen."""
    return {
        "ranking": [source.model_dump(mode="json") for source in result.location.ranked[:shown]],
        "alternatives": [chain.model_dump(mode="json") for chain in result.location.alternatives],
    }


def problems_of(result: LocateResult) -> list[Problem]:
    """What could not be read, parsed or decided, the gravest first."""
    unique = list(dict.fromkeys([*result.left_out, *result.location.problems]))
    order = [Severity.ERROR, Severity.WARNING, Severity.INFO]
    unique.sort(key=lambda problem: order.index(problem.severity))
    if len(unique) > _SHOWN_PROBLEMS:
        message = f"{len(unique) - _SHOWN_PROBLEMS} more problems are not listed"
        more = Problem(component="locator", where=result.repository, message=message, severity=Severity.INFO)
        return [*unique[:_SHOWN_PROBLEMS], more]
    return unique
