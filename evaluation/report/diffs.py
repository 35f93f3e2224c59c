"""A unified diff as HTML: one block a file, added and removed lines marked, all text escaped.

Non-goal: interpreting the diff; a line that fits no form is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from markupsafe import Markup, escape

__all__ = ["DiffFile", "Patch", "diff_lines", "read_patch"]

_MOST_LINES: Final = 1_500
"""Lines shown of one file; a page with ten such files still scrolls smoothly."""
_MOST_CHARACTERS: Final = 1_000_000
_LONGEST_LINE: Final = 2_000
_OPEN_UP_TO: Final = 120
"""Lines up to which a file is shown unfolded."""
_HEADER: Final = re.compile(r'^diff --git (?:"?a/(.*?)"?) (?:"?b/(.*?)"?)$')


class DiffFile(NamedTuple):
    """One file of a patch."""

    path: str
    added: int
    removed: int
    lines: Markup
    left_out: int
    """Lines that are not shown."""
    open: bool


class Patch(NamedTuple):
    """A patch for a page."""

    files: tuple[DiffFile, ...]
    left_out: int
    """Characters that were not looked at."""


def read_patch(text: str, clean: Callable[[str], str]) -> Patch:
    """Split a patch by file.

    Args:
        text: a unified diff with git's headers.
        clean: what is done with a text before it is shown.
    """
    blocks: list[list[str]] = []
    paths: list[str] = []
    for line in text[:_MOST_CHARACTERS].split("\n"):
        header = _HEADER.match(line)
        if header or not blocks:
            blocks.append([])
            paths.append(header[2] if header else "(no file header)")
        blocks[-1].append(line)
    files = []
    for path, block in zip(paths, blocks, strict=True):
        while block and not block[-1]:
            block.pop()
        if not block:
            continue
        body = [line for line in block if not line.startswith(("+++", "---"))]
        files.append(
            DiffFile(
                path=clean(path),
                added=sum(line.startswith("+") for line in body),
                removed=sum(line.startswith("-") for line in body),
                lines=diff_lines("\n".join(block[:_MOST_LINES]), clean),
                left_out=max(0, len(block) - _MOST_LINES),
                open=len(block) <= _OPEN_UP_TO,
            )
        )
    return Patch(tuple(files), max(0, len(text) - _MOST_CHARACTERS))


def diff_lines(text: str, clean: Callable[[str], str]) -> Markup:
    """Lines of a diff as one highlighted block."""
    rows = []
    for line in clean(text).split("\n"):
        shown = line if len(line) <= _LONGEST_LINE else f"{line[:_LONGEST_LINE]}… ({len(line):,} characters)"
        kind = _kind(line)
        rows.append(f'<span class="{kind}">{escape(shown)}</span>' if kind else f"<span>{escape(shown)}</span>")
    return Markup('<pre class="diff">' + "".join(rows) + "</pre>")  # noqa: S704 - each line was escaped above


def _kind(line: str) -> str:
    if line.startswith(("diff --git", "index ", "--- ", "+++ ", "new file", "deleted file", "similarity", "rename ")):
        return "head"
    return {"+": "add", "-": "del", "@": "hunk"}.get(line[:1], "")
