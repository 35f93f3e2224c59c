"""Of which definitions the lines are cited: how likely each is to be meant, and where to stop.

A ranking does not say where to stop, and files are cited in part. So each definition gets the probability that a
requirement cites its lines: the chance that its file belongs to the answer, times the share of such a definition that
is cited where it does. The likeliest come first, and citing ends where the expected loss of precision outweighs the
expected gain in recall. Where the ranking is sure, that is early; where it is flat, a further file costs little
precision and gains much. `benchmarks/locator/spans.py` learns the weights and prints the whole curve.

What the share rests on is about how code is written, not about the task: the words that a definition shares with the
task do not tell cited lines from others (area under the curve .49 to .61), nor does whether it is reached.

Non-goal: which lines of a definition. Without blank lines, recall falls by .05 to .08 and precision gains .01, because
people cite a definition as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from pipeline.repository import Snapshot
from pipeline.schema import Record
from pipeline.task import Requirement
from pipeline.tracing.coverage import Part, parts_of

__all__ = [
    "CHANCE_WEIGHTS",
    "DECIDED",
    "FAR",
    "NEAR",
    "SHARE_WEIGHTS",
    "ChanceWeights",
    "CitedDefinition",
    "CitedFile",
    "ShareWeights",
    "chances",
    "cite",
    "select",
    "share_features",
    "shares_of",
    "stop",
]

_LEAST: Final = 0.02
"""Files with less of a chance are not read: one in fifty is not worth its lines at any price asked here."""
_LOOKED_AT: Final = 12
"""Files of the ranking that are looked at; of those whose score lies more than 3 below, one in twenty is a source."""
NEAR: Final = 3.5
"""What precision is worth against recall where requirements are stated: the highest F1 of the curve."""
FAR: Final = 1.5
"""The same where nothing may be missed."""


DECIDED: Final = (0.5, 0.0)
"""Both where the files are known: then .93 of the lines are had at .55; .80 would be at .58, .72 at .62."""


class ChanceWeights(NamedTuple):
    """Log-odds that a file belongs to the answer."""

    share: float
    """Per log of its share of the ranking's likelihood, which the scores were learnt by."""
    chain: float
    """Of the files of the chain: they are run or read together with the best one."""
    constant: float


class ShareWeights(NamedTuple):
    """Log-odds that a line of a definition is cited, given that its file belongs to the answer."""

    file_length: float
    """Per log of the file's lines: a long file holds more than one experiment."""
    length: float
    """Per log of the definition's own lines: the experiment stands in the long ones, helpers are short."""
    body: float
    """Of `main`, `train...` and `run...`: by convention these are what a script does."""
    declaring: float
    """Per share of its lines that declare options: they serve all experiments of the script."""
    place: float
    """Per place in the file, 0 to 1: plotting, saving and starting the script stand at its end."""
    constant: float


# learnt by `benchmarks.locator.spans --learn`; recall and precision along the curve are in docs/locator.md
CHANCE_WEIGHTS: Final = ChanceWeights(0.69, 0.96, 0.15)
SHARE_WEIGHTS: Final = ShareWeights(-0.41, 0.29, 0.96, -1.59, -0.34, 1.11)
_BODIES: Final = ("train", "run")


class CitedDefinition(Record):
    """A definition, a stretch of module-level code or a plain file."""

    requirement: Requirement
    likely: float
    """Share of these lines that published requirements would cite."""
    near: bool
    """Is it a requirement (`NEAR`), or only to be looked into where nothing may be missed (`FAR`)?"""


class CitedFile(Record):
    """A file of which something is cited."""

    path: str
    chance: float
    """Probability that it belongs to the answer."""
    in_chain: bool
    definitions: tuple[CitedDefinition, ...]
    """In the order of their lines; those that are too unlikely are left out."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    path: str
    part: Part
    likely: float
    gain: float
    """Share of the answer that is expected to lie here."""


def shares_of(ranked: Sequence[tuple[str, float]], chain: Collection[str]) -> dict[str, float]:
    """The log of each file's share of the likelihood: the chain in its order, then others in that of the ranking.

    Args:
        ranked: (path, score), best first.
        chain: paths of the chain; one that is not ranked has no share, only its steps are cited.
    """
    scores = dict(ranked)
    best = max(scores.values(), default=0.0)
    total = math.log(sum(math.exp(score - best) for score in scores.values())) if scores else 0.0
    paths = dict.fromkeys([*chain, *(path for path, _ in ranked[:_LOOKED_AT])])
    return {path: scores[path] - best - total for path in paths if path in scores}


def chances(
    ranked: Sequence[tuple[str, float]], chain: Collection[str], weights: ChanceWeights = CHANCE_WEIGHTS
) -> dict[str, float]:
    """The probability of each file to belong to the answer, in the order of `shares_of`.

    Args:
        ranked: (path, score), best first.
        chain: paths of the chain.
        weights: of the shares.
    """
    return {
        path: _probability(weights.share * share + weights.chain * (path in chain) + weights.constant)
        for path, share in shares_of(ranked, chain).items()
    }


def _probability(odds: float) -> float:
    return 1 / (1 + math.exp(-odds))


def cite(
    snapshot: Snapshot,
    chance: Mapping[str, float],
    chain: Collection[str],
    *,
    worth: tuple[float, float] = (NEAR, FAR),
) -> tuple[CitedFile, ...]:
    """What of which files is cited, in the order of `chance`.

    Args:
        snapshot: the repository.
        chance: probability of each file to belong to the answer.
        chain: paths of the chain.
        worth: what precision is worth against recall, for requirements and for what is listed apart.
    """
    likely = {path: value for path, value in chance.items() if value >= _LEAST}  # the others are not read
    return select({path: parts_of(snapshot, path) for path in likely}, likely, chain, worth=worth)


def select(
    parts: Mapping[str, Sequence[Part]],
    chance: Mapping[str, float],
    chain: Collection[str],
    *,
    weights: ShareWeights = SHARE_WEIGHTS,
    worth: tuple[float, float] = (NEAR, FAR),
) -> tuple[CitedFile, ...]:
    """What of which files is cited, in the order of `chance`.

    Args:
        parts: what each file consists of.
        chance: probability of each file to belong to the answer.
        chain: paths of the chain.
        weights: of the share of a definition.
        worth: what precision is worth against recall, for requirements and for what is listed apart.
    """
    candidates = sorted(_candidates(parts, chance, weights), key=lambda item: -item.likely)
    line = [(item.likely, item.part.lines, item.gain) for item in candidates]
    near, far = (stop(line, value) for value in worth)
    kept: dict[str, list[tuple[Part, CitedDefinition]]] = {}
    for number, item in enumerate(candidates[: max(near, far)]):
        made = CitedDefinition(
            requirement=item.part.requirement, likely=round(item.likely, 4), near=number < near
        )  # fmt: skip
        kept.setdefault(item.path, []).append((item.part, made))
    return tuple(
        CitedFile(
            path=path,
            chance=round(value, 4),
            in_chain=path in chain,
            definitions=tuple(made for _, made in sorted(kept[path], key=lambda pair: pair[0].place)),
        )
        for path, value in chance.items()
        if path in kept
    )


def _candidates(
    parts: Mapping[str, Sequence[Part]], chance: Mapping[str, float], weights: ShareWeights
) -> Iterator[_Candidate]:
    for path, value in chance.items():
        own = parts.get(path, ())
        shares = [
            _probability(sum(weight * given for weight, given in zip(weights, share_features(part, own), strict=True)))
            for part in own
        ]
        cited = sum(share * part.lines for share, part in zip(shares, own, strict=True))
        for share, part in zip(shares, own, strict=True):
            yield _Candidate(path, part, value * share, value * share * part.lines / cited)


def share_features(part: Part, parts: Sequence[Part]) -> tuple[float, ...]:
    """What `ShareWeights` weigh.

    Args:
        part: of a file.
        parts: all of that file.
    """
    body = part.name == "main" or part.name.startswith(_BODIES)
    lines = sum(other.lines for other in parts)
    return (math.log(lines), math.log(part.lines), float(body), part.declaring, part.place, 1.0)


def stop(line: Sequence[tuple[float, int, float]], worth: float) -> int:
    """How many to take of what stands in line, so that expected recall + `worth` x expected precision is highest.

    Args:
        line: (share of the lines that is cited, lines, share of the answer), the likeliest first.
        worth: what precision is worth against recall.
    """
    total = sum(gain for _, _, gain in line)
    recall = hits = lines = 0.0
    best, count = 0.0, 0
    for number, (likely, size, gain) in enumerate(line, 1):
        recall, hits, lines = recall + gain, hits + likely * size, lines + size
        value = recall / total + worth * hits / lines
        if value > best:
            best, count = value, number
    return count
