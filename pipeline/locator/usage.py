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

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.launch import HARMLESS_VARIABLES, is_placeholder
from pipeline.locator.links import KnownCommand
from pipeline.locator.query import QueryWords
from pipeline.locator.text import GENERIC, compact, tokens
from pipeline.schema import Problem, Severity
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, effective, read_options
from pipeline.tracing.modules import ModuleMap
from pipeline.tracing.source import read_unit

__all__ = ["EntryUsage", "usage_for"]

_MAX_COMMANDS = 24
"""Commands for one entry point: a wrapper's sweep (3 data sets x 4 horizons x 2 seeds); more are named in a problem."""
_ORIGIN = {"document": 1.0, "make": 0.8, "shell": 0.7, "docstring": 0.5, "notebook": 0.3}
_LAUNCH_OPTIONS = {"mode", "phase", "stage", "split", "device", "action", "gpu", "gpus", "seed", "log_level", "backend"}
_LAUNCH_VALUES = GENERIC | {
    "true",
    "false",
    "none",
    "all",
    "cpu",
    "cuda",
    "mean",
    "sum",
    "default",
    "auto",
    "both",
    "val",
}


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
    stated = [command for command in index.links.commands if command.target == entry]
    if not stated:
        return _default(index, entry, options, words)
    chosen = _choose(stated, options, words, set(preferred))
    result = EntryUsage([], [], [], 1.0)
    for command in chosen:
        arguments, notes, certainty = _fill(entry, command.launch.arguments, options, words, index)
        head = command.launch.argv[: len(command.launch.argv) - len(command.launch.arguments)]
        for filled in arguments:
            usage = Usage(
                argv=(*head, *filled),
                directory=command.directory,
                reason="; ".join([f"{command.path}:{command.line}", *notes]),
            )
            if all(usage.argv != other.argv for other in result.usage):
                result.usage.append(usage)
        result.certainty = min(result.certainty, certainty)
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


def _options(index: RepositoryIndex, entry: str) -> tuple[Option, ...]:
    """The options of the entry point, or of the module of its own project that parses them for it."""
    paths = [entry, *sorted(index.links.imports.get(entry, ()))]
    for path in paths:
        number = index.position.get(path)
        if number is None or not index.facts[number].cli:
            continue
        unit = read_unit(path, index.snapshot.text(path))
        if unit.tree is not None:
            options = read_options(unit.tree)
            if options:
                return options
    return ()


# --- choosing among stated commands ----------------------------------------------------------------------------------


def _choose(
    stated: list[KnownCommand], options: Sequence[Option], words: QueryWords, preferred: set[str]
) -> list[KnownCommand]:
    """The best command, with the others of its block that the task asks for as well."""
    said = set(words.all)
    bags = [set(tokens(f"{command.context} {' '.join(command.launch.arguments)}")) for command in stated]
    frequency = Counter(token for bag in bags for token in bag)
    total = len(stated)

    def fit(number: int) -> float:
        command = stated[number]
        shared = bags[number] & said
        value = sum(math.log(1 + total / frequency[token]) for token in shared)
        norm = math.sqrt(sum(math.log(1 + total / frequency[token]) for token in bags[number])) or 1.0
        open_words = sum(is_placeholder(word) or word.startswith("~") for word in command.launch.arguments)
        # a README at the top speaks of the whole; a file to be filled in by the reader cannot be run as it stands
        value = value / norm + _ORIGIN[command.origin] - 1.5 * min(open_words, 3)
        if command.origin == "document" and "/" not in command.path:
            value += 0.3
        if command.path in preferred:
            value += 1.0
        return value

    order = sorted(range(total), key=lambda number: (-round(fit(number), 9), stated[number].path, stated[number].line))
    best = stated[order[0]]
    block = [
        command
        for command in stated
        if command.path == best.path
        and command.context == best.context
        and command.launch.argv[:1] == best.launch.argv[:1]
        and not (command.line == best.line and command.launch.argv == best.launch.argv)
    ]
    group = sorted([best, *block], key=lambda command: command.line)
    unique = list({command.launch.argv: command for command in group}.values())
    return _asked_for(unique, best, options, words)


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
        named = {value for value in spread if _names(value, words)}
        if named:
            kept = [number for number in kept if values[number].get(name, "") in named]
    narrowed = [group[number] for number in kept]
    return narrowed or [best]


def _names(value: str, words: QueryWords) -> bool:
    """Does the task name a flag's value (`electricity.csv`, `2-layer`, `ours`)?"""
    low = posixpath.splitext(posixpath.basename(value))[0].lower() if "/" in value or "." in value else value.lower()
    if low in _LAUNCH_VALUES or len(low) < 2:
        return False
    if re.fullmatch(r"[\d.]+(?:e-?\d+)?", value):
        return bool(re.search(rf"(?<![\w.]){re.escape(value)}(?![\w.]|%)", words.lower))
    parts = [part for part in re.split(r"[_\W]+", low) if part]
    if low in words.names or compact(low) in words.names:
        return True
    return len(parts) > 1 and all(part in words.names for part in parts) and any(part not in GENERIC for part in parts)


# --- filling in values -----------------------------------------------------------------------------------------------


def _fill(
    entry: str, arguments: tuple[str, ...], options: Sequence[Option], words: QueryWords, index: RepositoryIndex
) -> tuple[list[tuple[str, ...]], list[str], float]:
    """Arguments with the values that the task names; several lists where it compares values of one option."""
    values = effective(options, arguments)
    stated_words, notes = _without_placeholders(tuple(word for word in arguments if word not in {"...", "…"}), options)
    current = [stated_words]
    certainty = 1.0 - 0.2 * min(sum(is_placeholder(word) for word in arguments), 3)
    compared = False
    spread = Counter(choice for option in options for choice in set(option.choices))
    for option in options:
        # a value of several options does not say which of them it is meant for
        own = option.required or _names(option.name, words)
        named = [choice for choice in option.choices if _names(choice, words) and (own or spread[choice] == 1)]
        if not named or option.name in _LAUNCH_OPTIONS or option.positional or option.switch:
            continue
        stated = values.get(option.name)
        present = (stated if stated is not None else option.default or "").split()
        if stated is not None and any(choice in present for choice in named):
            continue
        if stated is None and named == present:
            continue
        flag = next(word for word in option.flags if word.startswith("-"))
        if option.many or len(named) == 1:
            current = [_set(words_, flag, named, option) for words_ in current]
        elif not compared and stated is None and len(named) <= 4:
            compared = True
            current = [_set(words_, flag, [choice], option) for words_ in current for choice in named]
        else:
            continue
        notes.append(f"{flag} {' '.join(named)}: the task names it")
    configured = [_configure(entry, words_, options, words, index) for words_ in current]
    if configured and configured[0][1]:
        notes.append(configured[0][1])
    return [words_ for words_, _ in configured], notes, certainty


def _without_placeholders(arguments: tuple[str, ...], options: Sequence[Option]) -> tuple[tuple[str, ...], list[str]]:
    """Leave out optional flags whose value the reader would have to fill in: the program then takes its default."""
    values = effective(options, arguments)
    notes = []
    for option in options:
        stated = values.get(option.name)
        if stated is None or not is_placeholder(stated) or option.required or option.positional:
            continue
        arguments = _removed(arguments, option)
        notes.append(f"{option.flags[0]} left at its default: {stated} is a placeholder")
    return arguments, notes


def _set(arguments: tuple[str, ...], flag: str, values: list[str], option: Option) -> tuple[str, ...]:
    """Replace or append one option."""
    return (*_removed(arguments, option), flag, *values)


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


def _configure(
    entry: str, arguments: tuple[str, ...], options: Sequence[Option], words: QueryWords, index: RepositoryIndex
) -> tuple[tuple[str, ...], str]:
    """Take the configuration of the same family that the task names (`configs/moons.yaml` for a task about moons)."""
    values = effective(options, arguments)
    for option in options:
        stated = values.get(option.name, option.default or "")
        if not stated.endswith((".yaml", ".yml", ".json", ".toml")) and not (option.required and "conf" in option.name):
            continue
        if option.positional or (option.name not in values and not option.required and not stated):
            continue
        directory = posixpath.dirname(stated)
        family = [
            facts.path
            for facts in index.facts
            if facts.file.kind == "config"
            and (posixpath.dirname(facts.path).endswith(directory) if directory else True)
        ]
        elsewhere = {path for target, paths in index.links.commanded.items() if target != entry for path in paths}
        named = [path for path in family if _names(path, words) and path not in elsewhere]
        if len(named) != 1 or posixpath.basename(named[0]) == posixpath.basename(stated):
            continue
        if stated and _names(stated, words):
            continue
        flag = next(word for word in option.flags if word.startswith("-"))
        value = posixpath.join(directory, posixpath.basename(named[0])) if directory else named[0]
        return _set(arguments, flag, [value], option), f"{flag} {value}: the configuration that the task names"
    return arguments, ""


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
    filled, notes, _ = _fill(entry, (), options, words, index)
    reason = "; ".join([f"no command is stated: {why}, options at their defaults", *notes])
    usage = [Usage(argv=(*head, *arguments), reason=reason) for arguments in filled]
    problems = []
    certainty = 0.7
    set_here = effective(options, filled[0])
    missing = [option.flags[0] for option in options if option.required and option.name not in set_here]
    if missing:
        certainty = 0.3
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
    if rooted and not beside and "sys.path" not in text:
        return ("python", "-m", entry[:-3].replace("/", ".")), "its imports resolve from the root"
    return ("python", entry), "run from the root"


def _environment(command: KnownCommand) -> list[Problem]:
    dropped = [f"{name}={value}" for name, value in command.environment if name not in HARMLESS_VARIABLES]
    if not dropped:
        return []
    return [_problem(f"{command.path}:{command.line}", f"the command needs {', '.join(dropped)} in its environment")]


def _problem(where: str, message: str) -> Problem:
    return Problem(component="locator.usage", where=where, message=message, severity=Severity.WARNING)
