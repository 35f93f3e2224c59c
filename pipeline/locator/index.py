"""The index of one snapshot: everything that does not depend on the task, computed once.

With `cache`, what each file says is kept by the file's digest, so that the same file is read once over all commits.
"""

from __future__ import annotations

import contextlib
import gc
import graphlib
import json
import os
import posixpath
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pipeline.digests import digest_of
from pipeline.locator.console import read_console_scripts
from pipeline.locator.documents import DocumentSection, read_document
from pipeline.locator.facts import FileFacts, Import, analyse
from pipeline.locator.inventory import ListedFile, list_files, read_text, some_of
from pipeline.locator.launch import HELP
from pipeline.locator.lexical import Bag, Lexicon, Vocabulary
from pipeline.locator.links import KnownCommand, Links, find_links
from pipeline.locator.places import Place, acts, find_places
from pipeline.locator.shell import Invocation
from pipeline.locator.text import labels, tokens
from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity

__all__ = ["RepositoryIndex", "Unit", "build_index"]
# Raise when `FileFacts` or what fills it changes: older cache entries are then not read.
_FACTS_VERSION = 9
_EMPTY = 3
"""Lines below which a package's `__init__` is there for Python alone."""
_DATA_CONFIG = {"json", "toml", "cfg", "ini"}


@dataclass(frozen=True, slots=True)
class Unit:
    """A command that the repository states: what a task is compared with first."""

    command: KnownCommand
    files: tuple[int, ...]
    """Positions of the file that it runs, of the script that states it, of the files that its arguments name."""


@dataclass(slots=True)
class RepositoryIndex:
    """A snapshot, read. `facts` are the files that can be ranked, by path; what is numbered is in their order."""

    snapshot: Snapshot
    facts: list[FileFacts]
    position: dict[str, int]
    links: Links
    vocabulary: Vocabulary
    content: Lexicon
    """The words of each file, those of its path included."""
    paths: Lexicon
    units: list[Unit]
    statements: Lexicon
    """The words of each unit: headings, paragraph and comment above it, the command, the paths of its files."""
    projects: Lexicon
    """The READMEs of each directory that has one."""
    project_of: npt.NDArray[np.int64]
    """For each file, the nearest of these; -1: none."""
    project_names: list[str]
    """Directory of each."""
    sections: Lexicon
    places: list[Place]
    problems: tuple[Problem, ...]

    @property
    def size(self) -> int:
        """Number of files that can be ranked."""
        return len(self.facts)


def build_index(snapshot: Snapshot, *, cache: Path | None = None) -> RepositoryIndex:
    """Read a snapshot for `locate`.

    Args:
        snapshot: the repository at one commit.
        cache: a directory for what each file says; created when missing, safe to delete.

    Returns:
        The index. Files that could not be read or parsed are in its `problems`.
    """
    listed, problems = list_files(snapshot)
    read: list[FileFacts] = []
    documents: list[DocumentSection] = []
    vocabulary = Vocabulary()
    bags: dict[str, Bag] = {}
    with _no_search_for_cycles():
        for file in listed:
            if file.kind == "document":
                text, found = read_text(snapshot, file)
                documents += read_document(file.path, text)
                facts = analyse(file, text)
            else:
                facts, found = _facts(snapshot, file, cache)
            read.append(_counted(facts, vocabulary, bags))
            problems += found
    links = find_links(read, documents, read_console_scripts(snapshot))
    used = _configurations(links)
    kept = [facts for facts in read if _can_matter(facts, used)]
    problems += [*(_unparsed(facts) for facts in kept if facts.error), *_generated(kept), *_cycle(kept, links)]
    position = {facts.path: number for number, facts in enumerate(kept)}
    units = _units(links, kept, position)
    readmes = _readmes(links)
    projects = sorted(readmes)
    return RepositoryIndex(
        snapshot=snapshot,
        facts=kept,
        position=position,
        links=links,
        vocabulary=vocabulary,
        content=Lexicon([bags[facts.path] for facts in kept], vocabulary),
        paths=Lexicon.of([facts.path for facts in kept], vocabulary, b=1.0),
        units=units,
        statements=Lexicon([_statement(unit, kept, vocabulary) for unit in units], vocabulary),
        projects=Lexicon.of([f"{project}\n{readmes[project]}" for project in projects], vocabulary),
        project_of=np.array([_nearest(facts.path, projects) for facts in kept], dtype=np.int64),
        project_names=projects,
        sections=Lexicon.of([f"{section.title} {section.text}" for section, _, _ in links.sections], vocabulary),
        places=find_places(kept, links.imports),
        problems=tuple(problems),
    )


def _units(links: Links, kept: list[FileFacts], position: Mapping[str, int]) -> list[Unit]:
    """The commands that run a file which does something; not those that only ask a program about itself."""
    found: dict[tuple[object, ...], Unit] = {}
    for command in links.commands:
        number = position.get(command.target)
        if number is None or not acts(kept[number]) or HELP & set(command.launch.arguments):
            continue
        named = [posixpath.join(command.directory, word.split("=")[-1]) for word in command.launch.arguments]
        stating = [command.path] if command.origin in {"shell", "make"} else []
        paths = dict.fromkeys([command.target, *stating, *map(posixpath.normpath, named)])
        files = tuple(position[path] for path in paths if path in position)
        found.setdefault((command.path, command.context, command.launch.argv), Unit(command, files))
    return list(found.values())


def _statement(unit: Unit, kept: list[FileFacts], vocabulary: Vocabulary) -> Bag:
    command = unit.command
    text = " ".join([command.context, *command.launch.argv, *(kept[number].path for number in unit.files)])
    return vocabulary.bag(Counter([*tokens(text), *labels(command.context)]))


def _readmes(links: Links) -> dict[str, str]:
    """Directory -> its README."""
    found: dict[str, str] = {}
    for section, _, _ in links.sections:
        directory, name = posixpath.split(section.path)
        if name.lower().startswith("readme"):
            found[directory] = f"{found.get(directory, '')}\n{section.title} {section.text}"
    return found


def _nearest(path: str, projects: list[str]) -> int:
    """The nearest directory above a file that is in the list; -1: none."""
    directory = posixpath.dirname(path)
    while directory and directory not in projects:
        directory = posixpath.dirname(directory)
    return projects.index(directory) if directory in projects else -1


@contextlib.contextmanager
def _no_search_for_cycles() -> Iterator[None]:
    """Syntax trees are many objects without cycles: looking for some is a fifth of the time to read a repository."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _counted(facts: FileFacts, vocabulary: Vocabulary, bags: dict[str, Bag]) -> FileFacts:
    """Move the words of a file into a bag: as text, those of 10,000 files are a gigabyte."""
    words = Counter(facts.words)
    words.update(tokens(facts.path))
    bags[facts.path] = vocabulary.bag(words)
    facts.words = {}
    return facts


def _configurations(links: Links) -> set[str]:
    used: set[str] = set()
    for targets in (*links.configs.values(), *links.commanded.values()):
        used |= targets
    for _, named, run in links.sections:
        used |= named | run
    return used


def _can_matter(facts: FileFacts, used: set[str]) -> bool:
    """JSON and the like count only where code, shell or a document names them: most of them are data."""
    if facts.path.endswith("__init__.py") and not facts.definitions and facts.lines < _EMPTY:
        return False
    suffix = posixpath.splitext(facts.path)[1].lstrip(".").lower()
    if facts.file.kind == "config":
        return not facts.file.tooling and (suffix not in _DATA_CONFIG or facts.path in used)
    return True


def _unparsed(facts: FileFacts) -> Problem:
    what = "no notebook that can be read" if facts.path.endswith(".ipynb") else "not valid Python 3"
    return _problem(facts.path, f"{what} ({facts.error}): ranked by its text only", Severity.WARNING)


def _generated(kept: list[FileFacts]) -> list[Problem]:
    found = [facts.path for facts in kept if facts.generated]
    message = f"{some_of(found)}: written by a program, by their header or the length of their lines: they rank low"
    return [_problem(found[0], message, Severity.INFO)] if found else []


def _cycle(kept: list[FileFacts], links: Links) -> list[Problem]:
    """One circle of imports, where there is one: Python resolves some of them, and others fail when they are run."""
    try:
        graphlib.TopologicalSorter({facts.path: sorted(links.imports.get(facts.path, ())) for facts in kept}).prepare()
    except graphlib.CycleError as error:
        circle = error.args[1]
        return [_problem(circle[0], f"imports lead in a circle: {some_of(circle[:-1])}", Severity.INFO)]
    return []


def _problem(where: str, message: str, severity: Severity) -> Problem:
    return Problem(component="locator.index", where=where, message=message, severity=severity)


def _facts(snapshot: Snapshot, file: ListedFile, cache: Path | None) -> tuple[FileFacts, list[Problem]]:
    stored = _entry(cache, file) if cache else None
    if stored is not None:
        known = _load(stored, file)
        if known is not None:
            return known, []
    text, problems = read_text(snapshot, file)
    facts = analyse(file, text)
    if stored is not None and not problems:
        _store(stored, facts)
    return facts, problems


def _entry(cache: Path, file: ListedFile) -> Path:
    key = digest_of([_FACTS_VERSION, file.path, file.sha256])
    return cache / key[:2] / f"{key}.json"


def _store(path: Path, facts: FileFacts) -> None:
    """Write atomically; two processes may write the same entry."""
    # shallow: copying every word of a file one by one costs as much as reading the file did
    values = {item.name: getattr(facts, item.name) for item in fields(facts) if item.name != "file"}
    values["imports"] = [asdict(item) for item in facts.imports]
    values["commands"] = [asdict(item) for item in facts.commands]
    values["targets"] = {name: [asdict(item) for item in items] for name, items in facts.targets.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        stream.write(json.dumps(values, separators=(",", ":")))
    Path(name).replace(path)


def _load(path: Path, file: ListedFile) -> FileFacts | None:
    """A stored entry; None when there is none or it is damaged (it is then written anew)."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(values["words"], dict):
            return None
        values["imports"] = tuple(
            Import(item["level"], item["module"], tuple(item["names"])) for item in values["imports"]
        )
        values["commands"] = tuple(_invocation(item) for item in values["commands"])
        values["targets"] = {name: tuple(map(_invocation, items)) for name, items in values["targets"].items()}
        for name in ("definitions", "references", "hydra", "groups", "defaults"):
            values[name] = tuple(values[name])
        return FileFacts(file=file, **values)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _invocation(item: dict[str, object]) -> Invocation:
    values = dict(item)
    values["argv"] = tuple(item["argv"])  # type: ignore[arg-type]
    values["environment"] = tuple(tuple(pair) for pair in item["environment"])  # type: ignore[attr-defined]
    return Invocation(**values)  # type: ignore[arg-type]
