from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from evaluation.agents.oracle import _name
from evaluation.judges.conclusion import MEANING, RELATIONS, judge_conclusion
from evaluation.judges.lookup import look_up
from evaluation.judges.naming import tokens_of
from evaluation.submission import Conclusion, Response
from pipeline.task import Band, Condition, Expected, ExperimentTruth, NumericClaim, Verdict

Named = dict[str, str]


def _claim(number: int, metric: str, value: float, unit: str | None = None, **conditions: str) -> NumericClaim:
    names = {"setting": "Training points n", "b": "β"}
    return NumericClaim(
        id=f"c{number}", metric=metric, value=value, text=f"{value:.1f}", decimals=1, unit=unit,
        conditions=tuple(Condition(name=names.get(name, name), value=text) for name, text in conditions.items()),
        band=Band(low=value - 0.05, high=value + 0.05, source="printed precision"),
    )  # fmt: skip


NOISE = [
    _claim(number, "test accuracy", 60.0 + number, "%", p=rate, Method=method)
    for number, (method, rate) in enumerate(
        [(m, p) for m in ("Plain", "Trimming", "CAW (ours)") for p in ("0", "20", "40")], 1
    )
]
"""CAW above Trimming above Plain at every p; accuracy rises with p."""
TRUTH = ExperimentTruth(
    expected=Expected(
        text="CAW is highest throughout.", claims=tuple(NOISE), comparisons=(("c9", ">", "c6"), ("c7", ">", "c1"))
    )
)
VARIANTS = [
    _claim(number, metric, 10.0 + number, None, Variant=variant, b=b)
    for number, (variant, b, metric) in enumerate(
        [(v, b, m)
         for v in ("NSC (full)", "in-sample residuals", "no shrinkage (γ = 0)", "root mean square", "k = 5", "k = 100")
         for b in ("0", "1", "2") for m in ("coverage", "worst-fifth coverage", "Width")], 1
    )
]  # fmt: skip
_SHORT = {
    "NSC (full)": "full", "in-sample residuals": "insample", "no shrinkage (γ = 0)": "noshrink", "root mean square": "rms",
    "k = 5": "k5", "k = 100": "k100", "coverage": "cov", "worst-fifth coverage": "worst_cov", "Width": "width",
}  # fmt: skip


def _of(claim: NumericClaim) -> Named:
    return {"metric": claim.metric} | {c.name: c.value for c in claim.conditions}


@pytest.mark.parametrize(
    ("claims", "spell"),
    [
        (NOISE, lambda n: f"accuracy of {n['Method']} with p = {n['p']} %"),
        (NOISE, lambda n: f"{n['Method'].split()[0].lower()}_p{n['p']}"),
        (NOISE, lambda n: f"acc[{n['Method'].split()[0]}][{n['p']}]"),
        (NOISE, lambda n: f"{n['Method'].split()[0]} @ p={int(n['p']) / 100}"),
        (NOISE, lambda n: f"{n['Method'].split()[0].lower()}P{n['p']}TestAccuracy"),
        (NOISE, lambda n: f"test_accuracy / {n['Method'].replace('Trimming', 'trimmed')} / {n['p']}"),
        (VARIANTS, lambda n: f"{_SHORT[n['Variant']]}_beta{n['β']}_{_SHORT[n['metric']]}"),
        (VARIANTS, lambda n: f"{n['metric']}, {n['Variant']}, β = {n['β']}.0"),
        (VARIANTS, lambda n: f"nsc {_SHORT[n['Variant']]} {_SHORT[n['metric']]} b={n['β']}".replace("nsc full", "nsc")),
    ],
)
def test_numbers_are_found_under_the_names_people_use(
    claims: list[NumericClaim], spell: Callable[[Named], str]
) -> None:
    names = {spell(_of(claim)): claim.value for claim in claims}
    assert len(names) == len(claims)
    found = look_up(claims, names)
    assert {claim: given.name for claim, given in found.items()} == {c.id: spell(_of(c)) for c in claims}


def test_each_number_has_a_name_of_its_own() -> None:
    plain = {f"{_of(c)['Method'].split()[0]} p={_of(c)['p']}": c.value for c in NOISE}
    spread = {f"{name} std": 1.0 for name in plain}
    assert {given.value for given in look_up(NOISE, plain | spread).values()} == set(plain.values())
    assert look_up(NOISE, spread) == {}, "a spread is no mean"
    seeds = {f"{name} accuracy seed {seed}": 5.0 for name in plain for seed in (1, 2)}
    assert {given.value for given in look_up(NOISE, plain | seeds).values()} == set(plain.values())
    gains = {f"gain of CAW over {m} p={p}": 9.0 for m in ("Plain", "Trimming") for p in (0, 20, 40)}
    assert look_up(NOISE, gains) == {}, "a difference is none of the two"
    assert look_up(NOISE, {"Plain p=20 seed 1": 1.0, "Plain p=20 seed 2": 2.0}) == {}, "which of them?"
    assert look_up(NOISE, {"Plain": 64.0}) == {}, "an average over p"


def test_a_name_that_fits_in_part_cannot_contradict() -> None:
    (claim,) = NOISE[:1]
    truth = ExperimentTruth(expected=Expected(text="It is so.", claims=(claim,)))
    for name, verdict in (("loss", Verdict.UNKNOWN), ("accuracy", Verdict.FAIL)):
        items = judge_conclusion(truth, Response(conclusion=Conclusion(numbers={name: 3.0})))
        assert items[-1].verdict is verdict


def test_scale_is_settled_once_for_a_metric() -> None:
    shares = {_name(claim): claim.value / 100 for claim in NOISE}
    assert {claim.id: look_up(NOISE, shares)[claim.id].value for claim in NOISE} == pytest.approx(
        {claim.id: claim.value for claim in NOISE}
    )
    one = {**{_name(claim): claim.value for claim in NOISE}, _name(NOISE[0]): NOISE[0].value / 100}
    assert look_up(NOISE, one)["c1"].value == pytest.approx(0.61), "one fraction among percents is another number"
    (factor,) = [_claim(1, "blowup", 50.0)]
    assert look_up([factor], {"blowup": 0.5})["c1"].value == 0.5, "no share"


def test_words_and_numbers_of_names() -> None:
    found = tokens_of("rings_cawN200/testAcc[β=-0.3]@k5, Crème")
    assert [token.text for token in found] == [
        "rings", "caw", "n", "200", "test", "acc", "beta", "0.3", "k", "5", "creme",
    ]  # fmt: skip
    assert [token.number for token in found if token.number is not None] == [200.0, -0.3, 5.0]


NUMBERS = {_name(claim): claim.value for claim in NOISE}


def _judged(text: str = "", numbers: dict[str, float] | None = None) -> dict[str, Verdict]:
    items = judge_conclusion(TRUTH, Response(conclusion=Conclusion(text=text, numbers=numbers or {})))
    return {item.item: item.verdict for item in items}


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("CAW has the highest test accuracy at p = 40.", Verdict.PASS),
        ("Trimming has the highest test accuracy at p = 40.", Verdict.FAIL),
        ("At p = 20, CAW is higher than Trimming and Plain.", Verdict.PASS),
        ("At p = 20, Plain is higher than CAW.", Verdict.FAIL),
        ("Trimming is lower than CAW.", Verdict.PASS),
        ("Accuracy is higher at p = 40 than at p = 0 for Plain.", Verdict.PASS),
        ("Accuracy of Plain is lower at p = 40 than at p = 0.", Verdict.FAIL),
        ("Accuracy falls as p grows.", Verdict.FAIL),
        ("Accuracy falls as p decreases.", Verdict.PASS),
        ("At p = 40, CAW reaches 69.0%.", Verdict.PASS),
        ("At p = 40, CAW reaches 68.0%.", Verdict.FAIL),
        ("At p = 40, CAW reaches 69% and Plain reaches 63%.", Verdict.PASS),
        ("At p = 40, CAW reaches 63% and Plain reaches 69%.", Verdict.FAIL),
        ("CAW and Plain are equal at p = 20.", Verdict.FAIL),
        ("There is no difference between CAW and Plain.", Verdict.UNKNOWN),
        ("CAW is highest throughout.", Verdict.PASS),
        # what good is, negations, exceptions, hedges, causes: only a reader can tell
        ("CAW outperforms Plain at p = 40.", Verdict.UNKNOWN),
        ("CAW is not higher than Plain.", Verdict.UNKNOWN),
        ("Plain does not fall below CAW.", Verdict.UNKNOWN),
        ("Trimming has the highest accuracy apart from CAW.", Verdict.UNKNOWN),
        ("CAW may be higher than Plain.", Verdict.UNKNOWN),
        ("CAW is higher than Plain because of its weights.", Verdict.UNKNOWN),
        ("CAW is higher than Plain. I do not know about the others.", Verdict.UNKNOWN),
        ("CAW is higher than Plain. Trimming is higher than CAW.", Verdict.FAIL),
        ("Is CAW higher than Plain?", Verdict.UNKNOWN),
    ],
)
def test_words(text: str, verdict: Verdict) -> None:
    assert _judged(text, NUMBERS)[MEANING] is verdict


def test_a_conclusion_is_its_numbers_where_it_has_no_words() -> None:
    assert set(_judged("", NUMBERS).values()) == {Verdict.PASS}
    assert _judged(" - ", NUMBERS)[MEANING] is Verdict.PASS, "a dash is no sentence"
    assert _judged("", dict(list(NUMBERS.items())[:3]))[MEANING] is Verdict.UNKNOWN


def test_no_answer_fails_and_the_ground_truth_passes() -> None:
    assert set(_judged("").values()) == {Verdict.FAIL}
    assert {item.verdict for item in judge_conclusion(TRUTH, None)} == {Verdict.FAIL}
    assert set(_judged(TRUTH.expected.text, NUMBERS).values()) == {Verdict.PASS}


def test_a_wrong_number_fails_alone_and_a_missing_one_is_unknown() -> None:
    found = _judged("", {**NUMBERS, _name(NOISE[3]): 91.5})
    assert [item for item, verdict in found.items() if verdict is Verdict.FAIL] == ["conclusion:c4"]
    missing = _judged("", {name: value for name, value in NUMBERS.items() if "Trimming" not in name})
    assert {missing[f"conclusion:c{n}"] for n in (4, 5, 6)} == {Verdict.UNKNOWN}


def test_relations_hold_among_the_reported_numbers() -> None:
    assert _judged("", NUMBERS)[RELATIONS] is Verdict.PASS
    assert _judged("", {**NUMBERS, _name(NOISE[8]): 1.0})[RELATIONS] is Verdict.FAIL
    missing = {name: value for name, value in NUMBERS.items() if name != _name(NOISE[8])}
    assert _judged("", missing)[RELATIONS] is Verdict.UNKNOWN


@pytest.mark.parametrize(("second", "verdict"), [(0.503, Verdict.PASS), (0.9, Verdict.FAIL)])
def test_an_expected_tie_is_kept_by_numbers_that_tie(second: float, verdict: Verdict) -> None:
    """Equality held whatever was reported, and confirmed the conclusion."""
    claims = tuple(_claim(n, "accuracy", 0.5, m=name) for n, name in enumerate(("alpha", "bravo"), 1))
    truth = ExperimentTruth(expected=Expected(text="They tie.", claims=claims, comparisons=(("c1", "=", "c2"),)))
    items = judge_conclusion(truth, Response(conclusion=Conclusion(numbers={"alpha": 0.5, "bravo": second})))
    assert next(item.verdict for item in items if item.item == RELATIONS) is verdict


def test_order_has_no_say() -> None:
    items = list(NUMBERS.items())
    for seed in range(10):
        random.Random(seed).shuffle(items)
        assert set(_judged("", dict(items)).values()) == {Verdict.PASS}


def test_an_outcome_told_in_words_alone_is_for_a_reader() -> None:
    truth = ExperimentTruth(expected=Expected(text="Depth helps."))
    for text, verdict in (("Depth helps.", Verdict.PASS), ("Depth does not help.", Verdict.UNKNOWN)):
        (item,) = judge_conclusion(truth, Response(conclusion=Conclusion(text=text)))
        assert item.verdict is verdict
