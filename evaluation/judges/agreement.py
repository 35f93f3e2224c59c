"""Do two texts say the same outcome? Each proposition of a conclusion against those that were expected.

A proposition agrees with or contradicts the expected one that it is most alike; what resembles nothing says nothing.
Opposite directions, exchanged sides, another number, another shape of a curve and a negated statement contradict.
Where the things compared, what is measured or the conditions differ, neither is decided: unknown is an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from evaluation.judges.lexicon import is_negated
from evaluation.judges.opposites import are_opposite
from evaluation.judges.propositions import Proposition
from evaluation.judges.quantities import Quantity, agreement

__all__ = ["Comparison", "compare_outcomes"]

_ALIKE: Final = 0.5
"""Share of the telling words of a side, or of a clause, that must be shared to be about the same thing."""
_STATED: Final = 0.6
"""Plain statements need more in common: they have no direction or number that could be wrong."""
_OTHER_FOCUS: Final = 0.6
"""Of alike ones, that which is told of the same thing goes first (`more accuracy`, `less memory` in one sentence)."""
_GENERIC: Final = frozenset(
    {
        "other",
        "baselin",
        "base",
        "compet",
        "altern",
        "tradit",
        "convent",
        "prev",
        "exist",
        "stat",
        "art",
        "group",
        "set",
        "case",
    }
)


@dataclass(frozen=True, slots=True)
class Comparison:
    """A conclusion against what was expected."""

    agreed: tuple[tuple[Proposition, Proposition], ...]
    """(said, expected)."""
    contradicted: tuple[tuple[Proposition, Proposition, str], ...]
    """(said, expected, how)."""
    covered: int
    """Expected propositions that something said agrees with; cells of tables apart."""
    expected: int
    cells: int = 0
    """Numbers of the expected outcome's tables that something said agrees with."""


def compare_outcomes(said: Sequence[Proposition], expected: Sequence[Proposition]) -> Comparison:
    """Compare what was said with what was expected."""
    agreed, contradicted = [], []
    covered: set[int] = set()
    for one in said:
        answers = [answer for index, two in enumerate(expected) for answer in _relate(one, two, index)]
        if not answers:
            continue
        best = _telling(answers)
        if best.same:
            covered |= {answer.place for answer in answers if answer.same}
            agreed.append((one, expected[best.place]))
        else:
            contradicted.append((one, expected[best.place], best.why))
    cells = {index for index in covered if expected[index].cell}
    total = sum(not two.cell for two in expected)
    return Comparison(tuple(agreed), tuple(contradicted), len(covered - cells), total, len(cells))


class _Answer(NamedTuple):
    """What one expected proposition says to one that was said."""

    place: int
    """Of the expected proposition."""
    score: float
    """How alike the two are."""
    same: bool
    why: str = ""
    number: bool = False


def _telling(answers: Sequence[_Answer]) -> _Answer:
    """The answer that counts: a number that agrees nowhere, else the most alike in words, else a number that agrees.

    Of equally alike ones agreement counts: a text that repeats itself with other emphasis contradicts nothing.
    """
    numbers = [answer for answer in answers if answer.number]
    told = [answer for answer in answers if not answer.number]
    if numbers and not any(answer.same for answer in numbers):
        return max(numbers, key=lambda answer: answer.score)
    return max(told or numbers, key=lambda answer: (answer.score, answer.same))


def _relate(one: Proposition, two: Proposition, index: int) -> list[_Answer]:
    """What can be said of the two; nothing where they are about different things."""
    if two.cell:
        return _cell(one, two, index)
    alike = _share(one.topic, two.topic)
    if _measured_apart(one, two) or _apart(one.scope - one.subject, two.scope - two.subject):
        return []
    found: list[_Answer] = []
    if alike >= _ALIKE and (number := _numbers(one, two)) is not None:
        found.append(_Answer(index, alike, number, "" if number else "another number", number=True))
    near = alike >= _ALIKE / 2 or not (one.subject and two.subject)
    if near and (shape := _shapes(one, two)) is not None:
        found.append(_Answer(index, alike if shape else 1.0, shape, "" if shape else "another shape of the curve"))
    if (told := _directions(one, two, alike)) is not None:
        found.append(_Answer(index, *told))
    if not one.signs and not two.signs and (alike >= _STATED or any(answer.same for answer in found)):
        opposite = _opposite_words(one.topic, two.topic)
        same = (one.negated == two.negated) != opposite
        how = "" if same else "a word for its opposite" if opposite else "a negated statement"
        found.append(_Answer(index, alike, same, how))
    return found


def _opposite_words(one: frozenset[str], two: frozenset[str]) -> bool:
    """Does the one say `robust` where the other says `sensitive`? What negates counts elsewhere."""
    return any(
        are_opposite(left, right)
        for left in one - two
        for right in two - one
        if not is_negated(left) and not is_negated(right)
    )


def _cell(one: Proposition, two: Proposition, index: int) -> list[_Answer]:
    """A cell of a table is spoken of by who names its row and its column."""
    named = {word for word in two.topic if not word.startswith("~")}
    if not one.quantities or len(named) < 2 or not named <= one.topic:
        return []
    answers = [agreement(quantity, two.quantities[0]) for quantity in one.quantities]
    if True in answers:
        return [_Answer(index, 1.0, True, number=True)]
    # several numbers may be of several cells
    return [_Answer(index, 1.0, False, "another number", number=True)] if answers == [False] else []


def _apart(one: frozenset[str], two: frozenset[str]) -> bool:
    """Both name something, and nothing in common."""
    return bool(one) and bool(two) and not one & two


def _measured_apart(one: Proposition, two: Proposition) -> bool:
    """Time, memory and money are never what is meant by better alone."""
    if (
        one.signs
        and two.signs
        and (one.aspects == {"resource"}) != (two.aspects == {"resource"})
        and not (one.aspects and two.aspects)
    ):
        return True
    return _apart(one.aspects, two.aspects)


def _share(one: frozenset[str], two: frozenset[str]) -> float:
    """Shared words as a share of the smaller set; one shared word of many is no likeness."""
    if not one or not two:
        return 0.0
    return len(one & two) / min(len(one), len(two))


def _directions(one: Proposition, two: Proposition, alike: float) -> tuple[float, bool, str] | None:
    if not one.signs or not two.signs:
        return None
    oriented = _orientation(one, two, alike)
    if oriented is None:
        return None
    turn, score = oriented
    if _apart(one.focus, two.focus):
        score *= _OTHER_FOCUS
    wanted = frozenset(turn * sign for sign in two.signs)
    if one.signs & wanted:
        if {one.strength, two.strength} == {"slight", "strong"} and one.signs == wanted and len(wanted) == 1:
            return None
        return score, True, ""
    return score, False, "exchanged sides" if turn < 0 else "the other direction"


def _orientation(one: Proposition, two: Proposition, alike: float) -> tuple[int, float] | None:
    """(+1 the same way round or -1 exchanged, how alike); None when the sides cannot be told."""
    left, right = _told_apart(two)
    mine, theirs = _told_apart(one)
    if one.signs == frozenset({0}) or two.signs == frozenset({0}):  # equality has no sides
        both, these = two.subject | two.other, one.subject | one.other
        score = min(_share(these, both), 1.0)
        return (1, score) if score >= _ALIKE and alike >= _ALIKE else None
    if right and theirs:
        straight = _sides((mine, left), (theirs, right))
        turned = _sides((mine, right), (theirs, left))
        if straight == turned or max(straight, turned) < _ALIKE:
            return None
        return (1, straight / 2) if straight > turned else (-1, turned / 2)
    if right or theirs:
        single, wide = (one.subject, (left, right)) if right else (two.subject, (mine, theirs))
        straight, turned = _side(single, wide[0]), _side(single, wide[1])
        if max(straight, turned) < _ALIKE or straight == turned:
            return _rival(one, two)
        return (1, 0.6 * straight) if straight > turned else (-1, 0.6 * turned)
    return _one_sided(one, two, alike)


def _one_sided(one: Proposition, two: Proposition, alike: float) -> tuple[int, float] | None:
    """Neither names another side: the same thing, or one that is best where another was to be."""
    score = _side(one.subject, two.subject)
    if score >= _ALIKE:
        return 1, (score + alike) / 2
    same = bool(one.aspects & two.aspects or one.focus & two.focus) and not (one.subject and two.subject)
    return _rival(one, two) or ((1, 0.7 * alike) if same and alike >= _ALIKE else None)


def _told_apart(told: Proposition) -> tuple[frozenset[str], frozenset[str]]:
    """The two sides without what they share; `A+B` against `A` is B against its absence."""
    left, right = told.subject - told.other, told.other - told.subject
    if told.other and not right:
        right = frozenset(f"~{word}" for word in left)
    elif told.other and not left:
        left = frozenset(f"~{word}" for word in right)
    return left, right


def _rival(one: Proposition, two: Proposition) -> tuple[int, float] | None:
    """There is one best: another one's being best is the other way round, unless both are named among several."""
    best = (
        (one.extreme and two.extreme)
        or (one.extreme and two.other & _GENERIC)
        or (two.extreme and one.other & _GENERIC)
    )
    if best and one.subject and two.subject and not one.subject & two.subject and one.signs == two.signs:
        return -1, 0.5
    return None


def _sides(*pairs: tuple[frozenset[str], frozenset[str]]) -> float:
    """Both sides alike; one is enough where the other is nobody in particular (`A beats the baselines`)."""
    scores = [_side(*pair) for pair in pairs]
    vague = [not one - _GENERIC or not two - _GENERIC for one, two in pairs]
    return sum(scores) if all(score >= _ALIKE or loose for score, loose in zip(scores, vague, strict=True)) else 0.0


def _side(one: frozenset[str], two: frozenset[str]) -> float:
    telling = one - _GENERIC, two - _GENERIC
    return _share(*telling) if all(telling) else _share(one, two)


def _shapes(one: Proposition, two: Proposition) -> bool | None:
    if not one.shape or not two.shape:
        return None
    if "unbounded" in {one.shape, two.shape} or one.shape == two.shape:
        return one.shape == two.shape
    return None  # a curve may peak and then level off


def _numbers(one: Proposition, two: Proposition) -> bool | None:
    """True when a number of the one is a number of the other; False when one that should be is not."""
    answers = [_number(quantity, two.quantities) for quantity in one.quantities]
    known = [answer for answer in answers if answer is not None]
    return None if not known else all(known)


def _number(one: Quantity, others: Sequence[Quantity]) -> bool | None:
    """Against the quantities with the most of the neighbourhood in common."""
    scored = [(len(one.near & other.near), other) for other in others]
    top = max((score for score, _ in scored), default=0)
    if not top:
        return None
    answers = [agreement(one, other) for score, other in scored if score == top]
    return True if True in answers else None if None in answers else False
