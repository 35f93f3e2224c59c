"""The `causal` family in the harness: a blind bench on this machine, a client of it in the agent's container.

The submission is the bench's own log, which the agent cannot write; what lies in the workspace is kept and not scored.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final

from pydantic import JsonValue

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.families.base import FamilyRules
from evaluation.families.causal.bench import Bench
from evaluation.families.causal.grading import Graded, grade, read_log
from evaluation.families.causal.loading import evaluation_task, world_of
from evaluation.families.causal.monitor import with_audit
from evaluation.families.causal.oracle import oracle_calls
from evaluation.families.causal.service import SOCKET, BenchDesk, BenchService
from evaluation.families.causal.store import is_tasks, load_tasks
from evaluation.scores import EpisodeScores
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event, ToolResult
from evaluation.verdicts import IntegrityReport
from pipeline.llm import ModelClient
from pipeline.progress import Reporter
from pipeline.schema import Problem
from pipeline.store import write_if_changed
from pipeline.task import Family

__all__ = ["LOG", "RULES"]

LOG: Final = "bench.json"
"""The bench's log, in `agent/` while it is written and in `submission/` as what is graded."""
_INSTRUCTIONS: Final = """\
{text}
# Limits

{minutes:g} minutes in all. {network} The working directory holds this text as TASK.md, and the bench's client. Nobody
will answer questions. Only what the bench saw is scored: an answer that is not submitted on it is none. Its
simulations, its budget and the changed parameter are not in this container; looking for them, here or elsewhere, is a
violation.
"""


class CausalRules(FamilyRules):
    """See `FamilyRules`."""

    family: ClassVar[Family] = Family.CAUSAL

    def is_source(self, directory: Path) -> bool:
        """See `FamilyRules.is_source`."""
        return is_tasks(directory)

    def load(
        self, directory: Path, *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
    ) -> tuple[list[EvaluationTask], list[Problem]]:
        """See `FamilyRules.load`."""
        tasks, problems = load_tasks(directory)
        found = []
        for task in tasks:
            if not only or task.id in only:
                reporter.step("tasks", task.id)
                found.append(evaluation_task(task, scratch=scratch / "causal", build=build))
        return found, problems

    def instructions(self, task: EvaluationTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
        """See `FamilyRules.instructions`."""
        reach = (
            f"Of the internet you can reach {', '.join(network)} only." if network else "There is no internet access."
        )
        return _INSTRUCTIONS.format(
            text=task.public.agent_instructions, minutes=round(limits.wall_s / 60, 1), network=reach
        )

    @contextmanager
    def companion(
        self, task: EvaluationTask, folder: EpisodeFolder, directory: Path, emit: Callable[[Event], object]
    ) -> Iterator[Mapping[str, str]]:
        """The bench of the episode."""
        count = 0

        def told(tool: str, arguments: dict[str, JsonValue], answer: dict[str, JsonValue]) -> None:
            nonlocal count
            count += 1
            output = json.dumps({"arguments": arguments, "answer": answer})
            emit(
                ToolResult(
                    seq=0, at=0, call=f"bench-{count}", name=f"bench.{tool[:40]}", output=output,
                    is_error="error" in answer,
                )
            )  # fmt: skip

        desk = BenchDesk(Bench(world_of(task)), folder.agent_logs / LOG, told)
        with BenchService(desk, directory):
            yield {"BENCH_SOCKET": f"/harness/{SOCKET}"}

    def oracle(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """The fewest sound calls that a solver who knows the answer would make."""
        plan = {"workspace": context.workspace, "calls": oracle_calls(world_of(task))}
        program = resources.files("evaluation.families.causal.workspace_files").joinpath("oracle.py")
        return AgentLaunch(
            argv=("python3", "-I", "-B", f"{context.inbox}/oracle.py", f"{context.inbox}/plan.json"),
            files={"oracle.py": program.read_text(encoding="utf-8"), "plan.json": json.dumps(plan, indent=1)},
            needs_model=False,
        )

    def collect(self, task: EvaluationTask, tree: Path, folder: EpisodeFolder) -> tuple[Problem, ...]:
        """The bench's log becomes part of the submission."""
        log = read_log(folder.agent_logs / LOG)
        write_if_changed(folder.submission / LOG, log.model_dump_json(indent=1) + "\n")
        return ()

    def integrity(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        reporter: Reporter,
    ) -> IntegrityReport:  # fmt: skip
        """The monitor for all families, the process audit (petri-bench 4.1), and looking for the hidden world."""
        report = super().integrity(task, folder, submission, client=client, reporter=reporter)
        return with_audit(report, task, folder, submission, self._graded(task, folder))

    def score(self, task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
        """See `FamilyRules.score`."""
        graded = self._graded(task, folder)
        write_if_changed(folder.root / "family.json", graded.model_dump_json(indent=1) + "\n")
        return row.evolve(metrics=row.metrics | graded.metrics())

    @staticmethod
    def _graded(task: EvaluationTask, folder: EpisodeFolder) -> Graded:
        return grade(world_of(task), read_log(folder.submission / LOG))


RULES: Final = CausalRules()
