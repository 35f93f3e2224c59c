"""The ledger of model calls: one line per attempt, on disk before the caller sees the answer.

It lies beside the stages' ledger (`pipeline.ledger`), because one stage makes many calls. A line is written with one
`write` at the end of the file under a lock, and flushed to the disk when the attempt may have cost money; a line that a
crash cut off is closed by the next writer and skipped by readers. An attempt that the process did not survive has no
line. An unknown price or token count is None, never 0.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from pipeline.llm.budget import Spent
from pipeline.llm.types import PromptRef, Usage
from pipeline.schema import Record

__all__ = ["CallLedger", "CallRecord", "Totals"]


class CallRecord(Record):
    """One attempt of one call."""

    call: str
    """Id of the call; its attempts share it."""
    attempt: int
    """From 1; 0: answered from the cache."""
    repair: int = 0
    """Which round of repairing an invalid structured answer this call is; 0: the first question."""
    kind: Literal["chat", "stream", "embeddings"] = "chat"
    outcome: str
    """`done`, `cached`, a failure kind, or the name of the exception that ended it."""
    provider: str
    model: str
    endpoint: str
    key: str
    """Of the exchange in the cache."""
    run: str | None = None
    stage: str | None = None
    task: str | None = None
    prompt: PromptRef | None = None
    temperature: float | None = None
    seed: int | None = None
    sample: int = 0
    usage: Usage | None = None
    cost_usd: Decimal | None = None
    bound_usd: Decimal | None = None
    """What the budget was charged where the cost is unknown."""
    bound_tokens: int | None = None
    """The same, where the usage is unknown."""
    sent: bool
    """Did a request leave this machine?"""
    started_at: str
    """ISO 8601, UTC."""
    duration_s: float
    wait_s: float = 0.0
    """Back-off before this attempt."""
    status: int | None = None
    retry_after_s: float | None = None
    request_id: str | None = None
    error: str | None = None
    """Redacted."""
    left_out_characters: int = 0


class Totals(Record):
    """Sums over lines."""

    calls: int = 0
    """Attempts that left this machine."""
    failed: int = 0
    """Those of them that brought no answer."""
    cached: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    unknown_usage: int = 0
    """Attempts that may have used tokens nobody counted."""
    known_cost_usd: Decimal = Decimal(0)
    unknown_cost: int = 0
    """Attempts whose cost is unknown."""
    duration_s: Decimal = Decimal(0)

    @property
    def cost_usd(self) -> Decimal | None:
        """Dollars, or None when part of them is unknown."""
        return self.known_cost_usd if self.unknown_cost == 0 else None

    def __add__(self, other: Totals) -> Totals:
        return Totals(**{name: getattr(self, name) + getattr(other, name) for name in Totals.model_fields})

    @classmethod
    def of(cls, record: CallRecord) -> Totals:
        """The totals of one line."""
        usage = record.usage if record.sent else None
        return cls(
            calls=int(record.sent),
            failed=int(record.sent and record.outcome != "done"),
            cached=int(record.outcome == "cached"),
            input_tokens=usage.input_tokens if usage else 0,
            output_tokens=usage.output_tokens if usage else 0,
            unknown_usage=int(record.sent and usage is None),
            known_cost_usd=(record.cost_usd or Decimal(0)) if record.sent else Decimal(0),
            unknown_cost=int(record.sent and record.cost_usd is None),
            duration_s=Decimal(str(record.duration_s)),
        )


class CallLedger:
    """Appends to, reads and sums the file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def append(self, record: CallRecord) -> None:
        """Write one line; safe among threads and processes."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = (record.model_dump_json(exclude_none=True) + "\n").encode("utf-8")
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line  # a writer died inside its line: without this ours would be lost with it
            _write_all(descriptor, line)
            if record.sent:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)  # and the lock with it

    def records(self) -> list[CallRecord]:
        """All complete lines, in order of writing."""
        if not self.path.exists():
            return []
        records = []
        for line in self.path.read_bytes().split(b"\n"):
            try:
                records.append(CallRecord.model_validate_json(line))
            except ValidationError:
                continue  # the empty end, or a line that a killed process did not finish
        return records

    def spent(self, run: str | None = None) -> Spent:
        """What the budget of a run was charged, for `Budget(already=...)` when it is resumed (None: of all runs)."""
        amount = Spent()
        for record in self.records():
            if record.sent and run in {None, record.run}:
                usd = record.bound_usd if record.cost_usd is None else record.cost_usd
                tokens = record.bound_tokens or 0 if record.usage is None else record.usage.total
                amount = amount + Spent(usd=usd, tokens=tokens, calls=1)
        return amount

    def totals(self) -> Totals:
        """Sums over everything."""
        return sum_records(self.records())

    def totals_by(self, *names: Literal["run", "stage", "task", "model"]) -> dict[tuple[str | None, ...], Totals]:
        """Sums per value of the named fields, sorted; None stands for calls outside of any."""
        groups: dict[tuple[str | None, ...], list[CallRecord]] = {}
        for record in self.records():
            groups.setdefault(tuple(getattr(record, name) for name in names), []).append(record)
        return {key: sum_records(groups[key]) for key in sorted(groups, key=lambda key: [part or "" for part in key])}


def sum_records(records: Iterable[CallRecord]) -> Totals:
    """Sums over some lines."""
    total = Totals()
    for record in records:
        total = total + Totals.of(record)
    return total


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
