"""How many people must agree on a task, kept with the workspace so that every way of reviewing obeys it."""

from __future__ import annotations

from pydantic import Field

from pipeline.files import read_record
from pipeline.schema import StoredRecord
from pipeline.store import Workspace

__all__ = ["ReviewPolicy", "read_policy", "write_policy"]


class ReviewPolicy(StoredRecord):
    """`review.json` of a workspace."""

    reviewers: int = Field(default=1, ge=1, le=5)
    """Different people whose decisions a task needs; they must be of one mind, or a further one decides."""


def read_policy(workspace: Workspace) -> ReviewPolicy:
    """The policy of a workspace; one reviewer where none was set.

    Raises:
        ExpbenchError: `RECORD_INVALID` when the file cannot be read: a second reviewer is never dropped silently.
    """
    path = workspace.root / "review.json"
    if not path.is_file():
        return ReviewPolicy()
    next_step = "Set the number again: expbench review WORKSPACE --reviewers N"
    return read_record(path, ReviewPolicy, consequence="No decision was recorded", next_step=next_step)


def write_policy(workspace: Workspace, policy: ReviewPolicy) -> None:
    """Write the policy."""
    workspace.write_json(workspace.root / "review.json", policy)
