"""An option of a command line, and what a command line sets.

Non-goal: where options come from (see `pipeline.tracing.arguments`).
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["Option", "as_number", "effective", "literal"]

_OPERATIONS: Final[dict[type[ast.operator], Callable[[float, float], float]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Pow: operator.pow,
    ast.LShift: lambda left, right: left * 2**right,
}
_DEEP: Final = 8
_LARGEST: Final = 1e15
"""Beyond it a number is no setting, and calculating with it may not end."""
_POWERS: Final = 64


@dataclass(frozen=True, slots=True)
class Option:
    """One option or positional argument."""

    flags: tuple[str, ...]
    """As written on the command line (`--lr`, `-l`); a positional argument has its bare name."""
    name: str
    """The attribute that holds the value."""
    default: str | None
    """As text; None when there is none or it is computed."""
    choices: tuple[str, ...]
    required: bool
    switch: bool
    """Takes no value (`store_true`)."""
    many: bool
    help: str
    start: int
    end: int
    """Lines of the parsed code."""
    kind: str = "argparse"
    negated: bool = False
    """A switch that sets False (`store_false`)."""
    numeric: bool = False
    """Does it take a number?"""

    @property
    def positional(self) -> bool:
        """Has it no flag?"""
        return not any(flag.startswith("-") for flag in self.flags)


def literal(node: ast.expr | None) -> str | None:
    """The text of a constant expression as a person would type it; None for anything computed.

    Numbers made of written numbers are constants (`int(1e6)`, `8 * 1024`): no run changes them.
    """
    if node is None:
        return None
    number = _number(node)
    if number is not None:
        return str(number)
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return " ".join(str(item) for item in value)
    return str(value)


def _number(node: ast.expr, depth: int = 0) -> float | None:
    """What a calculation with written numbers alone gives; None for anything else, and for a number by itself."""
    found: float | None = None
    if depth and isinstance(node, ast.Constant) and type(node.value) in {int, float}:
        found = node.value  # type: ignore[assignment]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in {"int", "float"}:
        given = _number(node.args[0], depth + 1) if len(node.args) == 1 and not node.keywords else None
        found = given if given is None or node.func.id == "float" else int(given)
    elif isinstance(node, ast.BinOp) and depth <= _DEEP:
        left, right = _number(node.left, depth + 1), _number(node.right, depth + 1)
        if left is not None and right is not None:
            found = _calculated(node.op, left, right)
    return found if found is not None and abs(found) <= _LARGEST else None


def _calculated(operation: ast.operator, left: float, right: float) -> float | None:
    """The result of one step; None where there is none, or where it may take without end."""
    if isinstance(operation, ast.Pow) and not (left > 0 and abs(right) <= _POWERS):
        return None
    if isinstance(operation, ast.LShift) and not (0 <= right <= _POWERS and left == int(left) and right == int(right)):
        return None
    if isinstance(operation, ast.Div | ast.FloorDiv) and right == 0:
        return None
    calculate = _OPERATIONS.get(type(operation))
    return calculate(left, right) if calculate is not None else None


def effective(options: Sequence[Option], arguments: Sequence[str]) -> dict[str, str]:
    """The values that a command line sets, by option name; hydra-style `key=value` words count too."""
    by_flag = {flag: option for option in options for flag in option.flags if flag.startswith("-")}
    positional = [option for option in options if option.positional]
    values: dict[str, str] = {}
    index = 0
    while index < len(arguments):
        word = arguments[index]
        flag, equals, attached = word.partition("=")
        index += 1
        option = by_flag.get(flag) or _abbreviated(flag, by_flag)
        if option is not None and option.switch and not equals:
            off = option.negated or flag.startswith("--no-")
            values[option.name] = "False" if off else "True"
        elif word.startswith("-") and as_number(word) is None:
            taken = [attached] if equals else []
            while (
                not equals
                and index < len(arguments)
                and (not arguments[index].startswith("-") or as_number(arguments[index]) is not None)
            ):
                taken.append(arguments[index])
                index += 1
                if option is None or not option.many:
                    break
            name = option.name if option is not None else flag.lstrip("-").replace("-", "_")
            value = " ".join(taken) if taken else "True"
            again = option is not None and option.many and option.kind == "absl" and name in values
            values[name] = f"{values[name]} {value}" if again else value
        elif equals and not positional:
            values[flag.lstrip("+")] = attached
        elif positional:
            option = positional[0] if positional[0].many else positional.pop(0)
            values[option.name] = f"{values[option.name]} {word}" if option.name in values else word
    return values


def _abbreviated(flag: str, by_flag: dict[str, Option]) -> Option | None:
    """Argparse accepts any unambiguous beginning of a long flag."""
    if not flag.startswith("--") or len(flag) < 4:
        return None
    matches = {option.name: option for name, option in by_flag.items() if name.startswith(flag)}
    return next(iter(matches.values())) if len(matches) == 1 else None


def as_number(text: str) -> float | None:
    """The number that a text is, as Python reads it; None when it is none."""
    try:
        return float(text)
    except ValueError:
        return None
