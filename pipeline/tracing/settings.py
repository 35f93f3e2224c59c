"""Hyper-parameters with the value that is in force: command over configuration over default, each with its place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Any

import yaml

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Hyperparameter, Usage
from pipeline.tracing.arguments import effective, literal, read_options
from pipeline.tracing.program import Module

__all__ = ["arguments_of", "settings_of"]

_MAX_CONFIG_VALUES = 60
_CONSTANT = re.compile(r"^[A-Z][A-Z0-9_]+$")


def settings_of(
    snapshot: Snapshot, modules: Sequence[Module], configs: Sequence[str], usage: Sequence[Usage]
) -> tuple[Hyperparameter, ...]:
    """All settings of a chain.

    Args:
        snapshot: the repository.
        modules: entry points first, then modules that they reach.
        configs: paths of configuration files of the chain.
        usage: the chain's commands.
    """
    found: dict[str, Hyperparameter] = {}
    for path in configs:
        for name, value, line in _config_values(snapshot, path):
            found.setdefault(
                name, Hyperparameter(name=name, value=value, source="config", evidence=(_place(path, line),))
            )
    commanded: dict[str, list[tuple[str, str]]] = {}
    for module in modules:
        if module.unit.tree is None:
            continue
        options = read_options(module.unit.tree)
        for option in options:
            if option.default is None and not option.switch:
                continue
            value = option.default if option.default is not None else "False"
            evidence = CodeEvidence(
                path=module.path,
                start=module.unit.line(option.start),
                end=max(module.unit.line(option.start), module.unit.line(option.end)),
            )
            found.setdefault(
                option.name, Hyperparameter(name=option.name, value=value, source="default", evidence=(evidence,))
            )
        for name, expression, line in _constants(module):
            found.setdefault(
                name,
                Hyperparameter(
                    name=name,
                    value=expression,
                    source="default",
                    evidence=(_place(module.path, module.unit.line(line)),),
                ),
            )
    options_all = tuple(
        option for module in modules if module.unit.tree is not None for option in read_options(module.unit.tree)
    )
    for step in usage:
        for name, value in effective(options_all, arguments_of(step)).items():
            commanded.setdefault(name, []).append((value, step.reason))
    for name, values in commanded.items():
        distinct = list(dict.fromkeys(value for value, _ in values))
        stated = found.get(name)
        found[name] = Hyperparameter(
            name=name,
            value=" | ".join(distinct),
            source="command",
            evidence=(*_stated_at(snapshot, values[0][1]), *(stated.evidence if stated else ())),
        )
    return tuple(found[name] for name in sorted(found))


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
            if value is not None and _CONSTANT.match(node.targets[0].id) and len(value) <= 80:
                yield node.targets[0].id, value, node.lineno
        elif isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    value = literal(field.value)
                    if value is not None:
                        yield f"{node.name}.{field.target.id}", value, field.lineno


def _config_values(snapshot: Snapshot, path: str) -> list[tuple[str, str, int]]:
    """(dotted name, value, line) of the scalar entries of a YAML or JSON file."""
    if not path.endswith((".yaml", ".yml", ".json")):
        return []
    text = snapshot.text(path)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return []
    found: list[tuple[str, str, int]] = []
    _flatten(root, "", found)
    return found[:_MAX_CONFIG_VALUES]


def _flatten(node: Any, prefix: str, found: list[tuple[str, str, int]], depth: int = 0) -> None:
    if depth > 8 or len(found) > _MAX_CONFIG_VALUES:
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _flatten(value, f"{prefix}.{key.value}" if prefix else key.value, found, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        if prefix and node.value and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            found.append((prefix, " ".join(item.value for item in node.value)[:200], node.start_mark.line + 1))
    elif isinstance(node, yaml.ScalarNode) and prefix:
        found.append((prefix, node.value[:200], node.start_mark.line + 1))
