"""Where evaluation tasks come from: a workspace, a release, an import, or EXP-Bench's published data itself.

Each source gives the same `EvaluationTask`, and the same task gives the same digests wherever it was loaded from. A
task that cannot be carried out here - its repository is not at hand - is loaded as *blocked*, with the reason: it is
part of the benchmark, and leaving it out would change the score of those that did run.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from evaluation.families.registry import family_of_source
from evaluation.imported_release import is_imported_release, load_imported_release
from evaluation.recipes import NOT_BUILT, build_from_recipe
from evaluation.releases import MARKER, load_release
from evaluation.task import EvaluationTask, private_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.expbench import PublishedDataset, is_published, quirk_counts, read_published
from pipeline.formats.expbench_import import is_imported, read_imported
from pipeline.paper import Document
from pipeline.progress import Reporter
from pipeline.schema import Problem, Severity
from pipeline.store import Workspace
from pipeline.task import MaskedPath, Status, Task

__all__ = ["EVALUABLE", "load_tasks"]

EVALUABLE: Final = (Status.MASKED, Status.APPROVED, Status.RELEASED)
"""Statuses of a workspace's tasks that have a masked, leak-checked repository."""

_COMPONENT: Final = "evaluation.sources"
_STAGE: Final = "tasks"
_MIN_PASSAGE: Final = 40
"""Characters; shorter passages (headers, page numbers) occur in any text."""


def load_tasks(
    source: str | Path,
    *,
    scratch: Path,
    reporter: Reporter,
    statuses: Collection[Status] = EVALUABLE,
    only: Collection[str] = (),
    build: bool = True,
) -> tuple[list[EvaluationTask], list[Problem]]:
    """The tasks of a source, sorted by id.

    Args:
        source: a workspace of `expbench curate`, a directory of `expbench release` or `expbench import`, or a directory
            with published EXP-Bench data. Only read.
        scratch: directory for working trees that have to be built; what is there is used again.
        reporter: progress, as steps of stage `tasks`.
        statuses: of a workspace, which tasks are taken.
        only: ids of the tasks to load (all when empty), so that no other repository is built.
        build: fetch, unpack and mask repositories; without it, tasks that need that are blocked (who reads questions
            only needs no repository).

    Returns:
        The tasks, blocked ones included, and what of the source could not be read or is not evaluated.

    Raises:
        ExpbenchError: `RECORD_INVALID`, it is none of these sources or cannot be read; `USAGE`, an id of `only` is not
            in it.
    """
    directory = Path(source)
    reporter.start(_STAGE)
    if (directory / "workspace.json").is_file():
        tasks, problems = _from_workspace(Workspace(directory), statuses, only, reporter)
    elif (directory / MARKER).is_file():
        tasks, problems = load_release(directory, scratch=scratch, reporter=reporter, only=only, build=build)
    elif is_imported_release(directory):
        tasks, problems = load_imported_release(directory, scratch=scratch, reporter=reporter, only=only, build=build)
    elif is_imported(directory):
        tasks, problems = _from_published(read_imported(directory), scratch, only, reporter, build)
    elif is_published(directory):
        tasks, problems = _from_published(read_published(directory), scratch, only, reporter, build)
    elif (rules := family_of_source(directory)) is not None:
        tasks, problems = rules.load(directory, scratch=scratch, reporter=reporter, only=only, build=build)
    else:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(directory),
            "it is no workspace, release, import or published benchmark that is known here"
            if directory.exists()
            else "does not exist",
            consequence="There are no tasks to evaluate",
            next_step="Name a directory that `expbench curate`, `release` or `import` wrote",
        )
    _check_only(only, tasks, str(directory))
    blocked = sum(bool(task.blocked) for task in tasks)
    # nobody who reads questions alone misses a repository
    reporter.end(_STAGE, f"{len(tasks)} task(s)" + (f", {blocked} of them blocked" if build else ""))
    return tasks, problems


def _check_only(only: Collection[str], tasks: list[EvaluationTask], source: str) -> None:
    missing = sorted(set(only) - {task.id for task in tasks})
    if missing:
        raise ExpbenchError(
            FailureKind.USAGE,
            ", ".join(missing),
            f"no task that can be evaluated has this id in {source}",
            consequence="Nothing was evaluated",
            next_step="Choose one of: " + (", ".join(task.id for task in tasks[:20]) or "`expbench show` lists them"),
        )


# --- workspaces


def _from_workspace(
    workspace: Workspace, statuses: Collection[Status], only: Collection[str], reporter: Reporter
) -> tuple[list[EvaluationTask], list[Problem]]:
    workspace.info()  # raises when it is none
    tasks: list[EvaluationTask] = []
    problems: list[Problem] = []
    texts: dict[str, tuple[str, ...]] = {}
    for task_id in workspace.task_ids():
        if only and task_id not in only:
            continue
        task = workspace.load_task(task_id)
        if task.status not in statuses:
            message = f"its status is {task.status.value}: not evaluated"
            problems.append(Problem(component=_COMPONENT, where=task_id, message=message, severity=Severity.INFO))
            continue
        reporter.step(_STAGE, task_id)
        if task.paper.id not in texts:
            texts[task.paper.id] = _passages(workspace, task.paper.id, problems)
        tasks.append(_workspace_task(workspace, task, texts[task.paper.id]))
    return tasks, problems


def _workspace_task(workspace: Workspace, task: Task, texts: tuple[str, ...]) -> EvaluationTask:
    masked = workspace.masked_repository(task.id)
    original = workspace.root / "repository"
    pdf = workspace.paper_dir(task.paper.id) / "paper.pdf"
    there = (masked / ".git").is_dir()
    return EvaluationTask(
        public=task.public(),
        truth=task.truth,
        masked_paths=task.masked,
        masked_repository=masked if there else None,
        original_tree=original if original.is_dir() else None,
        paper_pdf=pdf if pdf.is_file() else None,
        paper_texts=texts,
        blocked="" if there else "its masked repository is not in the workspace: curate it again",
        private_digest=private_digest(task.truth),
    )


def _passages(workspace: Workspace, paper: str, problems: list[Problem]) -> tuple[str, ...]:
    """The paper's passages, for the check of paper access."""
    path = workspace.paper_dir(paper) / "document.json"
    try:
        document = Document.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        message = f"the paper's text cannot be read ({str(error).splitlines()[0]}): copies of it are not recognised"
        problems.append(Problem(component=_COMPONENT, where=f"papers/{paper}/document.json", message=message))
        return ()
    texts = (re.sub(r"\s+", " ", passage.text).strip() for passage in document.passages)
    return tuple(text for text in texts if len(text) >= _MIN_PASSAGE)


# --- published data


def _from_published(
    dataset: PublishedDataset, scratch: Path, only: Collection[str], reporter: Reporter, build: bool
) -> tuple[list[EvaluationTask], list[Problem]]:
    tasks: list[EvaluationTask] = []
    problems = _told(dataset.problems)
    categories = {paper.paper.id: paper.category for paper in dataset.papers}
    for item in dataset.tasks:
        task = item.task
        if only and task.id not in only:
            continue
        reporter.step(_STAGE, task.id)
        mask = _published_mask(task)
        built = (
            build_from_recipe(task.id, task.repository, mask, scratch=scratch, reporter=reporter, with_readme=True)
            if build
            else NOT_BUILT
        )
        problems += built.problems
        tasks.append(
            EvaluationTask(
                public=task.public(),
                truth=task.truth,
                masked_paths=mask,
                category=categories.get(task.paper.id, ""),
                masked_repository=built.masked,
                original_tree=built.original,
                blocked=built.blocked,
                private_digest=private_digest(task.truth),
            )
        )
    return tasks, problems


def _told(problems: Sequence[Problem]) -> list[Problem]:
    """Warnings and errors one by one; quirks that took nothing away as one line each (there are two a task)."""
    harmless = [problem for problem in problems if problem.severity is Severity.INFO]
    found = [problem for problem in problems if problem.severity is not Severity.INFO]
    for quirk, count in quirk_counts(harmless).items():
        message = f"{count} x {quirk}"
        found.append(Problem(component=_COMPONENT, where="published data", message=message, severity=Severity.INFO))
    return found


def _published_mask(task: Task) -> tuple[MaskedPath, ...]:
    """What the record masks, and its source scripts: half of the records name no mask of their own."""
    mask = {item.path: item for item in task.masked}
    for script in task.truth.sources:
        mask.setdefault(script.path, MaskedPath(path=script.path, action="removed", reason="source script"))
    return tuple(mask[path] for path in sorted(mask))
