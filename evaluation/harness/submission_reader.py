"""Taking the submission: compare what the agent left behind with the masked repository.

The agent's own git plays no part. What it left is copied out of its container first, and everything happens on files of
this side: files over the limits are left out and named, secrets are blanked, `response.json` is read (see `response`).
Non-goal: judging any of it.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath
from typing import Final

from evaluation.episode import EpisodeFolder
from evaluation.harness.patches import Change, compare, is_git, make_patch
from evaluation.harness.response import parse_response
from evaluation.submission import REPRODUCE, RESPONSE, Response, Submission
from pipeline.digests import file_digest
from pipeline.files import replace_directory
from pipeline.llm.redact import redact_content
from pipeline.schema import Problem, Record, Severity
from pipeline.store import write_if_changed

__all__ = ["CACHES", "SubmissionLimits", "take_submission"]

_COMPONENT: Final = "evaluation.submission"
_MB: Final = 1 << 20

CACHES: Final = (
    ".git", ".git/*", "**/.git/*", "**/__pycache__/*", "**/*.pyc", "**/.pytest_cache/*", "**/.mypy_cache/*",
    "**/.ruff_cache/*", "**/.ipynb_checkpoints/*", "**/node_modules/*", "**/.venv/*", "**/venv/*", "**/.cache/*",
)  # fmt: skip
"""What is never part of a submission: it comes back by itself, or is git's."""

# Keys of the providers, written out long enough that prose and code do not match by accident: what is changed in a
# submission may no longer run. (`pipeline.llm.redact` knows shorter forms; they are for messages to people.)
_SECRETS: Final = re.compile(
    r"\bsk-(?:ant-|proj-|svcacct-)?[A-Za-z0-9_-]{32,}"
    r"|\b(?:ghp|gho|ghs|ghu|github_pat)_[A-Za-z0-9_]{36,}"
    r"|\bhf_[A-Za-z0-9]{30,}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b|\bxox[abprs]-[A-Za-z0-9-]{20,}"
    r"|\bgsk_[A-Za-z0-9]{40,}|\bglpat-[A-Za-z0-9_-]{20,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?-----END [A-Z ]*PRIVATE KEY-----",
    re.DOTALL,
)


class SubmissionLimits(Record):
    """How large a submission may be. Code and tables are far below; checkpoints and data sets are far above."""

    file_bytes: int = 10 * _MB
    patch_bytes: int = 50 * _MB
    files: int = 2000
    response_bytes: int = 2 * _MB


def take_submission(
    workspace_tree: Path,
    masked_tree: Path,
    folder: EpisodeFolder,
    *,
    limits: SubmissionLimits | None = None,
    problems: tuple[Problem, ...] = (),
) -> Submission:
    """Take what was handed in and write it to `folder.submission`.

    There: `submission.json` (what is returned), `patch.diff`, `response.json` and `reproduce.sh` as the agent wrote
    them (secrets blanked), and `files/` with every added or changed file of the patch. The same trees give the same
    files.

    Args:
        workspace_tree: the agent's workspace after its run.
        masked_tree: the masked repository as it got it.
        folder: the episode.
        limits: sizes.
        problems: what copying the workspace out had to say.

    Raises:
        ExpbenchError: `TOOL_MISSING`, `INTERNAL`: git is missing or fails.
    """
    limits = limits or SubmissionLimits()
    found = [_problem(p.where, p.message, p.severity) for p in problems]
    changes = [change for change in compare(masked_tree, workspace_tree) if not _is_cache(change.path)]
    kept, truncated = _within(changes, limits, found)
    with replace_directory(folder.submission) as target:
        files = target / "files"
        files.mkdir()
        copied, redacted = _copy(kept, files, found)
        patch = make_patch(copied)
        (target / "patch.diff").write_bytes(patch)
        response = _response(copied, files, limits, found)
        for name in (RESPONSE, REPRODUCE):
            if (files / name).is_file():
                shutil.copyfile(files / name, target / name)
        submission = Submission(
            response=response,
            reproduce=_there(copied, REPRODUCE) or _unchanged(masked_tree, workspace_tree, REPRODUCE),
            changed=tuple(change.described for change in copied),
            patch_sha256=file_digest(target / "patch.diff") if patch else "",
            patch_bytes=len(patch),
            truncated=tuple(truncated),
            redacted=tuple(redacted),
            problems=tuple(found),
        )
        write_if_changed(target / "submission.json", submission.model_dump_json(indent=1) + "\n")
    return submission


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)


def _is_cache(path: str) -> bool:
    parts = PurePosixPath(path).parts
    return any(is_git(part) for part in parts) or parts[-1].endswith(".pyc") or "__pycache__" in parts


def _within(changes: list[Change], limits: SubmissionLimits, found: list[Problem]) -> tuple[list[Change], list[str]]:
    """The changes that fit; what was asked for comes first, small files before large ones."""
    kept: list[Change] = []
    left_out: list[str] = []
    total = 0

    def order(change: Change) -> tuple[bool, int, str]:
        size = 0 if change.after is None else change.after.lstat().st_size
        return change.path not in {RESPONSE, REPRODUCE}, size, change.path

    for change in sorted(changes, key=order):
        size = 0 if change.after is None else change.after.lstat().st_size
        if size > limits.file_bytes:
            left_out.append(change.path)
            found.append(_problem(change.path, f"is larger than {limits.file_bytes // _MB} MB and left out ({size})"))
        elif total + size > limits.patch_bytes or len(kept) >= limits.files:
            left_out.append(change.path)
        else:
            total += size
            kept.append(change)
    if left_out and (total or len(kept) >= limits.files):
        message = f"{len(left_out)} changed files are left out of the patch because of the limits of size"
        found.append(_problem("patch", message, Severity.ERROR))
    return sorted(kept), sorted(left_out)


def _copy(changes: list[Change], files: Path, found: list[Problem]) -> tuple[list[Change], list[str]]:
    """Copy new versions below `files`, without secrets; the changes with their new places."""
    copied: list[Change] = []
    redacted: list[str] = []
    for change in changes:
        if change.after is None or change.after.is_symlink():
            copied.append(change)
            continue
        target = files / change.path
        target.parent.mkdir(parents=True, exist_ok=True)
        data = change.after.read_bytes()
        clean = _without_secrets(data)
        if clean != data:
            redacted.append(change.path)
            found.append(_problem(change.path, "held what looks like a secret: it was blanked"))
        target.write_bytes(clean)
        target.chmod(0o755 if change.after.stat().st_mode & 0o100 else 0o644)
        copied.append(change._replace(after=target))
    return copied, redacted


def _without_secrets(data: bytes) -> bytes:
    text = data.decode("utf-8", "surrogateescape")
    clean = _SECRETS.sub("[redacted]", redact_content(text))
    return data if clean == text else clean.encode("utf-8", "surrogateescape")


def _there(changes: list[Change], name: str) -> bool:
    return any(change.path == name and change.after is not None for change in changes)


def _unchanged(masked: Path, workspace: Path, name: str) -> bool:
    """Does the masked repository bring the file along, and did the agent leave it as it is?"""
    return (masked / name).is_file() and (workspace / name).is_file()


def _response(changes: list[Change], files: Path, limits: SubmissionLimits, found: list[Problem]) -> Response | None:
    if not _there(changes, RESPONSE):
        found.append(_problem(RESPONSE, "there is none", Severity.ERROR))
        return None
    path = files / RESPONSE
    if not path.is_file():
        found.append(_problem(RESPONSE, "is not a regular file", Severity.ERROR))
        return None
    if path.stat().st_size > limits.response_bytes:
        found.append(_problem(RESPONSE, f"is larger than {limits.response_bytes // _MB} MB", Severity.ERROR))
        return None
    response, problems = parse_response(path.read_bytes())
    found += problems
    return response
