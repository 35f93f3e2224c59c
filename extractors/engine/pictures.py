"""Pictures of tables that may have been read wrongly, for a reader that sees the listing too."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from extractors.crops import table_pictures
from pipeline.llm import ImagePart
from pipeline.paper import Document, Table

__all__ = ["doubtful_tables", "pictures_of"]

_DOUBTFUL: Final = 0.7
"""Confidence below which a table is shown: a grid with fewer rules than rows, cells left over, or read by OCR."""
_MOST: Final = 6


def doubtful_tables(document: Document) -> tuple[Table, ...]:
    """The tables whose pictures are shown, in the order of the paper."""
    return tuple(table for table in document.tables if table.confidence < _DOUBTFUL)[:_MOST]


def pictures_of(pdf: Path, document: Document) -> tuple[ImagePart, ...]:
    """Their pictures.

    Raises:
        ExpbenchError: the file cannot be read.
    """
    found = (picture for table in doubtful_tables(document) for picture in table_pictures(pdf, document, [table]))
    return tuple(ImagePart(data=picture) for picture in found)
