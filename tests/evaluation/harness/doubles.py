"""An engine, an agent, graders and a listener in memory: a whole episode without a container, and what each was asked."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Literal

from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch
from evaluation.harness.agent_step import AgentStep
from evaluation.harness.episode_runner import EpisodeRunner
from evaluation.harness.graders import Graders
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from evaluation.verdicts import ExecutionReport, Grader, IntegrityReport, ItemVerdict, Judgement
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import (
    BuildSpec,
    CommandResult,
    Image,
    ProducedFile,
    RunResult,
    RunSpec,
    SandboxStatus,
)
from pipeline.task import Verdict
from tests.evaluation.harness.support import PRICES, SMALL


def failure(kind: FailureKind, object_: str = "the engine", cause: str = "broke") -> ExpbenchError:
    return ExpbenchError(kind, object_, cause, consequence="c", next_step="n")


class Heard:
    """A reporter that keeps what it is told."""

    def __init__(self) -> None:
        self.started: list[tuple[str, int | None]] = []
        self.steps: list[str] = []
        self.notes: list[tuple[str, str]] = []
        self.ended: list[tuple[str, str]] = []
        self.warnings: list[str] = []

    def start(self, stage: str, total: int | None = None) -> None:
        self.started.append((stage, total))

    def step(self, stage: str, message: str) -> None:
        self.steps.append(message)

    def note(self, stage: str, message: str) -> None:
        self.notes.append((stage, message))

    def end(self, stage: str, message: str = "") -> None:
        self.ended.append((stage, message))

    def warn(self, message: str) -> None:
        self.warnings.append(message)


class Engine:
    """A sandbox in which every run leaves the same files; `fail` raises the next errors of builds and runs."""

    name: Literal["docker"] = "docker"

    def __init__(self, files: Mapping[str, str] | None = None, result: RunResult | None = None) -> None:
        self.files = dict(files or {})
        self.result = result or RunResult(commands=(CommandResult(exit_code=0),))
        self.fail_build: list[ExpbenchError] = []
        self.fail_run: list[ExpbenchError] = []
        self.during: Callable[[Path], object] = lambda out: None
        self.builds: list[tuple[BuildSpec, dict[str, Any]]] = []
        self.runs: list[tuple[RunSpec, dict[str, Any]]] = []
        self.reaped: list[str] = []
        self.left = 0

    def status(self) -> SandboxStatus:
        return SandboxStatus(name="docker", available=True, detail="a double")

    def build(self, spec: BuildSpec, **options: Any) -> Image:
        self.builds.append((spec, options))
        if self.fail_build:
            raise self.fail_build.pop(0)
        return Image(reference="image", digest="sha256:image", spec_digest=spec.digest)

    def run(self, image: Image, tree: Path, spec: RunSpec, *, out: Path, **options: Any) -> RunResult:
        self.runs.append((spec, {"image": image, "tree": tree, "out": out} | options))
        if self.fail_run:
            raise self.fail_run.pop(0)
        produced = []
        for name, text in self.files.items():
            path = out / "files" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            digest = hashlib.sha256(text.encode()).hexdigest()
            produced.append(ProducedFile(path=name, size=len(text), sha256=digest))
        out.mkdir(parents=True, exist_ok=True)
        self.during(out)
        return self.result.evolve(produced=tuple(produced))

    def reap(self, owner: str) -> int:
        self.reaped.append(owner)
        return self.left


class Agent:
    """Starts with whatever launch it is given, and tells what it is given to tell."""

    name: ClassVar[str] = "double"
    description: ClassVar[str] = "of the tests"
    kind: Literal["bound", "loop", "product", "command"] = "command"
    version: str | None = "7"

    def __init__(self, launch: AgentLaunch | None = None, events: tuple[Event | Exception, ...] = ()) -> None:
        self.launch_given = launch or AgentLaunch(argv=("do", "it"), needs_model=False)
        self.events = events
        self.contexts: list[AgentContext] = []

    def availability(self) -> AgentAvailability:
        return AgentAvailability(available=True, detail="always")

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        self.contexts.append(context)
        return self.launch_given

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        for event in self.events:
            if isinstance(event, Exception):
                raise event
            yield event


INTEGRITY = IntegrityReport(verdict=Verdict.PASS, reason="by a double", grader=Grader(engine="keyless"))
EXECUTION = ExecutionReport(verdict=Verdict.PASS, reason="by a double")
JUDGEMENT = Judgement(
    design=(ItemVerdict(item="d", text="d", verdict=Verdict.PASS, reason="r"),),
    implementation=(ItemVerdict(item="i", text="i", verdict=Verdict.FAIL, reason="r"),),
    conclusion=(ItemVerdict(item="c", text="c", verdict=Verdict.PASS, reason="r"),),
    grader=Grader(engine="keyless", version="9"),
)


class Grading:
    """Graders that say what they are told to, and keep what they were asked with."""

    def __init__(
        self,
        integrity: IntegrityReport = INTEGRITY,
        execution: ExecutionReport | None = EXECUTION,
        judgement: Judgement | None = JUDGEMENT,
    ) -> None:
        self.answers = {"integrity": integrity, "execution": execution, "judge": judgement}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def graders(self, **options: Any) -> Graders:
        made = {name: self._grader(name) for name in self.answers}
        return Graders(**made, **options)

    def _grader(self, name: str) -> Any:
        def grade(task: Any, folder: Any, submission: Any, **options: Any) -> Any:
            self.asked.append((name, {"task": task, "folder": folder, "submission": submission} | options))
            return self.answers[name]

        return grade

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.asked]


def agent_step(engine: Engine, agent: Agent | None = None, **options: Any) -> AgentStep:
    given = {"limits": SMALL, "owner": "o", "model": "m", "upstreams": (), "prices": PRICES} | options
    return AgentStep(agent=agent or Agent(), sandbox=engine, **given)  # type: ignore[arg-type]


def runner(
    root: Path, engine: Engine, grading: Grading, heard: Heard | None = None, pauses: list[float] | None = None,
    agent: Agent | None = None, graders: Mapping[str, Any] | None = None, **options: Any,
) -> EpisodeRunner:  # fmt: skip
    """A runner of these; `pauses` receives how long it would have waited."""
    return EpisodeRunner(
        root=root, run="the run", agent_step=agent_step(engine, agent, **options),
        graders=grading.graders(**(graders or {})), agent_options={"effort": "high"}, reporter=heard or Heard(),
        pause=([] if pauses is None else pauses).append,
    )  # fmt: skip
