"""BM25 over token lists (bm25s, `lucene` variant), scaled so that the best document of a query has 1."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

__all__ = ["Lexicon", "best_by_owner", "scaled"]

Scores = npt.NDArray[np.float64]


class Lexicon:
    """An index over documents given as token lists.

    Args:
        documents: the tokens of each document.
        b: strength of length normalisation (0.75 is BM25's usual value; 0.4 suits short paths).
    """

    def __init__(self, documents: Sequence[list[str]], b: float = 0.75) -> None:
        import bm25s

        self.size = len(documents)
        self._model = None
        self.frequency: dict[str, int] = {}
        for document in documents:
            for token in set(document):
                self.frequency[token] = self.frequency.get(token, 0) + 1
        if self.frequency:
            self._model = bm25s.BM25(method="lucene", k1=1.5, b=b)
            self._model.index([document or [""] for document in documents], show_progress=False)

    def scores(self, query: Iterable[str]) -> Scores:
        """Raw scores, one a document; each distinct token of the query counts once."""
        known = sorted({token for token in query if token in self.frequency})
        if self._model is None or not known:
            return np.zeros(self.size)
        return np.asarray(self._model.get_scores(known), dtype=np.float64)

    @property
    def rarest(self) -> float:
        """Inverse document frequency of a token that one document has."""
        return float(np.log(1 + (self.size - 0.5) / 1.5)) if self.size else 0.0

    def idf(self, token: str) -> float:
        """Inverse document frequency of a token, 0 for one that is everywhere."""
        count = self.frequency.get(token, 0)
        return float(np.log(1 + (self.size - count + 0.5) / (count + 0.5))) if count else 0.0


def scaled(scores: Scores, least: float = 0.0) -> Scores:
    """Divide by the largest score, or by `least` where that is larger; zeros stay zeros."""
    top = max(float(scores.max(initial=0.0)), least)
    return scores / top if top > 0 else np.zeros_like(scores)


def best_by_owner(scores: Scores, owners: npt.NDArray[np.int64], size: int) -> Scores:
    """The best score of the chunks of each of `size` files."""
    best = np.zeros(size)
    np.maximum.at(best, owners, scores)
    return best
