"""Green and white agents as this project runs them: servers, and an evaluation that goes over both (PRBench B.2).

A green agent's evaluation is an ordinary run - the same folder, resume, monitor, judge and report - whose agent step
goes over A2A instead of into a container of its own.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pydantic import Field, JsonValue, SecretStr

from evaluation.a2a.access import OWN_TOKEN, WHITE_TOKEN, new_token, require_token_for
from evaluation.a2a.client import ask, card_of, state_name
from evaluation.a2a.green import REPORT, GreenExecutor, GreenOutcome, outcome_of
from evaluation.a2a.messages import GreenRequest, failure_of, green_message
from evaluation.a2a.remote_step import NoSandbox, RemoteAgent, RemoteAgentStep
from evaluation.a2a.server import address, agent_card, running, serve
from evaluation.agents.registry import get_agent
from evaluation.episode import EpisodeLimits
from evaluation.harness.agent_step import AgentStep
from evaluation.harness.episode_runner import EpisodeRunner, episode_folder
from evaluation.harness.graders import Graders
from evaluation.harness.run import JudgeRecord, RunRecord, begin_run, open_run, run_episodes, run_owner, task_digest
from evaluation.scores import EpisodeScores, EpisodeStatus
from flows.engines import ModelOptions
from flows.evaluate import EvaluateOptions, load_chosen
from flows.grading_model import GradingEngine, grading_model
from pipeline.digests import text_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.network.listening import listen
from pipeline.progress import Reporter
from pipeline.sandbox import StoppableSandbox, open_sandbox
from pipeline.sandbox.base import StopHandle
from pipeline.sandbox.docker import DockerSandbox
from pipeline.schema import Record
from pipeline.scratch import remove_orphaned_scratch
from pipeline.version import version

if TYPE_CHECKING:
    from a2a.types import AgentCard

    from evaluation.a2a.white import WhiteExecutor
    from evaluation.harness.upstream import Upstream

__all__ = [
    "CEILINGS", "GreenOptions", "WhiteOptions", "evaluate_over_a2a", "evaluate_white", "serve_green", "serve_white",
]  # fmt: skip

CEILINGS: Final = EpisodeLimits(wall_s=6 * 3600.0, memory_mb=8192)
"""What a white agent gives at most, unless its user says otherwise; PRBench's tasks ask for up to 6 hours and 8 GB."""
_FOREVER_S: Final = 400 * 24 * 3600.0
"""A green agent ends by itself; the one who asks it does not end it."""


class WhiteOptions(Record):
    """A white agent of ours."""

    agent: str
    agent_options: dict[str, str] = Field(default_factory=dict)
    model: str | None = None
    ceilings: EpisodeLimits = CEILINGS
    at_once: int = Field(default=1, ge=1)
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    url: str = ""
    """Under which others reach it; empty: host and port."""
    token: SecretStr | None = None
    """That is asked of who calls; needed on any address but this machine's own."""
    logs: Path = Path("expbench-white")


class GreenOptions(Record):
    """A green agent of ours: what it evaluates on, and how it grades."""

    source: Path
    out: Path
    limits: EpisodeLimits = EpisodeLimits()
    workers: int = Field(default=1, ge=1)
    judge: GradingEngine = "keyless"
    judge_model: str | None = None
    panel: int = Field(default=1, ge=1)
    poll_s: float = Field(default=5.0, gt=0)
    """PRBench's green agent looks every 30 s; the answer to a look is small."""
    grace_minutes: float = Field(default=15.0, ge=0)
    resume: bool = False
    host: str = "127.0.0.1"
    port: int = Field(default=0, ge=0, le=65535)
    url: str = ""
    """As for a white agent."""
    token: SecretStr | None = None
    """As for a white agent."""
    white_token: SecretStr | None = None
    """What is sent to the white agent."""
    rerun: bool = True
    """Run submissions again in a container here, where an engine answers; otherwise what that shows is unknown."""


# --- the white agent -------------------------------------------------------------------------------------------------


@contextmanager
def _white(options: WhiteOptions, reporter: Reporter) -> Iterator[tuple[WhiteExecutor, AgentCard, socket.socket]]:
    """(executor, card, socket) of a white agent; its containers and scratch files are gone at the end."""
    from evaluation.a2a.white import WhiteExecutor as Executor
    from pipeline.llm import load_prices

    agent = get_agent(options.agent, options.agent_options)
    found = agent.availability()
    if not found.available:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING, f"agent {agent.name}", found.detail,
            consequence="The white agent was not started",
            next_step=found.next_step or "`expbench agents` says what it needs",
        )  # fmt: skip
    if agent.name == "oracle":
        raise ExpbenchError(
            FailureKind.USAGE, "a white agent `oracle`", "needs the truth, which a white agent never gets",
            consequence="The white agent was not started", next_step="Run the oracle with `expbench evaluate`",
        )  # fmt: skip
    require_token_for(options.host, _secret(options.token))
    sandbox = open_sandbox("docker")
    assert isinstance(sandbox, StoppableSandbox)
    listener = listen(options.host, options.port)
    url = options.url or address(listener, options.host)
    owner = f"a2a-{text_digest(url)[:16]}"
    step = AgentStep(
        agent=agent, sandbox=sandbox, limits=options.ceilings, owner=owner,
        model=None if agent.kind == "bound" else options.model, upstreams=_upstreams(options, agent.kind),
        prices=load_prices(),
    )  # fmt: skip
    executor = Executor(step, logs=options.logs, reporter=reporter, at_once=options.at_once)
    description = f"White agent of expbench: runs {agent.name} in a container of its own and hands in what it made"
    card = agent_card(f"expbench-white-{agent.name}", description, "Reproduces results of a scientific paper",
                      ("paper_reproduction", "white agent"), url)  # fmt: skip
    sandbox.reap(owner)  # of a white agent that was killed at this address
    remove_orphaned_scratch(reporter.warn)
    try:
        yield executor, card, listener
    finally:
        executor.stop_all("the white agent was ended")
        listener.close()
        sandbox.reap(owner)


def _upstreams(options: WhiteOptions, kind: str) -> tuple[Upstream, ...]:
    if options.model is None or kind == "bound":
        return ()
    from evaluation.harness.upstream import upstreams_from_environment

    found, missing = upstreams_from_environment()
    if not found:
        raise missing[0]
    return found


def serve_white(options: WhiteOptions, reporter: Reporter, ready: Callable[[str], object]) -> None:
    """Answer as a white agent until the process is told to end.

    Args:
        options: agent and address.
        reporter: progress.
        ready: receives the URL.

    Raises:
        ExpbenchError: `USAGE` (agent, options, address), `TOOL_MISSING`, `SANDBOX_UNAVAILABLE`, `AUTHENTICATION`.
    """
    with _white(options, reporter) as (executor, card, listener):
        ready(card.supported_interfaces[0].url)
        serve(executor, card, listener, _secret(options.token))


# --- the green agent -------------------------------------------------------------------------------------------------


def serve_green(options: GreenOptions, reporter: Reporter, ready: Callable[[str], object]) -> None:
    """Answer as a green agent until the process is told to end; each request writes a run below `options.out`.

    Raises:
        ExpbenchError: `USAGE`: the address cannot be listened on; `RECORD_INVALID`: the source holds no tasks.
    """
    executor, card, listener = _green(options, reporter, apart=True)
    try:
        ready(card.supported_interfaces[0].url)
        serve(executor, card, listener, _secret(options.token))
    finally:
        executor.stop_all("the green agent was ended")
        listener.close()


def _green(options: GreenOptions, reporter: Reporter, *, apart: bool) -> tuple[GreenExecutor, AgentCard, socket.socket]:
    require_token_for(options.host, _secret(options.token))
    if apart and options.white_token is not None and options.token is None:
        raise ExpbenchError(
            FailureKind.USAGE, WHITE_TOKEN, "would be sent to whatever URL anybody names to this green agent",
            consequence="The green agent was not started",
            next_step=f"Let it ask for a token of its own: set {OWN_TOKEN} or give --token-file",
        )  # fmt: skip
    listener = listen(options.host, options.port)
    card = agent_card("expbench-green", "Green agent of expbench: evaluates a white agent on hidden truth",
                      "Evaluates a white agent on paper reproduction", ("evaluation", "green agent"),
                      options.url or address(listener, options.host))  # fmt: skip

    def evaluate(request: GreenRequest, task_id: str, tell: Callable[[str], object], stop: StopHandle) -> GreenOutcome:
        own = options.evolve(out=options.out / f"run-{task_id[:8]}") if apart else options
        return evaluate_white(own, request, _Told(reporter, tell), stop)

    return GreenExecutor(evaluate), card, listener


def evaluate_white(
    options: GreenOptions, request: GreenRequest, reporter: Reporter, cancelled: StopHandle | None = None
) -> GreenOutcome:
    """Have tasks carried out by a white agent, and grade what it hands in.

    Args:
        options: source, run, graders.
        request: who, which tasks, how often.
        reporter: progress.
        cancelled: ends the evaluation.

    Raises:
        ExpbenchError: `NETWORK`: the white agent does not answer; and see `flows.evaluate.evaluate`.
    """
    from pipeline.llm import load_prices

    token = _secret(options.white_token)
    card = card_of(request.white_agent_url, token)
    agent = RemoteAgent(version=f"{card.name} {card.version}".strip())
    root = options.out.resolve()
    chosen = EvaluateOptions(source=options.source, agent=agent.name, tasks=request.tasks, out=root)
    model = ModelOptions(name=options.judge_model)
    with open_run(root, resume=options.resume), grading_model(options.judge, model, root) as client:
        tasks = load_chosen(chosen, root / "workspaces", reporter)
        judge = JudgeRecord(
            engine=options.judge, model=None if client is None else client.config.model, panel=options.panel
        )
        record = RunRecord(
            run=root.name, source=str(options.source), agent=agent.name, agent_version=agent.version,
            repeats=request.repeats, limits=options.limits, judge=judge, expbench=version(),
            tasks={task.id: task_digest(task) for task in tasks},
        )  # fmt: skip
        begin_run(root, record)
        docker = DockerSandbox()
        sandbox: StoppableSandbox = docker if options.rerun and docker.status().available else NoSandbox()
        step = RemoteAgentStep(
            agent=agent, sandbox=sandbox, limits=options.limits, owner=run_owner(root), model=None, upstreams=(),
            prices=load_prices(), url=request.white_agent_url, token=token, poll_s=options.poll_s,
            grace_s=options.grace_minutes * 60, reporter=reporter, cancelled=cancelled,
        )  # fmt: skip
        runner = EpisodeRunner(
            root=root, run=record.run, agent_step=step, graders=Graders(client=client, panel=options.panel),
            agent_options={}, reporter=reporter,
        )  # fmt: skip
        rows = run_episodes(
            runner, tasks, repeats=request.repeats, workers=options.workers, sandbox=sandbox, reporter=reporter
        )
    return _outcome(root, rows, judge)


def _outcome(root: Path, rows: list[EpisodeScores], judge: JudgeRecord) -> GreenOutcome:
    count = {status: sum(row.status is status for row in rows) for status in EpisodeStatus}
    summary: dict[str, JsonValue] = {
        "run": str(root), "agent": "a2a", "judge": judge.model or "keyless", "episodes": len(rows),
        "scored": count[EpisodeStatus.SCORED], "blocked": count[EpisodeStatus.BLOCKED],
        "unknown": count[EpisodeStatus.UNKNOWN], "rows": [row.model_dump(mode="json") for row in rows],
    }  # fmt: skip
    reports: dict[str, JsonValue] = {}
    for row in rows:
        path = episode_folder(root, row.task, row.repeat).root / REPORT
        if path.is_file():
            reports[f"{row.task}/{row.repeat}"] = json.loads(path.read_bytes())
    return GreenOutcome(summary=summary, reports=reports)


# --- both ------------------------------------------------------------------------------------------------------------


def evaluate_over_a2a(
    green: GreenOptions, request: GreenRequest | None, white: WhiteOptions | None, reporter: Reporter, *,
    tasks: tuple[str, ...] = (), repeats: int = 1, green_url: str = "", green_token: SecretStr | None = None,
) -> GreenOutcome:  # fmt: skip
    """Ask a green agent - ours on a free port, or one elsewhere - to evaluate a white agent.

    Args:
        green: our green agent; of one elsewhere only `poll_s` counts.
        request: the white agent that runs somewhere; None: `white` is started on a free port.
        white: our white agent.
        reporter: progress.
        tasks: patterns of ids, for `white`.
        repeats: episodes per task, for `white`.
        green_url: a green agent elsewhere.
        green_token: what is sent to that one. Agents that are started here have tokens of their own, made up anew.

    Raises:
        ExpbenchError: `NETWORK`: an agent does not answer; what the green agent failed of.
    """
    if request is None:
        assert white is not None
        made_up = None if green_url else new_token()  # a green agent elsewhere has not heard of it
        with _white(white, reporter) as (solver, its_card, door), running(solver, its_card, door, made_up) as url:
            asked = GreenRequest(white_agent_url=url, tasks=tasks, repeats=repeats)
            told = green if made_up is None else green.evolve(white_token=SecretStr(made_up))
            return evaluate_over_a2a(told, asked, None, reporter, green_url=green_url, green_token=green_token)
    if green_url:
        return _asked(green_url, request, green.poll_s, reporter, _secret(green_token))
    own = new_token()
    executor, card, listener = _green(green, reporter, apart=False)
    try:
        with running(executor, card, listener, own) as url:
            try:
                return _asked(url, request, min(green.poll_s, 1.0), reporter, own)
            finally:
                executor.stop_all("the evaluation was ended")
    finally:
        listener.close()


def _secret(value: SecretStr | None) -> str | None:
    return None if value is None else value.get_secret_value()


def _asked(url: str, request: GreenRequest, poll_s: float, reporter: Reporter, token: str | None) -> GreenOutcome:
    answer = ask(url, green_message(request), poll_s=poll_s, most_s=_FOREVER_S, token=token,
                 told=lambda text: reporter.note("evaluate", f"green agent {text}"))  # fmt: skip
    outcome = outcome_of(answer)
    if outcome is not None and state_name(answer) == "completed":
        return outcome
    words = " ".join(part.text for part in answer.status.message.parts if part.text)
    raise ExpbenchError(
        failure_of(answer) or FailureKind.PROTOCOL_BROKEN, url, f"the green agent {state_name(answer)}: {words}",
        consequence="There are no scores", next_step="Look at what it says; its run is kept and can be resumed",
    )  # fmt: skip


class _Told:
    """Hands progress on, and tells it as the status of the A2A task."""

    def __init__(self, reporter: Reporter, tell: Callable[[str], object]) -> None:
        self._reporter, self._tell = reporter, tell
        self.start, self.end, self.warn = reporter.start, reporter.end, reporter.warn

    def step(self, stage: str, message: str) -> None:
        """See `Reporter.step`."""
        self._reporter.step(stage, message)
        self._tell(message)

    def note(self, stage: str, message: str) -> None:
        """See `Reporter.note`."""
        self._reporter.note(stage, message)
        self._tell(message)
