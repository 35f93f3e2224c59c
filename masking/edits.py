"""What a mask changed inside files, as byte spans: the part of a recipe that paths alone do not say.

A release that may not ship the masked repository ships how to make it from the original. Spans and digests say that
without a word of the original's text.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Final

from masking.apply import REPLACEMENT
from masking.functions import MASKED_BODY, MASKED_PARAMETERS
from masking.git import git
from masking.notebooks import clear_outputs
from masking.records import TextEdit
from pipeline.schema import Record
from pipeline.task import MaskedPath

__all__ = ["Recipe", "derive_edits", "recipe_of"]

_CHANGED: Final = frozenset({"edited", "outputs_cleared"})
_MARKS: Final = re.compile(
    b"(" + b"|".join(re.escape(m) for m in (MASKED_BODY.encode(), MASKED_PARAMETERS.encode(), REPLACEMENT)) + b")"
)
"""What edits write; a masked body's mark holds the plain one and so comes first."""


class Recipe(Record):
    """How a masked repository comes from its original, and how to tell that it did."""

    commit: str
    """Of the masked repository; depends on its content only."""
    edits: tuple[TextEdit, ...] = ()


def recipe_of(original: Path, masked: Path, mask: tuple[MaskedPath, ...]) -> Recipe | None:
    """The recipe of a masked repository beside its paths; None when it was not made by masking.

    Args:
        original: files of the original repository.
        masked: the masked repository.
        mask: the task's paths.

    Raises:
        ExpbenchError: git is missing or fails.
    """
    if not (masked / ".git").is_dir():
        return None
    edits: list[TextEdit] = []
    for item in mask:
        before, after = original / item.path, masked / item.path
        if item.action not in _CHANGED:
            continue
        if not before.is_file() or not after.is_file() or before.is_symlink() or after.is_symlink():
            return None
        data = before.read_bytes()
        found = derive_edits(
            item.path, clear_outputs(data) if item.action == "outputs_cleared" else data, after.read_bytes()
        )
        if found is None:
            return None
        edits += found
    # the directory is named: git would look for a repository above it otherwise
    commit = git("--git-dir=.git", "rev-parse", "--verify", "-q", "HEAD^{commit}", directory=masked, check=False)
    return Recipe(commit=commit.decode("ascii").strip(), edits=tuple(edits)) if commit else None


def derive_edits(path: str, original: bytes, masked: bytes) -> tuple[TextEdit, ...] | None:
    """Spans of `original` whose replacement gives `masked`; None when there are none that do.

    Several answers can be right (`aa` with one letter masked); the leftmost is taken, and all give the same bytes.
    """
    if original == masked:
        return ()
    first, *rest = _MARKS.split(masked)
    marks, rest = rest[::2], rest[1::2]
    if not rest or not original.startswith(first):
        return None
    digest = hashlib.sha256(original).hexdigest()
    edits: list[TextEdit] = []
    start = len(first)
    for number, piece in enumerate(rest, start=1):
        end = len(original) - len(piece) if number == len(rest) else original.find(piece, start + 1)
        if end <= start or not original.startswith(piece, end):
            return None
        mark = marks[number - 1].decode("ascii")
        edits.append(TextEdit(path=path, start=start, end=end, sha256=digest, replacement=mark))
        start = end + len(piece)
    return tuple(edits)
