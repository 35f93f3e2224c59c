"""Which number of a run does each claim mean? By names that are spelled alike, else by values that agree beyond chance.

Nothing is read into a name: it is the claim's own words, case, spaces and signs aside, or it is another name. What
neither step settles is unknown. A bound claim has a place; whatever runs later is read there and nowhere else.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import permutations, product
from typing import Final, NamedTuple

from pipeline.match.claims import align_claims
from pipeline.match.views import plain
from pipeline.task import NumericClaim
from pipeline.validation.numbers import find_numbers, half_unit, parse_number
from pipeline.validation.observation import Observation
from pipeline.validation.places import places_of

__all__ = ["Bound", "bind_claims", "unbound"]

_ALONE: Final = "its value alone is not beyond chance"
_NOTHING: Final = f"no number of the run is named like it, and {_ALONE}"
_MOST_JOINED: Final = 3
"""So many of a claim's names may stand in one label (`ours moons accuracy`)."""

_Part = tuple[str, str]
"""(name, value) of a condition; the metric has no name."""
_Named = tuple[int, float] | str
"""Position of a number and the factor to the claim's scale, or why there is none."""


class Bound(NamedTuple):
    """The number that a claim means."""

    place: str
    factor: float
    """The number there times this is in the claim's scale."""


def unbound(claims: Sequence[NumericClaim]) -> tuple[NumericClaim, ...]:
    """The claims without their places: for the output of another program than the one that they were bound to."""
    return tuple(claim.evolve(place="", factor=1.0) for claim in claims)


def bind_claims(claims: Sequence[NumericClaim], observations: Sequence[Observation]) -> dict[str, Bound | str]:
    """For each claim (by id) its number in one run, or why there is none; claims with a place keep it.

    Args:
        claims: all of one task: what they share need not be named, what tells them apart must be.
        observations: all numbers of the run, in reading order.
    """
    found: dict[str, Bound | str] = {c.id: Bound(c.place, c.factor) if c.place else _NOTHING for c in claims}
    if all(claim.place for claim in claims) or not observations:
        return found
    places, names = places_of(observations), _Names(claims, observations)
    taken = {claim.place for claim in claims}
    for claim_id, named in names.bind().items():
        bound = named if isinstance(named, str) else Bound(places[named[0]], named[1])
        if isinstance(found[claim_id], str) and not (isinstance(bound, Bound) and bound.place in taken):
            found[claim_id] = bound
    taken |= {bound.place for bound in found.values() if isinstance(bound, Bound)}
    left = [claim for claim in claims if isinstance(found[claim.id], str)]
    aligned = align_claims(claims, observations) if left else {}
    positions = {place: index for index, place in enumerate(places)}
    for claim in left:
        cell = aligned.get(claim.id)
        if cell is not None and cell.place not in taken:
            other = names.is_another(claim, positions[cell.place])
            found[claim.id] = f"{cell.where} lies where it should, but is named {other}" if other else Bound(
                cell.place, cell.factor
            )  # fmt: skip
    return found


class _Names:
    """The numbers of a run by the claims' own names."""

    def __init__(self, claims: Sequence[NumericClaim], observations: Sequence[Observation]) -> None:
        self._claims, self._seen = claims, observations
        self._parts = {claim.id: _parts(claim) for claim in claims}
        self._spelled = {claim.id: _spellings(self._parts[claim.id]) for claim in claims}
        self._at: dict[str | _Part, set[int]] = {text: set() for texts in self._spelled.values() for text in texts}
        self._at |= {key: set() for parts in self._parts.values() for part in parts if (key := _setting(part))}
        self._at |= {("", number): set() for _, number in [key for key in self._at if isinstance(key, tuple)]}
        self._axes: dict[str, set[int]] = {plain(name): set() for parts in self._parts.values() for name, _ in parts}
        self._highest: dict[object, float] = {}
        for index, seen in enumerate(observations):
            self._add(index, seen)
        self._bears: dict[_Part, set[int]] = {}
        """Numbers by the parts that they name."""
        for claim in claims:
            for part, numbers in zip(self._parts[claim.id], self._bearing(claim), strict=True):
                self._bears.setdefault(_key(part), set()).update(numbers)
        keys = [set(map(_key, parts)) for parts in self._parts.values()]
        self._shared = set.intersection(*keys) if keys else set()

    def _add(self, index: int, seen: Observation) -> None:
        field = (seen.source, seen.labels[-1:])
        self._highest[field] = max(self._highest.get(field, 0.0), abs(seen.value))
        labels, texts = seen.labels, (*seen.labels, *seen.context)
        keys: set[str | _Part] = {plain(text) for text in texts}
        keys |= {plain("".join(labels[start:])) for start in range(len(labels))}
        for name, value in seen.coordinates:
            keys |= {plain(value), plain(name + value)}
            if plain(name) in self._axes:
                self._axes[plain(name)].add(index)
            if setting := _setting((name, value)):
                keys.add(setting)
        for text in texts:  # `n=500`, `Order 3`, or a row that is called 500
            numbers = list(find_numbers(text))
            if len(numbers) == 1:
                rest = plain(text[: numbers[0].start] + text[numbers[0].end :])
                keys.add((rest, f"{numbers[0].value:.9g}"))
        for key in keys & self._at.keys():
            self._at[key].add(index)

    def _bearing(self, claim: NumericClaim) -> list[set[int]]:
        """For the metric and each condition the numbers that bear it."""
        result: list[set[int]] = [set() for _ in self._parts[claim.id]]
        for text, named in self._spelled[claim.id].items():
            for index in named:
                result[index] |= self._at[text]
        for index, part in enumerate(self._parts[claim.id]):
            if setting := _setting(part):
                result[index] = self._at[setting] | (self._at["", setting[1]] - self._axes[setting[0]])
        return result

    def bind(self) -> dict[str, _Named]:
        """For each claim the only number that bears its names; several of one value are one."""
        found = {claim.id: self._find(claim) for claim in self._claims}
        weak = {
            claim.id: self._agrees(claim, *number)
            for claim in self._claims
            if isinstance(number := found[claim.id], tuple) and number[0] not in self._bears["", plain(claim.metric)]
        }
        # numbers that nothing calls by the metric's name are the claims' when most of them agree, else another metric's
        if 2 * sum(weak.values()) <= len(weak):
            found |= dict.fromkeys(weak, _NOTHING)
        return {claim.id: self._without_rivals(claim, found) for claim in self._claims}

    def _find(self, claim: NumericClaim) -> _Named:
        parts = self._parts[claim.id]
        bearing = [self._bears[_key(part)] for part in parts]
        required = [numbers for part, numbers in zip(parts, bearing, strict=True) if _key(part) not in self._shared]
        fitting = set.intersection(*(required or bearing[:1]))
        for (name, _), numbers in zip(parts[1:], bearing[1:], strict=True):
            fitting -= self._axes[plain(name)] - numbers  # it says another value for this condition
        for numbers in bearing:  # what all claims share decides where it is named
            fitting = fitting & numbers or fitting
        fitting = {index for index in fitting if self._says_no_more(claim, index)} or fitting
        if not fitting:
            return _NOTHING
        read = {index: self._read(claim, self._seen[index]) for index in sorted(fitting)}
        finest = max(read, key=lambda index: (read[index][1], -index))
        value, decimals, factor = read[finest]
        if any(abs(item[0] - value) > half_unit(min(item[1], decimals)) * 1.000001 for item in read.values()):
            shown = ", ".join(self._seen[index].where for index in list(read)[:3])
            return f"{len(read)} numbers of the run are named like it ({shown}): ambiguous, and {_ALONE}"
        signed = _is_percent(claim) or self._seen[finest].percent
        if not signed and not self._agrees(claim, finest, 1.0) and any(
            self._agrees(claim, finest, other) for other in (100.0, 0.01)
        ):  # fmt: skip
            return f"{self._seen[finest].where} is named like it, and nothing tells whether it is in percent"
        return finest, factor

    def _says_no_more(self, claim: NumericClaim, index: int) -> bool:
        """Do a number's labels, each or as one path, name parts of the claim and nothing else?"""
        labels, spelled = self._seen[index].labels, self._spelled[claim.id]
        return all(plain(label) in spelled for label in labels) or plain("".join(labels)) in spelled

    def _without_rivals(self, claim: NumericClaim, found: Mapping[str, _Named]) -> _Named:
        """The claim's number, unless it bears as many names of a claim that says something else."""
        number = found[claim.id]
        if isinstance(number, str):
            return number
        own = set(map(_key, self._parts[claim.id]))
        for other in self._claims:
            theirs, rival = set(map(_key, self._parts[other.id])), found[other.id]
            borne = [sum(number[0] in self._bears[key] for key in keys) for keys in (own, theirs)]
            if not isinstance(rival, str) and rival[0] == number[0] and theirs != own and borne[1] >= borne[0]:
                return f"{self._seen[number[0]].where} is named like {claim.id} and {other.id}: ambiguous"
        return number

    def is_another(self, claim: NumericClaim, index: int) -> str:
        """The name of another claim's metric or condition that a number bears in place of this claim's."""
        own = dict(map(_key, self._parts[claim.id]))
        borne = {key for key, numbers in self._bears.items() if index in numbers}
        others = (value for name, value in borne if name in own and (name, own[name]) not in borne)
        return next(iter(sorted(others)), "")

    def _read(self, claim: NumericClaim, seen: Observation) -> tuple[float, int, float]:
        """Value and decimals in the claim's scale, which signs and sizes decide, not agreement; and the factor."""
        factor = 1.0
        if _is_percent(claim) and not seen.percent and self._highest[seen.source, seen.labels[-1:]] <= 1:
            factor = 100.0
        elif seen.percent and not _is_percent(claim) and abs(claim.value) <= 1:
            factor = 0.01
        return seen.value * factor, seen.decimals - round(math.log10(factor)), factor

    def _agrees(self, claim: NumericClaim, index: int, factor: float) -> bool:
        own, shown = half_unit(claim.decimals), half_unit(self._seen[index].decimals) * factor
        reach = max(own, min(shown, 10 * own), claim.uncertainty or 0.0)
        return abs(self._seen[index].value * factor - claim.value) <= reach * 1.000001


def _is_percent(claim: NumericClaim) -> bool:
    return "%" in (claim.unit or "") or "%" in claim.metric


def _parts(claim: NumericClaim) -> list[_Part]:
    return [("", claim.metric), *((condition.name, condition.value) for condition in claim.conditions)]


def _setting(part: _Part) -> _Part | None:
    """Name and number, both in one spelling, of a condition that is a number."""
    parsed = parse_number(part[1])
    return (plain(part[0]), f"{parsed.value:.9g}") if parsed else None


def _key(part: _Part) -> _Part:
    return _setting(part) or (plain(part[0]), plain(part[1]))


def _spellings(parts: Sequence[_Part]) -> dict[str, tuple[int, ...]]:
    """Texts that name parts and nothing else, with the parts: each alone, and some joined in any order."""
    texts = {
        index: tuple(text for text in {plain(value), plain(name + value)} if text)
        for index, (name, value) in enumerate(parts)
        if not _setting((name, value))
    }
    found: dict[str, tuple[int, ...]] = {}
    for count in range(1, _MOST_JOINED + 1):
        for chosen in permutations(texts, count):
            for words in product(*(texts[index] for index in chosen)):
                found.setdefault("".join(words), chosen)
    return found
