"""Many commands of one script in few lines: one of them, and what the others change.

A wrapper's loops over data sets, horizons and seeds unroll into dozens of commands that differ in two or three words.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from pipeline.schema import Record
from pipeline.task import Usage

__all__ = ["CommandGroup", "command_groups"]

_NATURAL = re.compile(r"(\d+)")


class CommandGroup(Record):
    """Commands that differ in single words only."""

    first: Usage
    count: int
    varied: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(option, its values) for each word that differs; a word without an option before it has its number."""

    @property
    def line(self) -> str:
        """The first command as it is typed."""
        where = f"cd {shlex.quote(self.first.directory)} && " if self.first.directory != "." else ""
        return where + shlex.join(self.first.argv)

    @property
    def others(self) -> str:
        """What the other commands change, in words; empty for a single command."""
        if self.count == 1:
            return ""
        changes = "; ".join(f"{name} {', '.join(values)}" for name, values in self.varied)
        return f"and {self.count - 1} more, over {changes}" if changes else f"{self.count} times"


def command_groups(usage: Sequence[Usage]) -> tuple[CommandGroup, ...]:
    """The commands in the order of their first one, those of the same form together."""
    forms: dict[tuple[object, ...], list[Usage]] = {}
    for step in usage:
        flags = tuple(word.partition("=")[0] if word.startswith("-") else "" for word in step.argv)
        forms.setdefault((step.directory, step.argv[:2], flags), []).append(step)
    return tuple(_group(steps) for steps in forms.values())


def _group(steps: Sequence[Usage]) -> CommandGroup:
    varied: list[tuple[str, tuple[str, ...]]] = []
    first = steps[0].argv
    for place, words in enumerate(zip(*(step.argv for step in steps), strict=True)):
        distinct = sorted(set(words), key=_natural)
        if len(distinct) > 1:
            before = first[place - 1] if place else ""
            name = before if before.startswith("-") else f"word {place + 1}"
            varied.append((name, tuple(distinct)))
    return CommandGroup(first=steps[0], count=len(steps), varied=tuple(varied))


def _natural(text: str) -> list[tuple[int, int | str]]:
    """96 before 192."""
    return [(0, int(part)) if part.isdigit() else (1, part) for part in _NATURAL.split(text)]
