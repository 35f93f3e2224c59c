"""The keyless judge of conclusions (C): are the numbers as expected, and in order, and do the words agree with them?

One criterion for the words, one for the order that the task expects among its numbers, one for each expected number; C
is met when all are. Numbers are found by their names alone (`lookup`). Whatever only a reader could tell is unknown.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.judges.bands import compare_numbers, spread_of
from evaluation.judges.lookup import Found, look_up
from evaluation.judges.naming import vocabulary_of
from evaluation.judges.statements import judge_sentence, sentences_of
from evaluation.submission import Response
from evaluation.verdicts import ItemVerdict
from pipeline.task import Expected, ExperimentTruth, NumericClaim, Verdict

__all__ = ["MEANING", "RELATIONS", "claim_item", "judge_conclusion"]

MEANING: Final = "conclusion:meaning"
RELATIONS: Final = "conclusion:relations"
_NUMBERS: Final = "response.json: conclusion.numbers"
_TEXT: Final = "response.json: conclusion.text"


def claim_item(claim: NumericClaim) -> str:
    """Item id of a number of the expected outcome."""
    return f"conclusion:{claim.id}"


def judge_conclusion(truth: ExperimentTruth, response: Response | None) -> tuple[ItemVerdict, ...]:
    """The words first, then the relations where the task expects some, then each expected number in its order."""
    expected = truth.expected
    if response is None or not (response.conclusion.text.strip() or response.conclusion.numbers):
        reason = "there is no response" if response is None else "the response has no conclusion"
        items = [(MEANING, expected.text), *_relation_items(expected)]
        items += [(claim_item(claim), _claim_text(claim)) for claim in expected.claims]
        return tuple(ItemVerdict(item=i, text=text, verdict=Verdict.FAIL, reason=reason) for i, text in items)
    found = look_up(expected.claims, response.conclusion.numbers)
    judged = compare_numbers(expected.claims, found)
    numbers = tuple(_number(claim, *judged[claim.id], found.get(claim.id)) for claim in expected.claims)
    return (_words(expected, response.conclusion.text, found), *_relations(expected, found), *numbers)


def _claim_text(claim: NumericClaim) -> str:
    conditions = ", ".join(f"{c.name} = {c.value}" for c in claim.conditions)
    return f"{claim.metric} = {claim.text}{claim.unit or ''}" + (f" for {conditions}" if conditions else "")


def _number(claim: NumericClaim, verdict: Verdict, reason: str, given: Found | None) -> ItemVerdict:
    return ItemVerdict(
        item=claim_item(claim), text=_claim_text(claim), verdict=verdict, reason=reason,
        quote=given.name if given else "", where=_NUMBERS if given else "",
    )  # fmt: skip


# --- relations -------------------------------------------------------------------------------------------------------


def _relation_items(expected: Expected) -> list[tuple[str, str]]:
    told = ", ".join(" ".join(relation) for relation in expected.comparisons)
    return [(RELATIONS, f"among the numbers: {told}")] if told else []


def _relations(expected: Expected, found: Mapping[str, Found]) -> tuple[ItemVerdict, ...]:
    """Do the reported numbers have the expected order? One that is broken fails; one that cannot be seen is unknown."""
    claims = {claim.id: claim for claim in expected.claims}
    broken: list[str] = []
    open_: list[str] = []
    for left, relation, right in expected.comparisons:
        told = f"{left} {relation} {right}"
        one, two = found.get(left), found.get(right)
        if one is None or two is None:
            open_.append(f"{told}: not found among the reported numbers")
            continue
        room = _room(claims[left]) + _room(claims[right])
        kept = abs(one.value - two.value) <= room if relation == "=" else (one.value < two.value) == (relation == "<")
        if not kept or (relation != "=" and one.value == two.value):
            (open_ if one.weak or two.weak else broken).append(
                f"{told}: {one.value:.10g} and {two.value:.10g} reported"
            )
    verdict = Verdict.FAIL if broken else Verdict.UNKNOWN if open_ else Verdict.PASS
    reason = (broken or open_ or [f"all {len(expected.comparisons)} hold among the reported numbers"])[0]
    return tuple(
        ItemVerdict(item=item, text=text, verdict=verdict, reason=reason) for item, text in _relation_items(expected)
    )


def _room(claim: NumericClaim) -> float:
    return (claim.band.high - claim.band.low) / 2


# --- words -----------------------------------------------------------------------------------------------------------


def _words(expected: Expected, text: str, found: Mapping[str, Found]) -> ItemVerdict:
    """A contradicted sentence fails; all decided, or the expected outcome's own text, passes."""
    claims = expected.claims
    plain, wanted = " ".join(text.split()), " ".join(expected.text.split())
    if wanted and plain == wanted:
        return _meant(expected, Verdict.PASS, "states the expected outcome in its own words", wanted[:200])
    sentences = sentences_of(text)
    if not sentences:
        if claims and len(found) == len(claims):
            return _meant(expected, Verdict.PASS, "no words beside its numbers, which are all there")
        return _meant(expected, Verdict.UNKNOWN, "there are no words")
    verdicts = _sentences(sentences, claims, found) if claims else [Verdict.UNKNOWN] * len(sentences)
    for sentence, verdict in zip(sentences, verdicts, strict=True):
        if verdict is Verdict.FAIL:
            return _meant(expected, Verdict.FAIL, "says what the numbers contradict", sentence[:200])
    undecided = [s for s, verdict in zip(sentences, verdicts, strict=True) if verdict is Verdict.UNKNOWN]
    if undecided:
        reason = f"{len(undecided)} of {len(sentences)} sentences can only be read, not looked up"
        return _meant(expected, Verdict.UNKNOWN, reason, undecided[0][:200])
    return _meant(expected, Verdict.PASS, "all that it says agrees with the numbers", sentences[0][:200])


def _sentences(sentences: Sequence[str], claims: Sequence[NumericClaim], found: Mapping[str, Found]) -> list[Verdict]:
    vocabulary = vocabulary_of(claims)
    expected = {index: (claim.value, _room(claim)) for index, claim in enumerate(claims)}
    own = {
        index: (found[claim.id].value, max(spread_of(claim), found[claim.id].slack))
        for index, claim in enumerate(claims)
        if claim.id in found and not found[claim.id].weak
    }
    return [judge_sentence(sentence, vocabulary, claims, own, expected) for sentence in sentences]


def _meant(expected: Expected, verdict: Verdict, reason: str, quote: str = "") -> ItemVerdict:
    return ItemVerdict(
        item=MEANING, text=expected.text, verdict=verdict, reason=reason, quote=quote, where=_TEXT if quote else ""
    )
