from __future__ import annotations

from pathlib import Path

import pytest

from extractors._reading import Reading
from extractors.answers import states_answer
from extractors.document import read_document
from extractors.drafting import DraftResult, Ground
from extractors.keyless import draft_tasks
from extractors.naming import ClaimedCell
from pipeline.paper import Document
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
        assert "?" in draft.question
        spans = [span for spans in draft.evidence.values() for span in spans]
        spans += [span for claim in draft.expected.claims for span in claim.evidence]
        spans += [span for setting in draft.hyperparameters for span in setting.evidence]
        assert all(reading.supports(span) for span in spans)
        assert 0 < len(draft.expected.claims) <= 100
        values = {claim.id: claim.value for claim in draft.expected.claims}
        for left, relation, right in draft.expected.comparisons:
            assert (values[left] > values[right]) if relation == ">" else (values[left] < values[right])
        assert all(claim.band.holds(claim.value) for claim in draft.expected.claims)


def test_a_small_paper_alone() -> None:
    source = small_paper()
    result = draft_tasks(source)
    sound(source, result)
    (main,) = result.drafts
    assert main.slug == "table-1-test-accuracy"
    assert main.question.startswith("How do Plain, Huber and Ours compare in Test accuracy?")
    assert [claim.text for claim in main.expected.claims] == ["81.2", "86.5", "90.4 ± 0.6"]
    assert main.expected.claims[2].band.source.endswith("stated ± 0.6")
    assert main.expected.text.startswith(
        "Test accuracy is highest for Ours (90.4 ± 0.6%), then Huber (86.5%) and Plain"
    )
    assert ("c3", ">", "c2") in main.expected.comparisons
    assert [variable.name for variable in main.independent] == ["Method"]
    assert main.confidence < 0.25


def test_what_no_run_bears_out_is_said_and_left_to_the_reviewer() -> None:
    result = draft_tasks(small_paper())
    assert {draft.method for draft in result.drafts} == {""}
    told = [problem.message for problem in result.problems if problem.where.startswith("Table 1")]
    assert any(message.startswith("no run gives its numbers") for message in told)
    assert [message for message in told if message.startswith("to check: how is it done?")]
    assert sum(message.startswith("to check:") for message in told) == 1


def test_counts_and_settings_are_no_results() -> None:
    messages = {problem.where: problem.message for problem in draft_tasks(small_paper()).problems}
    assert "states 2 of the 3 numbers" in messages["Table 2 (page 2)"]
    assert "most of its numbers are whole" in messages["Table 3 (page 2)"]
    settings = [
        ["Name", "Value"],
        ["Rate", "0.002"],
        ["Width", "0.55"],
        ["Tail", "0.1"],
        ["Decay", "0.0001"],
        ["K", "5"],
    ]
    source = document([], (table("Table 1", "All.", settings),))
    assert draft_tasks(source).drafts == ()


def test_a_held_table_is_drafted_from_what_the_file_holds() -> None:
    source = small_paper()
    held = Ground(0, tuple(ClaimedCell(row, 1, field="acc") for row in (1, 2, 3)), "committed", "results.csv")
    result = draft_tasks(source, held={0: held})
    (main,) = result.drafts
    assert main.confidence > draft_tasks(source).drafts[0].confidence
    assert any("3 stand in results.csv" in problem.message for problem in result.problems)


def test_large_tables_are_cut_and_said_so() -> None:
    rows = [["Method", "A", "B", "C", "D"]] + [[f"m{i}", *(f"{i}.{j}5" for j in range(4))] for i in range(1, 46)]
    source = document([], (table("Table 5", "Accuracy of all methods.", rows),))
    result = draft_tasks(source)
    sound(source, result)
    assert len(result.drafts[0].expected.claims) == 100
    assert any("left out: 80 more numbers" in problem.message for problem in result.problems)


def test_numbers_that_nothing_tells_apart_are_no_claims() -> None:
    rows = [["Method", "Gap"], ["A", "0.1"], ["A", "0.2"], ["B", "0.3"], ["C", "0.4"], ["D", "0.5"]]
    result = draft_tasks(document([], (table("Table 1", "All.", rows),)))
    assert [claim.text for claim in result.drafts[0].expected.claims] == ["0.3", "0.4", "0.5"]
    assert any("2 numbers that its labels do not tell apart" in problem.message for problem in result.problems)
    alike = draft_tasks(document([], (table("Table 1", "All.", [row[:] for row in rows[:3]] + rows[1:3]),)))
    assert alike.drafts == ()


def test_a_label_that_tells_the_answer_makes_no_task() -> None:
    rows = [["Method", "Gap"], ["A", "0.1"], ["B outperforms all", "0.2"], ["C", "0.3"]]
    result = draft_tasks(document([], (table("Table 1", "All.", rows),)))
    assert result.drafts == ()
    assert any("would give the answer away" in problem.message for problem in result.problems)


def test_only_the_best_are_kept() -> None:
    twin = table("Table 7", "Test accuracy (%) on the moons data.", [list(row) for row in RESULTS.grid])
    source = document([], (RESULTS, twin))
    assert [draft.slug for draft in draft_tasks(source).drafts] == ["table-1-test-accuracy", "table-7-test-accuracy"]
    one = draft_tasks(source, max_tasks=1)
    assert one.drafts == draft_tasks(source).drafts[:1]
    assert any("only the best 1 were asked for" in problem.message for problem in one.problems)
    assert draft_tasks(source, max_tasks=0).drafts == ()


def test_the_same_paper_gives_the_same_drafts() -> None:
    assert draft_tasks(small_paper()).model_dump_json() == draft_tasks(small_paper()).model_dump_json()


def test_an_empty_document_is_no_error() -> None:
    assert draft_tasks(document([])).drafts == ()


@pytest.mark.parametrize("name", ["QH9.pdf", "2202.00535.pdf", "2020.acl-main.447.pdf", "keyerr.pdf"])
@pytest.mark.skipif(not SHARED.exists(), reason="real papers are not here")
def test_real_papers_give_sound_drafts(name: str) -> None:
    source = read_document(SHARED / name)
    result = draft_tasks(source)
    sound(source, result)
    assert result.drafts
