"""Branches that the settings of a run decide: `if args.figures_only:` is no step of a run without that flag.

Of an entry point, its own switches and choices decide for any object that holds them; everywhere else, the settings
with one known value (see `pipeline.tracing.values`). A test that does not follow from these alone stays.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

from pipeline.tracing.arguments import Option, as_number, effective, literal, read_options
from pipeline.tracing.values import Values

__all__ = ["drop_decided", "drop_untaken", "known_values", "prune"]

_Value = Callable[[ast.expr], str | None]
_NONE = frozenset({"none", "null", "~"})
_FALSE = frozenset({"", "false", "no", "off"}) | _NONE


def known_values(tree: ast.Module, commands: Sequence[Sequence[str]]) -> dict[str, str]:
    """The value of each switch, and of each option with choices, that is the same in all commands.

    Args:
        tree: the entry point.
        commands: the arguments of each command; none means one run with all defaults.
    """
    options = {option.name: option for option in read_options(tree) if option.switch or option.choices}
    known: dict[str, str] = {}
    settings = [effective(tuple(options.values()), arguments) for arguments in commands or [()]]
    for name, option in options.items():
        values = {found.get(name, _default(option)) for found in settings}
        if len(values) == 1 and (value := values.pop()) is not None:
            known[name] = value
    return known


def drop_untaken(tree: ast.Module, values: Mapping[str, str]) -> None:
    """Take out of an entry point, in place, the branches that are not taken under the values of its own options."""

    def value(node: ast.expr) -> str | None:
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self":
            return values.get(node.attr)
        return None

    if values:
        prune(tree, value)


def drop_decided(tree: ast.Module, values: Values) -> None:
    """Take out of any file, in place, the branches that are not taken under the settings of the run."""
    if values.known:
        prune(
            tree,
            lambda node: (
                values.of(node) if not isinstance(node, ast.Call) else values.of(node) or _changed(node, values)
            ),
        )


def _changed(node: ast.Call, values: Values) -> str | None:
    """`args.mode.lower()`; no other call is known before it runs."""
    plain = isinstance(node.func, ast.Attribute) and not node.args and not node.keywords
    return values.text(node) if plain else None


def prune(tree: ast.AST, value: Callable[[ast.expr], str | None]) -> None:
    """Replace each decided `if` below `tree`, in place, by the branch that is taken.

    Args:
        tree: what to look through.
        value: the value of an expression as text; None where it is not known.
    """
    _Pruner(value).visit(tree)


def _default(option: Option) -> str | None:
    if option.switch and option.default is None:
        return "True" if option.negated else "False"
    return option.default


class _Pruner(ast.NodeTransformer):
    def __init__(self, value: _Value) -> None:
        self._value = value

    def visit_If(self, node: ast.If) -> ast.AST | list[ast.AST]:
        """Replace a decided `if` by the branch that is taken."""
        self.generic_visit(node)
        outcome = self._truth(node.test)
        if outcome is None:
            return node
        taken = node.body if outcome else node.orelse
        return list(taken) if taken else ast.copy_location(ast.Pass(), node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """The same for `[] if args.skip_dns else load()`."""
        self.generic_visit(node)
        outcome = self._truth(node.test)
        if outcome is None:
            return node
        return node.body if outcome else node.orelse

    def _truth(self, node: ast.expr) -> bool | None:
        value = self._value(node)
        if value is not None:
            return _truth_of(value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._truth(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self._truth(part) for part in node.values]
            deciding = isinstance(node.op, ast.Or)
            if deciding in parts:
                return deciding
            return None if None in parts else not deciding
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compared(node)
        return None

    def _compared(self, node: ast.Compare) -> bool | None:
        left, operator, right = self._value(node.left), node.ops[0], node.comparators[0]
        if left is None:
            return self._contained(node.left, operator, right)
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            if not all(isinstance(item, ast.Constant) for item in right.elts):
                return None
            return any(_equal(left, item) for item in right.elts) == isinstance(operator, ast.In)
        return _against(left, operator, right) if isinstance(right, ast.Constant) else None

    def _contained(self, part: ast.expr, operator: ast.cmpop, whole: ast.expr) -> bool | None:
        """`"llama" in args.model`: names of models and data sets hold those of their families."""
        value = self._value(whole)
        word = literal(part) if isinstance(part, ast.Constant) else None
        if value is None or word is None or not isinstance(operator, (ast.In, ast.NotIn)):
            return None
        return (word in value) == isinstance(operator, ast.In)


def _against(value: str, operator: ast.cmpop, constant: ast.Constant) -> bool | None:
    """The outcome of a comparison with a constant."""
    if isinstance(operator, (ast.Is, ast.IsNot)):
        return (value.lower() in _NONE) == isinstance(operator, ast.Is) if constant.value is None else None
    if isinstance(operator, (ast.Eq, ast.NotEq)):
        return _equal(value, constant) == isinstance(operator, ast.Eq)
    return _ordered(value, operator, literal(constant))


def _truth_of(value: str) -> bool:
    """What `if` makes of a value as it is written: 0 and false are false, any other word is true."""
    number = as_number(value)
    return bool(number) if number is not None else value.lower() not in _FALSE


def _equal(value: str, node: ast.expr) -> bool:
    other = literal(node) or ""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        return _truth_of(value) == node.value
    numbers = as_number(value), as_number(other)
    return numbers[0] == numbers[1] if None not in numbers else value == other


def _ordered(value: str, operator: ast.cmpop, other: str | None) -> bool | None:
    left, right = as_number(value), as_number(other or "")
    if left is None or right is None:
        return None
    outcomes = {ast.Gt: left > right, ast.GtE: left >= right, ast.Lt: left < right, ast.LtE: left <= right}
    return outcomes.get(type(operator))
