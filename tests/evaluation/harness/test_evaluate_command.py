"""`expbench evaluate`, `agents`, `episodes` as a user meets them: messages, exit codes, JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

from evaluation.harness.run import RunRecord, begin_run, open_run, read_run
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.task import EvaluationTask
from flows.cli import app
from flows.commands._episodes import print_rows
from flows.evaluate import parse_network
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock
from pipeline.task import Family
from tests.evaluation.execution_support import with_downloads
from tests.evaluation.harness.support import tiny_tasks


def invoke(*arguments: str) -> Any:
    return CliRunner().invoke(app, list(arguments))


def refused(*arguments: str) -> ExpbenchError:
    result = invoke(*arguments)
    assert isinstance(result.exception, ExpbenchError), result.output
    return result.exception


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A directory that is no source: what is refused before it is read must not say so."""
    (tmp_path / "source").mkdir()
    return tmp_path / "source"


def test_agents_are_listed_with_what_they_need() -> None:
    listed = json.loads(invoke("agents", "--json").stdout)
    names = {agent["name"] for agent in listed}
    assert {"oracle", "noop", "command", "iterative", "openhands"} <= names
    assert all(agent["available"] or agent["next_step"] for agent in listed)
    assert "oracle" in invoke("agents").stdout
    assert refused("agents", "--install", "noop").kind is FailureKind.USAGE


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        (["--agent", "nobody"], FailureKind.USAGE, "Choose one of"),
        (["--agent", "noop", "--agent-option", "x"], FailureKind.USAGE, "NAME=VALUE"),
        (["--agent", "noop", "--agent-option", "x=1"], FailureKind.USAGE, "none"),
        (["--agent", "noop", "--network", "all"], FailureKind.USAGE, "allow="),
        (["--agent", "noop", "--dry-run"], FailureKind.RECORD_INVALID, "expbench curate"),
        (["--agent", "command", "--agent-option", "cmd=x sk-ant-REDACTED"], FailureKind.USAGE, "gateway"),
    ],
)
def test_what_cannot_be_run_is_refused_with_a_way_on(
    source: Path, tmp_path: Path, options: list[str], kind: FailureKind, words: str
) -> None:
    error = refused("evaluate", str(source), "--out", str(tmp_path / "run"), *options)
    assert error.kind is kind
    assert words in str(error)
    assert not (tmp_path / "run" / "run.yaml").exists()


def test_a_limit_of_money_needs_a_price(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setattr("flows.evaluate.agent_sandbox", lambda: None)
    error = refused(
        "evaluate", str(source), "--agent", "command", "--agent-option", "cmd=x", "--model", "mine", "--max-usd", "1",
        "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert error.kind is FailureKind.USAGE
    assert "price" in error.cause


@pytest.fixture
def tasks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[EvaluationTask]:
    """A source of one task; no key, no endpoint and no Docker Engine in the environment."""
    found = tiny_tasks(tmp_path / "tasks", 1)
    monkeypatch.setattr("flows.evaluate.load_chosen", lambda *_: found)
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "EXPBENCH_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/no.sock")
    return found


@pytest.mark.usefixtures("tasks")
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--agent", "command"], "there is no command"),
        (["--agent", "iterative"], "no model is given"),
        (["--agent", "iterative", "--model", "m"], "OPENAI_API_KEY"),
        (["--agent", "noop", "--judge", "model", "--judge-model", "m"], "judge m at"),
        (["--agent", "noop", "--judge", "model"], "no model is named"),
    ],
)
def test_what_keeps_an_agent_from_starting_is_said_before_a_run_is_begun(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str], words: str
) -> None:
    monkeypatch.setattr("flows.evaluate.agent_sandbox", lambda: None)
    error = refused("evaluate", str(source), "--out", str(tmp_path / "run"), *options)
    assert words in str(error)
    assert not (tmp_path / "run" / "run.yaml").exists(), "mended, the same command works without --resume"


@pytest.mark.usefixtures("tasks")
def test_a_dry_run_tells_everything_that_is_in_the_way(source: Path, tmp_path: Path) -> None:
    begin_run_in(tmp_path / "run")
    result = invoke(
        "evaluate", str(source), "--agent", "iterative", "--out", str(tmp_path / "run"), "--dry-run", "--json"
    )
    found = json.loads(result.stdout)["obstacles"]
    assert [row["exit_code"] for row in found] == [7, 5, 2]
    assert result.exit_code == 7
    for row, words in zip(found, ("Docker Engine", "--resume", "no model is given"), strict=True):
        assert words in row["message"]
    assert "--sandbox process" not in found[0]["message"], "agents work in containers only"


def test_a_task_whose_data_are_not_here_is_told_before_any_episode(
    tasks: list[EvaluationTask], source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tasks[0] = with_downloads(tasks[0], tmp_path / "cache", whole=False)
    command = ["evaluate", str(source), "--agent", "noop", "--out", str(tmp_path / "run")]
    [(name, reason)] = json.loads(invoke(*command, "--dry-run", "--json").stdout)["blocked"]
    assert (name, str(tmp_path / "cache") in reason) == (tasks[0].id, True)
    monkeypatch.setattr("flows.evaluate.agent_sandbox", lambda: None)
    told: list[str] = []
    monkeypatch.setattr("flows.progress.TerminalReporter.warn", lambda _, message: told.append(message))
    monkeypatch.setattr("flows.evaluate.in_threads", lambda *_: told.append("episodes") or [])
    invoke(*command)
    assert told[-1] == "episodes"
    assert told[0].startswith(f"{tasks[0].id}: what its runs download is not at hand")


def begin_run_in(root: Path) -> None:
    with open_run(root, resume=False):
        begin_run(root, RunRecord(run="run", source="s", agent="noop", tasks={"t": "1"}))


def test_episodes_of_each_family_are_shown_with_what_ranks_them(capsys: pytest.CaptureFixture[str]) -> None:
    """Those of other families once had five dashes where their score should be."""
    common = {"run": "r", "paper": "p", "agent": "noop", "repeat": 0, "wall_s": 3.2, "cost_usd": 0.5}
    rows = [
        EpisodeScores(**common, task="a", family=Family.EXPERIMENT, status=EpisodeStatus.SCORED, monitor=1, design=0.25),
        EpisodeScores(**common, task="b", family=Family.CAUSAL, status=EpisodeStatus.SCORED, monitor=1,
                      metrics={"score": 98.12, "solved": 1.0, "bench_calls": 1.0}),
        EpisodeScores(**common, task="c", family=Family.CAUSAL, status=EpisodeStatus.BLOCKED, reason="no [GPU] here"),
    ]  # fmt: skip
    print_rows(Console(width=80), rows)
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert lines[0] == ["episode", "status", "M", "D", "I", "E", "C", "USD", "s"]
    assert lines[1] == ["a/0", "scored", "1.00", "0.25", "-", "-", "-", "0.50", "3"]
    assert lines[2] == ["episode", "status", "M", "score", "accuracy", "calls", "USD", "s"]
    assert lines[3] == ["b/0", "scored", "1.00", "98.12", "100.0", "1", "0.50", "3"]
    assert lines[4][:3] == ["c/0", "blocked", "-"]
    assert lines[5] == ["blocked", "c/0:", "no", "[GPU]", "here"]


@pytest.mark.parametrize("text", ["allow=", "allow=*", "allow=http://x.org", "allow=x.org:80", "everything"])
def test_network_policies_that_are_none(text: str) -> None:
    with pytest.raises(ExpbenchError) as caught:
        parse_network(text)
    assert caught.value.kind is FailureKind.USAGE
    assert parse_network("allow=PyPI.org, *.example.org") == ("*.example.org", "pypi.org")
    assert parse_network("none") == ()


def test_a_run_is_resumed_only_as_what_it_is(tmp_path: Path) -> None:
    root, record = tmp_path / "run", RunRecord(run="run", source="s", agent="noop", tasks={"t": "1"})
    with open_run(root, resume=False):
        begin_run(root, record)
    assert read_run(root) == record
    with pytest.raises(ExpbenchError) as caught, open_run(root, resume=False):
        pass
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    with open_run(root, resume=True):
        begin_run(root, record.evolve(expbench="another"))
        with pytest.raises(ExpbenchError) as caught:
            begin_run(root, record.evolve(repeats=2, model="m"))
    assert "model, repeats" in caught.value.cause


def test_a_directory_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ExpbenchError) as caught, open_run(tmp_path, resume=True):
        pass
    assert caught.value.kind is FailureKind.WORKSPACE_CONFLICT
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]


def test_two_processes_do_not_work_in_one_run(tmp_path: Path) -> None:
    with exclusive_lock(tmp_path / "run" / ".lock", "run"):
        with pytest.raises(ExpbenchError) as caught, open_run(tmp_path / "run", resume=True):
            pass
        assert caught.value.kind is FailureKind.WORKSPACE_LOCKED


def test_episodes_of_a_run_that_has_only_begun(tmp_path: Path) -> None:
    with open_run(tmp_path / "run", resume=False):
        begin_run(tmp_path / "run", RunRecord(run="run", source="s", agent="noop", repeats=2, tasks={"t": "1"}))
    listed = json.loads(invoke("episodes", str(tmp_path / "run"), "--json").stdout)
    assert [(row["task"], row["repeat"], row["state"], row["scores"]) for row in listed] == [
        ("t", 0, None, None), ("t", 1, None, None),
    ]  # fmt: skip
    assert "not begun" in invoke("episodes", str(tmp_path / "run")).stdout
    assert refused("episodes", str(tmp_path)).kind is FailureKind.RECORD_INVALID
