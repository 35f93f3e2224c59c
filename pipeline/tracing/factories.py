"""Functions that choose by an argument: `make(env_name)` with one branch for each name, called with a known name.

Where all calls that the run makes of such a function pass the same known value, the branches of the other values are
taken out, and the call graph follows the one that runs.

Non-goals: functions that are called with different values, and arguments that the function changes itself.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable

from pipeline.tracing.branches import prune
from pipeline.tracing.callgraph import Reached, Reaching
from pipeline.tracing.program import Function, Module, Program, called_name, parameters_of
from pipeline.tracing.scopes import Scopes
from pipeline.tracing.values import Values

__all__ = ["settle_factories"]

_Where = tuple[str, str, int] | None


def settle_factories(program: Program, entry: Module, reaching: Reaching, values: Values) -> bool:
    """Take the branches that are not chosen out of the factories that are reached, in place.

    Returns:
        Whether anything was decided, so that the call graph may be smaller now.
    """
    calls = _calls(entry, reaching.functions)
    scopes = Scopes(program, entry, reaching, values)
    changed = False
    for reached in reaching.functions:
        definition = reached.definition
        known: dict[str, str] = {}
        for name in sorted(_chosen_by(definition.node)):
            passed = {scopes.passed(definition, call, where, name) for call, where in calls.get(_short(reached), ())}
            value = passed.pop() if len(passed) == 1 else None
            if value is not None:
                known[name] = value
        if known:
            prune(definition.node, _named(known))
            changed = True
    return changed


def _named(known: dict[str, str]) -> Callable[[ast.expr], str | None]:
    return lambda node: known.get(node.id) if isinstance(node, ast.Name) else None


def _short(reached: Reached) -> str:
    name = reached.definition.name.rpartition(".")[2]
    return reached.definition.owner or name if name == "__init__" else name


def _calls(entry: Module, functions: Iterable[Reached]) -> dict[str, list[tuple[ast.Call, _Where]]]:
    """Calls that run, each with the function that makes it, by the last part of the name that is called."""
    bodies: list[tuple[ast.AST, _Where]] = []
    if entry.unit.tree is not None:
        kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        bodies += [(node, None) for node in entry.unit.tree.body if not isinstance(node, kinds)]
    # inner functions first: their calls are theirs, not those of the function around them
    inner = sorted(functions, key=lambda item: -item.definition.name.count("."))
    bodies += [(item.definition.node, item.definition.key) for item in inner]
    seen: set[int] = set()
    found: dict[str, list[tuple[ast.Call, _Where]]] = {}
    for body, where in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and id(node) not in seen:
                seen.add(id(node))
                found.setdefault(called_name(node).rpartition(".")[2], []).append((node, where))
    return found


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
    return (compared & set(parameters_of(node))) - bound
