"""The index of a paper: passages, captions, table rows and figure texts, found by a query, with where they stand.

EXP-Bench 3.2, stage 2.1: later passes ask the whole paper, appendices included. An index is anything with `search`;
lexical (BM25) needs nothing, dense (`extractors.chroma`) ranks by vectors of an embedding function, and `FusedIndex`
puts both together. All are deterministic: a paper has some hundred units. Every
hit cites its unit, and a unit its page and boxes. Text that a reader of the page does not see is in no unit.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final, NamedTuple, Protocol

import bm25s

from extractors.claims import normalize
from pipeline.paper import Box, Document, SectionKind

__all__ = ["Embed", "FusedIndex", "Hit", "LexicalIndex", "PaperIndex", "Unit", "tokens", "units_of"]

Embed = Callable[[Sequence[str]], Sequence[Sequence[float]]]
"""Texts to vectors, one each, e.g. `pipeline.llm.ModelClient.embed`."""

_RANK_OFFSET: Final = 60
"""Reciprocal rank fusion as Cormack et al. (SIGIR 2009) tuned it: 1 / (60 + rank)."""


_STOP: Final = frozenset({
    "the", "a", "an", "of", "and", "or", "to", "in", "on", "for", "with", "by", "is", "are", "was", "were", "be",
    "as", "at", "from", "that", "this", "these", "those", "it", "its", "we", "our", "which", "can", "has", "have",
    "had", "not", "no", "than", "then", "also", "such", "each", "both", "all", "into", "over", "under", "using",
    "used", "use", "between", "their", "they",
})  # fmt: skip


def tokens(text: str) -> list[str]:
    """Lower-case words and symbols without stop words; plural `s` dropped, so that `seeds` finds `seed`."""
    words = re.findall(r"[^\W_]+(?:[-'][^\W_]+)*", normalize(text).lower())
    return [w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words if w not in _STOP]


class Unit(NamedTuple):
    """A piece of a paper that can be found and cited."""

    id: str
    """`p0027`, `caption:Table 2`, `Table 2 row 3`, `Figure 1 texts`."""
    title: str
    """Heading of its section, or the label of its table or figure."""
    text: str
    page: int
    boxes: tuple[tuple[int, Box], ...]
    """(page, box) pairs."""
    appendix: bool = False


class Hit(NamedTuple):
    """A unit with its score; scores are comparable within one answer of one index only."""

    score: float
    unit: Unit


class PaperIndex(Protocol):
    """Anything that finds units of one paper."""

    @property
    def units(self) -> Sequence[Unit]:
        """All units, in the order of the paper."""

    def search(self, query: str, limit: int) -> list[Hit]:
        """The best units for a query, best first, ties in the order of the paper."""


def units_of(document: Document) -> tuple[Unit, ...]:
    """Everything of a paper that can be cited, in reading order; references are left out."""
    units: list[Unit] = []
    for passage in document.passages:
        section = document.section_of(passage)
        if section is not None and section.kind is SectionKind.REFERENCES:
            continue
        appendix = section is not None and section.kind is SectionKind.APPENDIX
        title = section.title if section else document.title
        units.append(Unit(passage.id, title, passage.text, passage.page, passage.boxes, appendix))
    for caption in document.captions:
        boxes = ((caption.page, caption.box),)
        units.append(Unit(f"caption:{caption.label}", caption.label, caption.text, caption.page, boxes))
    for table in document.tables:
        for row in range(table.header_rows, len(table.grid)):
            cells = [
                f"{' / '.join(table.column_headers(column)) or '-'}: {text}"
                for column, text in enumerate(table.grid[row])
                if text
            ]
            drawn = [cell for cell in table.cells if cell.row == row and cell.box is not None]
            page = (drawn[0].page if drawn else None) or table.page
            parts = [cell.box for cell in drawn if cell.box is not None]
            place = (page, reduce(Box.union, parts) if parts else table.box)
            units.append(Unit(f"{table.label} row {row}", table.label, "; ".join(cells), page, (place,)))
    for figure in document.figures:
        if figure.texts:
            place = (figure.page, figure.box)
            units.append(Unit(f"{figure.label} texts", figure.label, "; ".join(figure.texts), figure.page, (place,)))
    return tuple(units)


def _best(scores: Sequence[float], units: Sequence[Unit], limit: int) -> list[Hit]:
    order = sorted(range(len(units)), key=lambda position: (-scores[position], position))
    return [Hit(scores[position], units[position]) for position in order[:limit] if scores[position] > 0]


class LexicalIndex:
    """BM25 over the units."""

    def __init__(self, units: Sequence[Unit]) -> None:
        self.units: Sequence[Unit] = tuple(units)
        self._model = None
        corpus = [tokens(f"{unit.title} {unit.text}") or ["-"] for unit in self.units]
        if corpus:
            self._model = bm25s.BM25()
            self._model.index(corpus, show_progress=False)

    def search(self, query: str, limit: int) -> list[Hit]:
        """The units that share the query's rare words; what shares none is left out."""
        words = sorted(set(tokens(query)))
        if self._model is None or not words:
            return []
        return _best([float(score) for score in self._model.get_scores(words)], self.units, limit)


@dataclass(frozen=True)
class FusedIndex:
    """Several indexes over the same units, by reciprocal rank."""

    indexes: tuple[PaperIndex, ...]

    @property
    def units(self) -> Sequence[Unit]:
        """The units of the first index, which are those of all."""
        return self.indexes[0].units

    def search(self, query: str, limit: int) -> list[Hit]:
        """Units that several indexes rank high come first."""
        position = {unit.id: number for number, unit in enumerate(self.units)}
        scores = [0.0] * len(self.units)
        for index in self.indexes:
            for rank, hit in enumerate(index.search(query, 3 * limit), 1):
                scores[position[hit.unit.id]] += 1 / (_RANK_OFFSET + rank)
        return _best(scores, self.units, limit)
