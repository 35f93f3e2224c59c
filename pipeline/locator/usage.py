"""The command that runs an entry point for one task, with concrete arguments.

Commands that the repository itself states come first (README, wrappers, Makefile, usage in a docstring); the one whose
surroundings and arguments fit the task is taken, and the flags whose value the task names are set. Where nothing is
stated, the command is the entry point with its defaults.
"""

from __future__ import annotations

import math
import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.locator.families import nearest, speaks_of, spoken_of
from pipeline.locator.filling import fill
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.launch import HARMLESS_VARIABLES, is_placeholder
from pipeline.locator.links import KnownCommand
from pipeline.locator.query import QueryWords, TaskQuery
from pipeline.locator.text import tokens
from pipeline.locator.variables import put_in, uses_variables
from pipeline.schema import Problem, Severity
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, as_number, effective, read_options
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import read_unit

__all__ = ["HELP", "EntryUsage", "default_usage", "filled_usage", "usage_for"]

_MAX_COMMANDS = 24
"""Commands for one entry point: a wrapper's sweep (3 data sets x 4 horizons x 2 seeds); more are named in a problem."""
_ORIGIN = {"document": 1.0, "make": 0.8, "shell": 0.7, "docstring": 0.5, "notebook": 0.3}
HELP: Final = frozenset(
    {"--help", "-h", "--helpfull", "--helpshort", "--version", "--dry-run", "--dry_run", "--dryrun"}
)
"""With one of these a program tells about itself, or what it would do, and ends."""
_INCOMPLETE: Final = 0.3
"""Certainty of a command that lacks an argument."""
_NO_TASK: Final = QueryWords.of(TaskQuery(question=""))
_USES = re.compile(r"^\$\{?[A-Za-z_]\w*\}?$")


@dataclass(slots=True)
class EntryUsage:
    """The commands for one entry point."""

    usage: list[Usage]
    problems: list[Problem]
    wrappers: list[str]
    """Shell scripts that the commands were read from."""
    certainty: float
    """1 for a stated command without anything left open, less for defaults and placeholders."""


def usage_for(index: RepositoryIndex, entry: str, words: QueryWords, preferred: Sequence[str] = ()) -> EntryUsage:
    """The commands that run `entry` for the task.

    Args:
        index: the repository.
        entry: path of a Python file or notebook.
        words: the task.
        preferred: wrappers of the chain; their commands go before others.
    """
    options = _options(index, entry)
    stated = [
        command
        for command in index.links.commands
        if command.target == entry and not HELP & set(command.launch.arguments)
    ]
    if not stated:
        return _default(index, entry, options, words)
    chosen = _choose(index, stated, options, words, set(preferred))
    result = EntryUsage([], [], [], 1.0)
    for command in chosen:
        stated_words, where = _with_variables(index, command, words)
        filled = fill(index, entry, stated_words, options, words)
        head = _head_of(command)
        for arguments in filled.arguments:
            usage = Usage(
                argv=(*head, *arguments),
                directory=command.directory,
                reason="; ".join([f"{command.path}:{command.line}", *where, *filled.notes]),
            )
            if all(usage.argv != other.argv for other in result.usage):
                result.usage.append(usage)
        left = sum(is_placeholder(word) for word in filled.arguments[0])
        result.certainty = min(result.certainty, 1.0 - 0.2 * min(left, 3))
        result.problems += [_problem(entry, text) for text in filled.open]
        result.problems += _environment(command)
        if command.origin == "shell" and command.path not in result.wrappers:
            result.wrappers.append(command.path)
    if len(result.usage) > _MAX_COMMANDS:
        result.problems.append(
            _problem(entry, f"{len(result.usage)} commands fit the task; the first {_MAX_COMMANDS} are kept")
        )
        del result.usage[_MAX_COMMANDS:]
    open_words = sorted({word for usage in result.usage for word in usage.argv if is_placeholder(word)})
    if open_words:
        result.problems.append(_problem(entry, f"arguments that somebody has to fill in: {', '.join(open_words)}"))
    return result


def default_usage(index: RepositoryIndex, entry: str) -> Usage | None:
    """The command that runs a program for which none is stated, whatever the task; None where an argument is missing.

    Args:
        index: the repository.
        entry: path of a Python file or notebook.
    """
    found = _default(index, entry, _options(index, entry), _NO_TASK)
    return found.usage[0] if found.certainty > _INCOMPLETE else None


def filled_usage(index: RepositoryIndex, command: KnownCommand) -> Usage:
    """A stated command for no task in particular: optional arguments that the reader would fill in are left out.

    Words that stay to be filled in stay in it (`is_placeholder`).
    """
    stated, where = _with_variables(index, command, _NO_TASK)
    notes: list[str] = []
    if any(is_placeholder(word) or word == "…" for word in stated):
        filled = fill(index, command.target, stated, _options(index, command.target), _NO_TASK)
        stated, notes = filled.arguments[0], filled.notes
    reason = "; ".join([f"{command.path}:{command.line}", *where, *notes])
    return Usage(argv=(*_head_of(command), *stated), directory=command.directory, reason=reason)


def _head_of(command: KnownCommand) -> tuple[str, ...]:
    """Its launcher and target, without what comes after."""
    return _settled(command.launch.argv[: len(command.launch.argv) - len(command.launch.arguments)])


def _options(index: RepositoryIndex, entry: str) -> tuple[Option, ...]:
    """The options of the entry point, or of the module of its own project that parses them for it."""
    paths = [entry, *sorted(index.links.imports.get(entry, ()))]
    for path in paths:
        number = index.position.get(path)
        if number is None or not (index.facts[number].cli or path == entry):
            continue
        unit = read_unit(path, index.snapshot.text(path))
        if unit.tree is not None:
            options = read_options(unit.tree)
            if options:
                return options
    return ()


# --- choosing among stated commands ----------------------------------------------------------------------------------


def _open_words(command: KnownCommand) -> int:
    """Arguments that the reader has to fill in; variables that the document sets elsewhere are none."""
    words = command.launch.arguments
    return sum((is_placeholder(word) and not _USES.match(word)) or word.startswith("~") for word in words)


def _files_of(index: RepositoryIndex, command: KnownCommand) -> set[str]:
    """Files of the repository that the arguments of a command name."""
    words = [word.partition("=")[2] or word for word in command.launch.arguments]
    paths = {posixpath.normpath(posixpath.join(command.directory, word)) for word in words if "." in word}
    return paths & index.position.keys()


def _meant_files(index: RepositoryIndex, stated: Sequence[KnownCommand], words: QueryWords) -> str | None:
    """Of the files that commands are given (`train.py config/small.py`), the one that the task means."""
    paths = sorted({path for command in stated for path in _files_of(index, command)})
    return nearest(index, paths, words)[0] if len(paths) > 1 else None


def _choose(
    index: RepositoryIndex,
    stated: list[KnownCommand],
    options: Sequence[Option],
    words: QueryWords,
    preferred: set[str],
) -> list[KnownCommand]:
    """The best command, with the others of its block that the task asks for as well."""
    said = set(words.all)
    bags = [set(tokens(f"{command.context} {' '.join(command.launch.arguments)}")) for command in stated]
    frequency = Counter(token for bag in bags for token in bag)
    total = len(stated)

    meant = _meant_files(index, stated, words)
    meant_values = {
        option.name: option.default
        for option in options
        if option.default
        and not option.switch
        and as_number(option.default) is None
        and speaks_of(option.default, words)
    }

    def fit(number: int) -> float:
        command = stated[number]
        shared = bags[number] & said
        value = sum(math.log(1 + total / frequency[token]) for token in shared)
        norm = math.sqrt(sum(math.log(1 + total / frequency[token]) for token in bags[number])) or 1.0
        open_words = _open_words(command)
        # a README at the top speaks of the whole; a file to be filled in by the reader cannot be run as it stands
        value = value / norm + _ORIGIN[command.origin] - 1.5 * min(open_words, 3)
        if command.origin == "document" and "/" not in command.path:
            value += 0.3
        if command.path in preferred:
            value += 1.0
        if meant and meant in _files_of(index, command):
            value += 1.0
        if meant_values:  # the task names what the program does by itself, and this command does something else
            given = effective(options, command.launch.arguments)
            other = [name for name, text in meant_values.items() if given.get(name, text) != text]
            value -= 1.5 * sum(not speaks_of(given[name], words) for name in other)
        return value

    order = sorted(range(total), key=lambda number: (-round(fit(number), 9), stated[number].path, stated[number].line))
    best = stated[order[0]]
    block = [
        command
        for command in stated
        if command.path == best.path
        and (command.context == best.context or _is_sibling(command, best))
        and command.launch.argv[:1] == best.launch.argv[:1]
        and not (command.line == best.line and command.launch.argv == best.launch.argv)
        and _open_words(command) <= _open_words(best)
    ]
    group = sorted([best, *block], key=lambda command: command.line)
    unique = list({command.launch.argv: command for command in group}.values())
    return _asked_for(unique, best, options, words)


def _is_sibling(command: KnownCommand, best: KnownCommand) -> bool:
    """Is it stated under the same heading, with the same flags and other values (`--mode A` here, `--mode B` there)?"""
    titles = {item.context.partition("\n")[0] for item in (command, best)}
    flags = [
        [word.partition("=")[0] for word in item.launch.arguments if word.startswith("-")] for item in (command, best)
    ]
    return len(titles) == 1 and command.origin == best.origin == "document" and sorted(flags[0]) == sorted(flags[1])


def _asked_for(
    group: list[KnownCommand], best: KnownCommand, options: Sequence[Option], words: QueryWords
) -> list[KnownCommand]:
    """Commands of a block whose differing values the task names; all of them where it names none of any option."""
    if len(group) == 1:
        return group
    values = [effective(options, command.launch.arguments) for command in group]
    kept = list(range(len(group)))
    for name in sorted({name for found in values for name in found}):
        spread = {found.get(name, "") for found in values}
        if len(spread) < 2:
            continue
        named = spoken_of(spread, words)
        if named:
            kept = [number for number in kept if values[number].get(name, "") in named]
    narrowed = [group[number] for number in kept]
    return narrowed or [best]


def _with_variables(
    index: RepositoryIndex, command: KnownCommand, words: QueryWords
) -> tuple[tuple[str, ...], list[str]]:
    """The arguments of a command with the variables that its document sets elsewhere, and where it does."""
    arguments = command.launch.arguments
    if command.origin != "document" or not uses_variables(arguments):
        return arguments, []
    filled, line = put_in(arguments, index.snapshot.text(command.path), words)
    return filled, [f"variables from {command.path}:{line}"] if line is not None else []


def _settled(head: tuple[str, ...]) -> tuple[str, ...]:
    """The launcher's own words without the options that the reader would have to fill in: it has defaults for them."""
    kept: list[str] = []
    for word in head:
        if is_placeholder(word) and "=" not in word:
            if kept and kept[-1].startswith("--"):
                kept.pop()
            continue
        if not (is_placeholder(word) and word.startswith("--")):
            kept.append(word)
    return tuple(kept)


# --- without a stated command ----------------------------------------------------------------------------------------


def _default(index: RepositoryIndex, entry: str, options: Sequence[Option], words: QueryWords) -> EntryUsage:
    if entry.endswith(".ipynb"):
        # the executed copy lies beside the notebook and is read as the run's output; the kernel that the author named
        # (`conda-env-mine`) exists only on the author's machine, and the run as a whole has a time limit of its own
        executed = f"{posixpath.basename(entry).removesuffix('.ipynb')}.executed.ipynb"
        argv = (
            "python", "-m", "nbconvert", "--to", "notebook", "--execute", "--ExecutePreprocessor.kernel_name=python3",
            "--ExecutePreprocessor.timeout=-1", "--output", executed, entry,
        )  # fmt: skip
        return EntryUsage(
            [Usage(argv=argv, reason="no command is stated: the notebook is executed as a whole")], [], [], 0.6
        )
    head, why = _head(index, entry)
    filled = fill(index, entry, (), options, words)
    reason = "; ".join([f"no command is stated: {why}, options at their defaults", *filled.notes])
    usage = [Usage(argv=(*head, *arguments), reason=reason) for arguments in filled.arguments]
    problems = [_problem(entry, text) for text in filled.open]
    certainty = 0.7
    set_here = effective(options, filled.arguments[0])
    missing = [option.flags[0] for option in options if option.required and option.name not in set_here]
    if missing:
        certainty = _INCOMPLETE
        problems.append(_problem(entry, f"required arguments without a known value: {', '.join(missing)}"))
    return EntryUsage(usage, problems, [], certainty)


def _head(index: RepositoryIndex, entry: str) -> tuple[tuple[str, ...], str]:
    """`python path`, or `python -m package.module` where its imports only resolve from the root."""
    facts = index.facts[index.position[entry]]
    directory = posixpath.dirname(entry)
    if not directory:
        return ("python", entry), "run from the root"
    modules = ModuleMap(item.path for item in index.facts)
    beside = rooted = 0
    for statement in facts.imports:
        if statement.level:
            rooted += 1
            continue
        first = statement.module.split(".")[0]
        if f"{directory}/{first}.py" in index.position or f"{directory}/{first}/__init__.py" in index.position:
            beside += 1
        elif modules.module(statement.module, entry) and (
            f"{first}.py" in index.position or any(path.startswith(f"{first}/") for path in index.position)
        ):
            rooted += 1
    text = index.snapshot.text(entry)
    importable = all(part.isidentifier() for part in entry[:-3].split("/"))
    if rooted and not beside and importable and "sys.path" not in text:
        return ("python", "-m", entry[:-3].replace("/", ".")), "its imports resolve from the root"
    return ("python", entry), "run from the root"


def _environment(command: KnownCommand) -> list[Problem]:
    dropped = [f"{name}={value}" for name, value in command.environment if name not in HARMLESS_VARIABLES]
    if not dropped:
        return []
    return [_problem(f"{command.path}:{command.line}", f"the command needs {', '.join(dropped)} in its environment")]


def _problem(where: str, message: str) -> Problem:
    return Problem(component="locator.usage", where=where, message=message, severity=Severity.WARNING)
