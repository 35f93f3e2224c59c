"""Names in syntax trees."""

from __future__ import annotations

import ast

__all__ = ["Function", "called_function", "called_name", "dotted"]

Function = ast.FunctionDef | ast.AsyncFunctionDef


def dotted(node: ast.expr | None) -> str:
    """`a.b.c` for a chain of attributes on a name; empty for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return ""
    return ".".join([node.id, *reversed(parts)])


def called_name(call: ast.Call) -> str:
    """The dotted name of what is called, the method of anything else (`make().fit()`); empty where it has none."""
    return dotted(call.func) or (call.func.attr if isinstance(call.func, ast.Attribute) else "")


def called_function(call: ast.Call) -> str:
    """The last name of what is called (`np.random.rand` is `rand`, `make().fit` is `fit`); empty where it has none."""
    return called_name(call).rpartition(".")[2]
