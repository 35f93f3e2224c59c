"""The ledger of model calls: a line before each attempt and one after it, on disk before the caller sees the answer.

It lies beside the stages' ledger (`pipeline.ledger`), because one stage makes many calls. A line is written with one
`write` at the end of the file under a lock; a line that a crash cut off is closed by the next writer and skipped by
readers. The line before an attempt (`started`) holds its worst case. Readers drop it when the attempt's end is
recorded; otherwise the attempt is still under way or its process was killed, and it counts as `unknown_outcome`: made,
its usage and cost unknown, its worst case charged to a resumed budget. The lines of attempts that may have cost money
are flushed to the disk at their end; the line before is not (that would double the cost of a call here, and protects
from a loss of power only: what was written survives the death of the process). An unknown price or token count is None,
never 0.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from pipeline.llm.budget import Spent
from pipeline.llm.config import Api
from pipeline.llm.storage import storage_errors
from pipeline.llm.types import PromptRef, Usage
from pipeline.schema import Record

__all__ = ["STARTED", "UNKNOWN_OUTCOME", "CallLedger", "CallRecord", "Totals"]

STARTED: Final = "started"
"""Outcome of the line before an attempt."""
UNKNOWN_OUTCOME: Final = "unknown_outcome"
"""What readers make of it where the attempt's end is not recorded."""


class CallRecord(Record):
    """One attempt of one call."""

    call: str
    """Id of the call; its attempts share it."""
    attempt: int
    """From 1; 0: answered from the cache."""
    repair: int = 0
    """Which round of repairing an invalid structured answer this call is; 0: the first question."""
    kind: Literal["chat", "stream", "embeddings"] = "chat"
    api: Api | None = None
    """Which of OpenAI's interfaces; None for embeddings and other providers."""
    outcome: str
    """`done`, `cached`, `unknown_outcome`, a failure kind, or the name of the exception that ended it."""
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
    """Those of them that brought no answer, as far as is known."""
    unknown_outcome: int = 0
    """Those of them whose end is not recorded: still under way, or their process was killed."""
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
            failed=int(record.sent and record.outcome not in {"done", UNKNOWN_OUTCOME}),
            unknown_outcome=int(record.outcome == UNKNOWN_OUTCOME),
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
        """Write one line; safe among threads and processes.

        Raises:
            ExpbenchError: `DISK_FULL` or `RECORD_INVALID` when the file cannot be written.
        """
        line = (record.model_dump_json(exclude_none=True) + "\n").encode("utf-8")
        lost = "The call was not made" if record.outcome == STARTED else "The end of a model call is not recorded"
        with storage_errors(self.path, "the ledger of model calls", lost):
            self._append(line, flush=record.sent and record.outcome != STARTED)

    def _append(self, line: bytes, *, flush: bool) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            size = os.fstat(descriptor).st_size
            if size and os.pread(descriptor, 1, size - 1) != b"\n":
                line = b"\n" + line  # a writer died inside its line: without this ours would be lost with it
            _write_all(descriptor, line)
            if flush:
                os.fdatasync(descriptor)
        finally:
            os.close(descriptor)  # and the lock with it

    def records(self) -> list[CallRecord]:
        """All attempts, in order of writing; those without a recorded end have the outcome `unknown_outcome`.

        Raises:
            ExpbenchError: `RECORD_INVALID` when the file cannot be read.
        """
        with storage_errors(self.path, "the ledger of model calls", "The calls so far are not known"):
            try:
                data = self.path.read_bytes()
            except FileNotFoundError:
                return []
        records = []
        for line in data.split(b"\n"):
            try:
                records.append(CallRecord.model_validate_json(line))
            except ValidationError:
                continue  # the empty end, or a line that a killed process did not finish
        return _reconciled(records)

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


def sum_records(records: Iterable[CallRecord]) -> Totals:
    """Sums over some lines."""
    total = Totals()
    for record in records:
        total = total + Totals.of(record)
    return total


def _reconciled(records: list[CallRecord]) -> list[CallRecord]:
    ended = {(record.call, record.attempt) for record in records if record.outcome != STARTED}
    kept = []
    for record in records:
        if record.outcome != STARTED:
            kept.append(record)
        elif (record.call, record.attempt) not in ended:
            kept.append(record.evolve(outcome=UNKNOWN_OUTCOME))
    return kept


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
