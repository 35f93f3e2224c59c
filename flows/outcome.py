"""What a curation ends with."""

from __future__ import annotations

from pathlib import Path

from pipeline.schema import StoredRecord

__all__ = ["Outcome"]


class Outcome(StoredRecord):
    """What came out, for `summary.json` and `--json`."""

    workspace: Path
    page: Path
    engine: str
    sandbox: str
    tasks: tuple[tuple[str, str, str], ...]
    """(task id, status, reason)."""
    candidates: int
    """Tasks that are masked, leak-free by the scan and passed the round trip; approved and released ones included."""
