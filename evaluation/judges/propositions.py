"""What a text says came out: each clause as a proposition - who against whom, in which direction, of what, under what.

Where `statements` reads comparisons between the names that a task lists, this reader takes any names, so that outcomes
which are told in words alone can be judged. It reads directions (better, more, equal, best), trends with what drives
them, shapes of curves, chains (`A > B > C`), quantities, and plain statements with their negation. Causes, purposes and
interpretations behind an outcome are left out. Non-goals: pronouns, arithmetic, meaning beyond the lexicon's classes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Final

from evaluation.judges.drivers import without_driver
from evaluation.judges.lexicon import (
    DIMINUTIVES,
    DOUBTFUL,
    EQUAL,
    FRAMES,
    LIMITED,
    LONGEST_SENTENCE,
    NO_BEFORE,
    STRONG,
    Cue,
    aspects_of,
    content,
    cues_in,
    is_negated,
    polarity_of,
    shape_of,
)
from evaluation.judges.quantities import Quantity, quantities_in
from evaluation.judges.sides import entities, head, scope_of, until_scope

__all__ = ["TABLE_ROW", "Proposition", "read_propositions", "sentences_in"]

POSITIVE: Final = frozenset({1})
LEVEL: Final = frozenset({0})


@dataclass(frozen=True, slots=True)
class Proposition:
    """One thing that a text says."""

    quote: str
    topic: frozenset[str]
    """Telling words of the clause."""
    signs: frozenset[int] = frozenset()
    """Directions that it allows, of the subject against the other side, good is +1; empty: no direction is told."""
    subject: frozenset[str] = frozenset()
    other: frozenset[str] = frozenset()
    extreme: bool = False
    """Best or worst of all; `other` is empty."""
    trend: bool = False
    """Along something that grows."""
    shape: str = ""
    strength: str = ""
    aspects: frozenset[str] = frozenset()
    """What is measured, where it is named."""
    focus: frozenset[str] = frozenset()
    """What stands right behind the cue: what is more, less or better."""
    scope: frozenset[str] = frozenset()
    """Conditions that it is limited to (`on ETTh1`)."""
    negated: bool = False
    """Of a plain statement; a negated direction has other `signs`."""
    quantities: tuple[Quantity, ...] = field(default=())
    cell: bool = False
    """A number of a table: confirms or contradicts, but nobody need repeat it."""


_SENTENCE: Final = re.compile(r"(?<=[.;!?])[”\"')*]*\s+(?=[A-Z“\"(*\-~\d])|\n+|;\s+|\s•\s")
_CLAUSE: Final = re.compile(
    r",?\s*\b(?:while|whereas|but|although|though|however|in contrast|on the other hand|yet)\b,?\s+|\s+[–—]\s+|"
    r",\s+(?:and|with)\s+(?=[\w\s]{0,60}?"
    r"\b(?:is|are|was|were|ha[sd]|have|drop|ris|fall|increas|decreas|reach|show|remain|perform|achiev|outperform|"
    r"improv|"
    r"degrad|reduc|maintain|lower|higher))|,\s+(?=(?:reduc|increas|decreas|improv|outperform|surpass|reach|achiev|"
    r"exceed)ing\b)",
    re.I,
)
_ASIDE: Final = re.compile(
    r",?\s*\b(?:thereby|thus|hence|therefore|so that|because|due to|owing to|since|despite|supporting|confirming|"
    r"demonstrating|"
    r"indicating|suggesting|validating|highlighting|reinforcing|underscoring|emphasi[sz]ing|justifying|proving|"
    r"ensuring|as "
    r"(?:evidenced|supported|shown|depicted|detailed|documented|measured|confirmed) (?:by|in))\b[^;]*$",
    re.I,
)
"""Causes and interpretations: what follows is not the outcome (`..., confirming that it scales`)."""
_BRACKET: Final = re.compile(r"\s*\((?:e\.g\.|i\.e\.|see|cf\.|as |fig|tab)[^()]*\)", re.I)
_THAN: Final = re.compile(
    r"\b(?:than|compared (?:to|with)|relative to|in comparison (?:to|with)|versus|vs\.?|as opposed to|against|"
    r"over(?= (?:the |that |all |other |its |"
    r"[A-Z~\d]))|behind|below|above)\b",
    re.I,
)
_CHAIN: Final = re.compile(r"[\w.+/()&-]+(?: [\w.+/()&-]+){0,3}(?:\s*>\s*[\w.+/()&-]+(?: [\w.+/()&-]+){0,3})+")
_FOLLOWED: Final = re.compile(r",?\s*(?:closely )?followed by\s+", re.I)
_WITH_OBJECT: Final = re.compile(
    r"out-?perform|surpass|beat|exceed|under-?perform|match|equal|lag|trail|ahead|above|below", re.I
)
_LIST: Final = re.compile(r"\s*(?:,\s*(?:and |then |finally )?|\band\b|\bthen\b)\s*")
_AGAINST: Final = re.compile(
    r"(?:(?:when )?(?:compared|in comparison|relative|as opposed|in contrast)(?: to| with)|unlike|against|versus)\s+"
    r"(?P<other>[^,]+),\s*",
    re.I,
)
_REJECTED: Final = re.compile(
    r"\b(?:the |our |this |any )?(?:claim|hypothesis|idea|notion|assumption|expectation|statement|conjecture|"
    r"prediction)(?: that|:) (?P<what>[^.;]*?),? (?:is|was|are|were|has been|could be|must be|proved?|proves|"
    r"turn(?:s|ed) out(?: to be)?)(?: \w+ly)? (?:false|wrong|untrue|refuted|rejected|incorrect|disproved|disproven|"
    r"invalid|unsupported|"
    r"contradicted|not (?:true|confirmed|supported|correct|borne out|met|upheld|observed))\b|"
    r"\b(?:it is|it was) (?:false|wrong|untrue|incorrect) that (?P<that>[^.;]*)",
    re.I,
)
"""A sentence that rejects what it quotes says the contrary of it."""
_EXCEPT: Final = re.compile(r"\b(?:except(?: for)?|apart from|other than|excluding|but not|all but)\s+", re.I)
_BY: Final = re.compile(r"\s+by\b")
_PASSIVE: Final = re.compile(r"\b(?:is|are|was|were|be|been|being|gets?|got)\s+(?:\w+\s+){0,3}$", re.I)
TABLE_ROW: Final = re.compile(r"^[^\S\n]*\|.*\|[^\S\n]*$", re.M)


def sentences_in(text: str) -> list[str]:
    """The sentences of a text without its marks of emphasis; rows of tables are left out: they are numbers."""
    plain = re.sub(r"[*_`#]{1,3}(?=\S)|(?<=\S)[*_`]{1,3}", "", TABLE_ROW.sub("", text))
    parts = (" ".join(part[:LONGEST_SENTENCE].split()) for part in _SENTENCE.split(plain))
    return [sentence.strip(" -•").strip() for sentence in parts]


def read_propositions(text: str) -> list[Proposition]:
    """The propositions of a text's sentences, in order."""
    return [proposition for sentence in sentences_in(text) for proposition in _of_sentence(sentence)]


def _of_sentence(sentence: str) -> list[Proposition]:
    if DOUBTFUL.search(sentence):
        return []
    bare = _REJECTED.sub(r"it is not the case that \g<what>\g<that>", _BRACKET.sub("", sentence))
    bare = FRAMES.sub(" ", bare)
    bare = " ".join(_ASIDE.sub("", bare).split())
    found: list[Proposition] = _numbers_aside(sentence, bare)
    carried: frozenset[str] = frozenset()
    for clause in _CLAUSE.split(bare):
        if not clause or not content(clause):
            continue
        for proposition in _of_clause(clause.strip(" ,.")):
            # `AUROC stays high, while dropping on D`: a clause without a subject goes on about the one before
            whole = (
                proposition
                if proposition.subject or not carried
                else replace(proposition, subject=carried, topic=proposition.topic | carried)
            )
            carried = whole.subject or carried
            found.append(whole)
    return found


def _numbers_aside(sentence: str, bare: str) -> list[Proposition]:
    """The numbers that stand in brackets and asides, which are otherwise left out."""
    aside = [
        part
        for pattern in (_BRACKET, _ASIDE)
        for part in re.findall(r".+", " ".join(m[0] for m in pattern.finditer(sentence)))
    ]
    kept = {quantity.text for quantity in quantities_in(bare)}
    quantities = tuple(q for part in aside for q in quantities_in(part) if q.text not in kept)
    return [Proposition(quote=sentence[:200], topic=content(sentence), quantities=quantities)] if quantities else []


def _of_clause(clause: str) -> list[Proposition]:
    if against := _AGAINST.match(clause):  # `Compared with B, A is better`: the other side stands in front
        other = entities(against["other"])
        rest = _of_clause(clause[against.end() :])
        return [
            replace(one, other=other - one.subject, topic=one.topic | other) if one.signs and not one.other else one
            for one in rest
        ]
    chained = [*_chains(clause), *_followed(clause)]
    if chained:
        return chained
    plain, push, driver = without_driver(clause)
    quantities = tuple(quantities_in(clause))
    topic = content(clause)
    base = Proposition(
        quote=clause[:200], topic=topic, aspects=aspects_of(plain), scope=scope_of(plain), quantities=quantities,
        shape=shape_of(clause), trend=driver is not None,
    )  # fmt: skip
    # `best of the methods without labels` says nothing of who is best of all
    cues = [
        cue
        for cue in _leading(cues_in(plain))
        if not (cue.kind.startswith("extreme") and LIMITED.search(plain[cue.end :]))
    ]
    if not cues:
        return [replace(base, negated=is_negated(clause), subject=entities(clause))]
    return [one for cue in cues for one in _excepted(_directed(base, plain, cue, cues, push, driver), plain)]


def _excepted(told: Proposition, clause: str) -> list[Proposition]:
    """`A beats all except B`: of what is excepted the contrary is told."""
    parts = _EXCEPT.split(clause, maxsplit=1)
    if len(parts) < 2 or not (left_out := entities(until_scope(parts[1]))) or not left_out & told.other:
        return [told]
    return [
        replace(told, other=told.other - left_out),
        replace(told, other=left_out, signs=frozenset({-1, 0, 1}) - told.signs),
    ]


def _leading(cues: list[Cue]) -> list[Cue]:
    """The cues that carry a clause: one a stretch of words, the first of each (`improves ... by reducing`)."""
    kept: list[Cue] = []
    for cue in cues:
        if not kept or cue.start - kept[-1].end > 1:
            kept.append(cue)
    return kept[:4]


def _directed(
    base: Proposition, clause: str, cue: Cue, cues: list[Cue], push: int, driver: frozenset[str] | None
) -> Proposition:
    before, after = clause[: cue.start], clause[cue.end :]
    sign = polarity_of(cue, before, after) * push
    if _takes_object(cue) and (by := _BY.match(after)) and _PASSIVE.search(before):  # `B is outperformed by A`
        sign, after = -sign, after[by.end() :]
    than = (
        re.match(r"\s+to\b", after) if re.search(r"ior$", cue.text, re.I) else _THAN.search(after)
    )  # superior, inferior
    nearest = next((other.start - cue.end for other in cues if other.start >= cue.end), len(after))
    right = after[than.end() :] if than else after if _takes_object(cue) else ""
    left = before if before.strip() else ""
    subject, other = entities(head(left)), entities(until_scope(right))
    if driver is not None and not subject:
        subject = driver
    if cue.kind in {"extreme", "extreme-amount"}:
        by = re.search(r"\b(?:by|for|with|is|was|are|were)\s|:", after)
        if not subject and by:
            subject = entities(after[by.end() :])
        other = frozenset()
    if cue.kind in EQUAL and not than:
        other = frozenset()
        subject = entities(clause)
    near = after[: max(nearest, 0)] if nearest else after
    negated = is_negated(before) or (bool(NO_BEFORE.search(before)) and cue.kind not in EQUAL)
    signs = frozenset({sign}) if cue.kind not in EQUAL else LEVEL
    if cue.kind == "at-least":
        signs = frozenset({0, 1})
    if sign < 0 and cue.kind in {"quality", "amount"} and DIMINUTIVES.search(f"{before[-30:]} {after[:12]}"):
        signs = frozenset({-1, 0})
    if negated:
        signs = LEVEL if NO_BEFORE.search(before) else frozenset({-1, 0, 1}) - signs
    strength = (
        "slight" if DIMINUTIVES.search(before[-30:]) else "strong" if STRONG.search(before[-30:] + cue.text) else ""
    )
    aspects = aspects_of(near) or aspects_of(before) or base.aspects
    return replace(
        base, signs=signs, subject=subject, other=other - subject if other - subject else other,
        extreme=cue.kind.startswith("extreme"), strength=strength,
        focus=frozenset() if _takes_object(cue) else content(" ".join(_THAN.split(near)[0].split()[:6])),
        aspects=aspects | ({"resource"} if cue.kind == "cost" else set()),
    )  # fmt: skip


def _takes_object(cue: Cue) -> bool:
    """`outperforms B`, `exceeds B`, `matches B`: the other side follows at once."""
    return _WITH_OBJECT.match(cue.text) is not None


def _chains(clause: str) -> list[Proposition]:
    """`A > B > C`, where the sides are names and not numbers."""
    found: list[Proposition] = []
    if ">" not in clause:
        return found
    for match in _CHAIN.finditer(clause):
        sides = [content(until_scope(side)) for side in match[0].split(">")]
        if all(sides):
            found += [_pair(clause, left, right) for left, right in pairwise(sides)]
    return found


def _followed(clause: str) -> list[Proposition]:
    """`A is best, followed by B and C`."""
    parts = _FOLLOWED.split(clause)
    if len(parts) < 2 or not cues_in(parts[0]):
        return []
    first = _of_clause(parts[0].strip(" ,"))
    ranked = [*[side for part in parts[1:] for piece in _LIST.split(part) if (side := entities(piece))]]
    leader = first[0].subject
    sign = next(iter(first[0].signs), 1)
    names = [leader, *ranked]
    return [
        *first,
        *[replace(_pair(clause, one, two), signs=frozenset({sign})) for one, two in pairwise(names) if one and two],
    ]


def _pair(clause: str, left: frozenset[str], right: frozenset[str]) -> Proposition:
    return Proposition(
        quote=clause[:200],
        topic=left | right,
        signs=POSITIVE,
        subject=left,
        other=right,
        aspects=aspects_of(clause),
        scope=scope_of(clause),
    )
