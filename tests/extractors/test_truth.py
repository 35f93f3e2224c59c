"""Real papers against truth by hand; skipped where the data is not at hand. `benchmarks/extraction` has the full scores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from extractors.document import read_document

DATA = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "pdf"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the papers with truth are not part of the repository")


@pytest.mark.parametrize("name", ["QH9", "2202.00535"])
def test_headings_captions_and_tables(name: str) -> None:
    truth = json.loads((DATA / "truth" / f"{name}.json").read_text("utf-8"))
    document = read_document(DATA / f"{name}.pdf")
    wanted = {h["text"].replace(" ", "") for h in truth["headings"]}
    titles = {f"{s.number or ''}{s.title}".replace(" ", "") for s in document.sections}
    assert len((titles | {document.title.replace(" ", "")}) & wanted) >= 0.9 * len(wanted)
    assert {(c.label, c.page) for c in document.captions} == {(c["label"], c["page"]) for c in truth["captions"]}
    for table in truth["tables"]:
        assert any((t.label, t.page) == (table["label"], table["page"]) for t in document.tables)
        numbers = {cell for row in table["grid"] for cell in row if cell.replace(".", "", 1).isdigit()}
        read = {cell for t in document.tables if t.label == table["label"] for row in t.grid for cell in row}
        assert numbers <= read
    assert document.problems == ()
