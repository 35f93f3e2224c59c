"""The keyless judge of conclusions (C): is the answer right in meaning, and are its numbers in the task's bands?

One criterion for the meaning and one for each expected number. Numbers are found by their names alone, never by their
values (`pipeline.validation.matching`), so that a number in the right band under the wrong name meets nothing. The
meaning is read from the orderings that the reported numbers have and from comparative statements of the text; where
neither says anything, it stays unknown.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from evaluation.judges.statements import Statement, read_statements
from evaluation.submission import Response
from evaluation.verdicts import ItemVerdict
from pipeline.task import ClaimMatch, ExperimentTruth, NumericClaim, Verdict
from pipeline.text import shorten
from pipeline.validation.numbers import Number, find_numbers
from pipeline.validation.observation import Observation, observe
from pipeline.validation.outcome import match_claims
from pipeline.validation.tokens import SHARES, TIMES, metric_name, words

__all__ = ["MEANING", "claim_item", "judge_conclusion", "observations_of"]

MEANING: Final = "conclusion:meaning"
_LOWER_IS_BETTER: Final = frozenset(
    {
        "error",
        "loss",
        "mse",
        "rmse",
        "mae",
        "nll",
        "perplexity",
        "fid",
        "wer",
        "cer",
        "distance",
        "regret",
        "ece",
        "brier",
        "kl",
        "divergence",
        "bias",
        "variance",
        "time",
        "latency",
    }
)
_SHARE: Final = 0.5
"""Share of the conditions that a statement is about in which it must hold; statements sum up, and ties are common."""


_NUMBER: Final = re.compile(r"[-+]?[\d.]+%?")


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
    return (_meaning(truth, response, matches), *items)


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
    share = (claim.unit or "").strip() == "%" or bool(metric_name(claim.metric).core & SHARES)
    scaled = [seen.value * scale for scale in ((1.0, 100.0, 0.01) if share else (1.0,))]
    value = min(scaled, key=lambda one: abs(one - claim.value))
    slack = 1e-9 * max(1.0, abs(claim.value))
    holds = claim.band.low - slack <= value <= claim.band.high + slack
    reason = f"reported {seen.value:.10g}, expected {claim.text} ({claim.band.low:.10g} to {claim.band.high:.10g})"
    verdict = Verdict.PASS if holds else Verdict.FAIL
    return ClaimMatch(claim=claim.id, verdict=verdict, observed=(value,), where=seen.where, reason=reason)


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
    from evaluation.judges.statements import says

    if not claim.conditions:
        return ""
    for sentence in re.split(r"(?<=[.;!?])\s+|\n", text):
        if all(says(sentence, condition.value) for condition in claim.conditions):
            numbers = [
                n for n in find_numbers(sentence) if not any(f"{n.value:g}" == c.value for c in claim.conditions)
            ]
            if len(numbers) == 1 and any(claim.band.holds(numbers[0].value * scale) for scale in (1.0, 100.0)):
                return sentence.strip()[:200]
    return ""


# --- meaning ---------------------------------------------------------------------------------------------------------


def _meaning(truth: ExperimentTruth, response: Response, matches: Sequence[ClaimMatch]) -> ItemVerdict:  # noqa: PLR0911 - one answer a case
    """Right when nothing that is said or ordered contradicts the expected outcome, and something confirms it."""
    text = response.conclusion.text
    expected = " ".join(truth.expected.text.lower().split())
    if expected and expected in " ".join(text.lower().split()):
        return _meant(truth, Verdict.PASS, "states the expected outcome in its own words", text.strip()[:200])
    axes = _axes(truth)
    said = read_statements(text, axes)
    checked = [(statement, _holds(statement, truth, axes)) for statement in said]
    wrong = [statement for statement, holds in checked if holds is False]
    right = [statement for statement, holds in checked if holds is True]
    kept, broken = _orderings(truth, matches)
    if wrong:
        return _meant(
            truth, Verdict.FAIL, f"says what the expected outcome contradicts ({_told(wrong[0])})", wrong[0].quote
        )
    if broken:
        return _meant(truth, Verdict.FAIL, f"its numbers contradict {len(broken)} expected comparison(s): {broken[0]}")
    if right:
        return _meant(
            truth, Verdict.PASS, f"says what is expected ({_told(right[0])}), and nothing against it", right[0].quote
        )
    if kept:
        return _meant(
            truth,
            Verdict.PASS,
            f"its numbers are in the expected order ({kept} comparison(s)), and nothing speaks against it",
        )
    if not truth.expected.comparisons and matches and all(match.verdict is Verdict.PASS for match in matches):
        return _meant(truth, Verdict.PASS, "the outcome is its numbers, and all of them are right")
    return _meant(truth, Verdict.UNKNOWN, "no comparison that could be read, in words or in numbers")


def _meant(truth: ExperimentTruth, verdict: Verdict, reason: str, quote: str = "") -> ItemVerdict:
    return ItemVerdict(
        item=MEANING,
        text=shorten(truth.expected.text, 500),
        verdict=verdict,
        reason=reason,
        quote=quote,
        where="response.json: conclusion.text" if quote else "",
    )


def _told(statement: Statement) -> str:
    other = f" {statement.other}" if statement.other else ""
    return f"{statement.subject} {statement.relation}{other}"


def _axes(truth: ExperimentTruth) -> dict[str, str]:
    """Known name -> its variable: values of the independent variables, coordinates of the claims, variables' names."""
    found = {variable.name: variable.name for variable in truth.independent}
    found |= {value: variable.name for variable in truth.independent for value in variable.values}
    found |= {c.name: c.name for claim in truth.expected.claims for c in claim.conditions}
    found |= {c.value: c.name for claim in truth.expected.claims for c in claim.conditions}
    return dict(sorted(found.items()))


def _orderings(truth: ExperimentTruth, matches: Sequence[ClaimMatch]) -> tuple[int, list[str]]:
    """(comparisons that the reported numbers keep, those that they break)."""
    values = {match.claim: match.observed[0] for match in matches if match.observed}
    kept, broken = 0, []
    for left, relation, right in truth.expected.comparisons:
        if left in values and right in values:
            one, two = values[left], values[right]
            holds = {"<": one < two, ">": one > two, "=": True}[relation]
            if holds:
                kept += 1
            else:
                broken.append(f"{left} {relation} {right}")
    return kept, broken


def _holds(statement: Statement, truth: ExperimentTruth, axes: Mapping[str, str]) -> bool | None:
    """Does a statement agree with the claims? None where the claims, or the expected text, do not say."""
    if _expected(statement, truth, axes):
        return True
    claims = truth.expected.claims
    answer = _by_claims(statement, claims, axes) if claims else None
    if answer is None:
        answer = _by_text(statement, truth, axes)
    if answer is None:
        return None
    return not answer if statement.negated else answer


def _expected(statement: Statement, truth: ExperimentTruth, axes: Mapping[str, str]) -> bool:
    """Does the expected outcome say the same, read by the same patterns?"""
    return any(
        (own.subject, own.relation, own.other, own.negated)
        == (statement.subject, statement.relation, statement.other, statement.negated)
        and set(own.where) == set(statement.where)
        for own in read_statements(truth.expected.text, axes)
    )


def _by_claims(statement: Statement, claims: Sequence[NumericClaim], axes: Mapping[str, str]) -> bool | None:
    """Compare values between claims that differ only in the coordinate that the subject is a value of.

    A statement without conditions sums up: it is right when it holds in half of the conditions, wrong when it holds in
    none; between the two it may be about conditions that it names in other words, and nothing is said.
    """
    axis = axes.get(statement.subject, "")
    if statement.relation in {"rises", "falls"}:
        return _trend(statement, claims, axes)
    groups: dict[tuple[str, tuple[tuple[str, str], ...]], dict[str, float]] = {}
    for claim in claims:
        here = next((c.value for c in claim.conditions if c.name == axis), None)
        rest = tuple(sorted((c.name, c.value) for c in claim.conditions if c.name != axis))
        if here is not None and _applies(statement, rest, axes):
            groups.setdefault((claim.metric, rest), {})[here] = claim.value
    votes = [v for (metric, _), group in sorted(groups.items()) if (v := _vote(statement, group, metric)) is not None]
    if not votes:
        return None
    share = sum(votes) / len(votes)
    return True if share >= _SHARE else False if share == 0 else None


def _applies(statement: Statement, rest: tuple[tuple[str, str], ...], axes: Mapping[str, str]) -> bool:
    """Is a group of claims among those that the statement is about? A named value narrows its own variable."""
    wanted: dict[str, set[str]] = {}
    for name in statement.where:
        if axes.get(name, name) != name:
            wanted.setdefault(axes[name], set()).add(name)
    return all(value in wanted[name] for name, value in rest if name in wanted)


def _vote(statement: Statement, group: dict[str, float], metric: str) -> bool | None:
    subject = next((value for name, value in sorted(group.items()) if _same(name, statement.subject)), None)
    if subject is None or len(group) < 2:
        return None
    lower = bool(metric_name(metric).core & _LOWER_IS_BETTER)
    literal = re.search(r"\b(?:high|low|larg|small|great|above|below|exceed)\w*", statement.quote, re.I) is not None
    sign = -1.0 if lower and not literal else 1.0  # `better` depends on the metric, `higher` does not
    values = [sign * value for value in group.values()]
    if statement.relation == "best":
        return sign * subject >= max(values)
    if statement.relation == "worst":
        return sign * subject <= min(values)
    other = next((value for name, value in sorted(group.items()) if _same(name, statement.other)), None)
    if other is None or other == subject:
        return None
    above = sign * subject > sign * other
    return above if statement.relation == "above" else not above


def _trend(statement: Statement, claims: Sequence[NumericClaim], axes: Mapping[str, str]) -> bool | None:
    """`accuracy falls as p grows`: first against last value along a numeric coordinate."""
    named = {axes[name] for name in (statement.subject, *statement.where) if axes.get(name) == name}
    narrowed = [name for name in (statement.subject, *statement.where) if axes.get(name, name) != name]
    groups: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    for claim in claims:
        for condition in claim.conditions:
            if not _NUMBER.fullmatch(condition.value) or (named and condition.name not in named):
                continue
            rest = tuple(sorted((c.name, c.value) for c in claim.conditions if c is not condition))
            plain = Statement("", "rises", "", tuple(n for n in narrowed if axes[n] != condition.name), "")
            if _applies(plain, rest, axes):
                key = (("", claim.metric), ("axis", condition.name), *rest)
                groups.setdefault(key, []).append((float(condition.value.rstrip("%")), claim.value))
    votes = []
    for _, series in sorted(groups.items()):
        ordered = sorted(series)
        if len(ordered) >= 2 and ordered[0][1] != ordered[-1][1]:
            votes.append(ordered[-1][1] > ordered[0][1])
    if not votes:
        return None
    rising = sum(votes) / len(votes)
    share = rising if statement.relation == "rises" else 1 - rising
    return True if share >= _SHARE else False if share == 0 else None


def _by_text(statement: Statement, truth: ExperimentTruth, axes: Mapping[str, str]) -> bool | None:
    """Against the comparative statements of the expected outcome's own words."""
    opposite = {
        "best": "worst",
        "worst": "best",
        "above": "below",
        "below": "above",
        "rises": "falls",
        "falls": "rises",
    }
    for expected in read_statements(truth.expected.text, axes):
        if expected.negated != statement.negated:
            continue
        same = _same(expected.subject, statement.subject) and _same(expected.other, statement.other)
        swapped = _same(expected.subject, statement.other) and _same(expected.other, statement.subject)
        if (same and expected.relation == statement.relation) or (
            swapped and expected.relation == opposite[statement.relation]
        ):
            return True
        if (same and expected.relation == opposite[statement.relation]) or (
            swapped and expected.relation == statement.relation
        ):
            return False
        if expected.relation == statement.relation and statement.relation in {"best", "worst"} and not expected.where:
            return False
    return None


def _same(left: str, right: str) -> bool:
    return " ".join(re.sub(r"\s*\((?:ours|full|proposed)\)", "", left).lower().split()) == " ".join(
        re.sub(r"\s*\((?:ours|full|proposed)\)", "", right).lower().split()
    )
