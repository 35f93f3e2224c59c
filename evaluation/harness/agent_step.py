"""The step in which the agent works: container, gateway, limits, recording.

A failure of the endpoint or the engine is raised, never turned into an outcome.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Final

from evaluation.agents.base import AgentAdapter, AgentLaunch
from evaluation.episode import AgentOutcome, EpisodeFolder, EpisodeLimits
from evaluation.harness.agent_end import LIMITS_SEEN, EndWatch, ending, require_a_run, require_a_start
from evaluation.harness.events import claims, merge_events
from evaluation.harness.gateway import Gateway
from evaluation.harness.launch_spec import agent_context, launch_spec
from evaluation.harness.meter import GatewayTotals
from evaluation.harness.processes import ProcessRecorder
from evaluation.harness.upstream import Upstream
from evaluation.harness.workspace import write_inbox
from evaluation.task import EvaluationTask
from evaluation.trajectory import End, Event, LimitHit, Note, TrajectoryHead, Utterance
from evaluation.trajectory_io import TrajectoryWriter, write_trajectory
from pipeline.data.phase import with_data
from pipeline.errors import FailureKind
from pipeline.files import read_record, remove_tree
from pipeline.llm.prices import PriceList
from pipeline.sandbox.base import Image, RunResult, StopHandle, StoppableSandbox
from pipeline.schema import Problem, StoredRecord
from pipeline.store import write_if_changed

__all__ = ["AgentRun", "AgentStep", "Companion", "no_companion", "read_agent_run"]


_MOST_EVENTS: Final = 50_000
"""Of an agent's own log; the longest of a real run had some thousands."""
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
    return read_record(
        folder.agent_logs / "run.json", AgentRun, consequence="The submission cannot be taken",
        next_step=f"Remove {folder.root} and run the same command with --resume: the episode is run again",
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
        context = agent_context(told, model=self.model, upstreams=self.upstreams, wall_s=self.limits.wall_s, seed=seed)
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
                seen.append(writer.append(event.model_copy(update={"origin": "harness"})))

            emit(Utterance(seq=0, at=0, role="user", text=told))
            began = time.monotonic()

            def emit_now(event: Event) -> None:
                emit(event.model_copy(update={"at": round(time.monotonic() - began, 4)}))

            watch = EndWatch(stop, emit)
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
                spec = launch_spec(
                    launch, more, self.limits, inbox=inbox, harness=harness, gateway=gateway is not None,
                    egress=bool(self.allow), gpu_type=self.gpu_type,
                )  # fmt: skip
                if task.data is not None and not self.allow:
                    spec = with_data(spec, task.data)  # an agent that may reach hosts fetches for itself
                result = self.sandbox.run(image, tree, spec, out=out, owner=self.owner, stop=stop)
                totals = GatewayTotals() if gateway is None else gateway.totals()
            if gateway is not None:
                totals = gateway.totals()  # with the calls that were under way
        wall = round(time.monotonic() - began, 3)
        require_a_run(result, totals, watch, launch)
        self._keep(out, folder)
        return self._finish(folder, head, seen, result, totals, launch, wall)

    # --- before

    def _gateway(
        self, launch: AgentLaunch, harness: Path, folder: EpisodeFolder, watch: EndWatch
    ) -> AbstractContextManager[Gateway | None]:
        if not launch.needs_model and not self.allow:
            return nullcontext()
        return Gateway(
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
        events, own_end, taken = claims(told, wall)
        stopped = bool(totals.limits) or result.failure in LIMITS_SEEN or result.failure is FailureKind.INTERRUPTED
        require_a_start(self.agent, launch, seen, logs / "stderr", stopped=stopped)
        limits = list(totals.limits)
        problems = [*result.problems, *problems]
        ours = {"seq": 0, "at": wall, "origin": "harness"}
        said = [*(problem.message for problem in problems), *([taken] if taken else [])]
        tail: list[Event] = [Note.model_validate(ours | {"text": text}) for text in said]
        if result.failure in LIMITS_SEEN:
            name = LIMITS_SEEN[result.failure]
            tail.append(LimitHit.model_validate(ours | {"limit": name, "detail": result.message}))
            limits.append(name)
        code = result.commands[0].exit_code if result.commands else None
        reason, detail = ending(result, limits, own_end, code)
        tail.append(End.model_validate(ours | {"reason": reason, "exit_code": code, "detail": detail}))
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
        where = {"component": f"agents.{self.agent.name}", "where": "log"}
        try:
            for event in self.agent.read_events(logs / "outbox", logs / "stdout", logs / "stderr"):
                if len(events) == _MOST_EVENTS:
                    message = f"its log holds more than {_MOST_EVENTS} events: the rest was left out"
                    return events, [Problem(**where, message=message)]
                events.append(event)  # what came before a failure is kept
        except (ValueError, KeyError, TypeError, AttributeError, IndexError, OSError, RecursionError) as error:
            message = f"its log could not be read past event {len(events)}: {type(error).__name__}: {error}"
            return events, [Problem(**where, message=message)]
        return events, []
