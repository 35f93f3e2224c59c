"""Which ways to break code are tried: cosmic-ray's operators, and two that it lacks, written as its operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from cosmic_ray.operators.operator import Example, Operator
from cosmic_ray.plugins import get_operator, operator_names
from parso.python.tree import Keyword

Position = tuple[tuple[int, int], tuple[int, int]]

NAMES: Final = {"name"}
IDENTITY: Final = re.compile(r"ReplaceComparisonOperator_(?:(?!Is)\w+_Is(Not)?|Is_Eq|IsNot_NotEq)$")
"""`==` to `is`: whether equal strings and numbers are one object is the interpreter's business, not a test's. And `is`
to `==`: of None and the members of an enumeration, with which alone it is used, both say the same."""


class DropStatement(Operator):
    """A line that is lost: a call, return, raise, deletion, or a value that is stored in something or changed.

    A first `name = value` is not dropped: the name would be missing, which any test sees.
    """

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "simple_stmt" and _can_be_lost(node.children[0]):
            yield node.children[0].start_pos, node.children[0].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        assert index == 0
        lost = node.children[0]
        node.children[0] = Keyword("pass", lost.start_pos, prefix=lost.get_first_leaf().prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("check(x)", "pass"), Example("x = x.strip()", "pass"), Example("raise Bad", "pass"))


class NegateFilter(Operator):
    """`[x for x in y if wanted(x)]` with the opposite condition."""

    def mutation_positions(self, node: Any) -> Iterator[Position]:
        if node.type == "comp_if":
            yield node.children[1].start_pos, node.children[1].end_pos

    def mutate(self, node: Any, index: int) -> Any:
        assert index == 0
        condition = node.children[1]
        first = condition.get_first_leaf()
        code = condition.get_code(include_prefix=False)
        node.children[1] = Keyword(f"not ({code})", first.start_pos, prefix=first.prefix)
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        return (Example("[x for x in y if x]", "[x for x in y if not (x)]"),)


def _can_be_lost(statement: Any) -> bool:
    if statement.type in ("return_stmt", "raise_stmt", "del_stmt", "atom_expr", "power", "yield_expr", "await_expr"):
        return True
    if statement.type == "keyword":  # a bare `return` or `raise`
        return statement.value in ("return", "raise")
    if statement.type != "expr_stmt" or statement.children[1].type == "annassign":
        return False
    target = statement.children[0]
    if target.type not in NAMES or statement.children[1].value != "=":
        return True
    return any(leaf.type == "name" and leaf.value == target.value for leaf in _leaves(statement.children[2]))


def _leaves(node: Any) -> Iterator[Any]:
    if not hasattr(node, "children"):
        yield node
        return
    for child in node.children:
        yield from _leaves(child)


def list_operators() -> dict[str, Operator]:
    """By name; one operator's variants share what stands before the underscore (`ReplaceBinaryOperator_Add_Sub`)."""
    theirs = [name for name in operator_names() if not IDENTITY.search(name)]
    known = {name.split("/")[1]: get_operator(name) for name in theirs}
    # variables replaced and inserted need a cause-and-effect description of the program
    return {name: operator() for name, operator in known.items() if not operator.arguments()} | {
        operator.__name__: operator() for operator in (DropStatement, NegateFilter)
    }
