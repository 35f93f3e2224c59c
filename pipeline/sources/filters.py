"""Which candidates are kept: filters declared in a file, each rejection with what was found and what was asked for.

The defaults are those of EXP-Bench's stage 1: papers of top venues with public code, filtered by popularity. The
paper gives no numbers; its published list was made with at least 100 stars, and of the papers in its Table 4 the
least-starred has 105. Citations order the candidates instead of excluding them: recent papers of that table have 2.

What is not known decides nothing unless `unknown: reject` says so: the candidate is kept, and the filter is named.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from typing import ClassVar, Final, Literal

import yaml
from pydantic import ValidationError

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.release_tables import REDISTRIBUTABLE
from pipeline.schema import Record, StoredRecord
from pipeline.sources.candidate import Candidate
from pipeline.sources.exports import short_venue

__all__ = ["Filters", "Rejection", "judge", "read_filters"]


class Rejection(Record):
    """Why a candidate is not in the list."""

    filter: str
    found: str
    wanted: str
    reason: str
    """A sentence."""


class Filters(StoredRecord):
    """What is asked of a candidate; None or an empty list asks nothing."""

    SCHEMA_VERSION: ClassVar[int] = 1

    code: bool = True
    """There is a public repository."""
    hosts: tuple[str, ...] = ()
    """Hosts of the repository, e.g. `github.com`."""
    venues: tuple[str, ...] = ("ICLR", "ICML", "NeurIPS")
    years: tuple[int | None, int | None] = (None, None)
    """First and last year, both included."""
    min_citations: int | None = None
    min_stars: int | None = 100
    min_forks: int | None = None
    licenses: tuple[str, ...] | Literal["redistributable"] = ()
    """SPDX identifiers of the repository's licence; `redistributable`: those that let a masked copy be shipped."""
    languages: tuple[str, ...] = ()
    """Of most of the repository."""
    active_since: date | None = None
    archived: bool = True
    """Are archived repositories kept? They do not change any more."""
    max_gpus: int | None = None
    max_memory_gb: float | None = None
    max_hours: float | None = None
    max_difficulty: int | None = None
    api_calls: bool = True
    """Are papers kept that need somebody's paid interface?"""
    keywords: tuple[str, ...] = ()
    """At least one occurs as a word in title, abstract or keywords."""
    without_keywords: tuple[str, ...] = ()
    """None of them does."""
    unknown: Literal["keep", "reject"] = "keep"
    """What becomes of a candidate of which a filter cannot be decided."""


def read_filters(path: Path) -> Filters:
    """Filters from a YAML or JSON file; what it does not name is as by default.

    Raises:
        ExpbenchError: `USAGE`: it cannot be read, or names a filter that there is not.
    """
    try:
        value = yaml.safe_load(path.read_text(encoding="utf-8"))
        return Filters.model_validate(value if value is not None else {})
    except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
        if isinstance(error, ValidationError):
            first = error.errors()[0]
            cause = f"{'.'.join(map(str, first['loc'])) or 'the file'}: {first['msg']}"
        else:
            cause = " ".join(str(error).split())
        raise ExpbenchError(
            FailureKind.USAGE,
            str(path),
            f"it does not declare filters ({cause})",
            consequence="No list was made",
            next_step="Filters are: " + ", ".join(name for name in Filters.model_fields if name != "schema_version"),
        ) from error


class _Open(Exception):  # noqa: N818 - no error: the answer is not known
    """A filter that cannot be decided."""


def judge(candidate: Candidate, filters: Filters) -> tuple[list[Rejection], list[str]]:
    """(why it is rejected, filters that cannot be decided), both in the order of the filters.

    Args:
        candidate: what is known of a paper.
        filters: what is asked.
    """
    rejections: list[Rejection] = []
    unknown: list[str] = []
    for name, check in _CHECKS:
        try:
            rejection = check(candidate, filters)
        except _Open:
            unknown.append(name)
            if filters.unknown == "reject":
                reason = f"it is not known whether it meets `{name}`, and unknown is rejected"
                rejections.append(Rejection(filter=name, found="unknown", wanted="known", reason=reason))
            continue
        if rejection is not None:
            found, wanted, reason = rejection
            rejections.append(Rejection(filter=name, found=found, wanted=wanted, reason=reason))
    return rejections, unknown


# --- one function a filter: None when it is met, else (found, wanted, sentence)

_Verdict = tuple[str, str, str] | None
_Check = Callable[[Candidate, Filters], _Verdict]


def _code(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.code or candidate.repository:
        return None
    gone = candidate.origins.get("repository", "")
    return "none", "a repository", f"no public code is known{f' ({gone})' if gone else ''}"


def _hosts(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.hosts or not candidate.repository:
        return None
    host = re.sub(r"^https?://([^/]+).*", r"\1", candidate.repository)
    if host in filters.hosts:
        return None
    return host, ", ".join(filters.hosts), f"its repository is at {host}"


def _venues(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.venues:
        return None
    if candidate.venue is None:
        raise _Open
    wanted = {short_venue(venue).casefold() for venue in filters.venues}
    if short_venue(candidate.venue).casefold() in wanted:
        return None
    return candidate.venue, ", ".join(filters.venues), f"its venue is {candidate.venue}"


def _years(candidate: Candidate, filters: Filters) -> _Verdict:
    first, last = filters.years
    if first is None and last is None:
        return None
    if candidate.year is None:
        raise _Open
    if (first is None or candidate.year >= first) and (last is None or candidate.year <= last):
        return None
    return str(candidate.year), f"{first or ''} to {last or ''}".strip(), f"it is of {candidate.year}"


def _at_least(name: str, field: str, what: str) -> tuple[str, _Check]:
    def check(candidate: Candidate, filters: Filters) -> _Verdict:
        wanted, found = getattr(filters, name), getattr(candidate, field)
        if wanted is None or (field != "citations" and candidate.repository is None):
            return None
        if found is None:
            raise _Open
        return None if found >= wanted else (str(found), f"{wanted}", f"{found} {what}, fewer than {wanted}")

    return name, check


def _at_most(name: str, field: str, what: str) -> tuple[str, _Check]:
    def check(candidate: Candidate, filters: Filters) -> _Verdict:
        wanted, found = getattr(filters, name), getattr(candidate.needs, field)
        if wanted is None:
            return None
        if found is None:
            raise _Open
        return None if found <= wanted else (f"{found:g}", f"{wanted:g}", f"{what} {found:g}, more than {wanted:g}")

    return name, check


def _licenses(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.licenses or candidate.repository is None:
        return None
    if candidate.license is None:
        raise _Open
    wanted = sorted(REDISTRIBUTABLE) if filters.licenses == "redistributable" else list(filters.licenses)
    if candidate.license.casefold() in {spdx.casefold() for spdx in wanted}:
        return None
    none = candidate.license == "NONE"
    return candidate.license, ", ".join(wanted), "it has no licence" if none else f"its licence is {candidate.license}"


def _languages(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.languages or candidate.repository is None:
        return None
    if candidate.language is None:
        raise _Open
    if candidate.language.casefold() in {language.casefold() for language in filters.languages}:
        return None
    return candidate.language, ", ".join(filters.languages), f"most of it is {candidate.language}"


def _active(candidate: Candidate, filters: Filters) -> _Verdict:
    if filters.active_since is None or candidate.repository is None:
        return None
    if candidate.active is None:
        raise _Open
    if candidate.active >= filters.active_since.isoformat():
        return None
    return candidate.active, filters.active_since.isoformat(), f"it was last changed on {candidate.active}"


def _archived(candidate: Candidate, filters: Filters) -> _Verdict:
    if filters.archived or candidate.repository is None:
        return None
    if candidate.archived is None:
        raise _Open
    return ("archived", "not archived", "its repository is archived") if candidate.archived else None


def _api_calls(candidate: Candidate, filters: Filters) -> _Verdict:
    if filters.api_calls:
        return None
    if candidate.needs.api_calls is None:
        raise _Open
    return ("needed", "not needed", "it needs calls of a paid interface") if candidate.needs.api_calls else None


def _words(candidate: Candidate, words: Sequence[str]) -> list[str]:
    text = f"{candidate.title}\n{candidate.abstract}\n{'; '.join(candidate.keywords)}"
    return [word for word in words if re.search(rf"(?<!\w){re.escape(word)}(?!\w)", text, re.IGNORECASE)]


def _keywords(candidate: Candidate, filters: Filters) -> _Verdict:
    if not filters.keywords or _words(candidate, filters.keywords):
        return None
    return "none", ", ".join(filters.keywords), "none of the keywords occurs in title, abstract or keywords"


def _without_keywords(candidate: Candidate, filters: Filters) -> _Verdict:
    found = _words(candidate, filters.without_keywords)
    return (", ".join(found), "none of them", f"it names {', '.join(found)}") if found else None


_CHECKS: Final[tuple[tuple[str, _Check], ...]] = (
    ("code", _code),
    ("hosts", _hosts),
    ("venues", _venues),
    ("years", _years),
    _at_least("min_citations", "citations", "citation(s)"),
    _at_least("min_stars", "stars", "star(s)"),
    _at_least("min_forks", "forks", "fork(s)"),
    ("licenses", _licenses),
    ("languages", _languages),
    ("active_since", _active),
    ("archived", _archived),
    _at_most("max_gpus", "gpus", "GPUs needed:"),
    _at_most("max_memory_gb", "memory_gb", "GB of memory needed:"),
    _at_most("max_hours", "hours", "hours needed:"),
    _at_most("max_difficulty", "difficulty", "estimated difficulty"),
    ("api_calls", _api_calls),
    ("keywords", _keywords),
    ("without_keywords", _without_keywords),
)
