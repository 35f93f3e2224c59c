"""Our white agent: any adapter of `evaluation.agents`, in its container, behind A2A (PRBench B.2, steps 4 and 5).

It knows what a message brings - instructions, the task's public half, the workspace - and nothing else; the container
is made for the episode and removed after it (B.3). What it sends back are the files that changed, how the run ended,
and the trajectory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.a2a.archive import pack, unpack
from evaluation.a2a.executor import Outbox, WorkExecutor
from evaluation.a2a.messages import RUN, TRAJECTORY, WORKSPACE, EpisodeRequest, EpisodeResult, bytes_part, read_episode
from evaluation.episode import AgentOutcome, EpisodeFolder, EpisodeLimits
from evaluation.harness.agent_step import AgentStep, read_agent_run
from evaluation.harness.workspace import build_image
from evaluation.recipes import as_repository
from evaluation.task import EvaluationTask
from pipeline.progress import Reporter
from pipeline.repository import RepositoryRef
from pipeline.sandbox.base import StopHandle
from pipeline.scratch import scratch_directory

if TYPE_CHECKING:
    from a2a.types import Message

__all__ = ["WhiteExecutor"]

_NULL_COMMIT = "0" * 40


class WhiteExecutor(WorkExecutor):
    """Runs an adapter on what it is sent.

    Args:
        step: agent, sandbox, model; its limits are ceilings of what a request may ask for.
        logs: directory for the logs of environments.
        reporter: progress.
        at_once: episodes at the same time.
    """

    def __init__(self, step: AgentStep, *, logs: Path, reporter: Reporter, at_once: int = 1) -> None:
        super().__init__(at_once)
        self._step, self._logs, self._reporter = step, logs, reporter

    def work(
        self, message: Message, task_id: str, tell: Callable[[str], object], stop: StopHandle
    ) -> tuple[str, Outbox]:
        """See `WorkExecutor.work`."""
        told, request, workspace = read_episode(message)
        with scratch_directory() as scratch:
            task = _task(request, workspace, scratch)
            step = replace(self._step, limits=_within(request.limits, self._step.limits))
            tell("building the environment")
            image = build_image(task, step.sandbox, logs=self._logs, owner=step.owner, reporter=self._reporter)
            tell(f"{step.agent.name} is at work")
            folder = EpisodeFolder(scratch / "episode")
            inside = scratch / "run"
            inside.mkdir()
            outcome = step.run(task, folder, image, told, seed=request.seed, scratch=inside, stop=stop)
            return f"{step.agent.name} ended: {outcome.reason}", _outbox(step, folder, outcome)


def _task(request: EpisodeRequest, workspace: bytes, scratch: Path) -> EvaluationTask:
    """The task as far as it is known here: its public half, and the workspace as a repository of one commit.

    Raises:
        ExpbenchError: `PROTOCOL_BROKEN`: the workspace is no archive.
    """
    tree = scratch / "tree"
    unpack(workspace, tree, WORKSPACE)
    repository = as_repository(tree, RepositoryRef(url="", commit=_NULL_COMMIT), scratch / "repository")
    return EvaluationTask(public=request.task, masked_repository=repository)


def _within(asked: EpisodeLimits, most: EpisodeLimits) -> EpisodeLimits:
    """What is asked for, as far as this machine gives it."""
    optional = {}
    for name in ("model_calls", "tokens", "money_usd"):
        values = [value for value in (getattr(asked, name), getattr(most, name)) if value is not None]
        optional[name] = min(values, default=None)
    whole = ("wall_s", "cpus", "memory_mb", "disk_mb", "pids", "output_mb", "gpus")
    return EpisodeLimits(**{name: min(getattr(asked, name), getattr(most, name)) for name in whole}, **optional)


def _outbox(step: AgentStep, folder: EpisodeFolder, outcome: AgentOutcome) -> Outbox:
    run = read_agent_run(folder)
    root = folder.agent_logs / "workspace"
    changed = {
        item.path: (root / item.path).read_bytes() for item in run.result.produced if (root / item.path).is_file()
    }
    executable = frozenset(item.path for item in run.result.produced if item.executable)
    result = EpisodeResult(
        agent=step.agent.name, agent_version=step.agent.version, model=step.model, outcome=outcome,
        removed=run.result.removed,
    )  # fmt: skip
    return [
        (WORKSPACE, bytes_part(WORKSPACE, pack(changed, executable=executable), "application/gzip")),
        (RUN, bytes_part(RUN, result.model_dump_json().encode(), "application/json")),
        (TRAJECTORY, bytes_part(TRAJECTORY, folder.trajectory.read_bytes(), "application/jsonl")),
    ]
