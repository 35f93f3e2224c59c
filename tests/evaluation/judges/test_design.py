from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.judges.design import judge_design
from evaluation.judges.names import name_score, same_value
from evaluation.submission import Response, ResponseDesign
from pipeline.task import DesignVariable, Expected, ExperimentTruth, Hyperparameter, Verdict

TRUTH = ExperimentTruth(
    constant=(
        DesignVariable(name="n", values=("600",)),
        DesignVariable(name="Regularisation strength", values=("0.002",)),
        DesignVariable(name="rounds T", values=("4",)),
        DesignVariable(name="folds", values=("5",)),
        DesignVariable(name="Kernel bandwidth", values=("0.55",)),
    ),
    independent=(
        DesignVariable(name="Method", values=("Plain", "Trimming", "CAW (ours)")),
        DesignVariable(name="noise rate", values=("0%", "20%", "40%")),
    ),
    dependent=(DesignVariable(name="Mean test accuracy", values=("%",)),),
    expected=Expected(text=""),
    hyperparameters=(Hyperparameter(name="ridge", value="0.002", source="config"),),
)
CONSTANT = {
    "n": ("600",),
    "ridge": ("0.002",),
    "number of rounds": ("4",),
    "K folds": ("5",),
    "bandwidth of the kernel": ("0.55",),
}
INDEPENDENT = {"method": ("plain", "trimming", "CAW"), "rate of noise": ("0", "0.2", "0.4", "20%", "40%", "0%")}
DEPENDENT = {"test acc (%)": ()}


def _judged(**groups: dict[str, tuple[str, ...]]) -> dict[str, Verdict]:
    items = judge_design(TRUTH, Response(design=ResponseDesign(**groups)))
    return {item.item: item.verdict for item in items}


def test_other_words_units_and_aliases_of_the_code_are_met() -> None:
    assert set(_judged(constant=CONSTANT, independent=INDEPENDENT, dependent=DEPENDENT).values()) == {Verdict.PASS}


def test_nothing_is_met_without_a_response() -> None:
    assert {item.verdict for item in judge_design(TRUTH, None)} == {Verdict.FAIL}


@pytest.mark.parametrize(
    ("change", "item"),
    [
        ({"constant": {**CONSTANT, "n": ("500",)}}, "constant:n"),
        ({"constant": {k: v for k, v in CONSTANT.items() if k != "K folds"}}, "constant:folds"),
        ({"independent": {**INDEPENDENT, "method": ("plain", "CAW")}}, "independent:method"),
        ({"constant": {**CONSTANT, "rate of noise": ("0%",)}, "independent": {"method": INDEPENDENT["method"]}}, "independent:noise-rate"),
        ({"dependent": {"training loss": ()}}, "dependent:mean-test-accuracy"),
    ],
)  # fmt: skip
def test_a_missing_or_wrong_part_is_not_met_and_the_rest_is(
    change: dict[str, dict[str, tuple[str, ...]]], item: str
) -> None:
    found = _judged(**{"constant": CONSTANT, "independent": INDEPENDENT, "dependent": DEPENDENT, **change})
    assert [name for name, verdict in found.items() if verdict is not Verdict.PASS] == [item]


def test_one_word_does_not_meet_two_criteria() -> None:
    truth = TRUTH.evolve(
        constant=(DesignVariable(name="seeds", values=("5",)), DesignVariable(name="folds", values=("5",)))
    )
    items = judge_design(truth, Response(design=ResponseDesign(constant={"folds": ("5",)})))
    assert [item.verdict for item in items[:2]] == [Verdict.FAIL, Verdict.PASS]


def test_constants_stated_in_the_procedure_count_with_a_quote() -> None:
    design = ResponseDesign(procedure="First draw the data. Use a kernel bandwidth of 0.55 throughout. Then fit.")
    item = next(i for i in judge_design(TRUTH, Response(design=design)) if i.item == "constant:kernel-bandwidth")
    assert (item.verdict, item.quote) == (Verdict.PASS, "Use a kernel bandwidth of 0.55 throughout.")


@settings(max_examples=30)
@given(st.integers(min_value=0, max_value=10_000))
def test_verdicts_do_not_depend_on_any_order(seed: int) -> None:
    rng = random.Random(seed)

    def shuffled(group: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
        items = list(group.items())
        rng.shuffle(items)
        return {name: tuple(rng.sample(values, len(values))) for name, values in items}

    given_ = {
        "constant": {**CONSTANT, "seed": ("4",), "size": ("600",)},
        "independent": INDEPENDENT,
        "dependent": {**DEPENDENT, "accuracy": ()},
    }
    truth = TRUTH.evolve(constant=tuple(rng.sample(TRUTH.constant, len(TRUTH.constant))))
    items = judge_design(truth, Response(design=ResponseDesign(**{k: shuffled(v) for k, v in given_.items()})))
    assert {item.item: item.verdict for item in items} == _judged(**given_)


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        ("0.3", "30%", True), ("600", "600.0", True), ("1e-3", "0.001", True), ("1,500", "1500", True), ("4", "5", False),
        ("w/o centring", "without centring", True), ("w/o centring", "centring", False), ("CAW (ours)", "caw", True),
        ("symmetric noise", "symmetric", True), ("layer 1", "layer 2", False), ("5", "5 folds", True),
    ],
)  # fmt: skip
def test_values(left: str, right: str, same: bool) -> None:
    assert same_value(left, right) is same
    assert same_value(right, left) is same


@given(st.text(max_size=40), st.text(max_size=40))
def test_scores_are_shares(left: str, right: str) -> None:
    assert 0.0 <= name_score(left, right) <= 1.0
