from __future__ import annotations

from pathlib import Path

import pytest

from extractors._reading import Reading, label_key, references_in
from extractors.answers import states_answer
from extractors.document import read_document
from extractors.keyless import DraftResult, draft_tasks
from pipeline.paper import Document
from pipeline.task import Draft, TextEvidence
from tests.extractors.drafting_documents import RESULTS, document, small_paper, table

SHARED = Path(__file__).resolve().parents[2] / ".." / "shared" / "data" / "pdf"


def sound(source: Document, result: DraftResult) -> None:
    """What must hold of every draft of every paper."""
    reading = Reading(source)
    assert len({draft.slug for draft in result.drafts}) == len(result.drafts)
    assert [d.confidence for d in result.drafts] == sorted((d.confidence for d in result.drafts), reverse=True)
    for draft in result.drafts:
        for text in (draft.question, draft.method, draft.agent_instructions):
            assert states_answer(text, draft) == []
        assert {"question", "method", "expected"} <= set(draft.evidence)
        assert draft.question.endswith("?")
        spans = [span for spans in draft.evidence.values() for span in spans]
        spans += [span for claim in draft.expected.claims for span in claim.evidence]
        spans += [span for setting in draft.hyperparameters for span in setting.evidence]
        assert all(reading.supports(span) for span in spans)
        assert 0 < len(draft.expected.claims) <= 100
        values = {claim.id: claim.value for claim in draft.expected.claims}
        for left, relation, right in draft.expected.comparisons:
            assert (values[left] > values[right]) if relation == ">" else (values[left] < values[right])
        assert all(claim.band.holds(claim.value) for claim in draft.expected.claims)


def by_slug(result: DraftResult, start: str) -> Draft:
    return next(draft for draft in result.drafts if draft.slug.startswith(start))


def test_a_small_paper() -> None:
    source = small_paper()
    result = draft_tasks(source)
    sound(source, result)
    main = by_slug(result, "table-1")
    assert main.question == "How do Plain, Huber and Ours compare in test accuracy on the spirals data?"
    assert [claim.text for claim in main.expected.claims] == ["81.2", "86.5", "90.4 ± 0.6"]
    assert "Train every model on 600 points of the spirals data." in main.method
    assert {(h.name, h.value) for h in main.hyperparameters} >= {("learning rate", "0.01"), ("Bandwidth", "0.55")}
    assert main.expected.text.startswith(
        "Test accuracy is highest for Ours (90.4 ± 0.6%), then Huber (86.5%) and Plain"
    )
    assert ("c3", ">", "c2") in main.expected.comparisons
    assert [variable.name for variable in main.independent] == ["Method"]
    assert main.dependent[0].values == ("%",)


def test_results_without_a_table() -> None:
    draft = by_slug(draft_tasks(small_paper()), "runtime")
    (claim,) = draft.expected.claims
    assert (claim.metric, claim.value, claim.unit) == ("runtime", 12.5, "s")
    assert {(c.name, c.value) for c in claim.conditions} == {("method", "Ours"), ("n", "600"), ("data", "spirals")}
    assert isinstance(claim.evidence[0], TextEvidence)


def test_what_was_refused_is_said() -> None:
    messages = {problem.where: problem.message for problem in draft_tasks(small_paper()).problems}
    assert "settings" in messages["Table 2 (page 2)"]
    assert "describes data" in messages["Table 3 (page 2)"]


def test_numbers_of_other_work_make_no_draft() -> None:
    source = document(
        [("Results", "body", ["Smith et al. [3] report an accuracy of 97.1% on moons.", "We train a model on moons."])]
    )
    result = draft_tasks(source)
    assert result.drafts == ()
    assert any("reports other work" in problem.message for problem in result.problems)
    assert any("no result of this paper" in problem.message for problem in result.problems)


def test_no_method_no_task() -> None:
    result = draft_tasks(document([("Results", "body", ["Ours beats Huber (Table 1)."])], (RESULTS,)))
    assert result.drafts == ()
    assert any("how it was done" in problem.message for problem in result.problems)


def test_a_table_of_related_work_only_is_refused() -> None:
    source = document([("Related work", "body", ["Table 1 lists what others reached."])], (RESULTS,))
    assert any("other work is discussed" in problem.message for problem in draft_tasks(source).problems)


def test_large_tables_are_cut_by_whole_lines_and_said_so() -> None:
    rows = [["Method", "A", "B", "C", "D"]] + [[f"m{i}", *(f"{i}.{j}5" for j in range(4))] for i in range(1, 46)]
    source = document(
        [("Experiments", "body", ["We train each method on four data sets and report the accuracy (Table 5)."])],
        (table("Table 5", "Accuracy of all methods.", rows),),
    )
    result = draft_tasks(source)
    sound(source, result)
    assert len(result.drafts[0].expected.claims) == 90
    assert any("90 of its 180 numbers left out" in problem.message for problem in result.problems)


def test_twins_are_merged_and_only_the_best_are_kept() -> None:
    twin = table("Table 7", "Test accuracy (%) on the spirals data.", [list(row) for row in RESULTS.grid])
    source = document(
        [
            (
                "Experiments",
                "body",
                ["We train each method for 10 epochs with Adam. Table 1 and Table 7 hold the results."],
            )
        ],
        (RESULTS, twin),
    )
    result = draft_tasks(source)
    assert [draft.slug for draft in result.drafts] == ["table-1-test-accuracy"]
    assert any("merged into" in problem.message for problem in result.problems)
    assert draft_tasks(small_paper(), max_tasks=1).drafts == draft_tasks(small_paper()).drafts[:1]
    assert draft_tasks(small_paper(), max_tasks=0).drafts == ()


def test_the_same_paper_gives_the_same_drafts() -> None:
    assert draft_tasks(small_paper()).model_dump_json() == draft_tasks(small_paper()).model_dump_json()


def test_an_empty_document_is_no_error() -> None:
    assert draft_tasks(document([])).drafts == ()


def test_references_to_floats() -> None:
    assert label_key("TABLE II") == label_key("Table 2") == label_key("Tab. 2.") == "table 2"
    assert references_in("see Tables 2 and 3, Fig. 4a and Table A.1") == {"table 2", "table 3", "figure 4", "table a.1"}


@pytest.mark.parametrize("name", ["QH9.pdf", "2202.00535.pdf", "2020.acl-main.447.pdf", "keyerr.pdf"])
@pytest.mark.skipif(not SHARED.exists(), reason="real papers are not here")
def test_real_papers_give_sound_drafts(name: str) -> None:
    source = read_document(SHARED / name)
    result = draft_tasks(source)
    sound(source, result)
    assert result.drafts
