"""Files that are alike, and which of them a task means: `configs/cifar10.yml` of `configs/*.yml`.

Non-goal: how the choice is written on a command line (see `pipeline.locator.filling`).
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.query import QueryWords
from pipeline.locator.text import GENERIC, compact, stem, tokens

__all__ = ["nearest", "speaks_of", "spoken_of"]

_LAUNCH_VALUES: Final = GENERIC | {
    "true", "false", "none", "all", "cpu", "cuda", "mean", "sum", "default", "auto", "both", "val",
}  # fmt: skip
_SHORT: Final = 4
"""Letters from which the beginning of a word stands for it."""
_UNSAID: Final = 0.7
"""What a word of the file's name that the task does not say costs, against one that it says."""
_AROUND: Final = 0.1
"""The same for a word of its directories, which hold many more."""
_CLEAR: Final = 0.25
"""How much more of the task the best file must speak of than the next: a third of a word that few files have."""


def speaks_of(value: str, words: QueryWords) -> bool:
    """Does the task name a flag's value (`electricity.csv`, `2-layer`, `ours`)?"""
    low = posixpath.splitext(posixpath.basename(value))[0].lower() if "/" in value or "." in value else value.lower()
    if low in _LAUNCH_VALUES or len(low) < 2:
        return False
    if re.fullmatch(r"[\d.]+(?:e-?\d+)?", value):
        return bool(re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.]|%)", words.lower))
    parts = [part for part in re.split(r"[_\W]+", low) if part]
    if low in words.names or compact(low) in words.names:
        return True
    return len(parts) > 1 and all(part in words.names for part in parts) and any(part not in GENERIC for part in parts)


def spoken_of(values: Iterable[str], words: QueryWords) -> set[str]:
    """The values that the task names: those that it writes out, else those of whose parts it speaks.

    `hopper-medium-expert-v0` has the parts of `hopper-medium-v0`, and is not it.
    """
    named = {value for value in values if speaks_of(value, words)}
    written = {value for value in named if re.search(rf"(?<![\w-]){re.escape(value.lower())}(?![\w-])", words.lower)}
    several = {value for value in named if len(re.split(r"[_\W]+", value)) > 1}
    return written if several & written else named


def nearest(index: RepositoryIndex, paths: Sequence[str], words: QueryWords) -> tuple[str | None, list[str]]:
    """The file of a family that the task means, and those that it may mean as well.

    Every word of a path that the task says counts by how few files of the family have it; words of the file's own name
    that the task does not say count against it. Authors write `++` as `pp` in names of files.

    Returns:
        (the file, the files that speak of the task as much); the file is None where two do.
    """
    said = set(tokens(words.lower.replace("++", "pp"))) | {part.replace("++", "pp") for part in words.lower.split()}
    said |= set(words.names)
    bags = {path: set(_parts(path)) for path in paths}
    frequency = Counter(part for bag in bags.values() for part in bag)
    total = len(paths)

    def weight(part: str) -> float:
        return math.log(1 + total / frequency[part])

    def score(path: str) -> float:
        own = set(_parts(posixpath.basename(path)))
        told = sum(weight(part) * _said(part, said) for part in bags[path])
        unsaid = sum(weight(part) for part in own if not _said(part, said))
        around = sum(weight(part) for part in bags[path] - own if not _said(part, said))
        return told - _UNSAID * unsaid - _AROUND * around

    scores = {path: score(path) for path in paths}
    ordered = sorted(paths, key=lambda path: (-round(scores[path], 6), path))
    if not ordered or not any(_said(part, said) and part not in GENERIC for part in bags[ordered[0]]):
        return None, ordered
    near = [path for path in ordered if scores[ordered[0]] - scores[path] < _CLEAR]
    return (ordered[0] if len(near) == 1 else None), near


def _said(part: str, said: set[str]) -> float:
    """How much the task says a part of a name: 1 for the word or a form of it, a half for its beginning (`cont.`)."""
    if part in said or stem(part) in said:
        return 1.0
    if len(part) >= _SHORT and any(word.startswith(part) for word in said):
        return 1.0
    return 0.5 if any(_SHORT <= len(word) < len(part) and part.startswith(word) for word in said) else 0.0


def _parts(path: str) -> list[str]:
    """The words of a path that tell it from others."""
    plain = posixpath.splitext(path)[0].lower()
    return [part for part in re.split(r"[^a-z0-9]+", plain) if part and part not in GENERIC]
