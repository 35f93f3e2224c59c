"""BM25 (Lucene's variant; Robertson and Zaragoza 2009) over bags of words.

Documents are counted words, not texts: a snapshot of 10,000 files stays below 500 MB. `bm25s`, which this project uses
elsewhere, keeps every document as a list of its tokens while it indexes: a third of the time and half of the memory of
an index of code. Non-goal: persistence (see `index`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from pipeline.locator.text import tokens

__all__ = ["Bag", "Lexicon", "Vocabulary", "scaled"]

Scores = npt.NDArray[np.float64]
_K1: Final = 1.5


class Bag(NamedTuple):
    """A document: the numbers of its words, each once and ascending, and how often each occurs."""

    words: npt.NDArray[np.int32]
    counts: npt.NDArray[np.int32]


class Vocabulary:
    """Numbers for words, shared by the lexicons of an index."""

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def bag(self, counts: Mapping[str, int]) -> Bag:
        """A document from its counted words; new words get the next numbers."""
        numbers = self._numbers
        words = np.fromiter((numbers.setdefault(word, len(numbers)) for word in counts), np.int32, len(counts))
        order = np.argsort(words)
        return Bag(words[order], np.fromiter(counts.values(), np.int32, len(counts))[order])

    def weighed(self, words: Iterable[str] | Mapping[str, float]) -> dict[int, float]:
        """The numbers of those words that any document has, each with its weight (1 where none is given)."""
        weights = words if isinstance(words, Mapping) else dict.fromkeys(words, 1.0)
        return {self._numbers[word]: weight for word, weight in weights.items() if word in self._numbers}

    def number(self, word: str) -> int | None:
        """The number of a word; None: no document has it."""
        return self._numbers.get(word)

    def __len__(self) -> int:
        return len(self._numbers)


class Lexicon:
    """An index over documents.

    Args:
        documents: the bags of the documents.
        vocabulary: what their numbers mean.
        b: strength of length normalisation (0.75 is BM25's usual value; 0.4 suits short paths).
    """

    def __init__(self, documents: Sequence[Bag], vocabulary: Vocabulary, b: float = 0.75) -> None:
        self.size = len(documents)
        self._vocabulary = vocabulary
        lengths = np.array([int(bag.counts.sum()) for bag in documents], dtype=np.float64)
        words = np.concatenate([bag.words for bag in documents]) if documents else np.zeros(0, np.int32)
        counts = np.concatenate([bag.counts for bag in documents]) if documents else np.zeros(0, np.int32)
        owners = np.repeat(np.arange(self.size, dtype=np.int32), [len(bag.words) for bag in documents])
        order = np.argsort(words, kind="stable")
        self._owners = owners[order]
        self._frequency = np.bincount(words, minlength=len(vocabulary)).astype(np.int64)
        self._starts = np.concatenate([[0], np.cumsum(self._frequency)])
        mean = lengths.mean() if self.size and lengths.any() else 1.0
        norm = _K1 * (1 - b + b * lengths / mean)
        frequent = counts[order].astype(np.float32)
        self._gains = (frequent / (frequent + norm[self._owners])).astype(np.float32)

    @classmethod
    def of(cls, texts: Iterable[str], vocabulary: Vocabulary, b: float = 0.75) -> Lexicon:
        """An index over texts."""
        return cls([vocabulary.bag(Counter(tokens(text))) for text in texts], vocabulary, b)

    def scores(self, query: Iterable[str] | Mapping[str, float]) -> Scores:
        """Raw scores, one a document; each distinct token of the query counts once, or as a mapping weighs it."""
        found = np.zeros(self.size)
        for number, weight in sorted(self._vocabulary.weighed(query).items()):
            if number >= len(self._frequency) or not self._frequency[number]:
                continue
            place = slice(self._starts[number], self._starts[number + 1])
            found[self._owners[place]] += weight * _idf(self.size, int(self._frequency[number])) * self._gains[place]
        return found

    def __contains__(self, token: str) -> bool:
        return self.frequency(token) > 0

    def frequency(self, token: str) -> int:
        """In how many documents a token occurs."""
        number = self._vocabulary.number(token)
        return int(self._frequency[number]) if number is not None and number < len(self._frequency) else 0

    def matches(self, document: int, query: Mapping[str, float]) -> list[tuple[float, str]]:
        """What each word of the query adds to the score of one document, most first; words that it lacks are left out.

        Args:
            document: its place.
            query: words with their weights.
        """
        found: list[tuple[float, str]] = []
        for word, weight in query.items():
            number = self._vocabulary.number(word)
            if number is None or number >= len(self._frequency):
                continue
            start, end = self._starts[number], self._starts[number + 1]
            place = start + int(np.searchsorted(self._owners[start:end], document))
            if place < end and self._owners[place] == document:
                found.append((weight * _idf(self.size, int(end - start)) * float(self._gains[place]), word))
        return sorted(found, key=lambda item: (-item[0], item[1]))


def _idf(size: int, count: int) -> float:
    return float(np.log(1 + (size - count + 0.5) / (count + 0.5)))


def scaled(scores: Scores, among: npt.NDArray[np.bool_] | None = None) -> Scores:
    """Divide by the largest score, at most to 1; zeros stay zeros.

    Args:
        scores: of documents.
        among: those of which the largest is taken; None: all.
    """
    top = float((scores if among is None else scores[among]).max(initial=0.0))
    return np.minimum(scores / top, 1.0) if top > 0 else np.zeros_like(scores)
