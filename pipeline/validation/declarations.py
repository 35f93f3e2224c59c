"""The dependencies a repository declares: requirements files, pyproject.toml, setup.cfg, setup.py, environment.yml.

What its Dockerfile and README tell people to install counts too (`pipeline.validation.instructions`).

Everything is read as data; `setup.py` is parsed, never executed. What cannot be taken over (editable and local paths,
URLs, other indexes) is reported, line by line.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet

import yaml
from packaging.utils import canonicalize_name

from pipeline.repository import Snapshot
from pipeline.schema import Severity
from pipeline.validation.conda import conda_requirement
from pipeline.validation.declared import Declarations
from pipeline.validation.declared_projects import (
    read_pipfile,
    read_pyproject,
    read_python_pin,
    read_setup_cfg,
    read_setup_py,
    table,
    texts,
)
from pipeline.validation.imports_map import conda_distribution
from pipeline.validation.installs import installs_of
from pipeline.validation.instructions import Instructions, read_dockerfile, read_readme

__all__ = ["Declarations", "read_declarations"]

_MAX_SOURCE = 40_000_000
_SIDE = re.compile(r"dev|doc|test|lint|ci\b|build|style|format|colab|gpu|cuda", re.IGNORECASE)
_REQUIREMENTS = re.compile(
    r"^(?:requirements?[\w.-]*|pip[-_]requirements?|.*[-_]requirements?)\.(?:txt|in)$", re.IGNORECASE
)
_ENVIRONMENTS = re.compile(r"^(?:environment[\w.-]*|conda[\w.-]*|env)\.ya?ml$", re.IGNORECASE)


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
            read_pyproject(snapshot.text(path), path, into)
        elif name == "setup.cfg":
            read_setup_cfg(snapshot.text(path), path, into)
        elif name == "setup.py":
            read_setup_py(snapshot.text(path), path, into)
        elif name == "Pipfile":
            read_pipfile(snapshot.text(path), path, into)
        elif name in {".python-version", "runtime.txt"}:
            read_python_pin(snapshot.text(path), path, into)
            continue  # it declares no packages
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


# --- conda -----------------------------------------------------------------------------------------------------------


def _read_conda(text: str, path: str, into: Declarations) -> None:
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        into.report(path, f"is not YAML: {' '.join(str(error).split())[:200]}")
        return
    into.report(path, "conda packages are taken from the package index: there is no conda here", Severity.INFO)
    for item in table({"x": data}, "x").get("dependencies") or ():
        if isinstance(item, str):
            _add_conda(item, path, into)
        elif isinstance(item, dict):
            for line in texts(item.get("pip")):
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
