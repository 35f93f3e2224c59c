from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.judges.calibration import Label, calibrate, cohen_kappa, f1_score, read_labels
from flows.cli import app
from pipeline.errors import ExpbenchError
from pipeline.task import Verdict

PAIRS = st.lists(st.tuples(st.sampled_from(["pass", "fail"]), st.sampled_from(["pass", "fail"])), max_size=30)


def _pairs(tp: int, fn: int, fp: int, tn: int) -> list[tuple[str, str]]:
    return [("pass", "pass")] * tp + [("pass", "fail")] * fn + [("fail", "pass")] * fp + [("fail", "fail")] * tn


def test_kappa_and_f1_of_a_known_table() -> None:
    # Cohen's worked example in every textbook: 20, 5, 10, 15 of 50 gives p_o = .7, p_e = .5, kappa = .4
    assert cohen_kappa(_pairs(20, 5, 10, 15)) == pytest.approx(0.4)
    precision, recall, f1 = f1_score(_pairs(20, 5, 10, 15))
    assert (precision, recall, f1) == (pytest.approx(20 / 30), pytest.approx(0.8), pytest.approx(40 / 55))


def test_kappa_without_a_choice_is_unknown() -> None:
    assert cohen_kappa([]) is None
    assert cohen_kappa(_pairs(3, 0, 0, 0)) is None
    assert f1_score([]) == (None, None, None)


@given(PAIRS)
def test_kappa_is_symmetric_and_bounded(pairs: list[tuple[str, str]]) -> None:
    kappa = cohen_kappa(pairs)
    assert kappa == cohen_kappa([(right, left) for left, right in pairs])
    assert kappa is None or -1.0 - 1e-9 <= kappa <= 1.0 + 1e-9


@given(PAIRS)
def test_perfect_judges_have_kappa_one(pairs: list[tuple[str, str]]) -> None:
    assert cohen_kappa([(left, left) for left, _ in pairs]) in {None, 1.0}


def _label(item: str, label: str, verdict: str | None = None, dimension: str = "design") -> Label:
    return Label.model_validate(
        {"episode": "t/0", "dimension": dimension, "item": item, "label": label, "verdict": verdict}
    )


def test_calibration_by_dimension_with_unknown_apart() -> None:
    labels = [
        _label("a", "pass", "pass"), _label("b", "fail", "unknown"), _label("c", "fail", "pass"),
        _label("requirement:1", "fail", dimension="implementation"), _label("gone", "pass", dimension="conclusion"),
    ]  # fmt: skip
    result = calibrate(labels, {"t/0": {("implementation", "requirement:1"): Verdict.FAIL}})
    design = result.dimensions["design"]
    assert (design.items, design.decided, design.accuracy, design.accuracy_decided) == (3, 2, pytest.approx(1 / 3), 0.5)
    assert design.confusion == {
        "pass": {"pass": 1, "fail": 0, "unknown": 0},
        "fail": {"pass": 1, "fail": 0, "unknown": 1},
    }
    assert result.dimensions["implementation"].accuracy == 1.0
    assert result.missing == ("t/0 conclusion gone",)
    assert result.overall.items == 4


@pytest.mark.parametrize(
    "text", ["", "{}\n", "no json\n", '{"episode": "t/0", "dimension": "taste", "label": "pass"}\n']
)
def test_bad_labels_are_refused_with_their_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    path.write_text(text)
    with pytest.raises(ExpbenchError, match="label"):
        read_labels(path)


def test_command_with_verdicts_beside_the_labels(tmp_path: Path) -> None:
    path = tmp_path / "labels.jsonl"
    rows = [("a", "pass", "pass"), ("b", "fail", "fail"), ("c", "pass", "fail")]
    path.write_text("".join(_label(*row).model_dump_json() + "\n" for row in rows))
    result = CliRunner().invoke(app, ["judge", "--calibrate", str(path), "--json"])
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found["overall"]["accuracy"] == pytest.approx(2 / 3)
    shown = CliRunner().invoke(app, ["judge", "--calibrate", str(path)])
    assert "kappa" in shown.stdout


def test_command_without_anything_says_what_is_missing() -> None:
    result = CliRunner().invoke(app, ["judge"])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.exit_code == 2
