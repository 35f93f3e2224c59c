"""What a draft says of its method belongs to its experiment: not other tables' methods, not findings, not varied values."""

from __future__ import annotations

import pytest

from extractors.keyless import draft_tasks
from extractors.prose import adapt_sentence, plain_number, plural, takes_step
from pipeline.task import Draft
from tests.extractors.drafting_documents import document, table

MAIN = table(
    "Table 1", "Test accuracy (%) under label noise.",
    [["Method", "Moons", "Rings"], ["Plain", "90.4", "85.0"], ["Trimming", "97.3", "89.0"], ["CAW (ours)", "98.0", "90.2"]],
)  # fmt: skip
SIZE = table(
    "Table 2", "Test accuracy (%) on Moons by number of training points.",
    [["", "Training points n", "", ""], ["Method", "200", "400", "800"], ["Plain", "76.9", "77.1", "80.4"],
     ["CAW (ours)", "84.8", "88.1", "92.6"]],
    header_rows=2, spans={(0, 1): 3},
)  # fmt: skip
SETTINGS = table(
    "Table 3", "Hyper-parameters.", [["Hyper-parameter", "Value"], ["Share of Trimming", "0.3"], ["Bandwidth", "0.55"]]
)
SETUP = (
    "Unless stated otherwise we draw n = 600 training and 1,500 test points. Symmetric noise flips labels with probability "
    "ρ = 0.3; asymmetric noise flips only positive labels, with probability ρ = 0.4. Trimming drops the points with the "
    "largest training loss and refits. CAW is our method with K = 5 folds and T = 4 rounds. All methods share the features "
    "and the solver. Every run is repeated with 10 random seeds."
)
RESULTS = (
    "Table 1 compares the methods. On Moons, the easiest problem, CAW is within reach of a model trained on clean labels. "
    "The baselines lose much of their accuracy. We vary the number of training points (Table 2). "
    "Results may be lucky or unlucky when a single set is used."
)


@pytest.fixture(scope="module")
def drafts() -> dict[str, Draft]:
    source = document([("Experimental setup", "body", [SETUP]), ("Results", "body", [RESULTS])], (MAIN, SIZE, SETTINGS))
    return {draft.slug[:7]: draft for draft in draft_tasks(source).drafts}


def test_methods_that_are_not_run_are_not_described(drafts: dict[str, Draft]) -> None:
    assert "Trimming drops" in drafts["table-1"].method
    assert "Trimming" not in drafts["table-2"].method
    assert "CAW is the method with K = 5 folds" in drafts["table-2"].method
    assert "Share of Trimming" in {h.name for h in drafts["table-1"].hyperparameters}
    assert {h.name for h in drafts["table-2"].hyperparameters} >= {"Bandwidth"}
    assert "Share of Trimming" not in {h.name for h in drafts["table-2"].hyperparameters}


def test_what_is_varied_has_no_fixed_value(drafts: dict[str, Draft]) -> None:
    assert "draw n = 600 training" in drafts["table-1"].method
    assert "draw n training and 1,500 test points" in drafts["table-2"].method
    assert "n" not in {v.name for v in drafts["table-2"].constant}


def test_a_symbol_with_two_values_is_no_constant(drafts: dict[str, Draft]) -> None:
    assert "ρ" not in {v.name for v in drafts["table-1"].constant}


def test_a_symbol_is_named_with_what_it_counts(drafts: dict[str, Draft]) -> None:
    found = {(h.name, h.value) for h in drafts["table-1"].hyperparameters}
    assert {("folds (CAW)", "5"), ("rounds T (CAW)", "4"), ("random seeds", "10")} <= found
    assert "K" not in {name for name, _ in found}


def test_findings_are_no_method(drafts: dict[str, Draft]) -> None:
    for draft in drafts.values():
        for finding in ("easiest", "lose much", "lucky"):
            assert finding not in draft.method


def test_a_setup_section_says_how_whatever_its_verbs(drafts: dict[str, Draft]) -> None:
    assert "All methods share the features and the solver." in drafts["table-1"].method


def test_questions_read_like_questions(drafts: dict[str, Draft]) -> None:
    assert drafts["table-2"].question == (
        "How do Plain and CAW compare in test accuracy on Moons as the number of training points n varies from 200 to 800?"
    )


def test_adjectives_take_the_noun_that_the_paper_gives_them() -> None:
    ablation = table(
        "Table 1", "Mean accuracy (%) when one part is removed.",
        [["", "Symmetric", "", "Asymmetric", ""], ["Variant", "Rings", "Moons", "Rings", "Moons"],
         ["full", "90.2", "89.0", "91.6", "91.5"], ["w/o centring", "89.8", "88.9", "77.0", "77.6"]],
        header_rows=2, spans={(0, 1): 2, (0, 3): 2},
    )  # fmt: skip
    text = (
        "We train with symmetric noise and with asymmetric noise for 10 epochs. We remove one part at a time (Table 1)."
    )
    (draft,) = draft_tasks(document([("Experiments", "body", [text])], (ablation,))).drafts
    assert "across symmetric and asymmetric noise" in draft.question
    assert "group of settings" not in draft.model_dump_json()


@pytest.mark.parametrize(
    ("text", "adapted"),
    [
        ("We tilt the distribution of the first input.", "Tilt the distribution of the first input."),
        ("We find that it helps.", "The authors find that it helps."),
        ("7 We set the infix length to 8.", "Set the infix length to 8."),
        ("Quora 50K split (QQP)2: we use the true pairs.", "Quora 50K split (QQP): Use the true pairs."),
        (
            "When using RAPT we use a kNN based example retrieval as discussed before.",
            "When using RAPT use a kNN based example retrieval.",
        ),
        ("Key differences in its vocabulary are:", None),
    ],
)
def test_more_sentences_become_instructions(text: str, adapted: str | None) -> None:
    assert adapt_sentence(text) == adapted


def test_steps_and_numbers() -> None:
    assert takes_step("We tilt the inputs.")
    assert not takes_step("We observe a drop.")
    assert plain_number("104, 664") == "104,664"
    assert plain_number("3, 4") == "3, 4"
    assert [plural(name) for name in ("dataset", "study", "order m")] == ["datasets", "studies", "values of order m"]


def test_a_range_a_list_or_a_count_per_trial_is_no_setting() -> None:
    text = (
        "We train each method for 1 to 4 epochs with a learning rate of 1e-5, 2e-5 or 5e-5 and a batch size of 32. "
        "We search over 50 trials and 3 epochs per trial. Table 1 compares the methods."
    )
    (draft,) = draft_tasks(document([("Experiments", "body", [text])], (MAIN,))).drafts
    found = {h.name: h.value for h in draft.hyperparameters}
    assert found == {"batch size": "32", "trials": "50", "epochs per trial": "3"}


def test_the_same_digits_in_another_measure_are_a_coincidence() -> None:
    """`abstract coverage is 90.4%, or 73.4M papers` was quoted as a result of a table of accuracies."""
    text = "We train each method for 10 epochs and report the accuracy (Table 1)."
    corpus = "The abstract coverage is 90.4%, or 85.0M papers. We filter them in series."
    source = document([("Corpus", "body", [corpus]), ("Experiments", "body", [text])], (MAIN,))
    draft = next(draft for draft in draft_tasks(source).drafts if draft.slug.startswith("table-1"))
    assert "coverage" not in draft.expected.text
    assert "filter" not in draft.method.lower()
