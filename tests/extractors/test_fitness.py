"""What is refused rather than drafted in doubt, and what a reviewer is told to check."""

from __future__ import annotations

import pytest

from extractors.keyless import DraftResult, draft_tasks
from extractors.refining import _settings_in
from tests.extractors.drafting_documents import document, table

SETUP = ("Experimental setup", "body", ["We train every model with Adam. Every run is repeated with 5 random seeds."])


def drafted(rows: list[list[str]], caption: str, *, said: str = "Table 1 lists the results.") -> DraftResult:
    return draft_tasks(document([SETUP, ("Results", "body", [said])], (table("Table 1", caption, rows),)))


def messages(result: DraftResult) -> str:
    return " | ".join(problem.message for problem in result.problems)


def test_numbers_in_no_order_are_no_variable() -> None:
    rows = [["Train. L1", "Accuracy"], ["4.94", "81.2"], ["16.6", "82.5"], ["5.02", "83.1"]]
    result = drafted(rows, "Accuracy on the spirals data.")
    assert not result.drafts
    assert "come in no order" in messages(result)


def test_a_lone_number_without_a_subject_is_refused() -> None:
    text = "On VoxA, adding the block reduces the error rate to 1.62%."
    result = draft_tasks(document([SETUP, ("Ablation study", "body", [text])]))
    assert not result.drafts
    assert "does not say of what it holds" in messages(result)


def test_differences_and_tests_of_the_numbers_are_not_drafted() -> None:
    rows = [
        ["Method", "Accuracy", "p", "BH q"],
        ["Plain", "81.2", "0.001", "0.002"],
        ["Ours", "86.5", "0.004", "0.005"],
        ["∆", "5.3", "0.003", "0.004"],
    ]
    (draft,) = drafted(rows, "Results on the spirals data.").drafts
    assert [claim.text for claim in draft.expected.claims] == ["81.2", "86.5"]
    assert [variable.name for variable in draft.dependent] == ["Accuracy"]


def test_a_count_that_is_the_result_in_other_words_is_not_told() -> None:
    rows = [["Model", "Flips", "Flip rate"], ["A", "46", "17.0%"], ["B", "21", "7.8%"], ["C", "34", "12.6%"]]
    result = drafted([[r[0], r[1], r[2].replace("Flip rate", "Error rate")] for r in rows], "Results on the LeWi data.")
    (draft,) = result.drafts
    assert "46" not in draft.method + draft.question + draft.agent_instructions


def test_groups_that_vary_are_asked_about_and_not_mixed() -> None:
    rows = [
        ["Size", "Method", "Accuracy"],
        ["7B models", "SFT", "80.1"],
        ["", "QF", "81.2"],
        ["32B models", "SFT", "90.4"],
        ["", "QF", "89.3"],
    ]
    (draft,) = drafted(rows, "Results on the GSM8K data.").drafts
    assert ("7B models", "32B models") in [axis.values for axis in draft.independent]
    assert "7B models" in draft.question
    assert "32B models" in draft.question
    assert draft.expected.text.startswith("Accuracy is highest for QF and SFT for 1 of 2 sizes each.")


def test_thousands_are_compared_as_such() -> None:
    rows = [["Method", "Tokens ↓"], ["Short", "980"], ["Long", "1.7K"], ["Longer", "2.4K"]]
    (draft,) = drafted(rows, "Tokens on the GSM8K data.").drafts
    assert draft.expected.text.startswith("Tokens is highest for Longer (2.4K), then Long (1.7K) and Short (980)")
    assert draft.expected.comparisons == ()


def test_what_to_check_is_reported_and_costs_confidence() -> None:
    rows = [["Method", "Accuracy"], ["Plain", "81.2"], ["Ours", "86.5"]]
    named, unnamed = drafted(rows, "Accuracy on the spirals data."), drafted(rows, "Accuracy of both methods.")
    assert "to check: neither its table nor its caption names the data" in messages(unnamed)
    assert "names the data" not in messages(named)
    assert unnamed.drafts[0].confidence < named.drafts[0].confidence


def test_what_is_varied_is_named_by_the_caption() -> None:
    rows = [["Ratio", "Plain", "Ours"], ["10", "81.2", "86.5"], ["20", "71.2", "76.5"], ["30", "61.2", "66.5"]]
    caption = "Accuracy (%) of both methods on the spirals data with different percentages of random noise."
    (draft,) = drafted(rows, caption).drafts
    assert "the percentage of random noise varies from 10 to 30" in draft.question


def test_the_only_column_names_what_is_measured() -> None:
    rows = [["Method", "Average Complexity"], ["Plain", "5.60"], ["Ours", "6.84"]]
    setup = ("Setup", "body", ["We train every method with Adam. We measure the accuracy of each method."])
    compared = ["Our method Ours outperforms Plain (Table 1). The Plain method is simple. The Ours model uses less."]
    result = draft_tasks(
        document([setup, ("Results", "body", compared)], (table("Table 1", "Complexity of the code.", rows),))
    )
    assert all([v.name for v in draft.dependent] == ["Average Complexity"] for draft in result.drafts)


@pytest.mark.parametrize(
    ("text", "no"),
    [
        ("Some samples of 8 subjects are shown.", "samples"),
        ("Training stops after no improvement for 10 epochs.", "epochs"),
        ("We tried 10 learning rates.", "learning rates"),
        ("We set ε = 10−6 and βmax = 105.", "βmax"),
        ("Each has five examples.", "examples"),
    ],
)
def test_what_sets_nothing_is_no_setting(text: str, no: str) -> None:
    assert no not in [setting.name for setting in _settings_in(text, own=True)]
    assert "ε" not in [setting.name for setting in _settings_in(text, own=True)]


def test_settings_still_stand() -> None:
    found = {(s.name, s.value) for s in _settings_in("We train for 10 epochs with a batch size of 32.", own=True)}
    assert found == {("epochs", "10"), ("batch size", "32")}


def test_other_measures_are_no_methods() -> None:
    rows = [["Setting", "Rmax method", "Tokens method"], ["Full", "2.63", "2330000"], ["Half", "2.61", "2720000"]]
    result = drafted(rows, "Reward of all methods on the CP26 data.")
    assert not result.drafts
    assert "thousandfold" in messages(result)


def test_metrics_of_a_large_table_are_kept_whole() -> None:
    """Cut by columns, the main table lost its own method; cut by metrics, everything that is compared stays."""
    names = [f"Net{letter}" for letter in "ABCDEFGHIJKLMN"]
    rows = [["Dataset", "Metric", *names]]
    for place in ("Adiac", "Beef", "Coffee", "Ham"):
        rows += [[place, "Accuracy", *(f"0.{i + 50}" for i in range(14))]]
        rows += [["", "Latency", *(f"{i + 1}.5" for i in range(14))]]
    source = (table("Table 1", "Full results.", rows, stub=2),)
    result = draft_tasks(document([SETUP, ("Results", "body", ["Table 1 lists the results."])], source))
    (draft,) = result.drafts
    assert {name for axis in draft.independent for name in axis.values} >= set(names)
    assert len(draft.expected.claims) == 56
    assert "56 of its 112 numbers left out" in messages(result)


def test_what_the_caption_fixes_is_constant() -> None:
    rows = [["Model", "Accuracy"], ["Tiny", "69.2"], ["Small", "66.6"]]
    (draft,) = drafted(rows, "Accuracy on CIFAR-10-LT (IF=50).").drafts
    assert ("IF", ("50",)) in [(variable.name, variable.values) for variable in draft.constant]
    assert "at IF = 50" in draft.question


def test_a_checklist_is_no_method() -> None:
    checklist = ("Experiments compute", "body", ["The answer [N/A] means that we do not train any model with Adam."])
    rows = [["Method", "Accuracy"], ["Plain", "81.2"], ["Ours", "86.5"]]
    parts = [SETUP, ("Results", "body", ["Table 1 lists the results."]), checklist]
    (draft,) = draft_tasks(document(parts, (table("Table 1", "Accuracy on the spirals data.", rows),))).drafts
    assert "N/A" not in draft.method


def test_differences_in_sentences_are_no_results() -> None:
    text = "Ours outperforms Plain by as much as 15.56% in accuracy on UrbanSound."
    result = draft_tasks(document([SETUP, ("Findings", "body", [text])]))
    assert not result.drafts
