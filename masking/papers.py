"""Recognising the paper: its words in another file, whatever the format.

Five-word shingles of lower-case words are compared; LaTeX commands, line breaks, hyphenation and markup only break the
shingles that they touch. Measured on the sources and PDFs of real papers in `benchmarks/masking`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from pipeline.paper import Document

__all__ = ["PAPER_SHARE", "PaperProbe", "PaperShare", "document_text", "title_patterns"]

SHINGLE: Final = 5
MIN_SHINGLES: Final = 40
"""A shared abstract has about 150; less than 40 shared shingles is a quoted sentence."""
PAPER_SHARE: Final = 0.15
"""Share of the paper's shingles that makes a file a copy of it; a README with the abstract has 0.02 to 0.06."""
MIN_TITLE: Final = 4
"""Words that a title must have to be overwritten wherever it stands."""
_WORD: Final = re.compile(rb"[a-z]{2,}")
_HYPHEN: Final = re.compile(rb"-\s*\n\s*")


def document_text(document: Document) -> str:
    """All text of a document: passages, captions, table cells."""
    tables = (" ".join(row) for table in document.tables for row in table.grid)
    captions = (caption.text for caption in document.captions)
    return "\n\n".join([*(passage.text for passage in document.passages), *captions, *tables])


def _shingles(data: bytes) -> set[int]:
    words = _WORD.findall(_HYPHEN.sub(b"", data.lower()))
    return {hash(gram) for gram in zip(*(words[offset:] for offset in range(SHINGLE)), strict=False)}


@dataclass(frozen=True, slots=True)
class PaperShare:
    """How much a file has in common with the paper."""

    of_paper: float
    of_file: float
    shared: int


class PaperProbe:
    """Compares texts with the paper.

    Args:
        texts: texts of the same paper (several readings are united).
    """

    def __init__(self, texts: list[str]) -> None:
        self._shingles: set[int] = set()
        for text in texts:
            self._shingles |= _shingles(text.encode("utf-8", "replace"))

    @property
    def usable(self) -> bool:
        """Is there enough text to recognise the paper by?"""
        return len(self._shingles) >= MIN_SHINGLES

    def share(self, data: bytes) -> PaperShare | None:
        """What `data` shares with the paper; None when it is no more than a quotation."""
        if not self.usable or len(data) < 200:
            return None
        found = _shingles(data)
        shared = len(found & self._shingles)
        if shared < MIN_SHINGLES:
            return None
        return PaperShare(shared / len(self._shingles), shared / len(found), shared)


def title_patterns(titles: Iterable[str]) -> list[re.Pattern[bytes]]:
    """Patterns of titles as they are written in files: case, line breaks, hyphens and comment signs do not matter.

    Titles of less than four words are left out: they may be ordinary words.
    """
    found: dict[tuple[str, ...], None] = {}
    for title in titles:
        words = tuple(re.findall(r"[^\W_]+", title))
        if len(words) >= MIN_TITLE:
            found.setdefault(words)
    return [
        re.compile(
            rb"(?<!\w)" + rb"[\s\W]{1,12}".join(re.escape(w.encode()) for w in words) + rb"(?!\w)", re.IGNORECASE
        )
        for words in found
    ]
