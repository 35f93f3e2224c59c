from __future__ import annotations

import random

import pytest

from evaluation.judges.claim_logic import orderings
from evaluation.judges.conclusion import judge_conclusion
from evaluation.judges.statements import read_statements
from evaluation.submission import Conclusion, Response
from pipeline.task import (
    Band,
    ClaimMatch,
    Condition,
    DesignVariable,
    Expected,
    ExperimentTruth,
    NumericClaim,
    Verdict,
)  # fmt: skip

VALUES = {
    ("Plain", "0"): 95.0, ("Trimming", "0"): 93.9, ("CAW (ours)", "0"): 94.5, ("Plain", "20"): 90.5,
    ("Trimming", "20"): 92.8, ("CAW (ours)", "20"): 93.6, ("Plain", "40"): 70.8, ("Trimming", "40"): 75.8,
    ("CAW (ours)", "40"): 78.5,
}  # fmt: skip


def _truth() -> ExperimentTruth:
    claims = tuple(
        NumericClaim(
            id=f"c{number}", metric="test accuracy", value=value, text=str(value), decimals=1, unit="%",
            conditions=(Condition(name="p", value=rate), Condition(name="Method", value=method)),
            band=Band(low=value - 0.05, high=value + 0.05, source="printed precision"),
        )
        for number, ((method, rate), value) in enumerate(VALUES.items(), 1)
    )  # fmt: skip
    return ExperimentTruth(
        independent=(
            DesignVariable(name="Method", values=("Plain", "Trimming", "CAW (ours)")),
            DesignVariable(name="p", values=("0", "20", "40")),
        ),
        expected=Expected(
            text="As p goes from 0 to 40, accuracy falls; CAW is best at 20 and 40, Plain at 0.",
            claims=claims, comparisons=(("c9", ">", "c7"), ("c6", ">", "c4"), ("c1", ">", "c3")),
        ),
    )  # fmt: skip


TRUTH = _truth()
NUMBERS = {f"test accuracy, p = {rate}, Method = {method}": value for (method, rate), value in VALUES.items()}


def _judged(text: str = "", numbers: dict[str, float] | None = None) -> dict[str, Verdict]:
    items = judge_conclusion(TRUTH, Response(conclusion=Conclusion(text=text, numbers=numbers or {})))
    return {item.item.removeprefix("conclusion:"): item.verdict for item in items}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("CAW is the best method for high noise.", Verdict.PASS),
        ("At p = 40, CAW achieves 78.5% accuracy, higher than Plain.", Verdict.PASS),
        ("Accuracy decreases as p grows for all methods.", Verdict.PASS),
        ("Trimming performs worse than CAW at 40.", Verdict.PASS),
        ("CAW outperforms Trimming and Plain at p = 40.", Verdict.PASS),
        ("Plain outperforms CAW at p = 40.", Verdict.FAIL),
        ("Trimming has the highest accuracy overall.", Verdict.FAIL),
        ("As p increases, test accuracy increases for every method.", Verdict.FAIL),
        ("CAW does not outperform Plain at p = 40.", Verdict.FAIL),
        ("At p = 20, Trimming is the best of the methods without our weights.", Verdict.UNKNOWN),
        ("At p = 20, Trimming has the highest accuracy apart from CAW.", Verdict.PASS),
        ("At p = 40, Plain has the highest accuracy of all but CAW.", Verdict.FAIL),
        ("I do not know.", Verdict.UNKNOWN),
        ("", Verdict.FAIL),
    ],
)
def test_meaning(text: str, verdict: Verdict) -> None:
    assert _judged(text)["meaning"] is verdict


def test_all_numbers_and_their_order() -> None:
    assert set(_judged("CAW is best at p = 40.", NUMBERS).values()) == {Verdict.PASS}


def test_numbers_alone_have_a_meaning() -> None:
    assert _judged("", NUMBERS)["meaning"] is Verdict.PASS
    swapped = {**NUMBERS, "test accuracy, p = 40, Method = CAW (ours)": 60.0}
    assert _judged("", swapped)["meaning"] is Verdict.FAIL


def test_fractions_are_percent() -> None:
    assert set(_judged("", {name: value / 100 for name, value in NUMBERS.items()}).values()) == {Verdict.PASS}


def test_a_wrong_number_fails_alone_and_a_missing_one_is_not_met() -> None:
    wrong = {**NUMBERS, "test accuracy, p = 20, Method = Plain": 91.5}
    assert [
        name for name, verdict in _judged("CAW is best at p = 40.", wrong).items() if verdict is not Verdict.PASS
    ] == ["c4"]
    missing = {name: value for name, value in NUMBERS.items() if "Trimming" not in name}
    found = _judged("CAW is best at p = 40.", missing)
    assert {found["c2"], found["c5"], found["c8"]} == {Verdict.FAIL}


def test_a_right_value_under_another_name_meets_nothing() -> None:
    assert _judged("CAW is best at p = 40.", {"test accuracy, p = 40, Method = Plain": 78.5})["c9"] is Verdict.FAIL


def test_order_has_no_say() -> None:
    items = list(NUMBERS.items())
    for seed in range(10):
        random.Random(seed).shuffle(items)
        assert set(_judged("", dict(items)).values()) == {Verdict.PASS}


def test_statements_of_the_expected_text_are_never_held_against_it() -> None:
    assert _judged(TRUTH.expected.text)["meaning"] is Verdict.PASS


def test_driver_and_trend_are_told_apart() -> None:
    axes = {"p": "p", "Plain": "Method"}
    (rises,) = read_statements("Accuracy of Plain drops when p decreases.", axes)
    assert rises.relation == "rises"
    (falls,) = read_statements("As p grows, Plain degrades.", axes)
    assert falls.relation == "falls"


@pytest.mark.parametrize(("second", "kept", "broken"), [(0.503, 1, 0), (0.515, 0, 0), (0.9, 0, 1)])
def test_an_expected_tie_is_kept_by_numbers_that_tie(second: float, kept: int, broken: int) -> None:
    """Equality held whatever was reported, and confirmed the conclusion."""
    claims = tuple(
        NumericClaim(
            id=name, metric="accuracy", value=0.5, text="0.5", decimals=1, conditions=(Condition(name="m", value=name),),
            band=Band(low=0.45, high=0.55, source="printed precision"),
        )
        for name in ("a", "b")
    )  # fmt: skip
    truth = ExperimentTruth(expected=Expected(text="They tie.", claims=claims, comparisons=(("a", "=", "b"),)))
    matches = [
        ClaimMatch(claim=name, verdict=Verdict.PASS, observed=(value,), reason="")
        for name, value in (("a", 0.5), ("b", second))
    ]
    found = orderings(truth, matches)
    assert (found[0], len(found[1])) == (kept, broken)


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("With alpha = 3 the runtime factor is 50.", Verdict.PASS),
        ("With alpha = 3 the runtime factor is 0.5.", Verdict.FAIL),
        ("With alpha = 3 the runtime factor is 5 × 10^1.", Verdict.PASS),
    ],
)
def test_only_shares_are_read_in_percent_and_as_fractions(text: str, verdict: Verdict) -> None:
    """Any number of a sentence was also tried a hundred times as large."""
    claim = NumericClaim(
        id="c", metric="blowup", value=50.0, text="50", decimals=0, conditions=(Condition(name="alpha", value="3"),),
        band=Band(low=49.0, high=51.0, source="printed precision"),
    )  # fmt: skip
    truth = ExperimentTruth(expected=Expected(text="It blows up.", claims=(claim,)))
    items = judge_conclusion(truth, Response(conclusion=Conclusion(text=text)))
    assert [item.verdict for item in items if item.item == "conclusion:c"] == [verdict]


def test_a_condition_that_looks_like_a_number_and_is_none_is_no_step_of_a_trend() -> None:
    """Version `1.0.2` ended the judge."""
    claims = tuple(
        NumericClaim(
            id=f"c{value}", metric="accuracy", value=value, text=str(value), decimals=1,
            conditions=(Condition(name="version", value=f"1.0.{value}"), Condition(name="p", value=f"1e{value}")),
            band=Band(low=value, high=value, source="printed precision"),
        )
        for value in (1, 2)
    )  # fmt: skip
    truth = ExperimentTruth(expected=Expected(text="Accuracy rises with the version.", claims=claims))
    said = Response(conclusion=Conclusion(text="Accuracy falls as the version grows."))
    assert judge_conclusion(truth, said)[0].verdict is not Verdict.PASS
