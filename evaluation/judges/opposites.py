"""Words with their opposites, and words that negate: general English, no name of any method, data set or paper.

A word has a sign on an *axis*; two words are opposites when they have different signs on the same axis. A word may lie
on several (`lose`: of keeping, of winning). Whether more is good is not asked here (`lexicon.polarity_of`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from evaluation.judges.lexicon import stem

__all__ = ["are_opposite", "axes_of_word", "negations_in", "opposite_by_prefix"]

_AXES: Final[dict[str, tuple[str, str]]] = {
    "amount": (
        "higher high highest increase increases increased increasing increasingly rise rises rising rose grow grows "
        "growing growth grew gain gains more most larger large largest greater greatest great bigger longer longest "
        "above exceed exceeds exceeding raise raises raised raising upward upwards maximum maximal many climb climbs "
        "elevated amplify amplifies up wider broader expand expands",
        "lower low lowest lowers lowering decrease decreases decreased decreasing fall falls falling fell drop drops "
        "dropping dropped decline declines declining declined reduce reduces reduced reducing reduction reductions "
        "less least fewer fewest smaller small smallest shorter shortest below shrink shrinks diminish diminishes "
        "loss losses minimum minimal few downward downwards down narrower lessen lessens suppress",
    ),
    "quality": (
        "better best improve improves improved improving improvement improvements outperform outperforms "
        "outperforming surpass surpasses surpassing beat beats superior superiority enhance enhances enhanced "
        "enhancing enhancement boost boosts boosted boosting benefit benefits beneficial strengthen strengthens excel "
        "excels win wins help helps advantage advantages favorable favourable good",
        "worse worst degrade degrades degraded degrading degradation degradations underperform underperforms "
        "underperforming inferior inferiority deteriorate deteriorates deterioration impair impairs impaired impairing "
        "hurt hurts hurting harm harms harmful weaken weakens suffer suffers struggle struggles lose loses "
        "disadvantage disadvantages unfavorable unfavourable poor bad worsen worsens lag lags",
    ),
    "strength": ("strong stronger strongest robust robustly resilient sturdy", "weak weaker weakest fragile brittle"),
    "sensitivity": ("robust robustly insensitive invariant resilient", "sensitive susceptible vulnerable"),
    "speed": ("faster fastest fast quicker quickly accelerate accelerates speedup", "slower slowest slow slowly "
              "slowdown decelerate decelerates"),
    "cost": ("cheaper cheapest cheap inexpensive", "costlier expensive costly"),
    "keeping": (
        "retain retains retained retaining preserve preserves preserved preserving maintain maintains maintained "
        "maintaining keep keeps keeping kept sustain sustains",
        "lose loses lost losing destroy destroys destroyed destroying drop drops dropped discard discards abandon "
        "abandons forget forgets",
    ),
    "success": ("success successes succeed succeeds successful successfully",
                "failure failures unsuccessful unsuccessfully"),
    "winning": ("win wins won", "lose loses lost"),
    "support": (
        "confirm confirms confirming validate validates validating support supports supporting verify verifies prove "
        "proves demonstrate demonstrates corroborate corroborates agree agrees",
        "refute refutes refuting contradict contradicts contradicting disprove disproves invalidate invalidates "
        "undermine undermines disagree disagrees reject rejects",
    ),
    "sign": ("positive positively", "negative negatively"),
    "always": ("always consistently invariably all every everywhere universally", ""),
    "alike": ("similar same identical equal comparable alike", "different dissimilar distinct unequal differ differs"),
    "meeting": ("converge converges converged convergence", "diverge diverges diverged divergence"),
    "presence": ("with include includes including present presence contains",
                 "without exclude excludes excluding absent absence"),
    "size": ("substantial considerable large major", "negligible minor tiny insignificant"),
    "persistence": (
        "hold holds persist persists remain remains stay stays continue continues",
        "vanish vanishes disappear disappears fade fades break breaks",
    ),
    "order": ("before earlier early first", "after later late last"),
    "depth": ("deeper deep", "shallower shallow"),
    "difficulty": ("easier easy simpler simple", "harder hard difficult complex"),
    "possible": ("possible able feasible", "impossible infeasible"),
}  # fmt: skip
"""Axis -> words of the one side and of the other. What negates (`never`, `fails`) is on none: it would count twice."""

_PREFIX: Final = re.compile(r"^(?:un|in|im|ir|il|non-?|dis|mis)")
_NEGATING: Final = re.compile(
    r"\b(?:not(?! only\b)|never|no longer|no|none|neither|nor|cannot|hardly|rarely|seldom|unable|"
    r"fail(?:s|ed|ing)?|lacks?|\w+n['’]t)\b"
)


@lru_cache(maxsize=1)
def _table() -> Mapping[str, Mapping[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for axis, sides in _AXES.items():
        for words_, sign in zip(sides, (1, -1), strict=True):
            for word in words_.split():
                found.setdefault(_form(word), {})[axis] = sign
    return found


def _form(word: str) -> str:
    bare = word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word
    return stem(bare)


def axes_of_word(form: str) -> Mapping[str, int]:
    """Axis -> +1 or -1 of a word's form; empty for a word that has no opposite here."""
    return _table().get(form, {})


def opposite_by_prefix(one: str, two: str) -> bool:
    """`stable` and `unstable`, `significant` and `insignificant`: one is the other behind a negating prefix."""
    short, long = sorted((one, two), key=len)
    match = _PREFIX.match(long)
    return match is not None and len(short) >= 4 and long[match.end() :] == short


def are_opposite(one: str, two: str) -> bool:
    """Are two words' forms on different sides of an axis, or one the other behind a negating prefix?"""
    left, right = axes_of_word(one), axes_of_word(two)
    return opposite_by_prefix(one, two) or any(left[axis] != right[axis] for axis in left.keys() & right.keys())


def negations_in(words_: Sequence[str]) -> int:
    """How often the words negate; `not only` does not."""
    return len(_NEGATING.findall(" ".join(words_)))
