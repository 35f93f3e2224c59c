"""Tasks from a directory that `expbench release` wrote: tables, and masked repositories as archives or recipes."""

from __future__ import annotations

import json
import shutil
import tarfile
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from evaluation.recipes import NOT_BUILT, Built, as_repository, build_from_recipe
from evaluation.task import EvaluationTask, private_digest
from masking.records import TextEdit
from pipeline.digests import file_digest
from pipeline.files import remove_tree, replace_directory
from pipeline.formats.family_parts import FamilyPart, part_of
from pipeline.formats.huggingface import MARKER, PRIVATE, read_tables
from pipeline.formats.release_tables import MaskRecipe, originals_name
from pipeline.paper import Paper
from pipeline.progress import Reporter
from pipeline.repository import RepositoryRef
from pipeline.schema import Problem, Severity
from pipeline.scratch import scratch_directory
from pipeline.task import (
    Band,
    CodeEvidence,
    Condition,
    DesignVariable,
    Environment,
    Expected,
    ExperimentTruth,
    Family,
    MaskedPath,
    NumericClaim,
    Provenance,
    PublicTask,
    Requirement,
    Resources,
    SourceScript,
    Status,
    Usage,
)
from pipeline.validation.numbers import parse_number

__all__ = ["MARKER", "load_release", "release_recipe", "release_repository"]

_COMPONENT: Final = "evaluation.releases"


def load_release(
    directory: Path, *, scratch: Path, reporter: Reporter, only: Collection[str] = (), build: bool = True
) -> tuple[list[EvaluationTask], list[Problem]]:
    """The tasks of a release, sorted by id; a row that cannot be read is a problem.

    Args:
        directory: a release; only read.
        scratch: receives the working trees.
        reporter: progress.
        only: ids; empty means all.
        build: unpack or build the masked repositories; without it all tasks are blocked.

    Raises:
        ExpbenchError: `RECORD_INVALID`, the tables are missing or cannot be read.
    """
    public, private = read_tables(directory)
    tasks: list[EvaluationTask] = []
    problems: list[Problem] = []
    parts: list[FamilyPart] = []
    for task_id in sorted(public):
        if public[task_id].get("files") is not None:
            _add_part(parts, public[task_id], private.get(task_id), problems)
            continue
        if only and task_id not in only:
            continue
        reporter.step("tasks", task_id)
        try:
            tasks.append(_task(public[task_id], private.get(task_id), directory, scratch, reporter, build, problems))
        except (ValidationError, KeyError, TypeError, ValueError) as error:
            message = f"the row cannot be read as a task ({str(error).splitlines()[0]})"
            problems.append(Problem(component=_COMPONENT, where=task_id, message=message, severity=Severity.ERROR))
    if parts:
        from evaluation.exports.families.restored import load_family_parts

        found, told = load_family_parts(parts, scratch=scratch, only=only, reporter=reporter, build=build)
        tasks, problems = sorted([*tasks, *found], key=lambda task: task.id), [*problems, *told]
    return tasks, problems


def _add_part(
    parts: list[FamilyPart], public: Mapping[str, Any], private: Mapping[str, Any] | None, problems: list[Problem]
) -> None:
    """Read the rows of a task that is made of files."""
    try:
        parts.append(part_of(public, private))
    except (ValidationError, KeyError, TypeError, ValueError) as error:
        message = f"the row cannot be read as a task ({str(error).splitlines()[0]})"
        problems.append(Problem(component=_COMPONENT, where=public["id"], message=message, severity=Severity.ERROR))


def _task(
    row: Mapping[str, Any],
    private: Mapping[str, Any] | None,
    directory: Path,
    scratch: Path,
    reporter: Reporter,
    build: bool,
    problems: list[Problem],
) -> EvaluationTask:
    public = _public(row)
    truth = _truth(private) if private is not None else None
    if private is None:
        message = "the release holds no ground truth for it: it can be run, not judged"
        problems.append(Problem(component=_COMPONENT, where=public.id, message=message))
    masked = _masked(private) if private is not None else ()
    built = NOT_BUILT
    if build:
        archive, recipe = row["masked_repository"], release_recipe(row, private)
        built = release_repository(public, archive, masked, recipe, directory, scratch, reporter)
    problems += built.problems
    return EvaluationTask(
        public=public,
        truth=truth,
        masked_paths=masked,
        masked_repository=built.masked,
        original_tree=built.original,
        blocked=built.blocked,
        private_digest=private_digest(truth),
    )


def _public(row: Mapping[str, Any]) -> PublicTask:
    """The whole public half where the release holds it; releases before that column are read from the single ones."""
    if row.get("record"):
        return PublicTask.model_validate_json(row["record"])
    return PublicTask(
        id=row["id"],
        family=Family(row["family"]),
        status=Status.RELEASED,
        paper=Paper(id=row["paper_id"], title=row["paper_title"]),
        repository=RepositoryRef(
            url=row["repository_url"], commit=row["repository_commit"], license=row["repository_license"]
        ),
        question=row["question"],
        method=row["method"],
        agent_instructions=row["agent_instructions"],
        environment=Environment(
            python=row["python"], packages=row["packages"], system_packages=row.get("system_packages") or ()
        ),
        resources=Resources(**row["resources"]),
        provenance=Provenance(engine=row["engine"]),
    )


def _truth(row: Mapping[str, Any]) -> ExperimentTruth:
    """The whole truth where the release holds it; releases before that column are read from the single ones."""
    if row.get("truth"):
        return ExperimentTruth.model_validate(json.loads(row["truth"]))
    return ExperimentTruth(
        **{
            kind: tuple(DesignVariable(**item) for item in row[kind])
            for kind in ("constant", "independent", "dependent")
        },
        sources=tuple(SourceScript(path=path, role="entry", score=1.0) for path in row["source"]),
        requirements=tuple(
            Requirement(text=item["text"], spans=tuple(CodeEvidence(**span) for span in item["spans"]))
            for item in row["requirements"]
        ),
        usage=tuple(Usage(**item) for item in row["usage"]),
        expected=Expected(text=row["expected_outcome"], claims=tuple(_claim(item) for item in row["claims"])),
    )


def _masked(row: Mapping[str, Any]) -> tuple[MaskedPath, ...]:
    """The mask, whole where the release holds the record."""
    items = json.loads(row["record"])["masked"] if row.get("record") else row["masked"]
    return tuple(MaskedPath.model_validate(item) for item in items)


def _claim(item: Mapping[str, Any]) -> NumericClaim:
    number = parse_number(item["text"])
    return NumericClaim(
        id=item["id"],
        metric=item["metric"],
        value=item["value"],
        text=item["text"],
        decimals=max(0, number.decimals) if number else 0,
        unit=item["unit"],
        conditions=tuple(Condition(**condition) for condition in item["conditions"]),
        band=Band(low=item["low"], high=item["high"], source="release"),
    )


def release_recipe(row: Mapping[str, Any], private: Mapping[str, Any] | None) -> MaskRecipe | None:
    """None where the release does not say what the mask changed inside of files."""
    edits = private.get("masked_edits") if private is not None else None
    return None if edits is None else MaskRecipe(commit=row.get("masked_commit") or "", edits=tuple(json.loads(edits)))


def release_repository(
    public: PublicTask,
    name: str | None,
    masked: tuple[MaskedPath, ...],
    recipe: MaskRecipe | None,
    directory: Path,
    scratch: Path,
    reporter: Reporter,
) -> Built:
    """The masked repository of a task, from its archive, or made again where it could not be shipped.

    Args:
        public: the public half.
        name: of the archive in `directory`; None: there is none.
        masked: the mask.
        recipe: what it changed inside of files; None: nothing is known of that.
        directory: a release, or an import of one.
        scratch: receives the working trees.
        reporter: progress.
    """
    if not name:
        if not masked:
            return Built(None, None, "the release holds neither its masked repository nor a mask to build it")
        return build_from_recipe(
            public.id,
            public.repository,
            masked,
            scratch=scratch,
            reporter=reporter,
            edits=None if recipe is None else [TextEdit.model_validate(edit) for edit in recipe.edits],
            commit=recipe.commit if recipe is not None else "",
        )
    archive = (directory / name).resolve()
    if not archive.is_relative_to(directory.resolve()) or not archive.is_file():
        return Built(None, None, f"its masked repository {name} is not in the release")
    into = scratch / "masked" / f"{public.id}-{file_digest(archive)[:16]}"
    try:
        if not (into / ".git").is_dir():  # renamed into place when it was complete
            remove_tree(into)
            into.parent.mkdir(parents=True, exist_ok=True)
            with scratch_directory(into.parent) as unpacked:
                _unpack(archive, Path(unpacked))
                as_repository(Path(unpacked), public.repository, into)
        return Built(into, _original(public.id, directory, into, scratch))
    except (OSError, tarfile.TarError, EOFError) as error:
        return Built(None, None, f"its masked repository {name} cannot be unpacked ({error})")


def _original(task_id: str, directory: Path, masked: Path, scratch: Path) -> Path | None:
    """The unmasked files: the masked ones, and over them what the private part says that the mask took."""
    places = (directory / PRIVATE / originals_name(task_id), directory / originals_name(task_id))
    archive = next((place for place in places if place.is_file()), None)
    if archive is None:
        return None
    into = scratch / "original" / f"{masked.name}-{file_digest(archive)[:16]}"
    if not into.is_dir():
        with replace_directory(into) as fresh:
            shutil.copytree(masked, fresh, symlinks=True, ignore=_without_git(masked), dirs_exist_ok=True)
            _unpack(archive, fresh)
    return into


def _without_git(root: Path) -> Callable[[str, list[str]], list[str]]:
    return lambda here, names: [".git"] if Path(here) == root and ".git" in names else []


def _unpack(archive: Path, into: Path) -> None:
    with tarfile.open(archive, "r:gz") as packed:
        packed.extractall(into, filter="data")
