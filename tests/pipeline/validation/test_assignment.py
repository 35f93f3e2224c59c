"""From several printed numbers to the one that a claim means: extremes, ties, scales, replicates, rivals."""

from __future__ import annotations

import pytest

from pipeline.task import ClaimMatch, Verdict
from pipeline.validation.outcome import match_claims
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN
SERIES = "width=1 rmse=1.49\nwidth=2 rmse=0.83\nwidth=3 rmse=1.20\n"


def matches(claims, text: str) -> list[ClaimMatch]:
    return match_claims(claims, [list(observe_text(text, "stdout"))])


# --- minimum and maximum ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("metric", "stated", "other"), [("minimum RMSE", 0.83, 1.49), ("maximum RMSE", 1.49, 0.83)])
def test_an_extreme_is_taken_over_the_series_that_the_run_prints(metric: str, stated: float, other: float) -> None:
    (match,) = matches([claim("c", metric, str(stated))], SERIES)
    assert (match.verdict, match.observed) == (PASS, (stated,))
    assert match.where == f"{metric[:3]} over 3 numbers from stdout:1"
    (wrong,) = matches([claim("c", metric, str(other))], SERIES)
    assert wrong.observed == (stated,)
    assert wrong.verdict is not PASS


def test_both_ends_of_one_series_may_be_claimed() -> None:
    both = matches([claim("lo", "minimum RMSE", "0.83"), claim("hi", "maximum RMSE", "1.49")], SERIES)
    assert [match.verdict for match in both] == [PASS, PASS]


def test_a_printed_extreme_wins_over_the_series() -> None:
    (match,) = matches([claim("c", "minimum RMSE", "0.83")], SERIES + "min rmse: 0.91\n")
    assert (match.verdict, match.observed) == (FAIL, (0.91,))


def test_one_number_is_no_series_with_an_extreme() -> None:
    (match,) = matches([claim("c", "minimum RMSE", "0.83")], "rmse: 0.83\n")
    assert match.verdict is UNKNOWN
    assert "prints no series of `minimum RMSE`" in match.reason


def test_two_numbers_are_a_series() -> None:
    (match,) = matches([claim("c", "minimum RMSE", "0.83")], "width=1 rmse=1.49\nwidth=2 rmse=0.83\n")
    assert (match.verdict, match.observed) == (PASS, (0.83,))


# --- what a claim that finds no number is told -----------------------------------------------------------------------


def test_the_reason_names_the_metric_and_its_conditions() -> None:
    (match,) = matches([claim("c", "accuracy", "0.9", n="10", noise="low")], "loss: 0.9\n")
    assert match.reason == "no printed number is named `accuracy [n=10, noise=low]`"
    (bare,) = matches([claim("c", "accuracy", "0.9")], "loss: 0.9\n")
    assert bare.reason == "no printed number is named `accuracy`"


def test_an_ambiguous_claim_is_told_the_first_places() -> None:
    text = "".join(f"layer=L{index} loss=0.{index}\n" for index in range(1, 6))
    (match,) = matches([claim("c", "loss", "0.5")], text)
    assert match.reason == "5 numbers fit `loss` equally well (stdout:1, stdout:2, stdout:3): ambiguous"


# --- equal numbers ---------------------------------------------------------------------------------------------------


def test_numbers_that_round_to_the_coarser_one_are_one() -> None:
    texts = [list(observe_text("accuracy: 0.87\n", "stdout")) + list(observe_text("accuracy: 0.8749\n", "log"))]
    (match,) = match_claims([claim("c", "accuracy", "0.875")], texts)
    assert match.where == "log:1"
    texts = [list(observe_text("accuracy: 0.87\n", "stdout")) + list(observe_text("accuracy: 0.8761\n", "log"))]
    (apart,) = match_claims([claim("c", "accuracy", "0.876")], texts)
    assert apart.verdict is UNKNOWN
    assert "ambiguous" in apart.reason


# --- percent and fractions -------------------------------------------------------------------------------------------


def test_a_series_with_a_value_above_one_is_in_percent() -> None:
    """`0.5` after `87.3` is half a percent, whatever the claim would like."""
    series = "epoch=1 accuracy=87.30\nepoch=2 accuracy=0.50\n"
    (match,) = matches([claim("c", "accuracy", "0.0050")], series)
    assert (match.verdict, match.observed) == (PASS, (pytest.approx(0.005),))
    (match,) = matches([claim("c", "accuracy", "0.50")], series)
    assert match.verdict is not PASS


def test_another_column_does_not_tell_the_scale() -> None:
    claims = [claim("a", "accuracy", "0.50", method="x"), claim("b", "f1", "87.3", method="x")]
    accuracy, _ = matches(claims, "method accuracy f1\nx 0.50 87.3\n")
    assert (accuracy.verdict, accuracy.observed) == (PASS, (0.5,))


def test_a_share_of_exactly_one_is_a_fraction() -> None:
    (match,) = matches([claim("c", "accuracy", "100.0", unit="%")], "accuracy: 1.000\n")
    assert (match.verdict, match.observed) == (PASS, (100.0,))
    (stated,) = matches([claim("c", "accuracy", "1.00")], "accuracy: 1.00\n")
    assert (stated.verdict, stated.observed) == (PASS, (1.0,))


def test_the_percent_sign_may_stand_in_the_metrics_name_or_unit() -> None:
    for item in (claim("c", "accuracy (%)", "0.9"), claim("c", "accuracy", "0.9", unit="%")):
        (match,) = matches([item], "accuracy: 0.0090\n")
        assert (match.verdict, match.observed) == (PASS, (pytest.approx(0.9),))


def test_what_is_no_share_keeps_its_scale() -> None:
    (match,) = matches([claim("c", "perplexity", "87.3")], "perplexity: 0.873\n")
    assert match.observed == (0.873,)
    assert match.verdict is FAIL


# --- series and replicates -------------------------------------------------------------------------------------------


def test_the_mean_over_folds_has_one_digit_more() -> None:
    text = "fold=1 accuracy=0.81\nfold=2 accuracy=0.84\n"
    (match,) = matches([claim("c", "accuracy", "0.825")], text)
    assert match.verdict is PASS
    assert match.where == "mean over 2 x fold from stdout:1"


@pytest.mark.parametrize(
    "text",
    [
        "seed=1 fold=1 accuracy=0.81\nseed=2 fold=2 accuracy=0.85\n",  # replicates of what?
        "seed=1 layer=L1 accuracy=0.81\nseed=2 layer=L2 accuracy=0.85\n",  # not only the seed differs
        "epoch=1 seed=1 accuracy=0.81\nepoch=2 seed=2 accuracy=0.83\n",  # neither an end nor a mean
        "layer=1 accuracy=0.81\nlayer=2 accuracy=0.83\n",  # a setting, no counter
    ],
)
def test_numbers_that_differ_in_more_than_a_seed_or_an_epoch_are_ambiguous(text: str) -> None:
    (match,) = matches([claim("c", "accuracy", "0.83")], text)
    assert match.verdict is UNKNOWN
    assert "ambiguous" in match.reason


def test_numbers_of_two_files_are_no_series() -> None:
    runs = [list(observe_text("epoch=1 loss=0.9\n", "a.log")) + list(observe_text("epoch=2 loss=0.5\n", "b.log"))]
    (match,) = match_claims([claim("c", "loss", "0.5")], runs)
    assert match.verdict is UNKNOWN
    assert "ambiguous" in match.reason


# --- rivals ----------------------------------------------------------------------------------------------------------


def test_a_number_that_is_clearly_anothers_is_not_available() -> None:
    claims = [claim("a", "accuracy", "0.87", method="ours"), claim("b", "accuracy", "0.80")]
    ours, any_method = matches(claims, "ours accuracy: 0.87\n")
    assert ours.verdict is PASS
    assert any_method.verdict is UNKNOWN
    assert any_method.reason == "every number that could be `accuracy` belongs to another claim"


def test_two_claims_of_one_number_tell_of_each_other() -> None:
    claims = [claim("a", "accuracy", "0.87", note="clean"), claim("b", "accuracy", "0.80", remark="noisy")]
    first, second = matches(claims, "accuracy: 0.87\n")
    assert first.reason == "stdout:1 could be `accuracy [note=clean]` or `accuracy [remark=noisy]`: ambiguous"
    assert second.reason == "stdout:1 could be `accuracy [remark=noisy]` or `accuracy [note=clean]`: ambiguous"


def test_the_same_claim_stated_twice_is_no_rival_of_itself() -> None:
    """Also where the paper writes its conditions in another order."""
    claims = [
        claim("a", "accuracy", "0.87", method="ours", dataset="moons"),
        claim("b", "Accuracy", "0.87", dataset="moons", method="ours"),
    ]
    assert [match.verdict for match in matches(claims, "ours on moons: accuracy 0.87\n")] == [PASS, PASS]
