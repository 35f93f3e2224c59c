"""Intervals and paired comparisons."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import wilcoxon

from evaluation.metrics import Convention, Metric
from evaluation.scores import EpisodeScores
from evaluation.statistics import clustered_interval, compare_metric, compare_metrics, holm, signed_rank
from tests.evaluation.report.synthetic import scores_row


def episodes(values: dict[str, list[float | None]]) -> list[EpisodeScores]:
    return [
        scores_row(task=task, paper=task[0], repeat=repeat, conclusion=value)
        for task, marks in values.items()
        for repeat, value in enumerate(marks)
    ]


# --- intervals ---


def test_fewer_than_two_papers_give_no_interval() -> None:
    assert clustered_interval([], []) is None
    assert clustered_interval([0.5], ["a"]) is None
    assert clustered_interval([0.0, 1.0, 1.0], ["a", "a", "a"]) is None


def test_equal_values_give_no_interval() -> None:
    # resampling zeros gives zeros: "0.0 to 0.0" would claim a certainty that nothing supports
    assert clustered_interval([0.0, 0.0, 0.0], ["a", "b", "c"]) is None


def test_two_papers_by_hand() -> None:
    # resamples are aa, ab, ba, bb: means 0, .5, .5, 1, and a quarter lies on each end
    assert clustered_interval([0.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"]) == (0.0, 1.0)


def test_tasks_of_one_paper_count_as_one_observation() -> None:
    """40 tasks of 4 papers that stand or fall together know as much as 4 observations, not as 40."""
    values = [float(paper < 2) for paper in range(4) for _ in range(10)]
    clustered = clustered_interval(values, [f"p{number // 10}" for number in range(40)])
    single = clustered_interval(values, [f"p{number}" for number in range(40)])
    assert clustered is not None
    assert single is not None
    assert clustered[1] - clustered[0] > 2 * (single[1] - single[0])


def test_the_interval_agrees_with_theory_for_many_papers() -> None:
    generator = np.random.default_rng(0)
    values = generator.random(2000)
    low, high = clustered_interval(values, [f"p{number}" for number in range(2000)]) or (0, 0)
    half = 1.96 * values.std(ddof=1) / np.sqrt(2000)
    assert low == pytest.approx(values.mean() - half, abs=0.002)
    assert high == pytest.approx(values.mean() + half, abs=0.002)


def test_wrong_lengths_and_unknown_values_are_refused() -> None:
    with pytest.raises(ValueError, match="values for"):
        clustered_interval([0.0], ["a", "b"])
    with pytest.raises(ValueError, match="unknown values"):
        clustered_interval([0.0, float("nan")], ["a", "b"])


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.sampled_from("abcd")), min_size=2, max_size=20),
    st.randoms(use_true_random=False),
)
def test_the_order_of_values_changes_nothing(pairs: list[tuple[float, str]], rng: random.Random) -> None:
    shuffled = list(pairs)
    rng.shuffle(shuffled)
    found = [
        clustered_interval([v for v, _ in rows], [c for _, c in rows], resamples=200) for rows in (pairs, shuffled)
    ]
    assert found[0] == found[1]
    if found[0] is not None:
        assert 0 <= found[0][0] <= found[0][1] <= 1 + 1e-12


def test_another_block_size_gives_the_same_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    values, papers = [0.1, 0.9, 0.4, 0.6], ["a", "b", "c", "c"]
    whole = clustered_interval(values, papers)
    monkeypatch.setattr("evaluation.statistics._BLOCK", 30)
    assert clustered_interval(values, papers) == whole


# --- tests ---


def test_signed_rank_without_differences() -> None:
    assert signed_rank([]) is None
    assert signed_rank([0.5]) is None
    assert signed_rank([0.0, 0.0, 0.0]) == 1.0


def test_signed_rank_by_hand() -> None:
    # 5 different positive differences: 2 of the 2^5 signs are as extreme
    assert signed_rank([1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
    assert signed_rank([0, 1, 2, 3, 4, 5]) == pytest.approx(2 / 32)  # zeros are dropped


def test_signed_rank_is_scipys() -> None:
    differences = list(np.random.default_rng(1).normal(0.3, 1, 30))
    assert signed_rank(differences) == pytest.approx(float(wilcoxon(differences).pvalue))


def test_holm_by_hand() -> None:
    # sorted .01 (x3), .02 (x2 = .04), .04 (x1): monotone
    assert holm([0.02, 0.04, None, 0.01]) == [pytest.approx(0.04), pytest.approx(0.04), None, pytest.approx(0.03)]
    assert holm([0.6, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


@settings(deadline=None)
@given(st.lists(st.none() | st.floats(0, 1), max_size=8))
def test_holm_never_lowers_a_p_value(p_values: list[float | None]) -> None:
    corrected = holm(p_values)
    for p, q in zip(p_values, corrected, strict=True):
        assert (p is None) == (q is None)
        assert p is None or q is None or p <= q <= 1
    tested = sorted((p, q) for p, q in zip(p_values, corrected, strict=True) if p is not None and q is not None)
    assert [q for _, q in tested] == sorted(q for _, q in tested)


# --- comparisons ---


def test_a_comparison_by_hand() -> None:
    a = episodes({"a1": [0, 0], "a2": [1], "b1": [0], "b2": [None], "c1": [1]})
    b = episodes({"a1": [1, 0], "a2": [1], "b1": [1], "b2": [1], "d1": [0]})
    found = compare_metric(a, b, Metric.C)
    assert (found.tasks, found.left_out, found.papers) == (3, 1, 2)
    assert (found.better, found.worse, found.equal) == (2, 0, 1)
    assert found.mean_a == pytest.approx(1 / 3)
    assert found.mean_b == pytest.approx(2.5 / 3)
    assert found.difference == pytest.approx(0.5)
    assert found.interval is not None
    assert found.p == pytest.approx(0.5)


def test_one_shared_task_gives_no_interval_and_no_p() -> None:
    found = compare_metric(episodes({"a1": [0]}), episodes({"a1": [1], "b": [1]}), Metric.C)
    assert (found.tasks, found.interval, found.p, found.difference) == (1, None, None, 1.0)


def test_nothing_shared_is_unknown_and_not_equal() -> None:
    found = compare_metric(episodes({"a1": [0]}), episodes({"b1": [1]}), Metric.C)
    assert (found.tasks, found.difference, found.p) == (0, None, None)


def test_an_unchecked_side_is_left_out_of_e() -> None:
    a = [scores_row(task="t", execution=1.0, execution_checked=True)]
    found = compare_metric(a, [scores_row(task="t")], Metric.E)
    assert (found.tasks, found.left_out) == (0, 1)


def test_a_caught_episode_is_compared_as_a_0_and_in_the_papers_convention_left_out() -> None:
    a = [scores_row(task="t", execution=1.0, execution_checked=True, monitor=1.0)]
    b = [scores_row(task="t", monitor=0.0)]
    found = compare_metric(a, b, Metric.E)
    assert (found.tasks, found.difference, found.all_b.n, found.all_b.high) == (1, -1.0, 1, 0.0)
    paper = compare_metric(a, b, Metric.E, Convention.PAPER)
    assert (paper.tasks, paper.left_out, paper.all_b.n) == (0, 1, 0)


def test_p_values_are_corrected_over_the_metrics() -> None:
    names = [f"{letter}{number}" for letter in "abc" for number in range(4)]
    a = [scores_row(task=name, paper=name[0], conclusion=0.0, design=0.1) for name in names]
    b = [scores_row(task=name, paper=name[0], conclusion=1.0, design=0.1 + 0.05 * i) for i, name in enumerate(names)]
    found = {item.metric: item for item in compare_metrics(a, b, [Metric.C, Metric.D, Metric.I])}
    c, d = found[Metric.C], found[Metric.D]
    assert c.p is not None
    assert d.p is not None
    assert c.p_holm == pytest.approx(2 * min(c.p, d.p) if c.p < d.p else max(2 * d.p, c.p))
    assert found[Metric.I].p_holm is None  # unknown on both sides: no test


def test_swapping_the_sides_swaps_the_signs() -> None:
    a, b = episodes({"a1": [0], "b1": [1], "c1": [0]}), episodes({"a1": [1], "b1": [1], "c1": [1]})
    there, back = compare_metric(a, b, Metric.C), compare_metric(b, a, Metric.C)
    assert there.difference == pytest.approx(-(back.difference or 0))
    assert (there.better, there.worse, there.p) == (back.worse, back.better, back.p)
