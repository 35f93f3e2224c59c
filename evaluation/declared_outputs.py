"""What a submission declares to produce, what it ships instead, and the tree that a re-execution starts from.

A declared output is a file, a directory or a pattern below the root of the repository. Before the run what lies there
is deleted, so that what is there afterwards was made by the run, also where it writes the very same bytes again.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

from evaluation.checkout import Checkout
from evaluation.submission import REPRODUCE, RESPONSE
from pipeline.digests import file_digest
from pipeline.files import remove_tree
from pipeline.sandbox.base import RunResult
from pipeline.schema import Problem, Severity

__all__ = ["Output", "clear_outputs", "declared_outputs", "is_produced", "without_copies"]

_COMPONENT: Final = "evaluation.execution"
_WORKSPACE: Final = "/work/"
"""Where the repository lies in a container: an agent may well name its outputs from the root."""
_SCRIPTS: Final = frozenset(
    {".py", ".sh", ".bash", ".ipynb", ".r", ".jl", ".c", ".cc", ".cpp", ".cu", ".m", ".pl", ".js", ".ts"}
)
"""Agents list their scripts among the outputs; deleting one before the run would fail it for a matter of form."""


class Output(NamedTuple):
    """A declared output: as declared, and as a pattern below the root (None: it lies elsewhere)."""

    declared: str
    pattern: str | None


def declared_outputs(declared: Sequence[str], problems: list[Problem]) -> Iterator[Output]:
    """The declared outputs that can be checked; scripts and the submission's own files are left out and reported."""
    for text in dict.fromkeys(declared):
        path = posixpath.normpath(text.strip().removeprefix(_WORKSPACE) or ".")
        if path in {".", REPRODUCE, RESPONSE} or PurePosixPath(path).suffix.lower() in _SCRIPTS:
            problems.append(_problem(text, "declared as an output, but it is none: not checked"))
        elif path.startswith(("/", "../")) or path == "..":
            problems.append(_problem(text, "an output outside the repository: it counts as not produced"))
            yield Output(text, None)
        else:
            yield Output(text, path)


def clear_outputs(checkout: Checkout, outputs: Sequence[Output], problems: list[Problem]) -> dict[str, str]:
    """Remove the response and what lies under declared names; returns path -> sha256 of the data that the patch ships.

    A file that the repository brought along under a declared name goes too. Of a directory or a pattern only what the
    patch holds is removed: it may mean the input data.
    """
    tree = checkout.tree
    remove_tree(tree / RESPONSE)
    changes = {change.path: change for change in checkout.changes() if change.action != "deleted"}
    shipped: dict[str, str] = {}
    for path in _files(tree):
        name = path.relative_to(tree).as_posix()
        change = changes.get(name)
        if path.suffix.lower() in _SCRIPTS:
            continue
        matching = [item for item in outputs if item.pattern is not None and _matches(item.pattern, name)]
        if matching and (change is not None or any(name == item.pattern for item in matching)):
            if change is not None:
                message = "a declared output that the patch ships: deleted before the run"
                problems.append(_problem(name, message, Severity.INFO))
            path.unlink()
        elif change is not None:
            shipped[name] = file_digest(path)
    return shipped


def without_copies(result: RunResult, shipped: dict[str, str], problems: list[Problem]) -> RunResult:
    """The result without files that are copies of what the patch ships."""
    origin = {digest: path for path, digest in reversed(shipped.items())}
    kept = []
    for item in result.produced:
        source = origin.get(item.sha256)
        if source is None or item.size == 0:
            kept.append(item)
        else:
            message = f"a copy of {source}, which the patch ships: it does not count as produced"
            problems.append(_problem(item.path, message))
    return result.evolve(produced=tuple(kept))


def is_produced(output: Output, result: RunResult) -> bool:
    """Did the run make it?"""
    return output.pattern is not None and any(_matches(output.pattern, item.path) for item in result.produced)


def _matches(pattern: str, path: str) -> bool:
    """Is `path` the output, a file below it, or one that its wildcard means?"""
    wildcard = any(sign in pattern for sign in "*?[")
    return path == pattern or path.startswith(f"{pattern}/") or (wildcard and fnmatch.fnmatchcase(path, pattern))


def _files(root: Path) -> list[Path]:
    """Regular files below `root`, sorted; links are not followed and not listed."""
    found = []
    for directory, _, names in os.walk(root, followlinks=False):
        found += [path for name in names if not (path := Path(directory, name)).is_symlink() and path.is_file()]
    return sorted(found)


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)
