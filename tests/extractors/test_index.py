"""The index of a paper: what can be found, and where it stands."""

from __future__ import annotations

from extractors.index import FusedIndex, LexicalIndex, units_of
from pipeline.paper import Caption, FloatKind
from tests.extractors.drafting_documents import BOX
from tests.extractors.engine.papers import HIDDEN, paper

CAPTION = Caption(label="Table 1", kind=FloatKind.TABLE, text="Table 1: Mean test accuracy.", page=2, box=BOX)
UNITS = units_of(paper(injected=True).evolve(captions=(CAPTION,)))


def test_passages_captions_rows_and_figure_texts_can_be_found_and_cite_their_boxes() -> None:
    ids = [unit.id for unit in UNITS]
    assert {"p0", "p2", "caption:Table 1", "Table 1 row 3", "Table 5 row 1", "Figure 1 texts"} <= set(ids)
    assert len(ids) == len(set(ids))
    row = next(unit for unit in UNITS if unit.id == "Table 1 row 3")
    assert row.text == "Method: Ours; Moons: 90.4; Rings: 88.1"
    assert (row.page, row.boxes) == (2, ((2, BOX),))
    assert not any(HIDDEN in unit.text for unit in UNITS)
    assert next(unit for unit in UNITS if "Table 5 lists" in unit.text).appendix


def test_lexical_search_brings_up_what_shares_rare_words_and_nothing_else() -> None:
    index = LexicalIndex(UNITS)
    assert index.search("kernel bandwidth", 3)[0].unit.id == "Table 5 row 1"
    assert index.search("random seeds of each experiment", 1)[0].unit.id == "p2"
    assert index.search("zebra", 5) == []
    assert index.search("", 5) == []
    assert LexicalIndex(()).search("anything", 5) == []


def test_a_unit_that_both_find_comes_first_and_the_order_is_stable() -> None:
    fused = FusedIndex((LexicalIndex(UNITS), LexicalIndex(UNITS)))
    hits = fused.search("repeated with random seeds", 5)
    assert hits[0].unit.id == "p2"
    assert hits == fused.search("repeated with random seeds", 5)
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert fused.units == UNITS
