"""Tables over runs: means and spreads, labels, consumption, the cost-accuracy front, overlays."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.episode import EpisodeState, Step
from evaluation.families.histogram import Provenance, load_histogram_task, score_histogram
from evaluation.families.histogram.grading import GradedHistogram
from evaluation.families.histogram.overlay import OverlaySeries, overlay_svg
from evaluation.families.histogram.tables import histogram_tables, read_rows
from evaluation.families.histogram.task import HistogramTask
from evaluation.harness.episode_runner import episode_folder
from evaluation.harness.run import RunRecord
from evaluation.scores import EpisodeScores, EpisodeStatus
from flows.cli import app
from pipeline.errors import ExpbenchError
from pipeline.task import Family
from pipeline.yamlio import dump_yaml
from tests.evaluation.families.histogram.support import TRUTH, publish, template

NAME = "p-1_sim-T5Wg"


@pytest.fixture
def task(tmp_path: Path) -> HistogramTask:
    return load_histogram_task(publish(tmp_path / "source"))


def write_run(
    root: Path, source: Path, task: HistogramTask, agent: str, runs: list[tuple[float, Provenance, float]],
    *, ablation: str = "",
) -> None:  # fmt: skip
    """A run of one task: (factor on the reference, label, cost) of each repeat."""
    root.mkdir(parents=True)
    record = RunRecord(
        run=root.name, source=str(source), agent=agent, repeats=len(runs), tasks={task.id: "d"}, ablation=ablation
    )
    (root / "run.yaml").write_text(dump_yaml(record))
    for repeat, (factor, label, cost) in enumerate(runs):
        folder = episode_folder(root, task.id, repeat)
        folder.root.mkdir(parents=True)
        values = tuple(factor * value for value in TRUTH)
        submission = folder.root / "h.yaml"
        submission.write_text(template() if label is Provenance.FAILED else template(values))
        score = score_histogram(task, submission, provenance=label)
        row = EpisodeScores(
            run=root.name, task=task.id, family=Family.HISTOGRAM, paper="p-1", agent=agent, repeat=repeat,
            status=EpisodeStatus.SCORED, metrics=score.metrics(), cost_usd=cost, input_tokens=1_000_000,
            output_tokens=500_000, wall_s=1800,
        )  # fmt: skip
        folder.scores.write_text(row.model_dump_json())
        graded = GradedHistogram(score=score, reason="", values=None if label is Provenance.FAILED else values)
        (folder.root / "family.json").write_text(graded.model_dump_json())
        state = EpisodeState(run=root.name, task=task.id, agent=agent, repeat=repeat, finished=(Step.SCORE,))
        folder.state.write_text(state.model_dump_json())


PASSED, FAILED, FABRICATED = Provenance.PASSED, Provenance.FAILED, Provenance.FABRICATED


@pytest.fixture
def runs(tmp_path: Path, task: HistogramTask) -> list[Path]:
    source = tmp_path / "source"
    good, cheap, dear = tmp_path / "good", tmp_path / "cheap", tmp_path / "dear"
    write_run(good, source, task, "good", [(1.1, PASSED, 2.0), (1.3, PASSED, 4.0), (9.0, FABRICATED, 3.0)])
    write_run(cheap, source, task, "cheap", [(1.2, PASSED, 0.1), (0.0, FAILED, 0.1), (3.0, PASSED, 0.1)])
    write_run(dear, source, task, "good", [(1.5, PASSED, 9.0)], ablation="tool:read-paper")
    return [good, cheap, dear]


def test_means_spreads_and_labels(runs: list[Path]) -> None:
    tables = histogram_tables(read_rows(runs))
    cells = {cell.agent: cell.summary for cell in tables.cells}
    good = cells["good"]
    assert (good.runs, good.counted) == (3, 2)
    assert good.relative_l2 == pytest.approx(0.2)
    assert good.relative_l2_spread == pytest.approx(0.1 * 2**0.5)
    assert good.shape_l2 == pytest.approx(0.0, abs=1e-12)
    assert good.accuracy == 1.0
    cheap = cells["cheap"]
    assert (cheap.counted, cheap.relative_l2, cheap.accuracy) == (3, pytest.approx((0.2 + 1 + 2) / 3), 1 / 3)
    assert cells["good [tool:read-paper]"].text == "0.50"
    agents = {item.agent: item for item in tables.agents}
    assert agents["good"].provenance == {"passed": 2, "failed": 0, "fabricated": 1, "unknown": 0}
    assert (agents["good"].cost_usd.mean, agents["good"].cost_usd.spread) == (3.0, 1.0)
    assert (agents["good"].tokens_millions.mean, agents["good"].hours.mean) == (1.5, 0.5)
    assert {item.agent for item in tables.agents if item.on_front} == {"good", "cheap"}
    strict = histogram_tables(read_rows(runs), tau=0.15)
    assert {item.agent: item.accuracy for item in strict.agents}["good"] == 0.5


def test_a_task_of_which_all_runs_are_fabricated_has_a_dash(tmp_path: Path, task: HistogramTask) -> None:
    write_run(tmp_path / "run", tmp_path / "source", task, "liar", [(1.0, FABRICATED, 1.0)])
    tables = histogram_tables(read_rows([tmp_path / "run"]))
    assert tables.cells[0].summary.text == "-"
    assert (tables.agents[0].accuracy, tables.agents[0].on_front) == (None, False)


def test_the_command_prints_and_draws(runs: list[Path], tmp_path: Path) -> None:
    arguments = ["histogram-tables", *map(str, runs)]
    result = CliRunner().invoke(app, arguments, env={"COLUMNS": "200"})
    assert result.exit_code == 0, result.output
    assert "0.20±0.14" in result.stdout
    drawn = CliRunner().invoke(app, [*arguments, "--plots", str(tmp_path / "plots"), "--json"])
    value = json.loads(drawn.stdout)
    assert value["plots"] == [str(tmp_path / "plots" / name) for name in (f"{NAME}.svg", "front.svg")]
    assert len(list(ET.parse(tmp_path / "plots" / "front.svg").iter("{http://www.w3.org/2000/svg}circle"))) == 3
    text = (tmp_path / "plots" / f"{NAME}.svg").read_text()
    assert {"good, d = 0.1", "cheap, d = 0.2"} <= set(re.findall(r"(?:good|cheap), d = [\d.]+", text))
    empty = tmp_path / "empty"
    empty.mkdir()
    refused = CliRunner().invoke(app, ["histogram-tables", str(empty)])
    assert isinstance(refused.exception, ExpbenchError)


@pytest.mark.parametrize("mode", ["shape", "yield", "shape_norm"])
@pytest.mark.parametrize("values", [(0.0,) * 4, TRUTH, (1e300, 0.0, 1e-300, 2.0)])
def test_an_overlay_is_a_picture_of_its_own(tmp_path: Path, mode: str, values: tuple[float, ...]) -> None:
    loaded = load_histogram_task(publish(tmp_path, mode=mode))
    text = overlay_svg(loaded, [OverlaySeries(label="<agent> & co", values=values)])
    tree = ET.fromstring(text)
    assert tree.tag == "{http://www.w3.org/2000/svg}svg"
    assert "script" not in text
    assert "nan" not in text
    assert "inf" not in text
    assert text == overlay_svg(loaded, [OverlaySeries(label="<agent> & co", values=values)])
