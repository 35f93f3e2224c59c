"""How sure a chain is: from what of the task's words the chain's files hold, not from scores that only compare files.

Scores rank the files of one repository and are scaled to its best file, so they cannot say that *no* file answers. What
can: the share of the task's names (data sets, methods, metrics) that the repository and the chain speak of at all. The
probability is a logistic function of these shares, fitted on published tasks against their own repository (right or
wrong chain, or no script at all) and against repositories of other papers; `benchmarks/locator/learn.py` fits it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.locator.query import TaskQuery
from pipeline.locator.ranking import Ranking
from pipeline.locator.text import tokens

__all__ = ["BELONGING", "COEFFICIENTS", "NOT_FOUND_BELOW", "SHARES", "Support", "confidence", "measure"]

_NAME = re.compile(
    r"(?<![.?!:]\s)(?<!^)\b[A-Z][A-Za-z0-9]*[A-Za-z0-9+\-]*\b|\b\w*[a-z]\w*\d\w*\b|\b[A-Z]{2,}[\w\-]*\b", re.M
)

SHARES: Final = ("names_repository", "names_chain", "words_repository", "words_chain", "documented", "margin")
COEFFICIENTS: Final[dict[str, float]] = {
    "names_repository": 0.9,
    "names_chain": 0,
    "words_repository": 1.24,
    "words_chain": 2.03,
    "documented": 0.54,
    "margin": 1.14,
    "bias": -3.19,
}  # fmt: skip
"""P(the chain holds a right file | the repository is the task's own), tasks without a script included."""
BELONGING: Final[dict[str, float]] = {
    "names_repository": 3.51,
    "names_chain": 3.18,
    "words_repository": 1.73,
    "words_chain": 0.83,
    "documented": 0,
    "margin": 0.84,
    "bias": -5.48,
}  # fmt: skip
"""P(the repository is the one that the task is about)."""
# Out of fold: at 0.45, 91% of 103 published tasks keep their own repository, 86% of 412 that are put to another paper's
# give `not_found`, and so do 29% of 35 whose authors say that no script of their own repository answers: such tasks
# name what the repository is about, and only a person or a run can tell. A wrong chain fails validation; a lost task is
# lost.
NOT_FOUND_BELOW: Final = 0.45


@dataclass(frozen=True, slots=True)
class Support:
    """What of a task a chain and its repository speak of; shares between 0 and 1."""

    names_repository: float
    names_chain: float
    words_repository: float
    words_chain: float
    documented: float
    margin: float
    missing: tuple[str, ...] = ()
    """Names of the task that the repository never mentions."""

    def probability(self, coefficients: Mapping[str, float]) -> float:
        """The logistic function of the shares."""
        total = coefficients["bias"] + sum(
            coefficients[name] * getattr(self, name) for name in coefficients if name != "bias"
        )
        return 1.0 / (1.0 + math.exp(-total))


def measure(ranking: Ranking, query: TaskQuery, chain: Collection[str]) -> Support:
    """The support of a chain: its files and what they import directly, against the whole repository.

    Args:
        ranking: the ranking that the chain was made from.
        query: the task.
        chain: paths of the chain.
    """
    index = ranking.index
    near = set(chain)
    for path in chain:
        near |= index.links.imports.get(path, set())
    spoken: set[str] = set()
    for path in near:
        number = index.position.get(path)
        if number is not None:
            spoken.update(index.facts[number].words)
            spoken.update(tokens(path))
    everything = index.content.frequency.keys() | index.sections.frequency.keys()
    names = _names(query)
    said = sorted(set(tokens(query.question)) | set(tokens(query.method)))
    scores = [float(ranking.scores[number]) for number in ranking.order[:6]]
    documented = [index.static["documented"][index.position[path]] for path in chain if path in index.position]
    return Support(
        names_repository=_share(list(names.values()), everything),
        names_chain=_share(list(names.values()), spoken),
        words_repository=_share([(word,) for word in said], everything),
        words_chain=_share([(word,) for word in said], spoken),
        documented=float(max(documented, default=0.0)),
        margin=min(1.0, (scores[0] - scores[-1]) / 4.0) if len(scores) > 1 else 0.5,
        missing=tuple(sorted({text for text, name in names.items() if not set(name) & everything})),
    )


def confidence(support: Support) -> tuple[float, float]:
    """(probability that the chain is right, probability that the repository is the task's own).

    The first is the product of "right, if the repository is the task's own" and the second.
    """
    belonging = support.probability(BELONGING)
    return support.probability(COEFFICIENTS) * belonging, belonging


def _names(query: TaskQuery) -> dict[str, tuple[str, ...]]:
    """The names that a task writes, with their words; one spelling each."""
    found: dict[tuple[str, ...], str] = {}
    for name in [*(match.group(0) for match in _NAME.finditer(query.text)), *query.entities]:
        parts = tuple(tokens(name))
        if parts and not all(word.isdigit() for word in parts):
            found.setdefault(parts, name)
    return {name: parts for parts, name in sorted(found.items())}


def _share(wanted: Sequence[tuple[str, ...]], held: Collection[str]) -> float:
    """Share of names of which at least one part (for compound names: most parts) is held; 0.5 when there are none."""
    if not wanted:
        return 0.5
    return sum(sum(word in held for word in name) / len(name) for name in wanted) / len(wanted)
