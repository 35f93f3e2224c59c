"""What is asked of the locator, and the words in it that can be looked for."""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from pipeline.locator.text import compact, identifiers, labels, tokens, words
from pipeline.schema import Record
from pipeline.task import Draft, TableEvidence, TextEvidence

__all__ = ["QueryWords", "TaskQuery"]

_CAPITALISED = re.compile(r"\b[A-Z][a-z]+(?:[\s\-]+[A-Z][a-z]+){2,}\b")
_ACRONYM = re.compile(r"\(([A-Z][A-Za-z0-9+\-]{1,11})\)")
_HOW_TO = re.compile(
    r"^\W*(?:how (?:(?:can|could|do|would|should) (?:you|we|i|one|users?|someone)\b|to\b|"
    r"do(?:es)?\b[^?]*(?<!prior )(?<!earlier )(?<!previous )(?<!related )(?<!existing )(?<!recent )\bwork\b)|"
    r"(?:show|demonstrate) how\b)",
    re.I,
)


class TaskQuery(Record):
    """The part of a task that says what to look for."""

    question: str
    method: str = ""
    expected: str = ""
    """The expected outcome in words."""
    metrics: tuple[str, ...] = ()
    entities: tuple[str, ...] = ()
    """Names of data sets, methods and settings, e.g. the values of claims' conditions and design variables."""

    labels: tuple[str, ...] = ()
    """Labels of the tables and figures that the task comes from, e.g. `Table 2`."""

    @classmethod
    def from_draft(cls, draft: Draft) -> TaskQuery:
        """The query for a drafted task."""
        claims = draft.expected.claims
        entities = [condition.value for claim in claims for condition in claim.conditions]
        for variable in (*draft.constant, *draft.independent, *draft.dependent):
            entities += [variable.name, *variable.values]
        entities += [setting.value for setting in draft.hyperparameters]
        supports = [item for found in draft.evidence.values() for item in found]
        supports += [item for claim in claims for item in claim.evidence]
        tables = [item.label for item in supports if isinstance(item, TableEvidence)]
        quoted = labels(" ".join(item.quote for item in supports if isinstance(item, TextEvidence)))
        return cls(
            labels=tuple(dict.fromkeys([*tables, *quoted])),
            question=draft.question,
            method=" ".join(part for part in (draft.method, draft.agent_instructions) if part),
            expected=draft.expected.text,
            metrics=tuple(dict.fromkeys(claim.metric for claim in claims)),
            entities=tuple(dict.fromkeys(entity for entity in entities if entity.strip())),
        )

    @property
    def text(self) -> str:
        """Everything that is said, as one text."""
        return "\n".join([self.question, self.method, self.expected, " ".join(self.metrics), " ".join(self.entities)])


def _initials(text: str) -> set[str]:
    """Acronyms of capitalised names (`Multi-Particle Environment`: mpe): files are named by them, prose spells out."""
    found: set[str] = set()
    for run in _CAPITALISED.findall(text):
        letters = [part[0].lower() for part in re.split(r"[\s\-]+", run) if part]
        for start in range(len(letters)):
            for end in range(start + 3, min(start + 6, len(letters)) + 1):
                found.add("".join(letters[start:end]))
    return found


@dataclass(frozen=True, slots=True)
class QueryWords:
    """A query, taken apart once."""

    all: tuple[str, ...]
    question: tuple[str, ...]
    lower: str
    names: frozenset[str]
    """Every word and hyphenated word in lower case, also joined (`cifar-10`, `cifar10`)."""
    labels: frozenset[str]
    code_names: frozenset[str]
    """Words that look like identifiers, and acronyms in brackets."""
    stressed: dict[str, float]
    """Every word of `all` with a weight that grows with the logarithm of how often the task says it: a task repeats
    what it is about."""
    how_to: bool
    """It asks how something is done, not what comes out."""

    @classmethod
    def of(cls, query: TaskQuery) -> QueryWords:
        """Take `query` apart."""
        text = query.text
        counted = Counter(tokens(text))
        names = words(text)
        # two words that a path writes as one: `spiral noise` and `spiral_noise`
        plain = re.findall(r"[A-Za-z0-9]+", text.lower())
        names |= {left + right for left, right in pairwise(plain)}
        names |= _initials(text)
        return cls(
            all=tuple(counted),
            question=tuple(dict.fromkeys(tokens(query.question))),
            lower=text.lower(),
            names=frozenset(names),
            labels=frozenset(labels("\n".join([text, *query.labels]))),
            code_names=frozenset(identifiers(text) | {compact(found) for found in _ACRONYM.findall(text)}),
            stressed={word: 1.0 + math.log(count) for word, count in counted.items()},
            how_to=bool(_HOW_TO.match(query.question)),
        )
