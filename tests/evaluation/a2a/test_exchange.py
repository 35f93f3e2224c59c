"""Green and white agents over real HTTP: ours and a stranger's white agent, refusals, failures, hostile files."""

from __future__ import annotations

import io
import json
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

import httpx
import pytest
from a2a.helpers import new_data_part, new_raw_part, new_task, new_text_part
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.tasks import TaskUpdater
from a2a.types import Artifact, Message, Part, Role, TaskState
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from evaluation.a2a.archive import pack, pack_tree, safe_path, unpack
from evaluation.a2a.client import ask, card_of, state_name
from evaluation.a2a.executor import Outbox, WorkExecutor
from evaluation.a2a.messages import (
    EPISODE,
    TRAJECTORY,
    WORKSPACE,
    GreenRequest,
    bytes_part,
    failure_of,
    files_of,
    green_message,
    raw_of,
    read_episode,
    read_green_request,
    text_message,
)
from evaluation.a2a.remote_step import NoSandbox, RemoteAgent, RemoteAgentStep
from evaluation.a2a.server import address, agent_card, running
from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.exports.forms import unexportable
from evaluation.scores import EpisodeStatus
from evaluation.trajectory import CommandRun, End, TrajectoryHead
from evaluation.trajectory_io import read_trajectory
from flows.a2a import GreenOptions, evaluate_over_a2a, evaluate_white
from flows.cli import app
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.network.listening import listen
from pipeline.progress import SilentReporter
from pipeline.sandbox import Image, StopHandle
from tests.evaluation.execution_support import make_task, with_downloads
from tests.evaluation.families.table.support import METADATA, REFERENCE, honest, write_task
from tests.evaluation.harness.support import PRICES


class Stranger(AgentExecutor):
    """A white agent that is not ours: knows A2A and nothing of expbench."""

    def __init__(self, parts: list[tuple[str, Part]], state: TaskState = TaskState.TASK_STATE_COMPLETED) -> None:
        self.parts, self.state = parts, state
        self.messages: list[Message] = []

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        message, task_id, context_id = context.message, context.task_id, context.context_id
        assert message is not None
        assert task_id is not None
        assert context_id is not None
        self.messages.append(message)
        await event_queue.enqueue_event(
            new_task(task_id, context_id, TaskState.TASK_STATE_SUBMITTED, history=[message])
        )
        updater = TaskUpdater(event_queue, task_id, context_id)
        await updater.start_work()
        for name, part in self.parts:
            await updater.add_artifact([part], name=name)
        await updater.update_status(self.state, updater.new_agent_message([new_text_part("that was it")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


class Silent(AgentExecutor):
    """Answers with a message instead of a task."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(Message(message_id="1", role=Role.ROLE_AGENT, parts=[new_text_part("STARTED")]))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


@contextmanager
def served(executor: AgentExecutor) -> Iterator[str]:
    listener = listen("127.0.0.1", 0)
    card = agent_card("stranger", "somebody's", "solves", ("solving",), address(listener, "127.0.0.1"))
    with running(executor, card, listener) as url:
        yield url


def files(texts: dict[str, str]) -> list[tuple[str, Part]]:
    return [(path, new_raw_part(text.encode(), filename=path)) for path, text in texts.items()]


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tasks")
    write_task(root)
    return root


def evaluate(source: Path, out: Path, executor: AgentExecutor, **changes: object) -> tuple[dict[str, object], Path]:
    options = GreenOptions(source=source, out=out, poll_s=0.05, grace_minutes=0.5, rerun=False)
    with served(executor) as url:
        request = GreenRequest(white_agent_url=url, tasks=("task_decay_1999",))
        outcome = evaluate_white(options.evolve(**changes), request, SilentReporter())
    (row,) = outcome.summary["rows"]  # type: ignore[misc,union-attr]
    return row, out / "episodes" / "task_decay_1999" / "0"  # type: ignore[return-value]


def test_a_stranger_s_white_agent_is_evaluated_by_its_url(source: Path, tmp_path: Path) -> None:
    stranger = Stranger(files(honest()))
    options = GreenOptions(source=source, out=tmp_path / "run", poll_s=0.05, rerun=False)
    with served(stranger) as url:
        request = GreenRequest(white_agent_url=url, tasks=("task_decay_1999",))
        outcome = evaluate_over_a2a(options, request, None, SilentReporter())
    assert (outcome.summary["scored"], outcome.summary["unknown"]) == (1, 0)
    report = outcome.reports["task_decay_1999/0"]
    assert report["grading"]["scores"]["data_accuracy"]["score"] is None  # type: ignore[index,call-overload]
    assert report["tables_handed_in"][0]["score"] == 1.0  # type: ignore[index,call-overload]
    # it was told what is public, and nothing of the truth
    (message,) = stranger.messages
    told, request_seen, workspace = read_episode(message)
    assert "reproduction/decay.py" in told
    assert request_seen.task.id == "task_decay_1999"
    assert request_seen.limits.wall_s == 300
    assert any("Things decay" in part.text for part in message.parts)
    everything = message.SerializeToString() + b"".join(tar_of(workspace).values())
    assert b"Trotter" not in everything
    assert b"0.9323938" not in everything
    # and its run is one like any other
    run = tmp_path / "run" / "episodes" / "task_decay_1999" / "0"
    _, events, problems = read_trajectory(run / "trajectory.jsonl")
    assert problems == []
    assert isinstance(events[-1], End)
    assert events[-1].reason == "finished"
    assert json.loads((run / "eval_report.json").read_text()) == report


def tar_of(data: bytes) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
        return {m.name: archive.extractfile(m).read() for m in archive if m.isreg()}  # type: ignore[union-attr]


def test_an_agent_that_speaks_only_the_older_protocol_is_evaluated_too(source: Path, tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)
    card = agent_card("old", "somebody's", "solves", ("solving",), address(listener, "127.0.0.1"))
    del card.supported_interfaces[0]
    assert [item.protocol_version for item in card.supported_interfaces] == ["0.3"]
    with running(Stranger(files(honest())), card, listener) as url:
        request = GreenRequest(white_agent_url=url, tasks=("task_decay_1999",))
        outcome = evaluate_white(
            GreenOptions(source=source, out=tmp_path, poll_s=0.05, rerun=False), request, SilentReporter()
        )
    (row,) = outcome.summary["rows"]  # type: ignore[misc,union-attr]
    assert row["metrics"]["data_accuracy_handed_in"] == 1.0  # type: ignore[index,call-overload]


def test_what_it_says_of_itself_is_kept_apart_and_checked(source: Path, tmp_path: Path) -> None:
    head = TrajectoryHead(episode="x/0", agent="oracle")
    event = CommandRun(seq=0, at=1, command="cat /x/metadata.md", output=METADATA, exit_code=0)
    own = f"{head.model_dump_json()}\n{event.model_dump_json()}\n"
    stranger = Stranger([*files(honest()), (TRAJECTORY, bytes_part(TRAJECTORY, own.encode(), "application/jsonl"))])
    row, folder = evaluate(source, tmp_path, stranger)
    head_seen, events, _ = read_trajectory(folder / "trajectory.jsonl")
    assert head_seen.agent == "a2a"  # who calls itself the oracle is not treated as one
    assert any("own account" in getattr(item, "text", "") for item in events)
    assert row["monitor"] == 0.0
    assert row["metrics"]["overall"] == 0.0  # type: ignore[index]


def test_hostile_paths_and_archives_stay_outside(source: Path, tmp_path: Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name in ("../../evil.py", "/abs.py", ".git/config", "reproduction/decay.py"):
            entry = tarfile.TarInfo(name)
            entry.size = len(REFERENCE)
            archive.addfile(entry, io.BytesIO(REFERENCE.encode()))
        link = tarfile.TarInfo("data/fig1.csv")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    stranger = Stranger([
        (WORKSPACE, bytes_part(WORKSPACE, raw.getvalue(), "application/gzip")),
        ("x", new_raw_part(b"evil", filename="../../../escape.txt")),
        ("y", Part(url="file:///etc/passwd", filename="data/other.csv")),
    ])  # fmt: skip
    row, folder = evaluate(source, tmp_path / "run", stranger)
    handed_in = sorted(
        p.relative_to(folder / "submission" / "files").as_posix()
        for p in (folder / "submission" / "files").rglob("*")
        if p.is_file()
    )
    assert handed_in == ["reproduction/decay.py"]
    assert not list(tmp_path.rglob("evil.py"))
    assert not list(tmp_path.rglob("escape.txt"))
    assert row["metrics"]["data_accuracy_handed_in"] == 0  # type: ignore[index]


@pytest.mark.parametrize(
    ("state", "reason"),
    [(TaskState.TASK_STATE_FAILED, "agent_error"), (TaskState.TASK_STATE_INPUT_REQUIRED, "agent_error")],
)
def test_an_agent_that_fails_is_graded_on_what_it_gave(
    source: Path, tmp_path: Path, state: TaskState, reason: str
) -> None:
    row, folder = evaluate(source, tmp_path, Stranger(files({"data/fig1.csv": "n,a\n1,2\n"}), state))
    assert row["status"] == "scored"
    assert json.loads((folder / "episode.json").read_text())["outcome"]["reason"] == reason


def test_a_refusal_is_the_agents_and_an_answer_without_a_task_leaves_the_episode_unknown(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaluation.harness.episode_runner._PAUSE_S", 0.0)
    row, folder = evaluate(source, tmp_path / "a", Stranger([], TaskState.TASK_STATE_REJECTED))
    assert row["status"] == "scored"
    assert row["metrics"]["data_accuracy"] == 0  # type: ignore[index]
    assert json.loads((folder / "episode.json").read_text())["outcome"]["reason"] == "refused"
    row, _ = evaluate(source, tmp_path / "b", Silent())
    assert row["status"] == EpisodeStatus.UNKNOWN.value


def test_failures_of_our_own_agents_are_told_by_their_kind() -> None:
    class Failing(WorkExecutor):
        def work(self, message: Message, task_id: str, tell: object, stop: object) -> tuple[str, Outbox]:
            if "defect" in message.parts[0].text:
                raise RuntimeError("secret")
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN, "docker", "is gone", consequence="Nothing", next_step="Wait"
            )

    with served(Failing()) as url:
        for text, kind in (("try", FailureKind.SANDBOX_BROKEN), ("defect", FailureKind.INTERNAL)):
            task = ask(url, text_message(text), poll_s=0.05, most_s=30)
            assert (state_name(task), failure_of(task)) == ("failed", kind)
            assert "secret" not in str(task.status)


def test_nobody_at_the_url_is_a_failure_of_the_network(source: Path, tmp_path: Path) -> None:
    listener = listen("127.0.0.1", 0)
    url = address(listener, "127.0.0.1")
    listener.close()
    with pytest.raises(ExpbenchError) as caught:
        card_of(url)
    assert caught.value.kind is FailureKind.NETWORK
    result = CliRunner().invoke(
        app, ["a2a", "evaluate", str(source), "--white", url, "--out", str(tmp_path / "r"), "--poll-s", "0.1"]
    )
    assert isinstance(result.exception, ExpbenchError)
    assert result.exception.kind is FailureKind.NETWORK


class Endless(Stranger):
    """Works for ever, and can be cancelled."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        import asyncio

        self.state = TaskState.TASK_STATE_WORKING
        await super().execute(context, event_queue)
        await asyncio.Event().wait()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def test_an_agent_that_never_ends_is_cancelled_and_graded_on_what_it_gave(source: Path, tmp_path: Path) -> None:
    limits = EpisodeLimits(wall_s=0.3)
    given = Endless(files({"data/fig1.csv": "n,a\n1,2\n"}))
    row, folder = evaluate(source, tmp_path / "a", given, limits=limits, grace_minutes=0.0)
    assert row["status"] == "scored"
    assert row["limits"] == ["wall_time"]
    assert json.loads((folder / "episode.json").read_text())["outcome"]["reason"] == "limit"
    row, folder = evaluate(source, tmp_path / "b", Endless([]), limits=limits, grace_minutes=0.0)
    assert (row["status"], row["metrics"]) == (EpisodeStatus.UNKNOWN.value, {})
    state = json.loads((folder / "episode.json").read_text())
    assert (state["failure"], state["attempts"]) == (FailureKind.REMOTE_SILENT.value, 1)


class Babbling:
    """An agent with a valid card whose answers are none; raw HTTP, one mode each."""

    def __init__(self, mode: str, size: int = 0) -> None:
        self.mode, self.size = mode, size

    def answer(self, request: dict[str, object]) -> Iterator[bytes]:
        task = {"id": "t", "contextId": "c", "status": {"state": "TASK_STATE_WORKING"}}
        sent = "send" in str(request["method"]).lower()
        whole = {"jsonrpc": "2.0", "id": request["id"], "result": {"task": task} if sent else task}
        if self.mode == "garbage":
            yield b"\x00\xff {{{" * 100
        elif self.mode == "no message":
            yield json.dumps({**whole, "result": {"task": [1, 2]}}).encode()
        elif self.mode == "no object":
            yield b"[1, 2, 3]"
        elif self.mode == "huge":
            for _ in range(self.size):
                yield b"1" * (1 << 16)
        elif self.mode == "cut":
            yield json.dumps(whole).encode()[:20]
        else:
            raise AssertionError(self.mode)


@contextmanager
def babbling(agent: Babbling) -> Iterator[str]:
    from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

    from google.protobuf.json_format import MessageToDict  # type: ignore[import-untyped]

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *words: object) -> None:
            """Nothing is printed."""

        def do_GET(self) -> None:
            card = MessageToDict(agent_card("babbling", "x", "solves", ("x",), url))
            self.give([json.dumps(card).encode()])

        def do_POST(self) -> None:
            self.give(agent.answer(json.loads(self.rfile.read(int(self.headers["content-length"])))))

        def give(self, parts: Iterable[bytes]) -> None:
            self.send_response(200)
            self.send_header("content-type", "application/json")
            if agent.mode == "cut" and self.command == "POST":
                self.send_header("content-length", "1000")
            self.end_headers()
            try:
                for part in parts:
                    self.wfile.write(part)
            except OSError:
                pass  # the client has had enough

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.parametrize("mode", ["garbage", "no message", "no object", "huge", "cut"])
def test_answers_that_are_none_are_failures_of_the_network(mode: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.a2a.bounded.MOST_ANSWER", 1 << 20)
    with babbling(Babbling(mode, size=64)) as url, pytest.raises(ExpbenchError) as caught:
        ask(url, text_message("work"), poll_s=0.05, most_s=5)
    assert caught.value.kind is FailureKind.NETWORK, caught.value
    if mode == "huge":
        assert "larger than 1048576 bytes" in caught.value.cause


def test_a_card_speaks_both_versions_of_the_protocol() -> None:
    with served(Stranger([])) as url:
        card = httpx.get(f"{url}.well-known/agent-card.json").json()
    assert {item["protocolVersion"] for item in card["supportedInterfaces"]} == {"1.0", "0.3"}
    assert card["url"] == url  # for clients of version 0.3


def test_usage_is_refused_before_anything_starts(source: Path, tmp_path: Path) -> None:
    for arguments in ([], ["--white", "http://x", "--agent", "noop"], ["--white", "ftp://x"], ["--agent", "oracle"]):
        result = CliRunner().invoke(app, ["a2a", "evaluate", str(source), "--out", str(tmp_path / "r"), *arguments])
        assert isinstance(result.exception, ExpbenchError)
        assert result.exception.kind is FailureKind.USAGE
    listener = listen("127.0.0.1", 0)
    with pytest.raises(ExpbenchError) as caught:
        listen("127.0.0.1", listener.getsockname()[1])
    listener.close()
    assert caught.value.kind is FailureKind.USAGE


# --- messages and archives -------------------------------------------------------------------------------------------


def test_a_green_request_comes_as_json_data_or_published_tags() -> None:
    request = GreenRequest(white_agent_url="http://w:1", tasks=("a",), repeats=2)
    assert read_green_request(green_message(request)) == request
    data = text_message("evaluate this", [new_data_part(json.loads(request.model_dump_json()))])
    assert read_green_request(data) == request
    tags = '<white_agent_url>\nhttp://w:1\n</white_agent_url><task_config>{"task_id": "a", "code_only": true}</task_config>'
    assert read_green_request(text_message(tags)).tasks == ("a.code-only",)
    for text in ("hello", '{"tasks": ["a"]}', '{"white_agent_url": "nothing"}'):
        with pytest.raises(ExpbenchError) as caught:
            read_green_request(text_message(text))
        assert caught.value.kind is FailureKind.PROTOCOL_BROKEN


def test_a_message_without_its_parts_is_refused() -> None:
    for parts in ([], [bytes_part(EPISODE, b"{}", "application/json"), bytes_part(WORKSPACE, b"x", "x")]):
        with pytest.raises(ExpbenchError) as caught:
            read_episode(text_message("do it", parts))
        assert caught.value.kind is FailureKind.PROTOCOL_BROKEN


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.text("abc/._-", min_size=1, max_size=12), st.binary(max_size=40), max_size=5))
def test_trees_survive_the_journey(tmp_path_factory: pytest.TempPathFactory, given_: dict[str, bytes]) -> None:
    root = tmp_path_factory.mktemp("t")
    written, _ = unpack(pack(given_), root / "a", "x")
    assert all(safe_path(name) is not None for name in written)
    assert all(path.resolve().is_relative_to(root) for path in root.rglob("*"))
    again, refused = unpack(pack_tree(root / "a"), root / "b", "x")
    assert refused == []
    assert {n: (root / "a" / n).read_bytes() for n in again} == {n: (root / "b" / n).read_bytes() for n in again}
    assert pack_tree(root / "a") == pack_tree(root / "b")


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300))
def test_bytes_that_are_no_archive_are_refused(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    kind = FailureKind.PROTOCOL_BROKEN
    try:
        unpack(data, tmp_path_factory.mktemp("t"), "x")
    except ExpbenchError as error:
        kind = error.kind
    assert kind is FailureKind.PROTOCOL_BROKEN


def test_an_archive_that_swells_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("evaluation.a2a.archive.MOST_BYTES", 10_000)
    with pytest.raises(ExpbenchError, match="more than 10000 bytes"):
        unpack(pack({"zeros": b"\0" * 100_000}), tmp_path / "x", "x")
    monkeypatch.setattr("evaluation.a2a.messages.MOST_BYTES", 10)
    with pytest.raises(ExpbenchError, match="more than is taken"):
        list(files_of([Artifact(artifact_id="1", name="f", parts=[new_raw_part(b"0" * 11, filename="f")])]))
    assert raw_of([new_text_part("x")], "f") is None


def test_a_task_whose_runs_download_is_blocked_elsewhere(tmp_path: Path) -> None:
    """A white agent gets the masked tree, and would work without the data."""
    task = with_downloads(make_task(tmp_path, {"a.py": "1"}), tmp_path / "cache", whole=True)
    step = RemoteAgentStep(
        agent=RemoteAgent(), sandbox=NoSandbox(), limits=EpisodeLimits(), owner="o", model=None, upstreams=(),
        prices=PRICES, url="http://127.0.0.1:9",
    )  # fmt: skip
    image = Image(reference="i", digest="d", spec_digest="s")
    with pytest.raises(ExpbenchError, match=r"download 1 file") as caught:
        step.run(task, EpisodeFolder(tmp_path / "episode"), image, "told", seed=0, scratch=tmp_path, stop=StopHandle())
    assert caught.value.kind is FailureKind.DATA_UNAVAILABLE
    assert "1 file(s)" in unexportable(task), "nor does another harness have them"
