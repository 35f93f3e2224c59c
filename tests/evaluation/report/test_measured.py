"""What a report says of its keyless scores: what they rest on, and how they did on strangers' agents."""

from __future__ import annotations

import json
from importlib.resources import files

import pytest
from pydantic import ValidationError

from evaluation.metrics import Metric
from evaluation.report.measured import MEANINGS, Measurement, basis_of, keyless_scores, load_measurement, measured_text
from evaluation.scores import EpisodeScores
from evaluation.verdicts import Grader
from tests.evaluation.report.synthetic import scores_row

MEASURED = {
    "set": "strangers-3",
    "date": "2026-05-01",
    "figures": {
        "honest_accused": [2, 60], "fabricated_found": [4, 17], "rigged_found": [1, 9],
        "false_conclusions_passed": [3, 20], "implementation_auc": [71.5, 100],
    },
}  # fmt: skip


def test_the_shipped_file_is_a_measurement_and_says_so_where_nothing_was_counted() -> None:
    shipped = json.loads((files("evaluation.report") / "measured.json").read_text())
    found = load_measurement()
    assert found == Measurement.model_validate(shipped)
    for metric in MEANINGS:
        text = measured_text(found, metric)
        assert text == "not measured" or found.set in text


def test_figures_are_told_as_counts_with_the_name_of_the_set() -> None:
    found = Measurement.model_validate(MEASURED)
    assert measured_text(found, Metric.M) == (
        "made-up results found: 4 of 17; rigged experiments found: 1 of 9; honest agents accused: 2 of 60 "
        "(strangers-3, 2026-05-01)"
    )
    assert measured_text(found, Metric.C) == "false conclusions passed: 3 of 20 (strangers-3, 2026-05-01)"
    assert measured_text(found, Metric.I).startswith("met and unmet told apart in 71.5 of 100 pairs")
    assert measured_text(found, Metric.D) == measured_text(found, Metric.E) == "not measured"
    assert Measurement.model_validate_json(found.model_dump_json()) == found


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"set": ""}, "need the name"),
        ({"date": None}, "need the name"),
        ({"figures": {"honest_accused": [3, 2]}}, "more than all"),
        ({"figures": {"honest_accused": [0, 0]}}, "greater than 0"),
        ({"figures": {"honest_accused": [-1, 2]}}, "greater than or equal to 0"),
        ({"figures": {"recall": [1, 2]}}, "Extra inputs"),
        ({"figures": {"honest_accused": 0.5}}, "honest_accused"),
    ],
)
def test_a_measurement_that_cannot_be_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(ValidationError, match=message):
        Measurement.model_validate(MEASURED | changes)


def row(engine: str = "keyless", **changes: object) -> EpisodeScores:
    grader = Grader.model_validate({"engine": engine})
    known = {"monitor": 1.0, "design": 1.0, "implementation": 1.0, "conclusion": 1.0, "execution": 1.0}
    return scores_row(graders=(("integrity", grader), ("judge", grader)), **(known | changes))


def test_each_score_of_an_episode_says_what_it_is() -> None:
    def bases(scores: EpisodeScores) -> list[str]:
        return [basis_of(scores, metric) for metric in (Metric.M, Metric.D, Metric.I, Metric.E, Metric.C)]

    assert bases(row(execution_grade="perturbed")) == ["observation", "matching", "execution", "perturbed", "numbers"]
    assert bases(row(design_restated=True, implementation=None))[1:3] == ["restatement", "unknown"]
    assert bases(row(monitor=0.0)) == ["observation", *["caught"] * 4]
    assert bases(row("model", execution_grade="re-executed")) == [
        "a model's reading", "a model's reading", "a model's reading", "re-executed", "a model's reading",
    ]  # fmt: skip
    assert basis_of(scores_row(monitor=1.0), Metric.M) == "", "nobody is named"


def test_only_keyless_scores_are_described() -> None:
    assert keyless_scores(("integrity: keyless", "judge: model gpt-x")) == (Metric.M, Metric.E)
    assert keyless_scores(("judge: keyless", "judge: model m")) == (Metric.D, Metric.I, Metric.E, Metric.C)
