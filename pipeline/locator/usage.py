"""The command that runs an entry point for one task, with concrete arguments.

Commands that the repository itself states come first (README, wrappers, Makefile, usage in a docstring), the one whose
surroundings and arguments share most with the task; a choice that an option declares and the task writes is set. Where
nothing is stated, the command is the entry point with its defaults.
"""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.launch import HARMLESS_VARIABLES, HELP, is_placeholder
from pipeline.locator.links import KnownCommand
from pipeline.locator.query import QueryWords
from pipeline.schema import Problem, Severity
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, as_number, effective, read_options
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import read_unit

__all__ = ["HELP", "EntryUsage", "default_usage", "filled_usage", "usage_for"]

_MAX_COMMANDS: Final = 24
"""Commands for one entry point: a wrapper's sweep (3 data sets x 4 horizons x 2 seeds); more are named in a problem."""
_INCOMPLETE: Final = 0.3
"""Certainty of a command that lacks an argument."""
_OPEN: Final = 0.7
"""What each argument that the reader has to fill in leaves of a command's score."""
_EQUAL: Final = 0.01
"""Share of the best score within which commands of one block are for the task alike: a sweep over seeds."""


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
    chosen = _choose(index, entry, words, frozenset(preferred))
    if not chosen:
        return _default(index, entry, options, words)
    result = EntryUsage([], [], [], 1.0)
    for command in chosen:
        arguments, notes = _filled(command.launch.arguments, options, words)
        reason = "; ".join([f"{command.path}:{command.line}", *notes])
        usage = Usage(argv=(*_head_of(command), *arguments), directory=command.directory, reason=reason)
        if all(usage.argv != other.argv for other in result.usage):
            result.usage.append(usage)
        left = sum(is_placeholder(word) for word in arguments)
        result.certainty = min(result.certainty, 1.0 - 0.2 * min(left, 3))
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
    found = _default(index, entry, _options(index, entry), None)
    return found.usage[0] if found.certainty > _INCOMPLETE else None


def filled_usage(index: RepositoryIndex, command: KnownCommand) -> Usage:
    """A stated command for no task in particular: optional arguments that the reader would fill in are left out.

    Args:
        index: the repository.
        command: one of its commands. What the reader has to fill in stays in it (`is_placeholder`).
    """
    arguments = command.launch.arguments
    notes: list[str] = []
    if any(is_placeholder(word) or word == "…" for word in arguments):
        arguments, notes = _filled(arguments, _options(index, command.target), None)
    reason = "; ".join([f"{command.path}:{command.line}", *notes])
    return Usage(argv=(*_head_of(command), *arguments), directory=command.directory, reason=reason)


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


def _choose(index: RepositoryIndex, entry: str, words: QueryWords, preferred: frozenset[str]) -> list[KnownCommand]:
    """The best command, with those of its block that share as much with the task."""
    scores = index.statements.scores(words.weights)
    stated = [(unit.command, float(score)) for unit, score in zip(index.units, scores, strict=True)
              if unit.command.target == entry]  # fmt: skip
    if not stated:
        return []
    marked = [(command, score * _OPEN ** _open_words(command)) for command, score in stated]
    ordered = sorted(marked, key=lambda item: (item[0].path not in preferred, -round(item[1], 9),
                                               item[0].path.count("/"), item[0].path, item[0].line))  # fmt: skip
    best, most = ordered[0]
    block = [
        command
        for command, score in marked
        if command.path == best.path
        and command.context.partition("\n")[0] == best.context.partition("\n")[0]
        and score >= (1.0 - _EQUAL) * most
    ]
    unique = {command.launch.argv: command for command in sorted(block, key=lambda command: command.line)}
    return list(unique.values())


def _open_words(command: KnownCommand) -> int:
    """Arguments that the reader has to fill in."""
    return sum(is_placeholder(word) or word.startswith("~") for word in command.launch.arguments)


def _filled(
    arguments: tuple[str, ...], options: Sequence[Option], words: QueryWords | None
) -> tuple[tuple[str, ...], list[str]]:
    """The arguments without placeholders of optional flags and with the choices that the task writes; what was done."""
    filled = tuple(word for word in arguments if word not in {"...", "…"})
    notes: list[str] = []
    for option in options:
        value = effective(options, filled).get(option.name)
        if value is not None and is_placeholder(value) and not option.required and not option.positional:
            filled = _removed(filled, option)
            notes.append(f"{option.flags[0]} left at its default: {value} is a placeholder")
    declared = Counter(choice for option in options for choice in set(option.choices))
    for option in options if words is not None else ():
        named = [choice for choice in option.choices if declared[choice] == 1 and _writes(words, choice)]
        if len(named) != 1 or option.positional or option.switch or named[0] == option.default:
            continue
        if effective(options, filled).get(option.name) is None:
            flag = max(option.flags, key=len)
            filled = (*filled, flag, named[0])
            notes.append(f"{flag} {named[0]}: the task names it")
    return filled, notes


def _writes(words: QueryWords | None, value: str) -> bool:
    """Does the task write a value out? Numbers stand for many things."""
    if words is None or len(value) < 2 or as_number(value) is not None:
        return False
    return re.search(rf"(?<![\w-]){re.escape(value.lower())}(?![\w-])", words.lower) is not None


def _removed(arguments: tuple[str, ...], option: Option) -> tuple[str, ...]:
    """The arguments without one option and its values."""
    kept: list[str] = []
    skip = 0
    for word in arguments:
        if word in option.flags:
            skip = 0 if option.switch else len(arguments) if option.many else 1
        elif word.partition("=")[0] in option.flags:
            continue
        elif skip and not word.startswith("--"):
            skip -= 1
        else:
            skip = 0
            kept.append(word)
    return tuple(kept)


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


def _default(index: RepositoryIndex, entry: str, options: Sequence[Option], words: QueryWords | None) -> EntryUsage:
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
    arguments, notes = _filled((), options, words)
    reason = "; ".join([f"no command is stated: {why}, options at their defaults", *notes])
    usage = [Usage(argv=(*head, *arguments), reason=reason)]
    problems: list[Problem] = []
    certainty = 0.7
    set_here = effective(options, arguments)
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
