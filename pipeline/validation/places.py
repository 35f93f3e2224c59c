"""Names of observations that stay the same when the same program runs again.

A place is the source (file or stream), the labels, and which of the numbers of the same source and labels it is, in
reading order: line numbers move with every warning, labels do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from pipeline.validation.observation import Observation

__all__ = ["by_file", "places_of", "source_of"]

_BETWEEN = " :: "


def places_of(observations: Sequence[Observation]) -> tuple[str, ...]:
    """The place of each observation, in order; no two are equal.

    Args:
        observations: numbers of one run or file, in reading order. All numbers of a source must be there: the ordinal
            counts them.
    """
    seen: Counter[str] = Counter()
    places = []
    for observation in observations:
        name = f"{observation.source}{_BETWEEN}{' / '.join(observation.labels)}"
        seen[name] += 1
        places.append(f"{name}{_BETWEEN}{seen[name]}")
    return tuple(places)


def by_file(observations: Sequence[Observation]) -> dict[str, list[Observation]]:
    """The numbers of each file or stream, in order; the lines of a JSONL file are one."""
    files: dict[str, list[Observation]] = {}
    for observation in observations:
        files.setdefault(observation.source.rpartition(" line ")[0] or observation.source, []).append(observation)
    return files


def source_of(place: str) -> str:
    """The file or stream of a place."""
    return place.partition(_BETWEEN)[0]
