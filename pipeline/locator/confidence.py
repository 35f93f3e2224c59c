"""How sure an answer is: one measured quantity, the share of what a task names that the repository holds at all.

Scores rank the files of one repository and are scaled to its best file, so they cannot say that *no* file answers. What
can: whether the repository ever mentions the data sets, methods and metrics that the task writes as names (with
capitals or digits). It tells a task's own repository from another paper's. Whether the repository holds *this*
experiment it cannot tell: tasks without an answer name what it is about. A task that names nothing is refused only
where no word of its question occurs.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Final

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.query import TaskQuery
from pipeline.locator.text import tokens

__all__ = ["NOT_FOUND_BELOW", "Support", "measure"]

_NAME = re.compile(
    r"(?<![.?!:]\s)(?<!^)\b[A-Z][A-Za-z0-9]*[A-Za-z0-9+\-]*\b|\b\w*[a-z]\w*\d\w*\b|\b[A-Z]{2,}[\w\-]*\b", re.M
)
NOT_FOUND_BELOW: Final = 0.6
"""Share of names below which nothing is said to be found. Fitted on tasks put to their own and to other papers'
repositories: of 103 published tasks 3 are lost, of 412 put elsewhere 323 are refused, of 35 to which no script is the
answer 4. At .65 it is 12, 346 and 10. On 112 other tasks: 2 lost, 403 of 448 refused."""
_SLOPE, _OFFSET = 4.03, -2.92
"""P(the chain holds a right file) as a logistic function of the share, fitted on the same tasks in their own
repositories. Fifths of them, predicted and observed: .40 .34, .58 .62, .73 .62, .75 .80, .75 .84; among
the published ones alone it tells right chains from wrong ones badly (Brier score .243)."""


@dataclass(frozen=True, slots=True)
class Support:
    """What of a task its repository speaks of."""

    held: float
    """Share of the task's names that occur in the repository, in parts of compound names."""
    names: int
    """How many names the task writes; 0: `held` is the share of its question's words."""
    missing: tuple[str, ...]
    """Names, or words, that the repository never mentions."""

    @property
    def enough(self) -> bool:
        """May the repository be the one that the task is about?"""
        return self.held >= NOT_FOUND_BELOW if self.names else self.held > 0

    @property
    def chance(self) -> float:
        """Probability that the best chain holds a right file."""
        return 1.0 / (1.0 + math.exp(-(_SLOPE * self.held + _OFFSET)))


def measure(index: RepositoryIndex, query: TaskQuery) -> Support:
    """What of a task a repository speaks of, its documents and the paths of its files included.

    Args:
        index: the repository.
        query: the task.
    """
    named = _names(query)
    wanted = named or {word: (word,) for word in dict.fromkeys(tokens(query.question))}
    shares = {
        name: sum(word in index.content or word in index.sections for word in parts) / len(parts)
        for name, parts in wanted.items()
    }
    held = sum(shares.values()) / len(shares) if shares else 0.0
    return Support(held, len(named), tuple(sorted(name for name, share in shares.items() if share == 0.0)))


def _names(query: TaskQuery) -> dict[str, tuple[str, ...]]:
    """The names that a task writes, with their words; one spelling each."""
    found: dict[tuple[str, ...], str] = {}
    for name in [*(match.group(0) for match in _NAME.finditer(query.text)), *query.entities]:
        parts = tuple(tokens(name))
        if parts and not all(word.isdigit() for word in parts):
            found.setdefault(parts, name)
    return {name: parts for parts, name in sorted(found.items())}
