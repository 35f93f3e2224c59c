"""Whose sentences a method is made of: between the opening section and the end of the section that tells the result."""

from __future__ import annotations

from extractors._reading import Reading
from extractors.claims import printed_band
from extractors.method import Method
from pipeline.task import Expected, NumericClaim, TableEvidence, TextEvidence
from tests.extractors.drafting_documents import BOX, RESULTS, document

CODE = "def fit_ridge(rows, penalty): 'fit the ridge regression with penalty on every split of the rows held out'"
HOW = "We fit the ridge regression with penalty on every split of the rows."


def _paper(*kinds: tuple[str, str, str]) -> Reading:
    return Reading(document([(title, kind, [f"{HOW[:-1]} ({title}).", *([more] if more else [])])
                             for title, kind, more in kinds], (RESULTS,)))  # fmt: skip


def _expected(evidence: TextEvidence | TableEvidence) -> Expected:
    claim = NumericClaim(
        id="c1", metric="accuracy", value=90.4, text="90.4", decimals=1, band=printed_band(90.4, 0.1, None),
        evidence=(evidence,),
    )  # fmt: skip
    return Expected(text="-", claims=(claim,))


OF_TABLE = TableEvidence(label="Table 1", page=2, box=BOX, quote="90.4")
PARTS = (("One", "body", ""), ("Two", "body", ""), ("Three", "body", "Table 1 has the scores."), ("Four", "body", ""))


def _sections(reading: Reading, evidence: TextEvidence | TableEvidence) -> list[str | None]:
    return [reading.section_title(line) for line in Method(reading).borne_out(CODE, _expected(evidence))]


def test_the_opening_and_what_follows_the_result_give_no_method() -> None:
    """A bug it records: conclusions in words stood in the method of a candidate, so that a person had to write it."""
    assert _sections(_paper(*PARTS), OF_TABLE) == ["Two", "Three"]


def test_an_appendix_may_tell_more_of_the_method() -> None:
    assert _sections(_paper(*PARTS, ("Five", "appendix", "")), OF_TABLE) == ["Two", "Three", "Five"]


def test_a_result_in_a_sentence_stands_where_its_quote_does() -> None:
    reading = _paper(*PARTS[:2], ("Three", "body", "It scores 90.4 on the rows held out."), PARTS[3])
    quoted = TextEvidence(page=1, box=BOX, quote="It scores 90.4 on the rows held out.")
    assert _sections(reading, quoted) == ["Two", "Three"]


def test_a_table_that_nothing_refers_to_ends_the_method_with_its_page() -> None:
    parts = (*PARTS[:2], ("Three", "body", "All of this is told below."), PARTS[3])
    assert _sections(_paper(*parts), OF_TABLE) == ["Two", "Three", "Four"]
    assert _sections(_paper(*parts), OF_TABLE.evolve(page=0)) == []


def test_a_paper_of_one_section_has_no_opening() -> None:
    assert _sections(_paper(("One", "body", "Table 1 has the scores.")), OF_TABLE) == ["One"]
