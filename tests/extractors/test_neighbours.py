"""Which sentences are this experiment's method, and which another's, a reason or a finding."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors._neighbours import Neighbours, proper_names
from extractors._steps import is_talk, sets_only, tells_step
from extractors.keyless import DraftResult, draft_tasks
from pipeline.task import Draft
from tests.extractors.drafting_documents import document, table

ACCURACY = "Test accuracy (%) of all methods"
TRANSFER = table(
    "Table 1",
    f"{ACCURACY} after transfer.",
    [["Method", "CIFAR10", "SVHN"], ["Plain", "81.2", "80.1"], ["FedMix", "86.5", "84.0"]],
)
NOISE = table(
    "Table 2",
    f"{ACCURACY} under label noise.",
    [["Method", "GSM8K", "MATH"], ["Plain", "71.2", "60.1"], ["FedMix", "76.5", "64.0"]],
)


def paper() -> DraftResult:
    return draft_tasks(
        document(
            [
                ("Abstract", "abstract", ["We propose FedMix."]),
                (
                    "Experimental setup",
                    "body",
                    [
                        "All methods are trained with Adam for 20 epochs. The sample size was chosen for cost control. "
                        "The CIFAR10 data contain 50,000 images of small things. The images are cropped to 28 pixels. "
                        "GSM8K contains 8,500 questions of school mathematics. The questions are shortened to 100 words. "
                        "We additionally run a frozen wrapper variant for each seed. "
                        "This setup allows us to measure robustness.",
                    ],
                ),
                (
                    "Dataset Transfer",
                    "body",
                    ["We train on one set and evaluate on the other (Table 1). FedMix reaches 86.5% on CIFAR10."],
                ),
                (
                    "Results under noise",
                    "body",
                    ["We flip 10% of the labels before training. FedMix reaches 76.5% in Table 2 on GSM8K."],
                ),
                ("Frozen wrapper performance", "body", ["Figure 3 shows how the frozen wrapper performs."]),
            ],
            (TRANSFER, NOISE),
        )
    )


@pytest.fixture(scope="module")
def drafts() -> dict[str, Draft]:
    return {draft.slug[:7]: draft for draft in paper().drafts}


def test_a_part_that_tells_a_result_is_that_experiments_alone(drafts: dict[str, Draft]) -> None:
    """`Dataset Transfer` reads like a setup title; its protocol came into every other draft."""
    assert "Train on one set" in drafts["table-1"].method
    assert "Train on one set" not in drafts["table-2"].method


def test_data_of_another_table_and_what_is_said_of_it_stay_away(drafts: dict[str, Draft]) -> None:
    assert "50,000 images" in drafts["table-1"].method
    assert "cropped" in drafts["table-1"].method
    assert "8,500 questions" not in drafts["table-1"].method
    assert "shortened" not in drafts["table-1"].method
    assert "8,500 questions" in drafts["table-2"].method
    assert "50,000 images" not in drafts["table-2"].method
    assert "cropped" not in drafts["table-2"].method


def test_what_holds_for_all_is_in_every_method(drafts: dict[str, Draft]) -> None:
    assert all("trained with Adam for 20 epochs" in draft.method for draft in drafts.values())


def test_reasons_and_other_parts_subjects_are_no_steps(drafts: dict[str, Draft]) -> None:
    for draft in drafts.values():
        assert "cost control" not in draft.method
        assert "allows us" not in draft.method
        assert "frozen wrapper" not in draft.method


@pytest.mark.parametrize(
    ("sentence", "step"),
    [
        ("Each pair is repeated three times.", True),
        ("Then we train all models for 20 epochs.", True),
        ("The sample size was chosen for cost control.", False),
        ("Model references are provided in the repository.", False),
        ("The balanced sample lets us examine ambiguous examples.", False),
        ("We observe that the curves behave alike.", False),
    ],
)
def test_steps(sentence: str, step: bool) -> None:
    assert (tells_step(sentence, as_own=True) and not is_talk(sentence)) is step


@pytest.mark.parametrize(
    "sentence",
    [
        "This ensures that the chains are of high quality.",
        "We refer readers to the survey for details.",
        "Therefore, training on problems naturally enhances other tasks.",
        "While many models need a phase, ours can reconstruct it.",
        "Additional details have been included below.",
    ],
)
def test_reasons_are_talk(sentence: str) -> None:
    assert is_talk(sentence)


def test_the_one_value_of_what_is_varied_is_no_step() -> None:
    assert sets_only("We use K = 1 in the main experiments.", frozenset({"K"}))
    assert not sets_only("We use K = 1 in the main experiments.", frozenset({"n"}))


def test_what_a_sentence_names_first_it_is_about() -> None:
    near = Neighbours(frozenset({"ReBaPL", "ORL"}), frozenset({"MMRL"}), (), frozenset())
    assert near.claims("Since MMRL uses AdamW, for ReBaPL we do the same.")
    assert not near.claims("ReBaPL is trained like MMRL.")
    assert not near.claims("The ORL2 data contain 400 images.")  # the mark of a footnote clings to it


@given(st.text(max_size=80))
def test_names_are_found_in_any_text(text: str) -> None:
    assert all(name in text and any(c.isupper() for c in name) for name in proper_names(text))
