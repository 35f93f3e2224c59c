"""What the files that were left in the repository say, and what those that were taken out defined.

What both say does not tell a task's experiment from its siblings. Non-goal: which of it a submission runs (`reaching`).
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from evaluation.integrity.material import Material, read_text
from evaluation.judges.features import features_of_file
from pipeline.tracing.source import parse_python

__all__ = ["Kept", "defined_in", "kept_features"]

_MANY: Final = 400


@dataclass(slots=True)
class Kept:
    """What the files that were left in the repository say."""

    features: set[str] = field(default_factory=set)
    calls: dict[str, set[str]] = field(default_factory=dict)
    """Function -> functions of the repository that it calls."""


def kept_features(material: Material) -> Kept:
    """Of at most `_MANY` Python files, by path."""
    root = material.task.masked_repository
    found = Kept()
    if root is None or not root.is_dir():
        return found
    called: dict[str, set[str]] = {}
    for path in sorted(root.rglob("*.py"))[:_MANY]:
        if ".git" in path.relative_to(root).parts:
            continue
        text = read_text(path)
        found.features |= set(features_of_file(path.name, text).weights)
        tree, _ = parse_python(text)
        for node in ast.walk(tree) if tree is not None else ():
            if isinstance(node, ast.FunctionDef):
                called.setdefault(node.name, set()).update(
                    call.func.id
                    for call in ast.walk(node)
                    if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
                )
    found.calls = {name: names & set(called) for name, names in called.items()}
    return found


def defined_in(root: Path | None, paths: set[str]) -> frozenset[str]:
    """Functions and classes of the removed files."""
    found: set[str] = set()
    for path in sorted(paths) if root is not None else ():
        assert root is not None
        if path.endswith(".py"):
            tree, _ = parse_python(read_text(root / path))
            nodes = ast.walk(tree) if tree is not None else ()
            found |= {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return frozenset(found)
