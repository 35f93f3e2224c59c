"""The agent step of an episode whose agent is elsewhere: sent over A2A, polled, its files taken back.

It writes what the step in a container writes, so that submission, monitor, judge and reports do not know the
difference. What a white agent says of itself - trajectory, usage, how it ended - is its own account and is marked so;
what is graded are its files.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NoReturn

from pydantic import ValidationError

from evaluation.a2a.archive import pack_tree, safe_path, unpack
from evaluation.a2a.client import Either, ask, ended, state_name
from evaluation.a2a.messages import (
    RUN,
    TRAJECTORY,
    WORKSPACE,
    EpisodeRequest,
    EpisodeResult,
    episode_message,
    files_of,
    raw_of,
)
from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch
from evaluation.episode import AgentOutcome, EpisodeFolder
from evaluation.harness.agent_end import stated_end
from evaluation.harness.agent_step import AgentRun, AgentStep, Companion, no_companion
from evaluation.harness.events import claims
from evaluation.task import EvaluationTask
from evaluation.trajectory import End, Event, LimitHit, Note, TrajectoryHead, Utterance
from evaluation.trajectory_io import TrajectoryWriter, read_trajectory
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree, write_text
from pipeline.progress import Reporter
from pipeline.sandbox.base import (
    BuildSpec,
    Image,
    ProducedFile,
    RunResult,
    RunSpec,
    SandboxStatus,
    StopHandle,
)
from pipeline.schema import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from a2a.types import Task

__all__ = ["NoSandbox", "RemoteAgent", "RemoteAgentStep"]

_COMPONENT: Final = "a2a"


class RemoteAgent:
    """Stands for a white agent elsewhere, in the place of an adapter."""

    name: str = "a2a"
    description: str = "a white agent at a URL, over A2A"
    kind: Literal["bound", "loop", "product", "command"] = "product"

    def __init__(self, version: str | None = None) -> None:
        self.version = version

    def availability(self) -> AgentAvailability:
        """Always; whether it answers is seen when it is asked."""
        return AgentAvailability(available=True, detail="needs the URL of a running white agent")

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """It is not started here.

        Raises:
            ExpbenchError: `INTERNAL`: always.
        """
        raise _not_here()

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """There are none here."""
        return iter(())


class NoSandbox:
    """Where nothing is run: the agent brings its own container, and submissions are not run again."""

    name: Literal["docker", "process"] = "docker"

    def status(self) -> SandboxStatus:
        """It is not used."""
        return SandboxStatus(name=self.name, available=True, detail="not used: the agent runs elsewhere")

    def build(
        self, spec: BuildSpec, *, log: Path, owner: str, reporter: Reporter, stop: StopHandle | None = None
    ) -> Image:
        """No image is built here; its digest is that of what the agent is asked to build."""
        return Image(reference="elsewhere", digest="", spec_digest=spec.digest)

    def run(
        self, image: Image, tree: Path, spec: RunSpec, *, out: Path, owner: str, stop: StopHandle | None = None
    ) -> RunResult:
        """Nothing is run here.

        Raises:
            ExpbenchError: `SANDBOX_UNAVAILABLE`: always.
        """
        raise ExpbenchError(
            FailureKind.SANDBOX_UNAVAILABLE, "re-execution", "the green agent has no sandbox",
            consequence="What a run of the submission would show is unknown",
            next_step="Start the green agent where a Docker engine answers",
        )  # fmt: skip

    def reap(self, owner: str) -> int:
        """Nothing is left behind."""
        return 0


@dataclass(frozen=True)
class RemoteAgentStep(AgentStep):
    """See `AgentStep`; the agent is at `url`."""

    url: str = ""
    token: str | None = field(default=None, repr=False)
    """Bearer token of the white agent."""
    poll_s: float = 5.0
    grace_s: float = 900.0
    """Beside the episode's wall time: the white agent builds an environment, and packs."""
    reporter: Reporter | None = None
    cancelled: StopHandle | None = None
    """Of the whole evaluation, where somebody else than the run can end it."""

    def run(
        self, task: EvaluationTask, folder: EpisodeFolder, image: Image, told: str, *,
        seed: int, scratch: Path, stop: StopHandle, companion: Companion = no_companion,
    ) -> AgentOutcome:  # fmt: skip
        """Have a task carried out elsewhere; writes `trajectory.jsonl` and `agent/`.

        Raises:
            ExpbenchError: `NETWORK`, `PROTOCOL_BROKEN`, `REMOTE_SILENT`: nothing is known of the agent; `INTERRUPTED`;
                `DATA_UNAVAILABLE`: the runs of the task download, and what they got cannot be sent.
        """
        assert task.masked_repository is not None, "blocked tasks do not get here"
        if task.data is not None:
            raise ExpbenchError(
                FailureKind.DATA_UNAVAILABLE, task.id,
                f"its runs download {len(task.data.files)} file(s), which only containers of this machine are given",
                consequence="It was not carried out, and its scores are blocked, not 0",
                next_step="Evaluate it here (`expbench evaluate`), or leave it out with --tasks",
            )  # fmt: skip
        for old in (folder.agent_logs, folder.trajectory, folder.submission):
            remove_tree(old)
        folder.agent_logs.mkdir(parents=True)
        request = EpisodeRequest(task=task.public, limits=self.limits, seed=seed)
        message = episode_message(told, request, pack_tree(task.masked_repository), _texts(task.masked_repository))
        began = time.monotonic()
        answer = ask(
            self.url, message, token=self.token, poll_s=self.poll_s, most_s=self.limits.wall_s + self.grace_s,
            stop=Either(stop, self.cancelled), told=lambda text: self._tell(task.id, text),
        )  # fmt: skip
        wall = round(time.monotonic() - began, 3)
        self._require_work(answer)
        return self._taken(answer, task, folder, told, wall)

    def _tell(self, task: str, text: str) -> None:
        if self.reporter is not None:
            self.reporter.note("evaluate", f"{task}: white agent {text}")

    def _require_work(self, answer: Task) -> None:
        """Is there anything to take? That its machinery failed is the agent's word, and no reason to let it off.

        Raises:
            ExpbenchError: `REMOTE_SILENT`.
        """
        if not answer.artifacts and (not ended(answer) or state_name(answer) == "canceled"):
            raise ExpbenchError(
                FailureKind.REMOTE_SILENT, self.url,
                f"the white agent did not end within {self.limits.wall_s + self.grace_s:.0f} s, and handed in nothing",
                consequence="Nothing is known of its work: a hung agent and a broken connection look alike",
                next_step="Give it more time (--wall-minutes, --grace-minutes), and go on with --resume",
            )  # fmt: skip

    # --- what came back

    def _taken(self, answer: Task, task: EvaluationTask, folder: EpisodeFolder, told: str, wall: float) -> AgentOutcome:
        workspace = folder.agent_logs / "workspace"
        workspace.mkdir()
        (folder.agent_logs / "outbox").mkdir()
        for name in ("stdout", "stderr"):
            (folder.agent_logs / name).touch()
        problems = _write_files(answer, workspace)
        own = _own_account(answer)
        outcome = _outcome(answer, own, wall, problems)
        removed = tuple(name for name in (own.removed if own else ()) if safe_path(name) == name)
        result = RunResult(
            commands=(), produced=tuple(_produced(workspace)), removed=removed, problems=tuple(problems),
            duration_s=wall,
        )  # fmt: skip
        self._write_trajectory(answer, task, folder, told, outcome)
        run = AgentRun(result=result, outcome=outcome)
        write_text(folder.agent_logs / "run.json", run.model_dump_json(indent=1) + "\n")
        return outcome

    def _write_trajectory(
        self, answer: Task, task: EvaluationTask, folder: EpisodeFolder, told: str, outcome: AgentOutcome
    ) -> None:
        """Our account of the exchange, and between its ends the agent's own."""
        head = TrajectoryHead(
            episode=f"{task.id}/{folder.root.name}", agent=self.agent.name, agent_version=self.agent.version
        )
        told_events, problems = _own_events(answer, folder.agent_logs / TRAJECTORY)
        own, _, taken = claims(told_events, outcome.wall_s)
        ours = {"seq": 0, "at": outcome.wall_s, "origin": "harness"}
        with TrajectoryWriter(folder.trajectory, head) as writer:
            writer.append(Utterance(seq=0, at=0, origin="harness", role="user", text=told))
            if own:
                text = "what follows is the white agent's own account"
                writer.append(Note(seq=0, at=0, origin="harness", text=text))
            for event in own:
                writer.append(event)
            silence = [] if own else [f"the white agent sent no events: {_words(answer)}"]
            for text in (*problems, *([taken] if taken else []), *silence):
                writer.append(Note.model_validate(ours | {"text": text}))
            for name in outcome.limits:
                writer.append(LimitHit.model_validate(ours | {"limit": name, "detail": outcome.detail}))
            end = {"reason": outcome.reason, "exit_code": outcome.exit_code, "detail": outcome.detail}
            writer.append(End.model_validate(ours | end))


def _texts(root: Path) -> dict[str, str]:
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root)
        if (
            path.is_file()
            and not path.is_symlink()
            and ".git" not in name.parts
            and name.as_posix() != "instruction.md"
        ):
            try:
                found[name.as_posix()] = path.read_bytes().decode("utf-8")
            except UnicodeDecodeError:
                continue
    return found


def _write_files(answer: Task, into: Path) -> list[Problem]:
    """The files of the artifacts; those of the archive first, loose ones over them."""
    problems: list[Problem] = []
    for artifact in answer.artifacts:
        archive = raw_of(list(artifact.parts), WORKSPACE)
        if archive is not None:
            _, refused = unpack(archive, into, WORKSPACE)
            problems += [
                _problem(name, "was not taken from the archive: no plain file inside of it") for name in refused
            ]
    for name, data in files_of(list(answer.artifacts)):
        target = into / name
        if target.is_dir() or any((into / parent).is_file() for parent in Path(name).parents if parent.parts):
            problems.append(_problem(name, "was not taken: a file and a directory have one name"))
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return problems


def _produced(root: Path) -> Iterator[ProducedFile]:
    for path in sorted(root.rglob("*")):
        if path.is_file():
            data = path.read_bytes()
            yield ProducedFile(
                path=path.relative_to(root).as_posix(), size=len(data), sha256=hashlib.sha256(data).hexdigest(),
                executable=bool(path.stat().st_mode & 0o100),
            )  # fmt: skip


def _own_account(answer: Task) -> EpisodeResult | None:
    for artifact in answer.artifacts:
        data = raw_of(list(artifact.parts), RUN)
        if data is not None:
            try:
                return EpisodeResult.model_validate_json(data)
            except ValidationError:
                return None
    return None


def _own_events(answer: Task, path: Path) -> tuple[list[Event], list[str]]:
    for artifact in answer.artifacts:
        data = raw_of(list(artifact.parts), TRAJECTORY)
        if data is not None:
            path.write_bytes(data)
            try:
                _, events, problems = read_trajectory(path)
            except ExpbenchError as error:
                return [], [f"the white agent's trajectory cannot be read: {error.cause}"]
            return events, [problem.message for problem in problems]
    return [], []


def _outcome(answer: Task, own: EpisodeResult | None, wall: float, problems: list[Problem]) -> AgentOutcome:
    """How the run ended: by the task's state, and the agent's own account where it completed."""
    state, words = state_name(answer), _words(answer)
    if not ended(answer) or state == "canceled":
        return AgentOutcome(
            reason="limit", detail="the white agent did not end within its time", wall_s=wall, limits=("wall_time",),
            cost_usd=None, problems=tuple(problems),
        )  # fmt: skip
    reason, detail = "agent_error", words
    if state == "completed":  # of its account, what it used and which limits it met is nothing that we saw
        reason, detail = "finished", words
        if own is not None:
            reason, detail = stated_end(own.outcome.reason, own.outcome.detail, "finished")
    elif state == "rejected":
        reason = "refused"
    elif state in {"input_required", "auth_required"}:
        detail = f"it asks for {'input' if state == 'input_required' else 'credentials'}: {words}"
    return AgentOutcome(reason=reason, detail=detail, wall_s=wall, problems=tuple(problems))


def _words(answer: Task) -> str:
    return " ".join(part.text for part in answer.status.message.parts if part.text)[:2000]


def _problem(where: str, message: str) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message)


def _not_here() -> NoReturn:
    raise ExpbenchError(
        FailureKind.INTERNAL, "a white agent", "was to be started in a container of this machine",
        consequence="Nothing was run", next_step="Use `expbench a2a evaluate` for agents behind a URL",
    )  # fmt: skip
