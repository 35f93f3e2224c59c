"""Values of configuration files with their lines: YAML, JSON, TOML, INI and Python, Hydra's composition included.

A Hydra configuration names others in its `defaults` list; what they hold is in force under the name of their group, and
`group=option` on the command line puts another file in their place (documentation of Hydra 1.3, "The Defaults List").

Non-goals: interpolation (`${model.width}` stays as it is written), packages other than `_global_` and `_here_`.
"""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from pipeline.repository import Snapshot
from pipeline.tracing.arguments import literal
from pipeline.tracing.parsed import dotted
from pipeline.tracing.source import parse_python

__all__ = ["ConfigValue", "config_values"]

_MOST: Final = 120
"""Values of one file: beyond, it is data."""
_DEEP: Final = 8
_LONGEST: Final = 200
_GLOBAL: Final = re.compile(r"^\s*#\s*@package\s+_global_", re.MULTILINE)
_FILES: Final = (".yaml", ".yml")
_MISSING: Final = "???"
"""How Hydra writes that a value must come from elsewhere."""


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One scalar, or list of scalars, of a configuration."""

    name: str
    """Dotted: `model.width`."""
    value: str
    path: str
    line: int


def config_values(snapshot: Snapshot, path: str, overrides: Mapping[str, str] | None = None) -> list[ConfigValue]:
    """The values that are in force when a program is started with the configuration `path`.

    Args:
        snapshot: the repository.
        path: the file; one that cannot be parsed has no values.
        overrides: what the command sets (`group=option` chooses among Hydra's files).
    """
    composer = _Composer(snapshot, overrides or {})
    composer.add(path, "")
    return list(composer.found.values())[:_MOST]


class _Composer:
    """Collects values; what is read first is in force."""

    def __init__(self, snapshot: Snapshot, overrides: Mapping[str, str]) -> None:
        self._snapshot = snapshot
        self._known = {file.path for file in snapshot.files if not file.binary}
        self._overrides = overrides
        self._seen: set[str] = set()
        self.found: dict[str, ConfigValue] = {}

    def add(self, path: str, prefix: str) -> None:
        """The values of a file under `prefix`, and those that it takes over from others.

        What stands later in a `defaults` list is in force over what stands before, the file's own values where `_self_`
        stands, else over all (Hydra 1.3, "Composition Order").
        """
        if path not in self._known or path in self._seen or len(self._seen) > _MOST:
            return
        self._seen.add(path)
        text = self._snapshot.text(path)
        prefix = "" if _GLOBAL.search(text) else prefix
        listed = list(self._defaults(path, text)) if path.endswith(_FILES) else []
        own = next((number for number, (target, _) in enumerate(listed) if target == path), len(listed))
        for target, group in reversed(listed[own + 1 :]):
            self.add(target, ".".join(part for part in (prefix, group) if part))
        for name, value, line in _read(path, text):
            whole = f"{prefix}.{name}" if prefix else name
            if value != _MISSING:
                self.found.setdefault(whole, ConfigValue(whole, value[:_LONGEST], path, line))
        for target, group in reversed(listed[:own]):
            self.add(target, ".".join(part for part in (prefix, group) if part))

    def _defaults(self, path: str, text: str) -> Iterator[tuple[str, str]]:
        """(file, group) of a `defaults` list; the file itself where `_self_` stands."""
        document = _yaml(text)
        listed = document.get("defaults") if isinstance(document, dict) else None
        for item in listed if isinstance(listed, list) else ():
            pairs = item.items() if isinstance(item, dict) else [("", item)] if isinstance(item, str) else []
            for key, option in pairs:
                named = re.sub(r"^(?:override|optional)\s+", "", str(key)).split("@")[0]
                group = named.strip("/")
                chosen = self._overrides.get(group, option) if group else option
                for name in chosen if isinstance(chosen, list) else [chosen]:
                    if name == "_self_":
                        yield path, ""
                    elif isinstance(name, str) and name != "null" and not group.startswith("hydra"):
                        whole = posixpath.join(named, name)
                        yield self._found(posixpath.dirname(path), whole), group.replace("/", ".")

    def _found(self, here: str, name: str) -> str:
        """The file of a group's option: below `here`, or below a directory above it where the name begins with `/`."""
        stem = name.strip("/")
        while True:
            path = self._file(posixpath.join(here, stem))
            if path in self._known or not name.startswith("/") or not here:
                return path
            here = posixpath.dirname(here)

    def _file(self, stem: str) -> str:
        stem = posixpath.normpath(stem)
        return next((stem + end for end in ("", *_FILES) if stem + end in self._known), stem)


def _yaml(text: str) -> Any:
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _read(path: str, text: str) -> list[tuple[str, str, int]]:
    end = posixpath.splitext(path)[1].lower()
    if end in {".yaml", ".yml", ".json"}:
        return _from_yaml(text)
    if end == ".toml":
        return _from_toml(text)
    if end in {".ini", ".cfg"}:
        return _from_ini(text)
    return _from_python(text) if end == ".py" else []


def _from_yaml(text: str) -> list[tuple[str, str, int]]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)  # keeps the lines; JSON is YAML
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    found: list[tuple[str, str, int]] = []
    _flatten(root, "", found)
    return found


def _flatten(node: Any, prefix: str, found: list[tuple[str, str, int]], depth: int = 0) -> None:
    if depth > _DEEP or len(found) >= _MOST or prefix == "defaults":
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                _flatten(value, f"{prefix}.{key.value}" if prefix else key.value, found, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        if prefix and node.value and all(isinstance(item, yaml.ScalarNode) for item in node.value):
            found.append((prefix, " ".join(item.value for item in node.value), node.start_mark.line + 1))
    elif isinstance(node, yaml.ScalarNode) and prefix:
        found.append((prefix, node.value, node.start_mark.line + 1))


def _from_toml(text: str) -> list[tuple[str, str, int]]:
    try:
        document = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return []
    return [(name, value, _line(text, name)) for name, value in _leaves(document, "")][:_MOST]


def _from_ini(text: str) -> list[tuple[str, str, int]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    names = [(f"{section}.{key}", value) for section in parser.sections() for key, value in parser.items(section)]
    return [(name, value, _line(text, name)) for name, value in names if value is not None][:_MOST]


def _from_python(text: str) -> list[tuple[str, str, int]]:
    """Names that a configuration in Python sets to constants, and constant entries of its dictionaries.

    A function that builds a configuration and returns it (`config.lr = 3e-4; return config`) counts as well.
    """
    tree, _ = parse_python(text)
    found: list[tuple[str, str, int]] = []
    bodies = [tree.body] if tree is not None else []
    bodies += [_building(node) for node in bodies[0] if isinstance(node, ast.FunctionDef)] if bodies else []
    for node in (node for body in bodies for node in body):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and (name := dotted(node.targets[0])):
            _python_leaves(node.value, name, found)
    return found


def _building(node: ast.FunctionDef) -> list[ast.stmt]:
    """The assignments to what a function returns, and to its parts."""
    last = node.body[-1]
    returned = last.value.id if isinstance(last, ast.Return) and isinstance(last.value, ast.Name) else None
    return [
        item
        for item in node.body
        if returned and isinstance(item, ast.Assign) and dotted(item.targets[0]).split(".")[0] == returned
    ]


def _python_leaves(node: ast.expr, name: str, found: list[tuple[str, str, int]], depth: int = 0) -> None:
    if depth > _DEEP or len(found) >= _MOST:
        return
    if isinstance(node, ast.Dict):
        for key, value in zip(node.keys, node.values, strict=True):
            if isinstance(key, ast.Constant):
                _python_leaves(value, f"{name}.{literal(key)}", found, depth + 1)
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "dict":
        for word in node.keywords:
            if word.arg:
                _python_leaves(word.value, f"{name}.{word.arg}", found, depth + 1)
    elif (value_text := literal(node)) is not None:
        found.append((name, value_text, node.lineno))


def _leaves(value: Any, name: str, depth: int = 0) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth <= _DEEP:
        for key, inner in value.items():
            yield from _leaves(inner, f"{name}.{key}" if name else str(key), depth + 1)
    elif isinstance(value, list):
        if name and value and not any(isinstance(item, (dict, list)) for item in value):
            yield name, " ".join(map(str, value))
    elif name:
        yield name, str(value)


def _line(text: str, name: str) -> int:
    """The line that sets the last part of a dotted name, below the section that the rest names."""
    section, _, key = name.rpartition(".")
    lines = text.splitlines()
    start = next((n for n, line in enumerate(lines) if line.strip() == f"[{section}]"), 0) if section else 0
    wanted = re.compile(rf"\s*[\"']?{re.escape(key)}[\"']?\s*[=:]", re.IGNORECASE)
    return next((n for n in range(start, len(lines)) if wanted.match(lines[n])), start) + 1
