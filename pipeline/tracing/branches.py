"""Branches of an entry point that its commands decide: `if args.figures_only:` is no step of a run without that flag.

Only tests whose outcome follows from options with one known value in all commands are decided; everything else stays.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from pipeline.tracing.arguments import Option, effective, literal, read_options

__all__ = ["drop_untaken", "known_values"]


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
    """Take out of `tree`, in place, the branches that are not taken under `values`."""
    if values:
        _Pruner(values).visit(tree)


def _default(option: Option) -> str | None:
    if option.switch and option.default is None:
        return "True" if option.negated else "False"
    return option.default


class _Pruner(ast.NodeTransformer):
    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values

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

    def _value(self, node: ast.expr) -> str | None:
        """The value of `<anything>.<option>`."""
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id != "self":
            return self._values.get(node.attr)
        return None

    def _truth(self, node: ast.expr) -> bool | None:
        value = self._value(node)
        if value is not None:
            return {"True": True, "False": False}.get(value)
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
            return None
        if isinstance(operator, (ast.Eq, ast.NotEq)) and isinstance(right, ast.Constant):
            equal = left == literal(right)
            return equal if isinstance(operator, ast.Eq) else not equal
        if isinstance(operator, (ast.In, ast.NotIn)) and isinstance(right, (ast.List, ast.Tuple, ast.Set)):
            members = [literal(item) for item in right.elts]
            return None if None in members else (left in members) == isinstance(operator, ast.In)
        return None
