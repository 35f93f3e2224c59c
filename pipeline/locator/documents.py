"""README and documentation pages as sections with their commands, under headings and the summaries of `<details>`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pipeline.locator.shell import Invocation, parse_shell

__all__ = ["DocumentCommand", "DocumentSection", "read_document"]

_FENCE = re.compile(r"^(\s*)(`{3,}|~{3,})\s*([\w+-]*)")
_HEADING = re.compile(r"^(#{1,6})\s+(.*?)\s*#*$")
_UNDERLINE = re.compile(r"^([=\-~^\"'`#*+])\1{2,}\s*$")
_SUMMARY = re.compile(r"<summary>(.+?)</summary>|</details>", re.I)
_FOLDED = 7
"""Level of what a `<summary>` names: below all headings."""
_INLINE = re.compile(r"`([^`\n]*(?:python|bash|torchrun|sh|make|accelerate)\d?\s[^`\n]+)`")
_FOREIGN = {"python", "py", "json", "yaml", "yml", "toml", "bibtex", "latex", "tex", "diff", "cpp", "c", "html", "xml"}
_COMMAND_LINE = re.compile(
    r"^\s*(?:[$%>]\s+)?(?:\w+=\S+\s+)*(?:python\d?|bash|sh|torchrun|accelerate|make|sbatch|cd|uv|poetry)\s"
)
_LIMIT = 400_000


@dataclass(frozen=True, slots=True)
class DocumentCommand:
    """A command of a document with the words around it."""

    path: str
    invocation: Invocation
    context: str
    """Headings above it, the paragraph before its block and the comment above it."""
    marked: bool = True
    """False in a block that is marked as another language: it can be run, but is no sign that the file is documented
    (as such a sign, hit@1 falls from .724 to .686 on published tasks and is the same on 112 others)."""

    @property
    def line(self) -> int:
        """Line of the document."""
        return self.invocation.line


@dataclass(frozen=True, slots=True)
class DocumentSection:
    """Text under one heading."""

    path: str
    line: int
    title: str
    """Headings from the outermost, joined by ` > `."""
    text: str
    commands: tuple[DocumentCommand, ...]


def read_document(path: str, text: str) -> tuple[DocumentSection, ...]:
    """Split a Markdown or reStructuredText page at its headings and read the commands in each part."""
    lines = text[:_LIMIT].splitlines()
    sections: list[DocumentSection] = []
    variables: dict[str, str] = {}
    titles: dict[int, str] = {}
    start, title = 0, ""
    fenced = ""
    rst_levels: list[str] = []
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence:
            mark = fence.group(2)[0]
            fenced = "" if fenced == mark else fenced or mark
            continue
        if fenced:
            continue
        level, name, begins = _heading(lines, number, rst_levels)
        if not level:
            continue
        _close(sections, path, lines, (start, begins), title, variables)
        titles = {key: value for key, value in titles.items() if key < level} | {level: name}
        start, title = begins, " > ".join(titles[key] for key in sorted(titles) if titles[key])
    _close(sections, path, lines, (start, len(lines)), title, variables)
    return tuple(sections)


def _heading(lines: list[str], number: int, rst_levels: list[str]) -> tuple[int, str, int]:
    """(level, text, first line) of a heading that ends on this line; level 0 when there is none."""
    match = _HEADING.match(lines[number])
    if match:
        return len(match.group(1)), match.group(2), number
    folded = _SUMMARY.search(lines[number])
    if folded:  # the end of a fold ends what its summary names
        return _FOLDED, re.sub(r"<[^<>]+>", "", folded.group(1) or ""), number
    underline = _UNDERLINE.match(lines[number])
    if underline and number and lines[number - 1].strip() and len(lines[number].strip()) >= 3:
        above = lines[number - 1].strip()
        if above.startswith(("|", "-", "*", "`", "#")) or len(above) > 100:
            return 0, "", 0
        if (
            not rst_levels
        ):  # Markdown knows two underlines; in reStructuredText the order of use decides, as a rule the same
            rst_levels.extend("=-")
        if underline.group(1) not in rst_levels:
            rst_levels.append(underline.group(1))
        return rst_levels.index(underline.group(1)) + 1, above, number - 1
    return 0, "", 0


def _close(
    sections: list[DocumentSection], path: str, lines: list[str], part: tuple[int, int], title: str,
    variables: dict[str, str],
) -> None:  # fmt: skip
    start, end = part
    body = lines[start:end]
    if not any(line.strip() for line in body):
        return
    commands = tuple(_commands(path, body, start, title, variables))
    sections.append(DocumentSection(path, start + 1, title, "\n".join(body), commands))


def _all_commands(block: list[tuple[int, str]]) -> bool:
    """Is it shell although it is marked as something else (`python train.py` in a block of Python)?"""
    first = [line for before, line in zip(["", *(text for _, text in block)], (text for _, text in block), strict=False)
             if line.strip() and not line.lstrip().startswith("#") and not before.rstrip().endswith("\\")]  # fmt: skip
    return bool(first) and all(_COMMAND_LINE.match(line) for line in first)


def _commands(path: str, body: list[str], offset: int, title: str, variables: dict[str, str]) -> list[DocumentCommand]:
    """The commands under one heading; `variables` go from block to block, as for who pastes one after the other."""
    found: list[DocumentCommand] = []
    block: list[tuple[int, str]] = []
    paragraph, before, fence, language = "", "", "", ""

    def flush() -> None:
        marked = language.lower() not in _FOREIGN
        if block and (marked or _all_commands(block)):
            first = block[0][0]
            text = "\n".join(line for _, line in block)
            for item in parse_shell(text, variables):
                moved = Invocation(item.argv, item.line + first, item.directory, item.environment, item.comment)
                found.append(DocumentCommand(path, moved, f"{title}\n{before}\n{item.comment}", marked))
        block.clear()

    for index, line in enumerate(body):
        match = _FENCE.match(line)
        if match and (not fence or match.group(2).startswith(fence)):
            if fence:
                flush()
                fence = ""
            else:
                fence, language, before = match.group(2), match.group(3), paragraph
            continue
        if fence:
            block.append((offset + index, line))
            continue
        indented = line.startswith(("    ", "\t")) and _COMMAND_LINE.match(line)
        if indented or (block and line.startswith(("    ", "\t"))):
            if not block:
                language, before = "", paragraph
            block.append((offset + index, line.strip()))
            continue
        flush()
        for inline in _INLINE.findall(line):
            for item in parse_shell(inline):
                moved = Invocation(item.argv, offset + index + 1, item.directory, item.environment)
                found.append(DocumentCommand(path, moved, f"{title}\n{line}"))
        paragraph = f"{paragraph} {line.strip()}".strip() if line.strip() else (paragraph if not line.strip() else "")
        if line.strip() and index and not body[index - 1].strip():
            paragraph = line.strip()
    flush()
    return found
