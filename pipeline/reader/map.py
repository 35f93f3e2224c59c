"""The whole repository at a glance, in a bounded size: files, documentation, commands, programs, results.

Byte-identical for the same snapshot, so that it can be the cached beginning of all conversations about it. What had no
room is counted where it would stand. Non-goal: choosing by a task; nothing here knows one.
"""

from __future__ import annotations

import posixpath
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.locator.documents import DocumentSection
from pipeline.locator.index import RepositoryIndex
from pipeline.reader.tools import shown_command
from pipeline.survey import Candidate
from pipeline.text import shorten
from pipeline.validation.outputs import is_result_file

__all__ = ["MAP_CHARACTERS", "repository_map"]

MAP_CHARACTERS: Final = 22_000
"""About 6,000 tokens."""
_SHARES: Final = {"tree": 0.42, "commands": 0.14, "programs": 0.08, "results": 0.05}
"""Of the size, at most. Documents have what these leave; what they leave gives the tree more detail."""
_PROGRAMS: Final = frozenset({"python", "notebook", "shell", "make"})
_FEW: Final = 12
"""Configurations that a directory names one by one when room is scarce."""
_SAME: Final = 3
"""Commands of one program from one file that are shown; sweeps unroll into dozens."""
_STATED: Final = 6
"""Commands of one script, Makefile or notebook that are shown."""
_CONTEXT: Final = 100


def repository_map(index: RepositoryIndex, candidates: Sequence[Candidate], *, characters: int = MAP_CHARACTERS) -> str:
    """A repository as text for a model, which goes there as untrusted.

    Args:
        index: from `build_index`.
        candidates: from `pipeline.survey.list_candidates`.
        characters: the most that it has.
    """
    count = len(index.snapshot.files)
    head = f"{count} files. A directory and its files with their sizes, * can be run, counts in [] by ending:"
    room = characters - len(head) - 20
    tree = _tree(index, int(room * _SHARES["tree"]))
    documents, told = _documents(index, room - len(tree) - int(room * (sum(_SHARES.values()) - _SHARES["tree"])))
    elsewhere = [item for item in candidates if item.where.rpartition(":")[0] not in told]
    commands = _commands(elsewhere, int(room * _SHARES["commands"]))
    programs = _programs(index, int(room * _SHARES["programs"]))
    results = _results(index, int(room * _SHARES["results"]))
    tree = _tree(index, room - sum(map(len, (documents, commands, programs, results))))
    return "\n\n".join(part for part in (f"{head}\n{tree}", documents, commands, programs, results) if part)


# --- tree ------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Folder:
    """What stands in one line of the tree."""

    names: list[str] = field(default_factory=list)
    counted: Counter[str] = field(default_factory=Counter)
    """Files that are not named, by ending."""
    size: int = 0
    """Of these."""


def _tree(index: RepositoryIndex, room: int) -> str:
    """The tree with as much detail as fits: sizes go first, then names of configurations and tests, then depth."""
    deepest = max((file.path.count("/") for file in index.snapshot.files), default=0)
    details = [(0, deepest), (1, deepest), *((2, depth) for depth in range(deepest, -1, -1))]
    lines: list[str] = []
    for detail, depth in details:
        lines = _folders(index, detail, depth)
        if sum(map(len, lines)) + len(lines) <= room:
            break
    return "\n".join(_fit(lines, room, "more directories"))


def _folders(index: RepositoryIndex, detail: int, depth: int) -> list[str]:
    vendored = _vendored(index)
    configs = Counter(posixpath.dirname(facts.path) for facts in index.facts if facts.file.kind == "config")
    folders: dict[str, _Folder] = defaultdict(_Folder)
    for file in index.snapshot.files:
        directory = posixpath.dirname(file.path)
        outside = next((item for item in _above(directory) if item in vendored), None)
        place = outside if outside is not None else "/".join(directory.split("/")[:depth]) if depth else ""
        folder = folders[place]
        number = index.position.get(file.path)
        deep = directory.count("/") + bool(directory) > depth
        if outside is None and not deep and number is not None and _is_named(index, number, detail, configs):
            kind, name = index.facts[number].file.kind, posixpath.basename(file.path)
            run = "*" if kind in _PROGRAMS and index.places[number].runs else ""
            folder.names.append(f"{name}{run}" + (f" {_size(file.size)}" if detail == 0 else ""))
        else:
            folder.counted[posixpath.splitext(file.path)[1].lower() or "no ending"] += 1
            folder.size += file.size
    return [_line(name, folders[name], name in vendored) for name in sorted(folders)]


def _is_named(index: RepositoryIndex, number: int, detail: int, configs: Counter[str]) -> bool:
    facts, place = index.facts[number], index.places[number]
    if facts.file.kind == "config":
        return detail == 0 or (detail == 1 and configs[posixpath.dirname(facts.path)] <= _FEW)
    return detail < 2 or not (place.test or place.setup or place.package_file)


def _line(name: str, folder: _Folder, vendored: bool) -> str:
    counts = sorted(folder.counted.items(), key=lambda item: (-item[1], item[0]))
    told = ", ".join(f"{count} {ending}" for ending, count in counts[:4])
    more = sum(count for _, count in counts[4:])
    told += f", {more} others" if more else ""
    rest = [f"[{'brought along from elsewhere: ' if vendored else ''}{told}, {_size(folder.size)}]"] if counts else []
    return f"{name or '.'}/ {', '.join([*folder.names, *rest])}"


def _vendored(index: RepositoryIndex) -> set[str]:
    """Directories of which all that can be read is other people's."""
    held: dict[str, bool] = {}
    for facts in index.facts:
        for directory in _above(posixpath.dirname(facts.path)):
            held[directory] = held.get(directory, True) and facts.file.vendored
    return {directory for directory, every in held.items() if every and directory}


def _above(directory: str) -> list[str]:
    """A directory and those above it, from the outermost."""
    parts = directory.split("/")
    return ["/".join(parts[: number + 1]) for number in range(len(parts))]


def _size(count: int) -> str:
    for unit in ("", "k", "M"):
        if count < 1000:
            return f"{count}{unit}"
        count = round(count / 1000)
    return f"{count}G"


# --- documentation ---------------------------------------------------------------------------------------------------


def _documents(index: RepositoryIndex, room: int) -> tuple[str, set[str]]:
    """READMEs, the outermost first, and which are in full: else headings and the sections that hold commands."""
    pages: dict[str, list[DocumentSection]] = defaultdict(list)
    for section, _, _ in index.links.sections:
        pages[section.path].append(section)
    parts: list[str] = []
    untold: list[str] = []
    full: set[str] = set()
    for path in sorted(pages, key=_reading_order):
        sections = pages[path]
        text = "\n".join(map(_numbered, sections))
        readme = posixpath.basename(path).lower().startswith("readme")
        if readme and len(text) + len(path) + 20 <= room:
            part = f"--- {path}:\n{text}"
            full.add(path)
        elif readme and (shown := _short(path, sections, room)):
            part = shown
        else:
            untold.append(path)
            continue
        parts.append(part)
        room -= len(part) + 1
    if untold:
        parts.append(shorten(f"Other documents: {len(untold)}: {', '.join(untold)}", 400))
    return "\n".join(parts), full


def _short(path: str, sections: Sequence[DocumentSection], room: int) -> str:
    """A long page: its headings, and in full those sections that hold commands, as many as fit."""
    headings = [f"{section.line} {section.title.rpartition(' > ')[2][:80]}" for section in sections if section.title]
    head = f"--- {path}, headings by line: {'; '.join(headings)}"
    head = head if len(head) <= room // 3 else f"{head[: room // 3]} [...]"
    commanded = [section for section in sections if section.commands]
    room -= len(head)
    if room < 400:  # less than a paragraph and a command
        return ""
    texts = [text if len(text) <= room // 2 else f"{text[: room // 2]} [...]" for text in map(_numbered, commanded)]
    shown = _fit(texts, room, "more sections hold commands")
    return "\n".join([f"{head}\nIts sections that hold commands:" if shown else head, *shown])


def _numbered(section: DocumentSection) -> str:
    """Its lines with their numbers, so that they can be named as evidence; without the blank ones."""
    lines = enumerate(section.text.splitlines(), section.line)
    return "\n".join(f"{number}: {line}" for number, line in lines if line.strip())


def _reading_order(path: str) -> tuple[object, ...]:
    """A README before other pages, the nearer to the root the earlier."""
    return (not posixpath.basename(path).lower().startswith("readme"), path.count("/"), path)


# --- commands, programs, results -------------------------------------------------------------------------------------


def _commands(candidates: Sequence[Candidate], room: int) -> str:
    """Stated commands with their place and what stands around them; some of each program and of each script."""
    counted: Counter[str] = Counter()
    lines, alike = [], 0
    for candidate in candidates:
        if candidate.origin == "entry":
            continue
        path = candidate.where.rpartition(":")[0] or candidate.where
        counted.update([path, f"{path} {candidate.entry}"])
        several = candidate.origin not in {"document", "paper"} and counted[path] > _STATED
        if several or counted[f"{path} {candidate.entry}"] > _SAME:
            alike += 1
            continue
        directory = candidate.usage.directory
        where = f" (in {directory})" if directory != "." else ""
        words = f" | {shorten(candidate.text, _CONTEXT)}" if candidate.text not in {"", path} else ""
        lines.append(f"{candidate.where}: {shorten(shown_command(candidate.usage.argv), 240)}{where}{words}")
    more = [f"[{alike} more commands in the same files]"] if alike else []
    return _titled("Commands stated elsewhere:", [*_fit(lines, room - 120, "more commands"), *more])


def _programs(index: RepositoryIndex, room: int) -> str:
    """What can be run and says what it is."""
    told = [
        f"{facts.path}: {shorten(facts.summary, 110)}"
        for facts, place in zip(index.facts, index.places, strict=True)
        if place.runs and not place.aside and facts.summary and facts.file.kind in {"python", "notebook"}
    ]
    told.sort(key=lambda line: (line.partition(":")[0].count("/"), line))
    return _titled("What programs say of themselves:", _fit(told, room - 40, "more programs"))


def _results(index: RepositoryIndex, room: int) -> str:
    """Committed files that may hold results: what is neither code nor configuration nor documentation."""
    folders: dict[str, list[str]] = defaultdict(list)
    for file in index.snapshot.files:
        if file.path not in index.position and is_result_file(file.path) and not file.path.endswith((".yaml", ".yml")):
            folders[posixpath.dirname(file.path)].append(posixpath.basename(file.path))
    lines = [
        f"{name or '.'}/ {', '.join(names[:3])}" + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        for name, names in sorted(folders.items())
    ]
    return _titled("Committed files that may hold numbers:", _fit(lines, room - 40, "more directories"))


def _titled(title: str, lines: Sequence[str]) -> str:
    return "\n".join([title, *lines]) if lines else ""


def _fit(lines: Iterable[str], room: int, what: str) -> list[str]:
    """As many lines as fit, from the first; the others are counted."""
    ordered = list(lines)
    shown: list[str] = []
    for line in ordered:
        room -= len(line) + 1
        if room < (0 if len(shown) + 1 == len(ordered) else 40):
            break
        shown.append(line)
    left = len(ordered) - len(shown)
    return [*shown, f"[{left} {what}]"] if left else shown
