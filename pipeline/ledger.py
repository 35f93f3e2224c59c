"""The ledger: what each stage took in time (and, with a model, in tokens and money), one JSON line per stage.

Append-only and crash-safe: a line that was cut off by a crash is skipped when read. Durations live here and nowhere in
the task files, so that equal inputs give equal task files. An unknown price is None, never 0.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from pipeline.schema import Record

__all__ = ["Entry", "Ledger"]


class Entry(Record):
    """One stage of one task (or of the paper, when `task` is None)."""

    stage: str
    task: str | None = None
    started_at: str
    """ISO 8601, UTC."""
    duration_s: float
    outcome: str
    """`done`, `reused`, or the name of the exception that ended it."""
    cost_usd: float | None = None
    tokens: int | None = None


class Ledger:
    """Appends entries to `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, entry: Entry) -> None:
        """Write one line, in one call, so that lines of concurrent writers do not mix."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(entry.model_dump_json() + "\n")

    @contextmanager
    def timed(self, stage: str, task: str | None = None) -> Iterator[None]:
        """Time a block and record how it ended."""
        started_at, begin, outcome = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic(), "done"
        try:
            yield
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            duration = round(time.monotonic() - begin, 3)
            self.append(Entry(stage=stage, task=task, started_at=started_at, duration_s=duration, outcome=outcome))

    def entries(self) -> list[Entry]:
        """All complete entries, in order of writing."""
        if not self.path.exists():
            return []
        entries = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entries.append(Entry.model_validate(json.loads(line)))
            except (json.JSONDecodeError, ValidationError):
                continue  # the last line of a process that was killed while writing
        return entries
