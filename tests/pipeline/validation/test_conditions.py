"""Does a number stand under a claim's conditions? By settings and names; a value that agrees is no argument."""

from __future__ import annotations

import pytest

from pipeline.task import ClaimMatch, Verdict
from pipeline.validation.conditions import axes
from pipeline.validation.matching import profiles, questions
from pipeline.validation.outcome import match_claims
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim

PASS, UNKNOWN = Verdict.PASS, Verdict.UNKNOWN


def matches(claims, text: str) -> list[ClaimMatch]:
    return match_claims(claims, [list(observe_text(text, "stdout"))])


def under(text: str, **conditions: str) -> bool:
    """Is `0.91` of the text taken for the accuracy under the conditions?"""
    (match,) = matches([claim("c", "accuracy", "0.91", **conditions)], text)
    return match.verdict is PASS


# --- settings that are numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "condition", "expected"),
    [
        ("n=500: accuracy 0.91\n", {"n": "500"}, True),
        ("n=500: accuracy 0.91\n", {"n": "300"}, False),
        ("n=500: accuracy 0.91\n", {"sample size n": "500"}, True),
        ("size=50000 accuracy=0.91\n", {"size": "50K"}, True),
        ("size=50000 accuracy=0.91\n", {"size": "50,000"}, True),
        ("noise=0.30000000000000004 accuracy=0.91\n", {"noise": "0.3"}, True),
        ("noise=0.3001 accuracy=0.91\n", {"noise": "0.3"}, False),
        ("## Sample n 500\naccuracy 0.91\n", {"n": "500"}, True),
        ("## Sample n 300\naccuracy 0.91\n", {"n": "500"}, False),
    ],
)
def test_a_setting_has_to_be_the_claimed_one(text: str, condition: dict[str, str], expected: bool) -> None:
    assert under(text, **condition) is expected


@pytest.mark.parametrize(
    ("bounds", "expected"), [("[0.05, 0.15]", True), ("[0.1, 0.2]", True), ("(0, 0.1)", True), ("[0.2, 0.3]", False)]
)
def test_a_setting_inside_of_a_stated_range(bounds: str, expected: bool) -> None:
    assert under("noise=0.1: accuracy 0.91\n", noise=bounds) is expected


def test_a_range_chooses_among_the_settings_of_a_run() -> None:
    text = "noise=0.1: accuracy 0.91\nnoise=0.9: accuracy 0.51\n"
    assert under(text, noise="[0.05, 0.15]")
    (far,) = matches([claim("c", "accuracy", "0.51", noise="[0.5, 1]")], text)
    assert far.observed == (0.51,)


# --- a coordinate under another name ---------------------------------------------------------------------------------


def curve(*settings: str) -> list:
    return [claim(f"c{setting}", "error", f"0.{int(setting) + 10}", rho=setting) for setting in settings]


def printed(*rates: str, more: str = "") -> str:
    return "".join(f"rate={rate} {more}error=0.{int(float(rate) * 100) + 10}\n" for rate in rates)


def test_a_coordinate_is_known_by_its_values() -> None:
    """`rho` 0 to 30 of the paper are the program's `rate` 0.0 to 0.3."""
    text = printed("0.0", "0.1", "0.2", "0.3")
    assert [match.verdict for match in matches(curve("0", "10", "20", "30"), text)] == [PASS] * 4
    found = axes(questions(curve("0", "10", "20")), profiles(observe_text(text, "stdout")))
    assert found["rho"].factor == 0.01
    assert found["rho"].names == {frozenset({"rate"})}


def test_values_as_they_are_come_before_hundredths() -> None:
    text = "".join(f"rate={rate} error=0.{rate + 10}\n" for rate in (0, 10, 20))
    assert axes(questions(curve("0", "10", "20")), profiles(observe_text(text, "stdout")))["rho"].factor == 1.0


@pytest.mark.parametrize(
    ("settings", "rates"),
    [
        (("0", "10"), ("0.0", "0.1")),  # two values are no pattern
        (("0", "10", "20"), ("0.0", "0.1", "0.3")),  # one is missing
        (("0", "10", "20"), tuple(f"{number / 20:.2f}" for number in range(7))),  # most are others
    ],
)
def test_what_is_not_recognised_by_its_values(settings: tuple[str, ...], rates: tuple[str, ...]) -> None:
    assert axes(questions(curve(*settings)), profiles(observe_text(printed(*rates), "stdout"))) == {}


def test_twice_as_many_settings_may_be_run() -> None:
    rates = tuple(f"{number / 20:.2f}" for number in range(6))
    assert axes(questions(curve("0", "10", "20")), profiles(observe_text(printed(*rates), "stdout"))) != {}


def test_two_coordinates_with_the_same_values_are_not_told_apart() -> None:
    text = "".join(f"rate={rate} share={rate} error=0.1\n" for rate in ("0.0", "0.1", "0.2"))
    assert axes(questions(curve("0", "10", "20")), profiles(observe_text(text, "stdout"))) == {}


def test_settings_that_are_names_have_no_axis() -> None:
    claims = [claim(f"c{name}", "error", "0.1", rho=name) for name in ("0", "10", "many")]
    assert axes(questions(claims), profiles(observe_text(printed("0.0", "0.1", "0.2"), "stdout"))) == {}


# --- settings that are names -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "expected"),
    [("CAW (ours)", True), ("CAW", True), ("ours (CAW)", True), ("SGD", False), ("CAW full", True)],
)
def test_a_method_may_carry_what_only_papers_add(value: str, expected: bool) -> None:
    assert under("caw: accuracy 0.91\nsgd: accuracy 0.81\n", method=value) is expected


def test_two_labels_name_one_value_together() -> None:
    claims = [
        claim("a", "accuracy", "0.91", method="SGD on moons"),
        claim("b", "accuracy", "0.81", method="SGD on rings"),
    ]
    text = "moons: sgd: accuracy 0.91\nrings: sgd: accuracy 0.81\n"
    assert [match.observed for match in matches(claims, text)] == [(0.91,), (0.81,)]


def test_words_that_all_values_share_say_nothing() -> None:
    claims = [claim("a", "accuracy", "0.91", model="large net"), claim("b", "accuracy", "0.81", model="small net")]
    assert [match.verdict for match in matches(claims, "net: accuracy 0.91\n")] == [UNKNOWN, UNKNOWN]
    both = matches(claims, "small: accuracy 0.81\nlarge: accuracy 0.91\n")
    assert [match.observed for match in both] == [(0.91,), (0.81,)]


def test_a_value_that_belongs_to_a_sibling_is_no_candidate() -> None:
    claims = [claim("a", "accuracy", "0.91", method="adam"), claim("b", "accuracy", "0.91", method="sgd")]
    adam, sgd = matches(claims, "sgd: accuracy 0.91\n")
    assert (adam.verdict, sgd.verdict) == (UNKNOWN, PASS)


def test_a_statistic_among_the_conditions_is_compared_as_one() -> None:
    text = "accuracy median 0.91\naccuracy 0.95\n"
    (median,) = matches([claim("c", "accuracy", "0.91", statistic="median")], text)
    assert median.observed == (0.91,)
    (plain,) = matches([claim("c", "accuracy", "0.95", statistic="mean")], text)
    assert plain.observed == (0.95,)
