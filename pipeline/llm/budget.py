"""Budgets: scopes with limits that stop a call *before* it could exceed them, also among threads.

A scope is a run, a stage or a task; scopes nest, and a call counts in all scopes around it. Before a call its worst
case is reserved in every scope, after it the reservation is replaced by what was really used. While other calls are
under way, a call that would only not fit because of *their* worst cases waits for them to settle; it fails when it
would not fit even then. So the sum of what is used and what may still be used never passes a limit, whatever the
interleaving.

What cannot be known (a stream that broke, an answer without token counts) is charged at its worst case: a budget may be
too careful, never too generous. The ledger keeps such costs as unknown. A budget lives in one process; a resumed run
passes what the ledger knows as `already`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import Decimal
from typing import Final, Literal

from pydantic import Field

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm.cancel import CancelToken, Clock, SystemClock
from pipeline.schema import Record

__all__ = ["Budget", "BudgetError", "BudgetLimits", "Level", "Reservation", "Spent", "current_budget"]

Level = Literal["run", "stage", "task"]


class BudgetLimits(Record):
    """What a scope may use; None is no limit."""

    usd: Decimal | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    """Input and output together."""
    calls: int | None = Field(default=None, ge=0)
    """Requests that leave this machine, repeated ones included; answers from the cache are free."""
    wall_s: float | None = Field(default=None, ge=0)
    """From the moment the scope is entered."""


class Spent(Record):
    """An amount, used or reserved. Money is None where the price is unknown."""

    usd: Decimal | None = Decimal(0)
    tokens: int = 0
    calls: int = 0

    def __add__(self, other: Spent) -> Spent:
        usd = None if self.usd is None or other.usd is None else self.usd + other.usd
        return Spent(usd=usd, tokens=self.tokens + other.tokens, calls=self.calls + other.calls)

    def __sub__(self, other: Spent) -> Spent:
        usd = None if self.usd is None or other.usd is None else self.usd - other.usd
        return Spent(usd=usd, tokens=self.tokens - other.tokens, calls=self.calls - other.calls)


class BudgetError(ExpbenchError):
    """A call was not made because a budget does not allow it."""

    def __init__(self, budget: Budget, limit: str, cause: str) -> None:
        self.budget = budget
        self.limit = limit
        super().__init__(
            FailureKind.BUDGET_EXCEEDED,
            f"budget of {budget.level} {budget.name}",
            cause,
            consequence="The call was not made and nothing was spent on it",
            next_step="Raise the limit and resume (answers so far come from the cache), or do less",
        )


class Reservation:
    """The worst case of one call, held in every scope until it is settled."""

    def __init__(self, budget: Budget, worst: Spent) -> None:
        self._budget = budget
        self.worst = worst
        self._open = True

    def settle(self, actual: Spent | None) -> None:
        """Replace the reservation by what was used; None: unknown, charged at the worst case. Only the first counts."""
        with self._budget.changed:
            if not self._open:
                return
            self._open = False
            for scope in self._budget.chain():
                scope.settle_locked(self.worst, self.worst if actual is None else actual)
            self._budget.changed.notify_all()


class Budget:
    """One scope.

    Args:
        name: of the run, stage or task.
        limits: what it may use.
        level: which of the three it is.
        parent: the scope around it.
        already: what was used before (a resumed run).
    """

    def __init__(
        self,
        name: str = "run",
        limits: BudgetLimits | None = None,
        *,
        level: Level = "run",
        parent: Budget | None = None,
        already: Spent | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.name, self.level, self.parent = name, level, parent
        self.limits = limits or BudgetLimits()
        self.clock: Clock = clock or (parent.clock if parent else SystemClock())
        # One condition for the whole tree: a call is admitted in all its scopes at one moment or in none.
        self.changed: threading.Condition = parent.changed if parent else threading.Condition()
        self._used = already or Spent()
        self._reserved = Spent()
        self._money_unknown = self._used.usd is None
        if self._money_unknown:
            self._used = self._used.evolve(usd=Decimal(0))
        self._started = self.clock.monotonic()

    # --- scopes ---

    @contextmanager
    def scope(self, level: Level, name: str, limits: BudgetLimits | None = None) -> Iterator[Budget]:
        """A scope inside this one; calls of the block (in this thread) count in it."""
        with Budget(name, limits, level=level, parent=self).entered() as inner:
            yield inner

    @contextmanager
    def entered(self) -> Iterator[Budget]:
        """Make this the current scope of the block. Worker threads start without one: enter it there."""
        token = _current.set(self)
        try:
            yield self
        finally:
            _current.reset(token)

    def chain(self) -> Iterator[Budget]:
        """This scope and those around it, innermost first."""
        scope: Budget | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    def label(self, level: Level) -> str | None:
        """Name of the innermost scope of a level."""
        return next((scope.name for scope in self.chain() if scope.level == level), None)

    # --- reading ---

    @property
    def spent(self) -> Spent:
        """What was used, in money None when part of it has an unknown price."""
        with self.changed:
            return self._used.evolve(usd=None) if self._money_unknown else self._used

    @property
    def reserved(self) -> Spent:
        """The worst case of the calls under way."""
        with self.changed:
            return self._reserved

    def remaining_s(self) -> float | None:
        """Seconds until the first wall-time limit around here is reached; None without one."""
        left = [
            scope.limits.wall_s - (self.clock.monotonic() - scope._started)
            for scope in self.chain()
            if scope.limits.wall_s is not None
        ]
        return min(left) if left else None

    def check_wall(self, needed_s: float = 0.0) -> None:
        """Is there more wall time left than `needed_s`?

        Raises:
            BudgetError: there is not.
        """
        for scope in self.chain():
            limit = scope.limits.wall_s
            if limit is not None and self.clock.monotonic() - scope._started + needed_s >= limit:
                raise BudgetError(scope, "wall_s", f"its {limit:g} s of wall time are used up")

    # --- reserving ---

    def reserve(self, worst: Spent, cancel: CancelToken | None = None) -> Reservation:
        """Reserve the worst case of a call in this scope and all around it.

        Raises:
            BudgetError: it does not fit, or money is limited and the price is unknown.
            ExpbenchError: `INTERRUPTED` when cancelled while waiting for other calls to settle.
        """
        token = cancel or CancelToken()
        with token.on_cancel(self._wake), self.changed:
            while True:
                token.check(f"budget of {self.level} {self.name}")
                self.check_wall()
                for scope in self.chain():
                    scope._refuse_locked(worst)
                if all(scope._fits_locked(worst) for scope in self.chain()):
                    break
                self.changed.wait(self.remaining_s())
            for scope in self.chain():
                scope._reserved += scope._countable(worst)
            return Reservation(self, worst)

    def settle_locked(self, worst: Spent, actual: Spent) -> None:
        """Part of `Reservation.settle`; the caller holds `changed`."""
        self._reserved -= self._countable(worst)
        self._money_unknown = self._money_unknown or actual.usd is None
        self._used += self._countable(actual)

    def _wake(self) -> None:
        with self.changed:
            self.changed.notify_all()

    @staticmethod
    def _countable(amount: Spent) -> Spent:
        """Without a money limit an unknown price is let through; it is remembered as unknown, and adds no number."""
        return amount if amount.usd is not None else amount.evolve(usd=Decimal(0))

    def _fits_locked(self, worst: Spent) -> bool:
        return self._exceeded(self._used + self._reserved + self._countable(worst)) is None

    def _refuse_locked(self, worst: Spent) -> None:
        """Raise when the call would not fit even after everything under way had settled at nothing."""
        if self.limits.usd is not None and (worst.usd is None or self._money_unknown):
            raise BudgetError(self, "usd", "money is limited, but the price of the model is unknown (see prices.yaml)")
        limit = self._exceeded(self._used + self._countable(worst))
        if limit is not None:
            allowed, used, wanted = (getattr(part, limit) for part in (self.limits, self._used, worst))
            raise BudgetError(
                self,
                limit,
                f"{used} of {allowed} {_UNITS[limit]} are used and the next call may take up to {wanted}",
            )

    def _exceeded(self, total: Spent) -> str | None:
        for name in ("usd", "tokens", "calls"):
            limit = getattr(self.limits, name)
            if limit is not None and getattr(total, name) > limit:
                return name
        return None


_UNITS: Final = {"usd": "US dollars", "tokens": "tokens", "calls": "calls"}
_current: ContextVar[Budget | None] = ContextVar("expbench_budget", default=None)


def current_budget() -> Budget | None:
    """The scope that the calling code runs in, if any."""
    return _current.get()
