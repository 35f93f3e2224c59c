"""A released part on a Hugging Face hub: what would change there, and the one commit that changes it.

Files are compared by content (git blob ids, or sha256 where the hub stores a file outside git), so a dry run says
exactly what a push would do, and a second push does nothing. The public part is uploaded without `private/`, its card
without the configurations of the private part; the private part goes to a repository of its own, private and gated.

The hub is the one of `HF_ENDPOINT`, with the token that `hf auth login` or `HF_TOKEN` gave. Nothing is uploaded that
was not written by `write_dataset`; only the card may have been edited since.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from pydantic import Field

from pipeline.digests import file_digest
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.huggingface import MARKER, PRIVATE, ReleaseHead, read_head
from pipeline.formats.release_card import without_private_configs
from pipeline.schema import Record

if TYPE_CHECKING:
    from huggingface_hub import HfApi

__all__ = ["FileChange", "PushReport", "push"]

_CARD: Final = "README.md"
_GIT_OWN: Final = frozenset({".gitattributes"})
"""Files that the hub makes itself; never removed."""


class FileChange(Record):
    """What a push does to one file."""

    path: str
    action: Literal["add", "change", "remove"]
    bytes: int = Field(ge=0)
    """Of the new content; of a removed file, of the old."""


class PushReport(Record):
    """What a push did, or would do."""

    repository: str
    endpoint: str
    part: Literal["public", "private", "open"]
    created: bool
    """Was (would) the repository (be) made?"""
    version: str
    changes: tuple[FileChange, ...]
    unchanged: int
    dry_run: bool
    commit: str | None = None
    """None: nothing was committed."""
    url: str | None = None


def push(directory: Path, repository: str, *, part: Literal["public", "private"], dry_run: bool) -> PushReport:
    """Bring a part of a release to a data set repository on the hub, in one commit with a tag of its version.

    Args:
        directory: a release.
        repository: `owner/name`.
        part: of a split release; an open release has one part only, `public`.
        dry_run: compare only; nothing is created or uploaded.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is no release, or has no such part; `AUTHENTICATION`, `NETWORK`,
            `RATE_LIMIT`, `REQUEST_REJECTED`: the hub refuses or cannot be reached; `USAGE`: it is no repository's name.
    """
    from huggingface_hub import HfApi

    root = directory / PRIVATE if part == "private" else directory
    head = read_head(root)
    api = HfApi(endpoint=os.environ.get("HF_ENDPOINT"), library_name="expbench")
    local = _local_files(root, head)
    with _explained(repository, api):
        remote = _remote_files(api, repository)
        changes, unchanged = _compare(local, remote or {})
        report = PushReport(
            repository=repository, endpoint=api.endpoint, part="open" if head.layout == "open" else part,
            created=remote is None, version=head.version, changes=changes, unchanged=unchanged, dry_run=dry_run,
        )  # fmt: skip
        if dry_run:
            return report
        return _upload(api, report, local, private=part == "private")


# --- here


class _LocalFile(Record):
    """One file as it is uploaded."""

    path: Path | None = None
    """None: `content` is uploaded."""
    content: bytes = b""
    size: int
    blob: str
    """Git's id of the content."""
    sha256: str


def _local_files(root: Path, head: ReleaseHead) -> dict[str, _LocalFile]:
    """Files of a part by their path in the repository: those that the release names, and its card; no others.

    Raises:
        ExpbenchError: `RECORD_INVALID`: a file is not what was released (and searched for answers).
    """
    found: dict[str, _LocalFile] = {}
    for name in sorted([*head.files, _CARD, MARKER]):
        path = root / name
        if not path.is_file() or (name in head.files and file_digest(path) != head.files[name]):
            raise ExpbenchError(
                FailureKind.RECORD_INVALID,
                str(path),
                "is not the file that was released",
                consequence="Nothing was uploaded",
                next_step="Release again, then push",
            )
        data = path.read_bytes()
        if name == _CARD:
            data = without_private_configs(data.decode("utf-8")).encode("utf-8")
        found[name] = _LocalFile(
            path=None if name == _CARD else path, content=data if name == _CARD else b"", size=len(data),
            blob=_blob_id(data), sha256=hashlib.sha256(data).hexdigest(),
        )  # fmt: skip
    return found


def _blob_id(data: bytes) -> str:
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


# --- there


class _RemoteFile(Record):
    size: int
    blob: str
    sha256: str | None
    """Where the content is stored outside git."""


def _remote_files(api: HfApi, repository: str) -> dict[str, _RemoteFile] | None:
    """Files of the repository's main branch; None when there is no such repository."""
    from huggingface_hub import RepoFile
    from huggingface_hub.errors import RepositoryNotFoundError, RevisionNotFoundError

    try:
        entries = list(api.list_repo_tree(repository, recursive=True, repo_type="dataset"))
    except RevisionNotFoundError:
        return {}
    except RepositoryNotFoundError:
        return None  # the hub does not tell strangers what is missing and what is private: a push would say it
    return {
        entry.path: _RemoteFile(size=entry.size, blob=entry.blob_id, sha256=entry.lfs.sha256 if entry.lfs else None)
        for entry in entries
        if isinstance(entry, RepoFile)
    }


def _compare(local: dict[str, _LocalFile], remote: dict[str, _RemoteFile]) -> tuple[tuple[FileChange, ...], int]:
    changes: list[FileChange] = []
    for name, here in local.items():
        there = remote.get(name)
        same = there is not None and (
            there.sha256 == here.sha256 if there.sha256 is not None else there.blob == here.blob
        )
        if not same:
            changes.append(FileChange(path=name, action="change" if there else "add", bytes=here.size))
    changes += [
        FileChange(path=name, action="remove", bytes=there.size)
        for name, there in remote.items()
        if name not in local and name not in _GIT_OWN
    ]
    return tuple(sorted(changes, key=lambda change: change.path)), len(local) - sum(
        change.action != "remove" for change in changes
    )


def _upload(api: HfApi, report: PushReport, local: dict[str, _LocalFile], *, private: bool) -> PushReport:
    from huggingface_hub import CommitOperationAdd, CommitOperationDelete

    if report.created:
        api.create_repo(report.repository, repo_type="dataset", private=private, exist_ok=True)
    if private:
        api.update_repo_settings(report.repository, repo_type="dataset", gated="manual", private=True)
    if not report.changes:
        return report
    operations: list[CommitOperationAdd | CommitOperationDelete] = []
    for change in report.changes:
        if change.action == "remove":
            operations.append(CommitOperationDelete(path_in_repo=change.path))
        else:
            file = local[change.path]
            source = str(file.path) if file.path else file.content
            operations.append(CommitOperationAdd(path_in_repo=change.path, path_or_fileobj=source))
    done = api.create_commit(
        report.repository, operations, commit_message=f"Version {report.version}", repo_type="dataset"
    )
    api.create_tag(report.repository, tag=f"v{report.version}", revision=done.oid, repo_type="dataset", exist_ok=True)
    return report.evolve(commit=done.oid, url=done.commit_url)


@contextmanager
def _explained(repository: str, api: HfApi) -> Iterator[None]:
    """Errors of the hub's client in our terms."""
    import httpx2
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalTokenNotFoundError

    try:
        yield
    except HFValidationError as error:
        raise _refused(FailureKind.USAGE, repository, str(error), "Give it as OWNER/NAME") from error
    except LocalTokenNotFoundError as error:
        raise _refused(FailureKind.AUTHENTICATION, repository, str(error), "Run `hf auth login`") from error
    except HfHubHTTPError as error:
        status = error.response.status_code if error.response is not None else 0
        kind, step = _KINDS.get(status, (FailureKind.REQUEST_REJECTED, "Look at the message of the hub"))
        if status >= 500:
            kind, step = FailureKind.OVERLOADED, "Try again later; what was committed is kept"
        raise _refused(kind, repository, f"the hub answered {status}: {str(error).splitlines()[0]}", step) from error
    except (httpx2.HTTPError, OSError) as error:
        step = f"Check the network and HF_ENDPOINT ({api.endpoint})"
        raise _refused(FailureKind.NETWORK, repository, f"the hub cannot be reached ({error})", step) from error


_KINDS: Final = {
    401: (FailureKind.AUTHENTICATION, "Log in with `hf auth login`, or set HF_TOKEN to a token that may write"),
    403: (FailureKind.AUTHENTICATION, "Use a token that may write to this repository"),
    429: (FailureKind.RATE_LIMIT, "Wait, and push again"),
}


def _refused(kind: FailureKind, repository: str, cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        kind, repository, " ".join(cause.split()).rstrip("."), consequence="Nothing was committed there",
        next_step=next_step,
    )  # fmt: skip
