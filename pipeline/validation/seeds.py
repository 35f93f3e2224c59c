"""The random seeds of a run: which ones are in force and who says so; and one for a script that takes one and has none.

A seed that the command, the default, a configuration or the code fixes stays as it is: it is part of the experiment.
Where a script takes a seed and nothing fixes it, repeat n is given n - 1: each execution can be made again, and the
repeats still differ as the authors' runs did, so that bands learnt from them mean something.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

import yaml

from pipeline.execution_plan import SeedUse
from pipeline.repository import Snapshot
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, effective, literal
from pipeline.tracing.source import read_unit
from pipeline.validation.commands import StartedProgram, started_program
from pipeline.validation.scale import configs_of, integers_in, readable_config

__all__ = ["seeds_in_force", "with_seed"]

_NAMES: Final = frozenset({"randomseed", "random_state"})
"""Beside all names of which one word is `seed`; `seeds` is a number of repeats."""
_SEEDERS: Final = frozenset({
    "seed", "manual_seed", "manual_seed_all", "set_seed", "seed_everything", "default_rng", "RandomState", "PRNGKey",
    "set_random_seed",
})  # fmt: skip
_UNSET: Final = frozenset({"", "None", "-1"})
_MAX_IN_CODE: Final = 8


def seeds_in_force(snapshot: Snapshot, usage: Sequence[Usage], sources: Sequence[str]) -> tuple[SeedUse, ...]:
    """The seeds of a chain, those of its commands first.

    Args:
        snapshot: the repository.
        usage: the commands.
        sources: files of the chain; seeds that stand in their code are found there.
    """
    found: list[SeedUse] = []
    for step in usage:
        found += _of_command(snapshot, step)
    for path in sources:
        if path.endswith((".py", ".ipynb")) and any(file.path == path for file in snapshot.files):
            found += _in_code(snapshot, path)
    return tuple(dict.fromkeys(found))


def with_seed(snapshot: Snapshot, step: Usage, repeat: int) -> tuple[str, ...]:
    """The words of a command for one repeat (from 1), with a seed where the script takes one and nothing sets it."""
    program = started_program(snapshot, step)
    option = _free(program) if program is not None else None
    return step.argv if option is None else (*step.argv, max(option.flags, key=len), str(repeat - 1))


def _free(program: StartedProgram) -> Option | None:
    """The option for a seed that nothing sets; only of a program whose one parser surely understands it."""
    if not program.own_options:
        return None
    options = [option for _, option in program.options]
    given = effective(options, program.arguments)
    return next((option for option in options if _is_seed(option) and not _fixed(option, given)), None)


def _names_seed(name: str) -> bool:
    return name.lower() in _NAMES or "seed" in re.split(r"[_\-]", name.lower())


def _is_seed(option: Option) -> bool:
    return _names_seed(option.name) and not (option.positional or option.switch or option.many or option.choices)


def _fixed(option: Option, given: dict[str, str]) -> bool:
    value = given.get(option.name, option.default)
    computed = option.default is None and option.kind != "argparse"
    return (value is not None and value not in _UNSET) or computed


def _of_command(snapshot: Snapshot, step: Usage) -> Iterator[SeedUse]:
    program = started_program(snapshot, step)
    if program is None:
        return
    free = _free(program)
    given = effective([option for _, option in program.options], program.arguments)
    for path, option in program.options:
        if not _is_seed(option):
            continue
        line = program.unit.line(option.start) if path == program.path else option.start
        where = f"{path}:{line}"
        if option == free:
            yield SeedUse(name=option.name, value="0, 1, ...", source="set", where=where)
        elif option.name in given:
            yield SeedUse(name=option.name, value=given[option.name], source="command", where=" ".join(step.argv)[:200])
        elif option.default is not None and option.default not in _UNSET:
            yield SeedUse(name=option.name, value=option.default, source="default", where=where)
    for path in dict.fromkeys(configs_of(snapshot, step, program)):
        if readable_config(snapshot, path):
            yield from _in_config(path, snapshot.text(path))


def _in_config(path: str, text: str) -> Iterator[SeedUse]:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return
    for name, node in integers_in(root):
        if _names_seed(name.rpartition(".")[2]):
            where = f"{path}:{node.start_mark.line + 1}"
            yield SeedUse(name=name, value=node.value, source="config", where=where)


def _in_code(snapshot: Snapshot, path: str) -> list[SeedUse]:
    """Seeds that are written as numbers: `np.random.seed(0)`, `random_state=0`, `SEED = 0`."""
    unit = read_unit(path, snapshot.text(path))
    found: list[SeedUse] = []
    for node in ast.walk(unit.tree) if unit.tree is not None else ():
        for name, value, line in _written(node):
            if value.lstrip("-").isdigit():
                found.append(SeedUse(name=name, value=value, source="code", where=f"{path}:{unit.line(line)}"))
    return sorted(found, key=lambda item: int(item.where.rpartition(":")[2]))[:_MAX_IN_CODE]


def _written(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    if isinstance(node, ast.Call):
        name = ast.unparse(node.func)
        if name.rpartition(".")[2] in _SEEDERS and node.args and (value := literal(node.args[0])) is not None:
            yield name, value, node.lineno
        for word in node.keywords:
            if word.arg and _names_seed(word.arg) and (value := literal(word.value)) is not None:
                yield word.arg, value, node.lineno
    elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
        value = literal(node.value)
        if value is not None and _names_seed(node.targets[0].id):
            yield node.targets[0].id, value, node.lineno
