"""Which of the definitions that a run reaches in other files are steps of the experiment, and which its machinery.

An entry point reaches most of its project: loaders for data sets that are not used, logging, every layer of a model. Of
the lines that published requirements cite, 75% lie in the chain's own files (103 tasks). The rest is found by what it
speaks of: definitions that share rare words with the task, near the entry point, until they add up to a share of the
experiment's own code.

Non-goal: what lies in the files of the chain. All that is reached there is kept.
"""

from __future__ import annotations

import ast
import math
from collections import Counter
from collections.abc import Collection
from typing import Final

from pipeline.tracing.callgraph import Reached, Reaching
from pipeline.tracing.focus import comparable
from pipeline.tracing.program import Program

__all__ = ["chosen"]

# Given the true files of 103 published tasks, line recall and precision: 0: .63/.45, a quarter: .67/.38, a half:
# .69/.33, the whole: .70/.27, no limit: .75/.16.
_SHARE: Final = 0.25
_CITED: Final = 200
"""Lines that the requirements of a published task cite in the mean: where an entry point has fewer of its own, because
it only calls what the project's package does, the rest is taken from there."""

_Key = tuple[str, str, int]


def chosen(program: Program, reaching: Reaching, own: Collection[str], about: str) -> set[_Key]:
    """Keys of the reached definitions that may be steps.

    Args:
        program: the repository.
        reaching: what the entry point reaches.
        own: the files of the chain.
        about: what the task says; empty: everything is kept.
    """
    if not about:
        return {item.definition.key for item in reaching.functions}
    kept = {item.definition.key for item in reaching.functions if item.definition.path in own}
    others = [item for item in reaching.functions if item.definition.path not in own]
    wanted = set(comparable(about))
    held = {item.definition.key: _words(program, item) for item in others}
    spread = Counter(word for words in held.values() for word in words)
    total = max(len(others), 1)

    def relevance(item: Reached) -> float:
        words = held[item.definition.key]
        shared = sum(math.log(1 + total / spread[word]) for word in words & wanted)
        return shared / math.sqrt(len(words) + 5) / math.sqrt(max(item.depth, 1))

    experiment = _own_lines(program, reaching, own)
    lines = max(_SHARE * experiment, _CITED - experiment)
    for item in sorted(others, key=lambda item: (-relevance(item), item.definition.key)):
        length = _length(item)
        if length <= lines:
            lines -= length
            kept.add(item.definition.key)
    return kept


def _words(program: Program, item: Reached) -> set[str]:
    module = program.module(item.definition.path)
    code = module.lines(item.definition.node.lineno, _end(item)) if module is not None else ""
    return set(comparable(f"{item.definition.name} {code}"))


def _end(item: Reached) -> int:
    return item.definition.node.end_lineno or item.definition.node.lineno


def _length(item: Reached) -> int:
    return _end(item) - item.definition.node.lineno + 1


def _own_lines(program: Program, reaching: Reaching, own: Collection[str]) -> int:
    """Lines of the reached definitions and of the module-level code of the chain's own files."""
    count = sum(_length(item) for item in reaching.functions if item.definition.path in own)
    entry = program.module(reaching.files[0]) if reaching.files else None
    body = entry.unit.tree.body if entry is not None and entry.unit.tree is not None else []
    skipped = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    return count + sum((n.end_lineno or n.lineno) - n.lineno + 1 for n in body if not isinstance(n, skipped))
