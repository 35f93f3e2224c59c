"""Which of a task's own names does a text say: metrics, and values of the conditions in which its claims differ?

A name that an agent gives a number (`caw_n200_accuracy`, `acc[CAW][200]`, `CAW @ n=200`) and a sentence are read
alike. Nothing is known but the task's claims: a value is named by its own words, by the beginning of a word or by
initials that no other value of the same condition shares; a number counts as a number, in percent or as a fraction.
Non-goal: synonyms.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from pipeline.task import NumericClaim
from pipeline.validation.numbers import parse_number
from pipeline.validation.tokens import OPTIONAL

__all__ = ["Axis", "Token", "Vocabulary", "agree", "tokens_of", "vocabulary_of"]

METRIC: Final = ""
"""The axis of the metrics, beside those of the conditions."""
_TOKEN: Final = re.compile(r"\d+(?:\.\d+)?(?:[eE][-+]?\d+(?!\w))?|[^\W\d_]+")
_BORDER: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SIGN: Final = re.compile(r"(?:^|[=(\[,:\s])[-\u2212]$")
_SHORTEST: Final = 3
"""Letters of the beginning of a word that name it."""
_STEM: Final = 4
"""Letters that two forms of a word begin with alike (`centering`, `centring`)."""
_ENDING: Final = 5


class Token(NamedTuple):
    """A word in small letters, or a number."""

    text: str
    number: float | None
    start: int
    end: int


def tokens_of(text: str) -> list[Token]:
    """The words and numbers of a text; borders are what is no letter, changes of case, and letters beside digits."""
    found = []
    for match in _TOKEN.finditer(text):
        if match[0][0].isdigit():
            sign = -1.0 if _SIGN.search(text[max(0, match.start() - 2) : match.start()]) else 1.0
            found.append(Token(match[0], sign * float(match[0]), match.start(), match.end()))
            continue
        start = match.start()
        for piece in _BORDER.split(match[0]):
            found.append(Token(_plain(piece), None, start, start + len(piece)))
            start += len(piece)
    return found


def _plain(word: str) -> str:
    """Small letters without accents; a Greek letter by its name."""
    if len(word) == 1 and (name := unicodedata.name(word, "")).startswith("GREEK"):
        return name.split()[3].lower() if len(name.split()) > 3 else word.lower()
    kept = unicodedata.normalize("NFKD", word)
    return "".join(c for c in kept if not unicodedata.combining(c)).casefold()


@lru_cache(maxsize=65536)
def agree(one: str, two: str) -> bool:
    """Are two words forms of one, or is one the beginning of the other?"""
    if one == two:
        return True
    short, long = sorted((one, two), key=len)
    if len(short) < _SHORTEST or short[0].isdigit():
        return False
    common = next((i for i, (a, b) in enumerate(zip(short, long, strict=False)) if a != b), len(short))
    return common == len(short) or (common >= _STEM and len(long) - common <= _ENDING)


class _Named(NamedTuple):
    level: int
    """3: spelt out; 2: by all words that tell it from the others; 1: by some, by a beginning, or by initials."""
    positions: frozenset[int]
    base: bool
    """Without what a paper adds in brackets: `CAW` for `CAW (full)`, and a part of the names of its variants."""


class Reading(NamedTuple):
    """The values of an axis that a text names, in its order, each with the tokens that name it."""

    named: dict[str, frozenset[int]]
    doubtful: bool = False
    """Another value was named, too, and taken for a part of the name."""

    @property
    def values(self) -> tuple[str, ...]:
        """What is named."""
        return tuple(self.named)

    @property
    def positions(self) -> frozenset[int]:
        """Tokens that name anything."""
        return frozenset().union(*self.named.values())


class Axis:
    """A condition (or the metric) with the values that it has among the claims."""

    def __init__(self, name: str, values: Sequence[str]) -> None:
        self.name = name
        self.words = tuple(token.text for token in tokens_of(name))
        self.values = tuple(dict.fromkeys(values))
        parsed = {value: parse_number(value) for value in self.values}
        self.numbers = {value: number.value for value, number in parsed.items() if number is not None}
        self.numeric = len(self.numbers) == len(self.values)
        self._all = {value: _texts(value) for value in self.values}
        self._vocabulary = frozenset({*self.words, *(word for words in self._all.values() for word in words)})
        self._core = {value: _texts(re.sub(r"\([^()]*\)", " ", value)) or self._all[value] for value in self.values}
        self._inner = {value: _texts(" ".join(re.findall(r"\(([^()]*)\)", value))) for value in self.values}
        self._own = {
            value: tuple(
                word for word in core if not any(word in self._core[other] for other in self.values if other != value)
            )
            or core
            for value, core in self._core.items()
        }
        self._joined = {value: "".join(core) for value, core in self._core.items()}
        self._initials = {
            value: {"".join(w[0] for w in words) for words in (self._core[value], self._own[value]) if len(words) > 1}
            for value in self.values
        }

    def vocabulary(self) -> frozenset[str]:
        """All words of the axis."""
        return self._vocabulary

    def read(
        self, tokens: Sequence[Token], foreign: frozenset[str], neighbours: frozenset[str], *, several: bool
    ) -> Reading:
        """The values that are named.

        Args:
            tokens: of a name or a sentence.
            foreign: words of the other axes; such a word is no form of a word of this one.
            neighbours: names of the other conditions; a number beside one of them is none of this axis.
            several: a sentence, which may name several; of a name the value is taken that it spells out best.
        """
        if self.numeric:
            return self._read_numbers(tokens, neighbours)
        found = {value: named for value in self.values if (named := self._named(value, tokens, foreign)) is not None}
        for value in list(found):  # `coverage` where `worst-fifth coverage` is named
            larger = [o for o in found if set(self._core[value]) < set(self._core[o])]
            if larger and not (
                several and found[value].positions - frozenset().union(*(found[o].positions for o in larger))
            ):
                del found[value]
        kept = found
        if not several:
            kept = {value: named for value, named in found.items() if not named.base} or found
            best = max((named.level for named in kept.values()), default=0)
            kept = {value: named for value, named in kept.items() if named.level == best}
        first = sorted(kept, key=lambda value: min(kept[value].positions))
        reading = Reading({value: kept[value].positions for value in first})
        lost = {i for named in found.values() for i in named.positions} - reading.positions
        return reading._replace(doubtful=bool(lost))

    def _read_numbers(self, tokens: Sequence[Token], neighbours: frozenset[str]) -> Reading:
        """Numbers behind the condition's name first, then those before it, then any; as they are before percents."""
        found: dict[tuple[int, bool], dict[str, frozenset[int]]] = {}
        for i, token in enumerate(tokens):
            before = tokens[i - 1].text if i else ""
            after = tokens[i + 1].text if i + 1 < len(tokens) else ""
            if token.number is None or before in neighbours or (value := self._value(token.number)) is None:
                continue
            rank = 0 if self._is_name(before) else 1 if self._is_name(after) else 2
            into = found.setdefault((rank, self.numbers[value] != token.number), {})
            into[value] = into.get(value, frozenset()) | {i}
        return Reading(found[min(found)] if found else {})

    def phrases(self, tokens: Sequence[Token]) -> frozenset[int]:
        """Tokens of values of several words that are spelt out."""
        runs = [_run("".join(words), tokens) for words in self._all.values() if len(words) > 1]
        return frozenset(i for run in runs if len(run) > 1 for i in run)

    def _is_name(self, word: str) -> bool:
        return any(word == own or (len(own) >= _SHORTEST and agree(word, own)) for own in self.words)

    def _value(self, number: float) -> str | None:
        for scale in (1.0, 100.0, 0.01):
            same = [v for v, n in self.numbers.items() if abs(n - number * scale) <= 1e-9 * max(1.0, abs(n))]
            if len(same) == 1:
                return same[0]
        return None

    def _named(self, value: str, tokens: Sequence[Token], foreign: frozenset[str]) -> _Named | None:
        base = bool(self._inner[value]) and set(self._inner[value]) <= OPTIONAL
        for form, is_base in ((self._all[value], False), (self._inner[value], False), (self._core[value], base)):
            if form and self._shared(form, value) is False and (run := _run("".join(form), tokens)):
                return _Named(3, run, is_base)
        own = self._own[value]
        at = {word: self._forms(word, value, tokens, foreign) for word in own}
        hit = frozenset(i for positions in at.values() for i in positions)
        if all(at.values()):
            only_number = all(word[0].isdigit() for word in own)
            return _Named(1 if only_number else 2, hit, base)
        if any(at[word] and len(word) >= _SHORTEST for word in own):
            return _Named(1, hit, base)
        for i in range(len(tokens)):
            for j in range(i + 1, min(len(tokens), i + 4) + 1):
                if self._short(value, tokens[i:j], foreign):
                    return _Named(1, frozenset(range(i, j)), base)
        return None

    def _shared(self, form: tuple[str, ...], value: str) -> bool:
        return any(form in (self._core[o], self._inner[o], self._all[o]) for o in self.values if o != value)

    def _forms(self, word: str, value: str, tokens: Sequence[Token], foreign: frozenset[str]) -> frozenset[int]:
        exact = frozenset(i for i, token in enumerate(tokens) if _same(token, word))
        if exact:
            return exact
        others = {other for v in self.values if v != value for other in self._all[v]}
        return frozenset(
            i
            for i, token in enumerate(tokens)
            if token.number is None and token.text not in foreign and token.text not in others
            and agree(token.text, word) and not any(agree(token.text, other) for other in others)
        )  # fmt: skip

    def _short(self, value: str, run: Sequence[Token], foreign: frozenset[str]) -> bool:
        """Is a run of tokens the beginning of this value alone, its initials, or a name that it has the initials of?"""
        joined = "".join(token.text for token in run)
        if (len(run) == 1 and joined in foreign) or any(token.number is not None for token in run):
            return False
        if len(run) >= _SHORTEST and "".join(token.text[0] for token in run) == self._joined[value]:
            return True
        return [other for other in self.values if self._shortened(other, joined)] == [value]

    def _shortened(self, value: str, joined: str) -> bool:
        begins = len(joined) >= _SHORTEST and self._joined[value].startswith(joined)
        return begins or joined in self._initials[value]


def _texts(text: str) -> tuple[str, ...]:
    return tuple(f"{token.number:g}" if token.number is not None else token.text for token in tokens_of(text))


def _same(token: Token, word: str) -> bool:
    return (f"{token.number:g}" if token.number is not None else token.text) == word


def _run(joined: str, tokens: Sequence[Token]) -> frozenset[int]:
    """The tokens that are, one behind the other, exactly these letters."""
    for i in range(len(tokens)):
        text = ""
        for j in range(i, len(tokens)):
            token = tokens[j]
            text += f"{token.number:g}" if token.number is not None else token.text
            if text == joined:
                return frozenset(range(i, j + 1))
            if not joined.startswith(text):
                break
    return frozenset()


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The names by which a task tells its claims apart."""

    axes: tuple[Axis, ...]
    """The metric first; then the conditions."""
    places: tuple[tuple[str | None, ...], ...]
    """Of each claim, its value on each axis; None: the claim has no such condition."""

    def read(self, tokens: Sequence[Token], *, several: bool = False) -> tuple[Reading, ...]:
        """What a name (or a sentence: `several`) names, axis by axis."""
        words = [axis.vocabulary() for axis in self.axes]
        phrases = [axis.phrases(tokens) for axis in self.axes]
        found = []
        for index, axis in enumerate(self.axes):
            foreign = frozenset(w for other, own in enumerate(words) if other != index for w in own) - words[index]
            names = frozenset(w for o, other in enumerate(self.axes) if o != index and o for w in other.words)
            # the `mean` of `mean squared error` is no estimator
            hidden = {i for other, own in enumerate(phrases) if other != index for i in own} - phrases[index]
            left = [token._replace(text="\0", number=None) if i in hidden else token for i, token in enumerate(tokens)]
            found.append(axis.read(left, foreign, names - set(axis.words), several=several))
        return tuple(found)

    def telling(self, index: int) -> bool:
        """Do claims differ on this axis?"""
        return len({place[index] for place in self.places}) > 1


def vocabulary_of(claims: Sequence[NumericClaim]) -> Vocabulary:
    """The metrics and the conditions of these claims."""
    names = list(dict.fromkeys(c.name for claim in claims for c in claim.conditions))
    held = [{c.name: c.value for c in claim.conditions} for claim in claims]
    axes = [Axis(METRIC, [claim.metric for claim in claims])]
    axes += [Axis(name, [values[name] for values in held if name in values]) for name in names]
    places = tuple(
        (claim.metric, *(values.get(name) for name in names)) for claim, values in zip(claims, held, strict=True)
    )
    return Vocabulary(tuple(axes), places)
