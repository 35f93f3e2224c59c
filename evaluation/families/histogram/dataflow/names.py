"""What the names of a Python program stand for: functions, classes, imports, attributes set on `self`."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field

from evaluation.families.histogram.dataflow.graph import Key

__all__ = [
    "FlowRules",
    "ProgramNames",
    "argv_key",
    "bases_of",
    "is_self",
    "names_of",
    "outer_key",
    "parameter_key",
    "returned_key",
]


@dataclass(frozen=True)
class FlowRules:
    """What the graph is for."""

    source: Callable[[str, ast.Call, str], set[Key]]
    """(program, call, what is called with its package in front) -> nodes that it brings in beside its arguments."""
    silent: frozenset[str] = frozenset()
    """Attributes through which nothing is followed."""


def argv_key(path: str) -> Key:
    """What a program is told on its command line."""
    return ("argv", path)


def outer_key(path: str, name: str) -> Key:
    """A name of a module as other scopes see it: any of its values."""
    return ("value", path, "", name)


def parameter_key(path: str, function: str, name: str) -> Key:
    """A parameter as a function is called with it."""
    return ("value", path, function, name)


def returned_key(path: str, function: str) -> Key:
    """What a function gives back."""
    return ("returned", path, function)


@dataclass
class ProgramNames:
    """What the names of one program are."""

    path: str
    functions: dict[str, ast.FunctionDef | ast.AsyncFunctionDef] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)
    imported: dict[str, str] = field(default_factory=dict)
    """Name -> `package.module` or `package.module.name` that it stands for."""
    attributes: set[str] = field(default_factory=set)
    """Set on `self`."""


def names_of(path: str, tree: ast.Module) -> ProgramNames:
    """What the names of a program stand for."""
    names = ProgramNames(path)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            names.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            names.classes[node.name] = node
        elif isinstance(node, ast.Import):
            for alias in node.names:
                names.imported[alias.asname or alias.name.split(".")[0]] = alias.name if alias.asname else (
                    alias.name.split(".")[0]
                )  # fmt: skip
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                names.imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and is_self(node.value):
            names.attributes.add(node.attr)
    return names


def is_self(node: ast.expr) -> bool:
    """Is it the object that a method belongs to?"""
    return isinstance(node, ast.Name) and node.id == "self"


def bases_of(node: ast.expr) -> set[str]:
    """Names whose value an expression is a part of: `docs` of `docs[1]["x"].y`, `a` and `b` of `zip(a, b)`."""
    if isinstance(node, ast.Name):
        return {node.id}
    if isinstance(node, ast.Subscript | ast.Attribute | ast.Starred):
        return bases_of(node.value)
    if isinstance(node, ast.Call):
        held = bases_of(node.func.value) if isinstance(node.func, ast.Attribute) else set()
        return held.union(*map(bases_of, node.args))
    return set()
