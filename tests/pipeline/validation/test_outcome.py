from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.task import ClaimMatch, Verdict
from pipeline.validation.observation import Observation
from pipeline.validation.outcome import decide, flakiness, learn_bands, match_claims, supported_claims
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim, make_snapshot, make_task

PASS, FAIL, UNKNOWN = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def seen(text: str) -> list[Observation]:
    return list(observe_text(text, "stdout"))


def one(item, text: str) -> ClaimMatch:
    (match,) = match_claims([item], [seen(text)])
    return match


def verdicts(claims, text: str) -> list[Verdict]:
    return [match.verdict for match in match_claims(claims, [seen(text)])]


GRID = "Test accuracy\nmethod   moons  rings\nours      91.5   88.1\nsgd       85.2   78.7\n"
GRID_CLAIMS = [
    claim("c1", "Test accuracy (%)", "91.5", unit="%", method="ours", dataset="Moons"),
    claim("c2", "Test accuracy (%)", "88.1", unit="%", method="ours", dataset="Rings"),
    claim("c3", "Test accuracy (%)", "85.2", unit="%", method="SGD", dataset="Moons"),
    claim("c4", "Test accuracy (%)", "78.7", unit="%", method="SGD", dataset="Rings"),
]


def test_cells_of_a_table_align_with_the_papers() -> None:
    matches = match_claims(GRID_CLAIMS, [seen(GRID)])
    assert [match.verdict for match in matches] == [PASS] * 4
    assert matches[1].where == "stdout:3, column rings"
    assert decide(GRID_CLAIMS, matches)[0] is PASS


def test_a_value_that_occurs_elsewhere_is_no_match() -> None:
    """Shuffled values all occur in the output; chosen by value they would all pass."""
    order = [1, 0, 3, 2]
    values = [GRID_CLAIMS[index] for index in order]
    wrong = [
        item.evolve(value=other.value, text=other.text, band=other.band)
        for item, other in zip(GRID_CLAIMS, values, strict=True)
    ]
    matches = match_claims(wrong, [seen(GRID)])
    assert Counter(match.verdict for match in matches) == {FAIL: 4}
    assert decide(wrong, matches)[0] is FAIL


def test_transposed_and_nested_outputs() -> None:
    text = "dataset   ours    sgd\nmoons    0.9150  0.8520\nrings    0.8810  0.7870\n"
    assert verdicts(GRID_CLAIMS, "accuracy\n" + text) == [PASS] * 4


@pytest.mark.parametrize(
    ("stated", "unit", "printed", "verdict"),
    [
        ("87.3", "%", "accuracy: 0.873", PASS),
        ("87.3", "%", "accuracy: 0.8734", PASS),
        ("87.3", "%", "accuracy: 0.8736", FAIL),
        ("87.3", None, "accuracy: 87.3%", PASS),
        ("0.873", None, "accuracy: 87.3%", PASS),
        ("0.873", None, "accuracy (%): 87.34", PASS),
        ("0.873", None, "accuracy: 0.87", PASS),  # to the digits that the run prints
        ("0.873", None, "accuracy: 0.86", FAIL),
        ("87.34", "%", "accuracy: 0.9", UNKNOWN),  # too few digits to say
    ],
)
def test_percent_and_fractions(stated: str, unit: str | None, printed: str, verdict: Verdict) -> None:
    assert one(claim("c1", "accuracy", stated, unit=unit), printed).verdict is verdict


def test_another_statistic_or_split_is_another_number() -> None:
    text = "R2_mean: 0.9998\nR2_std: 0.0003\nR2_min: 0.9991\n"
    assert one(claim("c1", "R2 mean", "0.9998"), text).verdict is PASS
    assert one(claim("c1", "R2 (std)", "0.0003"), text).verdict is PASS
    assert one(claim("c1", "median R2", "0.9998"), text).verdict is UNKNOWN
    text = "train accuracy: 0.99\ntest accuracy: 0.87\n"
    assert one(claim("c1", "test accuracy", "0.87"), text).observed == (0.87,)
    assert one(claim("c1", "accuracy", "0.87"), text).verdict is UNKNOWN
    assert one(claim("c1", "validation accuracy", "0.87"), text).verdict is UNKNOWN


def test_several_numbers_that_fit_are_ambiguous() -> None:
    match = one(claim("c1", "accuracy", "0.85"), "left: accuracy 0.85\nright: accuracy 0.75\n")
    assert match.verdict is UNKNOWN
    assert "ambiguous" in match.reason


def test_the_same_number_on_screen_and_in_a_file_is_one() -> None:
    runs = [[*seen("accuracy: 0.87\n"), *observe_text("accuracy = 0.87341\n", "log.txt")]]
    (match,) = match_claims([claim("c1", "accuracy", "0.8734")], runs)
    assert match.verdict is PASS
    assert match.where == "log.txt:1"


@pytest.mark.parametrize("counter", ["epoch", "seed"])
def test_a_series_is_not_one_number(counter: str) -> None:
    text = "\n".join(f"{counter}={n} loss={1 / n:.4f}" for n in range(1, 5))
    assert one(claim("c1", "loss", "0.25"), text).verdict is UNKNOWN
    assert one(claim("c1", "loss", "0.2500", **{counter: "4"}), text).verdict is PASS


def test_differences_are_not_the_quantity_itself() -> None:
    assert one(claim("c1", "accuracy gap", "9.3"), "accuracy: 9.3\n").verdict is UNKNOWN
    assert one(claim("c1", "accuracy", "9.3"), "accuracy drop: 9.3\n").verdict is UNKNOWN


def test_times_are_never_compared() -> None:
    for item in (claim("c1", "run time", "1.2", unit="s"), claim("c1", "run time (s)", "1.2")):
        match = one(item, "run time s: 9.9\nrun time: 9.9\n")
        assert match.verdict is UNKNOWN
        assert match.observed == (9.9,)
    assert one(claim("c1", "peak", "1.2", unit="GB"), "peak: 9.9\n").verdict is UNKNOWN
    assert one(claim("c1", "run time", "1.2"), "run time: 9.9\n").verdict is FAIL  # by the unit alone


def test_a_claim_that_nothing_names_is_unknown() -> None:
    match = one(claim("c1", "perplexity", "12.3"), "accuracy: 12.3\n")
    assert match.verdict is UNKNOWN
    assert match.observed == ()


def test_a_vague_label_does_not_contradict() -> None:
    text = "warmup probe variant accuracy: 0.61\n"
    assert one(claim("c1", "accuracy", "0.87"), text).verdict is UNKNOWN


def test_two_claims_cannot_share_a_number() -> None:
    claims = [claim("c1", "accuracy", "0.87", note="clean"), claim("c2", "accuracy", "0.80", remark="noisy")]
    assert verdicts(claims, "accuracy: 0.87\n") == [UNKNOWN, UNKNOWN]


def test_stated_uncertainty_and_repeats() -> None:
    item = claim("c1", "accuracy", "0.91", uncertainty=0.02)
    assert one(item, "accuracy: 0.93\n").verdict is PASS
    assert one(item, "accuracy: 0.94\n").verdict is FAIL
    runs = [seen(f"accuracy: {value}\n") for value in (0.9312, 0.9401, 0.9289)]
    (match,) = match_claims([claim("c1", "accuracy", "0.934")], runs)
    assert match.verdict is PASS
    assert match.observed == (0.9312, 0.9401, 0.9289)
    (far,) = match_claims([claim("c1", "accuracy", "0.834")], runs)
    assert far.verdict is FAIL


def test_a_number_of_some_runs_only_is_unknown() -> None:
    (match,) = match_claims([claim("c1", "accuracy", "0.9")], [seen("accuracy: 0.9\n"), seen("done\n")])
    assert match.verdict is UNKNOWN
    assert "1 of 2 runs" in match.reason


def test_comparisons_must_hold() -> None:
    claims = [
        claim("c1", "accuracy", "0.9", uncertainty=0.1, method="ours"),
        claim("c2", "accuracy", "0.8", uncertainty=0.1, method="sgd"),
    ]
    runs = [seen("ours: accuracy 0.85\nsgd: accuracy 0.86\n")]
    assert [match.verdict for match in match_claims(claims, runs)] == [PASS, PASS]
    matches = match_claims(claims, runs, comparisons=[("c1", ">", "c2")])
    assert [match.verdict for match in matches] == [FAIL, FAIL]
    assert decide(claims, match_claims(claims, runs), comparisons=[("c1", ">", "c2")])[0] is FAIL


@pytest.mark.parametrize(
    ("relation", "first", "second", "holds"),
    [
        ("<", "0.80", "0.85", True), ("<", "0.85", "0.80", False), ("<", "0.80", "0.80", False),
        (">", "0.85", "0.80", True), (">", "0.80", "0.85", False), (">", "0.80", "0.80", False),
    ],
)  # fmt: skip
def test_a_relation_between_two_numbers(relation: str, first: str, second: str, holds: bool) -> None:
    claims = [
        claim("c1", "accuracy", "0.8", uncertainty=0.1, method="ours"),
        claim("c2", "accuracy", "0.8", uncertainty=0.1, method="sgd"),
    ]
    runs = [seen(f"ours: accuracy {first}\nsgd: accuracy {second}\n")]
    matches = match_claims(claims, runs, comparisons=[("c1", relation, "c2")])
    assert [match.verdict for match in matches] == [PASS if holds else FAIL] * 2


def test_decisions() -> None:
    def match(id_: str, verdict: Verdict) -> ClaimMatch:
        return ClaimMatch(claim=id_, verdict=verdict, reason="because")

    claims = [claim("c1", "accuracy", "87.3"), claim("c2", "accuracy", "85.2"), claim("c3", "accuracy", "83.1")]
    assert decide(claims, [match("c1", PASS), match("c2", PASS), match("c3", UNKNOWN)])[0] is PASS
    assert decide(claims, [match("c1", PASS), match("c2", UNKNOWN), match("c3", UNKNOWN)])[0] is UNKNOWN
    assert decide(claims, [match("c1", PASS), match("c2", PASS), match("c3", FAIL)])[0] is FAIL
    assert decide([], [])[0] is UNKNOWN
    weak = [claim("c1", "accuracy", "0.9")]
    verdict, reason = decide(weak, [match("c1", PASS)])
    assert verdict is UNKNOWN
    assert "chance" in reason


def test_supported_claims_drop_the_unknown_and_keep_the_contradicted(tmp_path: Path) -> None:
    claims = [claim("c1", "accuracy", "0.9"), claim("c2", "recall", "0.8"), claim("c3", "f1", "0.7")]
    task = make_task(make_snapshot(tmp_path, {"x.py": ""}), [["python", "x.py"]], ["x.py"], claims, [("c1", ">", "c2")])
    matches = [
        ClaimMatch(claim="c1", verdict=PASS, reason=""),
        ClaimMatch(claim="c2", verdict=UNKNOWN, reason=""),
        ClaimMatch(claim="c3", verdict=FAIL, reason=""),
    ]
    kept = supported_claims(task, matches).truth.expected
    assert [item.id for item in kept.claims] == ["c1", "c3"]
    assert kept.comparisons == ()


def test_bands_are_learnt_from_repeats_that_differ() -> None:
    claims = [claim("c1", "accuracy", "0.93"), claim("c2", "recall", "0.80")]
    matches = [
        ClaimMatch(claim="c1", verdict=PASS, observed=(0.9312, 0.9331, 0.9289), reason=""),
        ClaimMatch(claim="c2", verdict=PASS, observed=(0.8, 0.8, 0.8), reason=""),
    ]
    learnt = learn_bands(claims, matches)
    assert learnt[0].band.source == "repeats (n=3)"
    assert learnt[0].band.low < 0.925
    assert learnt[1].band == claims[1].band
    assert flakiness(claims, matches) == 0.0
    assert flakiness(claims, [matches[0].evolve(observed=(0.93, 0.94))]) == 1.0
    assert flakiness(claims, []) is None


@given(st.lists(st.floats(0.5, 0.6), min_size=2, max_size=6))
def test_a_learnt_band_holds_what_it_was_learnt_from(observed: list[float]) -> None:
    item = claim("c1", "accuracy", "0.55")
    (learnt,) = learn_bands([item], [ClaimMatch(claim="c1", verdict=PASS, observed=tuple(observed), reason="")])
    assert learnt.band.low <= item.band.low
    assert learnt.band.high >= item.band.high
    if learnt.band.source.startswith("repeats"):
        if len(observed) == 2:
            assert all(learnt.band.holds(value) for value in observed)
        assert learnt.band.holds(sum(observed) / len(observed))


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_the_order_of_claims_and_observations_does_not_matter(rng: random.Random) -> None:
    claims, observations = list(GRID_CLAIMS), seen(GRID)
    rng.shuffle(claims)
    rng.shuffle(observations)
    matches = match_claims(claims, [observations])
    assert [match.verdict for match in matches] == [PASS] * 4


@settings(deadline=None)
@given(st.text(max_size=300))
def test_no_output_breaks_the_matching(text: str) -> None:
    assert len(match_claims(GRID_CLAIMS, [seen(text)])) == 4


def placed(item, text: str, place: str, factor: float = 1.0) -> ClaimMatch:
    return one(item.evolve(place=place, factor=factor), text)


TWICE = "accuracy: 0.7121\nepoch 2\naccuracy: 0.9153\n"


def test_a_claim_with_a_place_is_read_there_and_nowhere_else() -> None:
    item = claim("c1", "no such name", "91.53", unit="%")
    second = "stdout :: accuracy :: 2"

    match = placed(item, TWICE, second, 100.0)
    assert (match.verdict, match.where) == (PASS, "stdout:3")
    assert match.observed == pytest.approx((91.53,))
    assert placed(item, TWICE, "stdout :: accuracy :: 1", 100.0).verdict is FAIL
    # more warnings above move the line, not the place
    assert placed(item, f"warning: slow\n\n{TWICE}", second, 100.0).where == "stdout:5"


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("stdout :: accuracy :: 3", "`stdout` holds no number at `stdout :: accuracy :: 3`"),
        ("out.csv :: acc :: 1", "the run left no `out.csv`"),
    ],
)
def test_a_place_that_a_run_does_not_have_is_unknown(place: str, reason: str) -> None:
    match = placed(claim("c1", "accuracy", "0.7121"), TWICE, place)

    assert match.verdict is UNKNOWN
    assert reason in match.reason


def test_placed_and_named_claims_do_not_take_numbers_from_each_other() -> None:
    first = claim("c1", "Test accuracy (%)", "91.5", unit="%", method="ours", dataset="Moons")
    matches = match_claims([first.evolve(place="stdout :: ours / moons :: 1"), *GRID_CLAIMS[1:]], [seen(GRID)] * 2)

    assert [match.verdict for match in matches] == [PASS] * 4
    assert matches[0].observed == (91.5, 91.5)
