"""Conclusions with known labels, made from published outcomes by mechanical changes of their words and numbers.

Each published outcome becomes conclusions that say the same (other words, sentences in another order, sides turned
round, asides dropped, fractions for percent, numbers a little off) and conclusions that do not (opposite words,
negation in several forms, exchanged sides, `no difference`, other numbers, another paper's outcome). The labels follow
from the change, no person set them: they measure whether a judge sees what was changed, not whether it understands what
people write freely.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

__all__ = ["Variant", "variants_of"]

Label = Literal["pass", "fail"]


class Variant(NamedTuple):
    """A conclusion and what must be said of it."""

    kind: str
    label: Label
    text: str


_FRAME: Final = re.compile(
    r"\b(?:It is (?:expected|anticipated)(?: that)?|The expectation is that|The expected outcome is that|"
    r"Based on [^,]*, |"
    r"The (?:results|experiment) (?:should|are expected to|is expected to) (?:demonstrate|reveal|show) that)\s*", re.I,
)  # fmt: skip
_SYNONYMS: Final = (
    (r"\boutperforms?\b", "does better than"), (r"\bhigher\b", "greater"), (r"\blower\b", "smaller"),
    (r"\bincreases\b", "goes up"), (r"\bdecreases\b", "goes down"), (r"\bimprovements\b", "gains"),
    (r"\bcompared to\b", "relative to"), (r"\bachieves?\b", "obtains"), (r"\bsignificantly\b", "clearly"),
    (r"\bapproximately\b", "about"), (r"\bdemonstrates?\b", "shows"), (r"\bsubstantial\b", "considerable"),
    (r"\bcomparable\b", "similar"), (r"\bsuperior\b", "better"), (r"\bconsistently\b", "always"),
    (r"\bdegrades\b", "deteriorates"),
)  # fmt: skip
_ANTONYMS: Final = {
    "higher": "lower", "increase": "decrease", "increases": "decreases", "increasing": "decreasing",
    "increased": "decreased",
    "outperform": "underperform", "outperforms": "underperforms", "better": "worse", "superior": "inferior",
    "improve": "degrade", "improves": "degrades", "improved": "degraded", "improvement": "degradation",
    "improvements": "degradations", "improving": "degrading", "highest": "lowest", "best": "worst", "faster": "slower",
    "more": "less", "larger": "smaller", "above": "below", "enhance": "impair", "enhances": "impairs", "rise": "fall",
    "rises": "falls", "gain": "loss", "gains": "losses", "reduce": "raise", "reduces": "raises", "drop": "rise",
    "drops": "rises", "boost": "hurt", "boosts": "hurts", "stronger": "weaker", "greater": "smaller",
    "robust": "fragile",
    "retains": "loses", "success": "failure", "successful": "failed", "successfully": "unsuccessfully",
}  # fmt: skip
_BOTH: Final = {**{value: key for key, value in _ANTONYMS.items()}, **_ANTONYMS}
_COMPARED: Final = re.compile(
    r"(?P<a>[A-Z][\w/+()-]*(?: [A-Z][\w/+()-]*){0,2}) (?:is expected to |will |should |consistently |significantly )*"
    r"(?P<verb>outperforms?|surpass(?:es)?|beats?) (?P<b>(?:the |other |all |"
    r"compared )*[\w/+()-]+(?: [\w/+()-]+){0,3}?)(?=[.,;]| on | in | at | across | by |$)"
)


def variants_of(text: str, others: Sequence[str], seed: int) -> list[Variant]:
    """The labelled conclusions of one outcome; a change that changes nothing gives none.

    Args:
        text: the outcome as published.
        others: outcomes of other papers.
        seed: of what is drawn.
    """
    drawn = random.Random(seed)
    plain = _reported(text)
    makers: list[tuple[str, Label, Callable[[str], str]]] = [
        ("reported", "pass", lambda t: t), ("synonyms", "pass", _synonyms),
        ("reordered", "pass", lambda t: _reordered(t, drawn)),
        ("asides dropped", "pass", _short), ("sides turned", "pass", _turned), ("fractions", "pass", _fractions),
        ("numbers 1 % off", "pass", lambda t: _numbers(t, 1.01)), ("opposite words", "fail", _opposite),
        ("negated", "fail", _negated), ("sides exchanged", "fail", _exchanged),
        ("no difference", "fail", _no_difference),
        ("numbers a third off", "fail", lambda t: _numbers(t, 1.34)),
        ("another paper's", "fail", lambda _: _reported(drawn.choice(list(others)))),
        ("clause order", "pass", lambda t: _ordered(t, exchanged=False)),
        ("passive", "pass", lambda t: _passive(t, exchanged=False)),
        ("not failing", "pass", lambda t: _verbs(t, "{does} not fail to {verb}")),
        ("clause order exchanged", "fail", lambda t: _ordered(t, exchanged=True)),
        ("passive exchanged", "fail", lambda t: _passive(t, exchanged=True)),
        ("fails to", "fail", lambda t: _verbs(t, "fail{s} to {verb}")),
        ("no longer", "fail", lambda t: _verbs(t, "no longer {verb}{s}")),
        ("negated, other words", "fail", lambda t: _both(t, _negated, _synonyms)),
        ("one opposite word", "fail", lambda t: _one_opposite(t, drawn)),
        ("other opposites", "fail", _other_opposites),
    ]  # fmt: skip
    found = [Variant("verbatim", "pass", text)]
    for kind, label, make in makers:
        changed = make(plain)
        if changed and (changed != plain or kind == "reported"):
            found.append(Variant(kind, label, changed))
    return found


def _sentences(text: str) -> list[str]:
    return [
        part.strip()
        for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n+", text)
        if part.strip() and not part.strip().startswith("|")
    ]


def _reported(text: str) -> str:
    """As an agent would report: what was expected, was found."""
    bare = _FRAME.sub("", text)
    bare = re.sub(r"\b(?:is|are) (?:expected|anticipated|hypothesized) to be\b", "was", bare)
    bare = re.sub(
        r"\b(?:is|are) (?:expected|anticipated|hypothesized) to\b|\b(?:will|should|would)(?! not)\b", "", bare
    )
    return "\n".join(f"We found: {' '.join(line.split())}" for line in _sentences(bare))


def _synonyms(text: str) -> str:
    for pattern, word in _SYNONYMS:
        text = re.sub(pattern, word, text)
    return text


def _reordered(text: str, drawn: random.Random) -> str:
    lines = text.split("\n")
    return "\n".join(drawn.sample(lines, len(lines)))


def _short(text: str) -> str:
    return re.sub(
        r"\s*\([^()]*\)|, (?:thereby|thus|confirming|demonstrating|indicating|supporting|highlighting|"
        r"validating)[^.\n]*",
        "",
        text,
    )


def _turned(text: str) -> str:
    """`B is outperformed`: the first comparison told from the other side, nothing else."""
    match = _COMPARED.search(text)
    return f"{match['b'][0].upper()}{match['b'][1:]} performs worse than {match['a']}." if match else ""


def _exchanged(text: str) -> str:
    match = _COMPARED.search(text)
    return f"{match['b'][0].upper()}{match['b'][1:]} performs better than {match['a']}." if match else ""


def _no_difference(text: str) -> str:
    match = _COMPARED.search(text)
    return f"There is no significant difference between {match['a']} and {match['b']}." if match else ""


def _fractions(text: str) -> str:
    return re.sub(r"(?<![\w.])(\d{1,3}(?:\.\d+)?)\s?%", lambda m: f"{float(m[1]) / 100:.6g}", text)


def _numbers(text: str, factor: float) -> str:
    """Every measured number times a factor; counts below 20 and what belongs to a name stay."""

    def changed(match: re.Match[str]) -> str:
        value = float(match[0])
        decimals = len(match[0].partition(".")[2])
        if not decimals and value < 20:
            return match[0]
        moved = value / factor if value * factor > 100 >= value else value * factor
        return f"{moved:.{max(decimals, 1)}f}"

    return re.sub(r"(?<![\w.,@/-])\d+(?:\.\d+)?(?=%|\s|[.,;)](?:\s|$))(?!\s?(?:K|M|B)\b)", changed, text)


_TURNED: Final = re.compile(rf"\b(?:{'|'.join(sorted(_BOTH, key=len, reverse=True))})\b", re.I)


def _opposite(text: str) -> str:
    """The first directed word of every sentence: two turned words (`less noise, less error`) may say the same."""
    return "\n".join(
        _TURNED.sub(lambda m: _cased(m[0], _BOTH.get(m[0].lower())), line, count=1) for line in text.split("\n")
    )


def _cased(word: str, other: str | None) -> str:
    return word if other is None else other.capitalize() if word[0].isupper() else other


def _one_opposite(text: str, drawn: random.Random) -> str:
    """One directed word of the whole text, drawn."""
    places = list(_TURNED.finditer(text))
    if not places:
        return text
    match = drawn.choice(places)
    return f"{text[: match.start()]}{_cased(match[0], _BOTH.get(match[0].lower()))}{text[match.end() :]}"


_OTHER_ANTONYMS: Final = {
    "stable": "unstable", "effective": "ineffective", "effectively": "ineffectively", "efficient": "inefficient",
    "consistent": "inconsistent", "consistently": "rarely", "accurate": "inaccurate", "strong": "weak",
    "positive": "negative", "always": "never", "all": "none of the", "every": "no", "significant": "insignificant",
    "significantly": "insignificantly", "advantage": "disadvantage", "superiority": "inferiority",
    "converges": "diverges", "converge": "diverge", "confirms": "refutes", "confirm": "refute",
    "validates": "contradicts", "supports": "contradicts", "reliable": "unreliable",
    "upward": "downward", "preserves": "destroys", "preserving": "destroying",
    "maintains": "loses", "maintaining": "losing", "substantial": "negligible", "greatest": "smallest",
}  # fmt: skip
"""Opposites that change an outcome wherever they stand; not `large` or `with`, which stand in names and conditions."""
_OTHER: Final = re.compile(rf"\b(?:{'|'.join(sorted(_OTHER_ANTONYMS, key=len, reverse=True))})\b", re.I)


def _other_opposites(text: str) -> str:
    """The first word of every sentence that has an opposite of another kind (`stable`, `always`, `before`)."""
    return "\n".join(
        _OTHER.sub(lambda m: _cased(m[0], _OTHER_ANTONYMS[m[0].lower()]), line, count=1) for line in text.split("\n")
    )


_NAME: Final = r"[A-Z][\w/+()-]*(?: [A-Z][\w/+()-]*){0,2}"
_RELATED: Final = re.compile(
    rf"(?P<a>{_NAME}) (?P<rest>(?:is|are|was|were|achieves?|has|have|shows?|yields?|performs?|obtains?|exhibits?|"
    r"reach(?:es)?|provides?|produces?|maintains?)\b[^.,;]{0,60}?\b(?:higher|lower|better|worse|greater|smaller|faster|"
    r"slower|fewer|less|more|larger|superior)\b[^.,;]{0,40}?) (?:than|compared (?:to|with)|relative to) "
    r"(?P<b>(?:the |other |all )*[\w/+()-]+(?: [\w/+()-]+){0,3}?)(?=[.,;\n]| on | in | at | across | by |$)"
)
"""`A achieves a higher accuracy than B`."""


def _ordered(text: str, *, exchanged: bool) -> str:
    """`Compared with B, A achieves a higher accuracy`: the first comparison told with its other side first."""
    match = _RELATED.search(text)
    if match is None:
        return ""
    one, two = (match["b"], match["a"]) if exchanged else (match["a"], match["b"])
    return f"Compared with {two}, {one} {match['rest']}."


def _passive(text: str, *, exchanged: bool) -> str:
    """`B is outperformed by A`."""
    match = _COMPARED.search(text)
    if match is None:
        return ""
    one, two = (match["b"], match["a"]) if exchanged else (match["a"], match["b"])
    return f"{two[0].upper()}{two[1:]} is outperformed by {one}."


_VERB: Final = re.compile(
    r"\b(?P<verb>outperform|achieve|improve|yield|demonstrate|exhibit|maintain|reduce|increase|decrease|enhance|show|"
    r"produce|perform|provide|reach|lead|boost|degrade|drop|surpass|benefit|contribute|remain|retain|display|"
    r"retrieve|train)(?P<s>s|es)?\b"
)


def _negated(text: str) -> str:
    """The first verb of every sentence in the negative."""
    return "\n".join(
        _VERB.sub(lambda m: f"{'does' if m['s'] else 'did'} not {m['verb']}", line, count=1)
        for line in text.split("\n")
    )


def _verbs(text: str, form: str) -> str:
    """The first verb of every sentence in another form."""
    return "\n".join(
        _VERB.sub(
            lambda m: form.format(does="does" if m["s"] else "did", verb=m["verb"], s=m["s"] or ""), line, count=1
        )
        for line in text.split("\n")
    )


def _both(text: str, first: Callable[[str], str], second: Callable[[str], str]) -> str:
    """Two changes, where each of them changes something."""
    once = first(text)
    return second(once) if once != text and second(once) != once else ""
