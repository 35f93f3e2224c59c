"""Python programs as a graph of what their values are made of (`graph`); nothing is executed.

A name has a new value with each assignment; branches and loops bring values together again. Calls of one function from
several places are not told apart, nor parts of one value: a graph has edges too many rather than too few. How many
numbers are drawn says nothing of what they are, and neither does a product with zero. Non-goals: values that travel
through text that is executed, or through another language.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from evaluation.families.histogram.dataflow.expressions import ExpressionReader
from evaluation.families.histogram.dataflow.graph import FlowGraph, Key
from evaluation.families.histogram.dataflow.names import FlowRules, bases_of, names_of, parameter_key, returned_key

__all__ = ["read_programs"]

_STATEMENTS: Final[dict[type[ast.AST], str]] = {
    ast.Assign: "_assign", ast.AnnAssign: "_annotated", ast.AugAssign: "_augmented", ast.For: "_for",
    ast.AsyncFor: "_for", ast.If: "_if", ast.While: "_while", ast.With: "_with", ast.AsyncWith: "_with",
    ast.Try: "_try", ast.Match: "_match", ast.Return: "_return", ast.ClassDef: "_class",
}  # fmt: skip
_LEAVES: Final = (ast.Continue, ast.Break, ast.Return, ast.Raise)


def read_programs(graph: FlowGraph, programs: Mapping[str, ast.Module], rules: FlowRules) -> None:
    """Read programs that may import each other.

    Args:
        graph: gets their nodes and edges.
        programs: path -> syntax tree.
        rules: what brings values in.
    """
    every = {path: names_of(path, tree) for path, tree in programs.items()}
    for path, tree in programs.items():
        _Reader(graph, rules, every, path).run(tree)


class _Reader(ExpressionReader):
    """Reads one program into the graph."""

    def run(self, tree: ast.Module) -> None:
        """Read the module, then each of its functions."""
        self.block(tree.body)
        for name, node in self.names.functions.items():
            self.scope, self.locals = name, _bound_in(node)
            self.current = {item: parameter_key(self.path, name, item) for item in _parameters(node)}
            self.block(node.body)

    # --- statements

    def block(self, body: Iterable[ast.stmt]) -> None:
        """Statements one after another; what follows an early leave was decided by its condition."""
        with self.waiting(set()):
            for node in body:
                self.statement(node)
                if isinstance(node, ast.If) and node.body and isinstance(node.body[-1], _LEAVES):
                    self.waits |= self.keys(node.test)

    def statement(self, node: ast.stmt) -> None:
        """One statement; functions are read later, with their own names."""
        method = _STATEMENTS.get(type(node))
        if method:
            getattr(self, method)(node)
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Import | ast.ImportFrom):
            self.each(ast.iter_child_nodes(node))

    @contextmanager
    def waiting(self, for_: set[Key]) -> Iterator[None]:
        """What is read inside was decided by these, too."""
        before = self.waits
        self.waits = before | for_
        yield
        self.waits = before

    def _assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self.assign(target, node.value)

    def _annotated(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.assign(node.target, node.value)

    def _augmented(self, node: ast.AugAssign) -> None:
        """What was there stays part of it."""
        self.change(node.target, self.keys(node.value))

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        given = self.keys(node.iter)
        with self.waiting(given):
            self.repeated(node, lambda: self.bind(node.target, given, views=bases_of(node.iter)))

    def _while(self, node: ast.While) -> None:
        with self.waiting(self.keys(node.test)):
            self.repeated(node, lambda: None)

    def repeated(self, node: ast.For | ast.AsyncFor | ast.While, begin: Callable[[], None]) -> None:
        """A body that sees what it left behind in the round before."""
        before = dict(self.current)
        again = {name: self.renew(name) for name in _stored(node.body) & set(before)}
        for name, key in again.items():
            self.graph.link(key, [before[name]])
        begin()
        self.block(node.body)
        for name, key in again.items():
            self.graph.link(key, [self.current[name]])
        self.merged(before)
        self.block(node.orelse)

    def _if(self, node: ast.If) -> None:
        with self.waiting(self.keys(node.test)):
            self.branches([node.body, node.orelse])

    def _match(self, node: ast.Match) -> None:
        with self.waiting(self.keys(node.subject)):
            self.branches([case.body for case in node.cases])

    def branches(self, bodies: Iterable[list[ast.stmt]]) -> None:
        """One of several bodies is carried out, or none; a branch that leaves hands nothing on."""
        before = dict(self.current)
        for body in bodies:
            after, self.current = self.current, dict(before)
            self.block(body)
            if body and isinstance(body[-1], _LEAVES):
                self.current = after
            else:
                self.merged(after)

    def _try(self, node: ast.Try) -> None:
        for part in (node.body, *(handler.body for handler in node.handlers), node.orelse, node.finalbody):
            before = dict(self.current)
            self.block(part)
            self.merged(before)

    def merged(self, other: dict[str, Key]) -> None:
        """Names have the value that they have here, or the other one."""
        for name in {**other, **self.current}:
            here, there = self.current.get(name), other.get(name)
            if here is None and there is not None:
                self.current[name] = there
            elif here is not None and there is not None and here != there:
                self.graph.link(self.renew(name), [here, there])

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        for item in node.items:
            given = self.keys(item.context_expr)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, given)
        self.block(node.body)

    def _return(self, node: ast.Return) -> None:
        if node.value is not None:
            self.made(returned_key(self.path, self.scope), self.keys(node.value))

    def _class(self, node: ast.ClassDef) -> None:
        self.block(node.body)

    def assign(self, target: ast.expr, value: ast.expr) -> None:
        """`target = value`, part by part where both have as many."""
        if isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple | ast.List) and (
            len(target.elts) == len(value.elts)
        ):  # fmt: skip
            for one, other in zip(target.elts, value.elts, strict=True):
                self.assign(one, other)
            return
        views = bases_of(value) if isinstance(value, ast.Subscript | ast.Attribute | ast.Name) else set()
        self.bind(target, self.keys(value), views=views)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    arguments = function.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
    return {item.arg for item in every if item is not None}


def _stored(body: Iterable[ast.AST]) -> set[str]:
    """Names that get a value in it."""
    nodes = [node for part in body for node in ast.walk(part)]
    return {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}


def _bound_in(function: ast.FunctionDef | ast.AsyncFunctionDef) -> set[str]:
    """Names that belong to a function."""
    outer = {name for node in ast.walk(function) if isinstance(node, ast.Global | ast.Nonlocal) for name in node.names}
    return (_parameters(function) | _stored([function])) - outer
