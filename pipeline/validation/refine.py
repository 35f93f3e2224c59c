"""A failed validation goes back to the locator's alternatives, a bounded number of times (EXP-Bench, stage 3).

The rounds know nothing of locating or of sandboxes: the caller says how to try a candidate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from pipeline.progress import Reporter, SilentReporter
from pipeline.task import ValidationReport, Verdict

__all__ = ["Attempt", "Refined", "rank_of", "validate_with_refinement"]

CandidateT = TypeVar("CandidateT")


@dataclass(frozen=True)
class Attempt(Generic[CandidateT]):
    """One candidate chain and what its validation said."""

    number: int
    candidate: CandidateT
    report: ValidationReport


@dataclass(frozen=True)
class Refined(Generic[CandidateT]):
    """The attempt to go on with, and all that were made."""

    best: Attempt[CandidateT]
    attempts: tuple[Attempt[CandidateT], ...]


def validate_with_refinement(
    candidates: Iterable[CandidateT],
    attempt: Callable[[CandidateT, int, ValidationReport | None], ValidationReport],
    *,
    rounds: int,
    reporter: Reporter | None = None,
) -> Refined[CandidateT] | None:
    """Try candidates in order until one passes, at most `rounds` of them.

    A candidate that is blocked (data, network, limit) does not end the search: another chain may need less. One that
    was asked for at smoke scale and runs does: no other could show more. The best
    attempt is the first that passes; otherwise one that could not run for want of something; otherwise the one that
    reproduced most claims; earlier ones first.

    Args:
        candidates: chains, best first (e.g. a location's chain and its alternatives).
        attempt: validates one candidate; gets its number (from 1) and the report of the attempt before.
        rounds: upper bound of attempts.
        reporter: progress.

    Returns:
        None when there was no candidate.
    """
    listener = reporter or SilentReporter()
    made: list[Attempt[CandidateT]] = []
    for number, candidate in enumerate(candidates, start=1):
        if number > rounds:
            break
        before = made[-1].report if made else None
        if before is not None:
            listener.step("validate", f"attempt {number}: {before.reason}")
        made.append(Attempt(number, candidate, attempt(candidate, number, before)))
        if made[-1].report.verdict is Verdict.PASS or _small_and_sound(made[-1].report):
            break
    if not made:
        return None
    return Refined(max(made, key=lambda item: (*rank_of(item.report), -item.number)), tuple(made))


def _small_and_sound(report: ValidationReport) -> bool:
    """Did a run at smoke scale, and nothing else, show all that it can show?"""
    return report.outcome == "smoke: runs" and all(run.scale == "smoke" for run in report.runs)


def rank_of(report: ValidationReport) -> tuple[int, bool, int, int]:
    """Order of attempts: passed; could not run (blocked); the others by what they reproduced, then by what they showed.

    Of those that were blocked, one that runs at smoke scale shows more. A chain that ran well and printed none of the
    numbers says less about the task than one that printed other ones.
    """
    passed = sum(match.verdict is Verdict.PASS for match in report.matches)
    shown = sum(bool(match.observed) for match in report.matches)
    stopped = report.reason.startswith("blocked") or any(run.failure for run in report.runs)
    stopped = stopped or report.scale == "smoke"
    if report.verdict is Verdict.PASS:
        return 2, True, passed, shown
    if report.verdict is Verdict.UNKNOWN and stopped:
        return 1, report.outcome == "smoke: runs", passed, shown
    return 0, False, passed, shown
