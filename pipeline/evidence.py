"""Evidence: the span of the paper or of the code that supports a field of a task."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from pipeline.paper import Box
from pipeline.schema import Record

__all__ = ["CodeEvidence", "Evidence", "TableEvidence", "TextEvidence"]


class TextEvidence(Record):
    """A quote from the paper. `quote` occurs in the document's text at that place."""

    kind: Literal["text"] = "text"
    page: int
    box: Box
    quote: str
    section: str | None = None


class TableEvidence(Record):
    """A cell of a table (or, with `row` and `column` None, the table as a whole)."""

    kind: Literal["table"] = "table"
    label: str
    page: int
    box: Box
    row: int | None = None
    column: int | None = None
    quote: str
    row_labels: tuple[str, ...] = ()
    column_headers: tuple[str, ...] = ()


class CodeEvidence(Record):
    """Lines of a repository file, both ends included, numbered from 1."""

    kind: Literal["code"] = "code"
    path: str
    start: int = Field(ge=1)
    end: int = Field(ge=1)
    quote: str = ""


Evidence = Annotated[TextEvidence | TableEvidence | CodeEvidence, Field(discriminator="kind")]
