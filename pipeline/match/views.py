"""The numbers of a source as matrices: each stands in a line (field, series) under a key (record, run, data set).

The same file can be read in several ways: a wide CSV has its columns as lines and its rows as keys; in a long one the
values of a column are the lines; in nested objects the keys of any level can be. Which reading is a table's is decided
by the values. Nothing is read into a name but whether two are spelled alike.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import PurePosixPath
from typing import Any, Final

import numpy as np

from pipeline.match.records import Source
from pipeline.validation.numbers import half_unit, is_number
from pipeline.validation.observation import Observation
from pipeline.validation.places import places_of

__all__ = ["Holding", "View", "bundle", "plain"]

Array = np.ndarray[Any, Any]

_MAX_LEVELS: Final = 4
_MAX_FACTORS: Final = 6
_MAX_NUMBERS: Final = 60_000
_MAX_FIELDS: Final = 400
_SAMPLE: Final = 2000
_LEAST_PART: Final = 4
"""A shorter label stands for a name only when it is the whole name."""


class View:
    """One reading of a source: codes of line and key for each number; no pair occurs twice."""

    def __init__(self, numbers: Array, lines: Array, keys: Array, line_names: Sequence[str]) -> None:
        self.keys_count = int(keys.max()) + 1
        codes = lines * self.keys_count + keys
        self.codes, first = np.unique(codes, return_index=True)
        kept = np.sort(first)
        self.sorted = numbers[first]
        self.numbers = numbers[kept]
        """Positions of the holding's numbers that take part."""
        self.lines = lines[kept]
        self.keys = keys[kept]
        self.line_names = tuple(line_names)

    def find(self, lines: Array, keys: Array) -> Array:
        """For pairs of line and key the position of their number in the holding; -1 where there is none."""
        wanted = lines * self.keys_count + keys
        at = np.minimum(np.searchsorted(self.codes, wanted), len(self.codes) - 1)
        return np.where(self.codes[at] == wanted, self.sorted[at], -1)


class Holding:
    """The numbers of one source, or of several of one kind, as arrays."""

    def __init__(self, parts: Sequence[tuple[Source, Sequence[Observation]]], indices: Sequence[int]) -> None:
        self.sources = tuple(source for source, _ in parts)
        self.indices = tuple(indices)
        """Of the sources, in the order in which they were given."""
        sizes = [len(observations) for _, observations in parts]
        self.starts = np.cumsum([0, *sizes])[:-1]
        self.observations = [observation for _, observations in parts for observation in observations]
        self.owner = np.repeat(np.arange(len(parts)), sizes)
        self.values = np.array([observation.value for observation in self.observations])
        self.halves = self._halves()
        self.sorted = np.sort(self.values)
        self.spacings: dict[tuple[int, int], float] = {}
        """Found so far: (view, line) -> grid of its values."""
        self._mentions: dict[str, Array | None] = {}

    def _halves(self) -> Array:
        """Half a unit of the last digit that each number's field shows: 0.5 is exact where 0.4937 stands beside it."""
        names = [(owner, o.labels[-1:]) for owner, o in zip(self.owner.tolist(), self.observations, strict=True)]
        finest: dict[object, int] = {}
        for name, observation in zip(names, self.observations, strict=True):
            finest[name] = max(finest.get(name, -400), observation.decimals)
        return np.array([half_unit(finest[name]) for name in names])

    @cached_property
    def places(self) -> tuple[str, ...]:
        """Place of each number, counted in its own source."""
        bounds = [*self.starts.tolist(), len(self.observations)]
        parts = [self.observations[start:end] for start, end in pairwise(bounds)]
        return tuple(place for part in parts for place in places_of(part))

    def mentions(self, label: str) -> Array | None:
        """Which numbers a label of the paper (in `plain` letters) names, as a whole name or a part of some length."""
        if label not in self._mentions:
            named = [name for name in self._named if label == name or (len(label) >= _LEAST_PART and label in name)]
            self._mentions[label] = None
            if label and named:
                at = np.zeros(len(self.values), bool)
                at[np.concatenate([self._named[name] for name in named])] = True
                self._mentions[label] = at
        return self._mentions[label]

    @cached_property
    def _named(self) -> dict[str, list[int]]:
        """Numbers by each of the names that stand at them: labels, texts of their record, headings, the file."""
        textual: dict[str, list[str]] = {}
        found: dict[str, list[int]] = {}
        for index, o in enumerate(self.observations):
            if o.record not in textual:
                textual[o.record] = [value for _, value in o.coordinates if not is_number(value)]
            # what names the whole source tells none of its numbers apart
            around = o.context[1:] if len(self.sources) == 1 else (self.sources[self.owner[index]].name, *o.context)
            for name in {*o.labels, *textual[o.record], *around}:
                found.setdefault(plain(name), []).append(index)
        return found

    @cached_property
    def views(self) -> tuple[View, ...]:
        """Its readings, the nearest to how it is written first, without repetitions; at last without structure."""
        found: dict[bytes, View] = {}
        for view in self._list_views():
            found.setdefault(b"".join(array.tobytes() for array in (view.numbers, view.lines, view.keys)), view)
        return tuple(found.values())

    def _list_views(self) -> Iterator[View]:
        seen = self.observations
        names: dict[str, int] = {}

        def code(texts: Iterator[str | None]) -> Array:
            return np.array([-1 if text is None else names.setdefault(text, len(names)) for text in texts])

        files = code(self.sources[owner].name if len(self.sources) > 1 else None for owner in self.owner)
        headings = code(next((c for c in o.context[:0:-1] if o.text not in c), None) for o in seen)
        last = code(o.labels[-1] if o.labels else "" for o in seen)
        levels = [
            code(o.labels[level] if len(o.labels) > level + 1 else None for o in seen) for level in range(_MAX_LEVELS)
        ]
        wanted = _factors(seen)
        pairs = [dict(o.coordinates) for o in seen] if wanted else []
        factors = [code(pair.get(name) for pair in pairs) for name in wanted]
        texts = list(names)
        everything = np.arange(len(seen))
        yield _make_view(everything, last, code(f"{o.source} {o.record}" for o in seen), texts)
        columns = np.stack([files, headings, last, *levels, *factors], axis=1)
        # a field for each file, or for each value of a factor: methods in rows, measures of each data set in columns
        for outer in (*([files] if len(self.sources) > 1 else []), *factors):
            part = np.flatnonzero(outer >= 0)
            field = last[part]
            if outer is not files and (field == field[:1]).all():
                continue  # the values of the factor name its lines, see below
            rest = _merge(np.where((columns == outer[:, None]) | (columns == last[:, None]), -1, columns)[part])
            named, line = np.unique(outer[part] * len(texts) + field, return_inverse=True)
            fields = [texts[pair % len(texts)] for pair in named]
            if outer is files:
                fields = [f"{texts[pair // len(texts)]}: {name}" for pair, name in zip(named, fields, strict=True)]
            yield _make_view(part, line, _count_repeats(line, rest), fields)
        for line in (last, *levels, *factors, files):
            part = np.flatnonzero(line >= 0)
            if len(part):
                rest = _merge(np.where(columns == line[:, None], -1, columns)[part])
                yield _make_view(part, line[part], _count_repeats(line[part], rest), texts)
        if len(self.sources) == 1:
            # blocks of lines, printed for one setting after the other: the n-th of a name is of the n-th block
            named = np.flatnonzero(last != code(iter([""]))[0])
            if len(named):
                yield _make_view(named, last[named], _count_repeats(last[named], np.zeros(len(named), int)), texts)
            yield View(everything, np.zeros(len(seen), int), everything, ("",))


@lru_cache(maxsize=65536)
def plain(text: str) -> str:
    """A name without case, spaces and signs, as far as it can be compared between paper and program."""
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def bundle(parts: Sequence[tuple[Source, Sequence[Observation]]]) -> list[Holding]:
    """Each source by itself, then those of one kind (one suffix, the same fields) together."""
    kinds: dict[object, list[int]] = {}
    for index, (source, observations) in enumerate(parts):
        fields = frozenset(label for o in observations for label in o.labels[-1:])
        if fields and len(fields) <= _MAX_FIELDS:
            suffix = PurePosixPath(source.name).suffix
            kinds.setdefault((source.origin, source.command, suffix, fields), []).append(index)
    # parts of one source are together in the whole of it
    together = [group for group in kinds.values() if len({parts[i][0].name for i in group}) == len(group) > 1]
    groups = [*([index] for index, (_, observations) in enumerate(parts) if observations), *together]
    return [
        Holding([parts[i] for i in group], group)
        for group in groups
        if len(group) == 1 or sum(len(parts[i][1]) for i in group) <= _MAX_NUMBERS
    ]


def _factors(seen: Sequence[Observation]) -> tuple[str, ...]:
    """Coordinates with which a long table tells its groups apart: few values, each about equally often."""
    records: dict[str, dict[str, str]] = {}
    for observation in seen:
        if len(records) < _SAMPLE or observation.record in records:
            records.setdefault(observation.record, {}).update(observation.coordinates)
    counts: dict[str, Counter[str]] = {}
    for pairs in records.values():
        for name, value in pairs.items():
            counts.setdefault(name, Counter())[value] += 1
    found = []
    for name, values in counts.items():
        repeated = 1 < len(values) <= values.total() / 2
        if repeated and (max(values.values()) <= 2 * min(values.values()) or not any(map(is_number, values))):
            found.append(name)
    return tuple(found[:_MAX_FACTORS])


def _merge(columns: Array) -> Array:
    """One code for each different row of codes."""
    mixers = np.random.default_rng(0).integers(1, 2**63, columns.shape[1], dtype=np.uint64)
    mixed = ((columns + 1).astype(np.uint64) * mixers).sum(axis=1, dtype=np.uint64)
    return np.asarray(np.unique(mixed, return_inverse=True)[1])


def _count_repeats(lines: Array, keys: Array) -> Array:
    """Keys with a count, where the same line holds a key several times (seeds, repeats, lines of a log)."""
    pairs = lines * (int(keys.max()) + 1) + keys
    order = np.argsort(pairs, kind="stable")
    begins = np.concatenate([[True], np.diff(pairs[order]) != 0])
    counts = np.empty(len(pairs), int)
    counts[order] = np.arange(len(pairs)) - np.maximum.accumulate(np.where(begins, np.arange(len(pairs)), 0))
    return np.asarray(keys * (int(counts.max()) + 1) + counts)


def _make_view(numbers: Array, lines: Array, keys: Array, texts: Sequence[str]) -> View:
    found, line_codes = _in_order(lines)
    return View(numbers, line_codes, _in_order(keys)[1], [texts[line] for line in found])


def _in_order(codes: Array) -> tuple[Array, Array]:
    """Codes counted in the order in which they occur first."""
    found, first, at = np.unique(codes, return_index=True, return_inverse=True)
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(found), int)
    rank[order] = np.arange(len(found))
    return found[order], rank[at]
