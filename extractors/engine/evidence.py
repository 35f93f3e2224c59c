"""Does the paper say that? Quotes looked up in the document, numbers in the quoted span.

A model's quote counts only when it stands in the paper: matched without regard to white space, case, ligatures and
kinds of dashes and quotation marks, at word boundaries, and taken over as the *paper* prints it, with page and box.
Anything else is not evidence. Non-goal: judging whether the quote supports what is concluded from it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final, NamedTuple

from extractors._reading import Reading, label_key
from extractors.claims import Number, find_numbers, normalize
from pipeline.paper import Box, Document, PassageKind, SectionKind, Table
from pipeline.task import Evidence, TableEvidence, TextEvidence

__all__ = ["Paper", "Span", "compact", "contains", "number_in", "words_of"]

_SHORTEST: Final = 12
"""Characters without blanks: `accuracy 90.2`. Shorter quotes (`the model`) stand in every paper and support nothing."""
_SAME: Final = str.maketrans(
    dict.fromkeys("−–—‐‑‒―", "-") | dict.fromkeys("“”„‟«»″", '"') | dict.fromkeys("‘’‚‛′´`", "'")
)  # fmt: skip
_ELISION: Final = re.compile(r"\s*(?:\[\s*(?:\.\.\.|…)\s*\]|\.\.\.|…)\s*")
_NAMES_A_FLOAT: Final = re.compile(
    r"(?:\b(?:tables?|tab\.|figures?|figs?\.?|sections?|sec\.|§|eqs?\.?|equations?|appendix|algorithms?)\s*|\[\s?)$",
    re.IGNORECASE,
)


class Span(NamedTuple):
    """A piece of the paper's text that a quote was found as."""

    text: str
    """As the paper prints it."""
    page: int
    box: Box
    section: str | None
    passage: str | None
    """Id of the passage; None in a caption."""

    def evidence(self) -> TextEvidence:
        """The span as evidence."""
        return TextEvidence(page=self.page, box=self.box, quote=self.text, section=self.section)


class _Text(NamedTuple):
    """A searchable text with the position in the original of each character that was kept."""

    plain: str
    positions: tuple[int, ...]
    original: str
    boxes: tuple[tuple[int, Box], ...]
    section: str | None
    passage: str | None


def compact(text: str) -> tuple[str, tuple[int, ...]]:
    """Text without blanks and in one form of each character; the origin of each character."""
    kept: list[str] = []
    positions: list[int] = []
    for position, character in enumerate(text):
        for part in unicodedata.normalize("NFKC", character).translate(_SAME).casefold():
            if not part.isspace() and unicodedata.category(part) not in {"Cf", "Cc", "Mn"}:
                kept.append(part)
                positions.append(position)
    return "".join(kept), tuple(positions)


class Paper:
    """A document in which quotes, tables and words are looked up.

    Args:
        document: the structured reading of the PDF.
    """

    def __init__(self, document: Document) -> None:
        self.document = document
        self.reading = Reading(document)
        self._texts = tuple(self._searchable())
        self._tables: dict[str, list[Table]] = {}
        for table in document.tables:
            self._tables.setdefault(label_key(table.label), []).append(table)
        visible = [text.original for text in self._texts]
        visible += [cell for table in document.tables for row in table.grid for cell in row]
        visible += [text for figure in document.figures for text in figure.texts]
        self._words = frozenset(word for text in [document.title, *visible] for word in words_of(text))

    def _searchable(self) -> Iterator[_Text]:
        for passage in self.document.passages:
            section = self.document.section_of(passage)
            if passage.kind is PassageKind.REFERENCE or (section and section.kind is SectionKind.REFERENCES):
                continue
            title = section.title if section else None
            yield _Text(*compact(passage.text), passage.text, passage.boxes, title, passage.id)
        captions = {caption.text: (caption.page, caption.box, caption.label) for caption in self.document.captions}
        for table in self.document.tables:
            captions.setdefault(table.caption, (table.page, table.box, table.label))
        for text, (page, box, label) in captions.items():
            yield _Text(*compact(text), text, ((page, box),), label, None)

    def find(self, quote: str, *, near: frozenset[str] = frozenset()) -> tuple[Span, ...]:
        """Where a quote stands, one span per part between elisions (`...`); empty when any part is nowhere.

        Args:
            quote: what a model says that the paper says.
            near: ids of passages to prefer where the words stand in several places.
        """
        parts = [part for part in _ELISION.split(quote.strip().strip('"“”')) if part.strip()]
        spans: list[Span] = []
        for part in parts:
            found = self._find_part(part, near)
            if found is None:
                return ()
            spans.append(found)
        return tuple(spans)

    def _find_part(self, part: str, near: frozenset[str]) -> Span | None:
        wanted = compact(part)[0]
        if len(wanted) < _SHORTEST:
            return None
        candidates = [wanted, wanted.rstrip(".;,:")]
        for text in sorted(self._texts, key=lambda text: text.passage not in near):  # stable: reading order within
            for plain in candidates:
                for start in _occurrences(text.plain, plain):
                    first, last = text.positions[start], text.positions[start + len(plain) - 1]
                    if _at_boundaries(text.original, first, last + 1):
                        page, box = _place(text, first)
                        return Span(text.original[first : last + 1], page, box, text.section, text.passage)
        return None

    # --- tables ---

    def table(self, label: str) -> Table | None:
        """The table with a label, whichever way it is written; None when there is none."""
        tables = self._tables.get(label_key(label))
        return tables[0] if tables else None

    def cell(self, table: Table, row: int, column: int) -> TableEvidence | None:
        """A cell as evidence, or None when the table has no such cell or it is empty."""
        if not (0 <= row < len(table.grid) and 0 <= column < len(table.grid[row])) or not table.grid[row][column]:
            return None
        page, box = table.place_of(row, column)
        return TableEvidence(
            label=table.label, page=page, box=box, row=row, column=column, quote=table.grid[row][column],
            row_labels=table.row_labels(row), column_headers=table.column_headers(column),
        )  # fmt: skip

    # --- words ---

    def knows(self, text: str) -> bool:
        """Does every word and number of `text` occur somewhere in the paper?"""
        words = words_of(text)
        return bool(words) and all(word in self._words for word in words)

    def foreign_names(self, text: str) -> list[str]:
        """Names in `text` that the paper does not use: words with a capital inside, or letters mixed with digits.

        `ImageNet`, `LSTM`, `resnet18`; ordinary words are the writer's own and are not looked up, with hyphens
        (`hyper-parameter` where the paper prints `hyperparameter`) or without.
        """
        words = re.findall(r"[^\W_]+(?:-[^\W_]+)*", text)
        names = [
            w
            for w in words
            if any(c.isupper() for part in w.split("-") for c in part[1:])
            or (any(c.isdigit() for c in w) and any(c.isalpha() for c in w))
        ]
        return [name for name in dict.fromkeys(names) if not self.knows(name)]

    def supports(self, evidence: Evidence) -> bool:
        """The last gate, shared with the keyless engine: the quote stands on the page that the evidence names."""
        return self.reading.supports(evidence)


def _occurrences(text: str, part: str) -> Iterator[int]:
    start = text.find(part)
    while start >= 0:
        yield start
        start = text.find(part, start + 1)


def _at_boundaries(text: str, start: int, end: int) -> bool:
    """`0.2%` is no quote of `90.2%`, and `art of` none of `part of`."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before[-1:].isalnum() and text[start].isalnum():
        return False
    if after[:1].isalnum() and text[end - 1].isalnum():
        return False
    cut_before = re.search(r"\d[.,]?$", before) and re.match(r"[.,]?\d", text[start : start + 2])
    cut_after = re.match(r"[.,]?\d", after) and re.search(r"\d[.,]?$", text[max(start, end - 2) : end])
    return not (cut_before or cut_after)


def _place(text: _Text, offset: int) -> tuple[int, Box]:
    """Page and box of a character of a text that may run over columns and pages, by share of the boxes' area."""
    areas = [max((box.x1 - box.x0) * (box.y1 - box.y0), 1.0) for _, box in text.boxes]
    point = offset / max(len(text.original), 1) * sum(areas)
    for place, area in zip(text.boxes, areas, strict=True):
        if point <= area:
            return place
        point -= area
    return text.boxes[-1]


def words_of(text: str) -> frozenset[str]:
    """Words and numbers of a text in lower case, hyphens taken apart, plural `s` dropped."""
    words = re.findall(r"\d+(?:[.,]\d+)*|[^\W\d_]+", unicodedata.normalize("NFKC", normalize(text)).casefold())
    return frozenset(w[:-1] if len(w) > 3 and w.endswith("s") and not w.endswith("ss") else w for w in words)


def number_in(span: str, value: str) -> Number | None:
    """The number of `span` that `value` states: equal in value and printed with as many digits; None when none is.

    Numbers of tables, figures, sections and references in the span do not count.

    Args:
        span: text of the paper.
        value: one number as a model gives it, possibly with unit and plus-minus part.
    """
    wanted = [_signed(value, number) for number in find_numbers(value)]
    if len(wanted) != 1:
        return None
    for number in (_signed(span, number) for number in find_numbers(span)):
        if number.value != wanted[0].value or number.decimals != wanted[0].decimals:
            continue
        if wanted[0].uncertainty is not None and number.uncertainty != wanted[0].uncertainty:
            continue
        if not _NAMES_A_FLOAT.search(span[: number.start]):
            return number
    return None


def _signed(text: str, number: Number) -> Number:
    """A number with the minus sign that is printed right before it, after a blank (`a change of −0.31`)."""
    minus = re.match(r"[-−–](?=[\d.])", number.text)
    if minus and (number.start == 0 or text[number.start - 1] in " (["):
        return number._replace(value=-abs(number.value))
    return number


def contains(text: str, value: str) -> bool:
    """Does `value` stand in `text` at word boundaries, blanks and kinds of dashes apart?"""
    plain, positions = compact(text)
    wanted = compact(value)[0]
    return bool(wanted) and any(
        _at_boundaries(text, positions[start], positions[start + len(wanted) - 1] + 1)
        for start in _occurrences(plain, wanted)
    )
