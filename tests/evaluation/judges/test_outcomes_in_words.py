"""Outcomes that are told in words alone, as in published tasks: no claims, no values of variables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.judges.conclusion import judge_conclusion
from evaluation.judges.lexicon import cues_in
from evaluation.judges.propositions import read_propositions
from evaluation.judges.quantities import agreement, quantities_in
from evaluation.judges.told_tables import read_tables
from evaluation.judges.wording import turned_sentence
from evaluation.submission import Conclusion, Response
from pipeline.task import Expected, ExperimentTruth, Verdict

P, F, U = Verdict.PASS, Verdict.FAIL, Verdict.UNKNOWN


def judged(expected: str, said: str, numbers: dict[str, float] | None = None) -> Verdict:
    truth = ExperimentTruth(expected=Expected(text=expected))
    return judge_conclusion(truth, Response(conclusion=Conclusion(text=said, numbers=numbers or {})))[0].verdict


BETTER = "It is expected that Zephyr will significantly outperform Boreas on the Tides data set."
TREND = "It is expected that as the number of layers increases, the test error will decrease, but the improvement saturates at 8 layers."
PEAK = "Accuracy improves with more heads up to an optimal number of 6 heads, after which it drops slightly."
SAME = "There should be no significant difference in accuracy between Zephyr and Boreas."
RANKS = "Zephyr is expected to be the best method, followed by Boreas and then Notus."
FAILS = "Zephyr fails to converge when the learning rate exceeds 0.1."
POINTS = "Zephyr is expected to improve accuracy by about 3 points over Boreas."
RATIO = "Zephyr is expected to train about 6x faster than Boreas."
SHARE = "Zephyr is expected to reach an accuracy of around 95%."
BOUND = "Zephyr is expected to keep its accuracy above 90% under noise."
LOWER = "Zephyr has a lower test error than Boreas."
WITHOUT = "Removing attention hurts accuracy."
NEEDED = "Dropout is necessary for convergence."
ROBUST = "The proposed loss is robust to label noise."
HOLDS = "The gains hold across all seeds."
TABLE = "The results should look like this:\n\n| Method | Tides | Winds |\n|---|---|---|\n| Zephyr | 91.2 | 80.4 |\n| Boreas | 88.0 | 79.9 |\n"


@pytest.mark.parametrize(
    ("expected", "said", "verdict"),
    [
        (BETTER, "On Tides, Zephyr clearly beats Boreas.", P),
        (BETTER, "Boreas performs worse than Zephyr on Tides.", P),
        (BETTER, "Zephyr has a lower error than Boreas on the Tides data.", P),
        (BETTER, "Boreas outperforms Zephyr on Tides.", F),
        (BETTER, "Zephyr does not outperform Boreas on Tides.", F),
        (BETTER, "Zephyr and Boreas perform comparably on Tides.", F),
        (BETTER, "Zephyr has a higher error than Boreas on Tides.", F),
        (BETTER, "On Winds, Boreas outperforms Zephyr.", U),
        (BETTER, "The code was run three times.", U),
        (BETTER, "Zephyr needs more memory than Boreas.", U),
        (BETTER, "Boreas is outperformed by Zephyr on Tides.", P),
        (BETTER, "Zephyr was clearly surpassed by Boreas on Tides.", F),
        (BETTER, "Compared with Boreas, Zephyr performs better on Tides.", P),
        (BETTER, "Compared to Zephyr, Boreas performs better on Tides.", F),
        (BETTER, "On Tides, Zephyr no longer outperforms Boreas.", F),
        (BETTER, "Zephyr fails to outperform Boreas on Tides.", F),
        (BETTER, "Neither on Tides nor elsewhere does Zephyr outperform Boreas.", F),
        (BETTER, "It is not the case that Zephyr outperforms Boreas on Tides.", F),
        (BETTER, "The claim that Zephyr outperforms Boreas on Tides is false.", F),
        (BETTER, "Contrary to expectation, Boreas wins on Tides.", F),
        (BETTER, "Zephyr beats everything except Boreas on Tides.", F),
        (BETTER, "Boreas comes out ahead of Zephyr on Tides.", F),
        (BETTER, "Zephyr would outperform Boreas on Tides if it were trained longer.", U),
        (LOWER, "Boreas has a higher test error than Zephyr.", P),
        (LOWER, "Zephyr has a higher test error than Boreas.", F),
        (LOWER, "Boreas makes fewer errors than Zephyr.", F),
        (WITHOUT, "Accuracy suffers when attention is removed.", P),
        (WITHOUT, "Removing attention does not hurt accuracy.", F),
        (WITHOUT, "Accuracy improves when attention is removed.", F),
        (NEEDED, "Dropout is unnecessary for convergence.", F),
        (NEEDED, "Dropout is not necessary for convergence.", F),
        (ROBUST, "The proposed loss is sensitive to label noise.", F),
        (HOLDS, "The gains vanish across all seeds.", F),
        (TREND, "Test error drops with more layers and levels off at 8.", P),
        (TREND, "The test error falls when the number of layers grows, and the improvement saturates at 8 layers.", P),
        (TREND, "As layers increase, test error increases.", F),
        (TREND, "As the number of layers decreases, the test error decreases.", F),
        (TREND, "Adding layers reduces the test error and keeps improving it; it does not saturate.", F),
        (PEAK, "Accuracy peaks at 6 heads.", P),
        (PEAK, "Accuracy keeps improving with more heads and does not peak.", F),
        (SAME, "Zephyr and Boreas reach comparable accuracy.", P),
        (SAME, "Zephyr is significantly more accurate than Boreas.", F),
        (RANKS, "Zephyr > Boreas > Notus.", P),
        (RANKS, "Notus is the best method, followed by Boreas and then Zephyr.", F),
        (RANKS, "Boreas is worse than Notus.", F),
        (FAILS, "Zephyr fails to converge when the learning rate is larger than 0.1.", P),
        (FAILS, "Zephyr converges when the learning rate exceeds 0.1.", F),
        (POINTS, "Zephyr improves accuracy by 3.1 points over Boreas.", P),
        (POINTS, "Zephyr improves accuracy by 9 points over Boreas.", F),
        (RATIO, "Zephyr trains six times faster than Boreas.", P),
        (RATIO, "Zephyr trains twice as fast as Boreas, 2x faster.", F),
        (SHARE, "Zephyr reaches an accuracy of 0.947.", P),
        (SHARE, "Zephyr reaches an accuracy of 94.7 percent.", P),
        (SHARE, "Zephyr reaches an accuracy of 0.81.", F),
        (BOUND, "Zephyr keeps an accuracy of 93.5% under noise.", P),
        (BOUND, "Zephyr keeps an accuracy of 71% under noise.", F),
        (TABLE, "Zephyr reaches 91.0 on Tides.", U),
        (TABLE, "Zephyr reaches 61.0 on Tides.", F),
    ],
)  # fmt: skip
def test_kinds_of_outcomes(expected: str, said: str, verdict: Verdict) -> None:
    assert judged(expected, said) is verdict


def test_reported_numbers_are_held_against_a_table() -> None:
    right = {"Zephyr Tides": 91.2, "Zephyr Winds": 80.4, "Boreas Tides": 88.1}
    assert judged(TABLE, "See the numbers.", right) is P
    assert judged(TABLE, "See the numbers.", {**right, "Zephyr Winds": 45.0}) is F


def test_the_expected_words_do_not_hide_a_contradiction() -> None:
    assert judged(BETTER, BETTER) is P
    assert judged(BETTER, f"{BETTER} In fact, Boreas outperforms Zephyr on Tides.") is F
    assert judged("Successfully trained Zephyr.", "Unsuccessfully trained Zephyr.") is not P


LONG = "Zephyr achieves a higher accuracy than Boreas, and the gap grows with the number of layers up to 12 on Tides."


@pytest.mark.parametrize(
    ("said", "verdict"),
    [
        (LONG.replace("higher", "lower"), F),
        (LONG.replace("grows", "shrinks"), F),
        (LONG.replace("achieves", "fails to achieve"), F),
        (LONG.replace("achieves", "does not fail to achieve"), P),
        (LONG.replace("12", "48"), F),
        (LONG.replace("achieves", "will obtain").replace("higher", "clearly higher"), P),
        (LONG.replace("on Tides", "on Winds").replace("grows", "shrinks"), U),
    ],
)
def test_nearly_the_expected_words(said: str, verdict: Verdict) -> None:
    assert judged(LONG, said) is verdict


@given(st.sampled_from([BETTER, TREND, PEAK, SAME, RANKS, FAILS, POINTS, LOWER, WITHOUT, NEEDED, ROBUST, HOLDS, LONG]))
def test_the_same_reported_is_no_contradiction(text: str) -> None:
    reported = text.replace("is expected to be", "was").replace("is expected to ", "did ").replace("will ", "")
    assert turned_sentence(text, text) is None
    assert judged(text, f"We found: {reported}") is not F


NAMES = st.sampled_from(["Aquilo", "Boreas", "Notus-2", "LE-Vant", "Zephyr", "Eurus", "CAW", "T5x"])
BEATS = st.sampled_from(
    ["outperforms", "is better than", "surpasses", "performs better than", "beats", "is superior to"]
)
LOSES = st.sampled_from(["underperforms", "is worse than", "is inferior to", "performs worse than"])
UP = st.sampled_from(["increases", "rises", "grows", "improves", "goes up"])
DOWN = st.sampled_from(["decreases", "drops", "falls", "declines", "degrades", "goes down"])


@given(NAMES, NAMES, BEATS, BEATS, LOSES)
def test_sides_and_directions(one: str, two: str, wanted: str, used: str, lost: str) -> None:
    if one == two:
        return
    expected = f"{one} {wanted} {two}."
    assert judged(expected, f"{one} {used} {two}.") is P
    assert judged(expected, f"{two} {lost} {one}.") is P
    assert judged(expected, f"{two} {used} {one}.") is F
    assert judged(expected, f"{one} {lost} {two}.") is F
    assert judged(expected, f"{one} does not outperform {two}.") is F


@given(UP, UP, DOWN, st.sampled_from(["the budget", "the number of agents", "sequence length"]))
def test_trends(wanted: str, used: str, opposite: str, driver: str) -> None:
    expected = f"Accuracy {wanted} as {driver} increases."
    assert judged(expected, f"As {driver} grows, accuracy {used}.") is P
    assert judged(expected, f"When {driver} decreases, accuracy {opposite}.") is P
    assert judged(expected, f"As {driver} grows, accuracy {opposite}.") is F


@given(
    st.permutations(["Zephyr beats Boreas on Tides.", "Accuracy drops as noise increases.", "Notus is the slowest."])
)
def test_order_of_sentences_has_no_say(sentences: list[str]) -> None:
    expected = (
        "Zephyr outperforms Boreas on Tides. As noise increases, accuracy drops. Notus is slower than all others."
    )
    assert judged(expected, " ".join(sentences)) is P


@given(st.floats(0.05, 0.99), st.floats(1.3, 3.0))
def test_percent_is_a_fraction_and_another_number_is_another(share: float, factor: float) -> None:
    [percent], [fraction] = quantities_in(f"accuracy of {100 * share:.2f}%"), quantities_in(f"accuracy of {share:.4f}")
    assert agreement(percent, fraction) is True
    assert agreement(fraction, percent) is True
    [other] = quantities_in(f"accuracy of {100 * share * factor:.2f}%")
    assert agreement(percent, other) is False


@given(st.text(max_size=300))
def test_any_text_is_read(text: str) -> None:
    read_tables(text)
    for proposition in read_propositions(text):
        assert proposition.signs <= {-1, 0, 1}
        assert len(proposition.quote) <= 200
    assert all(text[cue.start : cue.end] == cue.text for cue in cues_in(text))


@given(st.lists(st.sampled_from(BETTER.split() + TREND.split() + PEAK.split() + RANKS.split()), max_size=25))
def test_a_text_never_contradicts_itself(found: list[str]) -> None:
    text = " ".join(found)
    assert not text or judged(text, text) is P


@pytest.mark.parametrize(
    ("text", "value"),
    [("a loss of 3.4 × 10^-5", 3.4e-5), ("a loss of 3.4×10⁻⁵", 3.4e-5), ("about 10^6 steps", 1e6), ("1.2 x 10^{-3} error", 1.2e-3)],
)  # fmt: skip
def test_powers_of_ten_are_one_number(text: str, value: float) -> None:
    """`3.4 × 10^-5` was read as a factor of 3.4 and the numbers 10 and -5."""
    assert [(quantity.low, quantity.unit) for quantity in quantities_in(text)] == [(pytest.approx(value), "")]


@pytest.mark.parametrize(
    "said",
    [
        "Zephyr outperforms Boreas. fig " + "1" * 400 + "x 5 points",
        "Zephyr outperforms Boreas. " + " " * 20_000 + "x",
        "Zephyr outperforms Boreas. " + "if " * 9_000,
        "Zephyr outperforms Boreas. " + "as the number of " * 1_800,
        "Zephyr outperforms Boreas. it" + " " * 20_000,
        "Zephyr outperforms Boreas. " + "a" * 29_000,
        "Zephyr outperforms Boreas. " + "note\n" * 5_000,
        "Zephyr outperforms Boreas. " + "improves " * 3_000,
    ],
    ids=["digits", "spaces", "ifs", "drivers", "frame", "word", "lines", "cues"],
)
def test_texts_that_patterns_find_hard_are_judged_all_the_same(said: str) -> None:
    """A number of 40 digits behind `fig` would have taken hours, 20,000 spaces minutes."""
    assert judged(BETTER, said) is P
