"""The `histogram` family in the harness (Collider-Bench): tasks, workspace, companion, submission, grades."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.families.base import FamilyRules
from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity
from pipeline.task import Family

if TYPE_CHECKING:
    from evaluation.episode import EpisodeFolder, EpisodeLimits
    from evaluation.families.histogram.catalogue import CatalogueEntry
    from evaluation.scores import EpisodeScores
    from evaluation.submission import Submission
    from evaluation.task import EvaluationTask
    from evaluation.trajectory import Event
    from evaluation.verdicts import ExecutionReport, IntegrityReport
    from pipeline.llm import ModelClient
    from pipeline.progress import Reporter
    from pipeline.sandbox.base import Sandbox

__all__ = ["RULES"]

_STAGE: Final = "tasks"
_RESULTS: Final = "results"
_FILL: Final = "fill.py"
_PROGRAM: Final = """\
import os, shutil
target = os.path.join(os.environ["EXPBENCH_WORKSPACE"], os.environ["EXPBENCH_TARGET"])
shutil.copyfile(os.environ["EXPBENCH_FILLED"], target)
print("filled", os.environ["EXPBENCH_TARGET"])
"""


class HistogramRules(FamilyRules):
    """See `FamilyRules`."""

    family: ClassVar[Family] = Family.HISTOGRAM
    text_ablation: ClassVar[bool] = False

    def is_source(self, directory: Path) -> bool:
        """See `FamilyRules.is_source`."""
        from evaluation.families.histogram.catalogue import holds_tasks

        return holds_tasks(directory)

    def load(
        self, directory: Path, *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
    ) -> tuple[list[EvaluationTask], list[Problem]]:
        """See `FamilyRules.load`."""
        from evaluation.families.histogram.catalogue import read_catalogue

        entries, problems = read_catalogue(directory)
        tasks = []
        for entry in entries:
            if only and entry.task.id not in only:
                continue
            reporter.step(_STAGE, entry.task.id)
            try:
                tasks.append(_evaluation_task(entry, scratch / "histogram", build))
            except ExpbenchError as error:
                if error.kind is not FailureKind.RECORD_INVALID:
                    raise
                where = entry.directory.relative_to(directory).as_posix()
                problem = Problem(component=_STAGE, where=where, message=error.cause, severity=Severity.ERROR)
                problems.append(problem)
        return tasks, problems

    def limits(self, task: EvaluationTask, limits: EpisodeLimits) -> EpisodeLimits:
        """The published wall time (Collider-Bench 4.1: 2.5 hours), unless the run sets another than the default."""
        from evaluation.episode import EpisodeLimits as Defaults

        if limits.wall_s != Defaults().wall_s:
            return limits
        return limits.evolve(wall_s=float(task.public.resources.wall_time_s))

    def instructions(self, task: EvaluationTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
        """See `FamilyRules.instructions`."""
        from evaluation.families.histogram.public import instructions

        return instructions(_file(task), limits=limits, network=network)

    def without_tool(self, task: EvaluationTask, name: str) -> EvaluationTask:
        """See `FamilyRules.without_tool`."""
        from evaluation.families.histogram.private import private_task
        from evaluation.families.histogram.workspace import without_tool
        from evaluation.families.histogram.workspace_tools import chosen_tools

        chosen_tools([name])
        if task.masked_repository is None:
            return task
        known = private_task(task)
        tree = without_tool(task.masked_repository, known.id, known.paper, known.file, known.packages, name)
        return task.evolve(masked_repository=tree)

    @contextmanager
    def companion(
        self, task: EvaluationTask, folder: EpisodeFolder, directory: Path, emit: Callable[[Event], object]
    ) -> Iterator[Mapping[str, str]]:
        """The reader of the paper, where the workspace has its client."""
        from evaluation.families.histogram.companion import read_paper_service
        from evaluation.families.histogram.private import PAPER, private_task

        pdf = None if task.private is None else task.private / PAPER
        tree = task.masked_repository
        if pdf is None or not pdf.is_file() or tree is None or not (tree / "bin" / "read-paper").is_file():
            yield {}
            return
        log = folder.agent_logs / "read-paper.jsonl"
        paper = private_task(task).paper
        with read_paper_service(pdf, paper, directory=directory, log=log, emit=emit, seen_as="/harness") as environment:
            yield environment

    def oracle(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """Hands in the reference; bins that it does not hold are 0."""
        from evaluation.families.histogram.filling import filled_template
        from evaluation.families.histogram.private import private_task

        known = private_task(task)
        assert task.private is not None
        template = (task.private / "task" / "template" / known.file).read_text(encoding="utf-8")
        values = [0.0] * len(known.template.bins)
        for index, value in zip(known.scored, known.truth, strict=True):
            values[index] = value
        return AgentLaunch(
            argv=("python3", "-I", "-B", f"{context.inbox}/{_FILL}"),
            env={
                "EXPBENCH_WORKSPACE": context.workspace,
                "EXPBENCH_TARGET": f"{_RESULTS}/{known.file}",
                "EXPBENCH_FILLED": f"{context.inbox}/{known.file}",
            },
            files={_FILL: _PROGRAM, known.file: filled_template(template, values)},
            needs_model=False,
        )

    def collect(self, task: EvaluationTask, tree: Path, folder: EpisodeFolder) -> tuple[Problem, ...]:
        """Take the results file, changed or not."""
        name = f"{_RESULTS}/{_file(task)}"
        source, target = tree / name, folder.submission / "files" / name
        if source.parent.is_symlink() or source.is_symlink() or not source.is_file():
            return (Problem(component="histogram.collect", where=name, message="there is no such regular file"),)
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():  # the patch holds a file that was changed already, with secrets blanked
            shutil.copyfile(source, target)
        return ()

    def integrity(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        reporter: Reporter,
    ) -> IntegrityReport:  # fmt: skip
        """The monitor's rules on the record, and the model's audit (Collider-Bench 3.3, E)."""
        from evaluation.families.histogram.audit import audit_episode

        return audit_episode(task, folder, submission, client=client, reporter=reporter)

    def execution(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, sandbox: Sandbox,
        limits: EpisodeLimits, owner: str, reporter: Reporter,
    ) -> ExecutionReport | None:  # fmt: skip
        """Run the submission again: does it give its values, and does a simulation stand behind them?"""
        from evaluation.families.histogram.audit import read_audit
        from evaluation.families.histogram.reexecution import reexecute

        audit = read_audit(folder)
        return reexecute(
            task, folder, submission, corrected=None if audit is None else audit.corrected, sandbox=sandbox,
            limits=limits, owner=owner, reporter=reporter,
        )  # fmt: skip

    def score(self, task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
        """Scores of the submitted or recovered values; the overlay beside them."""
        from evaluation.families.histogram.grading import grade_episode

        return grade_episode(task, folder, row)


def _file(task: EvaluationTask) -> str:
    """Name of the file to fill, from the workspace: it is public."""
    if task.masked_repository is not None:
        found = sorted((task.masked_repository / _RESULTS).glob("*.yaml"))
        if found:
            return found[0].name
    return "*.yaml"


def _evaluation_task(entry: CatalogueEntry, scratch: Path, build: bool) -> EvaluationTask:
    from evaluation.families.histogram.private import reference_digest, write_private
    from evaluation.families.histogram.public import public_task
    from evaluation.families.histogram.workspace import build_workspace, paper_pdf
    from evaluation.task import EvaluationTask

    pdf = paper_pdf(entry)
    return EvaluationTask(
        public=public_task(entry.task, None if pdf is None else file_digest(pdf)),
        category=entry.task.difficulty,
        masked_repository=build_workspace(entry, scratch / "workspaces") if build else None,
        private=write_private(entry, scratch / "private"),
        private_digest=reference_digest(entry.task),
        blocked="" if build else "its workspace was not asked for",
    )


RULES: Final = HistogramRules()
