"""Sentences that are told in nearly the expected words: does what was changed in them turn their meaning round?

Where a sentence repeats an expected one, it need not be understood to be compared: the two are laid side by side word
by word, and what differs says it all. A word for its opposite, a negation more or less, or another number in the same
place contradict; two turns within one clause may cancel (`less noise, less error`) and say nothing, and so does a
sentence that names another thing. Non-goals: sentences told freely (`propositions`), agreement (read there, too).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import lru_cache
from math import prod
from typing import Final, NamedTuple

from evaluation.judges.lexicon import DIMINUTIVES, FRAMES, STRONG, content, stem
from evaluation.judges.opposites import axes_of_word, negations_in, opposite_by_prefix
from evaluation.judges.propositions import sentences_in
from evaluation.judges.quantities import agreement, quantities_in

__all__ = ["Turned", "turned_sentence"]

_NEARLY: Final = 0.75
"""Share of a sentence's words that the expected one must have, too. Of published outcomes with one changed word or a
negation a sentence 99 % share .82 and more; two different sentences of one outcome .10 on average and .67 at most."""
_FEWEST: Final = 3
"""Words in common below which likeness is chance."""
_TOKEN: Final = re.compile(r"\d+(?:[.,]\d+)*|[^\W\d_][\w'’]*(?:[-/][\w]+)*|[,;:—–]|\.\.\.")
_BORDER: Final = frozenset({",", ";", ":", "—", "–", "while", "whereas", "but", "although", "though", "however"})
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_FILLING: Final = frozenset(
    {"will", "should", "would", "may", "might", "can", "shall", "do", "does", "did", "to", "the", "a", "an", "be", "is",
     "are", "was", "were", "been", "has", "have", "had", "of", "that", "also", "we", "find", "found", "in", "by"}
)  # fmt: skip
"""Words that a report may add or leave out without saying anything else."""


class Turned(NamedTuple):
    """A sentence that says the contrary of an expected one."""

    said: str
    expected: str
    how: str


@dataclass(frozen=True, slots=True)
class _Word:
    raw: str
    form: str


def turned_sentence(said: str, expected: str) -> Turned | None:
    """The first sentence that repeats an expected one with its meaning turned round; None: there is none."""
    wanted = [(text, _words(text)) for text in sentences_in(expected)]
    for text in sentences_in(said):
        own = _words(text)
        found = _nearest(own, wanted)
        if found is not None and (how := _turn(own, found[1], text, found[0])):
            return Turned(text[:200], found[0][:200], how)
    return None


@lru_cache(maxsize=4096)
def _words(sentence: str) -> tuple[_Word, ...]:
    plain = FRAMES.sub(" ", sentence)
    return tuple(_Word(raw, _form(raw)) for raw in _TOKEN.findall(plain))


def _form(word: str) -> str:
    """A word without case and ending: `achieves` and `achieve` are one."""
    lower = word.lower().replace("’", "'")
    bare = lower[:-1] if len(lower) > 4 and lower.endswith("s") and not lower.endswith("ss") else lower
    return stem(bare)


def _nearest(
    own: Sequence[_Word], wanted: Sequence[tuple[str, tuple[_Word, ...]]]
) -> tuple[str, tuple[_Word, ...]] | None:
    """The expected sentence that has most of the words in the same order, where that is nearly all of them."""
    best: tuple[float, str, tuple[_Word, ...]] = (0.0, "", ())
    mine = Counter(word.form for word in own if word.form not in _BORDER and word.form not in _FILLING)
    for text, words_ in wanted:
        theirs = Counter(word.form for word in words_ if word.form not in _BORDER and word.form not in _FILLING)
        common = sum((mine & theirs).values())
        if common < _FEWEST or common < _NEARLY * sum(mine.values()):
            continue
        ratio = SequenceMatcher(None, [w.form for w in own], [w.form for w in words_], autojunk=False).ratio()
        if ratio > best[0]:
            best = (ratio, text, words_)
    return (best[1], best[2]) if best[2] else None


def _turn(own: Sequence[_Word], wanted: Sequence[_Word], said: str, expected: str) -> str:
    """What turns the meaning, in words; empty when nothing does, or when the sentences are about different things."""
    turns: dict[int, list[str]] = {}
    matcher = SequenceMatcher(None, [w.form for w in wanted], [w.form for w in own], autojunk=False)
    for kind, low, high, start, end in matcher.get_opcodes():
        if kind == "equal":
            continue
        before, after = wanted[low:high], own[start:end]
        if _other_thing(before, after):
            return ""
        how = _other_number(before, after, said, expected) or _opposite(before, after)
        if how:
            clause = sum(word.form in _BORDER for word in wanted[:low])
            turns.setdefault(clause, []).append(how)
    odd = [found[0] for found in turns.values() if len(found) % 2]
    return odd[0] if odd else ""


def _telling(words_: Sequence[_Word]) -> list[_Word]:
    """Words that are about something: no negation, direction, emphasis or filling."""
    return [
        word
        for word in words_
        if content(word.raw)
        and not axes_of_word(word.form)
        and not negations_in([word.raw.lower()])
        and not STRONG.fullmatch(word.raw)
        and not DIMINUTIVES.fullmatch(word.raw)
        and not _NUMBER.fullmatch(word.raw)
    ]


def _other_thing(before: Sequence[_Word], after: Sequence[_Word]) -> bool:
    """Does the sentence name something that the expected one does not, in its place?"""
    old, new = _telling(before), _telling(after)
    if any(opposite_by_prefix(one.form, two.form) for one in old for two in new):
        return False
    return bool(new) and (bool(old) or any(re.search(r"[A-Z\d]", word.raw[1:]) for word in new))


def _other_number(before: Sequence[_Word], after: Sequence[_Word], said: str, expected: str) -> str:
    """One number in the place of another that it cannot be."""
    old = [word.raw for word in before if _NUMBER.fullmatch(word.raw)]
    new = [word.raw for word in after if _NUMBER.fullmatch(word.raw)]
    if len(old) != 1 or len(new) != 1:
        return ""
    one = next((q for q in quantities_in(said) if q.text.lstrip("+-–−") == new[0]), None)
    two = next((q for q in quantities_in(expected) if q.text.lstrip("+-–−") == old[0]), None)
    if one is None or two is None or one.bound != two.bound or agreement(one, two) is not False:
        return ""
    return f"{new[0]} in the place of {old[0]}"


def _opposite(before: Sequence[_Word], after: Sequence[_Word]) -> str:
    """Words for their opposites, with the negations beside them: `does not fall` is not the contrary of `rises`."""
    old, new = [word.raw.lower() for word in before], [word.raw.lower() for word in after]
    negated = (negations_in(old) + negations_in(new)) % 2 == 1
    for axis in sorted(_axes(before) & _axes(after)):
        if (_sign(before, axis) != _sign(after, axis)) != negated:
            return _told(old, new)
        return ""
    for one in before:
        for two in after:
            if opposite_by_prefix(one.form, two.form):
                return "" if negated else _told(old, new)
    if negated and not _telling(before) and not _telling(after):
        return _told(old, new)
    return ""


def _axes(words_: Sequence[_Word]) -> frozenset[str]:
    return frozenset(axis for word in words_ for axis in axes_of_word(word.form))


def _sign(words_: Sequence[_Word], axis: str) -> int:
    return prod(axes_of_word(word.form)[axis] for word in words_ if axis in axes_of_word(word.form))


def _told(old: Sequence[str], new: Sequence[str]) -> str:
    if not old:
        return f"`{' '.join(new)}` is added"
    if not new:
        return f"`{' '.join(old)}` is left out"
    return f"`{' '.join(new)}` for `{' '.join(old)}`"
