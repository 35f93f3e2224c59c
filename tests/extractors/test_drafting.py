"""Drafts from matches: what came out is asked for and claimed, under the names that paper and artefact give it."""

from __future__ import annotations

from extractors.drafting import as_stated, draft_tables, ground_of
from pipeline.match.records import CellMatch, TableMatch
from pipeline.paper import Box, Cell, Document, Page, Passage, PassageKind, Quantity, Section, Table
from pipeline.schema import Severity
from pipeline.task import Draft

BOX = Box(0, 0, 10, 10)
CODE = '"""Train the ridge regression on every split and score it on held out rows."""\ndef score_split(rows): ...'
SENTENCES = (
    "We train the ridge regression on every split and score it on the rows held out.",
    "The weather in the mountains was pleasant during the whole of that long summer.",
    "Ridge reaches 0.913 on the rows of every split that the regression was not trained on.",
    "We score the ridge regression on every split, and the rows held out differ by 0.07 from those it is trained on.",
)


def document_of(grid: list[list[str]], caption: str) -> Document:
    cells = [
        Cell(row=r, column=c, text=text, quantity=quantity_of(text) if r and c else None)
        for r, row in enumerate(grid)
        for c, text in enumerate(row)
    ]
    table = Table(
        label="Table 1", caption=caption, page=1, box=BOX, grid=tuple(map(tuple, grid)), header_rows=1,
        cells=tuple(cells), confidence=0.9,
    )  # fmt: skip
    passages = [
        Passage(id=f"p{n}", section=0, kind=PassageKind.PARAGRAPH, text=text, boxes=((1, BOX),))
        for n, text in enumerate(SENTENCES)
    ]
    return Document(
        sha256="0" * 64, title="A Paper", pages=(Page(number=1, width=100, height=100, columns=1, text_quality=1),),
        sections=(Section(number="1", title="Experiments", level=1, page=1, box=BOX),), passages=tuple(passages),
        tables=(table,), extractor="test",
    )  # fmt: skip


def quantity_of(text: str) -> Quantity:
    return Quantity(text=text, value=float(text), decimals=len(text.partition(".")[2]))


def match_of(grid: list[list[str]], *, missed: tuple[tuple[int, int], ...] = ()) -> TableMatch:
    def cell(row: int, column: int) -> CellMatch:
        text = grid[row][column]
        return CellMatch(
            row=row, column=column, text=text, value=float(text), decimals=len(text.partition(".")[2]),
            source="run:a", place=f"stdout :: {row} {column}", where=f"stdout:{row}", observed=float(text),
        )  # fmt: skip

    places = [(r, c) for r in range(1, len(grid)) for c in range(1, len(grid[0]))]
    return TableMatch(
        label="Table 1", page=1, source="run:a", origin="run", compared=len(places), chance=-9.0,
        cells=tuple(cell(*place) for place in places if place not in missed),
        missed=tuple(cell(*place).evolve(observed=0.5) for place in missed),
    )  # fmt: skip


def drafted(
    grid: list[list[str]], caption: str, *, missed: tuple[tuple[int, int], ...] = (), keys: dict[str, str] | None = None,
    field: str = "",
) -> tuple[Draft, list[str]]:  # fmt: skip
    match = match_of(grid, missed=missed)
    fields = {(cell.source, cell.place): field or grid[0][cell.column].lower() for cell in match.cells}
    result = draft_tables(document_of(grid, caption), [ground_of(match, CODE, keys, fields)]).result
    told = [problem.message for problem in result.problems if problem.severity is not Severity.ERROR]
    return result.drafts[0], told


MEASURES = [["Method", "Accuracy", "F1"], ["Ridge", "0.913", "0.851"], ["Lasso", "0.887", "0.803"]]
DATA = [["Method", "Moons", "Rings"], ["Ridge", "0.913", "0.851"], ["Lasso", "0.887", "0.803"]]


def test_labels_with_fields_of_their_own_are_the_metrics() -> None:
    draft, _ = drafted(MEASURES, "Table 1: Results on held out rows.")
    claims = {(claim.metric, claim.conditions[0].value): claim.text for claim in draft.expected.claims}
    assert claims["Accuracy", "Ridge"] == "0.913"
    assert claims["F1", "Lasso"] == "0.803"
    assert "How do Ridge and Lasso compare in Accuracy and F1" in draft.question


def test_one_field_of_the_artefact_is_the_metric_and_labels_are_conditions() -> None:
    draft, told = drafted(DATA, "Table 1: The methods.", field="silhouette_width")
    assert {claim.metric for claim in draft.expected.claims} == {"silhouette width"}
    assert {condition.value for claim in draft.expected.claims for condition in claim.conditions} >= {"Moons", "Rings"}
    assert not any("to check: are" in message for message in told)


def test_where_the_numbers_are_alike_the_reviewer_is_asked_one_question() -> None:
    _, told = drafted(DATA, "Table 1: The methods.")
    assert sum("measures of their own, or conditions" in message for message in told) == 1


def test_keys_of_the_artefact_name_what_a_header_does_not() -> None:
    grid = [["", *DATA[0][1:]], *DATA[1:]]
    draft, _ = drafted(grid, "Table 1: Test accuracy.", keys={"Ridge": "estimator", "Lasso": "estimator"}, field="acc")
    assert {condition.name for condition in draft.expected.claims[0].conditions} == {"estimator", "setting"}


def test_what_did_not_come_out_is_no_claim_and_is_said() -> None:
    draft, told = drafted(MEASURES, "Table 1: Results.", missed=((2, 2),))
    assert len(draft.expected.claims) == 3
    assert "0.803" not in {claim.text for claim in draft.expected.claims}
    assert any("left out: row 2, column 2 prints 0.803" in message for message in told)


def test_the_method_is_what_the_code_bears_out_and_tells_no_result() -> None:
    draft, _ = drafted(MEASURES, "Table 1: Results.")
    assert draft.method == SENTENCES[0]
    assert "0.913" not in f"{draft.question} {draft.method} {draft.agent_instructions}"


def test_claims_keep_their_place_factor_and_printed_band() -> None:
    draft, _ = drafted(MEASURES, "Table 1: Results.")
    claim = draft.expected.claims[0]
    assert claim.place == "stdout :: 1 1"
    assert (claim.band.low, claim.band.high) == (0.9125, 0.9135)


def test_of_a_match_with_several_runs_only_the_numbers_of_one_are_claims() -> None:
    """Files of one kind match together, also those of two runs: the places of one are not those of the other."""
    match = match_of(MEASURES, missed=((2, 2),))
    other = match.cells[-1].evolve(source="run:b")
    both = match.evolve(cells=(*match.cells[:-1], other), missed=(match.missed[0].evolve(source="run:b"),))
    claims = as_stated(document_of(MEASURES, "Table 1: Results."), both)
    assert {cell.source for cell in claims.cells} == {"run:a"}
    assert len(claims.cells) == 2
    assert claims.missed == ()


def test_the_table_of_a_match_is_the_one_it_was_made_from() -> None:
    """Two tables of one page may carry the same label."""
    first, second = document_of(MEASURES, "Table 1: First."), document_of(DATA, "Table 1: Second.")
    document = first.evolve(tables=(*first.tables, *second.tables))
    result = draft_tables(document, [ground_of(match_of(DATA).evolve(table=1), CODE)]).result
    assert "Second" in result.drafts[0].question


def test_a_committed_file_proves_nothing_and_its_places_are_none_of_a_run() -> None:
    match = match_of(MEASURES).evolve(origin="committed", source="results.csv")
    result = draft_tables(document_of(MEASURES, "Table 1: Results."), [ground_of(match)]).result
    (draft,) = result.drafts
    assert {claim.place for claim in draft.expected.claims} == {""}
    assert draft.confidence < 0.5
    assert draft.method == ""
    told = [problem.message for problem in result.problems]
    assert "no run gives its numbers; 4 stand in results.csv" in told


def test_a_passage_that_discusses_a_table_gives_no_method() -> None:
    """A bug it records: `CAW is the most accurate method` stood in a method, beside the sentence that named its table."""
    document = document_of(MEASURES, "Table 1: Results.")
    told = "Table 1 has the scores. The ridge regression scores best on every split of the rows held out."
    listed = "score every split of the rows on which the ridge regression was trained;"
    texts = (told, listed, SENTENCES[0], SENTENCES[1])
    passages = tuple(p.evolve(text=text) for p, text in zip(document.passages, texts, strict=True))
    result = draft_tables(document.evolve(passages=passages), [ground_of(match_of(MEASURES), CODE)]).result
    assert result.drafts[0].method == SENTENCES[0]
