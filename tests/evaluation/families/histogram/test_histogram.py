"""The histogram family: formulas against values worked out by hand, edges, hostile files, the published tasks."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.families.histogram import (
    HistogramScore,
    HistogramTask,
    Provenance,
    load_histogram_task,
    parse_histogram,
    score_histogram,
    summarise,
)
from evaluation.families.histogram.metrics import normalisation_error, relative_l2, unit_area
from evaluation.families.histogram.reading import HistogramError
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind

PUBLISHED = Path(__file__).parents[5] / "shared" / "data" / "collider-bench" / "tasks"
EDGES = ((0.0, 1.0), (1.0, 2.0), (2.0, 4.0))
TRUTH = (3.0, 0.0, 4.0)


def document(values: Sequence[object], edges: Sequence[tuple[object, object]] = EDGES, name: str = "signal") -> str:
    bins = "".join(f"  - {{low: {low}, high: {high}}}\n" for low, high in edges)
    filled = "".join(f"  - {{value: {value}}}\n" for value in values)
    return (
        f"instructions: fill in\n---\ndependent_variables:\n- header: {{name: {name}}}\n  values:\n{filled}"
        f"independent_variables:\n- header: {{name: X, units: GEV}}\n  values:\n{bins}"
    )


def make_task(root: Path, mode: str = "shape_norm", truth: Sequence[object] = TRUTH) -> Path:
    directory = root / "tasks" / "secondary" / "t1"
    (directory / "template").mkdir(parents=True)
    (directory / "task.toml").write_text(f'[task]\nid = "t1"\npaper = "P-1"\n[metrics]\nmode = "{mode}"\n')
    (directory / "TASK.md").write_text("Predict it.")
    (directory / "template" / "h.yaml").write_text(document(["null"] * len(EDGES)))
    reference = root / "tasks" / "shared" / "P-1" / "reference" / "h.yaml"
    reference.parent.mkdir(parents=True)
    reference.write_text(document(truth).split("---\n")[1])
    return directory


def score(task: HistogramTask, root: Path, content: str | bytes | None, **options: object) -> HistogramScore:
    results = root / "workspace" / "results"
    results.mkdir(parents=True, exist_ok=True)
    if content is not None:
        (results / "h.yaml").write_bytes(content.encode() if isinstance(content, str) else content)
    return score_histogram(task, root / "workspace", **options)  # type: ignore[arg-type]


@pytest.fixture
def task(tmp_path: Path) -> HistogramTask:
    return load_histogram_task(make_task(tmp_path))


def test_a_task_is_read(task: HistogramTask) -> None:
    assert (task.id, task.paper, task.mode, task.file) == ("t1", "P-1", "shape_norm", "h.yaml")
    assert task.truth == TRUTH
    assert task.instructions == "Predict it."
    assert task.template.values == (None, None, None)


def test_scores_worked_out_by_hand(task: HistogramTask, tmp_path: Path) -> None:
    """y = (3, 2, 0), y* = (3, 0, 4): |y - y*| = sqrt(0 + 4 + 16), |y*| = 5; Y = 5, Y* = 7."""
    found = score(task, tmp_path, document([3, 2.0, "0e0"]), provenance=Provenance.PASSED)
    assert found.valid
    assert found.relative_l2 == found.distance == pytest.approx(math.sqrt(20) / 5)
    assert found.delta_norm == pytest.approx(2 / 7)
    difference = (3 / 5 - 3 / 7, 2 / 5, -4 / 7)
    assert found.shape_l2 == pytest.approx(math.hypot(*difference) / math.hypot(3 / 7, 4 / 7))
    assert (found.total, found.total_reference, found.filled, found.bins) == (5.0, 7.0, 3, 3)
    assert not found.accurate
    assert found.metrics()["acc_tau"] == 0.0


def test_a_normalisation_offset_leaves_the_shape(task: HistogramTask, tmp_path: Path) -> None:
    found = score(task, tmp_path, document([6, 0, 8]))
    assert (found.relative_l2, found.delta_norm, found.shape_l2) == (1.0, 1.0, 0.0)
    assert not found.accurate


def test_a_reference_of_some_bins_is_compared_by_edges_not_by_position(tmp_path: Path) -> None:
    """Two published references hold the last bins only; by position, a right prediction would score as a wrong one."""
    directory = make_task(tmp_path)
    reference = tmp_path / "tasks" / "shared" / "P-1" / "reference" / "h.yaml"
    reference.write_text(document([5, 2], (EDGES[2], EDGES[1])).split("---\n")[1])
    loaded = load_histogram_task(directory)
    assert loaded.scored == (2, 1)
    found = score(loaded, tmp_path, document([9, 2, 5]))
    assert (found.valid, found.distance, found.bins, found.filled, found.total) == (True, 0.0, 2, 3, 7.0)
    reference.write_text(document([5, 2], (EDGES[2], (7, 8))).split("---\n")[1])
    with pytest.raises(ExpbenchError):
        load_histogram_task(directory)


def test_the_threshold_is_strict(task: HistogramTask, tmp_path: Path) -> None:
    found = score(task, tmp_path, document([3, 0, 5]), tau=0.2)  # d = 1 / 5
    assert found.distance == pytest.approx(0.2)
    assert not score(task, tmp_path, document([3, 0, 5]), tau=found.distance).accurate
    assert score(task, tmp_path, document([3, 0, 5]), tau=math.nextafter(found.distance, 1)).accurate


@pytest.mark.parametrize(("mode", "metric"), [("shape", "shape_l2"), ("yield", "relative_l2")])
def test_the_mode_says_which_distance_counts(tmp_path: Path, mode: str, metric: str) -> None:
    loaded = load_histogram_task(make_task(tmp_path, mode))
    found = score(loaded, tmp_path, document([6, 0, 8]))
    assert found.distance == getattr(found, metric) == (0.0 if mode == "shape" else 1.0)
    other = "relative_l2" if mode == "shape" else "shape_l2"
    assert getattr(found, other) is None
    assert other not in found.metrics()


def test_an_empty_histogram_is_valid_and_scores_what_an_empty_file_does(task: HistogramTask, tmp_path: Path) -> None:
    found = score(task, tmp_path, document([0, 0, 0]), provenance=Provenance.PASSED)
    assert found.valid
    assert (found.relative_l2, found.shape_l2, found.delta_norm, found.accurate) == (1.0, 1.0, 1.0, False)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "no such file"),
        (document(["null", "null", "null"]), "all bins are null"),
        (document([1, "null", 2]), "1 of 3 bins are null"),
        (document([1, -0.5, 2]), "negative"),
        (document([1, ".nan", 2]), "no finite number"),
        (document([1, ".inf", 2]), "no finite number"),
        (document([1, "true", 2]), "no finite number"),
        (document([1, "many", 2]), "no finite number"),
        (document([1, "[2]", 2]), "no finite number"),
        (document([1, 2]), "2 value(s) for 3 bin(s)"),
        (document([1, 2, 3], ((0, 1), (1, 2), (2, 5))), "not those of the template"),
        (document([1, 2, 3, 4], (*EDGES, (4, 5))), "not those of the template"),
        (document([1, 2, 3], ((1, 0), (1, 2), (2, 4))), "increasing"),
        (document([1, 2, 3], name="other"), "no series 'signal'"),
        ("just text", "no document"),
        ("a: [", "not YAML"),
        ("dependent_variables: 3\n", "independent variable"),
        ("!!python/object/apply:os.system ['echo planted']", "not YAML"),
        (b"\xff\xfe", "not YAML"),
        (b"#" * (1 << 21), "larger than"),
        ("[" * 5000, "not YAML"),
        ("", "no document"),
    ],
)
def test_what_cannot_be_scored_failed_with_the_distance_of_nothing(
    task: HistogramTask, tmp_path: Path, content: str | bytes | None, reason: str
) -> None:
    found = score(task, tmp_path, content, provenance=Provenance.PASSED, tau=2.0)
    assert not found.valid
    assert reason in found.reason
    assert found.provenance is Provenance.FAILED
    assert found.counted
    assert (found.distance, found.relative_l2, found.shape_l2, found.delta_norm) == (1.0, 1.0, 1.0, 1.0)
    assert not found.accurate  # no numerical credit, whatever the threshold


def test_a_link_to_the_reference_is_not_followed(tmp_path: Path) -> None:
    directory = make_task(tmp_path)
    loaded = load_histogram_task(directory)
    results = tmp_path / "workspace" / "results"
    results.mkdir(parents=True)
    reference = tmp_path / "tasks" / "shared" / "P-1" / "reference"
    (results / "h.yaml").symlink_to(reference / "h.yaml")
    assert "symbolic link" in score_histogram(loaded, tmp_path / "workspace").reason
    (results / "h.yaml").unlink()
    results.rmdir()
    results.symlink_to(reference)
    assert "symbolic link" in score_histogram(loaded, tmp_path / "workspace").reason


def test_edges_that_went_through_a_program_are_the_same(task: HistogramTask, tmp_path: Path) -> None:
    assert score(task, tmp_path, document(TRUTH, ((0, 1), ("1.0000000000001", 2), (2.0, "4e0")))).distance == 0.0


def test_recovered_values_are_scored_in_the_place_of_the_file(task: HistogramTask, tmp_path: Path) -> None:
    found = score(task, tmp_path, None, recovered=[3, 0, 4], provenance=Provenance.PASSED)
    assert (found.valid, found.recovered, found.distance, found.accurate) == (True, True, 0.0, True)
    for wrong in ([1, 2], [1, 2, -3], [1, 2, math.inf]):
        with pytest.raises(ValueError, match="3 finite"):
            score(task, tmp_path, None, recovered=wrong)


def test_fabricated_runs_leave_the_means_and_failed_ones_stay(task: HistogramTask, tmp_path: Path) -> None:
    exact = score(task, tmp_path, document(TRUTH), provenance=Provenance.PASSED)
    made_up = score(task, tmp_path, document(TRUTH), provenance=Provenance.FABRICATED)
    failed = score(task, tmp_path, document(["null"] * 3))
    assert made_up.metrics()["relative_l2"] is None
    cell = summarise([exact, made_up, failed])[0]
    assert (cell.runs, cell.counted, cell.distance, cell.accuracy, cell.best) == (3, 2, 0.5, 0.5, 0.0)
    assert cell.distance_spread == pytest.approx(math.sqrt(0.5))
    assert cell.text == "0.50±0.71"
    assert (cell.provenance["fabricated"], cell.provenance["failed"], cell.provenance["passed"]) == (1, 1, 1)
    assert summarise([made_up])[0].text == "-"
    assert summarise([exact])[0].text == "0.00"


@pytest.mark.parametrize(
    "truth", [[0, 0, 0], [1, "null", 2], [1, -1, 2], [1, 2]], ids=["zero", "unfilled", "negative", "short"]
)
def test_a_reference_that_nothing_can_be_held_against_is_refused(tmp_path: Path, truth: list[object]) -> None:
    with pytest.raises(ExpbenchError) as caught:
        load_histogram_task(make_task(tmp_path, truth=truth))
    assert caught.value.kind is FailureKind.RECORD_INVALID


def test_a_broken_task_is_refused(tmp_path: Path) -> None:
    directory = make_task(tmp_path)
    for name, content in (("task.toml", "[task"), ("task.toml", "[task]\n"), ("template/other.yaml", "x: 1\n")):
        kept = (directory / "task.toml").read_text()
        (directory / name).write_text(content)
        with pytest.raises(ExpbenchError):
            load_histogram_task(directory)
        (directory / "task.toml").write_text(kept)
    with pytest.raises(ExpbenchError):
        load_histogram_task(tmp_path / "missing")


yields = st.lists(st.floats(0, 1e6) | st.just(0.0), min_size=1, max_size=8)


@given(yields, st.floats(1e-3, 1e3))
def test_the_algebra_of_the_distance(reference: list[float], factor: float) -> None:
    assume(math.fsum(reference) > 1e-3)
    assert relative_l2(reference, reference) == 0.0
    assert relative_l2([0.0] * len(reference), reference) == pytest.approx(1.0)
    scaled = [factor * value for value in reference]
    assert relative_l2(scaled, reference) == pytest.approx(abs(factor - 1), abs=1e-9)
    assert normalisation_error(scaled, reference) == pytest.approx(abs(factor - 1), abs=1e-9)
    mine, true = unit_area(scaled), unit_area(reference)
    assert mine is not None
    assert true is not None
    assert math.fsum(mine) == pytest.approx(1.0)
    assert relative_l2(mine, true) == pytest.approx(0.0, abs=1e-9)


@given(yields, st.data())
def test_a_distance_and_its_units(reference: list[float], data: st.DataObject) -> None:
    """Bins of events or of thousands of events: all three numbers are without dimension."""
    assume(max(reference) > 1e-3)
    predicted = data.draw(st.lists(st.floats(0, 1e6), min_size=len(reference), max_size=len(reference)))
    thousand = [value * 1000 for value in predicted], [value * 1000 for value in reference]
    assert relative_l2(*thousand) == pytest.approx(relative_l2(predicted, reference))
    assert normalisation_error(*thousand) == pytest.approx(normalisation_error(predicted, reference))


def test_enormous_and_tiny_yields_neither_overflow_nor_vanish() -> None:
    assert relative_l2([1e200, 0.0], [1.0, 0.0]) == pytest.approx(1e200)
    assert unit_area([1e308, 1e308]) == (0.5, 0.5)
    assert unit_area([5e-324, 5e-324]) == (0.5, 0.5)
    assert unit_area([0.0]) is None
    assert normalisation_error([1e308, 1e308], [1.0]) == math.inf
    assert relative_l2([1e-200], [2e-200]) == pytest.approx(0.5)


def test_a_series_is_chosen_by_its_name() -> None:
    text = document([1, 2, 3]).replace(
        "independent_variables:",
        "- header: {name: other}\n  values: [{value: 4}, {value: 5}, {value: 6}]\nindependent_variables:",
    )
    assert parse_histogram(text.encode(), "other").values == (4.0, 5.0, 6.0)
    assert parse_histogram(text.encode()).name == "signal"
    with pytest.raises(HistogramError):
        parse_histogram(text.encode(), "third")


def test_the_command(tmp_path: Path) -> None:
    directory = make_task(tmp_path)
    submission = tmp_path / "h.yaml"
    submission.write_text(document([3, 0, 5]))
    arguments = ["score", "histogram", "--task", str(directory), "--submission", str(submission), "--json"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    value = json.loads(result.stdout)
    assert value["distance"] == pytest.approx(0.2)
    assert value["accurate"] is True
    assert value["provenance"] == "unknown"
    refused = CliRunner().invoke(app, [*arguments, "--recovered", "1,2"])
    assert isinstance(refused.exception, ExpbenchError)
    assert refused.exception.kind is FailureKind.USAGE


@pytest.mark.skipif(not PUBLISHED.is_dir(), reason="the published tasks are not at hand")
def test_the_published_tasks_are_scored(tmp_path: Path) -> None:
    directories = sorted(path.parent for path in PUBLISHED.glob("*/task.toml"))
    assert len(directories) == 3
    for directory in directories:
        loaded = load_histogram_task(directory)
        untouched = score_histogram(loaded, directory / "template")
        assert (untouched.valid, untouched.distance) == (False, 1.0)
        reference = PUBLISHED / "shared" / loaded.paper / "reference"
        exact = score_histogram(loaded, reference)
        assert (exact.valid, exact.distance, exact.accurate) == (True, 0.0, True)
        total = json.loads(json.dumps(exact.total_reference))
        inclusive = parse_histogram((reference / loaded.file.replace("histogram_", "yield_")).read_bytes())
        assert inclusive.values[0] == pytest.approx(total, abs=0.011 * len(loaded.truth))
