"""Comparative statements of a text: who is best, who beats whom, what rises or falls with what.

Read by patterns over the names that the task itself knows (values of its independent variables). What cannot be read
that way is not guessed: the judge says `unknown`. Non-goals: causes, significance, negation across sentences.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evaluation.judges.lexicon import LIMITED, LONGEST_SENTENCE
from evaluation.judges.names import core_words
from pipeline.validation.tokens import words

__all__ = ["Statement", "entities_in", "read_statements"]

Relation = Literal["best", "worst", "above", "below", "rises", "falls"]

_SENTENCE: Final = re.compile(r"(?<=[.;!?])[”\"')]*\s+(?=[A-Z“\"(])|\n+|;\s+")
_BETTER: Final = (
    r"(?:outperform\w*|surpass\w*|exceed\w*|beat\w*|(?:is|are|was|were|performs?|"
    r"performed|does|did|works?|scores?|achieves?|obtains?|reache[sd]|gives?|has|have|had|"
    r"attains?|yields?)[\w\s,%.±()-]{0,40}?\b(?:better|higher|larger|greater|above|more "
    r"accurate|superior))\b"
)
_WORSE: Final = (
    r"(?:underperform\w*|(?:is|are|was|were|performs?|performed|does|did|scores?|falls?|"
    r"lags?|reache[sd]|gives?|has|have|had|attains?|"
    r"yields?)[\w\s,%.±()-]{0,40}?\b(?:worse|lower|smaller|below|behind|less accurate|"
    r"inferior))\b"
)
_BEST: Final = r"\b(?:best|highest|largest|greatest|top|strongest|wins?|leads?|most accurate|maxim\w+)\b"
_WORST: Final = r"\b(?:worst|lowest|smallest|weakest|least accurate|poorest|minim\w+)\b"
_RISES: Final = r"\b(?:increas\w+|ris(?:es?|ing)|rose|grow\w*|grew|improv\w+|gains?|goes up|went up|monotonically up)\b"
_FALLS: Final = (
    r"\b(?:decreas\w+|declin\w+|drop\w*|fall(?:s|ing)?|fell|degrad\w+|deteriorat\w+|"
    r"worsen\w*|reduc\w+|loses?|lost|goes down|shrink\w*)\b"
)
_NEGATED: Final = re.compile(
    r"\b(?:not|no longer|never|neither|fails? to|does not|do not|did not|isn't|doesn't|cannot|without being)\b", re.I
)


_CLAUSE: Final = re.compile(r",\s*(?:while|whereas|but|and then)\s+|\bwhereas\b|\bwhile\b|(?<!\ball )\bbut\b")
_DRIVER: Final = re.compile(
    r"\b(?:as|when|if|with)\b[^,;.]{0,200}?\b(?:increas\w+|gr[eo]w\w*|ris\w+|rose|higher|larger|more|decreas\w+|declin\w+|fall\w*|"
    r"drop\w*|shrink\w*|goes from [\d.]+ to [\d.]+)\b",
    re.I,
)
"""`as p grows`: what drives a trend, not the trend."""
_NUMERIC: Final = re.compile(r"[-+]?[\d.]+%?")


@dataclass(frozen=True, slots=True)
class Statement:
    """One comparison that a text makes."""

    subject: str
    relation: Relation
    other: str
    """Entity on the other side; empty for `best`, `worst`, and for trends."""
    where: tuple[str, ...]
    """Other entities of the sentence: the conditions under which it is said to hold."""
    quote: str
    negated: bool = False
    left_out: tuple[str, ...] = ()
    """Entities that a superlative names as no candidates."""
    limited: bool = False
    """A superlative among some of the candidates, which words alone may tell apart."""


def entities_in(text: str, entities: Sequence[str]) -> list[tuple[int, str]]:
    """(position, entity) of every known name in a text, longest names first where they overlap, in order."""
    found: list[tuple[int, int, str]] = []
    for entity in sorted(set(entities), key=lambda name: (-len(name), name)):
        for form in _forms(entity):
            for match in re.finditer(rf"(?<![\w-]){form}(?![\w-])", text, re.I):
                if not any(match.start() < end and start < match.end() for start, end, _ in found):
                    found.append((match.start(), match.end(), entity))
    return [(start, entity) for start, _, entity in sorted(found)]


def _forms(entity: str) -> list[str]:
    """Patterns for a name: as it is, and without what a paper adds in brackets (`CAW (ours)`)."""
    plain = re.sub(r"\s*\((?:ours|full|proposed|baseline)\)", "", entity, flags=re.I).strip()
    forms = [entity] if plain == entity or not plain else [entity, plain]
    return [
        r"[\s_-]*".join(re.escape(part) for part in re.split(r"[\s_-]+", form) if part)
        for form in forms
        if core_words(form)
    ]


def read_statements(text: str, axes: Mapping[str, str]) -> list[Statement]:
    """The comparative statements of a text, in order.

    Args:
        text: a conclusion.
        axes: known name -> the variable that it is a value of (a variable's own name -> itself).
    """
    found: list[Statement] = []
    for sentence in _SENTENCE.split(text):
        for clause in _CLAUSE.split(sentence[:LONGEST_SENTENCE]):
            found += _of_clause(clause.strip(), axes)
    return found


def _of_clause(clause: str, axes: Mapping[str, str]) -> list[Statement]:
    driven = _DRIVER.search(clause)
    plain = f"{clause[: driven.start()]} {clause[driven.end() :]}" if driven else clause
    named = entities_in(clause, list(axes))
    if not named:
        return []
    negated = bool(_NEGATED.search(clause))
    kept = entities_in(plain, list(axes))
    found: list[Statement] = []
    for relation, pattern in (("above", _BETTER), ("below", _WORSE)):
        for match in re.finditer(pattern, plain, re.I):
            found += _pairs(plain, kept, match, relation, negated, axes)
    if not found:
        for relation, pattern in (("best", _BEST), ("worst", _WORST)):
            if match_ := re.search(pattern, plain, re.I):
                found += _extreme(plain, kept, match_, relation, negated, axes)
    if not found:
        found += _trend(clause, plain, driven, named, negated, axes)
    return found


def _trend(
    clause: str,
    plain: str,
    driven: re.Match[str] | None,
    named: list[tuple[int, str]],
    negated: bool,
    axes: Mapping[str, str],
) -> list[Statement]:
    """`accuracy falls as p grows`; a driver that falls turns the direction round."""
    for relation, pattern in (("rises", _RISES), ("falls", _FALLS)):
        if re.search(pattern, plain, re.I):
            backwards = driven is not None and re.search(_FALLS, driven[0], re.I) is not None
            turned: Relation = {"rises": "falls", "falls": "rises"}[relation] if backwards else relation  # type: ignore[assignment]
            subject = next((name for _, name in named if axes[name] != name), named[0][1])
            rest = tuple(name for _, name in named if name != subject)
            return [Statement(subject, turned, "", rest, clause[:200], negated)]
    return []


def _pairs(
    clause: str,
    named: list[tuple[int, str]],
    match: re.Match[str],
    relation: str,
    negated: bool,
    axes: Mapping[str, str],
) -> list[Statement]:
    """`A outperforms B (and C) on D`: the nearest name before the verb against names of the same variable behind it."""
    left = [name for position, name in named if position < match.start()]
    right = [name for position, name in named if position >= match.start()]
    behind = [name for position, name in named if position >= match.end() - 1]
    for subject in reversed(left):
        others = [name for name in behind if axes[name] == axes[subject] and name != subject]
        if others and axes[subject] != subject:
            where = tuple(name for name in [*left, *right] if axes[name] != axes[subject])
            return [
                Statement(subject, _relation(relation), other, where, clause[:200], negated)
                for other in dict.fromkeys(others)
            ]
    return []


def _extreme(
    clause: str,
    named: list[tuple[int, str]],
    match: re.Match[str],
    relation: str,
    negated: bool,
    axes: Mapping[str, str],
) -> list[Statement]:
    """`A is best on D`; `the highest accuracy is reached by A`; numbers are conditions, not candidates."""
    values = [(position, name) for position, name in named if axes[name] != name and not _NUMERIC.fullmatch(name)]
    before = [name for position, name in values if position < match.start()]
    after = [name for position, name in values if position >= match.start()]
    by = re.search(r"\b(?:for|by|with|is|was|are)\s|:", clause[match.end() :])
    if before:
        subject = before[0] if not re.match(r"\s*(?:on|in|under|at|among|across|for)\b", clause, re.I) else before[-1]
    elif after and by:
        subject = after[0]
    else:
        return []
    where = tuple(name for _, name in named if axes[name] != axes[subject])
    limit = LIMITED.search(clause)
    without = [] if limit is None else entities_in(limit["names"] or limit["kept"] or "", list(axes))
    left_out = tuple(name for _, name in without if name != subject and axes[name] == axes[subject])
    return [Statement(subject, _relation(relation), "", where, clause[:200], negated, left_out, limit is not None)]


def _relation(name: str) -> Relation:
    return {"best": "best", "worst": "worst", "above": "above", "below": "below"}[name]  # type: ignore[return-value]


def says(text: str, name: str) -> bool:
    """Are the telling words of a name in a text?"""
    return core_words(name) <= set(words(text))
