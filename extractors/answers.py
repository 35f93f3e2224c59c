"""The gate that keeps answers out of what an agent reads: does a text state the outcome it asks for?"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Final

from extractors.claims import Number, find_numbers, normalize
from pipeline.task import Draft, NumericClaim

__all__ = ["states_answer"]

_WINNER: Final = re.compile(
    r"\b(?:outperform\w*|beats?|beating|surpass\w*|superior|inferior|underperform\w*|exceeds?|dominates?|wins\b|"
    r"tops\b|improvements? (?:of|over) .{0,40}?(?:is|are)\b|up to \d[\d.]*\s?%|(?:significant|dramatical|"
    r"substantial|great|marked|slight|considerab|notab|clear|consistent)ly "
    r"(?:reduc|improv|increas|decreas|boost|lower|enhanc|surpass|degrad|alleviat)\w*|"
    r"(?:does|do|did) not (?:improve|help|hurt|degrade|reduce|increase|change)\b|(?:significant|large|clear|"
    r"consistent|substantial|notable) (?:\w+ )?(?:improvement|gain|drop|"
    r"decrease|increase|"
    r"reduction|boost)s?\b|can (?:\w+ly )?(?:boost|improve|increase|reduce|hurt)\b|improv(?:es|ed|"
    r"ing) (?:\w+ ){0,3}?(?:accurac\w+|performances?|results?|scores?|quality)\b|(?:is|are|was|"
    r"were) (?:\w+ly )?improved|best[- ]perform\w+|(?:top|best) scorers?|ahead of(?! time)|ranks? (?:first|"
    r"second|last|highest|lowest|best|worst)|leads? by|"
    r"state[- ]of[- ]the[- ]art results?|advantages?|improves? (?:up)?on|(?:is|are|was|were|performs?|works?|does|do) "
    r"(?:\w+ly |much |slightly |far )?(?:better|worse|best|worst|higher|lower|faster|slower|superior|stronger|weaker)|"
    r"(?:better|worse|higher|lower|faster|slower|stronger|weaker|larger|smaller|more \w+|less \w+|fewer \w+)"
    r"(?: \w+){0,3} than|(?!(?:other|rather)\b)\w+er than\b|\d\s?(?:×|x|times) (?:\w+ )?\w+er\b|differs? by|"
    r"hardly matters?|(?:a|the) (?:reduction|"
    r"improvement|increase|"
    r"decrease) of|\d\s?%? (?:percentage )?(?:points? )?(?:above|below|against|versus|ahead)\b|achiev\w+ (?:the |a |"
    r"an )?(?:best|highest|lowest|better|higher|lower|comparable|competitive)|"
    r"(?:increases?|decreases?|improves?|degrades?|drops?|rises?|falls?|reduces?|boosts?|hurts?)"
    r"(?: \w+){0,4} (?:monotonic\w*|significantly|dramatically|substantially|slightly|steadily|sharply|consistently|"
    r"by|from|to \d)|not (?:statistically )?(?:significant|separable|distinguishable)|gains? of|no (?:gain|benefit|"
    r"effect))",
    re.IGNORECASE,
)
_ASKS: Final = re.compile(r"\b(?:whether|which|if|does|do|did|is|are|how|what|why|will|would|can)\b", re.IGNORECASE)
_STATED: Final = re.compile(
    r"\b(?:confirms?|demonstrates?|reveals?|proves?|shows? that|we (?:find|found|observe) that|conclude[sd]?)\b",
    re.IGNORECASE,
)


def _reveals(number: Number, claim: NumericClaim) -> bool:
    """The claimed number, its percentage or fraction, or a rounding of it to at least three significant digits."""
    value, target = Decimal(str(abs(number.value))), Decimal(str(abs(claim.value)))
    if value == target:
        # a bare small integer is a count far more often than a result, also where the result is `0.00`: seven harmless
        # zeros of a method (a seed, a step, `between 0 and 1`) were refused for it
        return number.decimals > 0 or target >= 10 or number.unit is not None
    if claim.decimals > 0 and target != 0 and value in (target * 100, target / 100):
        return True
    if number.decimals >= 2 and number.decimals < claim.decimals:
        rounded = target.quantize(Decimal(10) ** -number.decimals, ROUND_HALF_EVEN)
        digits = str(rounded).replace(".", "").lstrip("0")
        return rounded == value and len(digits) >= 3
    return False


def states_answer(text: str, draft: Draft) -> list[str]:
    """Say how `text` gives the draft's outcome away; an empty list when it does not.

    Looked for: a claimed number (also as a percentage, a fraction or rounded), a winner or a trend (`A outperforms B`,
    `decreases monotonically`), a finding (`confirms that`), and words taken over from the expected outcome's own
    statements. Numbers that are conditions of the claims (`n = 50,000`) or part
    of a metric's name (`top 20`) belong to the question and are allowed.

    Args:
        text: what an agent would read.
        draft: the draft whose expected outcome must stay hidden.

    Returns:
        One reason per give-away, in the order found.
    """
    allowed = {
        str(Decimal(str(abs(number.value))).normalize())
        for claim in draft.expected.claims
        for text in (claim.metric, *(f"{condition.name} {condition.value}" for condition in claim.conditions))
        for number in find_numbers(text)
    }
    reasons: list[str] = []
    for number in find_numbers(text):
        if str(Decimal(str(abs(number.value))).normalize()) in allowed:
            continue
        for claim in draft.expected.claims:
            if _reveals(number, claim):
                reasons.append(f"states {number.text}, the {claim.metric} of claim {claim.id}")
                break
    for sentence in re.split(r"(?<=[.!?])\s+", text):
        match = _WINNER.search(sentence) or _STATED.search(sentence)
        if match is not None and not _ASKS.search(sentence[: match.start()]):
            reasons.append(f"states a finding: `{match.group()}`")
    plain = normalize(text).lower()
    quotes = re.findall(r"“([^”]{30,})”", draft.expected.text)
    reasons += [f"repeats a result sentence: `{q[:60]}`" for q in quotes if normalize(q).lower() in plain]
    return reasons
