"""From exports and venues to a ranked list: read, merge, look up, filter, order (EXP-Bench 3.2, stage 1).

The same exports and the same answers give the same list. A look-up that fails leaves its fields unknown and is a
problem of the list, not its end; a service that cannot be reached is not asked again for the rest of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar, Final

from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record, Severity, StoredRecord
from pipeline.sources.candidate import Candidate, same_title
from pipeline.sources.exports import read_export
from pipeline.sources.filters import Filters, Rejection, judge
from pipeline.sources.openreview import list_venue, openreview_service
from pipeline.sources.ranking import score
from pipeline.sources.services import Lookup
from pipeline.sources.web import WebClient

__all__ = ["CandidateList", "Plan", "Ranked", "Rejected", "build_list", "plan_list"]

_COMPONENT: Final = "sources"
_STAGE: Final = "look up"
_GIVE_UP: Final = frozenset({FailureKind.NETWORK, FailureKind.RATE_LIMIT, FailureKind.AUTHENTICATION})
"""Failures after which the next request of the same service would fail in the same way."""


class Ranked(Record):
    """A candidate that is kept."""

    rank: int
    score: float
    signals: tuple[str, ...]
    """What the score rests on."""
    unknown: tuple[str, ...]
    """Filters that could not be decided."""
    candidate: Candidate


class Rejected(Record):
    """A candidate that is not kept."""

    candidate: Candidate
    reasons: tuple[Rejection, ...]


class CandidateList(StoredRecord):
    """The result."""

    SCHEMA_VERSION: ClassVar[int] = 1

    candidates: tuple[Ranked, ...]
    rejected: tuple[Rejected, ...]
    """By id."""
    read: int
    """Papers in the exports and venues, each once."""
    filters: Filters
    asked: dict[str, int]
    """Requests made, by service; cached answers do not count."""
    problems: tuple[Problem, ...] = ()

    def rejections(self) -> dict[str, int]:
        """How many candidates each filter rejects, the most first; one can be rejected by several."""
        counts: dict[str, int] = {}
        for item in self.rejected:
            for reason in item.reasons:
                counts[reason.filter] = counts.get(reason.filter, 0) + 1
        return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


class Plan(Record):
    """What a list would take: of a dry run."""

    read: int
    """Papers in the exports."""
    rejected_before: int
    """Rejected by what the exports say already: not looked up."""
    requests: dict[str, int]
    """First requests that are not in the cache, by service; a venue is at least one."""
    cached: dict[str, int]
    problems: tuple[Problem, ...] = ()


def build_list(
    exports: Sequence[Path], *, venues: Sequence[str], lookups: Sequence[Lookup], filters: Filters, client: WebClient,
    reporter: Reporter, limit: int | None = None,
) -> CandidateList:  # fmt: skip
    """Make the list.

    Args:
        exports: files of papers.
        venues: OpenReview venue ids whose papers are taken too.
        lookups: asked in this order; what a candidate's export already excludes is not looked up.
        filters: what is asked of a candidate.
        client: asks.
        reporter: progress.
        limit: the best so many; None: all.

    Raises:
        ExpbenchError: an export cannot be read, or a venue cannot be listed.
    """
    problems: list[Problem] = []
    papers = _merged(_papers(exports, venues, client, reporter, problems))
    known = _looked_up(papers, lookups, filters, client, reporter, problems) if lookups else papers
    kept: list[tuple[float, tuple[str, ...], tuple[str, ...], Candidate]] = []
    rejected: list[Rejected] = []
    for candidate in known:
        reasons, unknown = judge(candidate, filters)
        if reasons:
            rejected.append(Rejected(candidate=candidate, reasons=tuple(reasons)))
        else:
            value, signals = score(candidate)
            kept.append((value, signals, tuple(unknown), candidate))
    kept.sort(key=lambda item: (-item[0], item[3].id))
    ranked = tuple(
        Ranked(rank=rank, score=value, signals=signals, unknown=unknown, candidate=candidate)
        for rank, (value, signals, unknown, candidate) in enumerate(kept, start=1)
    )
    return CandidateList(
        candidates=ranked[:limit],
        rejected=tuple(sorted(rejected, key=lambda item: item.candidate.id)),
        read=len(papers),
        filters=filters,
        asked=dict(sorted(client.asked.items())),
        problems=tuple(problems),
    )


def plan_list(
    exports: Sequence[Path], *, venues: Sequence[str], lookups: Sequence[Lookup], filters: Filters, client: WebClient
) -> Plan:
    """What `build_list` would ask whom; reads the exports and the cache, asks nobody.

    Raises:
        ExpbenchError: an export cannot be read.
    """
    problems: list[Problem] = []
    papers: list[Candidate] = []
    for path in exports:
        found, troubles = read_export(path)
        papers += found
        problems += troubles
    papers = _merged(papers)
    wanted = [candidate for candidate in papers if not _excluded(candidate, filters)]
    requests: dict[str, int] = {openreview_service().name: len(venues)} if venues else {}
    cached: dict[str, int] = {}
    for lookup in lookups:
        name = lookup.service.name
        for candidate in wanted:
            first = lookup.requests(candidate)[:1] if lookup.needed(candidate) else ()
            for path_, parameters in first:
                there = client.cached(lookup.service, path_, parameters)
                (cached if there else requests)[name] = (cached if there else requests).get(name, 0) + 1
    return Plan(
        read=len(papers), rejected_before=len(papers) - len(wanted), requests=requests, cached=cached,
        problems=tuple(problems),
    )  # fmt: skip


# --- reading and merging


def _papers(
    exports: Sequence[Path], venues: Sequence[str], client: WebClient, reporter: Reporter, problems: list[Problem]
) -> Iterable[Candidate]:
    for path in exports:
        found, troubles = read_export(path)
        problems += troubles
        yield from found
    for venue in venues:
        yield from list_venue(venue, client, reporter)


def _merged(papers: Iterable[Candidate]) -> list[Candidate]:
    """Each paper once, in the order of the ids; what the first one does not say is taken from the others.

    The same paper has the same forum, DOI or arXiv id, or the same title in the same year (or in none).
    """
    merged: dict[str, Candidate] = {}
    places: dict[str, str] = {}
    for paper in papers:
        keys = _identities(paper)
        same = next((places[key] for key in keys if key in places), None)
        if same is None and paper.id in merged:
            paper = paper.evolve(id=_free(paper.id, merged))  # noqa: PLW2901 - another paper of the same id
        home = same or paper.id
        merged[home] = paper if same is None else _joined(merged[home], paper)
        for key in (*keys, *_identities(merged[home])):
            places.setdefault(key, home)
    return [merged[name] for name in sorted(merged)]


def _identities(paper: Candidate) -> list[str]:
    keys = [
        f"{name}:{value.lower() if name == 'doi' else value}"
        for name in ("openreview", "doi", "arxiv")
        if (value := getattr(paper, name))
    ]
    title = same_title(paper.title)
    return [*keys, f"title:{title}:{paper.year or ''}"] if len(title) >= 12 else keys


def _joined(first: Candidate, second: Candidate) -> Candidate:
    values = {name: getattr(second, name) for name in Candidate.model_fields if name not in {"id", "needs", "origins"}}
    joined = first.with_known(second.origins.get("title", "another export"), **values)
    return joined if joined.needs.stated else joined.evolve(needs=second.needs)


def _free(name: str, taken: dict[str, Candidate]) -> str:
    return next(other for number in range(2, len(taken) + 3) if (other := f"{name[:76]}-{number}") not in taken)


# --- looking up


def _excluded(candidate: Candidate, filters: Filters) -> bool:
    """Is it rejected by facts that no look-up changes, as popularity, licence and activity may be?"""
    lasting = {"code", "hosts", "venues", "years", "keywords", "without_keywords"}
    reasons, _ = judge(candidate, filters.evolve(unknown="keep"))
    return any(reason.filter in lasting for reason in reasons)


def _looked_up(
    papers: Sequence[Candidate], lookups: Sequence[Lookup], filters: Filters, client: WebClient, reporter: Reporter,
    problems: list[Problem],
) -> list[Candidate]:  # fmt: skip
    down: set[str] = set()
    known: list[Candidate] = []
    reporter.start(_STAGE, len(papers))
    for paper in papers:
        candidate = paper
        if not _excluded(paper, filters):
            for lookup in lookups:
                if lookup.service.name not in down and lookup.needed(candidate):
                    candidate = _asked(candidate, lookup, client, down, problems)
        known.append(candidate)
        reporter.step(_STAGE, candidate.id)
    reporter.end(_STAGE, ", ".join(f"{name}: {count}" for name, count in sorted(client.asked.items())))
    return known


def _asked(
    candidate: Candidate, lookup: Lookup, client: WebClient, down: set[str], problems: list[Problem]
) -> Candidate:
    try:
        return lookup.look_up(candidate, client)
    except ExpbenchError as error:
        if FAILURES[error.kind].cause not in {Cause.INFRASTRUCTURE, Cause.USER}:
            raise
        name = lookup.service.name
        if error.kind in _GIVE_UP and not client.offline:
            down.add(name)
            message = f"{error.cause}: not asked again for the rest of the list, what it knows stays unknown"
        else:
            message = f"{error.cause}: what it knows stays unknown"
        problems.append(
            Problem(component=f"{_COMPONENT}.{name}", where=candidate.id, message=message, severity=Severity.WARNING)
        )
        return candidate
