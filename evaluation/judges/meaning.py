"""Is a conclusion right in meaning? Its statements and numbers against the expected outcome's claims and words.

Claims come first: what can be looked up among expected numbers is. Otherwise the conclusion's propositions are held
against those of the expected outcome's own words. Anything contradicted is wrong; half of what was expected, said, is
right; the rest is unknown. Non-goal: the numbers' own criteria (`conclusion`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from evaluation.judges.agreement import Comparison, compare_outcomes
from evaluation.judges.claim_logic import axes_of, holds, orderings, told
from evaluation.judges.lexicon import content
from evaluation.judges.propositions import Proposition, read_propositions
from evaluation.judges.quantities import reported_quantity
from evaluation.judges.statements import read_statements
from evaluation.judges.told_tables import read_tables
from evaluation.judges.wording import turned_sentence
from evaluation.submission import Response
from evaluation.verdicts import ItemVerdict
from pipeline.task import ClaimMatch, ExperimentTruth, Verdict
from pipeline.text import shorten

__all__ = ["MEANING", "judge_meaning"]

MEANING: Final = "conclusion:meaning"
_ENOUGH: Final = 0.5
"""Share of the expected propositions that a conclusion must say: it sums up, and leaves out side remarks."""


def judge_meaning(truth: ExperimentTruth, response: Response, matches: Sequence[ClaimMatch]) -> ItemVerdict:
    """Right when nothing that is said or ordered contradicts the expected outcome, and enough confirms it.

    Args:
        truth: the expected outcome.
        response: what the agent wrote; its conclusion is not empty.
        matches: the expected numbers as they were found among the reported ones.
    """
    text = response.conclusion.text
    rest = _without_quotation(text, truth.expected.text)
    axes = axes_of(truth)
    said = read_statements(rest, axes) if truth.expected.claims else []
    checked = [(statement, holds(statement, truth, axes)) for statement in said]
    wrong = [statement for statement, answer in checked if answer is False]
    right = [statement for statement, answer in checked if answer is True]
    kept, broken = orderings(truth, matches)
    if wrong:
        reason = f"says what the expected outcome contradicts ({told(wrong[0])})"
        return _meant(truth, Verdict.FAIL, reason, wrong[0].quote)
    if broken:
        return _meant(truth, Verdict.FAIL, f"its numbers contradict {len(broken)} expected comparison(s): {broken[0]}")
    if turned := turned_sentence(rest, truth.expected.text):
        return _meant(truth, Verdict.FAIL, f"tells an expected sentence with {turned.how}", turned.said)
    if right:
        reason = f"says what is expected ({told(right[0])}), and nothing against it"
        return _meant(truth, Verdict.PASS, reason, right[0].quote)
    return _in_words(truth, response, rest, matches, kept)


def _without_quotation(text: str, expected: str) -> str:
    """The conclusion without the expected outcome's own words, where it holds them whole."""
    plain, wanted = " ".join(text.split()), " ".join(expected.split())
    found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", plain, re.I) if wanted else None
    return f"{plain[: found.start()]}\n{plain[found.end() :]}" if found else text


def _in_words(
    truth: ExperimentTruth, response: Response, rest: str, matches: Sequence[ClaimMatch], kept: int
) -> ItemVerdict:
    """Nothing could be looked up among claims: words against words."""
    quoted = rest != response.conclusion.text
    said = [*read_propositions(rest), *_reported(truth, response)]
    tables = read_tables(truth.expected.text) if not truth.expected.claims else []
    found = compare_outcomes(said, [*read_propositions(truth.expected.text), *tables])
    if found.contradicted:
        one, two, how = found.contradicted[0]
        reason = f"contradicts what is expected ({how}): {shorten(two.quote, 160)}"
        return _meant(truth, Verdict.FAIL, reason, one.quote)
    if quoted:
        return _meant(truth, Verdict.PASS, "states the expected outcome in its own words", truth.expected.text[:200])
    if kept:
        reason = f"its numbers are in the expected order ({kept} comparison(s)), and nothing speaks against it"
        return _meant(truth, Verdict.PASS, reason)
    if not truth.expected.comparisons and matches and all(match.verdict is Verdict.PASS for match in matches):
        return _meant(truth, Verdict.PASS, "the outcome is its numbers, and all of them are right")
    if tables and found.cells >= _ENOUGH * len(tables):
        return _meant(truth, Verdict.PASS, f"states {found.cells} of the {len(tables)} numbers that are expected")
    return _by_share(truth, found)


def _by_share(truth: ExperimentTruth, found: Comparison) -> ItemVerdict:
    if not found.agreed:
        return _meant(truth, Verdict.UNKNOWN, "says nothing that could be compared with what is expected")
    quote = found.agreed[0][0].quote
    share = f"{found.covered} of {found.expected} things that are expected"
    if found.expected and found.covered >= _ENOUGH * found.expected:
        return _meant(truth, Verdict.PASS, f"says {share}, and nothing against the others", quote)
    return _meant(truth, Verdict.UNKNOWN, f"says only {share}, and nothing against the others", quote)


def _reported(truth: ExperimentTruth, response: Response) -> list[Proposition]:
    """The reported numbers as statements, where the outcome has no claims that they were matched with."""
    if truth.expected.claims:
        return []
    return [
        Proposition(quote=f"{name}: {value:.12g}", topic=content(name), quantities=(reported_quantity(name, value),))
        for name, value in sorted(response.conclusion.numbers.items())
    ]


def _meant(truth: ExperimentTruth, verdict: Verdict, reason: str, quote: str = "") -> ItemVerdict:
    return ItemVerdict(
        item=MEANING,
        text=shorten(truth.expected.text, 500),
        verdict=verdict,
        reason=reason,
        quote=quote,
        where="response.json: conclusion.text" if quote else "",
    )
