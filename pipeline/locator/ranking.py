"""One score a file: its text, its path, the best command that is stated for it, and its project's README.

Each of the first three is BM25 with the task's words, scaled so that the best file has 1; the README counts half. What
is not run counts a part of that. There are no learnt weights. What else was tried (links from the best files,
functions one by one, the section around a command, ranks in place of scores, names of variants) moved the metrics of
published and other tasks within chance: see `benchmarks/README.md`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.locator.facts import FileFacts
from pipeline.locator.index import RepositoryIndex, Unit
from pipeline.locator.lexical import Lexicon, scaled
from pipeline.locator.query import QueryWords
from pipeline.locator.text import compact

__all__ = ["SIGNALS", "Ranking", "is_config", "rank"]

Vector = npt.NDArray[np.float64]
SIGNALS: Final = ("text", "path", "statement", "readme")
_README: Final = 0.5
_READ: Final = 0.75
"""What a configuration counts, which is read and not run."""
_DOCUMENT: Final = 0.5
_PART: Final = 0.25
"""What a library file counts, and what is beside the paper's own experiments (tests, set-up, other people's code)."""
_NAMED_PART: Final = 0.5
"""What a library file counts of which the question names a definition."""
_COMPOUND: Final = re.compile(r"[a-z\d][A-Z]|[A-Za-z\d]_[A-Za-z\d]")
"""A name of several words: one word alone (`train`, `Model`) is said in prose without meaning a definition."""
_SHOWN: Final = 4
"""Words given as a reason."""


@dataclass(slots=True)
class Ranking:
    """Files in the order of their score."""

    index: RepositoryIndex
    words: QueryWords
    scores: Vector
    """In the order of `index.facts`."""
    stated: list[int]
    """For each file, its best unit; -1: none."""
    order: list[int]
    """Positions, best first; ties by path."""

    def score(self, path: str) -> float:
        """The score of a path; 0 for one that is not ranked."""
        number = self.index.position.get(path)
        return float(self.scores[number]) if number is not None else 0.0

    def unit(self, path: str) -> Unit | None:
        """The command stated for a path that matches the task best."""
        number = self.index.position.get(path)
        best = self.stated[number] if number is not None else -1
        return self.index.units[best] if best >= 0 else None

    def reasons(self, position: int) -> tuple[str, ...]:
        """What speaks for a file, with the words that it shares with the task."""
        index, found = self.index, []
        path, best = index.facts[position].path, self.stated[position]
        if best >= 0 and (said := self._shared(index.statements, best)):
            command = index.units[best].command
            found.append(f"a command for it is stated in {command.path}:{command.line}, with {said}")
        if said := self._shared(index.content, position):
            found.append(f"its text has {said}")
        if said := self._shared(index.paths, position):
            found.append(f"its path says {said}")
        project = int(index.project_of[position])
        if project >= 0 and index.project_names[project] and (said := self._shared(index.projects, project)):
            found.append(f"the README of {index.project_names[project]} has {said}")
        named = _named_definitions(index.facts[position], self.words)
        if named:
            found.append(f"the question names its {', '.join(named[:_SHOWN])}")
        return tuple(found) or (f"{path} shares no word with the task",)

    def _shared(self, lexicon: Lexicon, document: int) -> str:
        words = [self.words.spelled.get(word, word) for _, word in lexicon.matches(document, self.words.weights)]
        return ", ".join(dict.fromkeys(words[:_SHOWN]))


def rank(index: RepositoryIndex, words: QueryWords, *, without: str = "") -> Ranking:
    """Rank all files of `index` for a task.

    Args:
        index: the repository.
        words: the task.
        without: a signal of `SIGNALS` to leave out, to see what it is worth.
    """
    units = index.statements.scores(words.weights)
    statement, stated = np.zeros(index.size), [-1] * index.size
    for number, unit in enumerate(index.units):
        for place in unit.files:
            if stated[place] < 0 or units[number] > statement[place]:
                statement[place], stated[place] = units[number], number
    run = np.array([facts.file.kind != "document" for facts in index.facts], dtype=bool)
    signals = {
        "text": scaled(index.content.scores(words.weights), run),
        "path": scaled(index.paths.scores(words.weights), run),
        "statement": scaled(statement, run),
        "readme": _README * _readmes(index, words),
    }
    scores = sum((value for name, value in signals.items() if name != without), np.zeros(index.size))
    scores *= _shares(index, words, stated)
    order = sorted(range(index.size), key=lambda number: (-round(float(scores[number]), 9), index.facts[number].path))
    return Ranking(index, words, scores, stated, order)


def _readmes(index: RepositoryIndex, words: QueryWords) -> Vector:
    """How well the README of each file's project matches; a file without one gets the mean, which says nothing."""
    if not index.project_names:
        return np.zeros(index.size)
    scores = scaled(index.projects.scores(words.weights))
    return np.where(index.project_of >= 0, scores[index.project_of], scores.mean())


def _shares(index: RepositoryIndex, words: QueryWords, stated: list[int]) -> Vector:
    """What of its score each file keeps, by what it is."""
    kept = np.ones(index.size)
    run = {index.units[unit].files[0] for unit in set(stated) - {-1}}
    for number, (facts, place) in enumerate(zip(index.facts, index.places, strict=True)):
        if not (place.runs or number in run):
            if facts.file.kind == "document":
                kept[number] = _DOCUMENT
            elif is_config(facts) or facts.file.kind == "make":
                kept[number] = _READ
            else:
                kept[number] = _NAMED_PART if _named_definitions(facts, words) else _PART
        if place.aside:
            kept[number] *= _PART
    return kept


def is_config(facts: FileFacts) -> bool:
    """Is it a configuration, also one that is written in Python?"""
    return facts.file.kind == "config" or facts.settings


def _named_definitions(facts: FileFacts, words: QueryWords) -> list[str]:
    """Definitions of a file that the question names."""
    return [name for name in facts.definitions if _COMPOUND.search(name) and compact(name) in words.asked]
