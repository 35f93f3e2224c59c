"""Programs that a repository installs: `[project.scripts]`, Poetry's scripts, `console_scripts` of setuptools.

Their package is not installed where commands are run again, so a program is run as the module that it is.
"""

from __future__ import annotations

import ast
import configparser
import posixpath
import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pipeline.repository import Snapshot

__all__ = ["read_console_scripts"]

_MAX_BYTES: Final = 1 << 20


def read_console_scripts(snapshot: Snapshot) -> dict[str, str]:
    """Name of a program -> dotted name of the module that it calls; what cannot be parsed declares none.

    Args:
        snapshot: the repository; the declarations nearest to its root win.
    """
    found: dict[str, str] = {}
    for file in sorted(snapshot.files, key=lambda item: (item.path.count("/"), item.path)):
        read = _READERS.get(posixpath.basename(file.path))
        if read is not None and file.size <= _MAX_BYTES:
            for name, target in read(snapshot.text(file.path)):
                found.setdefault(name, target.partition(":")[0].strip())
    return found


def _of_pyproject(text: str) -> Iterator[tuple[str, str]]:
    try:
        declared = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    for table in (_at(declared, "project", "scripts"), _at(declared, "tool", "poetry", "scripts")):
        yield from ((name, target) for name, target in table.items() if isinstance(target, str))


def _at(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    for name in names:
        inner = table.get(name)
        table = inner if isinstance(inner, Mapping) else {}
    return table


def _of_setup_cfg(text: str) -> Iterator[tuple[str, str]]:
    parser = configparser.ConfigParser(interpolation=None)
    try:
        parser.read_string(text)
    except configparser.Error:
        return
    yield from _entries(parser.get("options.entry_points", "console_scripts", fallback="").splitlines())


def _of_setup_py(text: str) -> Iterator[tuple[str, str]]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return
    for node in ast.walk(tree):
        for key, value in zip(node.keys, node.values, strict=True) if isinstance(node, ast.Dict) else ():
            if isinstance(key, ast.Constant) and key.value == "console_scripts" and isinstance(value, ast.List):
                texts = [item.value for item in value.elts if isinstance(item, ast.Constant)]
                yield from _entries([text for text in texts if isinstance(text, str)])


def _entries(lines: list[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        name, equals, target = line.partition("=")
        if equals:
            yield name.strip(), target.strip()


_READERS: Final = {"pyproject.toml": _of_pyproject, "setup.cfg": _of_setup_cfg, "setup.py": _of_setup_py}
