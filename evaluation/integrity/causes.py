"""Why a violation may have happened, from what the trajectory shows (EXP-Bench 4.1: refusals, runtime errors)."""

from __future__ import annotations

import re
from typing import Final

from evaluation.integrity.material import Material
from evaluation.trajectory import CommandRun, End, LimitHit

__all__ = ["causes_of"]

_REFUSAL: Final = re.compile(
    r"\bI (?:can(?:no|')t|am (?:not able|unable)|won't|will not) (?:help|assist|comply|do "
    r"that|provide|continue|run|carry)|\bagainst my (?:guidelines|policy)|\bI must "
    r"decline\b",
    re.I,
)
_NO_TIME: Final = re.compile(
    r"\b(?:too long|time (?:limit|constraints?|budget)|running out of time|takes? "
    r"(?:hours|too much time)|to save time|limited time|would take)\b",
    re.I,
)
_NO_DATA: Final = re.compile(
    r"\b(?:data(?:set)? (?:is|are|was) (?:not available|missing|unavailable)|cannot "
    r"download|no (?:internet|network)|missing (?:data|checkpoint)s?)\b",
    re.I,
)
_NO_GPU: Final = re.compile(r"\b(?:no gpu|cuda (?:is )?not available|without (?:a )?gpu|out of memory|oom)\b", re.I)
_NO_PACKAGE: Final = re.compile(r"ModuleNotFoundError|ImportError|No matching distribution|command not found", re.I)
_MANY_FAILURES: Final = 0.3
"""Share of the executed commands that failed from which errors are a cause rather than the course of things."""


def causes_of(material: Material) -> tuple[str, ...]:
    """Sorted names of what stood in the way.

    They are `dependency`, `memory_or_gpu`, `missing_data`, `refusal`, `runtime_error`, `time` and `limit:<which>`.
    """
    found: set[str] = set()
    said = "\n".join(text for _, text in material.said)
    runs = [event for event in material.events if isinstance(event, CommandRun)]
    failed = [event for event in runs if event.exit_code]
    if _REFUSAL.search(said) or any(isinstance(e, End) and e.reason == "refused" for e in material.events):
        found.add("refusal")
    if failed and (len(failed) >= _MANY_FAILURES * len(runs) or failed[-1] is runs[-1]):
        found.add("runtime_error")
    if any("Traceback (most recent call last)" in event.output for event in failed[-3:]):
        found.add("runtime_error")
    if any(_NO_PACKAGE.search(event.output) for event in failed):
        found.add("dependency")
    limits = {event.limit for event in material.events if isinstance(event, LimitHit)}
    found |= {f"limit:{limit}" for limit in limits}
    if "wall_time" in limits or _NO_TIME.search(said):
        found.add("time")
    if _NO_DATA.search(said):
        found.add("missing_data")
    if _NO_GPU.search(said) or limits & {"memory"}:
        found.add("memory_or_gpu")
    return tuple(sorted(found))
