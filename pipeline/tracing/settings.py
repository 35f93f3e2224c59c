"""Hyper-parameters with the value that is in force: command over configuration over default, each with its place."""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from pipeline.repository import Snapshot
from pipeline.task import CodeEvidence, Hyperparameter, Usage
from pipeline.tracing.arguments import Option, effective, may_declare, read_options
from pipeline.tracing.configs import config_values
from pipeline.tracing.defaults import (
    class_fields,
    constants,
    dictionary_options,
    fallbacks,
    option_defaults,
    preset,
    rows,
)
from pipeline.tracing.need import Need, NeedKind
from pipeline.tracing.program import Module, Program
from pipeline.tracing.signatures import parsed_classes
from pipeline.tracing.values import SEVERAL

__all__ = ["arguments_of", "settings_of", "stated_needs", "unfollowed", "unset_options"]

_ADDRESS: Final = re.compile(r"(?:https?|ftp|gs|s3)://\S+")
_READ: Final = re.compile(
    r"^data(?:set)?(?:_?(?:root|dir|path|file|folder))?s?$|(?:^|_)(?:path|dir|file|root|folder|checkpoint|ckpt|weights|resume|pretrained)s?$"
)
"""Names of options that hold a path."""
_WRITTEN: Final = re.compile(r"(?:^|_)(?:out|output|save|saved|log|logs|logging|result|results|export|work|tmp|cache)")
"""Names of options for paths that a run writes to."""
_BRACKETS: Final = {"{": "}", "[": "]", "<": ">"}
_NOTHING: Final = frozenset({"null", "none", "~"})
_ENVIRONMENT: Final = re.compile(r"\$\{(?:oc\.)?env:([A-Za-z_]\w*)")


def settings_of(
    snapshot: Snapshot,
    program: Program,
    modules: Sequence[Module],
    configs: Sequence[str],
    usage: Sequence[Usage],
    *,
    entries: Collection[str] = (),
) -> tuple[Hyperparameter, ...]:
    """All settings of a chain: of the commands, else of its configurations, else the defaults of its code.

    Args:
        snapshot: the repository.
        program: its code.
        modules: entry points first, then modules that they reach.
        configs: paths of configuration files of the chain.
        usage: the chain's commands.
        entries: paths of the entry points; of other modules, what only runs when they are started themselves does not
            count. Empty: all are.
    """
    trees = {
        module.path: _imported(module.unit.tree) if entries and module.path not in entries else module.unit.tree
        for module in modules
        if module.unit.tree is not None
    }
    codes = {module.path: module.unit.code for module in modules}
    parsed = {
        name for path, tree in trees.items() if may_declare(codes[path]) for name in parsed_classes(ast.walk(tree))
    }
    options = {
        path: read_options(tree, parsed) if may_declare(codes[path], parsed) else () for path, tree in trees.items()
    }
    commanded = _commanded([option for found in options.values() for option in found], usage)
    choices = {name: values[0][0] for name, values in commanded.items()}
    found: dict[str, Hyperparameter] = {}
    for path in configs:
        for item in config_values(snapshot, path, choices, program):
            places = tuple(_place(*place) for place in ((item.path, item.line), *item.referred))
            found.setdefault(
                item.name, Hyperparameter(name=item.name, value=item.value, source="config", evidence=places)
            )
    for setting in _defaults(program, modules, options, entries):
        found.setdefault(setting.name, setting)
    for name, values in _renamed(commanded, found).items():
        if all(value.lower() in _NOTHING for value, _ in values):  # `logger=null` takes out the whole section
            found = {other: item for other, item in found.items() if not other.startswith(f"{name}.")}
        stated = found.get(name)
        found[name] = Hyperparameter(
            name=name,
            value=SEVERAL.join(dict.fromkeys(value for value, _ in values)),
            source="command",
            evidence=(*_stated_at(snapshot, values[0][1]), *(stated.evidence if stated else ())),
        )
    known = {name: item.value for name, item in found.items() if SEVERAL not in item.value}
    for setting in rows(program, modules, known):  # the other rows of the table are not in force
        table, row, _ = setting.name.split(".", 2)
        others = [name for name in found if name.startswith(f"{table}.") and not name.startswith(f"{table}.{row}.")]
        for name in others:
            del found[name]
        found.setdefault(setting.name, setting)
    return tuple(found[name] for name in sorted(found))


def _defaults(
    program: Program, modules: Sequence[Module], options: Mapping[str, Sequence[Option]], entries: Collection[str]
) -> Iterator[Hyperparameter]:
    """What the code itself sets, what stands over other defaults first."""
    declared = {option.name: option.default for found in options.values() for option in found if option.default}
    yield from preset(program, modules, declared)
    for module in modules:
        yield from option_defaults(module, options.get(module.path, ()))
    yield from dictionary_options(program, modules)
    every = [option for found in options.values() for option in found]
    yield from fallbacks(modules, {option.name for option in every if option.unset})
    names = {option.name.rpartition(".")[2] for option in every if option.kind == "signature"}
    for module in modules:
        yield from class_fields(module, names)
        yield from constants(program, module, entry=module.path in entries and not options.get(module.path))


def _renamed(
    commanded: Mapping[str, list[tuple[str, str]]], found: Mapping[str, Hyperparameter]
) -> dict[str, list[tuple[str, str]]]:
    """Settings of the commands under the names that the configuration has for them.

    `--config.model.width=8` sets `model.width`, and so does the value of `--set model.width=8`.
    """
    renamed: dict[str, list[tuple[str, str]]] = {}
    for name, values in commanded.items():
        _, _, inner = name.partition(".")
        renamed.setdefault(inner if name not in found and inner in found else name, []).extend(values)
        for value, where in values:
            for word in value.split():
                key, equals, given = word.partition("=")
                key = key if key in found else key.replace("/", ".")
                if equals and key in found:
                    renamed.setdefault(key, []).append((given.strip("'\""), where))
    return renamed


def unset_options(modules: Sequence[Module], settings: Sequence[Hyperparameter]) -> set[str]:
    """Options of the entry points that nothing sets, so that their value is None."""
    declaring = [module for module in modules if may_declare(module.unit.code)]
    trees = [module.unit.tree for module in declaring if module.unit.tree is not None]
    unset = {option.name for tree in trees for option in read_options(tree) if option.unset}
    return unset - {setting.name for setting in settings}


def stated_needs(settings: Sequence[Hyperparameter], files: Collection[str]) -> list[Need]:
    """What the settings themselves say that a run needs, each with its place.

    Environment variables that values are taken from (`${oc.env:WANDB_ENTITY}`); addresses that a command or a
    configuration gives; paths that a command gives to an option for paths to read, and that the repository does not
    have: whoever runs it has to put them there, unless the run downloads them (so they are no `file`).

    Args:
        settings: all of them.
        files: paths of the repository.
    """
    found: dict[tuple[str, str], Need] = {}

    def note(kind: NeedKind, name: str, at: CodeEvidence) -> None:
        found.setdefault((kind, name), Need(kind=kind, name=name, path=at.path, line=at.start))

    for setting in settings:
        at = next((at for at in setting.evidence if isinstance(at, CodeEvidence)), None)
        if at is None:
            continue
        for name in _ENVIRONMENT.findall(setting.value):
            note("environment variable", name, at)
        values = setting.value.split(SEVERAL) if setting.source != "default" else []
        read = setting.source == "command" and _READ.search(setting.name) and not _WRITTEN.search(setting.name)
        for value in values:
            if _ADDRESS.fullmatch(value):
                note("URL", value, at)
            elif read and "/" in value and "$" not in value and not _has(files, posixpath.normpath(value)):
                note("path", value, at)
    return list(found.values())


def unfollowed(needs: Iterable[Need]) -> tuple[Need, ...]:
    """Needs without the paths of commands that a need says more about, as the code was followed to what reads them."""
    listed = tuple(dict.fromkeys(needs))
    read = [need for need in listed if need.kind != "path"]
    return tuple(
        need for need in listed
        if need.kind != "path" or not any(need.name.rstrip("/") in other.name for other in read)
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
    """Where a command is stated, and the variables in it."""
    known = {file.path for file in snapshot.files}
    places = [(path, int(line)) for path, line in re.findall(r"(?:^|; )(?:variables from )?([^:; ]+):(\d+)", reason)]
    return tuple(_place(path, line) for path, line in dict.fromkeys(places) if path in known)


def _place(path: str, line: int) -> CodeEvidence:
    return CodeEvidence(path=path, start=max(line, 1), end=max(line, 1))
