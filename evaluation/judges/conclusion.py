"""The keyless judge of conclusions (C): is the answer right in meaning, and are its numbers in the task's bands?

One criterion for the meaning and one for each expected number. Numbers are found by their names alone, never by their
values (`pipeline.validation.matching`), so that a number in the right band under the wrong name meets nothing. The
meaning is read from the orderings that the reported numbers have and from comparative statements of the text; where
neither says anything, it stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evaluation.judges.lexicon import LONGEST_SENTENCE
from evaluation.judges.meaning import MEANING, judge_meaning
from evaluation.judges.statements import says
from evaluation.submission import Response
from evaluation.verdicts import ItemVerdict
from pipeline.task import ClaimMatch, ExperimentTruth, NumericClaim, Verdict
from pipeline.validation.numbers import Number, find_numbers, plain_exponents
from pipeline.validation.observation import Observation, observe
from pipeline.validation.outcome import match_claims
from pipeline.validation.tokens import SHARES, TIMES, metric_name, words

__all__ = ["MEANING", "claim_item", "judge_conclusion", "observations_of"]


def claim_item(claim: NumericClaim) -> str:
    """Item id of a number of the expected outcome."""
    return f"conclusion:{claim.id}"


def _claim_text(claim: NumericClaim) -> str:
    conditions = ", ".join(f"{c.name} = {c.value}" for c in claim.conditions)
    return f"{claim.metric} = {claim.text}{claim.unit or ''}" + (f" for {conditions}" if conditions else "")


def judge_conclusion(truth: ExperimentTruth, response: Response | None) -> tuple[ItemVerdict, ...]:
    """The meaning first, then each expected number in its order."""
    claims = truth.expected.claims
    if response is None or not (response.conclusion.text.strip() or response.conclusion.numbers):
        reason = "there is no response" if response is None else "the response has no conclusion"
        meaning = ItemVerdict(item=MEANING, text=truth.expected.text[:500], verdict=Verdict.FAIL, reason=reason)
        return (meaning, *(_number(claim, Verdict.FAIL, reason) for claim in claims))
    matches = _matched(claims, response)
    items = tuple(_judged(claim, match, response) for claim, match in zip(claims, matches, strict=True))
    return (judge_meaning(truth, response, matches), *items)


def _matched(claims: Sequence[NumericClaim], response: Response) -> tuple[ClaimMatch, ...]:
    """Numbers that spell out all conditions of a claim first; what is left by the words of their names."""
    observations = observations_of(response)
    exact: dict[str, Observation] = {}
    for claim in claims:
        fitting = [seen for seen in observations if _spells_out(claim, seen)]
        if len(fitting) == 1:
            exact[claim.id] = fitting[0]
    taken = {seen.where for seen in exact.values()}
    rest = [seen for seen in observations if seen.where not in taken]
    open_ = [claim for claim in claims if claim.id not in exact]
    found = {match.claim: match for match in (match_claims(open_, [rest], comparisons=()) if open_ else ())}
    for claim in claims:
        if claim.id in exact:
            found[claim.id] = _compared(claim, exact[claim.id])
    return tuple(found[claim.id] for claim in claims)


def _compared(claim: NumericClaim, seen: Observation) -> ClaimMatch:
    """A number that is named beyond doubt against the band; percent and fraction are one, coarser rounding is not."""
    value = _scaled(claim, seen.value)
    holds = _in_band(claim, seen.value)
    reason = f"reported {seen.value:.10g}, expected {claim.text} ({claim.band.low:.10g} to {claim.band.high:.10g})"
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return ClaimMatch(claim=claim.id, verdict=verdict, observed=(value,), where=seen.where, reason=reason)


def _scaled(claim: NumericClaim, value: float) -> float:
    """A number as the claim counts: of percent and fraction, where it is a share, the one that is nearer."""
    share = (claim.unit or "").strip() == "%" or bool(metric_name(claim.metric).core & SHARES)
    return min(
        (value * scale for scale in ((1.0, 100.0, 0.01) if share else (1.0,))), key=lambda one: abs(one - claim.value)
    )


def _in_band(claim: NumericClaim, value: float) -> bool:
    slack = 1e-9 * max(1.0, abs(claim.value))
    return claim.band.low - slack <= _scaled(claim, value) <= claim.band.high + slack


def _spells_out(claim: NumericClaim, seen: Observation) -> bool:
    """Does a number's name hold the claim's metric and exactly its conditions as `name = value`?"""
    if not claim.conditions:
        return False
    wanted = {(words(c.name), words(c.value)) for c in claim.conditions}
    given = {(words(name), words(value)) for name, value in seen.coordinates}
    rest = {word for label in seen.labels if "=" not in label for word in words(label)}
    return wanted == given and set(words(claim.metric)) <= rest


# --- numbers ---------------------------------------------------------------------------------------------------------


def observations_of(response: Response) -> list[Observation]:
    """The reported numbers with their names as labels; sorted, so that their order has no say."""
    found = []
    for name, value in sorted(response.conclusion.numbers.items()):
        text = f"{value:.12g}"
        decimals = len(text.partition(".")[2]) if "e" not in text else 12
        number = Number(value, text, decimals, False, None, 0, len(text))
        parts = [part.strip() for part in re.split(r"\s*[|/,;:()\[\]]\s*|\s+-\s+|\.(?=\D)", name) if part.strip()]
        pairs = [tuple(side.strip() for side in part.split("=", 1)) for part in parts if "=" in part]
        labels = [part for part in parts if "=" not in part] or [name.replace("=", " ")]
        found.append(observe(number, labels=labels, coordinates=[(a, b) for a, b in pairs], where=f"numbers: {name}"))
    return found


def _judged(claim: NumericClaim, match: ClaimMatch, response: Response) -> ItemVerdict:
    where = "response.json: conclusion.numbers"
    quote = match.where.removeprefix("numbers: ")
    if set(metric_name(claim.metric).core) & TIMES and match.observed:
        return _number(claim, Verdict.PASS, "reported; time and memory depend on the machine", quote, where)
    if match.verdict is Verdict.UNKNOWN and not match.observed:
        if found := _in_text(claim, response.conclusion.text):
            return _number(
                claim, Verdict.PASS, "stated in the text of the conclusion", found, "response.json: conclusion.text"
            )
        return _number(claim, Verdict.FAIL, f"not reported ({match.reason})")
    if match.verdict is Verdict.UNKNOWN and "labels fit only in part" in match.reason:
        return _number(claim, Verdict.UNKNOWN, match.reason, quote, where)
    return _number(claim, match.verdict, match.reason, quote, where)


def _number(claim: NumericClaim, verdict: Verdict, reason: str, quote: str = "", where: str = "") -> ItemVerdict:
    return ItemVerdict(
        item=claim_item(claim), text=_claim_text(claim), verdict=verdict, reason=reason, quote=quote, where=where
    )


def _in_text(claim: NumericClaim, text: str) -> str:
    """A sentence that names all conditions of the claim and holds one number, which is in its band."""
    if not claim.conditions:
        return ""
    for told in re.split(r"(?<=[.;!?])\s+|\n", text):
        sentence = plain_exponents(told[:LONGEST_SENTENCE])
        if all(says(sentence, condition.value) for condition in claim.conditions):
            numbers = [
                n for n in find_numbers(sentence) if not any(f"{n.value:g}" == c.value for c in claim.conditions)
            ]
            if len(numbers) == 1 and _in_band(claim, numbers[0].value):
                return told.strip()[:200]
    return ""
