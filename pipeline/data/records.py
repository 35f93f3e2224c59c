"""What a data phase leaves behind: answers by URL, the files among them, everything that was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Final, Literal

from pipeline.sandbox.base import RunResult
from pipeline.schema import Problem, Record, StoredRecord

__all__ = ["UNKNOWN_LICENCE", "Asked", "DataFile", "DataRecord", "KeptData", "Reply"]

UNKNOWN_LICENCE: Final = "unknown: recipe only"


class Reply(StoredRecord):
    """The answer to one request, as the index keeps it; its body lies under its digest."""

    key: str
    """Method, URL and, where there was a body, its digest."""
    url: str
    status: int
    reason: str
    headers: tuple[tuple[str, str], ...] = ()
    sha256: str
    size: int
    """Of the body; of a HEAD, what it announced."""
    fetched_at: str
    previous: tuple[tuple[str, str], ...] = ()
    """(sha256, when) of other bodies that this request had before."""

    @property
    def header(self) -> dict[str, str]:
        """Headers by name, in lower case."""
        return dict(self.headers)


class DataFile(Record):
    """A file that a run downloads: what a recipe needs to get it again and to know that it is the same."""

    url: str
    size: int
    sha256: str
    content_type: str
    fetched_at: str
    licence: str = UNKNOWN_LICENCE
    """As the source's own description states it."""


class Asked(Record):
    """One request of a data phase."""

    method: str
    url: str
    outcome: Literal["fetched", "cached", "refused", "failed"]
    detail: str = ""


class KeptData(StoredRecord):
    """What an offline run is given of its data phase."""

    digest: str
    """Of all answers; equal records make equal runs."""
    directory: Path
    """What an offline run mounts, in the cache of the machine that fetched it."""
    files: tuple[DataFile, ...]
    """What it has to hold: how somebody else gets it again."""


class DataRecord(KeptData):
    """The data of one run."""

    requests: tuple[Asked, ...]
    fetched_bytes: int
    """That came over the network this time."""
    problems: tuple[Problem, ...] = ()
    result: RunResult
    """Of the data phase itself: no evidence, as its network was not closed."""

    @property
    def refused(self) -> tuple[Asked, ...]:
        """What was asked for and not given."""
        return tuple(asked for asked in self.requests if asked.outcome == "refused")

    @property
    def kept(self) -> KeptData:
        """Without how it was fetched."""
        return KeptData(digest=self.digest, directory=self.directory, files=self.files)
