"""Hyper-parameters with the value that is in force: command over configuration over default, each with its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Hyperparameter, Usage
from pipeline.tracing.arguments import Option, effective, literal, read_options
from pipeline.tracing.configs import config_values
from pipeline.tracing.program import Module
from pipeline.tracing.values import SEVERAL

__all__ = ["arguments_of", "config_needs", "settings_of", "unset_options"]

_CONSTANT: Final = re.compile(r"^[A-Z][A-Z0-9_]+$")
_ENVIRONMENT: Final = re.compile(r"\$\{(?:oc\.)?env:([A-Za-z_]\w*)")


def settings_of(
    snapshot: Snapshot,
    modules: Sequence[Module],
    configs: Sequence[str],
    usage: Sequence[Usage],
    *,
    entries: Collection[str] = (),
) -> tuple[Hyperparameter, ...]:
    """All settings of a chain: of the commands, else of its configurations, else the defaults of its code.

    Args:
        snapshot: the repository.
        modules: entry points first, then modules that they reach.
        configs: paths of configuration files of the chain.
        usage: the chain's commands.
        entries: paths of the entry points; of other modules, what only runs when they are started themselves does not
            count. Empty: all are.
    """
    options = {
        module.path: read_options(
            _imported(module.unit.tree) if entries and module.path not in entries else module.unit.tree
        )
        for module in modules
        if module.unit.tree is not None
    }
    commanded = _commanded([option for found in options.values() for option in found], usage)
    choices = {name: values[0][0] for name, values in commanded.items()}
    found: dict[str, Hyperparameter] = {}
    for path in configs:
        for item in config_values(snapshot, path, choices):
            place = (_place(item.path, item.line),)
            found.setdefault(
                item.name, Hyperparameter(name=item.name, value=item.value, source="config", evidence=place)
            )
    for module in modules:
        for setting in _defaults(module, options.get(module.path, ())):
            found.setdefault(setting.name, setting)
    for name, values in commanded.items():
        stated = found.get(name)
        found[name] = Hyperparameter(
            name=name,
            value=SEVERAL.join(dict.fromkeys(value for value, _ in values)),
            source="command",
            evidence=(*_stated_at(snapshot, values[0][1]), *(stated.evidence if stated else ())),
        )
    return tuple(found[name] for name in sorted(found))


def unset_options(modules: Sequence[Module], settings: Sequence[Hyperparameter]) -> set[str]:
    """Options of the entry points that nothing sets, so that their value is None."""
    trees = [module.unit.tree for module in modules if module.unit.tree is not None]
    unset = {option.name for tree in trees for option in read_options(tree) if option.unset}
    return unset - {setting.name for setting in settings}


def config_needs(settings: Sequence[Hyperparameter]) -> list[str]:
    """Environment variables that values are taken from (`${oc.env:WANDB_ENTITY}`), each with its place."""
    return [
        f"environment variable {name} ({place.path}:{place.start})"
        for setting in settings
        for name in _ENVIRONMENT.findall(setting.value)
        for place in setting.evidence[:1]
        if isinstance(place, CodeEvidence)
    ]


def _commanded(options: Sequence[Option], usage: Sequence[Usage]) -> dict[str, list[tuple[str, str]]]:
    """Option -> (value, where it is stated) of each command that sets it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for step in usage:
        for name, value in effective(options, arguments_of(step)).items():
            found.setdefault(name, []).append((value, step.reason))
    return found


def _defaults(module: Module, options: Sequence[Option]) -> Iterator[Hyperparameter]:
    """Options with a default, and constants, of one module."""
    if module.unit.tree is None:
        return
    for option in options:
        if option.default is None and not option.switch:
            continue
        first = module.unit.line(option.start)
        evidence = CodeEvidence(path=module.path, start=first, end=max(first, module.unit.line(option.end)))
        value = option.default if option.default is not None else str(option.negated)
        yield Hyperparameter(name=option.name, value=value, source="default", evidence=(evidence,))
    for name, value, line in _constants(module):
        place = _place(module.path, module.unit.line(line))
        yield Hyperparameter(name=name, value=value, source="default", evidence=(place,))


def _imported(tree: ast.Module) -> ast.Module:
    """What of a file runs when it is imported: without the block that starts it as a program."""
    body = [node for node in tree.body if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))]
    return ast.Module(body, [])


def arguments_of(step: Usage) -> tuple[str, ...]:
    """What comes after the script."""
    for number, word in enumerate(step.argv[1:], 1):
        if word.endswith((".py", ".ipynb", ".sh")) or (
            step.argv[number - 1] == "-m" and "." in word and "distributed" not in word
        ):
            return step.argv[number + 1 :]
    return step.argv[3:] if step.argv[1:2] == ("-m",) else ()


def _stated_at(snapshot: Snapshot, reason: str) -> tuple[CodeEvidence, ...]:
    match = re.match(r"([^:;]+):(\d+)", reason)
    if match and any(file.path == match.group(1) for file in snapshot.files):
        return (_place(match.group(1), int(match.group(2))),)
    return ()


def _place(path: str, line: int) -> CodeEvidence:
    return CodeEvidence(path=path, start=max(line, 1), end=max(line, 1))


def _constants(module: Module) -> Iterator[tuple[str, str, int]]:
    """Module-level constants in capitals (`SEED = 42`) and defaults of configuration dataclasses."""
    assert module.unit.tree is not None
    for node in module.unit.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = literal(node.value)
            if value is not None and _CONSTANT.match(node.targets[0].id) and len(value) <= 80 and value.isprintable():
                yield node.targets[0].id, value, node.lineno
        elif isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    value = literal(field.value)
                    if value is not None:
                        yield f"{node.name}.{field.target.id}", value, field.lineno
