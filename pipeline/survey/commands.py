"""Candidate commands of a repository: those that it or the paper states, then entry points that state none.

The order is that in which a person would try them: README first, other documents, the paper, Makefile and scripts,
usage in docstrings, notebooks, and last the programs that nothing speaks of. Nothing here decides what a task is: what
the commands compute does (see `pipeline.rehearse`).

Non-goals: choosing arguments for a task (`pipeline.locator.usage`), commands of tests, of set-up and of parts that
other people wrote.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Iterator
from typing import Final, Literal

from pipeline.digests import digest_of
from pipeline.locator import RepositoryIndex
from pipeline.locator.launch import HARMLESS_VARIABLES, is_placeholder, normalise
from pipeline.locator.links import KnownCommand
from pipeline.locator.usage import HELP, default_usage, filled_usage
from pipeline.paper import Document
from pipeline.schema import Record
from pipeline.survey.printed import read_printed_commands
from pipeline.task import Usage

__all__ = ["Candidate", "Origin", "list_candidates"]

Origin = Literal["document", "make", "shell", "docstring", "notebook", "paper", "entry"]
_STATED: Final[tuple[Origin, ...]] = ("make", "shell", "docstring", "notebook")
_PROGRAMS: Final = (".py", ".ipynb")
_AT_ONCE: Final = 6
"""Of a sweep over one program (4 data sets x 5 seeds) so many come before other programs have their turn."""
_TEST_TOOLS: Final = frozenset({"pytest", "unittest", "nose"})


class Candidate(Record):
    """A command that may compute what the paper states."""

    key: str
    """Stable name, for directories and references: `method-3fa4c2d1`."""
    usage: Usage
    entry: str
    """The file that it runs."""
    origin: Origin
    where: str
    """Where it is stated, e.g. `README.md:41` or `page 7`; of an entry point, where it is named, or itself."""
    text: str = ""
    """What stands around it there: heading, paragraph, comment."""


def list_candidates(index: RepositoryIndex, document: Document | None) -> tuple[Candidate, ...]:
    """The commands of a repository that are worth running, most promising first, each once.

    Args:
        index: the repository.
        document: the paper, which may print commands, too; None: there is none.
    """
    stated = [command for command in index.links.commands if _may_run(index, command.target)]
    found = [*_spread(_stated(index, [item for item in stated if item.origin == "document"]))]
    if document is not None:
        found += _spread(_printed(index, document))
    for origin in _STATED:
        found += _spread(_stated(index, [item for item in stated if item.origin == origin]))
    known = {candidate.entry for candidate in found}
    found += sorted(_entries(index), key=lambda candidate: candidate.entry in known)
    unique: dict[tuple[object, ...], Candidate] = {}
    for candidate in found:
        unique.setdefault(_meaning(candidate), candidate)
    return tuple(unique.values())


def _may_run(index: RepositoryIndex, path: str) -> bool:
    """Is it an own program of the repository that may show a result? A folder `test` may hold the experiments."""
    number = index.position.get(path)
    if number is None:
        return False
    place = index.places[number]
    if place.setup or place.vendored or place.package_file:
        return False
    return not any(_TEST_TOOLS & {item.module.split(".")[0]} for item in index.facts[number].imports)


def _meaning(candidate: Candidate) -> tuple[object, ...]:
    """What a command does; `python src/a.py` from the root and `python a.py` from `src` may find other files."""
    launch = normalise(candidate.usage.argv)
    rest = candidate.usage.argv if launch is None else (candidate.entry, *launch.arguments)
    return (posixpath.normpath(candidate.usage.directory), rest)


def _spread(found: Iterator[Candidate] | list[Candidate]) -> list[Candidate]:
    """In the given order, but some of each program before more of one."""
    counted: Counter[str] = Counter()
    placed = []
    for number, candidate in enumerate(found):
        placed.append((counted[candidate.entry] // _AT_ONCE, number, candidate))
        counted[candidate.entry] += 1
    return [candidate for _, _, candidate in sorted(placed, key=lambda item: item[:2])]


# --- commands that stand somewhere -----------------------------------------------------------------------------------


def _stated(index: RepositoryIndex, commands: list[KnownCommand]) -> Iterator[Candidate]:
    for command in sorted(commands, key=_reading_order):
        where = f"{command.path}:{command.line}"
        usage = _runnable(index, command)
        if usage is not None:
            text = " ".join(command.context.split())
            yield _candidate(usage, command.target, command.origin, where, text)


def _reading_order(command: KnownCommand) -> tuple[object, ...]:
    return (*_document_order(command.path), command.line)


def _document_order(path: str) -> tuple[object, ...]:
    """A README before other pages, the nearer to the root the earlier."""
    name = posixpath.basename(path).lower()
    return (not name.startswith("readme"), path.count("/"), path)


def _runnable(index: RepositoryIndex, command: KnownCommand) -> Usage | None:
    """The command as it can be run; None where it only tells about itself, tests, or leaves something to fill in."""
    launch = command.launch
    if HELP & set(launch.arguments) or "pytest" in launch.argv[:3]:
        return None
    where = f"{command.path}:{command.line}"
    if command.target.endswith(".ipynb") and "papermill" not in launch.argv:
        # however it is said to be opened, a notebook is executed as a whole, with a kernel that is there
        usage = default_usage(index, command.target)
        return None if usage is None else usage.evolve(reason=where)
    usage = filled_usage(index, command)
    if any(is_placeholder(word) for word in usage.argv):
        return None
    needed = [f"{name}={value}" for name, value in command.environment if name not in HARMLESS_VARIABLES]
    return usage.evolve(argv=("env", *needed, *usage.argv)) if needed else usage


def _printed(index: RepositoryIndex, document: Document) -> Iterator[Candidate]:
    for printed in read_printed_commands(index, document):
        if _may_run(index, printed.command.target):
            usage = _runnable(index, printed.command)
            if usage is not None:
                where = f"page {printed.page}"
                yield _candidate(usage.evolve(reason=where), printed.command.target, "paper", where, printed.text)


# --- programs that nothing runs --------------------------------------------------------------------------------------


def _entries(index: RepositoryIndex) -> Iterator[Candidate]:
    """Programs and notebooks: those that a document names first, then what is there to be run, near the root first."""
    named = _named(index)

    def order(path: str) -> tuple[object, ...]:
        place = index.places[index.position[path]]
        return (place.test, path not in named, not place.runs, path.count("/"), path)

    for path in sorted((facts.path for facts in index.facts if _acts(index, facts.path)), key=order):
        usage = default_usage(index, path)
        if usage is not None:
            origin: Origin = "notebook" if path.endswith(".ipynb") else "entry"
            where, text = named.get(path, (path, index.facts[index.position[path]].summary))
            yield _candidate(usage, path, origin, where, text)


def _acts(index: RepositoryIndex, path: str) -> bool:
    """Does running the file do anything? One that only defines things does not."""
    facts = index.facts[index.position[path]]
    if not _may_run(index, path) or facts.error:
        return False
    return facts.file.kind == "notebook" or (facts.file.kind == "python" and (facts.main or facts.acts))


def _named(index: RepositoryIndex) -> dict[str, tuple[str, str]]:
    """File -> (place, heading) where a document first names it, also by its name without ending in backquotes."""
    stems: dict[str, list[str]] = {}
    for path in index.position:
        if path.endswith(_PROGRAMS):
            stems.setdefault(posixpath.splitext(posixpath.basename(path))[0], []).append(path)
    alone = {stem: paths[0] for stem, paths in stems.items() if len(paths) == 1}
    found: dict[str, tuple[str, str]] = {}
    ordered = sorted(index.links.sections, key=lambda item: (*_document_order(item[0].path), item[0].line))
    for section, names, _ in ordered:
        quoted = {alone[word] for word in section.text.split("`")[1::2] if word in alone}
        for path in sorted(names | quoted):
            found.setdefault(path, (f"{section.path}:{section.line}", section.title))
    return found


def _candidate(usage: Usage, entry: str, origin: Origin, where: str, text: str) -> Candidate:
    stem = re.sub(r"[^a-z0-9]+", "-", posixpath.splitext(posixpath.basename(entry))[0].lower()).strip("-")
    key = f"{stem[:40] or 'command'}-{digest_of([usage.argv, usage.directory])[:8]}"
    return Candidate(key=key, usage=usage, entry=entry, origin=origin, where=where, text=text[:1000])
