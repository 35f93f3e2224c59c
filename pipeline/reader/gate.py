"""What a reader submits about where tasks are carried out, and the check of it against the repository.

Nothing of an answer is believed: files and lines must exist, commands must run a file of the chain. What does not hold
is said in words that the reader can act on; what holds is kept, so that only the rest has to be submitted again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, Literal

from pydantic import Field

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.launch import normalise
from pipeline.schema import Record
from pipeline.task import Usage
from pipeline.tracing.lines import FileLines

__all__ = ["Choice", "ChosenCommand", "ChosenFile", "Gate", "TaskChoice", "command_problem", "usage_of"]

_SHELL: Final = re.compile(r"[|;<>`]|&&|\$\(|\n")
_RUNNABLE: Final = (".py", ".ipynb", ".sh", ".bash", ".slurm", ".sbatch")
_NEEDED: Final = (*_RUNNABLE, ".yaml", ".yml", ".toml", ".gin")
"""Words of a command with these endings are read by it (JSON and text may be what it writes)."""
_WRITES: Final = re.compile(r"out|save|dump|write|dest|export", re.I)
_PLACE: Final = r"^.{1,1000}:[0-9]{1,7}(?:-[0-9]{1,7})?$"
Path = Annotated[str, Field(max_length=1000)]


class ChosenFile(Record):
    """A file that carries out the task."""

    path: Path
    role: Literal["entry", "config", "wrapper", "library", "document"]
    why: str = Field(min_length=1, max_length=300, description="one line")
    lines: tuple[Annotated[str, Field(pattern=_PLACE)], ...] = Field(
        min_length=1, max_length=4, description='places that show it, as "path:12" or "path:12-40"'
    )


class ChosenCommand(Record):
    """One command of the chain."""

    argv: tuple[Annotated[str, Field(max_length=4000)], ...] = Field(
        min_length=1, max_length=200, description='e.g. ["python", "train.py", "--seed", "1"]; there is no shell'
    )
    directory: Path = Field(default=".", description="where it is run, relative to the root of the repository")
    why: str = Field(default="", max_length=300, description="where it comes from, e.g. README.md:41")


class TaskChoice(Record):
    """The decision on one task: files with their commands, or `not_found` with the reason."""

    task: int = Field(ge=1, description="number of the task")
    files: tuple[ChosenFile, ...] = Field(
        default=(), max_length=20, description="most certain first; empty when nothing was found"
    )
    commands: tuple[ChosenCommand, ...] = Field(default=(), max_length=40, description="in the order in which they run")
    not_found: str = Field(default="", max_length=1000, description="why no file carries it out; empty with files")

    @property
    def entries(self) -> tuple[str, ...]:
        """Paths of the entry points."""
        return tuple(file.path for file in self.files if file.role == "entry")


class Choice(Record):
    """The decisions on all tasks that were asked together."""

    tasks: tuple[TaskChoice, ...] = Field(min_length=1, max_length=40)


class Gate:
    """Checks what is submitted for some tasks and keeps what holds.

    Args:
        index: the repository.
        files: its files as numbered lines.
        count: how many tasks were asked.
        searched: what was looked at so far, as the tools note it.
    """

    def __init__(self, index: RepositoryIndex, files: FileLines, count: int, searched: Sequence[str]) -> None:
        self._index, self._files, self._count, self._searched = index, files, count, searched
        self.held: dict[int, TaskChoice] = {}
        """Number of a task -> the decision that holds."""

    def check(self, choice: Choice) -> list[str]:
        """What is wrong with a submission, in words for the reader; empty when all tasks have a decision that holds."""
        wrong: list[str] = []
        for answer in choice.tasks:
            if answer.task > self._count:
                wrong.append(f"there is no task {answer.task}")
                continue
            found = self._complaints(answer)
            wrong += [f"task {answer.task}: {complaint}" for complaint in found]
            if not found:
                self.held[answer.task] = answer
        missing = [number for number in range(1, self._count + 1) if number not in self.held]
        if not missing:
            return []
        if unsaid := sorted(set(missing) - {answer.task for answer in choice.tasks}):
            wrong.append(f"no decision on task {', '.join(map(str, unsaid))}")
        kept = ", ".join(map(str, sorted(self.held)))
        return [*wrong, f"kept: task {kept}; submit the others only"] if kept else wrong

    def _complaints(self, answer: TaskChoice) -> list[str]:
        if bool(answer.files) == bool(answer.not_found.strip()):
            return ["give either files or a reason under `not_found`, and not both"]
        if not answer.files:
            wrong = ["there are commands, but no files"] if answer.commands else []
            return wrong if self._searched else [*wrong, "`not_found` needs a search: nothing was searched or read yet"]
        if all(file.role == "document" for file in answer.files):
            return [
                *self._chain(answer),
                *(["documents are not run: leave out the commands"] if answer.commands else []),
            ]
        if not any(file.role in {"entry", "wrapper"} for file in answer.files):  # how one part computes: nothing is run
            unrun = "commands need a file with the role `entry` or `wrapper` that they run: name it, or leave them out"
            return [*self._chain(answer), *([unrun] if answer.commands else [])]
        return [*self._chain(answer), *self._commands(answer)]

    def _chain(self, answer: TaskChoice) -> Iterator[str]:
        seen: set[str] = set()
        for file in answer.files:
            if file.path in seen:
                yield f"{file.path} is listed twice"
            seen.add(file.path)
            if not self._files.readable(file.path):
                yield f"{file.path} is no text file of the repository"
                continue
            if file.role == "entry" and not file.path.endswith(_RUNNABLE):
                yield f"{file.path} cannot be an entry point: only Python files, notebooks and shell scripts are run"
            if file.role == "document" and not self._is_document(file.path):
                yield f"{file.path} is no document: give it another role"
            for place in file.lines:
                if wrong := self._place_problem(place):
                    yield f"lines of {file.path}: {wrong}"

    def _is_document(self, path: str) -> bool:
        number = self._index.position.get(path)
        return number is None or self._index.facts[number].file.kind == "document"

    def _place_problem(self, place: str) -> str | None:
        path, _, span = place.rpartition(":")
        first, _, last = span.partition("-")
        start, end = int(first), int(last or first)
        if not self._files.readable(path):
            return f"{path} is no text file of the repository"
        lines = self._files.lines(path)
        most = lines[-1][0] if lines else 0
        if not 1 <= start <= end <= most:
            return f"{place} does not exist: {path} has {most} lines"
        return None

    def _commands(self, answer: TaskChoice) -> Iterator[str]:
        kept = {file.path: file.role for file in answer.files}
        run: set[str] = set()
        for number, command in enumerate(answer.commands, 1):
            wrong, targets = command_problem(self._files, command, kept)
            run |= targets
            if wrong:
                yield f"command {number} ({' '.join(command.argv)[:120]}): {wrong}"
        if not answer.commands:
            yield "there is no command that runs the chain"
        elif not any(kept.get(path) == "wrapper" or path.endswith((".sh", ".bash")) for path in run):
            for path in answer.entries:
                if path not in run:
                    yield f"no command runs the entry point {path}: add one, or give it the role `library`"


def command_problem(files: FileLines, command: ChosenCommand, kept: Mapping[str, str]) -> tuple[str | None, set[str]]:
    """What is wrong with a command, or None, and which files of the chain it runs or reads.

    Args:
        files: the repository.
        command: what was submitted.
        kept: path of each file of the chain -> its role.
    """
    directory = posixpath.normpath(command.directory)
    if not files.is_directory(directory):
        return f"{command.directory} is no directory of the repository", set()
    shell = next((word for word in command.argv if _SHELL.search(word)), None)
    if shell is not None:
        return f"{shell!r} needs a shell, and commands are run without one", set()
    launch = normalise(command.argv)
    if launch is None:
        return "it does not run a Python file, module, notebook or shell script", set()
    targets: set[str] = set()
    before = ""
    for word in command.argv:
        value = word.partition("=")[2] if word.startswith("-") and "=" in word else word
        option = word.partition("=")[0] if word.startswith("-") else before
        before = word if word.startswith("-") else ""
        path = posixpath.normpath(posixpath.join(directory, value))
        if option == "-m":
            targets |= {found for found in _module_files(value, directory) if found in kept}
        if path in kept:
            targets.add(path)
        elif value.endswith(_NEEDED) and not _WRITES.search(option) and path not in files:
            return f"{value} does not exist in {directory}", targets
    run = (
        _module_files(launch.target, directory)
        if launch.module
        else (posixpath.normpath(posixpath.join(directory, launch.target)),)
    )
    # a debugger's statements made a program compute something else, and nobody had written that down
    if not any(kept.get(path) in {"entry", "wrapper"} for path in run):
        return f"it runs no entry point or wrapper of the chain, but {launch.target}", targets
    return None, targets


def _module_files(name: str, directory: str) -> tuple[str, ...]:
    base = posixpath.normpath(posixpath.join(directory, name.replace(".", "/")))
    return f"{base}.py", f"{base}/__main__.py"


def usage_of(command: ChosenCommand) -> Usage:
    """The command in the form that is re-run: launchers taken off or replaced by their module."""
    launch = normalise(command.argv)
    argv = launch.argv if launch is not None else command.argv
    return Usage(
        argv=argv, directory=posixpath.normpath(command.directory), reason=f"model: {command.why}".rstrip(": ")
    )
