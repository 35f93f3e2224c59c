"""Functions that choose by an argument: `make(env_name)` with one branch for each name, called with a known name.

Where all calls that the run makes of such a function pass the same known value, the branches of the other values are
taken out, and the call graph follows the one that runs.

Non-goals: functions that are called with different values, and arguments that the function changes itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from pipeline.tracing.arguments import literal, read_options
from pipeline.tracing.branches import prune
from pipeline.tracing.callgraph import Reaching
from pipeline.tracing.defaults import constants
from pipeline.tracing.program import Function, Module, Program, parameters_of
from pipeline.tracing.scopes import Scopes
from pipeline.tracing.values import Values

__all__ = ["settle_factories"]


def settle_factories(program: Program, entry: Module, reaching: Reaching, values: Values) -> bool:
    """Take the branches that are not chosen out of the factories that are reached, in place.

    Returns:
        Whether anything was decided, so that the call graph may be smaller now.
    """
    scopes = Scopes(program, entry, reaching, values)
    changed = False
    for reached in reaching.functions:
        definition = reached.definition
        known: dict[str, str] = {}
        if definition.path == entry.path and not scopes.calls_of(reached) and not definition.owner:
            known = _filled_in(definition.node, values)
        for name in sorted(_chosen_by(definition.node) - known.keys()):
            passed = {scopes.passed(definition, call, where, name) for call, where in scopes.calls_of(reached)}
            value = passed.pop() if len(passed) == 1 else None
            if value is not None and not _is_replaced(definition.node, name, value):
                known[name] = value
        if known:
            prune(definition.node, _named(known))
            changed = True
    return changed


def settle_constants(program: Program, entry: Module, values: Values) -> None:
    """Take out of a script without options, in place, the branches that its own constants decide.

    A configuration or a command may have changed the constants, so it is their value in force that counts.
    """
    tree = entry.unit.tree
    if tree is None or read_options(tree):
        return
    names = {setting.name for setting in constants(program, entry, entry=True)}
    known = {name: text for name, text in values.known.items() if name in names}
    if known:
        inner = [item for item in tree.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
        plain = ast.Module([item for item in tree.body if item not in inner], [])
        prune(plain, _named(known))
        tree.body = sorted([*inner, *plain.body], key=lambda item: item.lineno)


def _is_replaced(node: Function, name: str, value: str) -> bool:
    """Does the body put another value in the place of this one?"""
    stored = any(
        isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store) and item.id == name for item in ast.walk(node)
    )
    compared = [item for item in ast.walk(node) if isinstance(item, ast.Compare) and ast.unparse(item.left) == name]
    return stored and any(literal(other) == value for item in compared for other in item.comparators)


def _filled_in(node: Function, values: Values) -> dict[str, str]:
    """Parameters of a function that a library calls with the options of the command line (fire, typer, click)."""
    stored = {item.id for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)}
    return {name: values.known[name] for name in parameters_of(node) if name in values.known and name not in stored}


def _named(known: dict[str, str]) -> Callable[[ast.expr], str | None]:
    return lambda node: known.get(node.id) if isinstance(node, ast.Name) else None


def _chosen_by(node: Function) -> set[str]:
    """Parameters that `if` compares with constants, and that the body does not change."""
    compared: set[str] = set()
    bound: set[str] = set()
    for item in ast.walk(node):
        if isinstance(item, ast.If | ast.IfExp):
            tests = [part for part in ast.walk(item.test) if isinstance(part, ast.Compare)]
            sides = [side for part in tests for side in (part.left, *part.comparators)]
            compared |= {side.id for side in sides if isinstance(side, ast.Name)}
        elif isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store):
            bound.add(item.id)
    return (compared & set(parameters_of(node))) - (bound - _spelled_anew(node))


def _spelled_anew(node: Function) -> set[str]:
    """Parameters that only `if name == "a": name = "b"` changes: for any other value the branch is not taken."""
    stores = [item for item in ast.walk(node) if isinstance(item, ast.Name) and isinstance(item.ctx, ast.Store)]
    anew: list[str] = []
    for item in ast.walk(node):
        test = item.test if isinstance(item, ast.If) and not item.orelse else None
        if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and isinstance(test.ops[0], ast.Eq):
            inside = {id(part) for part in ast.walk(item)}
            anew += [part.id for part in stores if id(part) in inside and part.id == test.left.id]
    return {name for name in anew if sum(part.id == name for part in stores) == anew.count(name)}
