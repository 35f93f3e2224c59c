"""Configuration files as they are written: names, values and lines of YAML, JSON, TOML, INI and gin.

Non-goals: what files take over from each other, and what a command changes (see `pipeline.tracing.configs`).
"""

from __future__ import annotations

import configparser
import posixpath
import re
import tomllib
from collections.abc import Iterator
from typing import Any, Final

import yaml

__all__ = ["MOST", "parse_yaml", "read_config"]

MOST: Final = 400
"""Values of one file: beyond, it is data. The largest configurations of 15 projects that were looked at have 130."""
_DEEP: Final = 8
_GIN: Final = re.compile(r"^\s*([A-Za-z_][\w./]*)\s*=\s*(.*)$")
_MERGE: Final = "tag:yaml.org,2002:merge"


def parse_yaml(text: str) -> Any:
    """What a YAML text holds; None where it cannot be read."""
    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def read_config(path: str, text: str) -> list[tuple[str, str, int]]:
    """(dotted name, value, line) of a file in the order in which they are written; of two of a name, both."""
    end = posixpath.splitext(path)[1].lower()
    if end in {".yaml", ".yml", ".json"}:
        return _from_yaml(text)
    if end == ".toml":
        return _from_toml(text)
    if end in {".ini", ".cfg"}:
        return _from_ini(text)
    return _from_gin(text) if end == ".gin" else []


def _from_yaml(text: str) -> list[tuple[str, str, int]]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)  # keeps the lines; JSON is YAML
    except (yaml.YAMLError, ValueError, RecursionError):
        return []
    found: list[tuple[str, str, int]] = []
    _flatten(root, "", found)
    return found


def _flatten(node: Any, prefix: str, found: list[tuple[str, str, int]], depth: int = 0) -> None:
    if depth > _DEEP or len(found) >= MOST or (prefix == "defaults" and not isinstance(node, yaml.MappingNode)):
        return
    if isinstance(node, yaml.MappingNode):
        own = [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE]
        for key, value in own:
            _flatten(value, f"{prefix}.{key.value}" if prefix else key.value, found, depth + 1)
        for key, value in node.value:  # `<<: *base`: what the base says where the section says nothing
            if key.tag == _MERGE:
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    _flatten(part, prefix, found, depth + 1)
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
    return [(name, value, _line(text, name)) for name, value in _leaves(document, "")][:MOST]


def _from_ini(text: str) -> list[tuple[str, str, int]]:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return []
    names = [(f"{section}.{key}", value) for section in parser.sections() for key, value in parser.items(section)]
    return [(name, value, _line(text, name)) for name, value in names if value is not None][:MOST]


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


def _from_gin(text: str) -> list[tuple[str, str, int]]:
    """Bindings (`Agent.gamma = 0.99`), macros filled in; a value in brackets may go over several lines."""
    found: list[tuple[str, str, int]] = []
    macros: dict[str, str] = {}
    lines = text.splitlines()
    number = 0
    while number < len(lines) and len(found) < MOST:
        match = _GIN.match(_uncommented(lines[number]))
        start = number
        number += 1
        if match is None:
            continue
        name, value = match.group(1), match.group(2).strip()
        while number < len(lines) and (value.endswith("\\") or _open(value) > 0 or not value):
            value = f"{value.rstrip(chr(92))} {_uncommented(lines[number]).strip()}".strip()
            number += 1
        value = re.sub(r"%([\w./]+)", lambda found: macros.get(found.group(1), found.group(0)), value)
        if "." not in name:
            macros[name] = value
        found.append((name.replace("/", "."), value.strip("'\""), start + 1))
    return found


def _uncommented(line: str) -> str:
    """A line without its comment; a `#` in quotes is none."""
    quote = ""
    for place, char in enumerate(line):
        if quote:
            quote = "" if char == quote else quote
        elif char in "'\"":
            quote = char
        elif char == "#":
            return line[:place]
    return line


def _open(value: str) -> int:
    return sum(value.count(one) for one in "([{") - sum(value.count(one) for one in ")]}")
