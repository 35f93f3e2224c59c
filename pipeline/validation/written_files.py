"""The files that scripts write by a name that stands in their code: what a finished run should leave behind."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.tracing.arguments import literal
from pipeline.tracing.source import read_unit

__all__ = ["written_files"]

_WRITERS: Final = frozenset({
    "to_csv", "to_json", "to_excel", "to_parquet", "to_feather", "to_latex", "to_markdown", "to_html", "to_hdf",
    "savefig", "savetxt", "save", "savez", "savez_compressed",
})  # fmt: skip
_PATHS: Final = frozenset({"write_text", "write_bytes"})
_MAX: Final = 40


def written_files(snapshot: Snapshot, sources: Sequence[str]) -> tuple[str, ...]:
    """Names of files that the scripts write, sorted; names that are computed cannot be told.

    Args:
        snapshot: the repository.
        sources: files of the chain.
    """
    known = {file.path for file in snapshot.files}
    found: set[str] = set()
    for path in sources:
        if path in known and path.endswith((".py", ".ipynb")):
            tree = read_unit(path, snapshot.text(path)).tree
            found |= set(_written(tree)) if tree is not None else set()
    return tuple(sorted(found))[:_MAX]


def _written(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        name = node.func.attr if isinstance(node.func, ast.Attribute) else ast.unparse(node.func)
        first = literal(node.args[0]) if node.args else None
        if name in _PATHS and isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call):
            first = literal(node.func.value.args[0]) if node.func.value.args else None
        elif name == "open":
            mode = literal(node.args[1]) if len(node.args) > 1 else None
            mode = mode or literal(next((word.value for word in node.keywords if word.arg == "mode"), None)) or "r"
            if not mode.startswith(("w", "a", "x")):
                continue
        elif name not in _WRITERS:
            continue
        if first and "." in first.rpartition("/")[2] and len(first) <= 200 and "\n" not in first:
            yield first.removeprefix("./")
