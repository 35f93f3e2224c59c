from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from extractors.answers import states_answer
from extractors.claims import printed_band
from pipeline.task import Condition, Draft, Expected, NumericClaim


def draft(*numbers: str, conditions: tuple[Condition, ...] = (), text: str = "-") -> Draft:
    claims = tuple(
        NumericClaim(
            id=f"c{i}", metric="accuracy", value=float(n), text=n, decimals=len(n.partition(".")[2]),
            conditions=conditions, band=printed_band(float(n), 10.0 ** -len(n.partition(".")[2])),
        )
        for i, n in enumerate(numbers, 1)
    )  # fmt: skip
    expected = Expected(text=text, claims=claims)
    return Draft(slug="x", question="-", method="-", expected=expected, confidence=0)


@pytest.mark.parametrize(
    "text",
    [
        "Accuracy is 0.720 there.",
        "It reaches 72.0% of the cases.",
        "Train until 0.72 is reached.",
        "Ours outperforms the baseline.",
        "A is better than B on all problems.",
        "R2 decreases monotonically with the order.",
        "The ablation confirms that centring matters.",
        "It achieves the best accuracy.",
    ],
)
def test_give_aways_are_found(text: str) -> None:
    assert states_answer(text, draft("0.720"))


@pytest.mark.parametrize(
    "text",
    [
        "How do A and B compare in accuracy on spirals?",
        "Which method is better than plain ridge regression?",
        "Does centring improve on the plain method?",
        "Train for 100 epochs with a learning rate of 0.01.",
        "Draw n = 50,000 points and repeat with 20 seeds.",
    ],
)
def test_questions_and_settings_pass(text: str) -> None:
    assert states_answer(text, draft("0.720")) == []


def test_roundings_count_and_conditions_do_not() -> None:
    assert states_answer("about 0.9998", draft("0.9997920"))
    assert states_answer("at n = 50,000", draft("50000", conditions=(Condition(name="n", value="50,000"),))) == []


def test_a_result_sentence_is_recognised() -> None:
    sentence = "The curves part where two fifths of the labels are wrong."
    assert states_answer(f"First train. {sentence}", draft("0.5", text=f"The paper states: “{sentence}”"))


@given(st.decimals(min_value=1, max_value=99, places=2))
def test_a_claimed_number_never_passes(number: object) -> None:
    assert states_answer(f"The value is {number} here.", draft(str(number)))


@pytest.mark.parametrize("sentence", ["TU tops the ranking.", "The model lies 7 points ahead of the best baseline."])
def test_who_leads_is_a_finding(sentence: str) -> None:
    assert states_answer(sentence, draft("0.720"))
    assert not states_answer("The memory is allocated ahead of time.", draft("0.720"))
