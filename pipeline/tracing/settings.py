"""Hyper-parameters with the value that is in force: command over configuration over default, each with its place."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Hyperparameter, Usage
from pipeline.tracing.arguments import Option, effective, literal, read_options
from pipeline.tracing.configs import config_values
from pipeline.tracing.program import Module
from pipeline.tracing.values import SEVERAL

__all__ = ["arguments_of", "settings_of", "stated_needs", "unfollowed", "unset_options"]

_CONSTANT: Final = re.compile(r"^[A-Z][A-Z0-9_]+$")
_ADDRESS: Final = re.compile(r"(?:https?|ftp|gs|s3)://\S+")
_READ: Final = re.compile(r"(?:^|_)(?:path|dir|file|root|folder|checkpoint|ckpt|weights|resume|pretrained)s?$")
"""Names of options that hold a path."""
_WRITTEN: Final = re.compile(r"(?:^|_)(?:out|output|save|saved|log|logs|logging|result|results|export|work|tmp|cache)")
"""Names of options for paths that a run writes to."""
_BRACKETS: Final = {"{": "}", "[": "]", "<": ">"}
_NOTHING: Final = frozenset({"null", "none", "~"})
_ENVIRONMENT: Final = re.compile(r"\$\{(?:oc\.)?env:([A-Za-z_]\w*)")


def settings_of(
    snapshot: Snapshot,
    modules: Sequence[Module],
    configs: Sequence[str],
    usage: Sequence[Usage],
    *,
    entries: Collection[str] = (),
) -> tuple[Hyperparameter, ...]:
    """All settings of a chain: of the commands, else of its configurations, else the defaults of its code.

    Args:
        snapshot: the repository.
        modules: entry points first, then modules that they reach.
        configs: paths of configuration files of the chain.
        usage: the chain's commands.
        entries: paths of the entry points; of other modules, what only runs when they are started themselves does not
            count. Empty: all are.
    """
    options = {
        module.path: read_options(
            _imported(module.unit.tree) if entries and module.path not in entries else module.unit.tree
        )
        for module in modules
        if module.unit.tree is not None
    }
    commanded = _commanded([option for found in options.values() for option in found], usage)
    choices = {name: values[0][0] for name, values in commanded.items()}
    found: dict[str, Hyperparameter] = {}
    for path in configs:
        for item in config_values(snapshot, path, choices):
            place = (_place(item.path, item.line),)
            found.setdefault(
                item.name, Hyperparameter(name=item.name, value=item.value, source="config", evidence=place)
            )
    for module in modules:
        for setting in _defaults(module, options.get(module.path, ())):
            found.setdefault(setting.name, setting)
    for name, values in commanded.items():
        if all(value.lower() in _NOTHING for value, _ in values):  # `logger=null` takes out the whole section
            found = {other: item for other, item in found.items() if not other.startswith(f"{name}.")}
        stated = found.get(name)
        found[name] = Hyperparameter(
            name=name,
            value=SEVERAL.join(dict.fromkeys(value for value, _ in values)),
            source="command",
            evidence=(*_stated_at(snapshot, values[0][1]), *(stated.evidence if stated else ())),
        )
    return tuple(found[name] for name in sorted(found))


def unset_options(modules: Sequence[Module], settings: Sequence[Hyperparameter]) -> set[str]:
    """Options of the entry points that nothing sets, so that their value is None."""
    trees = [module.unit.tree for module in modules if module.unit.tree is not None]
    unset = {option.name for tree in trees for option in read_options(tree) if option.unset}
    return unset - {setting.name for setting in settings}


def stated_needs(settings: Sequence[Hyperparameter], files: Collection[str]) -> list[str]:
    """What the settings themselves say that a run needs, each with its place.

    Environment variables that values are taken from (`${oc.env:WANDB_ENTITY}`); addresses that a command or a
    configuration gives; paths that a command gives to an option for paths to read, and that the repository does not
    have: whoever runs it has to put them there, unless the run downloads them (so they are no `file`).

    Args:
        settings: all of them.
        files: paths of the repository.
    """
    found = []
    for setting in settings:
        place = next((f" ({at.path}:{at.start})" for at in setting.evidence if isinstance(at, CodeEvidence)), "")
        found += [f"environment variable {name}{place}" for name in _ENVIRONMENT.findall(setting.value) if place]
        values = setting.value.split(SEVERAL) if setting.source != "default" and place else []
        found += [f"URL {value}{place}" for value in values if _ADDRESS.fullmatch(value)]
        if setting.source == "command" and _READ.search(setting.name) and not _WRITTEN.search(setting.name):
            paths = [value for value in values if "/" in value and not _ADDRESS.match(value) and "$" not in value]
            missing = [value for value in paths if not _has(files, posixpath.normpath(value))]
            found += [f"path {value}{place}" for value in missing]
    return list(dict.fromkeys(found))


def unfollowed(needs: Iterable[str]) -> tuple[str, ...]:
    """Needs without the paths of commands that a need says more about, as the code was followed to what reads them."""
    listed = tuple(dict.fromkeys(needs))
    read = [need for need in listed if not need.startswith("path ")]
    return tuple(
        need
        for need in listed
        if need in read or not any(need.split(" ")[1].rstrip("/") in other for other in read)
    )  # fmt: skip


def _has(files: Collection[str], path: str) -> bool:
    """Has the repository a file or directory whose path ends so? Commands start in directories of their own."""
    plain = path.lstrip("./")
    return any(f"/{file}".endswith(f"/{plain}") or f"/{plain}/" in f"/{file}" for file in files)


def _commanded(options: Sequence[Option], usage: Sequence[Usage]) -> dict[str, list[tuple[str, str]]]:
    """Option -> (value, where it is stated) of each command that sets it.

    The beginning of a placeholder of several words (`model_file={path to the checkpoint}`) is no value.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for step in usage:
        for name, value in effective(options, arguments_of(step)).items():
            closing = _BRACKETS.get(value[:1])
            if closing is None or closing in value:
                found.setdefault(name, []).append((value, step.reason))
    return found


def _defaults(module: Module, options: Sequence[Option]) -> Iterator[Hyperparameter]:
    """Options with a default, and constants, of one module."""
    if module.unit.tree is None:
        return
    for option in options:
        if option.default is None and not option.switch:
            continue
        first = module.unit.line(option.start)
        evidence = CodeEvidence(path=module.path, start=first, end=max(first, module.unit.line(option.end)))
        value = option.default if option.default is not None else str(option.negated)
        yield Hyperparameter(name=option.name, value=value, source="default", evidence=(evidence,))
    for name, value, line in _constants(module):
        place = _place(module.path, module.unit.line(line))
        yield Hyperparameter(name=name, value=value, source="default", evidence=(place,))


def _imported(tree: ast.Module) -> ast.Module:
    """What of a file runs when it is imported: without the block that starts it as a program."""
    body = [node for node in tree.body if not (isinstance(node, ast.If) and "__name__" in ast.unparse(node.test))]
    return ast.Module(body, [])


def arguments_of(step: Usage) -> tuple[str, ...]:
    """What comes after the script."""
    for number, word in enumerate(step.argv[1:], 1):
        if word.endswith((".py", ".ipynb", ".sh")) or (
            step.argv[number - 1] == "-m" and "." in word and "distributed" not in word
        ):
            return step.argv[number + 1 :]
    return step.argv[3:] if step.argv[1:2] == ("-m",) else ()


def _stated_at(snapshot: Snapshot, reason: str) -> tuple[CodeEvidence, ...]:
    match = re.match(r"([^:;]+):(\d+)", reason)
    if match and any(file.path == match.group(1) for file in snapshot.files):
        return (_place(match.group(1), int(match.group(2))),)
    return ()


def _place(path: str, line: int) -> CodeEvidence:
    return CodeEvidence(path=path, start=max(line, 1), end=max(line, 1))


def _constants(module: Module) -> Iterator[tuple[str, str, int]]:
    """Module-level constants in capitals (`SEED = 42`) and defaults of configuration dataclasses."""
    assert module.unit.tree is not None
    for node in module.unit.tree.body:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            value = literal(node.value)
            if value is not None and _CONSTANT.match(node.targets[0].id) and len(value) <= 80 and value.isprintable():
                yield node.targets[0].id, value, node.lineno
        elif isinstance(node, ast.ClassDef) and any("dataclass" in ast.unparse(item) for item in node.decorator_list):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    value = literal(field.value)
                    if value is not None:
                        yield f"{node.name}.{field.target.id}", value, field.lineno
