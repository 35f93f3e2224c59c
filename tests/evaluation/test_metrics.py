"""Metrics: three-valued marks, the paper's tables from per-episode records, repeats, and the algebra they must obey."""

from __future__ import annotations

import itertools
import random
from math import comb

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluation.metrics import (
    CHECKED_ONLY,
    FULL_MARKS,
    LADDER,
    RANKED_BY,
    TABLE_1,
    Convention,
    Mark,
    Metric,
    estimate,
    execution_checked,
    mark,
    pass_at_k,
    pass_hat_k,
    pass_rates,
    rank_key,
    repeat_spread,
    stability,
)
from evaluation.scores import EpisodeScores, EpisodeStatus
from pipeline.task import Family
from tests.evaluation.report.synthetic import scores_row

UNKNOWN = Mark(None, 0.0, 1.0)


def known(value: float) -> Mark:
    return Mark(value, value, value)


def percent(value: float | None) -> str:
    assert value is not None
    return f"{100 * value:.1f}"


# --- one episode ---


def test_conjunctions_are_indicators_of_full_marks_not_products() -> None:
    # EXP-Bench, Table 6: Probabilistic Methods, OH o3-mini has I 49.3, E 100 and I·E 0.0
    row = scores_row(implementation=0.493, execution=1.0, execution_checked=True)
    assert mark(row, Metric.I_E) == known(0.0)
    assert mark(scores_row(implementation=1.0, execution=1.0), Metric.I_E) == known(1.0)


@pytest.mark.parametrize(
    ("fields", "metric", "expected"),
    [
        ({}, Metric.ALL, UNKNOWN),
        ({"design": 1.0, "implementation": 1.0}, Metric.ALL, UNKNOWN),
        ({"design": 1.0, "implementation": 1.0, "conclusion": 1.0}, Metric.ALL, known(1.0)),
        ({"conclusion": 0.0}, Metric.ALL, known(0.0)),  # settled by one part, the others unknown
        ({"design_bounds": (0.25, 0.75)}, Metric.ALL, known(0.0)),  # unknown, but not full in any case
        ({"design_bounds": (0.5, 1.0), "conclusion": 1.0}, Metric.C_D, UNKNOWN),
        ({"design_bounds": (0.25, 0.75)}, Metric.D, Mark(None, 0.25, 0.75)),
        ({"design": 0.5, "design_bounds": (0.25, 0.75)}, Metric.D, known(0.5)),
        ({"monitor": 0.0, "design": 1.0, "conclusion": 1.0}, Metric.M_D_C, known(0.0)),
    ],
)
def test_unknown_parts_stay_unknown_unless_another_settles_it(
    fields: dict[str, object], metric: Metric, expected: Mark
) -> None:
    assert mark(scores_row(**fields), metric) == expected


# --- means ---


def test_a_blocked_episode_is_unknown_and_not_0() -> None:
    rows = [scores_row(conclusion=1.0), scores_row(task="b", status=EpisodeStatus.BLOCKED, reason="no repository")]
    found = estimate(rows, Metric.C)
    assert (found.n, found.known, found.unknown) == (2, 1, 1)
    assert (found.mean, found.low, found.high) == (1.0, 0.5, 1.0)


def test_agents_are_ranked_by_the_lowest_mean_that_they_can_have_then_by_the_highest() -> None:
    bounds = {
        "best": (0.6, 0.7),
        "wide": (0.5, 0.9),
        "narrow": (0.5, 0.5),
        "nothing passed": (0.0, 0.4),
        "none": (0.0, 0.0),
    }
    base = estimate([], Metric.M)
    keys = {name: rank_key(base.evolve(low=low, high=high)) for name, (low, high) in bounds.items()}
    assert sorted(keys, key=keys.__getitem__) == list(bounds)
    assert (
        rank_key(base) == keys["none"] == (0.0, 0.0)
    )  # an agent without episodes is no better than one that never passed


def test_an_interval_is_made_of_the_known_marks_and_their_papers() -> None:
    rows = [
        scores_row(task="t1", conclusion=1.0).evolve(paper="first"),
        scores_row(task="t2", conclusion=None).evolve(paper="second"),
        scores_row(task="t3", conclusion=0.0).evolve(paper="third"),
    ]
    given: list[tuple[list[float], list[str]]] = []

    def keep(values: object, papers: list[str]) -> tuple[float, float]:
        given.append(([float(value) for value in values], papers))
        return (0.1, 0.9)

    assert estimate(rows, Metric.C, interval=keep).interval == (0.1, 0.9)
    assert given == [([1.0, 0.0], ["first", "third"])]
    assert estimate(rows, Metric.C).interval is None


@pytest.mark.parametrize(
    ("checked", "execution", "counts"),
    [(True, None, True), (False, 1.0, True), (False, 0.0, True), (False, None, False)],
)
def test_what_was_checked_or_has_a_verdict_counts_as_executed(
    checked: bool, execution: float | None, counts: bool
) -> None:
    row = scores_row(execution_checked=checked, execution=execution)
    assert execution_checked(row, Convention.PAPER) is counts


def test_no_episodes_have_no_mean() -> None:
    found = estimate([], Metric.C)
    assert (found.n, found.mean, found.low, found.high) == (0, None, None, None)


def test_bounds_use_what_is_known_of_unknown_designs() -> None:
    rows = [scores_row(design=0.5), scores_row(task="b", design_bounds=(0.25, 0.75))]
    found = estimate(rows, Metric.D)
    assert (found.mean, found.low, found.high) == (0.5, 0.375, 0.625)


def test_in_the_papers_convention_e_is_averaged_over_execution_checked_episodes_only() -> None:
    rows = [
        scores_row(task="a", execution=1.0, execution_checked=True, implementation=1.0),
        scores_row(task="b", execution=0.0, execution_checked=True, implementation=1.0),
        scores_row(task="c", implementation=0.5),  # not checked: I·E is 0 in any case, E is unknown
        scores_row(task="d", implementation=1.0),
    ]
    assert estimate(rows, Metric.E, Convention.PAPER).n == 2
    assert estimate(rows, Metric.E, Convention.PAPER).mean == 0.5
    strict = estimate(rows, Metric.E)
    assert (strict.n, strict.known, strict.low, strict.high) == (4, 2, 0.25, 0.75)
    both = estimate(rows, Metric.I_E)
    assert (both.n, both.known, both.low, both.high) == (4, 3, 0.25, 0.5)


FULL = {"design": 1.0, "implementation": 1.0, "conclusion": 1.0}


def test_being_caught_does_not_leave_a_denominator() -> None:
    """2 honest failures and 2 caught: discarded before the check, the caught left #E, and AllX·E rose from 25 to 50 %."""
    right = scores_row(task="a", monitor=1.0, execution=1.0, execution_checked=True, **FULL)
    wrong = scores_row(task="b", monitor=1.0, execution=0.0, execution_checked=True, **FULL)
    cheats = [scores_row(task=task, monitor=0.0, **FULL) for task in "cd"]
    rows = [right, wrong, *cheats]
    assert estimate(rows, Metric.ALL_E, Convention.PAPER).mean == 0.5
    assert estimate(rows, Metric.ALL_E).mean == 0.25
    for metric in Metric:
        assert all(mark(cheat, metric) == known(0.0) for cheat in cheats)
        assert estimate(rows, metric).n == 4
    assert sum(execution_checked(row) for row in rows) == 4
    assert sum(execution_checked(row, Convention.PAPER) for row in rows) == 2


def test_a_suspicion_opens_the_ladder_and_leaves_the_rest() -> None:
    suspected = scores_row(execution=1.0, execution_checked=True, **FULL)
    assert mark(suspected, Metric.ALL_E) == known(1.0)
    assert mark(suspected, Metric.M_D_I_C_E) == UNKNOWN


def test_a_restated_design_is_shown_and_leaves_the_conjunctions() -> None:
    row = scores_row(design=0.5, design_restated=True, implementation=1.0, conclusion=1.0, monitor=1.0)
    assert mark(row, Metric.D) == known(0.5)
    for metric in (Metric.ALL, Metric.C_D, Metric.M_D_C, Metric.M_D_I_C):
        assert mark(row, metric) == known(1.0)
        assert mark(row, metric, Convention.PAPER) == known(0.0)
    assert mark(row.evolve(conclusion=0.0), Metric.C_D) == known(0.0)
    assert mark(row.evolve(monitor=0.0), Metric.C_D) == known(0.0)


def test_other_families_have_no_design() -> None:
    rows = [scores_row(design=1.0), scores_row(task="h", family=Family.HISTOGRAM, monitor=1.0, metrics={"d": 0.2})]
    assert estimate(rows, Metric.D).n == 1
    assert estimate(rows, Metric.M).n == 2


# --- the paper's tables from per-episode records ---


def test_table_1_of_the_paper() -> None:
    """OpenHands + Claude-3.7 Sonnet: E 33.2, I·E 14.9, C 13.4, AllX 0.7, AllX·E 0.4, #E 235, of 461 tasks.

    Counts that give what is printed: of 235 checked, 78 execute, 35 with full I, 1 with all full; of 461, 62 have the
    right conclusion and 3 are full in D, I and C. D and I are shares; here they are set so that 16.0 and 35.0 come out.
    """
    rows = []
    for number in range(461):
        checked, full = number < 235, number in {0, 300, 301}
        right = number < 35 or full  # full implementation and executable
        rows.append(
            scores_row(
                task=f"t{number}",
                monitor=1.0,
                design=1.0 if full else (0.16 * 461 - 3) / 458,
                implementation=1.0 if right else (0.35 * 461 - 37) / 424,
                conclusion=1.0 if full or number >= 461 - 59 else 0.0,
                execution=float(number < 78) if checked else None,
                execution_checked=checked,
            )
        )
    table = {metric: percent(estimate(rows, metric, Convention.PAPER).mean) for metric in TABLE_1}
    assert list(table.values()) == ["16.0", "35.0", "33.2", "14.9", "13.4", "0.7", "0.4"]
    assert estimate(rows, Metric.ALL_E, Convention.PAPER).n == 235


def test_table_3_of_the_paper() -> None:
    """RL, OH 3.7 Sonnet: E 27.3, I·E 21.2, C 17.6, AllX 2.0, AllX·E 3.0.

    Only over the checked episodes can AllX·E exceed AllX: 1 of 51 tasks is full, and it is 1 of 33 checked ones.
    """
    rows = [
        scores_row(
            task=f"t{number}",
            category="RL",
            design=1.0 if number == 0 else 0.1667,
            implementation=1.0 if number < 7 else 0.4,
            conclusion=float(number < 9),
            execution=float(number < 9) if number < 33 else None,
            execution_checked=number < 33,
        )
        for number in range(51)
    ]
    shown = [percent(estimate(rows, metric, Convention.PAPER).mean) for metric in TABLE_1]
    assert shown == ["18.3", "48.2", "27.3", "21.2", "17.6", "2.0", "3.0"]


def test_table_6_of_the_paper() -> None:
    """Probabilistic Methods, OH 3.7 Sonnet: D 86.0, I 86.0, E 100.0, I·E 0.0, C 0.0, AllX 0.0, AllX·E 0.0."""
    row = scores_row(design=0.86, implementation=0.86, execution=1.0, execution_checked=True, conclusion=0.0)
    rows = [row.evolve(task=f"t{number}") for number in range(3)]
    shown = [percent(estimate(rows, metric, Convention.PAPER).mean) for metric in TABLE_1]
    assert shown == ["86.0", "86.0", "100.0", "0.0", "0.0", "0.0", "0.0"]


def test_figure_6b_of_the_paper() -> None:
    """M 20.6, with D and C 3.7, with I 0.4, with E 0.2, over the 1,414 execution-checked traces (the sum of #E).

    291, 52, 6 and 3 traces give these; 3 is also what Table 1's AllX·E of 0.5 of 420 and 0.4 of 235 add up to.
    """
    rows = [
        scores_row(
            task=f"t{number}",
            monitor=float(number < 291),
            design=1.0 if number < 52 else 0.5,
            conclusion=float(number < 52),
            implementation=1.0 if number < 6 else 0.5,
            execution=float(number < 3),
            execution_checked=True,
        )
        for number in range(420 + 235 + 56 + 237 + 140 + 111 + 215)
    ]
    assert [percent(estimate(rows, metric, Convention.PAPER).mean) for metric in LADDER] == [
        "20.6",
        "3.7",
        "0.4",
        "0.2",
    ]


# --- stability and repeats ---


def test_stability_between_episodes_and_within_a_task() -> None:
    rows = [
        scores_row(task="a", repeat=0, conclusion=0.0),
        scores_row(task="a", repeat=1, conclusion=1.0),
        scores_row(task="b", repeat=0, conclusion=1.0),
        scores_row(task="b", repeat=1, conclusion=1.0),
        scores_row(task="c", repeat=0),  # unknown
    ]
    found = stability(rows, Metric.C)
    assert (found.n, found.mean) == (4, 0.75)
    assert found.variance == pytest.approx(0.25)
    assert found.deviation == pytest.approx(0.5)
    assert found.within_task == pytest.approx(0.25)  # mean of .5 (a) and 0 (b)


def test_one_episode_has_no_variance() -> None:
    found = stability([scores_row(conclusion=1.0)], Metric.C)
    assert (found.variance, found.deviation, found.within_task) == (None, None, None)


def test_means_of_repeats() -> None:
    rows = [
        scores_row(task=task, repeat=repeat, conclusion=value)
        for repeat, values in enumerate([(0.0, 1.0), (1.0, 1.0), (None, 0.0)])
        for task, value in zip("ab", values, strict=True)
    ]
    found = repeat_spread(rows, Metric.C)
    assert found.means == ((0, 0.5), (1, 1.0), (2, 0.0))
    assert found.mean == 0.5
    assert found.deviation == pytest.approx(0.5)


def test_pass_at_k_by_counting_all_choices() -> None:
    attempts = [1, 1, 0, 0, 0]
    for k in range(1, 6):
        chosen = list(itertools.combinations(attempts, k))
        assert pass_at_k(5, 2, k) == pytest.approx(sum(any(c) for c in chosen) / len(chosen))
        assert pass_hat_k(5, 2, k) == pytest.approx(sum(all(c) for c in chosen) / len(chosen))


@pytest.mark.parametrize(("n", "passed", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0), (3, 1, 4)])
def test_pass_at_k_refuses_impossible_counts(n: int, passed: int, k: int) -> None:
    with pytest.raises(ValueError, match="needs 0 <= passed"):
        pass_at_k(n, passed, k)
    with pytest.raises(ValueError, match="needs 0 <= passed"):
        pass_hat_k(n, passed, k)


def test_pass_rates_leave_out_tasks_with_too_few_known_attempts() -> None:
    rows = [scores_row(task="a", repeat=repeat, conclusion=float(repeat == 0)) for repeat in range(3)]
    rows += [scores_row(task="b", repeat=0, conclusion=1.0), scores_row(task="b", repeat=1)]
    found = pass_rates(rows, Metric.C, 2)
    assert (found.tasks, found.left_out) == (1, 1)
    assert found.at_least_one == pytest.approx(2 / 3)
    assert found.every == 0.0
    assert pass_rates(rows, Metric.C, 1).at_least_one == pytest.approx((1 / 3 + 1) / 2)
    assert pass_rates(rows, Metric.C, 4).at_least_one is None


# --- the algebra ---

_share = st.none() | st.sampled_from([0.0, 0.25, 0.5, 1.0])
_binary = st.none() | st.sampled_from([0.0, 1.0])


@st.composite
def rows(draw: st.DrawFn) -> EpisodeScores:
    def bounds() -> tuple[float, float]:
        low, high = sorted((draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])), draw(st.sampled_from([0.5, 0.75, 1.0]))))
        return low, high

    execution = draw(_binary)
    return scores_row(
        task=draw(st.sampled_from("abcdef")),
        paper=draw(st.sampled_from("pqr")),
        repeat=draw(st.integers(0, 2)),
        monitor=draw(_binary),
        design=draw(_share),
        design_bounds=bounds(),
        design_restated=draw(st.booleans()),
        implementation=draw(_share),
        implementation_bounds=bounds(),
        execution=execution,
        execution_checked=execution is not None,
        conclusion=draw(_binary),
    )


CONVENTIONS = st.sampled_from(Convention)


@settings(deadline=None)
@given(rows(), st.sampled_from(Metric), CONVENTIONS)
def test_bounds_contain_the_value(row: EpisodeScores, metric: Metric, convention: Convention) -> None:
    value, low, high = mark(row, metric, convention)
    assert 0 <= low <= high <= 1
    assert value is None or low == value == high


@settings(deadline=None)
@given(rows(), st.sampled_from(sorted(FULL_MARKS)), CONVENTIONS)
def test_a_conjunction_is_at_most_each_part_and_an_indicator(
    row: EpisodeScores, metric: Metric, convention: Convention
) -> None:
    whole = mark(row, metric, convention)
    assert {whole.low, whole.high} <= {0.0, 1.0}
    left_out = {Metric.D} if row.design_restated and convention is Convention.STRICT else set()
    for part in (mark(row, part, convention) for part in FULL_MARKS[metric] if part not in left_out):
        assert whole.low <= part.low
        if whole.value is not None and part.value is not None:
            assert whole.value <= part.value


@settings(deadline=None)
@given(rows(), CONVENTIONS)
def test_each_rung_of_the_ladder_is_at_most_the_one_before(row: EpisodeScores, convention: Convention) -> None:
    steps = [mark(row, metric, convention) for metric in LADDER]
    for easier, stricter in itertools.pairwise(steps):
        assert stricter.low <= easier.low
        assert stricter.high <= easier.high


@settings(deadline=None)
@given(st.lists(rows(), min_size=1, max_size=8), st.data(), st.lists(rows(), min_size=1, max_size=8))
def test_being_caught_raises_no_mean_and_no_rank(
    episodes: list[EpisodeScores], data: st.DataObject, others: list[EpisodeScores]
) -> None:
    """Whatever the caught episode's other scores, and whatever was known of its monitor before."""
    place = data.draw(st.integers(0, len(episodes) - 1))
    caught = list(episodes)
    caught[place] = episodes[place].evolve(monitor=0.0)
    for metric in Metric:
        before, after = estimate(episodes, metric), estimate(caught, metric)
        assert after.n == before.n
        assert after.low is not None
        assert before.low is not None
        assert after.low <= before.low
        assert (after.high or 0.0) <= (before.high or 0.0)
        assert (after.mean or 0.0) <= (before.mean or 0.0) + 1e-12
    rival = rank_key(estimate(others, RANKED_BY))
    if rival <= rank_key(estimate(episodes, RANKED_BY)):
        assert rival <= rank_key(estimate(caught, RANKED_BY))


@settings(deadline=None)
@given(st.lists(rows(), min_size=1, max_size=8), st.lists(rows(), min_size=1, max_size=8))
def test_with_equal_lower_bounds_the_rank_follows_the_known_mean(
    one: list[EpisodeScores], other: list[EpisodeScores]
) -> None:
    a, b = estimate(one, RANKED_BY), estimate(other, RANKED_BY)
    if a.low == b.low and a.high != b.high:
        first, second = (a, b) if rank_key(a) < rank_key(b) else (b, a)
        assert (first.mean or 0.0) >= (second.mean or 0.0) - 1e-12


@settings(deadline=None)
@given(
    rows(),
    st.sampled_from(["monitor", "design", "implementation", "execution", "conclusion"]),
    st.sampled_from(Metric),
    CONVENTIONS,
)
def test_forgetting_only_widens(row: EpisodeScores, field: str, metric: Metric, convention: Convention) -> None:
    if field == "monitor" and convention is Convention.STRICT and row.monitor == 0.0:
        return  # what is not known to be caught counts as it is
    forgotten = {field: None} | ({f"{field}_bounds": (0.0, 1.0)} if field in {"design", "implementation"} else {})
    before, after = mark(row, metric, convention), mark(row.evolve(**forgotten), metric, convention)
    assert after.low <= before.low
    assert before.high <= after.high
    if after.value is not None:
        assert after.value == before.value


@settings(deadline=None)
@given(st.lists(rows(), max_size=12), st.sampled_from(Metric), st.randoms(use_true_random=False))
def test_the_order_of_episodes_changes_nothing(
    episodes: list[EpisodeScores], metric: Metric, rng: random.Random
) -> None:
    shuffled = list(episodes)
    rng.shuffle(shuffled)
    for convention in Convention:
        assert estimate(episodes, metric, convention) == estimate(shuffled, metric, convention)
    assert stability(episodes, metric) == stability(shuffled, metric)
    assert repeat_spread(episodes, metric) == repeat_spread(shuffled, metric)
    assert pass_rates(episodes, metric, 2) == pass_rates(shuffled, metric, 2)


@settings(deadline=None)
@given(st.lists(rows(), min_size=1, max_size=12), st.sampled_from(Metric), CONVENTIONS)
def test_bounds_of_a_mean_contain_it_when_nothing_is_unknown(
    episodes: list[EpisodeScores], metric: Metric, convention: Convention
) -> None:
    found = estimate(episodes, metric, convention)
    if found.n:
        assert found.low is not None
        assert found.high is not None
        assert 0 <= found.low <= found.high <= 1 + 1e-12
    if found.n and not found.unknown:
        assert found.low == found.mean == found.high
    # of an indicator nothing is known where it is unknown, so its bounds contain the mean in any case
    if metric in FULL_MARKS and found.mean is not None and found.low is not None and found.high is not None:
        assert found.low - 1e-12 <= found.mean <= found.high + 1e-12


@settings(deadline=None)
@given(st.lists(rows(), min_size=1, max_size=12))
def test_a_metric_of_the_checked_is_never_over_more_than_the_others(episodes: list[EpisodeScores]) -> None:
    for metric in CHECKED_ONLY:
        assert estimate(episodes, metric, Convention.PAPER).n <= estimate(episodes, metric).n == len(episodes)


@settings(deadline=None)
@given(st.integers(1, 30).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_rates_lie_around_the_share(counts: tuple[int, int, int]) -> None:
    n, passed, k = counts
    assert pass_hat_k(n, passed, k) - 1e-12 <= passed / n <= pass_at_k(n, passed, k) + 1e-12
    assert pass_at_k(n, passed, 1) == pytest.approx(passed / n)
    assert pass_hat_k(n, passed, k) * comb(n, k) == pytest.approx(comb(passed, k))
