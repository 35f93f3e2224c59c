"""The step in which the agent works: container, gateway, limits, recording.

How the run ended is read from what the harness saw itself (limits, the endpoint's failures), then from the agent's own
log, and from its exit code last: agents exit with 0 when their endpoint is dead, and with 1 when they are done. A
failure of the endpoint or the engine is raised, never turned into an outcome.
"""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from evaluation.agents.base import AgentAdapter, AgentContext, AgentLaunch
from evaluation.episode import AgentOutcome, EpisodeFolder, EpisodeLimits
from evaluation.harness.events import merge_events, split_end
from evaluation.harness.gateway import EGRESS_SOCKET, MODEL_SOCKET, Gateway
from evaluation.harness.meter import GatewayTotals
from evaluation.harness.processes import TRACE_SOCKET, WATCHER, ProcessRecorder
from evaluation.harness.submission_reader import CACHES
from evaluation.harness.upstream import Upstream
from evaluation.harness.workspace import LAUNCHER, write_inbox
from evaluation.task import EvaluationTask
from evaluation.trajectory import End, Event, LimitHit, Note, TrajectoryHead, Utterance
from evaluation.trajectory_io import TrajectoryWriter, write_trajectory
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.llm.prices import PriceList
from pipeline.sandbox.base import (
    Command,
    Gpus,
    Image,
    Limits,
    ReadOnlyMount,
    RunResult,
    RunSpec,
    StopHandle,
    StoppableSandbox,
)
from pipeline.schema import Problem, StoredRecord
from pipeline.store import write_if_changed

__all__ = ["AgentRun", "AgentStep", "Companion", "agent_limits", "no_companion", "read_agent_run"]

_HARNESS: Final = "/harness"
_PYTHON: Final = "/opt/venv/bin/python"
_MODEL_PORT: Final = 8788
_EGRESS_PORT: Final = 8789
# Agents that were tried ended 4 to 17 s after the first refusal; one that goes on may still finish its files.
_AFTER_LIMIT_S: Final = 120.0
_DEAD_AFTER: Final = 3
"""Failures of the endpoint at the end of a run, from which on the run counts as broken off by the endpoint: clients
retry two or three times and give up."""

_LIMITS: Final[dict[FailureKind, str]] = {
    FailureKind.RUN_TIMEOUT: "wall_time",
    FailureKind.RUN_OUT_OF_MEMORY: "memory",
    FailureKind.RUN_DISK_FULL: "disk",
    FailureKind.RUN_PROCESS_LIMIT: "processes",
    FailureKind.RUN_OUTPUT_LIMIT: "output",
}


Companion = Callable[[Path, Callable[[Event], object]], AbstractContextManager[Mapping[str, str]]]


def no_companion(directory: Path, emit: Callable[[Event], object]) -> AbstractContextManager[Mapping[str, str]]:
    """Nothing runs beside the container."""
    return nullcontext({})


class AgentRun(StoredRecord):
    """`agent/run.json`: what the container left behind.

    Its changed files lie in `agent/workspace` until they are taken as the submission.
    """

    SCHEMA_VERSION: ClassVar[int] = 1

    result: RunResult
    outcome: AgentOutcome


def read_agent_run(folder: EpisodeFolder) -> AgentRun:
    """The finished run of an episode.

    Raises:
        ExpbenchError: `RECORD_INVALID`.
    """
    path = folder.agent_logs / "run.json"
    try:
        return AgentRun.model_validate_json(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, str(path), f"cannot be read: {str(error).splitlines()[0]}",
            consequence="The submission cannot be taken",
            next_step=f"Remove {folder.root} and run the same command with --resume: the episode is run again",
        ) from error  # fmt: skip


def agent_limits(limits: EpisodeLimits) -> Limits:
    """The sandbox's part of an episode's limits."""
    return Limits(
        wall_s=limits.wall_s, cpus=limits.cpus, memory_mb=limits.memory_mb, pids=limits.pids,
        disk_mb=limits.disk_mb, output_mb=limits.output_mb,
    )  # fmt: skip


@dataclass(frozen=True)
class AgentStep:
    """What the agent steps of a run share."""

    agent: AgentAdapter
    sandbox: StoppableSandbox
    limits: EpisodeLimits
    owner: str
    model: str | None
    upstreams: tuple[Upstream, ...]
    prices: PriceList
    allow: tuple[str, ...] = ()
    gpu_type: str | None = None

    def run(
        self, task: EvaluationTask, folder: EpisodeFolder, image: Image, told: str, *,
        seed: int, scratch: Path, stop: StopHandle, companion: Companion = no_companion,
    ) -> AgentOutcome:  # fmt: skip
        """Let the agent work on a task once; writes `trajectory.jsonl` and `agent/`.

        Args:
            task: with its masked repository.
            folder: the episode; what an earlier attempt left of this step is removed.
            image: of the task's environment.
            told: the instructions.
            seed: for agents that take one.
            scratch: empty directory.
            stop: to give the run up.
            companion: given the directory for sockets and where its events go, the family's service beside the
                container (`FamilyRules.companion`).

        Raises:
            ExpbenchError: the machinery or the endpoint failed (nothing is known of the agent), or the agent cannot be
                started on this task (`AgentAdapter.launch`).
        """
        assert task.masked_repository is not None, "blocked tasks do not get here"
        context = self._context(told, seed)
        launch = self.agent.launch(task, context)
        inbox, harness = write_inbox(scratch, launch.files)
        for old in (folder.agent_logs, folder.trajectory, folder.submission):
            remove_tree(old)
        folder.agent_logs.mkdir(parents=True)
        head = TrajectoryHead(
            episode=f"{task.id}/{folder.root.name}", agent=self.agent.name, agent_version=self.agent.version,
            model=self.model if launch.needs_model else None,
        )  # fmt: skip
        seen: list[Event] = []
        with TrajectoryWriter(folder.trajectory, head) as writer:

            def emit(event: Event) -> None:
                seen.append(writer.append(event))

            emit(Utterance(seq=0, at=0, role="user", text=told))
            began = time.monotonic()

            def emit_now(event: Event) -> None:
                emit(event.model_copy(update={"at": round(time.monotonic() - began, 4)}))

            watch = _Watch(stop, emit)
            out = scratch / "out"
            tree = task.masked_repository
            recorder: AbstractContextManager[None] = nullcontext()
            if launch.traced:
                recorder = ProcessRecorder(harness, context.workspace, context.inbox, tree, emit_now)
            with (
                watch,
                self._gateway(launch, harness, folder, watch) as gateway,
                companion(harness, emit_now) as more,
                recorder,
            ):
                launch = launch.evolve(env=launch.env | dict(more))
                spec = self._spec(launch, inbox, harness, gateway is not None)
                result = self.sandbox.run(image, tree, spec, out=out, owner=self.owner, stop=stop)
                totals = GatewayTotals() if gateway is None else gateway.totals()
            if gateway is not None:
                totals = gateway.totals()  # with the calls that were under way
        wall = round(time.monotonic() - began, 3)
        _require_a_run(result, totals, watch, launch)
        self._keep(out, folder)
        return self._finish(folder, head, seen, result, totals, launch, wall)

    # --- before

    def _context(self, told: str, seed: int) -> AgentContext:
        url = f"http://127.0.0.1:{_MODEL_PORT}"
        speaks = {upstream.provider for upstream in self.upstreams}
        return AgentContext(
            model=self.model,
            base_url_openai=f"{url}/v1" if "openai" in speaks else None,
            base_url_anthropic=url if "anthropic" in speaks else None,
            wall_s=self.limits.wall_s,
            instructions=told,
            seed=seed,
        )

    def _gateway(self, launch: AgentLaunch, harness: Path, folder: EpisodeFolder, watch: _Watch) -> _Maybe:
        if not launch.needs_model and not self.allow:
            return _Maybe(None)
        return _Maybe(
            Gateway(
                harness,
                upstreams=self.upstreams if launch.needs_model else (),
                limits=self.limits,
                prices=self.prices,
                record=folder.agent_logs / "model_calls.jsonl",
                emit=watch.event,
                broken=watch.broken,
                model=self.model,
                allow=self.allow,
            )
        )

    def _spec(self, launch: AgentLaunch, inbox: Path, harness: Path, gateway: bool) -> RunSpec:
        context = AgentContext(wall_s=1, instructions="")
        ports = [f"{_MODEL_PORT}={_HARNESS}/{MODEL_SOCKET}"] if gateway else []
        env = dict(launch.env)
        if gateway and self.allow:
            ports.append(f"{_EGRESS_PORT}={_HARNESS}/{EGRESS_SOCKET}")
            ports.append(f"dns={_HARNESS}/{EGRESS_SOCKET}")
            proxy = f"http://127.0.0.1:{_EGRESS_PORT}"
            # plain http is refused, too, where it is seen
            env |= dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy)
            env |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
        starter = (_PYTHON, "-I", "-S", f"{_HARNESS}/{LAUNCHER}", *ports, "--")
        if launch.traced:
            starter = (*starter, _PYTHON, "-I", "-S", f"{_HARNESS}/{WATCHER}", f"{_HARNESS}/{TRACE_SOCKET}", "--")
        mounts = [ReadOnlyMount(source=mount.source, target=mount.target) for mount in launch.mounts]
        return RunSpec(
            commands=(Command(argv=(*starter, *launch.argv)),),
            env=env,
            limits=agent_limits(self.limits),
            drop=CACHES,
            mounts=(
                ReadOnlyMount(source=inbox, target=context.inbox),
                ReadOnlyMount(source=harness, target=_HARNESS),
                *mounts,
            ),
            outbox=context.outbox,
            dns="127.0.0.1" if gateway and self.allow else None,
            gpus=Gpus(count=self.limits.gpus, type=self.gpu_type) if self.limits.gpus else None,
        )

    # --- after

    @staticmethod
    def _keep(out: Path, folder: EpisodeFolder) -> None:
        """Move what was copied out into the episode."""
        for name, target in (("0.stdout", "stdout"), ("0.stderr", "stderr"), ("files", "workspace"),
                             ("outbox", "outbox")):  # fmt: skip
            if (out / name).exists():
                shutil.move(out / name, folder.agent_logs / target)
        for name in ("stdout", "stderr"):
            (folder.agent_logs / name).touch()
        for name in ("workspace", "outbox"):
            (folder.agent_logs / name).mkdir(exist_ok=True)

    def _finish(
        self, folder: EpisodeFolder, head: TrajectoryHead, seen: list[Event], result: RunResult, totals: GatewayTotals,
        launch: AgentLaunch, wall: float,
    ) -> AgentOutcome:  # fmt: skip
        logs = folder.agent_logs
        told, problems = self._read_events(logs)
        events, own_end = split_end(told)
        stopped = bool(totals.limits) or result.failure in _LIMITS or result.failure is FailureKind.INTERRUPTED
        if own_end is not None and own_end.reason == "infrastructure" and not totals.calls and not stopped:
            raise ExpbenchError(
                FailureKind.SANDBOX_BROKEN, f"agent {self.agent.name}", own_end.detail,
                consequence="The agent never began; nothing is known of it, the episode has no scores",
                next_step="Look at the episode's agent/stderr; install the agent's bundle anew with `expbench agents "
                "--install NAME --force`, then run the same command with --resume",
            )  # fmt: skip
        limits = list(totals.limits)
        problems = [*result.problems, *problems]
        tail: list[Event] = [Note(seq=0, at=wall, text=problem.message) for problem in problems]
        if result.failure in _LIMITS:
            name = _LIMITS[result.failure]
            tail.append(LimitHit.model_validate({"seq": 0, "at": wall, "limit": name, "detail": result.message}))
            limits.append(name)
        code = result.commands[0].exit_code if result.commands else None
        reason, detail = _ending(result, limits, own_end, code)
        tail.append(End.model_validate({"seq": 0, "at": wall, "reason": reason, "exit_code": code, "detail": detail}))
        write_trajectory(folder.trajectory, head, [seen[0], *merge_events(seen[1:], events), *tail])
        outcome = AgentOutcome(
            reason=reason,
            exit_code=code,
            detail=detail,
            wall_s=wall,
            usage=totals.usage,
            model_calls=totals.calls,
            cost_usd=totals.cost_usd if launch.needs_model else 0.0,
            limits=tuple(dict.fromkeys(limits)),
            problems=tuple(problems),
        )
        write_if_changed(logs / "run.json", AgentRun(result=result, outcome=outcome).model_dump_json(indent=1) + "\n")
        return outcome

    def _read_events(self, logs: Path) -> tuple[list[Event], list[Problem]]:
        """The agent's own log; a reader that fails on it costs the events after that point, not the episode."""
        events: list[Event] = []
        try:
            source: Iterable[Event] = self.agent.read_events(logs / "outbox", logs / "stdout", logs / "stderr")
            for event in source:
                events.append(event)  # noqa: PERF402 - what came before a failure is kept
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, RecursionError) as error:
            message = f"its log could not be read past event {len(events)}: {type(error).__name__}: {error}"
            return events, [Problem(component=f"agents.{self.agent.name}", where="log", message=message)]
        return events, []


class _Maybe:
    """A gateway, or none, as a context."""

    def __init__(self, gateway: Gateway | None) -> None:
        self._gateway = gateway

    def __enter__(self) -> Gateway | None:
        return None if self._gateway is None else self._gateway.__enter__()

    def __exit__(self, *error: object) -> None:
        if self._gateway is not None:
            self._gateway.__exit__(None, None, None)


class _Watch:
    """Hands events on, and ends a run that goes on after a limit, or for which going on makes no sense."""

    def __init__(self, stop: StopHandle, emit: object) -> None:
        self._stop = stop
        self._emit = emit
        self._timer: threading.Timer | None = None
        self.failure: tuple[FailureKind, str] | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def event(self, event: Event) -> None:
        """Hand it on; the first limit starts the clock."""
        self._emit(event)  # type: ignore[operator]
        if isinstance(event, LimitHit) and self._timer is None:
            text = f"the agent did not end within {_AFTER_LIMIT_S:.0f} s after its limit of {event.limit}"
            self._timer = threading.Timer(_AFTER_LIMIT_S, self._stop.stop, (text,))
            self._timer.daemon = True
            self._timer.start()

    def broken(self, kind: FailureKind, detail: str) -> None:
        """Credentials were refused: no further call can succeed."""
        self.failure = self.failure or (kind, detail)
        self._stop.stop(detail)


def _require_a_run(result: RunResult, totals: GatewayTotals, watch: _Watch, launch: AgentLaunch) -> None:
    """Was it the agent that ran? What the endpoint or the engine did to it is not its result.

    Raises:
        ExpbenchError: see `AgentStep.run`.
    """
    failure = watch.failure
    if failure is None and launch.needs_model and totals.last_failure is not None:
        never = totals.calls == 0
        if never or totals.failed_at_end >= _DEAD_AFTER:
            failure = totals.last_failure, totals.last_detail
    if failure is not None:
        raise ExpbenchError(
            failure[0], "the agent's model", failure[1],
            consequence="Nothing is known of the agent, the episode has no scores",
            next_step="Check endpoint, key and model's name, then run the same command with --resume",
        )  # fmt: skip
    if not result.commands and result.failure is FailureKind.RUN_DISK_FULL:
        raise ExpbenchError(
            FailureKind.DATA_UNAVAILABLE, "workspace", result.message,
            consequence="The agent could not be started", next_step="Give the episode a larger --disk-mb",
        )  # fmt: skip


def _ending(result: RunResult, limits: list[str], own: End | None, code: int | None) -> tuple[str, str]:
    """(reason, detail) of the end."""
    if result.failure in _LIMITS or result.failure is FailureKind.INTERRUPTED:
        return "limit", result.message
    if limits:
        return "limit", f"limit reached: {', '.join(limits)}" + (f"; {own.detail}" if own and own.detail else "")
    if own is not None and own.reason != "infrastructure":
        return own.reason, own.detail
    if code == 0:
        return "finished", ""
    return "agent_error", result.message
