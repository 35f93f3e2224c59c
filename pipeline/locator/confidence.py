"""How sure a chain is: from what of the task's words the chain's files hold, not from scores that only compare files.

Scores rank the files of one repository and are scaled to its best file, so they cannot say that *no* file answers. What
can: the share of the task's names (data sets, methods, metrics) that the repository and the chain speak of at all, of
the question's words that the best file has, and whether any path is named after what is asked. The
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

__all__ = [
    "BELONGING",
    "BELONGING_SHARES",
    "COEFFICIENTS",
    "NOT_FOUND_BELOW",
    "SHARES",
    "Support",
    "confidence",
    "measure",
]

_NAME = re.compile(
    r"(?<![.?!:]\s)(?<!^)\b[A-Z][A-Za-z0-9]*[A-Za-z0-9+\-]*\b|\b\w*[a-z]\w*\d\w*\b|\b[A-Z]{2,}[\w\-]*\b", re.M
)
_MANY: Final = 12
"""Missing names beyond which one more says nothing: of 103 published tasks with a script, 9 in 10 have fewer."""
_NO_NAMES: Final = 0.6
"""A task without names speaks neither for nor against a repository: midway between the names that a task's own
repository holds (.91 of the question's, .85 of all) and those that another paper's does (.30, .42)."""

SHARES: Final = ("names_repository", "names_chain", "words_repository", "words_chain", "documented", "margin")
"""What P(right) is fitted on."""
BELONGING_SHARES: Final = (
    "names_repository", "names_chain", "words_repository", "words_chain", "question_best", "path_question",
    "names_question", "few_missing",
)  # fmt: skip
"""What P(belongs) is fitted on. Out of fold, the last two and leaving out `documented` and `margin` lift the area under
the curve from .969 to .972 for other papers' repositories and from .818 to .846 for tasks without an answer."""
COEFFICIENTS: Final[dict[str, float]] = {
    "names_repository": 1.06,
    "names_chain": 0.26,
    "words_repository": 1.3,
    "words_chain": 2.22,
    "documented": 0.62,
    "margin": 0.64,
    "bias": -3.31,
}  # fmt: skip
"""P(the chain holds a right file | the repository is the task's own), tasks without a script included."""
BELONGING: Final[dict[str, float]] = {
    "names_repository": 1.74,
    "names_chain": 2.43,
    "words_repository": 0.66,
    "words_chain": 0.91,
    "question_best": 1.73,
    "path_question": 1.78,
    "names_question": 2.88,
    "few_missing": 0.29,
    "bias": -5.99,
}  # fmt: skip
"""P(the repository is the one that the task is about)."""
# Out of fold, 94 of 103 published tasks keep their own repository, 385 of 412 that are put to another paper's give
# `not_found`, and so do 15 of 35 whose authors say that no script of their own repository answers: such tasks name what
# the repository is about, and only a person or a run can tell. At .5 it is 95, 378 and 10, at .6 94, 391 and 17, at .65
# 91, 394 and 20. A lost task costs more than a wrong chain, which fails validation; the point lies before the fall.
NOT_FOUND_BELOW: Final = 0.55


@dataclass(frozen=True, slots=True)
class Support:
    """What of a task a chain and its repository speak of; shares between 0 and 1."""

    names_repository: float
    names_chain: float
    words_repository: float
    words_chain: float
    documented: float
    margin: float
    question_best: float = 0.0
    """Share of the question's words that the best file speaks of."""
    path_question: float = 0.0
    """How well any path matches the question, against a full match of its rarest words."""
    names_question: float = 0.0
    """As `names_repository`, of the names in the question alone: those are what the task is about."""
    few_missing: float = 0.0
    """1 when the repository mentions every name of the task, 0 when a dozen or more are nowhere in it."""
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
    spoken: set[int] = set()
    for path in near:
        number = index.position.get(path)
        if number is not None:
            spoken |= index.speaks(number)
    names = _names(query)
    said = sorted(set(tokens(query.question)) | set(tokens(query.method)))
    wanted = {*said, *(word for name in names.values() for word in name)}
    everything = {word for word in wanted if word in index.content or word in index.sections}
    missing = tuple(sorted({text for text, name in names.items() if not set(name) & everything}))
    of_chain = {word for word in wanted if index.vocabulary.number(word) in spoken}
    scores = [float(ranking.scores[number]) for number in ranking.order[:6]]
    asked = set(tokens(query.question))
    of_best = index.speaks(ranking.order[0]) if ranking.order else set()
    documented = [index.static["documented"][index.position[path]] for path in chain if path in index.position]
    return Support(
        names_repository=_share(list(names.values()), everything),
        names_chain=_share(list(names.values()), of_chain),
        words_repository=_share([(word,) for word in said], everything),
        words_chain=_share([(word,) for word in said], of_chain),
        documented=float(max(documented, default=0.0)),
        margin=min(1.0, (scores[0] - scores[-1]) / 4.0) if len(scores) > 1 else 0.5,
        question_best=sum(index.vocabulary.number(word) in of_best for word in asked) / max(len(asked), 1),
        path_question=float(ranking.signals["path_question"].max(initial=0.0)),
        names_question=_share(list(_names(TaskQuery(question=query.question)).values()), everything),
        few_missing=max(0.0, 1.0 - len(missing) / _MANY),
        missing=missing,
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
    """Share of names of which at least one part (for compound names: most parts) is held; neutral without names."""
    if not wanted:
        return _NO_NAMES
    return sum(sum(word in held for word in name) / len(name) for name in wanted) / len(wanted)
