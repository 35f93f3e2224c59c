"""Stage 2.2, second half (EXP-Bench 3.2): what a chain implements, from its syntax trees."""

from __future__ import annotations

import ast
import posixpath
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity
from pipeline.task import CodeEvidence, Hyperparameter, Requirement, SourceScript, Usage
from pipeline.tracing.branches import drop_untaken, known_values
from pipeline.tracing.callgraph import Reaching, reach
from pipeline.tracing.factories import settle_constants, settle_factories
from pipeline.tracing.focus import drop_unrelated
from pipeline.tracing.loading import loaded_configs, named_configs
from pipeline.tracing.need import Need
from pipeline.tracing.needs import data_needs
from pipeline.tracing.program import Module, Program
from pipeline.tracing.settings import arguments_of, settings_of, stated_needs, unfollowed, unset_options
from pipeline.tracing.steps import requirements_of
from pipeline.tracing.values import SEVERAL, Values, assigned_options, found_holders

__all__ = ["Trace", "trace"]

_ROUNDS: Final = 3
"""Configurations that name configurations that name configurations."""


class Trace(Record):
    """What a chain does, needs and is set to."""

    requirements: tuple[Requirement, ...]
    """Steps in execution order."""
    hyperparameters: tuple[Hyperparameter, ...]
    data_needs: tuple[str, ...]
    """What the run needs besides its code, as sentences."""
    reached: tuple[str, ...]
    """Files whose code the run may enter, entry points first."""
    problems: tuple[Problem, ...] = ()
    needs: tuple[Need, ...] = ()
    """The same as `data_needs`, taken apart."""


def trace(snapshot: Snapshot, sources: Sequence[SourceScript], usage: Sequence[Usage], *, about: str = "") -> Trace:
    """Trace a chain from its entry points through the imports that the snapshot resolves.

    Args:
        snapshot: the repository.
        sources: the chain, with roles.
        usage: its commands.
        about: what the task says; of a script that runs several experiments, only those it is about are traced. Empty
            for all of them.

    Returns:
        The trace. Files that cannot be parsed and calls that are chosen at run time are in its `problems`.
    """
    program = Program(snapshot)
    entries = [source.path for source in sources if source.role == "entry"]
    paths = entries or [source.path for source in sources if source.path.endswith((".py", ".ipynb"))]
    problems = [
        _unparsed(path, program.errors.get(path, "it holds no Python"))
        for path in paths
        if program.module(path) is None
    ]
    modules = [module for path in paths if (module := program.module(path)) is not None]
    for module in modules:
        if module.unit.tree is not None:
            drop_untaken(module.unit.tree, known_values(module.unit.tree, _commands(module.path, usage)))
    first = [reach(program, module) for module in modules]  # whatever is chosen at run time, and by the task
    reached = dict.fromkeys(path for reaching in first for path in reaching.files)
    chain = [source.path for source in sources if source.role == "config"]
    named = [path for path in named_configs(snapshot, usage, paths) if path.partition(":")[0] not in paths]
    configs = list(dict.fromkeys([*named, *chain]))
    settings = settings_of(snapshot, program, _modules(program, [*paths, *reached]), configs, usage, entries=paths)
    values = _values(program, settings, reached, first)
    for _ in range(_ROUNDS):  # what one file says may name the next
        loaded = [
            path
            for module, reaching in zip(modules, first, strict=True)
            for path in loaded_configs(snapshot, program, module, reaching, values, usage)
        ]
        found = list(dict.fromkeys([*named, *reversed(loaded), *chain]))  # of two, the one read later is in force
        if found == configs:
            break
        configs = found
        settings = settings_of(snapshot, program, _modules(program, [*paths, *reached]), configs, usage, entries=paths)
        values = _values(program, settings, reached, first)
    program.settle(values)  # from here on, what the settings decide is decided
    for module in modules:
        settle_constants(program, module, values)
    own = {source.path for source in sources}
    requirements: list[Requirement] = []
    needs = stated_needs(settings, {file.path for file in snapshot.files})
    running = dict.fromkeys(paths)
    for module in modules:
        reaching = reach(program, module)
        if settle_factories(program, module, reaching, values):
            reaching = reach(program, module)
        running.update(dict.fromkeys(reaching.files))
        if about and module.unit.tree is not None and (others := drop_unrelated(module.unit.tree, about)):
            problems += _unrelated(module.path, others)
            reaching = reach(program, module)
        steps = requirements_of(program, module, reaching, own=own, about=about, known=values.text)
        requirements += [step for step in dict.fromkeys(steps) if step not in requirements]
        needs += data_needs(program, module, reaching, values)
        problems += _dynamic(reaching)
    problems += [_unparsed(path, error) for path, error in sorted(program.errors.items()) if path not in paths]
    running.update(program.chosen)
    hyperparameters = settings_of(snapshot, program, _modules(program, running), configs, usage, entries=paths)
    kept = unfollowed(_each_once(needs))
    return Trace(
        requirements=tuple(requirements),
        hyperparameters=hyperparameters,
        needs=kept,
        data_needs=tuple(need.text for need in kept),
        reached=tuple(reached | running),
        problems=tuple(dict.fromkeys([*problems, *_undecided(hyperparameters)])),
    )


def _each_once(needs: Iterable[Need]) -> list[Need]:
    """Needs of several entry points, each with the place of its first use."""
    found: dict[tuple[str, str], Need] = {}
    for need in needs:
        found.setdefault((need.kind, need.name), need)
    return list(found.values())


def _values(
    program: Program, settings: Sequence[Hyperparameter], reached: Iterable[str], reachings: Sequence[Reaching]
) -> Values:
    """What the settings say of the code that may run."""
    modules = _modules(program, reached)
    assigned = assigned_options(_code(program, reached, reachings))
    holders = found_holders([module.unit.tree for module in modules if module.unit.tree is not None])
    return Values(settings, assigned, unset_options(modules, settings), holders)


def _undecided(settings: Sequence[Hyperparameter]) -> list[Problem]:
    """Settings that the code or a configuration leaves open: the candidates are named, none is taken."""
    return [
        Problem(
            component="tracing.settings",
            where=next((f"{at.path}:{at.start}" for at in item.evidence if isinstance(at, CodeEvidence)), item.name),
            message=f"{item.name} may be {item.value.replace(SEVERAL, ' or ')}: what decides it is not known",
            severity=Severity.INFO,
        )
        for item in settings
        if SEVERAL in item.value and item.source != "command"
    ]


def _code(program: Program, paths: Iterable[str], reachings: Iterable[Reaching]) -> Iterator[ast.AST]:
    """What may run: the module-level code of files, and the functions that are reached."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    for module in _modules(program, paths):
        if module.unit.tree is not None:
            yield from (node for node in module.unit.tree.body if not isinstance(node, kinds))
    for reaching in reachings:
        yield from (item.definition.node for item in reaching.functions)


def _modules(program: Program, paths: Iterable[str]) -> list[Module]:
    return [module for path in dict.fromkeys(paths) if (module := program.module(path)) is not None]


def _unrelated(path: str, names: Sequence[str]) -> list[Problem]:
    message = f"other experiments of this script are no steps of the task: {', '.join(names)}"
    return [Problem(component="tracing.focus", where=path, message=message, severity=Severity.INFO)]


def _commands(path: str, usage: Sequence[Usage]) -> list[tuple[str, ...]]:
    """The arguments of the commands that run the entry point `path`."""
    dotted_name = path.removesuffix(".py").replace("/", ".")
    return [
        arguments_of(step)
        for step in usage
        if any(
            posixpath.normpath(posixpath.join(step.directory, word)) == path or dotted_name.endswith(word)
            for word in step.argv[1:]
            if word.endswith(".py") or "." in word
        )
    ]


def _dynamic(reaching: Reaching) -> list[Problem]:
    return [
        Problem(
            component="tracing.callgraph",
            where=f"{path}:{line}",
            message=f"{name}(...) chooses what runs at run time: what it leads to is not followed",
            severity=Severity.INFO,
        )
        for path, line, name in dict.fromkeys(reaching.dynamic)
    ]


def _unparsed(path: str, error: str) -> Problem:
    return Problem(
        component="tracing.program",
        where=path,
        message=f"not traced: {error}; the steps it implements are missing",
        severity=Severity.WARNING,
    )
