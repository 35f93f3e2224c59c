"""The pieces that a submission's code is made of, and which of them can run at all.

A piece is a function, a method, what is left of a class or of a file; of a settings file, the file. Pieces are where
the counterpart of a requirement is looked for: taken together, all files of a submission say nearly everything
somewhere. What nothing names is dead: it is no implementation of anything. Non-goals: data flow, and calls that are
made up at run time (a name that occurs anywhere, in code or in a text, counts as used).
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluation.judges.features import Features, features_of_code, features_of_file
from pipeline.tracing.source import read_unit

__all__ = ["Counterparts", "Unit", "likeness", "live_units", "units_of"]

COPY: Final = 0.7
"""Likeness from which a piece is one original's counterpart and nobody else's. Of 1,182 pairs of different functions of
two worked examples two are as alike (.78, .79: siblings by design); of 70 functions with other names four are less like
themselves (.59 to .66), with loops for comprehensions none."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*")
_HEAD: Final = re.compile(r"^\s*(?:async\s+)?(?:def|class)\s+(\w+)")
_HOOK: Final = re.compile(r"__\w+__")


@dataclass(frozen=True, slots=True)
class Unit:
    """One piece of code."""

    path: str
    name: str
    """Of the function or method; empty for the rest of a file or class, and for settings."""
    start: int
    end: int
    features: Features
    mentions: frozenset[str]
    """Identifiers in it, words of its texts included."""
    held: bool = False
    """Something outside may call it whatever it is called: it is decorated, or overrides what its class inherits."""


def units_of(path: str, text: str) -> list[Unit]:
    """The pieces of a file, in order; of Python that cannot be parsed, or is nested too deeply, by its lines."""
    if not path.endswith((".py", ".ipynb")):
        return [_unit(path, "", 1, text.count("\n") + 1, features_of_file(path, text), text)]
    unit = read_unit(path, text)
    if unit.tree is None:
        return _by_lines(path, unit.code)
    try:
        return _of_tree(path, unit.tree)
    except RecursionError:  # a chain of 300 `elif` is nested 300 deep
        return _by_lines(path, unit.code)


def _of_tree(path: str, module: ast.Module) -> list[Unit]:
    """The pieces of a parsed file; each by `def` and `class`, and what is left."""
    tree = _Live().visit(module)
    found: list[Unit] = []
    # an import alone does nothing: what is imported is named again where it is used
    rest = [
        node
        for node in tree.body
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Import | ast.ImportFrom)
    ]
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            found.append(_of_node(path, node, held=bool(node.decorator_list)))
        elif isinstance(node, ast.ClassDef):
            found += _of_class(path, node)
    if rest:
        code = ast.unparse(ast.Module(body=rest, type_ignores=[]))
        last = rest[-1].end_lineno or rest[-1].lineno
        found.append(_unit(path, "", rest[0].lineno, last, features_of_code(code), code))
    return found


def _unit(path: str, name: str, start: int, end: int, features: Features, code: str, held: bool = False) -> Unit:
    return Unit(path, name, start, end, features, frozenset(_WORD.findall(code)), held)


def _of_node(path: str, node: ast.stmt, *, held: bool) -> Unit:
    code = ast.unparse(node)
    name = getattr(node, "name", "")
    return _unit(path, name, node.lineno, node.end_lineno or node.lineno, features_of_code(code), code, held)


def _of_class(path: str, node: ast.ClassDef) -> list[Unit]:
    methods = [item for item in node.body if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = [
        _of_node(path, item, held=bool(node.bases or item.decorator_list or _HOOK.fullmatch(item.name)))
        for item in methods
    ]
    rest = ast.ClassDef(
        name=node.name, bases=node.bases, keywords=node.keywords, decorator_list=node.decorator_list,
        body=[item for item in node.body if item not in methods] or [ast.Pass()],
    )  # fmt: skip
    code = ast.unparse(ast.fix_missing_locations(ast.copy_location(rest, node)))
    return [*found, _unit(path, node.name, node.lineno, node.lineno, features_of_code(code), code, held=True)]


def _by_lines(path: str, code: str) -> list[Unit]:
    lines = [re.sub(r"(^|\s)#.*$", "", line) for line in code.split("\n")]
    starts = [0, *(index for index, line in enumerate(lines) if _HEAD.match(line))]
    found = []
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        text = "\n".join(lines[start:end])
        if text.strip():
            head = _HEAD.match(lines[start])
            found.append(_unit(path, head[1] if head else "", start + 1, end, features_of_code(text), text))
    return found


class _Live(ast.NodeTransformer):
    """Takes out what cannot run: `if False`, what follows `return`, texts that stand alone."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        for name in ("body", "orelse", "finalbody"):
            block = getattr(node, name, None)
            if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
                nothing = [ast.copy_location(ast.Pass(), block[0])] if name == "body" else []
                setattr(node, name, _reached(block) or nothing)
        return node


def _reached(block: Sequence[ast.stmt]) -> list[ast.stmt]:
    found: list[ast.stmt] = []
    for node in block:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        if isinstance(node, ast.If | ast.While) and isinstance(node.test, ast.Constant) and not node.test.value:
            found += node.orelse
            continue
        found.append(node)
        if isinstance(node, ast.Return | ast.Raise | ast.Continue | ast.Break):
            break
    return found


def live_units(units: Sequence[Unit], named: Iterable[str]) -> list[Unit]:
    """The pieces that something may call: those whose name occurs outside themselves, in what lives.

    Args:
        units: of all files of the submission.
        named: words of everything else that could name them: the scripts that start it, kept files of the repository.
    """
    outside = frozenset(named)
    alive = [unit for unit in units if not unit.name or unit.held or unit.name in outside]
    while True:
        said = {word for unit in alive for word in unit.mentions}
        more = [unit for unit in units if unit not in alive and unit.name in said]
        if not more:
            return [unit for unit in units if unit in alive]
        alive += more


def likeness(one: Features, two: Features) -> float:
    """Shared weight of two pieces as a share of what both say, in [0, 1]."""
    total = sum(one.weights.values()) + sum(two.weights.values())
    shared = sum(min(weight, two.weights[name]) for name, weight in one.weights.items() if name in two.weights)
    return 2 * shared / total if total else 0.0


class Counterparts:
    """Which piece of the submission is the counterpart of which piece of the original?

    Two functions of one package say much in common. A piece that is a copy of the one is no implementation of the
    other, which is missing.
    """

    def __init__(self, units: Sequence[Unit], originals: Sequence[Unit]) -> None:
        self.units = units
        self._originals = originals
        self._alike = [[likeness(unit.features, other.features) for other in originals] for unit in units]

    def holding(self, path: str, start: int, end: int) -> frozenset[int]:
        """The original's pieces that share a line with a span."""
        return frozenset(
            index
            for index, unit in enumerate(self._originals)
            if unit.path == path and unit.start <= end and start <= unit.end
        )

    def said_for(self, position: int, wanted: frozenset[int]) -> Features:
        """What a piece says for the wanted originals: all, or what goes beyond another one that it is a copy of."""
        unit, alike = self.units[position], self._alike[position]
        best = max(range(len(alike)), key=lambda index: (alike[index], -index), default=None)
        if best is None or alike[best] < COPY or best in wanted:
            return unit.features
        if any(alike[index] >= alike[best] for index in wanted):
            return unit.features
        other = self._originals[best].features
        weights = {name: weight for name, weight in unit.features.weights.items() if name not in other.weights}
        return Features(weights, Counter({w: n for w, n in unit.features.words.items() if w not in other.words}))
