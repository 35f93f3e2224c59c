"""Values of the configuration that a program is started with, with their lines: what is composed, what is referred to.

A Hydra configuration names others in its `defaults` list; what they hold is in force under the name of their group or
package, and `group=option` on the command line puts another file in their place (documentation of Hydra 1.3, "The
Defaults List"). `${model.width}` stands for the value of that name (OmegaConf 2.3, "Variable interpolation"). A
configuration in Python is followed as code is (see `pipeline.tracing.building`); gin files include each other.

Non-goal: resolvers of OmegaConf (`${oc.env:HOME}`, `${now:%Y}`): they stay as they are written.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from pipeline.repository import Snapshot
from pipeline.tracing.building import build_function, build_module
from pipeline.tracing.built import Built, entries
from pipeline.tracing.config_files import MOST, parse_yaml, read_config
from pipeline.tracing.program import Module, Program

__all__ = ["ConfigValue", "config_values", "filled_in"]

_LONGEST: Final = 200
_PACKAGE: Final = re.compile(r"^\s*#\s*@package\s+([\w.]+)", re.MULTILINE)
_FILES: Final = (".yaml", ".yml")
_SECTION: Final = re.compile(r"^defaults:\s*(?:#.*)?\n(?:\s*(?:#.*)?\n)*\s+[\w\"']", re.MULTILINE)
_MISSING: Final = "???"
"""How Hydra writes that a value must come from elsewhere."""
_REFERENCE: Final = re.compile(r"\$\{(\.*)([\w/@\-]+(?:[.\[][\w\-]+\]?)*)\}")
_INCLUDE: Final = re.compile(r"^\s*include\s+['\"]([^'\"]+)['\"]", re.MULTILINE)
_ROUNDS: Final = 6
"""References to references; a circle ends there."""


@dataclass(frozen=True, slots=True)
class ConfigValue:
    """One scalar, or list of scalars, of a configuration."""

    name: str
    """Dotted: `model.width`."""
    value: str
    path: str
    line: int
    referred: tuple[tuple[str, int], ...] = ()
    """Where the values stand that it refers to."""


def config_values(
    snapshot: Snapshot, path: str, overrides: Mapping[str, str] | None = None, program: Program | None = None
) -> list[ConfigValue]:
    """The values that are in force when a program is started with the configuration `path`.

    Args:
        snapshot: the repository.
        path: the file; one that cannot be parsed has no values. A configuration in Python may be given an argument
            (`configs/train.py:b16`), as `ml_collections` does.
        overrides: what the command sets (`group=option` chooses among Hydra's files).
        program: the repository's code, where it was read before.
    """
    path, _, argument = path.partition(":")
    composer = _Composer(snapshot, overrides or {}, program)
    composer.add_chosen(path)
    composer.add(path, "", argument)
    return filled_in(list(composer.found.values())[:MOST], overrides or {})


def filled_in(values: list[ConfigValue], overrides: Mapping[str, str]) -> list[ConfigValue]:
    """The values with `${...}` replaced by what it refers to, where that is one value; else as they are written.

    Args:
        values: of one configuration.
        overrides: what the command sets instead.
    """
    known = {item.name: item for item in values}

    def fill(item: ConfigValue) -> ConfigValue:
        text, referred = item.value, item.referred
        for _ in range(_ROUNDS):
            match = next((m for m in _REFERENCE.finditer(text) if _target(item.name, m) in {*known, *overrides}), None)
            if match is None:
                break
            target = _target(item.name, match)
            stated = known.get(target)
            value = overrides.get(target, stated.value if stated is not None else "")
            text = text[: match.start()] + value + text[match.end() :]
            referred += ((stated.path, stated.line),) if stated is not None else ()
        return item if text == item.value or len(text) > _LONGEST else replace(item, value=text, referred=referred)

    return [fill(item) for item in values]


def _target(name: str, match: re.Match[str]) -> str:
    """The name that a reference means: from the top, or, with leading dots, from the section that holds it."""
    dots, referred = len(match.group(1)), match.group(2).replace("[", ".").replace("]", "")
    if not dots:
        return referred
    return ".".join([*name.split(".")[:-dots], referred])


class _Composer:
    """Collects values; what is read first is in force."""

    def __init__(self, snapshot: Snapshot, overrides: Mapping[str, str], program: Program | None) -> None:
        self._snapshot = snapshot
        self._known = {file.path for file in snapshot.files if not file.binary}
        self._overrides = dict(overrides)
        self._program = program if program is not None else Program(snapshot)
        self._seen: set[tuple[str, str]] = set()
        self.found: dict[str, ConfigValue] = {}

    def add_chosen(self, path: str) -> None:
        """What the command adds to the list of defaults (`+experiment=base`): over all that the list names."""
        if not path.endswith(_FILES) or path not in self._known:
            return
        named = {group for _, group, _ in self._defaults(path, self._snapshot.text(path))}
        for group, option in sorted(self._overrides.items()):
            stem = posixpath.join(posixpath.dirname(path), group.replace(".", "/"), option)
            target = self._file(stem)
            if group not in named and target in self._known and posixpath.dirname(target) != posixpath.dirname(path):
                self.add(target, group.replace("/", "."))

    def add(self, path: str, prefix: str, argument: str = "") -> None:
        """The values of a file under `prefix`, and those that it takes over from others.

        What stands later in a `defaults` list is in force over what stands before, the file's own values where `_self_`
        stands, else over all (Hydra 1.3, "Composition Order").
        """
        if path not in self._known or (path, prefix) in self._seen or len(self._seen) > MOST:
            return
        self._seen.add((path, prefix))
        if path.endswith(".py"):
            self._add_code(path, prefix, argument)
            return
        text = self._snapshot.text(path)
        if path.endswith(_FILES) and self._add_sections(path, text, prefix):
            return
        package = _PACKAGE.search(text)
        if package and package.group(1) not in {"_group_", "_here_"}:
            prefix = "" if package.group(1) == "_global_" else package.group(1)
        elif prefix and re.search(rf"^{re.escape(prefix.rpartition('.')[2])}:", text, re.MULTILINE):
            prefix = ""  # written from the top, as before Hydra 1.0
        listed = list(self._defaults(path, text)) if path.endswith(_FILES) else []
        own = next((number for number, (target, _, _) in enumerate(listed) if target == path), len(listed))
        self._add_listed(listed[own + 1 :], prefix)
        last = {name: (value, line) for name, value, line in read_config(path, text)} if path.endswith(".gin") else {}
        for name, value, line in [(name, *rest) for name, rest in last.items()] or read_config(path, text):
            self._note(f"{prefix}.{name}" if prefix else name, value, path, line)
        self._add_listed(listed[:own], prefix)
        for named in reversed(_INCLUDE.findall(text)) if path.endswith(".gin") else ():
            self.add(self._included(path, named), prefix)

    def _add_sections(self, path: str, text: str, prefix: str) -> bool:
        """A file with a section of defaults, and others that a command chooses over it (`--configs atari`)."""
        document = parse_yaml(text) if _SECTION.search(text) else None
        if not isinstance(document, dict) or not isinstance(document.get("defaults"), dict):
            return False
        words = [word for value in self._overrides.values() for word in value.split()]
        sections = [word for word in dict.fromkeys(reversed(words)) if isinstance(document.get(word), dict)]
        listed = read_config(path, text)
        for section in dict.fromkeys([*sections, "defaults"]):
            for name, value, line in listed:
                if name.startswith(f"{section}."):
                    inner = name[len(section) + 1 :]
                    self._note(f"{prefix}.{inner}" if prefix else inner, value, path, line)
        return True

    def _add_listed(self, listed: list[tuple[str, str, str]], prefix: str) -> None:
        for target, _, package in reversed(listed):
            absolute = package.startswith("/")
            parts = ("" if absolute else prefix, package.strip("/"))
            self.add(target, ".".join(part for part in parts if part))

    def _note(self, name: str, value: str, path: str, line: int) -> None:
        if value != _MISSING and not name.startswith("hydra."):  # how Hydra itself runs is no setting of the experiment
            self.found.setdefault(name, ConfigValue(name, value[:_LONGEST], path, line))

    def _add_code(self, path: str, prefix: str, argument: str) -> None:
        """A configuration in Python: what its function returns, else what its module-level code sets."""
        module = self._program.module(path)
        if module is None:
            return
        for name, entry in _python(self._program, module, argument):
            if not name.startswith("_"):
                self._note(f"{prefix}.{name}" if prefix else name, entry[0], entry[1], entry[2])
        bases = dict(_python(self._program, module, "")).get("_base_")
        for base in bases[0].split() if bases is not None else ():
            self.add(posixpath.normpath(posixpath.join(posixpath.dirname(path), base)), prefix)

    def _included(self, path: str, named: str) -> str:
        """The file that a gin file includes: from where the program starts, or from beside the file."""
        beside = posixpath.normpath(posixpath.join(posixpath.dirname(path), named))
        return next((item for item in (posixpath.normpath(named), beside) if item in self._known), named)

    def _defaults(self, path: str, text: str) -> Iterator[tuple[str, str, str]]:
        """(file, group, package) of a `defaults` list; the file itself where `_self_` stands.

        A package that begins with `/` counts from the top.
        """
        document = parse_yaml(text)
        listed = document.get("defaults") if isinstance(document, dict) else None
        for item in listed if isinstance(listed, list) else ():
            pairs = item.items() if isinstance(item, dict) else [("", item)] if isinstance(item, str) else []
            for key, option in pairs:
                named, _, package = re.sub(r"^(?:override|optional)\s+", "", str(key)).partition("@")
                group = named.strip("/")
                if str(key).startswith("override "):
                    self._overrides.setdefault(group, str(option))
                    continue
                chosen = self._overrides.get(group, option) if group else option
                for name in chosen if isinstance(chosen, list) else [chosen]:
                    if name == "_self_":
                        yield path, "", ""
                    elif isinstance(name, str) and name != "null" and not group.startswith("hydra"):
                        plain, _, own = name.partition("@")
                        target = self._found(posixpath.dirname(path), posixpath.join(named, plain))
                        yield target, group, _placed(package or own, group)

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


def _placed(package: str, group: str) -> str:
    """Where in the configuration the values of a group go."""
    if package == "_here_":
        return ""
    if package == "_global_":
        return "/"
    return package.replace("_group_", group.replace("/", ".")) if package else group.replace("/", ".")


def _python(program: Program, module: Module, argument: str) -> Iterator[tuple[str, tuple[str, str, int]]]:
    functions = module.functions
    chosen = [functions["get_config"]] if "get_config" in functions else [functions[name] for name in sorted(functions)]
    built: list[tuple[str, Built]] = []
    for node in chosen:
        names = [item.arg for item in node.args.args]
        given = {names[0]: argument} if argument and names else {}
        found = build_function(program, module, node, given)
        if found is not None:
            built.append((node.name, found))
    own = build_module(program, module) if "get_config" not in functions else None
    parts = [("", own)] if own is not None else []
    parts += [("" if len(built) == 1 else name, found) for name, found in built]
    for prefix, part in parts:
        for name, entry in entries(part, prefix):
            yield name, (entry.text or "", entry.path, entry.line)
