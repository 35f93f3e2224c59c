"""The agent's step without a container: what it starts from, what is kept, what becomes of events, calls and limits."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from pydantic import SecretStr

from evaluation.agents.base import AgentLaunch
from evaluation.episode import AgentOutcome, EpisodeFolder
from evaluation.harness.agent_step import read_agent_run
from evaluation.harness.gateway import EGRESS_SOCKET, MODEL_SOCKET
from evaluation.harness.processes import TRACE_SOCKET
from evaluation.harness.upstream import Upstream
from evaluation.task import EvaluationTask
from evaluation.trajectory import (
    CommandRun,
    End,
    Event,
    LimitHit,
    ModelCall,
    ModelTurn,
    Note,
    TrajectoryHead,
    Utterance,
)
from evaluation.trajectory_io import read_trajectory
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import CommandResult, Image, RunResult, StopHandle
from pipeline.schema import Problem
from tests.doubles.protocol_server import ProtocolServer, Script, ScriptedUsage
from tests.doubles.protocol_server import turns as scripted
from tests.evaluation.harness.doubles import Agent, Engine, agent_step
from tests.evaluation.harness.support import KEY, SMALL, tiny_tasks

IMAGE = Image(reference="r", digest="d", spec_digest="s")
ASKS = AgentLaunch(argv=("ask",))


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory whose path leaves room for a socket's."""
    with tempfile.TemporaryDirectory(prefix="st-") as name:
        yield Path(name)


@pytest.fixture
def task(place: Path) -> EvaluationTask:
    return tiny_tasks(place / "tasks", 1)[0]


class Worked:
    """A step, and what it left."""

    def __init__(self, place: Path, task: EvaluationTask, engine: Engine, agent: Agent | None = None, **options: Any):
        self.engine, self.folder = engine, EpisodeFolder(place / "episode" / "5")
        scratch = Path(tempfile.mkdtemp(dir=place))
        companion = {"companion": options.pop("companion")} if "companion" in options else {}
        self.agent = agent or Agent()
        self.stop = StopHandle()
        step = agent_step(engine, self.agent, **options)
        self.outcome: AgentOutcome = step.run(
            task, self.folder, IMAGE, "the instructions", seed=3, scratch=scratch, stop=self.stop, **companion
        )
        head, self.events, self.problems = read_trajectory(self.folder.trajectory)
        assert head is not None
        self.head: TrajectoryHead = head
        self.left_sockets = sorted(path.name for path in (scratch / "harness").glob("*.sock"))


def harness_of(engine: Engine) -> Path:
    """The directory of this machine that the container sees as /harness."""
    spec, _ = engine.runs[-1]
    return next(mount.source for mount in spec.mounts if mount.target == "/harness")


# --- before


def test_the_agent_is_started_in_the_masked_repository_with_its_files(place: Path, task: EvaluationTask) -> None:
    launch = AgentLaunch(argv=("do", "it"), files={"deep/notes.md": "n"}, needs_model=False, env={"A": "1"})
    read: list[str] = []
    engine = Engine()

    def during(out: Path) -> None:
        inbox = next(mount.source for mount in engine.runs[-1][0].mounts if mount.target == "/agent")
        read.append((inbox / "deep" / "notes.md").read_text())
        assert {"launch.py", "watch.py"} <= {path.name for path in harness_of(engine).iterdir()}

    engine.during = during
    worked = Worked(place, task, engine, Agent(launch), gpu_type="A40", limits=SMALL.evolve(gpus=1))
    [(spec, asked)] = engine.runs
    assert read == ["n"]
    assert (asked["tree"], asked["image"], asked["owner"], asked["stop"]) == (
        task.masked_repository, IMAGE, "o", worked.stop,
    )  # fmt: skip
    assert spec.commands[0].argv == ("do", "it"), "without a model and hosts there is no port to open"
    assert spec.env == {"A": "1"}
    assert spec.gpus is not None
    assert spec.gpus.type == "A40"
    [context] = worked.agent.contexts
    assert (context.instructions, context.model, context.seed, context.wall_s) == ("the instructions", "m", 3, 60)


@pytest.mark.parametrize("needs_model", [True, False])
def test_the_trajectory_says_whose_it_is_and_begins_with_what_was_told(
    place: Path, task: EvaluationTask, needs_model: bool
) -> None:
    worked = Worked(place, task, Engine(), Agent(AgentLaunch(argv=("x",), needs_model=needs_model)))
    head = worked.head
    assert (head.episode, head.agent, head.agent_version) == (f"{task.id}/5", "double", "7")
    assert head.model == ("m" if needs_model else None)
    first = worked.events[0]
    assert isinstance(first, Utterance)
    assert (first.role, first.text, first.at, first.origin) == ("user", "the instructions", 0, "harness")


def test_what_an_earlier_attempt_left_of_the_step_is_gone(place: Path, task: EvaluationTask) -> None:
    folder = EpisodeFolder(place / "episode" / "5")
    for old in (folder.agent_logs / "old", folder.submission / "old"):
        old.parent.mkdir(parents=True)
        old.write_text("x")
    folder.trajectory.write_text("x")
    folder.integrity.write_text("stays")
    worked = Worked(place, task, Engine())
    assert not (folder.agent_logs / "old").exists()
    assert not folder.submission.exists()
    assert worked.problems == []
    assert folder.integrity.read_text() == "stays"


# --- after


def test_what_was_copied_out_is_kept_where_graders_look(place: Path, task: EvaluationTask) -> None:
    engine = Engine({"src/new.py": "x"})

    def during(out: Path) -> None:
        (out / "0.stdout").write_text("printed")
        (out / "0.stderr").write_text("said")
        (out / "outbox").mkdir()
        (out / "outbox" / "log").write_text("l")

    engine.during = during
    logs = Worked(place, task, engine).folder.agent_logs
    found = {
        path.relative_to(logs).as_posix(): path.read_text()
        for path in logs.rglob("*") if path.is_file() and path.name != "run.json"
    }  # fmt: skip
    assert found == {"stdout": "printed", "stderr": "said", "workspace/src/new.py": "x", "outbox/log": "l"}


def test_a_run_that_left_nothing_leaves_empty_places(place: Path, task: EvaluationTask) -> None:
    logs = Worked(place, task, Engine()).folder.agent_logs
    assert [(logs / name).read_text() for name in ("stdout", "stderr")] == ["", ""]
    assert [list((logs / name).iterdir()) for name in ("workspace", "outbox")] == [[], []]


@pytest.mark.parametrize(("code", "reason"), [(0, "finished"), (3, "agent_error"), (None, "agent_error")])
def test_the_outcome_of_a_run_without_a_model(place: Path, task: EvaluationTask, code: int | None, reason: str) -> None:
    result = RunResult(commands=(CommandResult(exit_code=code),), message="m")
    worked = Worked(place, task, Engine(result=result))
    outcome = worked.outcome
    assert (outcome.reason, outcome.exit_code, outcome.detail) == (reason, code, "" if code == 0 else "m")
    assert (outcome.usage, outcome.model_calls, outcome.cost_usd, outcome.limits) == (None, 0, 0.0, ())
    assert 0 < outcome.wall_s < 60
    end = worked.events[-1]
    assert isinstance(end, End)
    assert (end.reason, end.exit_code, end.detail, end.at, end.origin) == (
        reason, code, outcome.detail, outcome.wall_s, "harness",
    )  # fmt: skip
    run = read_agent_run(worked.folder)
    assert (run.outcome, run.result) == (outcome, result)


def test_a_run_of_no_command_has_no_exit_code(place: Path, task: EvaluationTask) -> None:
    worked = Worked(place, task, Engine(result=RunResult(commands=(), failure=FailureKind.RUN_TIMEOUT, message="late")))
    assert (worked.outcome.exit_code, worked.outcome.reason, worked.outcome.limits) == (None, "limit", ("wall_time",))


@pytest.mark.parametrize("text", [None, "", "{}"])
def test_a_run_that_cannot_be_read_says_what_to_remove(place: Path, text: str | None) -> None:
    folder = EpisodeFolder(place)
    folder.agent_logs.mkdir()
    if text is not None:
        (folder.agent_logs / "run.json").write_text(text)
    with pytest.raises(ExpbenchError) as caught:
        read_agent_run(folder)
    assert (caught.value.kind, caught.value.object) == (
        FailureKind.RECORD_INVALID, str(folder.agent_logs / "run.json"),
    )  # fmt: skip
    assert caught.value.cause.startswith("cannot be read as AgentRun: ")
    assert "\n" not in caught.value.cause
    assert str(place) in caught.value.next_step


# --- events


def test_events_are_told_in_order_with_the_harness_own_at_the_end(place: Path, task: EvaluationTask) -> None:
    said = Problem(component="sandbox.copy", where="w", message="of the sandbox")
    result = RunResult(
        commands=(CommandResult(exit_code=None),),
        failure=FailureKind.RUN_OUTPUT_LIMIT,
        message="1 MB",
        problems=(said,),
    )
    told: tuple[Event, ...] = (
        ModelTurn(seq=0, at=0, text="t"), LimitHit(seq=0, at=0, limit="turns", detail="d"),
        CommandRun(seq=0, at=0, command="ls"),
    )  # fmt: skip
    worked = Worked(place, task, Engine(result=result), Agent(events=(*told, ValueError("half a line"))))
    assert [(event.kind, event.origin) for event in worked.events] == [
        ("utterance", "harness"), ("model_turn", "agent"), ("note", "agent"), ("command", "agent"),
        ("note", "harness"), ("note", "harness"), ("note", "harness"), ("limit", "harness"), ("end", "harness"),
    ]  # fmt: skip
    notes = [event.text for event in worked.events if isinstance(event, Note) and event.origin == "harness"]
    unread = "its log could not be read past event 3: ValueError: half a line"
    assert notes == [
        "of the sandbox",
        unread,
        "the agent's log: it tells what only the harness can, kept as its claims: 1 limit",
    ]
    assert {event.at for event in worked.events[4:]} == {worked.outcome.wall_s}
    assert worked.outcome.problems == (said, Problem(component="agents.double", where="log", message=unread))
    hit = worked.events[-2]
    assert isinstance(hit, LimitHit)
    assert (hit.limit, hit.detail) == ("output", "1 MB")
    assert worked.outcome.limits == ("output",)


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        KeyError("x"),
        TypeError("x"),
        AttributeError("x"),
        IndexError("x"),
        OSError("x"),
        RecursionError("x"),
    ],
)
def test_a_log_that_its_reader_fails_on_costs_no_episode(place: Path, task: EvaluationTask, error: Exception) -> None:
    worked = Worked(place, task, Engine(), Agent(events=(error,)))
    assert worked.outcome.reason == "finished"
    [problem] = worked.outcome.problems
    assert problem.message == f"its log could not be read past event 0: {type(error).__name__}: {error}"


def test_a_defect_of_ours_in_a_reader_is_not_taken_for_a_bad_log(place: Path, task: EvaluationTask) -> None:
    with pytest.raises(AssertionError):
        Worked(place, task, Engine(), Agent(events=(AssertionError(),)))


def test_a_service_beside_the_container_tells_and_gives_variables(place: Path, task: EvaluationTask) -> None:
    began: list[str] = []

    @contextmanager
    def companion(directory: Path, emit: Any) -> Iterator[Mapping[str, str]]:
        began.append("service")
        assert (directory / "launch.py").is_file()
        emit(Note(seq=9, at=99, text="measured", origin="agent"))
        yield {"BENCH": "1"}
        began.append("closed")

    engine = Engine()
    engine.during = lambda out: began.append("agent")
    worked = Worked(place, task, engine, companion=companion)
    assert began == ["service", "agent", "closed"]
    assert engine.runs[0][0].env["BENCH"] == "1"
    note = worked.events[1]
    assert isinstance(note, Note)
    assert (note.text, note.origin, note.seq) == ("measured", "harness", 1)
    assert 0 <= note.at < worked.outcome.wall_s, "its time is the harness's"


# --- beside it


@pytest.mark.parametrize(
    ("launch", "allow", "sockets"),
    [(AgentLaunch(argv=("x",), needs_model=False), (), set()), (ASKS, (), {MODEL_SOCKET}),
     (AgentLaunch(argv=("x",), needs_model=False), ("a.org",), {MODEL_SOCKET, EGRESS_SOCKET}),
     (ASKS, ("a.org",), {MODEL_SOCKET, EGRESS_SOCKET}),
     (AgentLaunch(argv=("x",), needs_model=False, traced=True), (), {TRACE_SOCKET})],
)  # fmt: skip
def test_sockets_are_there_while_it_runs_and_only_those_that_it_needs(
    place: Path, task: EvaluationTask, launch: AgentLaunch, allow: tuple[str, ...], sockets: set[str]
) -> None:
    seen: set[str] = set()
    engine = Engine()
    engine.during = lambda out: seen.update(path.name for path in harness_of(engine).glob("*.sock"))
    worked = Worked(place, task, engine, Agent(launch), allow=allow)
    assert seen == sockets
    assert worked.left_sockets == []
    [command] = engine.runs[0][0].commands
    assert ("8788=/harness/model.sock" in command.argv) == (MODEL_SOCKET in sockets)
    assert ("8789=/harness/egress.sock" in command.argv) == (EGRESS_SOCKET in sockets)
    assert ("/harness/watch.py" in command.argv) == launch.traced


def asking(engine: Engine, model: str = "scripted", times: int = 1) -> None:
    """The agent asks its model through the gateway's socket."""

    def during(out: Path) -> None:
        transport = httpx2.HTTPTransport(uds=str(harness_of(engine) / MODEL_SOCKET))
        with httpx2.Client(transport=transport, timeout=30) as client:
            for _ in range(times):
                body = {"model": model, "messages": [{"role": "user", "content": "hi"}]}
                client.post("http://gateway/v1/chat/completions", json=body)

    engine.during = during


@pytest.fixture
def model() -> Iterator[tuple[Upstream, ...]]:
    answer = scripted.text("hello", usage=ScriptedUsage(prompt=1000, completion=500, cached=0))
    with ProtocolServer(Script(default=answer), api_key=KEY) as server:
        yield (Upstream(provider="openai", url=server.base_url, default=False, key=SecretStr(KEY)),)


def test_calls_of_its_model_are_recorded_counted_and_priced(
    place: Path, task: EvaluationTask, model: tuple[Upstream, ...]
) -> None:
    engine = Engine()
    asking(engine, times=2)
    worked = Worked(place, task, engine, Agent(ASKS), upstreams=model, model="scripted")
    outcome = worked.outcome
    assert (outcome.model_calls, outcome.cost_usd, outcome.reason) == (2, 2 * (1000 * 1 + 500 * 2) / 1e6, "finished")
    assert outcome.usage is not None
    assert (outcome.usage.input_tokens, outcome.usage.output_tokens) == (2000, 1000)
    calls = [event for event in worked.events if isinstance(event, ModelCall)]
    assert [(call.status, call.origin) for call in calls] == [(200, "harness")] * 2
    lines = (worked.folder.agent_logs / "model_calls.jsonl").read_text().splitlines()
    assert [json.loads(line)["status"] for line in lines] == [200, 200]
    assert not [event for event in worked.events if isinstance(event, Note)]


def test_a_model_that_the_run_does_not_state_is_noted(
    place: Path, task: EvaluationTask, model: tuple[Upstream, ...]
) -> None:
    engine = Engine()
    asking(engine, "another")
    worked = Worked(place, task, engine, Agent(ASKS), upstreams=model, model="scripted")
    assert [event.text for event in worked.events if isinstance(event, Note)] == [
        "the agent called the model another, the run states scripted"
    ]
    assert worked.outcome.cost_usd is None, "its price is not known"


def test_a_limit_of_calls_ends_the_episode_and_is_named_once(
    place: Path, task: EvaluationTask, model: tuple[Upstream, ...]
) -> None:
    engine = Engine(result=RunResult(commands=(CommandResult(exit_code=1),)))
    asking(engine, times=3)
    agent = Agent(ASKS)
    agent.kind = "product"
    worked = Worked(place, task, engine, agent, upstreams=model, model="scripted", limits=SMALL.evolve(model_calls=1))
    assert (worked.outcome.reason, worked.outcome.limits) == ("limit", ("model_calls",))
    assert [event.limit for event in worked.events if isinstance(event, LimitHit)] == ["model_calls"]
    assert [event.status for event in worked.events if isinstance(event, ModelCall)] == [200, 402, 402]


@pytest.mark.parametrize(
    ("failure", "began"),
    [(FailureKind.INTERRUPTED, True), (FailureKind.RUN_TIMEOUT, True), (FailureKind.RUN_FAILED, False), (None, False)],
)
def test_a_product_that_was_stopped_before_its_first_call_had_begun(
    place: Path, task: EvaluationTask, failure: FailureKind | None, began: bool
) -> None:
    agent = Agent(ASKS)
    agent.kind = "product"
    engine = Engine(result=RunResult(commands=(CommandResult(exit_code=1),), failure=failure, message="m"))
    if began:
        assert Worked(place, task, engine, agent).outcome.reason == "limit"
    else:
        with pytest.raises(ExpbenchError) as caught:
            Worked(place, task, engine, agent)
        assert caught.value.kind is FailureKind.SANDBOX_BROKEN


def test_an_agent_without_a_model_may_reach_hosts_and_no_model(
    place: Path, task: EvaluationTask, model: tuple[Upstream, ...]
) -> None:
    """Its gateway is there for the hosts alone: the run's endpoint is not offered to it."""
    engine = Engine()
    asking(engine)
    launch = AgentLaunch(argv=("x",), needs_model=False)
    worked = Worked(place, task, engine, Agent(launch), upstreams=model, model="scripted", allow=("a.org",))
    assert [event.status for event in worked.events if isinstance(event, ModelCall)] == [404]
    assert (worked.outcome.model_calls, worked.outcome.cost_usd) == (0, 0.0)
