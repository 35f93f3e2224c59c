"""The paper with ids: what is shown, and what stands behind each id."""

from __future__ import annotations

import pytest

from extractors.engine.listing import Listing
from pipeline.paper import Caption, FloatKind
from pipeline.task import TableEvidence, TextEvidence
from tests.extractors.drafting_documents import BOX, document
from tests.extractors.engine.papers import HIDDEN, MAIN, paper


def test_everything_but_references_and_hidden_text_is_shown_with_its_id() -> None:
    source = document(
        [("Results", "body", ["We measure."]), ("References", "references", ["Smith et al. 97.1% accuracy. 2019."])],
        (MAIN,),
    )
    caption = Caption(label="Figure 1", kind=FloatKind.FIGURE, text="Figure 1: Curves.", page=1, box=BOX)
    listing = Listing(source.evolve(captions=(caption,)))
    shown = listing.shown()
    assert "## Results (page 1)\n[p0] We measure." in shown
    assert "[T1] (page 2) Table 1: Mean test accuracy" in shown
    assert "\nr0 (header) | Method | Moons | Rings\nr1 | Plain | 81.2 | 77.4\n" in shown
    assert "[F1] (page 1) Figure 1: Curves." in shown
    assert "Smith" not in shown
    assert listing.evidence("p1") is None
    assert HIDDEN not in Listing(paper(injected=True)).shown()


def test_ids_follow_the_labels_that_are_printed() -> None:
    parts = [MAIN.evolve(label=label) for label in ("TABLE III", "Table A.1", "Table 3", "")]
    assert list(Listing(paper().evolve(tables=tuple(parts))).tables) == ["T3", "TA.1", "T3b", "T"]
    padded = paper().evolve(passages=(paper().passages[0].evolve(id="p0012"),))
    assert isinstance(Listing(padded).evidence("p12"), TextEvidence)


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("T1.r1c2", (1,), (2,)),
        ("[T1.r1-3c1-2]", (1, 2, 3), (1, 2)),
        ("T1.r1,3c2", (1, 3), (2,)),
        ("T1.r1–2c1", (1, 2), (1,)),
        ("T1.r1.c1", (1,), (1,)),
    ],
)
def test_ranges_of_cells_are_read(name: str, rows: tuple[int, ...], columns: tuple[int, ...]) -> None:
    cells = Listing(paper()).cells(name)
    assert cells is not None
    assert (cells.table, cells.rows, cells.columns) == (MAIN, rows, columns)


@pytest.mark.parametrize(
    "name",
    ["T1.r9c1", "T1.r1c9", "T9.r1c1", "T1", "T1.r2-1c1", "T1.r1-c1", "T1.r-1c1", "T1.r0-99999999999c1", "", "p2"],
)
def test_what_is_no_range_within_its_table_is_none(name: str) -> None:
    assert Listing(paper()).cells(name) is None


def test_evidence_stands_where_the_paper_has_it() -> None:
    listing = Listing(paper())
    for name in ("p2", "T1", "T1.r3c2", "T1.r1-2c1"):
        found = listing.evidence(name)
        assert found is not None
        assert listing.reading.supports(found)
    cell = listing.evidence("T1.r3c2")
    assert isinstance(cell, TableEvidence)
    assert (cell.quote, cell.row_labels, cell.column_headers) == ("88.1", ("Ours",), ("Rings",))
    assert "Ours | Rings | 88.1" in listing.text("T1.r3c1-2")
    assert listing.evidence("T9") is None
    assert listing.text("nothing") == ""
