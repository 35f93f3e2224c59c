"""Dependencies of a Python project: pyproject.toml, setup.cfg, setup.py, Pipfile, and its Python by `.python-version`.

Everything is read as data. Non-goals: requirements files and conda (see `declarations`), lock files: the resolution as
of the commit's date gives the like.
"""

from __future__ import annotations

import ast
import configparser
import re
import tomllib
import warnings
from typing import Any

from pipeline.schema import Severity
from pipeline.tracing.parsed import called_function
from pipeline.validation.declared import Declarations

__all__ = ["read_pipfile", "read_pyproject", "read_python_pin", "read_setup_cfg", "read_setup_py", "table", "texts"]


def _toml(text: str, path: str, into: Declarations) -> dict[str, Any]:
    """The document; of one that is not TOML nothing, which is reported."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        into.report(path, f"is not TOML: {error}")
        return {}


def read_pyproject(text: str, path: str, into: Declarations) -> None:
    """Dependencies and Python of a `pyproject.toml`, of PEP 621 and of Poetry."""
    data = _toml(text, path, into)
    project = table(data, "project")
    for item in texts(project.get("dependencies")):
        into.add(item, path)
    if isinstance(project.get("requires-python"), str):
        into.require_python(project["requires-python"], path)
    if "dependencies" in texts(project.get("dynamic")):
        into.report(path, "dependencies are computed at build time: taken from other files", Severity.INFO)
    for name, value in table(data, "tool", "poetry", "dependencies").items():
        version, marker = (value.get("version"), value.get("markers")) if isinstance(value, dict) else (value, None)
        if not isinstance(version, str):
            into.report(path, f"`{name}` has no version on an index: left out")
        elif name == "python":
            into.require_python(_poetry(version), path)
        else:
            into.add(f"{name}{_poetry(version)}" + (f"; {marker}" if marker else ""), path)


def table(data: Any, *names: str) -> dict[str, Any]:
    """The table below these names of what a parser returned; empty where there is none."""
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def texts(value: Any) -> list[str]:
    """The strings of a list; none of anything else."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _poetry(version: str) -> str:
    """Poetry's caret, tilde and bare versions as PEP 440 specifiers."""
    parts = []
    for alternative in re.split(r"\s*,\s*|\s+(?=[<>=!~^])", version.strip()):
        item = alternative.split("||")[0].strip()
        if not item or item == "*":
            continue
        if item.startswith("^"):
            parts.append(_caret(item[1:].strip()))
        elif item.startswith("~") and not item.startswith("~="):
            numbers = item[1:].strip().split(".")
            parts.append(f"~={item[1:].strip()}" if len(numbers) > 2 else f"=={'.'.join(numbers[:2])}.*")
        else:
            parts.append(item if item[0] in "<>=!~" else f"=={item}")
    return ",".join(parts)


def _caret(version: str) -> str:
    numbers = [int(part) for part in re.findall(r"\d+", version)[:3]]
    for index, number in enumerate(numbers):
        if number or index == len(numbers) - 1:
            upper = [*numbers[:index], number + 1]
            return f">={version},<{'.'.join(map(str, upper))}"
    return f">={version}"


def read_setup_cfg(text: str, path: str, into: Declarations) -> None:
    """`install_requires` and `python_requires` of a `setup.cfg`."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error as error:
        into.report(path, f"could not be read: {error}".splitlines()[0])
        return
    for line in parser.get("options", "install_requires", fallback="").splitlines():
        item = line.split("#")[0].strip()
        if item.startswith("file:"):
            into.report(path, f"`{item}`: read from that file where it is a requirements file", Severity.INFO)
        elif item:
            into.add(item, path)
    if python := parser.get("options", "python_requires", fallback="").strip():
        into.require_python(python, path)


def read_setup_py(text: str, path: str, into: Declarations) -> None:
    """`install_requires` and `python_requires` of a `setup.py`, where they are literals; it is parsed, never run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError) as error:
        into.report(path, f"does not parse ({error}): its requirements are unknown")
        return
    names = {
        target.id: node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for call in ast.walk(tree):
        if not (isinstance(call, ast.Call) and called_function(call) == "setup"):
            continue
        for keyword in call.keywords:
            value = names.get(keyword.value.id) if isinstance(keyword.value, ast.Name) else keyword.value
            if keyword.arg == "install_requires":
                items = _literal(value)
                if not isinstance(items, list | tuple):
                    into.report(path, "install_requires is computed: taken from other files or from the imports")
                    continue
                for item in items:
                    into.add(str(item), path)
            elif keyword.arg == "python_requires" and isinstance(python := _literal(value), str):
                into.require_python(python, path)


def _literal(node: ast.expr | None) -> Any:
    try:
        return None if node is None else ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def read_pipfile(text: str, path: str, into: Declarations) -> None:
    """Packages and Python of a `Pipfile`; its development packages are left out."""
    data = _toml(text, path, into)
    for name, value in table(data, "packages").items():
        version = value.get("version", "*") if isinstance(value, dict) and not _elsewhere(value) else value
        if isinstance(version, str):
            into.add(name if version == "*" else f"{name}{version}", path)
        else:
            into.report(path, f"`{name}` has no version on an index: left out")
    requires = table(data, "requires")
    python = requires.get("python_version") or requires.get("python_full_version")
    if isinstance(python, str):
        read_python_pin(python, path, into)


def _elsewhere(value: dict[str, Any]) -> bool:
    return bool({"git", "path", "file", "url"} & set(value))


def read_python_pin(text: str, path: str, into: Declarations) -> None:
    """The Python that `.python-version` or `runtime.txt` pins; the first CPython where several are named."""
    for line in text.splitlines():
        if match := re.fullmatch(r"(?:c?python-?)?(3\.\d+)(?:\.\d+)?", line.split("#")[0].strip()):
            into.require_python(f"=={match[1]}.*", path)
            return
