"""A masked repository from its recipe: URL, commit and mask, for tasks whose repository may not be redistributed.

The original is exported once per URL and commit (`pipeline.repository.open_snapshot`), each mask is applied to it
(`masking.apply`). What cannot be had - no URL, no commit, no network, another content - blocks the task with its
reason: nothing is known of an agent then, and nothing is scored.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.lock import repository_commit
from masking.apply import apply_mask
from masking.records import MaskPlan, TextEdit
from pipeline.digests import digest_of, text_digest
from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.repository import RepositoryRef, Snapshot, open_snapshot
from pipeline.schema import Problem, Severity
from pipeline.task import MaskedPath

__all__ = ["NOT_BUILT", "Built", "as_repository", "build_from_recipe"]

_COMPONENT: Final = "evaluation.recipes"
_REMOTE: Final = re.compile(r"(?:[a-z][a-z0-9+.-]*://|github:|[\w.-]+@[\w.-]+:)\S+", re.IGNORECASE)
"""Anything else is the name of a directory on the machine where the task was made."""
_NULL: Final = re.compile(r"0+")


class Built(NamedTuple):
    """A masked repository, or why there is none."""

    masked: Path | None
    original: Path | None
    """Files of the unmasked repository."""
    blocked: str = ""
    problems: tuple[Problem, ...] = ()


NOT_BUILT: Final = Built(None, None, "its repository was not asked for")


def build_from_recipe(
    task_id: str,
    repository: RepositoryRef,
    mask: Sequence[MaskedPath],
    *,
    scratch: Path,
    reporter: Reporter,
    with_readme: bool = False,
    edits: Sequence[TextEdit] | None = None,
    commit: str = "",
) -> Built:
    """Fetch the repository at its commit and mask it; what was built before is used again.

    Args:
        task_id: names the result.
        repository: URL and commit.
        mask: paths; one that is a directory means all files below it.
        scratch: directory that keeps snapshots and masked repositories.
        reporter: progress.
        with_readme: mask README files at the root too (EXP-Bench 3.2), where the mask does not say so itself.
        edits: spans that the mask overwrites inside files; None: the recipe does not hold them.
        commit: of the masked repository that has to come out; empty: not known.

    Raises:
        ExpbenchError: a defect of ours, or the user interrupted.
    """
    if not _REMOTE.fullmatch(repository.url):
        name = repository.url or "no repository"
        return Built(None, None, f"its repository is not at hand: the task names `{name}`, which is no URL")
    if _NULL.fullmatch(repository.commit):
        return Built(None, None, f"its repository is not at hand: no commit of {repository.url} is named")
    edited = [item.path for item in mask if item.action == "edited"]
    if edited and edits is None:
        reason = f"the recipe does not hold the edits inside {len(edited)} file(s), e.g. {edited[0]}"
        return Built(None, None, f"its masked repository cannot be built: {reason}")
    key = text_digest(f"{repository.url}@{repository.commit}")[:16]
    try:
        snapshot = open_snapshot(
            repository.url,
            commit=repository.commit,
            into=scratch / "snapshots" / key,
            allow_missing_submodules=True,
            reporter=reporter,
        )
    except ExpbenchError as error:
        if FAILURES[error.kind].cause not in {Cause.USER, Cause.INFRASTRUCTURE}:
            raise
        return Built(None, None, f"its repository is not at hand: {error.object}: {error.cause}")
    paths, missing = _expanded(snapshot, mask, with_readme)
    plan = MaskPlan(paths=paths, edits=tuple(edits or ()))
    return _masked(task_id, snapshot, plan, len(mask), missing, scratch, commit)


def _masked(
    task_id: str, snapshot: Snapshot, plan: MaskPlan, wanted: int, missing: Sequence[str], scratch: Path, commit: str
) -> Built:
    problems = [
        Problem(component=_COMPONENT, where=f"{task_id}: {path}", message="to be masked, but not in the repository")
        for path in missing
    ]
    if wanted and len(missing) == wanted:
        reason = f"none of the {wanted} path(s) to mask is in {snapshot.ref.url} at {snapshot.ref.commit[:12]}"
        return Built(None, None, f"its masked repository cannot be built: {reason}", tuple(problems))
    key = digest_of([snapshot.ref.model_dump(mode="json"), plan.model_dump(mode="json")])[:16]
    into = scratch / "masked" / f"{task_id}-{key}"
    if not (into / ".git").is_dir():  # it is renamed into place when it is complete
        remove_tree(into)
        try:
            apply_mask(snapshot, plan, into)
        except ExpbenchError as error:
            if error.kind is not FailureKind.WORKSPACE_CONFLICT:  # an edit of another version of a file
                raise
            reason = f"its masked repository cannot be built: {error.object}: {error.cause}"
            return Built(None, None, reason, tuple(problems))
    if commit and repository_commit(into) != commit:
        return Built(None, None, "its masked repository was built, and is not the released one", tuple(problems))
    problems += [problem for problem in snapshot.problems if problem.severity is not Severity.INFO]
    return Built(into, snapshot.root, "", tuple(problems))


def _expanded(
    snapshot: Snapshot, mask: Sequence[MaskedPath], with_readme: bool
) -> tuple[tuple[MaskedPath, ...], list[str]]:
    """The mask by file, sorted, and the paths of it that the snapshot does not have."""
    files = [file.path for file in snapshot.files]
    found: dict[str, MaskedPath] = {}
    missing = []
    for item in mask:
        below = [path for path in files if path == item.path or path.startswith(f"{item.path}/")]
        if not below and not (snapshot.root / item.path).is_symlink():
            missing.append(item.path)
        for path in below or [item.path]:
            found.setdefault(path, item.evolve(path=path))
    if with_readme:
        for path in files:
            if "/" not in path and path.lower().startswith("readme"):
                found.setdefault(path, MaskedPath(path=path, action="removed", reason="README at the root"))
    return tuple(found[path] for path in sorted(found) if path not in missing), missing


def as_repository(files: Path, ref: RepositoryRef, into: Path) -> Path:
    """Plain files of a masked repository become one with its one commit, the same as masking made.

    Args:
        files: what the archive of a release holds.
        ref: for the snapshot's record; not part of the result.
        into: a directory that does not exist.

    Raises:
        ExpbenchError: see `masking.apply.apply_mask`.
    """
    return apply_mask(Snapshot(ref=ref, root=files, files=()), MaskPlan(paths=()), into).path
