"""Which URLs a data phase may fetch: the named data hosts of `hosts.yaml`, and those that settings add."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from importlib import resources
from urllib.parse import urlsplit

from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record
from pipeline.yamlio import parse_yaml

__all__ = ["AllowList", "default_allow_list"]


class AllowList(Record):
    """Patterns `host` or `host/path`, where `*` stands for anything."""

    hosts: tuple[str, ...]
    reads_by_post: tuple[str, ...] = Field(default=())

    def allows(self, method: str, url: str) -> bool:
        """May this be asked for?"""
        if method not in {"GET", "HEAD", "POST"}:
            return False
        return any(_matches(pattern, url) for pattern in (self.reads_by_post if method == "POST" else self.hosts))

    def names(self) -> tuple[str, ...]:
        """Patterns of all hosts, for a name server."""
        return tuple(dict.fromkeys(pattern.partition("/")[0].lower() for pattern in (*self.hosts, *self.reads_by_post)))

    def knows(self, host: str) -> bool:
        """Is anything of this host on the list?"""
        return any(fnmatch.fnmatchcase(host.lower(), name) for name in self.names())

    def extended(self, more: Iterable[str]) -> AllowList:
        """With further entries.

        Raises:
            ExpbenchError: `USAGE`, one names no host, or all hosts of a top-level domain.
        """
        added = tuple(entry.strip() for entry in more if entry.strip())
        for entry in added:
            _require_host(entry)
        return self.evolve(hosts=tuple(dict.fromkeys((*self.hosts, *added))))


def default_allow_list() -> AllowList:
    """The list of `hosts.yaml`."""
    text = resources.files("pipeline.data").joinpath("hosts.yaml").read_text(encoding="utf-8")
    return parse_yaml(text, AllowList, "hosts.yaml")


def _matches(pattern: str, url: str) -> bool:
    parts = urlsplit(url)
    host, slash, path = pattern.partition("/")
    if not fnmatch.fnmatchcase(parts.hostname or "", host.lower()):
        return False
    # a path with `..` or an escaped slash could mean another one to the server
    plain = ".." not in parts.path and "%2e" not in parts.path.lower() and "%2f" not in parts.path.lower()
    return not slash or (plain and fnmatch.fnmatchcase(parts.path, f"/{path}"))


def _require_host(entry: str) -> None:
    labels = entry.partition("/")[0].split(".")
    literal = [label for label in labels if label and "*" not in label]
    if len(literal) >= 2 and labels[-2:] == literal[-2:] and not labels[-1].isdecimal() and ":" not in entry:
        return
    raise ExpbenchError(
        FailureKind.USAGE,
        f"EXPBENCH_DATA_HOSTS entry {entry!r}",
        "is no host name such as `data.example.org`, `*.example.org` or `example.org/files/*`",
        consequence="No data phase was started",
        next_step="Give host names, without scheme, port or address, separated by commas",
    )
