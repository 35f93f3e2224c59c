"""Stage 2.2, second half (EXP-Bench 3.2): what a chain implements, from its syntax trees."""

from __future__ import annotations

import posixpath
from collections.abc import Sequence

from pipeline.repository import Snapshot
from pipeline.schema import Problem, Record, Severity
from pipeline.task import Hyperparameter, Requirement, SourceScript, Usage
from pipeline.tracing.branches import drop_untaken, known_values
from pipeline.tracing.callgraph import Reaching, reach
from pipeline.tracing.focus import drop_unrelated
from pipeline.tracing.needs import data_needs
from pipeline.tracing.program import Module, Program
from pipeline.tracing.settings import arguments_of, settings_of
from pipeline.tracing.steps import requirements_of

__all__ = ["Trace", "trace"]


class Trace(Record):
    """What a chain does, needs and is set to."""

    requirements: tuple[Requirement, ...]
    """Steps in execution order."""
    hyperparameters: tuple[Hyperparameter, ...]
    data_needs: tuple[str, ...]
    reached: tuple[str, ...]
    """Files whose code the run may enter, entry points first."""
    problems: tuple[Problem, ...] = ()


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
    requirements: list[Requirement] = []
    needs: dict[str, None] = {}
    reached: dict[str, None] = {}
    modules: list[Module] = []
    problems: list[Problem] = []
    entries = [source.path for source in sources if source.role == "entry"]
    traced = entries or [source.path for source in sources if source.path.endswith((".py", ".ipynb"))]
    configs = [source.path for source in sources if source.role == "config"]
    configs += [path for path in _named_configs(snapshot, usage) if path not in configs]
    own = {source.path for source in sources}
    for path in traced:
        module = program.module(path)
        if module is None:
            problems.append(_unparsed(path, program.errors.get(path, "it holds no Python")))
            continue
        if module.unit.tree is not None:
            drop_untaken(module.unit.tree, known_values(module.unit.tree, _commands(path, usage)))
        reaching = everything = reach(program, module)
        if about and module.unit.tree is not None and (others := drop_unrelated(module.unit.tree, about)):
            problems += _unrelated(path, others)
            reaching = reach(program, module)
        modules.append(module)
        for step in requirements_of(program, module, reaching, own=own, about=about):
            if step not in requirements:
                requirements.append(step)
        for need in data_needs(program, module, reaching):
            needs.setdefault(need)
        for name in everything.files:  # what the run imports does not depend on the question
            reached.setdefault(name)
        problems += _dynamic(reaching)
    for name in reached:
        module = program.module(name)
        if module is not None and module not in modules:
            modules.append(module)
    for path, error in sorted(program.errors.items()):
        if path not in traced:
            problems.append(_unparsed(path, error))
    return Trace(
        requirements=tuple(requirements),
        hyperparameters=settings_of(snapshot, modules, configs, usage),
        data_needs=tuple(needs),
        reached=tuple(reached),
        problems=tuple(dict.fromkeys(problems)),
    )


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


def _named_configs(snapshot: Snapshot, usage: Sequence[Usage]) -> list[str]:
    known = {file.path for file in snapshot.files}
    found = []
    for step in usage:
        for word in step.argv:
            path = posixpath.normpath(posixpath.join(step.directory, word.split("=")[-1]))
            if path in known and path.endswith((".yaml", ".yml", ".json", ".toml")):
                found.append(path)
    return list(dict.fromkeys(found))


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
