"""Mappings that code builds, and what follows from written values alone: sums, tests.

Non-goal: following code (see `pipeline.tracing.building`).
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.tracing.options import literal
from pipeline.tracing.values import SEVERAL

__all__ = ["Built", "Entry", "Value", "calculated", "entries", "truth"]

_DEEP: Final = 8
_FALSE: Final = frozenset({"", "0", "0.0", "false", "none"})


@dataclass(frozen=True, slots=True)
class Entry:
    """A value and where it is written. The text is None where it is computed."""

    text: str | None
    path: str
    line: int


@dataclass(slots=True)
class Built:
    """A mapping that code builds."""

    items: dict[str, Built | Entry] = field(default_factory=dict)

    def copied(self, depth: int = 0) -> Built:
        """A copy that shares nothing; a mapping that holds itself ends there."""
        made = Built()
        for name, item in self.items.items():
            if not isinstance(item, Built):
                made.items[name] = item
            elif depth < _DEEP:
                made.items[name] = item.copied(depth + 1)
        return made


Value = Built | Entry | None
_Read = Callable[[ast.expr], Value]


def entries(built: Built, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Entry]]:
    """(dotted name, entry) of what is known, in the order in which it was set."""
    for name, item in built.items.items():
        whole = f"{prefix}.{name}" if prefix else name
        if isinstance(item, Built) and depth < _DEEP:
            yield from entries(item, whole, depth + 1)
        elif isinstance(item, Entry) and item.text is not None:
            yield whole, item


def calculated(op: ast.operator, left: Value, right: Value, path: str, line: int) -> Entry | None:
    """The sum, product or joined text of two known values; None where one is not known."""
    if not isinstance(left, Entry) or not isinstance(right, Entry) or left.text is None or right.text is None:
        return None
    text = literal(ast.BinOp(_constant(left.text), op, _constant(right.text)))
    if text is None and isinstance(op, ast.Add) and not _numeric(left.text) and not _numeric(right.text):
        text = left.text + right.text
    return Entry(text, path, line) if text else None


def truth(node: ast.expr, value: _Read) -> bool | None:
    """The outcome of a test of known values; None where it is not known.

    Args:
        node: the test.
        value: what an expression is.
    """
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        inner = truth(node.operand, value)
        return None if inner is None else not inner
    if isinstance(node, ast.BoolOp):
        parts = [truth(part, value) for part in node.values]
        deciding = isinstance(node.op, ast.Or)
        if deciding in parts:
            return deciding
        return None if None in parts else not deciding
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _compared(node, value)
    text = _one(value(node))
    return None if text is None else text.lower() not in _FALSE


def _one(found: Value) -> str | None:
    """The text of a value that is known and is one."""
    text = found.text if isinstance(found, Entry) else None
    return text if text is not None and SEVERAL not in text else None


def _compared(node: ast.Compare, value: _Read) -> bool | None:
    left, operator, other = _one(value(node.left)), node.ops[0], node.comparators[0]
    outcome: bool | None = None
    if left is not None and isinstance(operator, (ast.In, ast.NotIn)):
        if isinstance(other, (ast.List, ast.Tuple, ast.Set)):
            texts = [literal(item) for item in other.elts]
            outcome = None if None in texts else left in texts
        elif (whole := _one(value(other))) is not None:  # `"b16" in name`
            outcome = left in whole
        return outcome if outcome is None else outcome == isinstance(operator, ast.In)
    right = _one(value(other))
    if left is not None and right is not None and isinstance(operator, (ast.Eq, ast.Is, ast.NotEq, ast.IsNot)):
        outcome = (left == right) == isinstance(operator, (ast.Eq, ast.Is))
    return outcome


def _numeric(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _constant(text: str) -> ast.expr:
    """A number as the syntax tree that `literal` reads; text as text."""
    if not _numeric(text):
        return ast.Constant(text)
    value = float(text)
    return ast.Constant(int(text) if text.lstrip("+-").isdigit() else value)
