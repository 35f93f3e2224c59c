"""`expbench judge RUN` on a run that lies on disk: no container, no agent; scores and lock follow the graders."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from evaluation.episode import AgentOutcome, EpisodeState, Step
from evaluation.harness.run import RunRecord, begin_run, task_digest
from evaluation.judges.regrade import regrade_run, run_verdicts
from evaluation.lock import EpisodeLock
from evaluation.scores import EpisodeScores
from evaluation.task import EvaluationTask
from evaluation.verdicts import Judgement
from flows.cli import app
from pipeline.errors import ExpbenchError
from pipeline.files import write_text
from pipeline.llm import ModelClient, ModelConfig
from pipeline.llm.retry import RetryPolicy
from pipeline.progress import SilentReporter
from pipeline.task import Verdict
from tests.doubles.protocol_server import ProtocolServer, Turn
from tests.evaluation.integrity.episodes import Made, command
from tests.evaluation.integrity.world import MASKED
from tests.llm_fixtures import protocol_server  # noqa: F401

DONE = (Step.PREPARE, Step.AGENT, Step.SUBMISSION)


@pytest.fixture
def run(task: EvaluationTask, tmp_path: Path) -> Path:
    """Three episodes: the original handed in, a cheat, and one that the machinery lost."""
    root = tmp_path / "run"
    begin_run(
        root, RunRecord(run="run", source="nowhere", agent="command", repeats=3, tasks={task.id: task_digest(task)})
    )
    made = [Made(files=dict(MASKED)), Made(extra=[command("git show HEAD~1:run_study.py", "x")]), Made()]
    for repeat, episode in enumerate(made):
        folder, submission = episode.write(root / "episodes" / task.id / str(repeat))
        write_text(folder.submission / "submission.json", submission.model_dump_json())
        state = EpisodeState(
            run="run", task=task.id, agent="command", repeat=repeat, finished=DONE, outcome=AgentOutcome(reason="finished"),
            failure="sandbox_broken" if repeat == 2 else None,
        )  # fmt: skip
        write_text(folder.state, state.model_dump_json())
        lock = EpisodeLock(task_id=task.id, task="t", environment="e", limits="l", instructions="i")
        write_text(folder.root / "lock.json", lock.model_dump_json())
    return root


def _scores(run: Path, task: EvaluationTask, repeat: int) -> EpisodeScores:
    path = run / "episodes" / task.id / str(repeat) / "scores.json"
    return EpisodeScores.model_validate_json(path.read_bytes())


def test_verdicts_scores_and_lock_are_written(run: Path, task: EvaluationTask) -> None:
    result = regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    assert [row.repeat for row in result.graded] == [0, 1]
    assert result.left == ((f"{task.id}/2", "the machinery failed: sandbox_broken"),)
    first = _scores(run, task, 0)
    assert (first.design, first.implementation) == (1.0, 1.0)
    assert _scores(run, task, 1).monitor == 0.0
    assert not (run / "episodes" / task.id / "2" / "scores.json").exists()
    lock = EpisodeLock.model_validate_json((run / "episodes" / task.id / "0" / "lock.json").read_bytes())
    assert lock.comparable == first.lock


def test_grading_twice_changes_nothing(run: Path, task: EvaluationTask) -> None:
    first = regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    files = {path: path.read_bytes() for path in run.rglob("*.json")}
    second = regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    assert (second.graded, second.changed) == (first.graded, ())
    assert {path: path.read_bytes() for path in run.rglob("*.json")} == files


def test_another_judge_is_another_lock_and_its_changes_are_listed(
    run: Path,
    task: EvaluationTask,
    protocol_server: Callable[..., ProtocolServer],  # noqa: F811
) -> None:
    regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    before = _scores(run, task, 0).lock
    server = protocol_server(default=Turn(structured={"items": []}, times=None))
    config = ModelConfig(model="m", base_url=server.base_url, retry=RetryPolicy(attempts=1))
    with ModelClient(config) as client:
        result = regrade_run(run, [task], client=client, panel=1, monitor=False, reporter=SilentReporter())
    assert _scores(run, task, 0).lock != before
    assert _scores(run, task, 0).design is None
    assert any("constant:n: pass -> unknown" in line for line in result.changed)


def test_a_task_that_is_gone_is_left(run: Path) -> None:
    result = regrade_run(run, [], client=None, panel=1, monitor=True, reporter=SilentReporter())
    assert {reason for _, reason in result.left} == {"its task is not in the source"}


def test_verdicts_of_a_run_serve_a_calibration(run: Path, task: EvaluationTask, tmp_path: Path) -> None:
    regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    verdicts = run_verdicts(run)
    assert verdicts[f"{task.id}/1"]["integrity", ""] is Verdict.FAIL
    labels = tmp_path / "labels.jsonl"
    rows = [
        {"episode": f"{task.id}/{repeat}", "dimension": "integrity", "label": label}
        for repeat, label in ((0, "fail"), (1, "fail"))
    ]
    labels.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = CliRunner().invoke(app, ["judge", str(run), "--calibrate", str(labels), "--json"])
    found = json.loads(result.stdout)["dimensions"]["integrity"]
    assert (found["items"], found["decided"], found["accuracy"]) == (2, 1, 0.5)


def test_a_damaged_artefact_is_said_not_graded(run: Path, task: EvaluationTask) -> None:
    write_text(run / "episodes" / task.id / "0" / "submission" / "submission.json", "{")
    with pytest.raises(ExpbenchError, match=r"submission\.json"):
        regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())


def test_no_run_is_said(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["judge", str(tmp_path)])
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.exit_code == 5


def test_judgement_round_trips(run: Path, task: EvaluationTask) -> None:
    regrade_run(run, [task], client=None, panel=1, monitor=True, reporter=SilentReporter())
    path = run / "episodes" / task.id / "0" / "judgement.json"
    assert Judgement.model_validate_json(path.read_bytes()).grader.engine == "keyless"
