"""The agent's own log: one JSON line an event, flushed as it happens: a killed run leaves all but its last line."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["EventLog"]


class EventLog:
    """Appends events with their time since the start.

    A full disk must not end an experiment: the log then says so once on stderr and stops.
    """

    def __init__(self, path: str, began: float) -> None:
        self._began = began
        # open for the length of the run: a `with` would have to span all of it
        self._stream: Any = Path(path).open("a", encoding="utf-8", errors="backslashreplace")  # noqa: SIM115

    def write(self, kind: str, **values: Any) -> None:
        """One event."""
        if self._stream is None:
            return
        record = {"t": round(time.monotonic() - self._began, 3), "type": kind, **values}
        try:
            self._stream.write(json.dumps(record, ensure_ascii=False) + "\n")
            self._stream.flush()
        except OSError as error:
            self._stream = None
            sys.stderr.write(f"iterative: the event log ends here: {error}\n")

    def close(self) -> None:
        """Nothing more to come."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None
