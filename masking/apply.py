"""Making the masked repository: one commit, nothing of the original's history, configuration or identity.

Files are copied as bytes from the snapshot and committed through `git fast-import`; nothing is checked out, so no
attribute, filter, hook or ignore file of the original has a say. The commit's hash depends on the content only.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import Final

from masking.git import BRANCH, git, import_commit
from masking.notebooks import clear_outputs
from masking.records import MaskedRepository, MaskPlan, TextEdit
from masking.tree import Entry, copy_entry, entries
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.repository import Snapshot

__all__ = ["ATTRIBUTES", "CONFIG", "REPLACEMENT", "apply_mask", "masked_content"]

REPLACEMENT: Final = b"[masked]"
CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n"
ATTRIBUTES: Final = "* -text -eol -ident -filter -working-tree-encoding\n"
"""Outranks the repository's own `.gitattributes`: `git diff` of an agent's work shows its changes and nothing else."""


def apply_mask(snapshot: Snapshot, plan: MaskPlan, into: Path) -> MaskedRepository:
    """Write the masked repository to `into` (EXP-Bench 3.2, stage 3: masking; here without any history).

    The repository is made beside `into` and renamed when it is complete.

    Args:
        snapshot: the original files.
        plan: what to take out, from `plan_mask`.
        into: a directory that does not exist or is empty.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT` when `into` holds something or the plan belongs to another snapshot;
            `TOOL_MISSING` without git; `DISK_FULL`.
    """
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT, str(into.name), "the directory for the masked repository is not empty",
            consequence="No masked repository was written, and nothing was changed",
            next_step="Remove the directory or choose another one",
        )  # fmt: skip
    into.parent.mkdir(parents=True, exist_ok=True)
    building = into.parent / f".{into.name}.building"
    if building.exists():
        shutil.rmtree(building)  # left behind by an interrupted run
    building.mkdir()
    try:
        result = _build(snapshot, plan, building)
        os.replace(building, into)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.DISK_FULL if error.errno == 28 else FailureKind.INTERNAL, str(into.name),
            f"could not be written ({error.strerror})",
            consequence="The masked repository was not made",
            next_step="Free space or fix the permissions and run again",
        ) from error  # fmt: skip
    finally:
        shutil.rmtree(building, ignore_errors=True)
    return result.evolve(path=into)


def _build(snapshot: Snapshot, plan: MaskPlan, building: Path) -> MaskedRepository:
    removed = plan.with_action("removed")
    changed: list[tuple[Entry, bytes | None]] = []
    for entry in entries(snapshot.root):
        if entry.path in removed:
            continue
        content = masked_content(entry, plan)
        copy_entry(entry, building, content)
        changed.append((entry, content))
    git("init", "--quiet", "--template=", f"--initial-branch={BRANCH}", directory=building)
    inside = building / ".git"
    (inside / "config").write_text(CONFIG, encoding="utf-8")
    (inside / "info").mkdir(exist_ok=True)
    (inside / "info" / "attributes").write_text(ATTRIBUTES, encoding="utf-8")
    commit = import_commit(building, changed)
    git("read-tree", "HEAD", directory=building)  # without stat data: equal repositories have equal index files
    return MaskedRepository(path=building, commit=commit, files=len(changed))


def masked_content(entry: Entry, plan: MaskPlan) -> bytes | None:
    """The content of a kept file after clearing and edits; None when it stays as it is.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT` when the plan was made for another content.
    """
    if entry.link:
        return None
    cleared = entry.path in plan.with_action("outputs_cleared")
    edits = [edit for edit in plan.edits if edit.path == entry.path]
    if not cleared and not edits:
        return None
    data = clear_outputs(entry.read()) if cleared else entry.read()
    return _edited(entry, data, edits)


def _edited(entry: Entry, data: bytes, edits: list[TextEdit]) -> bytes:
    digest = hashlib.sha256(data).hexdigest()
    if any(edit.sha256 != digest or not edit.start < edit.end <= len(data) for edit in edits):
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT, entry.path, "the mask plan was made for another version of this file",
            consequence="No masked repository was written",
            next_step="Plan the mask again from the same snapshot",
        )  # fmt: skip
    for start, end, text in sorted({(edit.start, edit.end, edit.replacement) for edit in edits}, reverse=True):
        data = data[:start] + text.encode("utf-8") + data[end:]
    return data
