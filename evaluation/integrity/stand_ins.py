"""Stand-ins with a body: classes that only pretend to compute, and results that are changed for one case alone.

`class DummyEstimator` whose answer does not depend on what it is given is no estimator, whatever it is called with; a
factor that one method's result gets and the others' do not favours it. The first is a violation where the answer is
seen to ignore its input; the second is for a person to look at, as a correction may be part of a method.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["one_sided_changes", "pretending_classes"]

_PRETENDING: Final = re.compile(r"^_?(?:Dummy|Fake|Mock|Stub|Placeholder|Pretend|Bogus)(?=[A-Z_]|$)")
_BASELINES: Final = re.compile(r"Dummy(?:Classifier|Regressor|Env|VecEnv|Cache|Context)|FakeQuant")
"""Established names: baselines of scikit-learn, environments, quantisation."""
_ANSWERS: Final = frozenset(
    {
        "__call__",
        "predict",
        "predict_proba",
        "forward",
        "fit_predict",
        "transform",
        "evaluate",
        "score",
        "sample",
        "run",
    }
)


def pretending_classes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, name) of classes that are called a stand-in, are used in the same program, and ignore their input."""
    used = {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and _PRETENDING.match(node.name) and not _BASELINES.search(node.name):
            answers = [part for part in node.body if isinstance(part, ast.FunctionDef) and part.name in _ANSWERS]
            if node.name in used and answers and all(map(_ignores_its_input, answers)):
                yield node.lineno, node.name


def _ignores_its_input(function: ast.FunctionDef) -> bool:
    """Does the body say none of its parameters but the first (`self`)?"""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    names = {argument.arg for argument in arguments[1:]}
    said = {node.id for part in function.body for node in ast.walk(part) if isinstance(node, ast.Name)}
    return not names & said


def one_sided_changes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """(line, changed value) where one branch of a condition has a value and the other the same times or plus a number.

    `value * 0.9 if method is median else value`: the condition decides whose result is changed.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp):
            for changed, plain in ((node.body, node.orelse), (node.orelse, node.body)):
                if isinstance(plain, ast.Name | ast.Subscript | ast.Attribute) and _changed(changed, plain):
                    yield node.lineno, ast.unparse(plain)
        elif isinstance(node, ast.If) and not node.orelse:
            for part in node.body:
                if isinstance(part, ast.AugAssign) and isinstance(part.op, ast.Mult | ast.Div) and _number(part.value):
                    yield part.lineno, ast.unparse(part.target)


def _changed(node: ast.expr, plain: ast.expr) -> bool:
    """Is it the plain value with a number added, or multiplied by one?"""
    if not isinstance(node, ast.BinOp) or not isinstance(node.op, ast.Mult | ast.Add | ast.Sub | ast.Div):
        return False
    text = ast.unparse(plain)
    sides = (node.left, node.right)
    return any(ast.unparse(side) == text for side in sides) and any(map(_number, sides))


def _number(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value not in {0.0, 1.0, 100.0}
