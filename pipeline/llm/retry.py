"""When to try a call again: bounded, spread by jitter, never earlier than the endpoint asked for.

What may be retried at all is said by the one table in `pipeline.errors`; this module only says when and how often.
"""

from __future__ import annotations

import random

from pydantic import Field

from pipeline.errors import FAILURES, FailureKind
from pipeline.schema import Record

__all__ = ["RetryPolicy"]


class RetryPolicy(Record):
    """Exponential back-off with full jitter."""

    attempts: int = Field(default=6, ge=1)
    """Calls altogether, the first included."""
    base_s: float = Field(default=1.0, ge=0)
    cap_s: float = Field(default=60.0, ge=0)
    longest_retry_after_s: float = Field(default=300.0, ge=0)
    """An endpoint that asks for a longer wait is given up on, with that wait in the error."""

    def delay(self, kind: FailureKind, attempt: int, retry_after_s: float | None, rng: random.Random) -> float | None:
        """Seconds to wait after the failed attempt number `attempt` (from 1), or None to give up.

        With Retry-After the wait is that long plus up to a tenth (at least `base_s`) of jitter, so that callers who
        were turned away together do not come back together; it is never shorter.
        """
        if not FAILURES[kind].retry or kind is FailureKind.INTERRUPTED or attempt >= self.attempts:
            return None
        if retry_after_s is not None:
            if retry_after_s > self.longest_retry_after_s:
                return None
            return retry_after_s + rng.uniform(0, max(self.base_s, retry_after_s / 10))
        return rng.uniform(0, min(self.cap_s, self.base_s * 2.0 ** min(attempt - 1, 30)))
