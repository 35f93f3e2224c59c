"""File-like words in code, shell and configuration, as written; also those with a part that is filled in at run time.

Non-goal: which file of the repository a word means (see `links.PathResolver`).
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["read_references"]

_ENDING = re.compile(r"\.(?:py|sh|ipynb|ya?ml|json|toml|gin|cfg|ini)\b")
_NOT_OF_PATH = re.compile(r"[^\w./\-]")
_NOT_OF_PATTERN = re.compile(r"[^\w./\-{}$%\[\]]")
_HOLE = re.compile(r"\$?\{[^{}]*\}|\$\w+|%\(\w+\)s|%[sd]")
_LONGEST_PATH: Final = 300
_HOLES: Final = 3
"""Parts of a path that are filled in when it runs; with more of them nothing of it is known."""


def read_references(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The file-like words of `text`, and those with holes: `*` stands for a part that is filled in at run time.

    They are read from their ending leftwards: endings are rare, words are not.

    Returns:
        (words, patterns), each sorted and without doubles. A word with holes is among the words, too, from its last
        hole on.
    """
    found: set[str] = set()
    patterns: set[str] = set()
    for match in _ENDING.finditer(text):
        dot = match.start()
        if not dot or not (text[dot - 1].isalnum() or text[dot - 1] in "_]})"):
            continue
        word = _word_before(text, dot, _NOT_OF_PATH)
        found.add(word + match.group())
        if text[dot - 1] == "}" or text.endswith(("}", "$", "%"), 0, dot - len(word)):
            pattern = _HOLE.sub("*", _word_before(text, dot, _NOT_OF_PATTERN) + match.group())
            if 1 <= pattern.count("*") <= _HOLES and not _NOT_OF_PATH.search(pattern.replace("*", "")):
                patterns.add(pattern)
    return tuple(sorted(found)), tuple(sorted(patterns))


def _word_before(text: str, end: int, stop: re.Pattern[str]) -> str:
    """The word that ends with the character at `end - 1`, which belongs to it whatever it is."""
    backwards = text[max(0, end - 1 - _LONGEST_PATH) : end - 1][::-1]
    found = stop.search(backwards)
    return text[end - 1 - (found.start() if found else len(backwards)) : end]
