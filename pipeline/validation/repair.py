"""A chain that stopped for want of something that the repository can give: run it elsewhere, or run more of it.

A failed run says what it missed. Three wants are met by the repository itself: a path that only fits another working
directory, a folder for output that git cannot hold while it is empty, and results that an earlier step makes. The last
one is known from what documents and wrappers run before the same command, or from the one script that names the file
and writes files. Nothing is guessed about data that nobody can make here; cells of a notebook that need none still run.

Non-goals: missing modules and libraries (see `rerun.missing_parts`); other scripts (see `refine`).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import Final, NamedTuple

from pipeline.errors import FailureKind
from pipeline.locator import Chain, RepositoryIndex
from pipeline.locator.launch import is_placeholder
from pipeline.locator.links import KnownCommand
from pipeline.repository import Snapshot
from pipeline.task import SourceScript, Usage, ValidationReport
from pipeline.validation.commands import started_path
from pipeline.validation.diagnosis import missing_in_log, read_tail
from pipeline.validation.tracebacks import Refused, refused_path

__all__ = ["CommandRepair", "Repair", "passes_over_errors", "repaired", "repaired_commands", "stopped_commands"]

_SEQUENCES: Final = frozenset({"document", "shell"})
"""Where the order of commands is the order in which they are run; targets of a Makefile are alternatives."""
_MAX_STEPS: Final = 8
"""A list with more commands before this one is that of all experiments rather than the way to one."""
_MAX_SOURCE: Final = 400_000
_WRITING: Final = re.compile(
    r"\b(?:to_csv|to_json|to_parquet|to_pickle|to_excel|to_hdf|to_feather|savetxt|savez\w*|np\.save|torch\.save|"
    r"json\.dump|pickle\.dump|yaml\.dump|write_text|write_bytes|csv\.writer|DictWriter)\b|\bopen\([^\n]*['\"][wax]b?['\"]"
)
_CODE: Final = (".py", ".ipynb")
_NO_FILE: Final = ("FileNotFoundError:", "OSError:")
_ALLOW: Final = "--allow-errors"
_TEST: Final = re.compile(r"(?:^|/)(?:tests?/|test_|conftest\.py)|_test\.py$")


class Repair(NamedTuple):
    """A chain put right, and in words how."""

    chain: Chain
    what: str


def repaired(
    chain: Chain,
    report: ValidationReport,
    out: Path,
    *,
    snapshot: Snapshot,
    index: RepositoryIndex,
    slow: AbstractSet[tuple[str, ...]] = frozenset(),
) -> Repair | None:
    """The chain with what its last run missed; None when the run did not fail so, or nothing of the kind helps.

    Args:
        chain: what was run.
        report: how it went.
        out: the directory that was given to `validate`.
        snapshot: the repository.
        index: the same, as the locator reads it; its links hold the commands that the repository states.
        slow: commands that are known to hit a limit: a chain is not made longer by one.
    """
    run = report.runs[-1] if report.runs else None
    if run is None or run.failure != FailureKind.RUN_FAILED.value or len(run.exit_codes) > len(chain.usage):
        return None
    number = next((i for i, code in enumerate(run.exit_codes) if code != 0), None)
    if number is None:
        return None
    found = repaired_commands(
        chain.usage, number, out / Path(run.log).name, snapshot=snapshot, index=index, known=chain.entries, slow=slow
    )
    return Repair(_with_commands(chain, found), found.what) if found is not None else None


def repaired_commands(
    usage: Sequence[Usage], number: int, directory: Path, *, snapshot: Snapshot, index: RepositoryIndex,
    known: Collection[str] = (), slow: AbstractSet[tuple[str, ...]] = frozenset(),
) -> CommandRepair | None:  # fmt: skip
    """As `repaired`, for commands that belong to no chain.

    Args:
        usage: what was run.
        number: of the command that failed.
        directory: where the streams of the run lie.
        snapshot: the repository.
        index: the same, as the locator reads it.
        known: programs that are run already, and add nothing as an earlier step.
        slow: see `repaired`.
    """
    error, printed = (read_tail(directory / f"{number}.{stream}") for stream in ("stderr", "stdout"))
    refused = refused_path(error, snapshot) or refused_path(printed, snapshot)
    tree = _Tree(snapshot)
    script = started_path(snapshot, usage[number])
    stated = [command.path for command in index.links.commands if command.target == script]
    for missed in [refused] if refused is not None else _spoken(error):
        found = _elsewhere(usage, number, script, missed, tree, stated) or _with_folder(usage, number, missed, tree)
        if found is not None:
            return found
    found = (
        _prepared(usage, number, script, index, known)
        or _produced(usage, number, script, refused, tree, known)
        or _past_errors(usage, number, f"{error}\n{printed}")
    )
    return None if found is not None and any(step.argv in slow for step in found.usage) else found


def stopped_commands(usage: Sequence[Usage], report: ValidationReport) -> set[tuple[str, ...]]:
    """The commands at which runs hit a limit (time, memory, disk, output)."""
    stopped: set[tuple[str, ...]] = set()
    for run in report.runs:
        if run.failure not in {None, FailureKind.RUN_FAILED.value} and run.scale == "full":
            number = next((i for i, code in enumerate(run.exit_codes) if code != 0), len(run.exit_codes) - 1)
            stopped |= {usage[number].argv} if 0 <= number < len(usage) else set()
    return stopped


class CommandRepair(NamedTuple):
    """Commands put right: in words how, and the programs that were added as earlier steps."""

    usage: tuple[Usage, ...]
    what: str
    added: tuple[str, ...] = ()


class _Tree:
    """The repository's files and the folders that they make."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.files = {file.path for file in snapshot.files}
        self.folders = {"."}
        for path in self.files:
            while path := posixpath.dirname(path):
                self.folders.add(path)

    def has(self, path: str) -> bool:
        return path in self.files or path in self.folders


def _outside(path: str) -> bool:
    return path.startswith(("/", ".."))


# --- another working directory ---------------------------------------------------------------------------------------


def _spoken(error: str) -> list[Refused]:
    """What may be the missing path where an exception tells it in a sentence: `x.txt not found.` (NumPy)."""
    lines = [line for line in error.splitlines() if line.startswith(_NO_FILE)]
    words = lines[-1].partition(":")[2].split() if lines else []
    return [Refused(word.strip("'\"`.,:;()"), writing=False) for word in words if "." in word.strip("'\"`.,:;()")]


def _elsewhere(
    usage: Sequence[Usage], number: int, script: str | None, refused: Refused, tree: _Tree, stated: Sequence[str]
) -> CommandRepair | None:
    """From the directory where the path that was refused makes sense.

    It is that of the script or above it, that of a page that states the command, else the only one that has the path.
    """
    here = posixpath.normpath(usage[number].directory)
    if script is None or refused.rooted or posixpath.isabs(refused.path) or _fits(refused, here, tree):
        return None
    near = [*_upwards(script), *(posixpath.dirname(path) or "." for path in stated)]
    there = next((place for place in near if place != here and _fits(refused, place, tree)), None)
    if there is None:
        holding = [] if refused.writing else [place for place in tree.folders if _fits(refused, place, tree)]
        if len(holding) != 1:
            return None
        there = holding[0]
    reason = f"run from {there}: `{refused.path}` means nothing from {here}"
    moved = tuple(
        _moved(other, there, reason, tree)
        if started_path(tree.snapshot, other) == script and posixpath.normpath(other.directory) == here
        else other
        for other in usage
    )
    return CommandRepair(moved, reason)


def _upwards(script: str) -> Iterator[str]:
    place = posixpath.dirname(script)
    while place:
        yield place
        place = posixpath.dirname(place)
    yield "."


def _fits(refused: Refused, place: str, tree: _Tree) -> bool:
    """Is the path there from this directory, or, where it was to be written, the folder that it goes into?

    `../results` is a folder to make where it is inside the repository, as it cannot mean one outside.
    """
    path = posixpath.normpath(posixpath.join(place, refused.path))
    if _outside(path):
        return False
    if not refused.writing:
        return tree.has(path)
    return (posixpath.dirname(path) or ".") in tree.folders


def _moved(step: Usage, there: str, reason: str, tree: _Tree) -> Usage:
    here = step.directory
    argv = []
    for word in step.argv:
        path = posixpath.normpath(posixpath.join(here, word))
        known = tree.has(path) and not word.startswith(("-", "/")) and word != "."
        argv.append(posixpath.relpath(f"/{path}", f"/{there}") if known else word)
    return step.evolve(argv=tuple(argv), directory=there, reason="; ".join(filter(None, (step.reason, reason))))


# --- a folder for output ---------------------------------------------------------------------------------------------


def _with_folder(usage: Sequence[Usage], number: int, refused: Refused, tree: _Tree) -> CommandRepair | None:
    """With the folder that the output goes into: git holds no empty folders, so that only its authors have it."""
    if not refused.writing or (posixpath.isabs(refused.path) and not refused.rooted):
        return None
    base = "." if refused.rooted else usage[number].directory
    folder = posixpath.dirname(posixpath.normpath(posixpath.join(base, refused.path)))
    if not folder or _outside(folder) or tree.has(folder):
        return None
    made = ("mkdir", "-p", folder)
    if any(step.argv == made for step in usage):
        return None
    reason = f"`{folder}` is written into and not in the repository: git holds no empty folders"
    return CommandRepair((Usage(argv=made, reason=reason), *usage), reason)


# --- earlier steps ---------------------------------------------------------------------------------------------------


def _prepared(
    usage: Sequence[Usage], number: int, script: str | None, index: RepositoryIndex, known: Collection[str]
) -> CommandRepair | None:
    """With the commands that a document or a wrapper of the repository runs before this one."""
    if script is None:
        return None
    done = {step.argv for step in usage}
    for command in index.links.commands:
        if command.target != script or command.origin not in _SEQUENCES:
            continue
        before = [
            other
            for other in _listed_before(command, index)
            if other.launch.argv not in done and other.target not in known and not _TEST.search(other.target)
            and not any(is_placeholder(word) for word in other.launch.argv)
        ]  # fmt: skip
        if before and len(before) <= _MAX_STEPS:
            where = f"{command.path}:{command.line}"
            names = ", ".join(dict.fromkeys(other.target for other in before))
            steps = [Usage(argv=other.launch.argv, directory=other.directory, reason=f"{other.path}:{other.line}")
                     for other in before]  # fmt: skip
            what = f"{names} first, as {where} says"
            return _with_steps(usage, number, steps, [other.target for other in before], what)
    return None


def _listed_before(command: KnownCommand, index: RepositoryIndex) -> list[KnownCommand]:
    """What the same list runs earlier: of a document, the same section; of a script, all that stands above."""
    starts = [section.line for section, _, _ in index.links.sections if section.path == command.path]
    start = max((line for line in starts if line <= command.line), default=0) if command.origin == "document" else 0
    found = [
        other
        for other in index.links.commands
        if other.path == command.path and other.origin == command.origin and start <= other.line < command.line
    ]
    return sorted(found, key=lambda other: other.line)


def _produced(
    usage: Sequence[Usage], number: int, script: str | None, refused: Refused | None, tree: _Tree,
    known: Collection[str],
) -> CommandRepair | None:  # fmt: skip
    """With the one script that names the missing file and writes files."""
    name = posixpath.basename(refused.path.rstrip("/")) if refused is not None and not refused.writing else ""
    if "." not in name.strip("."):
        return None
    makers = [
        path
        for path in sorted(tree.files)
        if path.endswith(".py") and path != script and path not in known and not _TEST.search(path)
        and _makes(tree.snapshot.text(path, _MAX_SOURCE), name)
    ]  # fmt: skip
    if len(makers) != 1:
        return None
    reason = f"it is the only script that names `{name}` and writes files"
    what = f"{makers[0]} first: {reason}"
    step = Usage(argv=("python", makers[0]), reason=reason)
    return _with_steps(usage, number, [step], makers, what)


def _past_errors(usage: Sequence[Usage], number: int, log: str) -> CommandRepair | None:
    """A notebook whose failing cells are passed over, as its reader does: what the others show is a part of it.

    Seen: three scenarios, of which the data of two are not in the repository. A missing module is the environment's.
    """
    argv = usage[number].argv
    if "nbconvert" not in argv or _ALLOW in argv or missing_in_log(log):
        return None
    step = usage[number].evolve(argv=(*argv, _ALLOW))
    return CommandRepair(
        (*usage[:number], step, *usage[number + 1 :]), "cells of the notebook that fail are passed over"
    )


def passes_over_errors(usage: Sequence[Usage]) -> bool:
    """Does a notebook that these execute end well whatever its cells do?"""
    return any(_ALLOW in step.argv for step in usage)


def _makes(code: str, name: str) -> bool:
    return re.search(rf"(?<![\w.-]){re.escape(name)}(?![\w-])", code) is not None and bool(_WRITING.search(code))


def _with_steps(
    usage: Sequence[Usage], number: int, steps: Sequence[Usage], scripts: Sequence[str], what: str
) -> CommandRepair:
    """With commands before the `number`th."""
    return CommandRepair((*usage[:number], *steps, *usage[number:]), what, tuple(dict.fromkeys(scripts)))


def _with_commands(chain: Chain, found: CommandRepair) -> Chain:
    """The chain with these commands; the scripts of earlier steps become part of what answers the task."""
    known = {source.path for source in chain.sources}
    added = [
        SourceScript(
            path=path, role="entry" if path.endswith((".py", ".ipynb")) else "wrapper", score=0.0,
            reasons=(found.what,),
        )
        for path in found.added
        if path not in known
    ]  # fmt: skip
    place = next((i for i, source in enumerate(chain.sources) if source.role == "entry"), 0)
    return chain.evolve(sources=(*chain.sources[:place], *added, *chain.sources[place:]), usage=found.usage)
