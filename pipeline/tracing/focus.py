"""One script, many experiments: which of them a task is about.

A script that calls `exp1()`, `exp2()`, ... one after the other answers one question with one of these calls. Calls that
feed each other (load, fit, score) are steps of one experiment and stay together; so does everything when no call speaks
of the task more than the others.

Non-goal: parts of one function. What is kept is traced as a whole.
"""

from __future__ import annotations

import ast
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from typing import Final

__all__ = ["comparable", "drop_unrelated"]

_LEAST: Final = 3
"""Two calls may be halves of one experiment; three that do not feed each other are several."""
_LONG: Final = 8
"""Lines from which a function can be an experiment of its own."""
_STAGE: Final = re.compile(
    r"^(?:train|test|eval|evaluate|valid|validate|predict|infer)(?:_(?:epoch|step|model|one_epoch|loop))?$"
)
"""Where calls are named after the stages of one experiment, none of them is another one."""
_NEAR: Final = 0.6
"""Experiments that speak of the task this much of what the best one does are kept beside it."""
_WORD = re.compile(r"[a-z]{3,}|[a-z]\d+")
_Function = ast.FunctionDef | ast.AsyncFunctionDef


def drop_unrelated(tree: ast.Module, about: str) -> tuple[str, ...]:
    """Take out of `tree`, in place, the calls of sibling experiments that the task is not about.

    Args:
        tree: an entry point.
        about: what the task says (question, metrics, settings).

    Returns:
        Names of the functions whose calls were taken out, sorted.
    """
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    dropped: set[str] = set()
    for body in [tree.body, *(functions[name].body for name in _started(tree) if name in functions)]:
        siblings = _siblings(body, functions, tree)
        if len(siblings) >= _LEAST:
            dropped |= _unrelated({name: functions[name] for name in siblings}, about)
    if dropped:
        _Dropper(dropped).visit(tree)
    return tuple(sorted(dropped))


def _started(tree: ast.Module) -> list[str]:
    """Functions that module-level code calls by name: the programs that the file is."""
    statements = [item for item in tree.body if not isinstance(item, _Function | ast.ClassDef)]
    called = [node.func for item in statements for node in ast.walk(item) if isinstance(node, ast.Call)]
    return sorted({function.id for function in called if isinstance(function, ast.Name)})


def _siblings(body: list[ast.stmt], functions: dict[str, _Function], tree: ast.Module) -> list[str]:
    """Long functions that a body calls once, and whose values none of the other calls takes."""
    statements = [item for item in body if not isinstance(item, _Function | ast.ClassDef)]
    own = [node for statement in statements for node in ast.walk(statement)]
    named = [node for node in own if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)]
    calls = [call for call in named if isinstance(call.func, ast.Name) and call.func.id in functions]
    everywhere = Counter(
        node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    )
    taken = {
        item.id
        for call in calls
        for argument in [*call.args, *(word.value for word in call.keywords)]
        for item in ast.walk(argument)
        if isinstance(item, ast.Name)
    }
    assigned = [node for node in own if isinstance(node, ast.Assign)]
    for _ in range(2):  # through `data = {"text": texts}` to the call that takes `data`
        taken |= {name for node in assigned if _names(node.targets) & taken for name in _names([node.value])}
    feeding = {
        call.func.id
        for node in assigned
        if _names(node.targets) & taken
        for call in ast.walk(node.value)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
    }
    names = [call.func.id for call in calls if isinstance(call.func, ast.Name)]
    alone = [name for name in names if everywhere[name] == 1 and name not in feeding]
    alone = [name for name in alone if _length(functions[name]) >= _LONG]
    return [] if any(_STAGE.search(name) for name in alone) else alone


def _names(nodes: Sequence[ast.expr]) -> set[str]:
    return {item.id for node in nodes for item in ast.walk(node) if isinstance(item, ast.Name)}


def _length(node: _Function) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _unrelated(siblings: dict[str, _Function], about: str) -> set[str]:
    """Siblings that hold clearly less of the task's words than the best one; words that all hold do not count."""
    wanted = set(comparable(about))
    held = {name: wanted & set(comparable(ast.unparse(node))) for name, node in siblings.items()}
    spread = Counter(word for words in held.values() for word in words)
    weight = {word: math.log(len(siblings) / count) for word, count in spread.items()}
    scores = {name: sum(weight[word] for word in words) for name, words in held.items()}
    best = max(scores.values())
    return {name for name, score in scores.items() if score < _NEAR * best}


def comparable(text: str) -> list[str]:
    """Comparable words: `R²` is `r2`, `h₂_order` is `h2` and `order`, plurals lose their s."""
    plain = unicodedata.normalize("NFKC", text).lower().replace("_", " ")
    found = _WORD.findall(plain)
    return [word[:-1] if len(word) > 4 and word.endswith("s") and not word.endswith("ss") else word for word in found]


class _Dropper(ast.NodeTransformer):
    """Replaces statements that call a dropped function by `pass`."""

    def __init__(self, dropped: set[str]) -> None:
        self._dropped = dropped

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        """A call as a statement, or inside one (`passed.append(test_1())`)."""
        return self._kept(node)

    def visit_Assign(self, node: ast.Assign) -> ast.stmt:
        """`report["one"] = exp1()`."""
        return self._kept(node)

    def _kept(self, node: ast.stmt) -> ast.stmt:
        called = (item.func for item in ast.walk(node) if isinstance(item, ast.Call))
        calls = {function.id for function in called if isinstance(function, ast.Name)}
        return ast.copy_location(ast.Pass(), node) if calls & self._dropped else node
