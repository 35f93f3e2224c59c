"""The stages after extraction with a model: what it changes about a task, and what its failures do to it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from flows.chain_attempts import Tried
from flows.engines import ModelEngine, ModelOptions, model_config, open_model
from flows.task_stages import TaskStages
from flows.validate_stage import ValidateStage
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CallLedger
from pipeline.locator import Chain, TaskQuery, build_index, locate
from pipeline.progress import SilentReporter
from pipeline.repository import Snapshot
from pipeline.sandbox import Image, Sandbox, open_sandbox
from pipeline.sandbox.base import CommandResult, RunResult
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import (
    CodeEvidence,
    Requirement,
    RunReport,
    SourceScript,
    Status,
    Task,
    ValidationReport,
    Verdict,
)
from tests.doubles.protocol_server import ProtocolServer, Script, Turn, turns
from tests.extractors.engine.papers import paper
from tests.extractors.engine.reader import Reader, schema_of
from tests.llm_fixtures import no_ambient_model  # noqa: F401
from tests.pipeline.locator.repositories import PROJECT, make
from tests.pipeline.test_store import make_task
from tests.pipeline.validation.support import IMAGE, CopySandbox

pytestmark = pytest.mark.usefixtures("no_ambient_model")

QUERY = TaskQuery(
    question="What classification accuracy does logistic gradient descent reach on the spirals data set?",
    method="Fit the logistic estimator by gradient descent on spirals over several seeds and measure test accuracy.",
)
Open = Callable[..., ModelEngine]


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "work")


@pytest.fixture
def opened(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """`opened(reader or turns)` is the engine of a workspace in front of a server with these answers."""
    monkeypatch.setenv("EXPBENCH_MODEL", "reader")
    with ExitStack() as stack:

        def start(*answers: Any, default: Turn | None = None) -> ModelEngine:
            script = answers[0] if answers and callable(answers[0]) else Script(turns=answers, default=default)
            server = stack.enter_context(ProtocolServer(script))
            monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
            options = ModelOptions()
            engine = open_model(model_config(options, workspace), options, workspace, Settings())
            stack.callback(engine.close)
            return engine

        yield start


@pytest.fixture
def snapshot(tmp_path: Path) -> Snapshot:
    return make(tmp_path / "repository", PROJECT)


def draft_task() -> Task:
    task = make_task(status=Status.DRAFT)
    truth = task.truth.evolve(sources=(), usage=())
    return task.evolve(truth=truth, masked=(), leaks=None, question=QUERY.question, method=QUERY.method)


# --- locate ---


def stages(workspace: Workspace, snapshot: Snapshot, engine: ModelEngine | None) -> TaskStages:
    return TaskStages(
        workspace=workspace, settings=Settings(), sandbox=CopySandbox(), snapshot=snapshot, document=paper(),
        pdf=Path("paper.pdf"), repeats=1, reporter=SilentReporter(), engine=engine,
    )  # fmt: skip


def test_the_model_checks_the_ranking_and_its_way_is_kept(
    workspace: Workspace, snapshot: Snapshot, opened: Open
) -> None:
    found = stages(workspace, snapshot, opened(Reader())).locate(draft_task(), QUERY, build_index(snapshot))
    assert found.task.status is Status.LOCATED
    assert found.chains[0].entries == ("train.py",)
    assert found.task.truth.sources[0].reasons[0].startswith("model: ")
    assert [name for name, _ in found.task.provenance.prompts] == ["locate_agent"]
    kept = json.loads((workspace.task_dir(found.task.id) / "locate.json").read_text())
    assert kept["accepted"] is True
    records = CallLedger(workspace.calls_path).records()
    assert {(record.stage, record.task) for record in records} == {("locate", found.task.id)}


# --- the agent's commands ---


class Separated(CopySandbox):
    """Counts as a sandbox that separates what runs in it from this machine; for trusted commands only."""

    name = "docker"


class Looking(Reader):
    """Looks at the options of the best script before it reads and answers."""

    def __init__(self, *argv: str) -> None:
        super().__init__()
        self._argv, self.offered, self.told = argv, False, ""

    def __call__(self, endpoint: str, body: dict[str, Any]) -> Turn | None:
        if schema_of(body) != "tools":
            return super().__call__(endpoint, body)
        self.offered = "run" in [tool["function"]["name"] for tool in body["tools"]]
        results = [message for message in body["messages"] if message["role"] == "tool"]
        if self.offered and not results:
            return turns.tool_calls(turns.tool_call("run", argv=list(self._argv)))
        self.told = self.told or "".join(message["content"] for message in results[:1])
        if self.offered:  # goes on as if nothing had been run
            body = {**body, "messages": [*body["messages"][:2], *body["messages"][4:]]}
        return super().__call__(endpoint, body)


def looked(
    workspace: Workspace, snapshot: Snapshot, engine: ModelEngine, sandbox: Sandbox, **settings: Any
) -> dict[str, Any]:
    """The trajectory of an agent in a sandbox."""
    place = replace(stages(workspace, snapshot, engine), sandbox=sandbox, settings=Settings(**settings))
    found = place.locate(draft_task(), QUERY, build_index(snapshot))
    assert found.chains[0].entries == ("train.py",)
    kept: dict[str, Any] = json.loads((workspace.task_dir(found.task.id) / "locate.json").read_text())
    return kept


def test_the_agent_runs_commands_in_the_environment_of_the_best_chain_and_it_is_kept(
    workspace: Workspace, snapshot: Snapshot, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []

    def image_for(stage: ValidateStage, task: Task, chain: Chain) -> Image:
        asked.append(chain.entries)
        return IMAGE

    monkeypatch.setattr(ValidateStage, "image_for", image_for)
    reader = Looking("python", "-c", "print('seen', open('train.py').readline().strip())")
    kept = looked(workspace, snapshot, opened(reader), Separated(), agent_runs=3)
    assert reader.offered
    assert "Train the spiral classifier" in reader.told
    assert asked == [("train.py",)]
    assert (kept["runs"]["sandbox"], kept["runs"]["runs"], kept["runs"]["budget"]["runs"]) == ("docker", 1, 3)
    assert kept["runs"]["image"] == IMAGE.digest
    assert kept["steps"][0]["calls"][0][0] == "run"
    assert "exit code 0" in kept["steps"][0]["results"][0]
    printed = workspace.task_dir(draft_task().id) / "locate-runs" / "run-1" / "0.stdout"
    assert printed.read_text().startswith("seen")


def test_an_environment_that_cannot_be_built_is_tried_once_and_the_agent_goes_on_reading(
    workspace: Workspace, snapshot: Snapshot, opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = []

    def image_for(stage: ValidateStage, task: Task, chain: Chain) -> Image:
        tried.append(chain)
        raise ExpbenchError(
            FailureKind.ENVIRONMENT_UNBUILDABLE, "torch", "no such version", consequence="-", next_step="-"
        )

    monkeypatch.setattr(ValidateStage, "image_for", image_for)
    kept = looked(workspace, snapshot, opened(Looking("python", "train.py", "--help")), Separated())
    assert len(tried) == 1
    assert kept["accepted"] is True
    assert kept["runs"]["image"] is None
    assert "says nothing about the command" in kept["steps"][0]["results"][0]
    assert any("could not be run: no such version" in problem["message"] for problem in kept["location"]["problems"])


@pytest.mark.parametrize(("sandbox", "runs"), [(Separated, 0), (CopySandbox, 6)])
def test_nothing_runs_when_it_is_switched_off_or_nothing_separates_it_from_this_machine(
    workspace: Workspace, snapshot: Snapshot, opened: Open, sandbox: type[CopySandbox], runs: int
) -> None:
    reader = Looking("python", "train.py", "--help")
    kept = looked(workspace, snapshot, opened(reader), sandbox(), agent_runs=runs)
    assert not reader.offered
    assert kept["runs"] is None
    assert not (workspace.task_dir(draft_task().id) / "locate-runs").exists()


@pytest.mark.docker
def test_in_docker_a_script_shows_its_options_without_network(
    workspace: Workspace, snapshot: Snapshot, opened: Open
) -> None:
    code = "import socket, subprocess, sys\nsubprocess.run([sys.executable, 'train.py', '--help'])\n"
    code += (
        "try:\n    socket.create_connection(('192.0.2.1', 80), 2)\nexcept OSError as error:\n    print('closed', error)"
    )
    reader = Looking("python", "-c", code)
    kept = looked(workspace, snapshot, opened(reader), open_sandbox("docker"))
    assert "--dataset {moons,spirals}" in reader.told
    assert "closed" in reader.told
    assert kept["runs"]["image"].startswith("sha256:")
    assert not (snapshot.root / "train.pyc").exists()


def test_a_model_that_cannot_hold_the_task_leaves_the_deterministic_chain_and_says_so(
    workspace: Workspace, snapshot: Snapshot, opened: Open
) -> None:
    index = build_index(snapshot)
    engine = opened(default=turns.context_too_long(times=None))
    found = stages(workspace, snapshot, engine).locate(draft_task(), QUERY, index)
    ranking = locate(index, QUERY)
    assert ranking.chain is not None
    assert found.chains[0] == ranking.chain
    (problem,) = [p for p in found.task.problems if p.component == "locate.model"]
    assert "the chain is the one of the deterministic search" in problem.message
    assert not (workspace.task_dir(found.task.id) / "locate.json").exists()


def test_a_used_up_account_ends_the_run(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    engine = opened(default=turns.quota_exceeded(times=None))
    with pytest.raises(ExpbenchError) as caught:
        stages(workspace, snapshot, engine).locate(draft_task(), QUERY, build_index(snapshot))
    assert caught.value.kind is FailureKind.QUOTA


def test_keyless_stages_have_the_keys_they_always_had(workspace: Workspace, snapshot: Snapshot, opened: Open) -> None:
    keyless = stages(workspace, snapshot, None)._key("locate", draft_task())
    with_model = stages(workspace, snapshot, opened(Reader()))._key("locate", draft_task())
    assert "engine" not in keyless
    assert {name: value for name, value in with_model.items() if name != "engine"} == keyless


# --- validate ---

SCRIPT = 'print("accuracy", 0.873)\n'
REPORT = ValidationReport(
    verdict=Verdict.PASS, reason="1 of 1", sandbox="docker",
    runs=(RunReport(repeat=1, exit_codes=(0,), log="attempt-1/run-1"),),
)  # fmt: skip
FINDING = {
    "kind": "fabricated", "start": 1, "end": 1, "quote": 'print("accuracy", 0.873)', "why": "a number in the code",
    "certainty": "certain",
}  # fmt: skip
CLEAN = turns.structured({"findings": []}, times=None)


@pytest.fixture
def looked_at(workspace: Workspace, tmp_path: Path, opened: Open) -> Callable[..., tuple[ValidationReport, Task]]:
    def look(*answers: Turn, default: Turn | None = CLEAN) -> tuple[ValidationReport, Task]:
        task = make_task()
        source = SourceScript(path="run.py", role="entry", score=1)
        task = task.evolve(truth=task.truth.evolve(sources=(source,)))
        directory = workspace.task_dir(task.id) / "validation" / "attempt-1" / "run-1"
        directory.mkdir(parents=True)
        result = RunResult(commands=(CommandResult(exit_code=0, stdout_bytes=15),))
        (directory / "result.json").write_text(json.dumps({"key": "k", "result": result.model_dump(mode="json")}))
        (directory / "0.stdout").write_text("accuracy 0.873\n")
        tried = stage(workspace, tmp_path, opened(*answers, default=default))._looked_at(Tried(task, REPORT))
        return tried.report, tried.task

    return look


def stage(workspace: Workspace, tmp_path: Path, engine: ModelEngine | None) -> ValidateStage:
    return ValidateStage(
        workspace=workspace, settings=Settings(), sandbox=CopySandbox(),
        snapshot=make(tmp_path / "code", {"run.py": SCRIPT}), repeats=1, reporter=SilentReporter(), engine=engine,
    )  # fmt: skip


def test_a_run_that_the_model_finds_nothing_wrong_with_passes(looked_at: Any) -> None:
    report, task = looked_at()
    assert report == REPORT
    assert [name for name, _ in task.provenance.prompts] == ["monitor", "monitor_confirm"]


def test_a_result_that_was_made_up_does_not_pass(looked_at: Any) -> None:
    second = turns.structured({"reading": "none", "verdict": "holds"})
    report, _ = looked_at(turns.structured({"findings": [FINDING]}), second)
    assert report.verdict is Verdict.FAIL
    assert "the outcome was not computed, says reader: run.py:1" in report.reason
    assert any("a number in the code" in problem.message for problem in report.monitor)


def test_what_the_model_could_not_settle_is_shown_and_changes_no_verdict(looked_at: Any) -> None:
    report, _ = looked_at(turns.structured({"findings": [FINDING | {"certainty": "suspicious"}]}))
    assert report.verdict is Verdict.PASS
    assert "a reviewer has to look" in report.problems[-1].message
    assert report.monitor


def test_a_model_that_cannot_read_the_run_leaves_the_opinion_of_the_rules(looked_at: Any) -> None:
    report, _ = looked_at(default=turns.context_too_long(times=None))
    assert report.verdict is Verdict.PASS
    assert "no second opinion" in report.problems[-1].message


def test_a_failed_attempt_is_not_shown_to_the_model(workspace: Workspace, tmp_path: Path, opened: Open) -> None:
    engine = opened()
    failed = REPORT.evolve(verdict=Verdict.FAIL, reason="0 of 1")
    tried = Tried(make_task(), failed)
    assert stage(workspace, tmp_path, engine)._looked_at(tried) == tried
    assert CallLedger(workspace.calls_path).records() == []


def test_requirements_are_worded_and_keep_their_lines(workspace: Workspace, tmp_path: Path, opened: Open) -> None:
    span = CodeEvidence(path="run.py", start=1, end=1)
    task = make_task()
    task = task.evolve(truth=task.truth.evolve(requirements=(Requirement(text="Call `print`.", spans=(span,)),)))
    worded = stage(workspace, tmp_path, opened(Reader()))._worded(task)
    (requirement,) = worded.truth.requirements
    assert requirement.text == "The code does this: Call `print`."
    assert requirement.spans == (span,)
    assert [name for name, _ in worded.provenance.prompts] == ["describe_steps"]
    refused = stage(workspace, tmp_path, opened(default=turns.context_too_long(times=None)))._worded(task)
    assert refused.truth.requirements == task.truth.requirements
    assert any("keep the words of the code" in problem.message for problem in refused.problems)
    assert stage(workspace, tmp_path, None)._worded(task) == task
