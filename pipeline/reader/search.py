"""Searching files for a pattern that a model wrote: bounded in time and memory, whatever the pattern.

Such a pattern may backtrack without end, call itself, or repeat what repeats until no memory is left. It is refused,
or given up, and the model is told; what was not searched never counts as searched. Non-goal: what becomes of the lines.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from typing import Any, Final

__all__ = ["PatternSearch", "SearchTime"]

_FILE_SECONDS: Final = 2.0
"""Per file; a pattern that takes longer backtracks without end (a plain one reads 2 MB in under 0.1 s)."""
_SLOW_FILES: Final = 5
"""After so many files the pattern is given up: the others would take as long."""
_COUNT: Final = re.compile(r"\{(\d*)(?:,(\d*))?\}")
_MOST_REPEATS: Final = 10_000
"""Of all counts of a pattern together: what repeats is compiled as often (`(?:a{99999}){99999}` took 6 GB)."""
_CALLS: Final = re.compile(r"\(\?(?:R|[+-]?\d|&|P>)")
"""A pattern that calls a part of itself: it may never come back (`(?R)` took 560 MB in a line)."""


class SearchTime:
    """Processor time that all searches of one task may take together."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds


class PatternSearch:
    """One search.

    Args:
        pattern: a regular expression.
        ignore_case: capitals are letters like others.
        together: what all searches may take; this one lessens it.
        seconds: the most that this one may take, of processor time.

    Raises:
        ValueError: the pattern is none, or one that is not searched for, in words.
    """

    def __init__(self, pattern: str, *, ignore_case: bool, together: SearchTime, seconds: float) -> None:
        import regex  # type: ignore[import-untyped]  # re has no time limit, and the pattern is a model's

        counts = [max(int(number or 1) for number in match.groups("1")) for match in _COUNT.finditer(pattern)]
        if math.prod(max(1, count) for count in counts) > _MOST_REPEATS:
            raise ValueError(f"its counts repeat more than {_MOST_REPEATS} times")
        if _CALLS.search(pattern):
            raise ValueError("it calls a part of itself")
        try:
            self._pattern: Any = regex.compile(pattern, regex.IGNORECASE if ignore_case else 0)
        except (regex.error, OverflowError, RecursionError) as error:
            raise ValueError(str(error)) from error
        self._together = together
        self._left = min(seconds, together.left)
        self._searched = 0
        self.slow: list[str] = []
        """Files that were given up."""

    @property
    def ended(self) -> bool:
        """Is no further file searched?"""
        return self._left <= 0 or len(self.slow) >= _SLOW_FILES

    def lines(self, path: str, lines: Sequence[str]) -> list[int]:
        """Numbers of the lines that match, from 0; empty where the pattern takes too long."""
        began = time.process_time()
        end = time.monotonic() + _FILE_SECONDS
        found = []
        try:
            for number, text in enumerate(lines):
                left = end - time.monotonic()
                if left <= 0:
                    raise TimeoutError
                if self._pattern.search(text, timeout=left):
                    found.append(number)
        except (TimeoutError, MemoryError):
            self.slow.append(path)
            return []
        finally:
            self._searched += 1
            spent = time.process_time() - began
            self._left -= spent
            self._together.left -= spent
        return found

    def told(self, files: int) -> str:
        """What was not searched, of so many files, in words for the model; empty when all was."""
        parts = []
        if self.slow:
            more = f" and {len(self.slow) - 3} more" if len(self.slow) > 3 else ""
            parts.append(f"The pattern was too slow for {', '.join(self.slow[:3])}{more}: simplify it.")
        if self._searched < files:
            parts.append(
                f"The search ended after {self._searched} of {files} files: give a `path` or a plainer pattern."
            )
        return "".join(f"\n{part}" for part in parts)
