"""The paper as text for a prompt: passages with their ids, tables with numbered rows and columns, figures.

Only what `pipeline.paper.Document` holds as visible is shown, and always as an untrusted input of a prompt.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from extractors.index import Hit, Unit
from pipeline.paper import Document, Figure, Passage, Section, Table

__all__ = ["show_figure", "show_hits", "show_passages", "show_section", "show_table"]

_LONGEST_TABLE: Final = 12_000
"""Characters. The largest of 22 result tables read here (264 numbers) takes 5,100."""


def show_passages(passages: Iterable[Passage]) -> str:
    """Passages with their ids, one a line."""
    return "\n".join(f"[{passage.id}] {passage.text}" for passage in passages)


def show_section(section: Section | None, passages: Sequence[Passage]) -> str:
    """A heading and what stands under it."""
    heading = "" if section is None else f"{section.number or ''} {section.title}".strip() + "\n"
    return heading + show_passages(passages)


def show_table(table: Table) -> str:
    """A grid with the numbers of its rows and columns, as the answers refer to them."""
    width = max((len(row) for row in table.grid), default=0)
    lines = [f"{table.caption} (page {table.page})", "row | " + " | ".join(f"column {n}" for n in range(width))]
    for number, row in enumerate(table.grid):
        kind = " (header)" if number < table.header_rows else ""
        lines.append(f"{number}{kind} | " + " | ".join(row))
    text = "\n".join(lines)
    if len(text) <= _LONGEST_TABLE:
        return text
    kept = text[:_LONGEST_TABLE].rsplit("\n", 1)[0]
    return (
        f"{kept}\n[... the last {len(lines) - kept.count(chr(10)) - 1} rows are not shown: the table is too long ...]"
    )


def show_figure(figure: Figure) -> str:
    """A caption and the texts inside the figure."""
    texts = f"\nTexts in it: {'; '.join(figure.texts)}" if figure.texts else ""
    return f"{figure.caption} (page {figure.page}){texts}"


def show_hits(document: Document, hits: Sequence[Hit], limit: int) -> str:
    """What an index found, as much as fits into `limit` characters, in the order of the paper.

    The best hits are taken first; the order of the paper is how they are read.
    """
    order = {unit_id: position for position, unit_id in enumerate(_order(document))}
    chosen: list[Unit] = []
    size = 0
    for hit in hits:
        line = _line(hit.unit)
        if size + len(line) > limit and chosen:
            break
        chosen.append(hit.unit)
        size += len(line) + 1
    chosen.sort(key=lambda unit: (order.get(unit.id, len(order)), unit.page, unit.id))
    return "\n".join(_line(unit)[:limit] for unit in chosen)


def _order(document: Document) -> list[str]:
    return [passage.id for passage in document.passages]


def _line(unit: Unit) -> str:
    return f"[{unit.id}; {unit.title}; page {unit.page}] {unit.text}"
