"""What the locator's agent submits, and the check of it against the repository.

Nothing of an answer is believed: files must exist, quotes must stand in the lines that are named, commands must run a
file of the chain. What does not hold is said in words that the model can act on.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal

from pydantic import Field

from pipeline.locator.launch import normalise
from pipeline.schema import Record
from pipeline.task import Usage
from pipeline.tracing.lines import FileLines, quote_problem

__all__ = ["AgentAnswer", "AgentCommand", "AgentQuote", "DroppedFile", "KeptFile", "complaints_about", "usage_of"]

_SHELL: Final = re.compile(r"[|;<>`]|&&|\$\(|\n")
_RUNNABLE: Final = (".py", ".ipynb", ".sh", ".bash", ".slurm", ".sbatch")
_NEEDED: Final = (*_RUNNABLE, ".yaml", ".yml", ".toml", ".gin")
"""Words of a command with these endings are read by it (JSON and text may be what it writes)."""
_WRITES: Final = re.compile(r"out|save|dump|write|dest|export", re.I)


Path = Annotated[str, Field(max_length=1000)]


class AgentQuote(Record):
    """Lines of a repository file, copied word for word."""

    path: Path
    start: int = Field(ge=1, description="first line, counted from 1")
    end: int = Field(ge=1, description="last line, included")
    quote: str = Field(min_length=1, max_length=4000, description="text that stands in these lines, copied exactly")


class KeptFile(Record):
    """A file of the chain."""

    path: Path
    role: Literal["entry", "config", "wrapper", "library"]
    why: str = Field(min_length=1, max_length=600)
    evidence: tuple[AgentQuote, ...] = Field(min_length=1, max_length=6)


class DroppedFile(Record):
    """A candidate of the deterministic search that does not belong, and why."""

    path: Path
    why: str = Field(min_length=1, max_length=600)
    evidence: tuple[AgentQuote, ...] = Field(min_length=1, max_length=4)


class AgentCommand(Record):
    """One command of the chain."""

    argv: tuple[Annotated[str, Field(max_length=4000)], ...] = Field(
        min_length=1, max_length=200, description='e.g. ["python", "train.py", "--seed", "1"]'
    )
    directory: Path = Field(default=".", description="where it is run, relative to the root of the repository")
    why: str = Field(min_length=1, max_length=600, description="where the command and its arguments come from")


class AgentAnswer(Record):
    """The decision: a chain with its commands, or `not_found` with the reason."""

    chain: tuple[KeptFile, ...] = Field(default=(), max_length=40, description="empty when nothing was found")
    commands: tuple[AgentCommand, ...] = Field(default=(), max_length=40, description="in the order in which they run")
    dropped: tuple[DroppedFile, ...] = Field(default=(), max_length=20)
    not_found: str = Field(default="", max_length=1000, description="why no file answers the task; empty with a chain")

    @property
    def entries(self) -> tuple[str, ...]:
        """Paths of the entry points."""
        return tuple(file.path for file in self.chain if file.role == "entry")


@dataclass(frozen=True, slots=True)
class _Checker:
    files: FileLines
    answer: AgentAnswer

    def chain(self) -> Iterator[str]:
        seen: set[str] = set()
        for file in self.answer.chain:
            if file.path in seen:
                yield f"{file.path} is listed twice in the chain"
            seen.add(file.path)
            if not self.files.readable(file.path):
                yield f"{file.path} is no text file of the repository"
                continue
            if file.role == "entry" and not file.path.endswith(_RUNNABLE):
                yield f"{file.path} cannot be an entry point: only Python files, notebooks and shell scripts are run"
            if not any(self._concerns(quote, file.path) for quote in file.evidence):
                yield f"no evidence for {file.path} is from that file or names it"
            yield from self._quotes(file.evidence, file.path)

    def dropped(self, candidates: Sequence[str]) -> Iterator[str]:
        kept = {file.path for file in self.answer.chain}
        listed = {file.path for file in self.answer.dropped}
        for path in candidates:
            if path not in kept | listed:
                yield f"{path} is an entry point of the search's best chain: keep it, or list it under `dropped`"
        for file in self.answer.dropped:
            if file.path in kept:
                yield f"{file.path} is both kept and dropped"
            if file.path not in self.files:
                yield f"{file.path} (dropped) is no file of the repository"
            if not any(self._concerns(quote, file.path) for quote in file.evidence):
                yield f"no evidence for {file.path} (dropped) is from that file or names it"
            yield from self._quotes(file.evidence, f"{file.path} (dropped)")

    def _concerns(self, quote: AgentQuote, path: str) -> bool:
        name = posixpath.basename(path)
        return quote.path == path or name in quote.quote or posixpath.splitext(name)[0] in quote.quote

    def _quotes(self, evidence: Sequence[AgentQuote], what: str) -> Iterator[str]:
        for quote in evidence:
            wrong = quote_problem(self.files, quote.path, quote.start, quote.end, quote.quote)
            if wrong:
                yield f"evidence for {what}: {wrong}"

    def commands(self) -> Iterator[str]:
        kept = {file.path: file.role for file in self.answer.chain}
        run: set[str] = set()
        for number, command in enumerate(self.answer.commands, 1):
            wrong, targets = _command_problem(self.files, command, kept)
            run |= targets
            if wrong:
                yield f"command {number} ({' '.join(command.argv)[:120]}): {wrong}"
        if not self.answer.commands:
            yield "there is no command that runs the chain"
        elif not any(kept.get(path) == "wrapper" or path.endswith((".sh", ".bash")) for path in run):
            for path in self.answer.entries:
                if path not in run:
                    yield f"no command runs the entry point {path}"


def complaints_about(answer: AgentAnswer, files: FileLines, candidates: Sequence[str], searches: int) -> list[str]:
    """What is wrong with an answer, in words for the model; empty when it holds.

    Args:
        answer: what was submitted.
        files: the repository.
        candidates: entry points of the deterministic chain, which must be kept or dropped with a reason.
        searches: how many searches and reads came before it.
    """
    checker = _Checker(files, answer)
    if bool(answer.chain) == bool(answer.not_found.strip()):
        return ["give either a chain or a reason under `not_found`, and not both"]
    if not answer.chain:
        wrong = list(checker.dropped(candidates))
        if answer.commands:
            wrong.append("there are commands, but no chain")
        if searches == 0:
            wrong.append("`not_found` needs a search: nothing was listed, searched or read yet")
        return wrong
    if not answer.entries:
        return ["the chain has no file with the role `entry`"]
    return [*checker.chain(), *checker.commands(), *checker.dropped(candidates)]


def _command_problem(files: FileLines, command: AgentCommand, kept: Mapping[str, str]) -> tuple[str | None, set[str]]:
    directory = posixpath.normpath(command.directory)
    if not files.is_directory(directory):
        return f"{command.directory} is no directory of the repository", set()
    shell = next((word for word in command.argv if _SHELL.search(word)), None)
    if shell is not None:
        return f"{shell!r} needs a shell, and commands are run without one", set()
    if normalise(command.argv) is None:
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
    if not any(kept[path] in {"entry", "wrapper"} for path in targets):
        return "it runs no entry point or wrapper of the chain", targets
    return None, targets


def _module_files(name: str, directory: str) -> tuple[str, ...]:
    base = posixpath.normpath(posixpath.join(directory, name.replace(".", "/")))
    return f"{base}.py", f"{base}/__main__.py"


def usage_of(command: AgentCommand) -> Usage:
    """The command in the form that is re-run: launchers taken off or replaced by their module."""
    launch = normalise(command.argv)
    argv = launch.argv if launch is not None else command.argv
    return Usage(argv=argv, directory=posixpath.normpath(command.directory), reason=f"model: {command.why}")
