"""The `table` family in the harness (PRBench): tasks, workspace, oracle, monitor, judge, metrics."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.families.base import FamilyRules
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Problem, Severity
from pipeline.task import Family, Verdict

if TYPE_CHECKING:
    from evaluation.episode import EpisodeFolder, EpisodeLimits
    from evaluation.families.table.records import TableTask
    from evaluation.scores import EpisodeScores
    from evaluation.submission import Submission
    from evaluation.task import EvaluationTask
    from evaluation.verdicts import ExecutionReport, Finding, IntegrityReport, Judgement
    from pipeline.llm import ModelClient
    from pipeline.progress import Reporter
    from pipeline.sandbox.base import BuildSpec, Sandbox
    from pipeline.task import PublicTask

__all__ = ["EVAL_REPORT", "GRADES", "RULES", "evaluation_task", "table_task"]

GRADES: Final = "grades.json"
EVAL_REPORT: Final = "eval_report.json"
_STAGE: Final = "tasks"
_SOLUTION: Final = "solution"
_BLOCKING: Final = frozenset({FailureKind.ENVIRONMENT_UNBUILDABLE, FailureKind.NETWORK, FailureKind.TOOL_MISSING})


class TableRules(FamilyRules):
    """See `FamilyRules`."""

    family: ClassVar[Family] = Family.TABLE
    text_ablation: ClassVar[bool] = False

    # --- tasks

    def is_source(self, directory: Path) -> bool:
        """See `FamilyRules.is_source`."""
        from evaluation.families.table.reading import task_directories

        return bool(task_directories(directory))

    def load(
        self, directory: Path, *, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
    ) -> tuple[list[EvaluationTask], list[Problem]]:
        """See `FamilyRules.load`. Code-only tasks are built only when `only` names them."""
        from evaluation.families.table.reading import read_table_tasks
        from evaluation.families.table.records import Mode

        modes = (Mode.FULL, Mode.CODE_ONLY) if only or not build else (Mode.FULL,)
        found, problems = read_table_tasks(directory, modes=modes)
        tasks = []
        for task in found:
            if not only or task.id in only:
                reporter.step(_STAGE, task.id)
                tasks.append(_loaded(task, scratch / "table", build, reporter))
        return tasks, [problem for problem in problems if problem.severity is not Severity.INFO]

    # --- the agent

    def limits(self, task: EvaluationTask, limits: EpisodeLimits) -> EpisodeLimits:
        """Time and memory are the task's own (PRBench B.1), unless the run sets others than the general defaults."""
        from evaluation.episode import EpisodeLimits as Defaults

        default, resources = Defaults(), task.public.resources
        changes: dict[str, float | int] = {}
        if limits.wall_s == default.wall_s:
            changes["wall_s"] = float(resources.wall_time_s)
        if limits.memory_mb == default.memory_mb:
            changes["memory_mb"] = resources.memory_mb
        return limits.evolve(**changes)

    def instructions(self, task: EvaluationTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
        """See `FamilyRules.instructions`."""
        from evaluation.families.table.workspace import instructions

        return instructions(table_task(task), limits=limits, network=network)

    def oracle(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """Hands in the truth, the reference implementation, and the graders' text as its analysis."""
        from evaluation.families.table.handed_in import solution

        files = solution(table_task(task))
        if not files:
            raise ExpbenchError(
                FailureKind.DATA_UNAVAILABLE, task.id, "it has neither tables nor a reference implementation",
                consequence="The oracle was not run on it", next_step="Choose other tasks with --tasks",
            )  # fmt: skip
        copy = 'cp -R "$1/." . && find . -path ./.git -prune -o -type f -print | sort'
        return AgentLaunch(
            argv=("/bin/sh", "-c", copy, "oracle", f"{context.inbox}/{_SOLUTION}"),
            files={f"{_SOLUTION}/{path}": text for path, text in files.items()},
            needs_model=False,
        )

    # --- grades

    def integrity(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        reporter: Reporter,
    ) -> IntegrityReport:  # fmt: skip
        """See `FamilyRules.integrity`."""
        from evaluation.families.table.integrity import check_table_integrity

        return check_table_integrity(task, table_task(task), folder, submission, client=client, reporter=reporter)

    def execution(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, sandbox: Sandbox,
        limits: EpisodeLimits, owner: str, reporter: Reporter,
    ) -> ExecutionReport | None:  # fmt: skip
        """Run the submission again: only tables that this writes count. None in code-only mode."""
        from evaluation.families.table.reexecution import reexecute

        return reexecute(
            task, table_task(task), folder, submission, sandbox=sandbox, limits=limits, owner=owner, reporter=reporter
        )

    def judge(
        self, task: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, client: ModelClient | None,
        panel: int = 1, reporter: Reporter,
    ) -> Judgement | None:  # fmt: skip
        """Grades of all dimensions, in `grades.json`; the judgement names the grader."""
        from evaluation.families.table.grading import grade
        from evaluation.families.table.handed_in import read_directory
        from evaluation.families.table.reexecution import read_reexecution
        from evaluation.verdicts import Judgement as Result
        from pipeline.store import write_if_changed

        known, shown = table_task(task), read_reexecution(folder)
        certain = shown is not None and (shown.ran.verdict is not Verdict.UNKNOWN or bool(shown.tables))
        grades = grade(
            known, read_directory(folder.submission / "files"), tables=shown.tables if shown and certain else None,
            client=client, panel=panel, reporter=reporter,
        )  # fmt: skip
        write_if_changed(folder.root / GRADES, grades.model_dump_json(indent=1) + "\n")
        missed = [item for item in grades.dimensions if item.score is not None and item.score < 1]
        return Result(
            grader=grades.grader,
            error_analysis=tuple(("implementation", f"{item.name} {item.score:.2f}: {item.reason}") for item in missed),
            problems=grades.problems,
        )

    def score(self, task: EvaluationTask, folder: EpisodeFolder, row: EpisodeScores) -> EpisodeScores:
        """The family's metrics, with what integrity and re-execution found applied.

        `eval_report.json` and `family.json` say why; values that were typed make the monitor of the row fail.
        """
        from evaluation.families.table.grading import TableGrades, apply_findings
        from evaluation.families.table.handed_in import read_directory
        from evaluation.families.table.reexecution import read_reexecution
        from evaluation.families.table.report import evaluation_report, metrics_of
        from evaluation.verdicts import IntegrityReport as Report
        from pipeline.store import write_if_changed

        if not (folder.root / GRADES).is_file():
            return row
        known, shown = table_task(task), read_reexecution(folder)
        grades = TableGrades.model_validate_json((folder.root / GRADES).read_bytes())
        findings: tuple[Finding, ...] = () if shown is None else shown.findings
        monitor = Verdict.UNKNOWN
        if folder.integrity.is_file():
            report = Report.model_validate_json(folder.integrity.read_bytes())
            findings, monitor = (*report.findings, *findings), report.verdict
        if shown is not None and shown.findings and monitor is Verdict.PASS:
            monitor = Verdict.UNKNOWN
        applied = apply_findings(grades, findings, monitor)
        files = sorted(read_directory(folder.submission / "files").texts)
        metrics = metrics_of(applied, findings)
        told = evaluation_report(known, applied, findings, files)
        write_if_changed(folder.root / EVAL_REPORT, json.dumps(told, indent=1, ensure_ascii=False) + "\n")
        details = {"metrics": metrics, "grades": applied.model_dump(mode="json")}
        write_if_changed(folder.root / "family.json", json.dumps(details, indent=1, ensure_ascii=False) + "\n")
        known_monitor: dict[Verdict, float | None] = {Verdict.PASS: 1.0, Verdict.FAIL: 0.0, Verdict.UNKNOWN: None}
        return row.evolve(metrics=row.metrics | metrics, monitor=known_monitor[applied.monitor])


RULES: Final = TableRules()


def table_task(task: EvaluationTask) -> TableTask:
    """The task with what only graders see.

    Raises:
        ExpbenchError: `RECORD_INVALID`: its directory is not there any more, or was changed into something else.
    """
    from evaluation.families.table.reading import CODE_ONLY_SUFFIX, load_table_task
    from evaluation.families.table.records import Mode

    if task.private is None:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID, task.id, "has no directory with its truth",
            consequence="It can neither be told nor graded", next_step="Evaluate on the directory of the import",
        )  # fmt: skip
    mode = Mode.CODE_ONLY if task.id.endswith(CODE_ONLY_SUFFIX) else Mode.FULL
    return load_table_task(task.private, mode)[0]


def evaluation_task(
    task: TableTask, workspace: Path | None = None, blocked: str = "", spec: BuildSpec | None = None
) -> EvaluationTask:
    """The task as the harness knows it; without a workspace it can be graded, not carried out."""
    from evaluation.families.table.workspace import truth_digest
    from evaluation.task import EvaluationTask as Loaded

    packages = () if spec is None else spec.packages
    return Loaded(
        public=_public(task, packages),
        masked_repository=workspace,
        blocked=blocked,
        private=task.root,
        private_digest=truth_digest(task),
    )


def _loaded(task: TableTask, scratch: Path, build: bool, reporter: Reporter) -> EvaluationTask:
    from evaluation.families.table.workspace import blocked_by, build_workspace, environment_of

    if not build:
        return evaluation_task(task, blocked="its workspace was not asked for")
    workspace = build_workspace(task, scratch)
    try:
        return evaluation_task(task, workspace, spec=environment_of(task.container.packages, scratch, reporter))
    except ExpbenchError as error:
        if error.kind not in _BLOCKING:
            raise
        return evaluation_task(task, workspace, blocked_by(error))


def _public(task: TableTask, packages: tuple[str, ...]) -> PublicTask:
    from pipeline.paper import Paper
    from pipeline.repository import RepositoryRef
    from pipeline.task import Environment, Provenance, Resources, Status
    from pipeline.task import PublicTask as Public

    author = f" ({task.author}{f', {task.year}' if task.year else ''})" if task.author else ""
    doi = task.doi if task.doi.startswith("10.") else ""
    return Public(
        id=task.id,
        family=Family.TABLE,
        status=Status.RELEASED,
        paper=Paper(
            id=task.id.removesuffix(".code-only")[:80].rstrip("-._"), title=task.title, year=task.year,
            url=f"https://doi.org/{doi}" if doi else None,
        ),
        repository=RepositoryRef(url="", commit="0" * 40),
        question=f"Reproduce the results of {task.title}{author}.",
        method="",
        agent_instructions=task.instruction,
        environment=Environment(
            python=task.container.python, packages=packages,
            declared_in=("task.yaml",) if task.container.packages else (),
        ),
        resources=Resources(memory_mb=task.container.memory_mb, wall_time_s=task.container.timeout_s),
        provenance=Provenance(engine="keyless", stages=(("prbench", "1"),)),
    )  # fmt: skip
