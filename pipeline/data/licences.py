"""Licences that data sources state themselves, in the descriptions that a run fetched beside the files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final

from pipeline.data.records import Reply
from pipeline.data.store import DataStore

__all__ = ["stated_licences"]

_LARGEST: Final = 1 << 20
_NAMES: Final = ("licence", "license")


def stated_licences(replies: Iterable[Reply], store: DataStore) -> dict[str, str]:
    """Licence by URL: of a JSON object that names a licence, for the files whose URLs it holds (OpenML's do).

    Args:
        replies: of one data phase.
        store: that holds them.
    """
    chosen = [r for r in replies if "json" in r.header.get("content-type", "") and 0 < r.size <= _LARGEST]
    found: dict[str, str] = {}
    for reply in chosen:
        try:
            described = json.loads(store.blob(reply.sha256).read_bytes())
        except (FileNotFoundError, ValueError, RecursionError):
            continue  # the answer to a HEAD, or not what its type says
        for licence, urls in _descriptions(described):
            found |= dict.fromkeys(urls, licence)
    return found


def _descriptions(value: Any) -> Iterator[tuple[str, list[str]]]:
    """(licence, URLs beside it) of every object that has one."""
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            licence = next((one[name] for name in _NAMES if isinstance(one.get(name), str) and one[name]), None)
            if licence is not None:
                yield licence[:200], [text for text in one.values() if isinstance(text, str) and "://" in text]
        waiting.extend(one.values() if isinstance(one, dict) else one if isinstance(one, list) else ())
