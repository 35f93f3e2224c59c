"""How the files of a repository hang together: imports, commands that run files, configurations that are loaded."""

from __future__ import annotations

import posixpath
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipeline.locator.documents import DocumentSection
from pipeline.locator.facts import FileFacts
from pipeline.locator.launch import Launch, normalise, without_launchers
from pipeline.locator.shell import Invocation
from pipeline.tracing.modules import ModuleMap

__all__ = ["KnownCommand", "Links", "PathResolver", "find_links"]

Origin = Literal["document", "shell", "make", "docstring", "notebook", "paper"]
_NAMED_FILE = re.compile(r"[\w./\-\[\]{},|]*\w[\]}]?\.(?:py|sh|ipynb|ya?ml|json|toml)\b")
_CONFIG_ENDINGS = (".yaml", ".yml", ".json", ".toml", ".gin", ".cfg", ".ini")
_ALTERNATIVES = re.compile(r"[\[{]([^\[\]{}]*[,|][^\[\]{}]*)[\]}]")


@dataclass(frozen=True, slots=True)
class KnownCommand:
    """A command found in the repository that runs one of its files."""

    launch: Launch
    target: str
    """Path of the file that it runs."""
    directory: str
    """Where it has to be run, relative to the root."""
    path: str
    """The file that states it."""
    line: int
    origin: Origin
    context: str
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class Links:
    """Edges between paths; each maps a path to the paths it leads to."""

    imports: dict[str, set[str]]
    runs: dict[str, set[str]]
    """Shell script, Makefile or notebook -> scripts that it runs."""
    configs: dict[str, set[str]]
    """Script -> configurations that it names or loads by default."""
    sections: list[tuple[DocumentSection, frozenset[str], frozenset[str]]]
    """(section, files it names, files its commands run)."""
    commands: list[KnownCommand]
    commanded: dict[str, set[str]] = field(default_factory=dict)
    """Script -> configurations that a stated command of it names."""
    options: dict[str, set[str]] = field(default_factory=dict)
    """Script -> configurations that can be chosen on its command line (the directory that Hydra is given)."""


class PathResolver:
    """Finds the file that a path, as written somewhere, means."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = set(paths)
        self._ordered = sorted(self._paths)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        for path in self._ordered:
            self._by_name[posixpath.basename(path)].append(path)

    def __contains__(self, path: str) -> bool:
        return path in self._paths

    def find(self, reference: str, directory: str = "") -> list[str]:
        """Paths that `reference`, written in `directory`, may mean: exact places, else suffixes, else rare names."""
        found: list[str] = []
        for spelled in _alternatives(reference.strip("\"'`()<>,;:")):
            found += self._find(spelled, directory)
        return found

    def _find(self, reference: str, directory: str) -> list[str]:
        for base in (directory, ""):
            path = posixpath.normpath(posixpath.join(base, reference))
            if path in self._paths:
                return [path]
        while reference.startswith(("./", "../")):
            reference = reference[reference.index("/") + 1 :]
        named = self._by_name.get(posixpath.basename(reference), [])
        if "/" in reference:
            suffixed = [path for path in named if path.endswith(f"/{reference}") or path == reference]
            if suffixed:
                return suffixed[:8]
            return [path for path in named if reference.endswith(f"/{path}")][:8]
        here = [path for path in named if posixpath.dirname(path) == directory]
        return here or (named if len(named) <= 3 else [])


def _alternatives(reference: str) -> list[str]:
    """`[a,b].sh` and `{a,b}.sh` name two files."""
    match = _ALTERNATIVES.search(reference)
    if not match:
        return [reference]
    parts = re.split(r"[,|]", match.group(1))
    return [reference[: match.start()] + part.strip() + reference[match.end() :] for part in parts[:12]]


def find_links(
    facts: Sequence[FileFacts], sections: Sequence[DocumentSection], programs: Mapping[str, str] | None = None
) -> Links:
    """All edges between the files that `facts` describe.

    Args:
        facts: of the files.
        sections: of the documents.
        programs: name of a program that the repository installs -> the module that it is.
    """
    resolver = PathResolver(item.path for item in facts)
    modules = ModuleMap(item.path for item in facts)
    reader = _Reader(resolver, modules, _run_as(programs or {}, modules, {item.path: item for item in facts}))
    links = Links({}, {}, {}, [], [])
    settings = frozenset(item.path for item in facts if item.settings)
    configurations = sorted(item.path for item in facts if item.file.kind == "config")
    makers = frozenset(item.path for item in facts if item.settings and "get_config" in item.definitions)
    recipes = {item.path: item.targets for item in facts if item.targets}
    for item in facts:
        here = posixpath.dirname(item.path)
        links.imports[item.path] = _imports(item, modules)
        links.configs[item.path] = _configs(item, resolver, here, settings)
        _add_choices(links, item, configurations, makers)
        origin: Origin = {"shell": "shell", "make": "make", "notebook": "notebook"}.get(item.file.kind, "docstring")  # type: ignore[assignment]
        known = [reader.known(step, item.path, origin, _shell_context(item, step)) for step in item.commands]
        commands = [command for command in known if command is not None]
        links.commands += commands
        runs = {command.target for command in commands}
        if item.file.kind == "shell":  # also what a loop or a function runs in a form that was not understood
            runs.update(
                path for ref in item.references if ref.endswith((".py", ".sh")) for path in resolver.find(ref, here)
            )
            runs -= settings
        links.runs[item.path] = (runs if item.file.kind != "python" else set()) - {item.path}
    for section in sections:
        links.sections.append(_section(section, reader, links.commands, recipes))
    for command in links.commands:
        for word in command.launch.arguments:
            value = word.split("=")[-1]
            if value.endswith((*_CONFIG_ENDINGS, ".py")):
                paths = resolver.find(posixpath.join(command.directory, value), posixpath.dirname(command.path))
                loaded = {path for path in paths if path in settings or not path.endswith(".py")}
                if loaded:
                    links.commanded.setdefault(command.target, set()).update(loaded)
    return links


def _add_choices(links: Links, item: FileFacts, configurations: Sequence[str], makers: frozenset[str]) -> None:
    """Configurations that a command line chooses among."""
    here = posixpath.dirname(item.path)
    if item.takes_config and makers:
        links.options.setdefault(item.path, set()).update(makers - {item.path})
    for group in item.groups:
        base = posixpath.normpath(posixpath.join(here, group))
        below = {path for path in configurations if path.startswith(f"{base}/")}
        if below:
            links.options.setdefault(item.path, set()).update(below)


def _imports(item: FileFacts, modules: ModuleMap) -> set[str]:
    found: set[str] = set()
    for statement in item.imports:
        names: tuple[str | None, ...] = statement.names or (None,)
        for name in names:
            path = modules.resolve(item.path, statement.module, statement.level, name)
            if path:
                found.add(path)
    found.discard(item.path)
    return found


def _configs(item: FileFacts, resolver: PathResolver, here: str, settings: frozenset[str]) -> set[str]:
    if item.file.kind == "document":
        return set()
    found: set[str] = set()
    python: set[str] = set()
    for reference in item.references:
        if reference.endswith(".py") and "/" in reference:
            python.update(path for path in resolver.find(reference, here) if path in settings)
    for name in item.defaults:
        found.update(path for ending in (".yaml", ".yml") for path in _beside(f"{name}{ending}", here, resolver))
    for reference in item.references:
        if (reference.endswith(_CONFIG_ENDINGS) and "/" in reference) or reference.endswith(
            (".yaml", ".yml", ".toml", ".gin")
        ):
            found.update(resolver.find(reference, here))
    for name in item.hydra:
        found.update(resolver.find(name, here))
    for step in item.commands:
        for word in step.argv:
            if word.endswith(_CONFIG_ENDINGS):
                found.update(resolver.find(word.split("=")[-1], here))
    found.discard(item.path)
    return {path for path in found if path.endswith(_CONFIG_ENDINGS)} | (python - {item.path})


def _beside(name: str, here: str, resolver: PathResolver) -> list[str]:
    """A composed configuration lies below the composing one, or below a directory above it."""
    base = here
    for _ in range(4):
        path = posixpath.normpath(posixpath.join(base, name))
        if path in resolver:
            return [path]
        if not base:
            break
        base = posixpath.dirname(base)
    return []


def _shell_context(item: FileFacts, step: Invocation) -> str:
    return f"{item.path} {item.summary} {step.comment}"


def _section(
    section: DocumentSection,
    reader: _Reader,
    commands: list[KnownCommand],
    recipes: dict[str, dict[str, tuple[Invocation, ...]]],
) -> tuple[DocumentSection, frozenset[str], frozenset[str]]:
    here = posixpath.dirname(section.path)
    named: set[str] = set()
    for reference in _NAMED_FILE.findall(section.text):
        named.update(reader.resolver.find(reference, here))
    run: set[str] = set()
    for command in section.commands:
        steps = [command.invocation]
        if command.invocation.argv[0] == "make" and len(command.invocation.argv) > 1:
            makefile = posixpath.normpath(posixpath.join(here, command.invocation.directory, "Makefile"))
            recipe = recipes.get(makefile, recipes.get("Makefile", {})).get(command.invocation.argv[1], ())
            steps = [
                Invocation(step.argv, command.line, step.directory, step.environment, step.comment) for step in recipe
            ]
        for step in steps:
            known = reader.known(step, section.path, "document", command.context)
            if known is not None:
                commands.append(known)
                if command.marked:
                    run.add(known.target)
    return section, frozenset(named | run), frozenset(run)


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads commands as people write them."""

    resolver: PathResolver
    modules: ModuleMap
    programs: Mapping[str, tuple[str, str]]
    """Name of an installed program -> (module that it is run as, its file)."""

    def known(self, step: Invocation, path: str, origin: Origin, context: str) -> KnownCommand | None:
        """The command that a step is, where it runs a file of the repository."""
        words = without_launchers(step.argv)
        if words and words[0] in self.programs:
            module, target = self.programs[words[0]]
            launch = Launch(("python", "-m", module, *words[1:]), module, True, tuple(words[1:]))
            return KnownCommand(
                launch, target, step.directory or ".", path, step.line, origin, context, step.environment
            )
        found = normalise(step.argv)
        placed = found and _place(found, posixpath.dirname(path), step.directory, self.resolver, self.modules)
        if found is None or not placed:
            return None
        return KnownCommand(found, *placed, path, step.line, origin, context, step.environment)


def _run_as(
    programs: Mapping[str, str], modules: ModuleMap, facts: Mapping[str, FileFacts]
) -> dict[str, tuple[str, str]]:
    """Programs that do something when their module is run: it has a main guard, or its package a `__main__`."""
    found = {}
    for name, module in programs.items():
        for tried in (module, f"{module.rpartition('.')[0]}.__main__"):
            path = modules.module(tried, "")
            if path is not None and (facts[path].main or path.endswith("/__main__.py")):
                found[name] = (tried.removesuffix(".__main__"), path)
                break
    return found


def _place(
    launch: Launch, here: str, changed: str, resolver: PathResolver, modules: ModuleMap
) -> tuple[str, str] | None:
    """(file that is run, directory to run it in); None when the repository has no such file."""
    spelled = launch.target.replace(".", "/") if launch.module else launch.target
    names = [f"{spelled}.py", f"{spelled}/__main__.py"] if launch.module else [spelled]
    moves = (changed, *_tails(changed))
    bases = [posixpath.normpath(posixpath.join(base, moved)) for base in ("", here) for moved in moves]
    for directory in bases:
        for name in names:
            path = posixpath.normpath(posixpath.join(directory, name))
            if path in resolver:
                return path, directory
    if launch.module:
        found = modules.module(launch.target, posixpath.join(here, "_"))
        for name in names if found else ():
            if found and found.endswith(f"/{name}"):
                return found, found[: -len(name) - 1]
        return None
    candidates = resolver.find(spelled, here)
    if not candidates:
        return None
    path = candidates[0]
    clean = posixpath.normpath(spelled)
    while clean.startswith("../"):
        clean = clean[3:]
    directory = path[: -len(clean)].rstrip("/") if path.endswith(clean) else posixpath.dirname(path)
    return path, directory or "."


def _tails(changed: str) -> list[str]:
    """`cd my-clone/sub`: the first part may be the name of the clone itself."""
    parts = [part for part in changed.split("/") if part not in {".", ".."}]
    return ["/".join(parts[start:]) or "." for start in range(1, len(parts) + 1)]
