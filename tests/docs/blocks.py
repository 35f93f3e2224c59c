"""Code blocks of the documentation, as a reader meets them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"])

_FENCE = re.compile(r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^(?P=indent)```\s*$", re.M | re.S)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks(page: Path) -> Iterator[Block]:
    text = page.read_text(encoding="utf-8")
    for found in _FENCE.finditer(text):
        line = text.count("\n", 0, found.start()) + 2
        yield Block(page, line, found["language"], found["text"])


def all_blocks(*languages: str) -> list[Block]:
    return [block for page in PAGES for block in blocks(page) if block.language in languages]


def commands(block: Block) -> Iterator[str]:
    """The command lines of a shell block that call expbench; continued lines are joined, comments left out."""
    here_document = ""
    for line in block.text.replace("\\\n", " ").split("\n"):
        if here_document:
            here_document = "" if line.strip() == here_document else here_document
            continue
        if found := re.search(r"<<'?(\w+)'?", line):
            here_document = found[1]
        for part in re.split(
            r"\s*(?:\|\||&&|;|\|)\s*(?=(?:[^'\"]|'[^']*'|\"[^\"]*\")*$)", re.sub(r"\s#\s.*", "", line)
        ):
            words = part.strip().removeprefix(".venv/bin/")
            if words.startswith("expbench "):
                yield words
