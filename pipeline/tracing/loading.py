"""Configuration files of a run: those that its commands name, and those that its code opens.

Non-goals: what they hold (see `pipeline.tracing.configs`), configurations that only a likeness of names suggests.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import Usage
from pipeline.tracing.callgraph import Reaching
from pipeline.tracing.parsed import Module, called_name
from pipeline.tracing.program import Program
from pipeline.tracing.scopes import Scopes
from pipeline.tracing.source import parse_python
from pipeline.tracing.values import Values

__all__ = ["loaded_configs", "named_configs"]

_ENDINGS: Final = (".yaml", ".yml", ".json", ".toml", ".gin", ".ini", ".cfg")
_LOADED: Final = (".yaml", ".yml", ".toml", ".gin", ".ini", ".cfg")
"""JSON that code opens is data as often as configuration; it counts where its path says so."""
_CONFIGURES: Final = re.compile(r"conf|cfg|param|setting|option", re.IGNORECASE)
_OPENS: Final = re.compile(
    r"(?:^|\.)(?:open|read_text|fromfile|merge_from_file|parse_config_file|OmegaConf\.load|load_config|load_yaml|"
    r"read_yaml|safe_load|full_load)$|^(?:yaml|toml|tomllib|json)\.load$|\.read$"
)


def named_configs(snapshot: Snapshot, usage: Sequence[Usage], entries: Collection[str] = ()) -> list[str]:
    """Configurations that the words of the commands name, in order.

    A Python file is one where an option takes it, or where it does nothing but set names; what follows its colon
    (`configs/train.py:b16`) is kept.

    Args:
        snapshot: the repository.
        usage: the commands.
        entries: paths of the entry points, which are none.
    """
    known = {file.path for file in snapshot.files}
    found: list[str] = []
    for step in usage:
        for number, word in enumerate(step.argv):
            plain, colon, argument = word.split("=")[-1].partition(":")
            path = posixpath.normpath(posixpath.join(step.directory, plain))
            if path not in known or path in entries:
                continue
            given = word.startswith("-") or (number > 0 and step.argv[number - 1].startswith("--"))
            if path.endswith(_ENDINGS) or (path.endswith(".py") and (given or _only_sets(snapshot.text(path)))):
                found.append(f"{path}{colon}{argument}" if path.endswith(".py") else path)
    return list(dict.fromkeys(found))


def loaded_configs(
    snapshot: Snapshot, program: Program, entry: Module, reaching: Reaching, values: Values, usage: Sequence[Usage]
) -> list[str]:
    """Configurations of the repository that the code opens, in the order in which it does.

    Args:
        snapshot: the repository.
        program: its code.
        entry: the entry point.
        reaching: what it reaches.
        values: the settings that are known so far; paths made of them are known.
        usage: the commands: their directories are where paths start.
    """
    known = {file.path for file in snapshot.files}
    scopes = Scopes(program, entry, reaching, values)
    places = list(dict.fromkeys(["", *(step.directory for step in usage), posixpath.dirname(entry.path)]))
    found: dict[str, None] = {}
    for node, where in _opened(entry, reaching):
        for text in scopes.possible(node, where):
            path = next(
                (path for place in places if (path := posixpath.normpath(posixpath.join(place, text))) in known), ""
            )
            if path.endswith(_LOADED) or (path.endswith(".json") and _CONFIGURES.search(path)):
                found.setdefault(path)
    return list(found)


def _opened(entry: Module, reaching: Reaching) -> Iterator[tuple[ast.expr, tuple[str, str, int] | None]]:
    """What calls that open files are given, with the function that they are in."""
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    tree = entry.unit.tree
    bodies: list[tuple[ast.AST, tuple[str, str, int] | None]] = [
        (node, None) for node in (tree.body if tree is not None else ()) if not isinstance(node, kinds)
    ]
    bodies += [(item.definition.node, item.definition.key) for item in reaching.functions]
    for body, where in bodies:
        for node in ast.walk(body):
            if isinstance(node, ast.Call) and _OPENS.search(called_name(node)):
                held = (
                    node.func.value if isinstance(node.func, ast.Attribute) and node.func.attr == "read_text" else None
                )
                given = node.args[0] if node.args else held
                if given is not None and _may_be_path(given):
                    yield given, where


def _may_be_path(node: ast.expr) -> bool:
    """Is it a name, a written path, or a call that makes one (`os.path.join("configs", args.config)`)?"""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str)
    return not isinstance(node, ast.Call) or not _OPENS.search(called_name(node))


def _only_sets(code: str) -> bool:
    """Does a file do nothing but set names?"""
    tree, _ = parse_python(code)
    if tree is None:
        return False
    plain = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
    doing = [node for node in tree.body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return bool(doing) and all(isinstance(node, plain) for node in doing)
