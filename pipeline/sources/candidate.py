"""A candidate: a paper that may become tasks, and what is known of its popularity, its code and its needs.

What is not known is None, never 0 or an empty guess; `origins` says where each known value came from.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final, Self

from pydantic import Field

from pipeline.schema import Record
from pipeline.text import slug

__all__ = ["Candidate", "Needs", "candidate_id", "repository_url", "same_title", "urls_of_code"]

_GITHUB: Final = re.compile(
    r"https?://(?:www\.)?(?P<host>github\.com|gitlab\.com|bitbucket\.org)/(?P<owner>[\w.-]+)/(?P<name>[\w.-]+)",
    re.IGNORECASE,
)
_NO_OWNERS: Final = frozenset({"topics", "features", "orgs", "sponsors", "about", "marketplace", "collections"})


class Needs(Record):
    """What reproducing a paper takes, as somebody estimated it."""

    gpus: int | None = Field(default=None, ge=0)
    gpu_type: str | None = None
    memory_gb: float | None = Field(default=None, ge=0)
    api_calls: bool | None = None
    """Does it call somebody's paid interface?"""
    hours: float | None = Field(default=None, ge=0)
    difficulty: int | None = None
    """1 (easy) to 5, where the export states one."""
    stated: str = ""
    """The words that this was read from."""


class Candidate(Record):
    """A paper with what is known of it."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]{0,79}$")
    title: str
    authors: tuple[str, ...] = ()
    venue: str | None = None
    """Short name, e.g. `ICLR`."""
    year: int | None = None
    url: str | None = None
    pdf_url: str | None = None
    pdf: str | None = None
    """A file, where an export names one (relative to the export)."""
    abstract: str = ""
    keywords: tuple[str, ...] = ()
    doi: str | None = None
    arxiv: str | None = None
    openreview: str | None = None
    """Id of its forum."""
    repository: str | None = None
    commit: str | None = None
    citations: int | None = Field(default=None, ge=0)
    stars: int | None = Field(default=None, ge=0)
    forks: int | None = Field(default=None, ge=0)
    license: str | None = None
    """SPDX identifier of the repository's licence; `NONE` where it is known to have none."""
    language: str | None = None
    """The language that most of the repository is written in."""
    active: str | None = None
    """Day of the latest change (ISO date)."""
    archived: bool | None = None
    needs: Needs = Needs()
    origins: dict[str, str] = Field(default_factory=dict)
    """Field -> where its value came from."""

    def with_known(self, source: str, **values: object) -> Self:
        """A copy in which fields that are not known yet have the given values; None and empty ones are no values.

        Args:
            source: where they come from.
            values: by field.
        """
        new = {
            name: value
            for name, value in values.items()
            if value not in (None, "", ()) and getattr(self, name) in (None, "", ())
        }
        return self.evolve(**new, origins=self.origins | dict.fromkeys(new, source)) if new else self

    def updated(self, source: str, **values: object) -> Self:
        """A copy in which the given values replace what was there: of look-ups, which are newer than exports."""
        new = {name: value for name, value in values.items() if value is not None}
        return self.evolve(**new, origins=self.origins | dict.fromkeys(new, source)) if new else self


def repository_url(text: str) -> str | None:
    """The address of the repository that a text begins with or is: `https://host/owner/name`, without what follows.

    Of a host that is not known as a forge, the whole URL is kept.
    """
    text = text.strip()
    found = urls_of_code(text)
    if found:
        return found[0]
    match = re.match(r"https?://[^\s\"'<>]+", text)
    return match[0].rstrip(".,;)") if match else None


def urls_of_code(text: str) -> tuple[str, ...]:
    """Repositories that a text names, in their order, each once; `.git` and a full stop are no part of a name."""
    found: dict[str, None] = {}
    for match in _GITHUB.finditer(text):
        name = match["name"].rstrip(".").removesuffix(".git").rstrip(".")
        if name and match["owner"].lower() not in _NO_OWNERS:
            found[f"https://{match['host'].lower()}/{match['owner']}/{name}"] = None
    return tuple(found)


def same_title(text: str) -> str:
    """Letters and digits of a title in lower case: equal for equal titles, however they are typeset."""
    plain = unicodedata.normalize("NFKD", text).casefold()
    return "".join(character for character in plain if character.isalnum())


def candidate_id(*parts: object) -> str:
    """A file-name-safe id from what identifies a paper."""
    return slug(" ".join(str(part) for part in parts if part), 80) or "paper"
