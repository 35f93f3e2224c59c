"""The dependencies a repository declares: requirements files, pyproject.toml, setup.cfg, setup.py, environment.yml.

What its Dockerfile and README tell people to install counts too (`pipeline.validation.instructions`).

Everything is read as data; `setup.py` is parsed, never executed. What cannot be taken over (editable and local paths,
URLs, other indexes) is reported, line by line.
"""

from __future__ import annotations

import ast
import configparser
import posixpath
import re
import tomllib
import warnings
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from pipeline.repository import Snapshot
from pipeline.schema import Problem, Severity
from pipeline.tracing.parsed import called_function
from pipeline.validation.conda import conda_requirement
from pipeline.validation.imports_map import conda_distribution, replacement
from pipeline.validation.installs import installs_of
from pipeline.validation.instructions import Instructions, read_dockerfile, read_readme

__all__ = ["Declarations", "read_declarations"]

_COMPONENT = "validation.environment"
_MAX_SOURCE = 40_000_000
_SIDE = re.compile(r"dev|doc|test|lint|ci\b|build|style|format|colab|gpu|cuda", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"^(?:requirements?[\w.-]*|pip[-_]requirements?|.*[-_]requirements?)\.(?:txt|in)$", re.IGNORECASE
)
_ENVIRONMENTS = re.compile(r"^(?:environment[\w.-]*|conda[\w.-]*|env)\.ya?ml$", re.IGNORECASE)


@dataclass
class Declarations:
    """What a repository declares, in the order in which it was read."""

    requirements: list[Requirement] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    python: list[tuple[str, SpecifierSet]] = field(default_factory=list)
    """(file, Python requirement)."""
    system: list[str] = field(default_factory=list)
    """Debian packages that a Dockerfile or the README installs."""
    problems: list[Problem] = field(default_factory=list)

    def report(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        """Note something that was not taken over."""
        self.problems.append(Problem(component=_COMPONENT, where=where, message=message, severity=severity))

    def add(self, text: str, where: str) -> None:
        """Take over one requirement in PEP 508 notation."""
        try:
            found = Requirement(text)
        except InvalidRequirement:
            self.report(where, f"`{text}` is not a requirement: left out")
            return
        if found.url:
            self.report(where, f"`{found.name}` comes from {_kind(found.url)}: its release of the same name is used")
            found.url = None
        if instead := replacement(found.name):
            self.report(where, f"`{found.name}` is replaced by `{instead[0]}`: {instead[1]}", Severity.INFO)
            found = Requirement(f"{instead[0]}{found.specifier}" + (f"; {found.marker}" if found.marker else ""))
        self.requirements.append(found)

    def require_python(self, text: str, where: str) -> None:
        """Note the Python versions that the repository supports."""
        try:
            self.python.append((where, SpecifierSet(text)))
        except InvalidSpecifier:
            self.report(where, f"`{text}` is not a Python version requirement: not considered")


def _kind(url: str) -> str:
    return "a path of somebody's machine" if url.startswith("file:") else f"`{url}`"


def read_declarations(snapshot: Snapshot, sources: Sequence[str] = ()) -> Declarations:
    """Read what the repository declares for the chain of `sources`.

    Args:
        snapshot: the repository.
        sources: files of the chain; declarations are looked for in their directories up to the root, and the nearest
            directory that has any wins (a monorepo has one per project).
    """
    paths = {file.path for file in snapshot.files if not file.binary}
    result = Declarations()
    for directory in _directories(sources):
        here = sorted(path for path in paths if posixpath.dirname(path) == directory)
        _read_directory(snapshot, here, paths, directory, result)
        if result.files:
            break
    _read_instructions(snapshot, paths, sources, result)
    _read_installs(snapshot, [path for path in sources if path in paths], result)
    return result


def _read_instructions(snapshot: Snapshot, paths: set[str], sources: Sequence[str], into: Declarations) -> None:
    """What a Dockerfile and the README install; their Python packages only where no file declares any."""
    declared = bool(into.files)
    own = {canonicalize_name(name) for name in _own_names(snapshot, paths)}
    for directory in _directories(sources):
        here = sorted(path for path in paths if posixpath.dirname(path) == directory)
        for path in here:
            name = posixpath.basename(path).lower()
            if name == "dockerfile" or name.endswith(".dockerfile"):
                _take_over(read_dockerfile(snapshot.text(path)), path, own, into, packages=not declared)
            elif name in {"readme.md", "readme.rst", "readme.txt", "readme", "install.md"}:
                _take_over(read_readme(snapshot.text(path)), path, own, into, packages=not declared)
        declared = declared or bool(into.files)


def _take_over(found: Instructions, path: str, own: AbstractSet[str], into: Declarations, *, packages: bool) -> None:
    for specifier, line in found.python:
        into.require_python(specifier, f"{path}:{line}")
    for name, line in found.system:
        if name not in into.system:
            into.report(f"{path}:{line}", f"system package `{name}` is installed", Severity.INFO)
            into.system.append(name)
    for text, line in found.left_out:
        into.report(f"{path}:{line}", f"`{text}` depends on a variable: left out", Severity.INFO)
    if not packages:
        return
    before = len(into.requirements)
    for text, line in found.requirements:
        if canonicalize_name(re.split(r"[\[=<>!~@ ;]", text, maxsplit=1)[0]) not in own and text not in {".", "./"}:
            _read_requirement_line(text, f"{path}:{line}", into)
    for text, line in found.conda:
        _add_conda(text, f"{path}:{line}", into)
    if len(into.requirements) > before:
        into.files.append(path)


def _own_names(snapshot: Snapshot, paths: set[str]) -> list[str]:
    """The names of the repository's own distribution: what its README tells users to install is itself."""
    names = [snapshot.ref.url.rstrip("/").removesuffix(".git").rsplit("/", 1)[-1]]
    pattern = re.compile(r"""^\s*(?:setup\(\s*)?name\s*=\s*["']?([A-Za-z0-9][\w.-]*)["']?""", re.MULTILINE)
    files = [path for path in ("pyproject.toml", "setup.cfg", "setup.py") if path in paths]
    return [*names, *(match[1] for path in files if (match := pattern.search(snapshot.text(path))))]


def _read_installs(snapshot: Snapshot, sources: Sequence[str], into: Declarations) -> None:
    """What the sources install while they run; where the repository pins the same package otherwise, both are kept."""
    for path in sorted(set(sources)):
        if not path.endswith((".py", ".ipynb")):
            continue
        declared = {str(item) for item in into.requirements}
        for text in installs_of(path, snapshot.text(path, _MAX_SOURCE)):
            if text in declared:
                continue
            into.report(path, f"installs `{text}` while it runs: it is part of the environment", Severity.INFO)
            into.add(text, path)
            if path not in into.files:
                into.files.append(path)


def _directories(sources: Sequence[str]) -> list[str]:
    found = {""}
    for source in sources:
        directory = posixpath.dirname(source)
        while directory:
            found.add(directory)
            directory = posixpath.dirname(directory)
    return sorted(found, key=lambda directory: (-directory.count("/") - bool(directory), directory))


def _read_directory(
    snapshot: Snapshot, here: Sequence[str], paths: set[str], directory: str, into: Declarations
) -> None:
    requirements = [path for path in here if _REQUIREMENTS.match(posixpath.basename(path))]
    folder = posixpath.join(directory, "requirements")
    requirements += sorted(
        path for path in paths if posixpath.dirname(path) == folder and path.endswith((".txt", ".in"))
    )
    main = [path for path in requirements if not _SIDE.search(posixpath.basename(path))] or requirements[:1]
    # `requirements.in` is the source of `requirements.txt`
    main = [path for path in main if not (path.endswith(".in") and path[:-3] + ".txt" in main)]
    for path in main:
        if path not in into.files:
            _read_requirements(snapshot, path, paths, into, ())
    for path in here:
        name = posixpath.basename(path)
        before = len(into.requirements), len(into.python)
        if name == "pyproject.toml":
            _read_pyproject(snapshot.text(path), path, into)
        elif name == "setup.cfg":
            _read_setup_cfg(snapshot.text(path), path, into)
        elif name == "setup.py":
            _read_setup_py(snapshot.text(path), path, into)
        elif _ENVIRONMENTS.match(name):
            _read_conda(snapshot.text(path), path, into)
        if (len(into.requirements), len(into.python)) != before and path not in into.files:
            into.files.append(path)


# --- requirements files ----------------------------------------------------------------------------------------------


def _read_requirements(
    snapshot: Snapshot, path: str, paths: set[str], into: Declarations, parents: tuple[str, ...]
) -> None:
    into.files.append(path)
    for number, line in _logical_lines(snapshot.text(path)):
        where = f"{path}:{number}"
        if match := re.match(r"(?:-r|--requirement|-c|--constraint)[\s=]+(\S+)", line):
            target = posixpath.normpath(posixpath.join(posixpath.dirname(path), match[1]))
            if target not in paths:
                into.report(where, f"`{match[1]}` is not in the repository: its requirements are unknown")
            elif target not in (*parents, path) and target not in into.files:
                _read_requirements(snapshot, target, paths, into, (*parents, path))
        elif line.startswith(("-e", "--editable")):
            into.report(
                where, f"`{line}`: the package itself is not installed, its sources are on PYTHONPATH", Severity.INFO
            )
        elif line.startswith("-"):
            into.report(where, f"option `{line.split()[0]}` is not taken over", Severity.INFO)
        else:
            _read_requirement_line(line, where, into)


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    pending, start = "", 0
    for number, raw in enumerate(text.lstrip("\ufeff").splitlines(), start=1):
        line = re.sub(r"(?:^|\s+)#.*$", "", raw).strip()
        start = start if pending else number
        if line.endswith("\\"):
            pending += line[:-1] + " "
            continue
        if full := (pending + line).strip():
            yield start, full
        pending = ""
    if pending.strip():
        yield start, pending.strip()


def _read_requirement_line(line: str, where: str, into: Declarations) -> None:
    line = re.sub(r"\s--(?:hash|global-option|config-settings|install-option)[=\s]\S+", "", line).strip()
    if re.match(r"(?:git|hg|svn|bzr)\+|https?://|file:", line):
        egg = re.search(r"[#&]egg=([\w.-]+)", line)
        into.report(where, f"`{egg[1] if egg else line}` is installed from a URL, not from an index: left out")
    elif re.match(r"\.{0,2}/|\.$|[A-Za-z]:\\", line) or line.endswith((".whl", ".tar.gz", ".zip")):
        into.report(
            where, f"`{line}` is a local path: left out; the repository's sources are on PYTHONPATH", Severity.INFO
        )
    elif conda := re.match(r"^([\w.-]+)=([\w.*]+)(?:=[\w.]+)?$", line):
        _add_conda(f"{conda[1]}={conda[2]}", where, into)
    else:
        into.add(line, where)


# --- pyproject, setup.cfg, setup.py ----------------------------------------------------------------------------------


def _read_pyproject(text: str, path: str, into: Declarations) -> None:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        into.report(path, f"is not TOML: {error}")
        return
    project = _table(data, "project")
    for item in _texts(project.get("dependencies")):
        into.add(item, path)
    if isinstance(project.get("requires-python"), str):
        into.require_python(project["requires-python"], path)
    if "dependencies" in _texts(project.get("dynamic")):
        into.report(path, "dependencies are computed at build time: taken from other files", Severity.INFO)
    for name, value in _table(data, "tool", "poetry", "dependencies").items():
        version, marker = (value.get("version"), value.get("markers")) if isinstance(value, dict) else (value, None)
        if not isinstance(version, str):
            into.report(path, f"`{name}` has no version on an index: left out")
        elif name == "python":
            into.require_python(_poetry(version), path)
        else:
            into.add(f"{name}{_poetry(version)}" + (f"; {marker}" if marker else ""), path)


def _table(data: Any, *names: str) -> dict[str, Any]:
    for name in names:
        data = data.get(name) if isinstance(data, dict) else None
    return data if isinstance(data, dict) else {}


def _texts(value: Any) -> list[str]:
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


def _read_setup_cfg(text: str, path: str, into: Declarations) -> None:
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


def _read_setup_py(text: str, path: str, into: Declarations) -> None:
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


# --- conda -----------------------------------------------------------------------------------------------------------


def _read_conda(text: str, path: str, into: Declarations) -> None:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        into.report(path, f"is not YAML: {' '.join(str(error).split())[:200]}")
        return
    into.report(path, "conda packages are taken from the package index: there is no conda here", Severity.INFO)
    for item in _table({"x": data}, "x").get("dependencies") or ():
        if isinstance(item, str):
            _add_conda(item, path, into)
        elif isinstance(item, dict):
            for line in _texts(item.get("pip")):
                if line.startswith("-"):
                    into.report(path, f"option `{line}` is not taken over", Severity.INFO)
                else:
                    _read_requirement_line(line, path, into)


def _add_conda(item: str, where: str, into: Declarations) -> None:
    found = conda_requirement(item)
    if found is None:
        into.report(where, f"`{item}` is not a conda requirement: left out")
        return
    name, version = found
    if name.lower() == "python":
        if version:
            into.require_python(version, where)
        return
    distribution = conda_distribution(name.lower())
    if distribution is None:
        into.report(where, f"conda package `{name}` is of the platform: left out", Severity.INFO)
        return
    into.add(f"{distribution}{version}", where)
