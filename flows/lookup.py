"""Looking something up in one paper: the lexical and the dense index together, with where each hit stands.

The dense index is kept in the user's cache, by the content of the paper, so that a second question is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from rich.console import Console
from rich.markup import escape

from pipeline.paper import Document
from pipeline.settings import Settings
from pipeline.text import shorten

__all__ = ["look_up", "print_found"]

_HITS: Final = 5


def look_up(document: Document, queries: Sequence[str]) -> list[dict[str, Any]]:
    """The best units for each query, with page and boxes.

    Raises:
        ExpbenchError: the index in the cache cannot be read or written.
    """
    from extractors.chroma import ChromaIndex
    from extractors.index import FusedIndex, LexicalIndex, units_of

    units = units_of(document)
    dense = ChromaIndex(units, Settings().cache_dir / "index")
    index = FusedIndex((LexicalIndex(units), dense))
    try:
        return [
            {
                "query": query,
                "hits": [
                    {
                        "id": hit.unit.id, "title": hit.unit.title, "text": hit.unit.text, "page": hit.unit.page,
                        "boxes": [[page, list(box)] for page, box in hit.unit.boxes], "score": round(hit.score, 6),
                    }
                    for hit in index.search(query, _HITS)
                ],
            }
            for query in queries
        ]  # fmt: skip
    finally:
        dense.close()


def print_found(found: Sequence[dict[str, Any]], console: Console) -> None:
    """The hits as text."""
    for answer in found:
        console.print(f"[bold]{escape(answer['query'])}[/bold]")
        for hit in answer["hits"]:
            where = f"{hit['id']}, p. {hit['page']}"
            line = f"  {escape(where):<24} {escape(shorten(hit['title'], 40))}: {escape(shorten(hit['text'], 160))}"
            console.print(line, soft_wrap=True)
        if not answer["hits"]:
            console.print("  nothing")
