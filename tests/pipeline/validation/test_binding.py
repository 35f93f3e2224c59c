"""Claims are bound by names that are spelled alike or by values beyond chance; whatever else a run prints changes nothing."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.paper import Box
from pipeline.task import NumericClaim, TableEvidence, Verdict
from pipeline.validation.binding import Bound, bind_claims, unbound
from pipeline.validation.observation import Observation
from pipeline.validation.outcome import match_claims
from pipeline.validation.outputs import read_file
from pipeline.validation.text_output import observe_text
from tests.pipeline.validation.support import claim

METHODS, PROBLEMS = ("ours", "sgd", "adam", "rprop"), ("moons", "rings", "spirals")


def seen(text: str, source: str = "stdout") -> list[Observation]:
    return list(observe_text(text, source))


def places(claims: list[NumericClaim], text: str) -> list[str | None]:
    """Where each claim is bound."""
    found = bind_claims(claims, seen(text))
    return [bound.place if isinstance(bound, Bound) else None for bound in (found[item.id] for item in claims)]


def reason(claims: list[NumericClaim], text: str) -> str:
    """Why the first claim is not bound."""
    found = bind_claims(claims, seen(text))[claims[0].id]
    assert isinstance(found, str)
    return found


def named(text: str, metric: str = "accuracy", **conditions: str) -> bool:
    """Is the text's `0.91` taken for the metric under the conditions?"""
    (match,) = match_claims([claim("c", metric, "0.91", **conditions)], [seen(text)])
    return match.observed == (0.91,)


# --- names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("test accuracy", "Test_Accuracy: 0.91\n"),
        ("Accuracy (%)", "accuracy %: 0.91\n"),
    ],
)
def test_case_spaces_and_signs_are_no_part_of_a_name(metric: str, text: str) -> None:
    (place,) = places([claim("c", metric, "0.91")], text)
    assert place is not None


@pytest.mark.parametrize(
    ("metric", "text"),
    [
        ("accuracy", "acc: 0.91\n"),
        ("accuracy", "accuracy drop: 0.91\n"),
        ("accuracy", "test accuracy: 0.91\n"),
        ("accuracy gap", "accuracy: 0.91\n"),
        ("perplexity", "accuracy: 0.91\n"),
        ("accuracy", "0.91\n"),
    ],
)
def test_another_name_is_another_name(metric: str, text: str) -> None:
    assert not named(text, metric)


@pytest.mark.parametrize(
    "text",
    [
        "ours: accuracy 0.91\nsgd: accuracy 0.81\n",
        "ours accuracy: 0.91\nsgd accuracy: 0.81\n",
        "accuracy_ours = 0.91\naccuracy_sgd = 0.81\n",
        "method=ours accuracy=0.91\nmethod=sgd accuracy=0.81\n",
        "method  loss  accuracy\nours    0.333   0.91\nsgd     0.444   0.81\n",
        "Accuracy\nmethod   moons\nours     0.91\nsgd      0.81\n",
        "== ours ==\naccuracy: 0.91\n== sgd ==\naccuracy: 0.81\n",
        "method: ours\n  accuracy: 0.91\nmethod: sgd\n  accuracy: 0.81\n",
    ],
)
def test_forms_in_which_programs_name_a_number(text: str) -> None:
    claims = [claim("a", "accuracy", "0.91", method="ours"), claim("b", "accuracy", "0.81", method="sgd")]
    assert [match.observed for match in match_claims(claims, [seen(text)])] == [(0.91,), (0.81,)]


@pytest.mark.parametrize(
    ("text", "condition", "expected"),
    [
        ("n=500: accuracy 0.91\n", {"n": "500"}, True),
        ("n=500: accuracy 0.91\n", {"n": "300"}, False),
        ("size=50000 accuracy=0.91\n", {"size": "50,000"}, True),
        ("noise=0.30000000000000004 accuracy=0.91\n", {"noise": "0.3"}, True),
        ("noise=0.3001 accuracy=0.91\n", {"noise": "0.3"}, False),
        ("shift=-1 accuracy=0.91\n", {"shift": "1"}, False),
        ("Order 3: accuracy 0.91\n", {"order": "3"}, True),
        ("## Order 3\naccuracy: 0.91\n", {"order": "3"}, True),
    ],
)
def test_settings_are_compared_as_numbers(text: str, condition: dict[str, str], expected: bool) -> None:
    """The other claim makes the setting one that has to be named."""
    other = claim("o", "accuracy", "0.55", **dict.fromkeys(condition, "7"))
    found = bind_claims([claim("c", "accuracy", "0.91", **condition), other], seen(text))
    assert isinstance(found["c"], Bound) is expected


def test_a_setting_of_another_name_is_another_setting() -> None:
    text = "trial=3 n=500 rmse=0.25\ntrial=5 n=300 rmse=0.75\n"
    claims = [claim(n, "RMSE", value, n=n) for n, value in (("500", "0.25"), ("300", "0.75"), ("3", "0.25"))]
    assert places(claims, text) == ["stdout :: rmse :: 1", "stdout :: rmse :: 2", None]


def test_what_all_claims_share_need_not_be_named_but_must_not_be_denied() -> None:
    claims = [
        claim("a", "accuracy", "0.91", method="ours", problem="moons"),
        claim("b", "accuracy", "0.81", method="sgd", problem="moons"),
    ]
    assert None not in places(claims, "ours: accuracy 0.91\nsgd: accuracy 0.81\n")
    text = "method  problem  accuracy\nours    rings   0.91\nsgd     rings   0.81\n"
    assert places(claims, text) == [None, None]
    both = text + "ours    moons   0.92\nsgd     moons   0.82\n"
    assert [match.observed for match in match_claims(claims, [seen(both)])] == [(0.92,), (0.82,)]


def test_numbers_that_nothing_calls_by_the_metric_have_to_agree_to_be_it() -> None:
    claims = [claim(name, "accuracy", value, method=name) for name, value in (("ours", "0.91"), ("sgd", "0.81"))]
    found = match_claims(claims, [seen("ours: 0.91\nsgd: 0.82\n")])
    assert [match.verdict for match in found] == [Verdict.UNKNOWN] * 2  # another metric, as far as anyone can tell
    claims.append(claim("adam", "accuracy", "0.77", method="adam"))
    found = match_claims(claims, [seen("ours: 0.91\nsgd: 0.82\nadam: 0.77\n")])
    assert [match.verdict for match in found] == [Verdict.PASS, Verdict.FAIL, Verdict.PASS]


def test_several_numbers_of_one_name_are_ambiguous() -> None:
    items = [claim("c", "accuracy", "0.85")]
    text = "left: accuracy 0.85\nright: accuracy 0.75\n"
    assert places(items, text) == [None]
    assert reason(items, text).startswith("2 numbers of the run are named like it (stdout:1, stdout:2): ambiguous")
    # one whose labels say the name and nothing else is it
    assert places(items, text + "accuracy: 0.85\n") == ["stdout :: accuracy :: 1"]


def test_the_same_number_on_screen_and_in_a_file_is_one_and_the_finer_counts() -> None:
    numbers = seen("accuracy: 0.87\n") + seen("accuracy: 0.8749\n", "log")
    item = claim("c", "accuracy", "0.875")
    assert bind_claims([item], numbers)["c"] == Bound("log :: accuracy :: 1", 1.0)
    apart = seen("accuracy: 0.87\n") + seen("accuracy: 0.8761\n", "log")
    assert isinstance(bind_claims([item], apart)["c"], str)


def test_two_claims_of_one_number_tell_of_each_other() -> None:
    claims = [claim("a", "accuracy", "0.87", method="ours"), claim("b", "accuracy", "0.80", problem="moons")]
    text = "method  problem  accuracy\nours    moons    0.87\n"
    assert places(claims, text) == [None, None]
    assert reason(claims, text) == "stdout:2, column accuracy is named like a and b: ambiguous"
    # a number that bears more names of the one is not the other's
    claims = [claim("a", "accuracy", "0.87", method="ours"), claim("b", "accuracy", "0.80")]
    assert places(claims, "ours: accuracy 0.87\n") == ["stdout :: ours / accuracy :: 1", None]


def test_the_same_claim_stated_twice_is_no_rival_of_itself() -> None:
    claims = [
        claim("a", "accuracy", "0.87", method="ours", dataset="moons"),
        claim("b", "Accuracy", "0.87", dataset="moons", method="ours"),
    ]
    assert None not in places(claims, "dataset=moons method=ours accuracy=0.87\n")


def test_a_key_path_is_a_name(tmp_path: Path) -> None:
    path = tmp_path / "out.json"
    path.write_text(json.dumps({"ours": {"test": {"accuracy": 0.87, "loss": 0.4}}, "train": {"accuracy": 0.99}}))
    numbers, _ = read_file(path, "out.json")
    found = bind_claims([claim("c", "test accuracy", "0.87")], numbers)
    assert found["c"] == Bound("out.json :: ours / test / accuracy :: 1", 1.0)


# --- scales -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stated", "unit", "printed", "factor"),
    [
        ("87.3", "%", "accuracy: 0.873", 100.0),
        ("87.3", "%", "accuracy: 0.61", 100.0),  # whether it agrees or not
        ("87.3", "%", "accuracy: 61.0", 1.0),
        ("87.3", "%", "accuracy: 87.3%", 1.0),
        ("0.9", "%", "accuracy: 0.009", 100.0),
        ("100.0", "%", "accuracy: 1.000", 100.0),
        ("87.3", None, "accuracy: 87.3%", 1.0),
        ("0.873", None, "accuracy: 87.3%", 0.01),
        ("0.873", None, "accuracy (%): 61.3", 0.01),
        ("87.3", None, "accuracy: 61.3", 1.0),
    ],
)
def test_signs_and_sizes_tell_the_scale(stated: str, unit: str | None, printed: str, factor: float) -> None:
    found = bind_claims([claim("c", "accuracy", stated, unit=unit)], seen(printed))["c"]
    assert isinstance(found, Bound)
    assert found.factor == factor


def test_a_field_with_a_value_above_one_is_in_percent() -> None:
    """`0.5` beside `87.3` is half a percent, whatever the claim would like."""
    claims = [claim(name, "accuracy", value, unit="%", method=name) for name, value in (("a", "50.0"), ("b", "87.3"))]
    found = match_claims(claims, [seen("method  accuracy\na   0.50\nb   87.3\n")])
    assert [match.observed for match in found] == [(0.5,), (87.3,)]


def test_a_scale_that_nothing_tells_neither_passes_nor_contradicts() -> None:
    item = claim("c", "perplexity", "87.3")
    assert places([item], "perplexity: 0.873\n") == [None]
    assert "nothing tells whether it is in percent" in reason([item], "perplexity: 0.873\n")
    (wrong,) = match_claims([item], [seen("perplexity: 0.61\n")])
    assert wrong.verdict is Verdict.FAIL


# --- values -----------------------------------------------------------------------------------------------------------


def paper(rng: random.Random) -> tuple[list[NumericClaim], list[list[str]]]:
    """Claims under names of the paper's, and their numbers as they are printed."""
    values = [[f"{rng.uniform(50, 99.9):.2f}" for _ in PROBLEMS] for _ in METHODS]
    claims = [
        claim(f"c{i}-{j}", "test accuracy", values[i][j], unit="%", method=f"The {name}", data=f"{problem} set")
        for i, name in enumerate(METHODS)
        for j, problem in enumerate(PROBLEMS)
    ]
    return claims, values


def table(values: list[list[str]], fields: tuple[str, ...] = PROBLEMS) -> list[str]:
    lines = ["   ".join(["method", *fields])]
    return [*lines, *("   ".join([name, *row]) for name, row in zip(METHODS, values, strict=True))]


def test_a_table_under_other_names_is_found_by_its_numbers() -> None:
    claims, values = paper(random.Random(1))
    found = match_claims(claims, [seen("\n".join(table(values)))])
    assert {match.verdict for match in found} == {Verdict.PASS}
    assert found[0].place == "stdout :: ours / moons :: 1"


def test_a_cell_that_lies_there_and_differs_is_contradicted() -> None:
    claims, values = paper(random.Random(2))
    values[1][2] = "12.34"
    found = match_claims(claims, [seen("\n".join(table(values)))])
    assert [match.claim for match in found if match.verdict is Verdict.FAIL] == ["c1-2"]
    assert sum(match.verdict is Verdict.PASS for match in found) == 11


def test_columns_that_changed_places_are_not_the_papers() -> None:
    """All numbers are there, under each other's names: structure alone would take a turned table for the paper's."""
    claims, values = paper(random.Random(3))
    named_alike = [
        item.evolve(conditions=(item.conditions[0], item.conditions[1].evolve(value=PROBLEMS[n % 3])))
        for n, item in enumerate(claims)
    ]
    swapped = [[row[1], row[0], row[2]] for row in values]
    found = match_claims(named_alike, [seen("\n".join(table(swapped)))])
    assert [match.verdict for match in found if match.claim[-1] != "2"] == [Verdict.UNKNOWN] * 8
    assert "is named rings" in found[0].reason


def test_claims_of_a_papers_table_keep_its_rows_and_columns() -> None:
    claims, values = paper(random.Random(4))
    cells = [
        item.evolve(
            metric=f"m{n}",
            conditions=(),
            evidence=(
                TableEvidence(
                    label="Table 2", page=3, box=Box(0, 0, 1, 1), row=1 + n // 3, column=1 + n % 3, quote=item.text
                ),
            ),
        )
        for n, item in enumerate(claims)
    ]
    assert None not in places(cells, "\n".join(table(values)))
    # without them nothing says which numbers belong together
    assert None in places([item.evolve(evidence=()) for item in cells], "\n".join(table(values)))


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10**6), st.booleans())
def test_permuted_lines_renamed_streams_and_more_numbers_change_nothing(seed: int, spelled: bool) -> None:
    rng = random.Random(seed)
    claims, values = paper(rng)
    if spelled:
        claims = [
            claim(item.id, item.metric, item.text, unit="%", method=METHODS[n // 3], data=PROBLEMS[n % 3])
            for n, item in enumerate(claims)
        ]
    header, *rows = table(values)
    before = bind_claims(claims, seen("\n".join(["Test accuracy", header, *rows])))
    assert all(isinstance(bound, Bound) for bound in before.values())
    rng.shuffle(rows)
    words = ("width", "cost", "phase", "delta")
    more = [f"{rng.choice(words)} {n} = {rng.uniform(1, 9):.3f}" for n in range(30)]
    text = "\n".join([*more[:15], "", "Test accuracy", header, *rows, "", *more[15:]])
    after = bind_claims(claims, seen(text, "command 2 stdout"))
    assert {key: bound.place.partition(" :: ")[2] for key, bound in after.items() if isinstance(bound, Bound)} == {
        key: bound.place.partition(" :: ")[2] for key, bound in before.items() if isinstance(bound, Bound)
    }


# --- places -----------------------------------------------------------------------------------------------------------


def test_repeats_are_read_at_the_place_of_the_first_run() -> None:
    """The second run prints the claim's number elsewhere, under its name: what counts is what stands at the place."""
    item = claim("c", "accuracy", "0.91")
    runs = [seen("accuracy: 0.91\nother: 0.5\n"), seen("accuracy: 0.31\nother: 0.91\n")]
    (match,) = match_claims([item], runs)
    assert (match.verdict, match.observed) == (Verdict.UNKNOWN, (0.91, 0.31))
    assert (match.place, match.factor) == ("stdout :: accuracy :: 1", 1.0)


def test_a_claim_keeps_its_place_until_it_is_unbound() -> None:
    item = claim("c", "accuracy", "0.91").evolve(place="stdout :: other :: 1", factor=100.0)
    assert bind_claims([item], seen("accuracy: 0.91\n")) == {"c": Bound("stdout :: other :: 1", 100.0)}
    assert bind_claims(list(unbound([item])), seen("accuracy: 0.91\n")) == {"c": Bound("stdout :: accuracy :: 1", 1.0)}


def test_without_numbers_nothing_is_bound() -> None:
    assert isinstance(bind_claims([claim("c", "accuracy", "0.91")], [])["c"], str)
    assert bind_claims([], seen("accuracy: 0.91\n")) == {}
