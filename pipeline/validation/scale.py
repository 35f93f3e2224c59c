"""The smoke scale of a run: the same program, made as small as its own options and configurations allow.

Only settings whose name says that they count something are touched (epochs, steps, repeats, samples), only downwards,
and switches by which authors themselves ask for a small run (`--debug`, `--smoke`, `--quick`). Code is never edited,
and where nothing of the kind is declared there is no smoke scale.

Non-goals: numbers. What a small run prints is not what the paper reports, so nothing of it is compared.
"""

from __future__ import annotations

import ast
import posixpath
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

import yaml

from pipeline.execution_plan import PlannedCommand, PlannedFile, ScaleChange
from pipeline.repository import Snapshot
from pipeline.task import Usage
from pipeline.tracing.arguments import Option, effective, literal
from pipeline.validation.commands import StartedProgram, started_program

__all__ = ["SmokeScale", "configs_of", "integers_in", "readable_config", "smoke_scale"]

_WORD: Final = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_SWITCHES: Final = frozenset({
    "debug", "smoke", "smoke_test", "quick", "quick_run", "quick_test", "fast_dev_run", "dev_run", "tiny", "toy",
    "mini", "test_run", "sanity_check", "small_run",
})  # fmt: skip
"""Without `--fast`, which names a variant of a method more often than a short run, and `--dry-run`, which computes
nothing."""
_QUANTITY: Final = frozenset({"n", "k", "num", "number", "nb", "max", "maximum", "total", "limit", "count", "nr"})
_OTHERWISE: Final = frozenset({
    "warmup", "every", "interval", "freq", "frequency", "per", "decay", "start", "initial", "patience", "early", "save",
    "log", "print", "eval", "plot", "resume", "checkpoint", "ckpt", "lr", "gamma", "dim", "window", "burn", "length",
    "len", "min", "period", "batch", "workers", "threads", "jobs", "gpus", "classes", "features", "layers",
})  # fmt: skip
"""Words beside which a count is one of something else: `--save-every-epochs`, `--warmup-steps`, `--batch-size`."""


class _Kind(NamedTuple):
    words: frozenset[str]
    small: int
    counted: bool
    """Does it need a word of quantity beside it? `--epochs` is a number of epochs, `--step` may not be one."""


_SIZES: Final = _Kind(frozenset({
    "samples", "sample", "examples", "example", "instances", "points", "rows", "train", "test", "val", "documents",
    "docs", "sentences", "questions", "queries", "images", "graphs", "data", "particles", "draws", "subset",
}), 64, True)  # fmt: skip
_KINDS: Final = (
    _Kind(frozenset({"epoch", "epochs"}), 1, False),
    _Kind(frozenset({"timesteps", "timestep"}), 1_000, False),
    _Kind(frozenset({"folds", "cv", "splits"}), 2, False),
    _Kind(frozenset({"fold"}), 2, True),
    _Kind(frozenset({
        "trials", "repeats", "reps", "repetitions", "runs", "restarts", "replications", "replicates", "simulations",
        "sims", "bootstraps", "rounds", "experiments", "seeds",
    }), 1, False),
    _Kind(frozenset({"bootstrap", "run", "trial", "repeat", "rep", "simulation", "sim", "seed", "round"}), 1, True),
    _Kind(frozenset({"steps", "iterations", "iters", "updates", "generations", "estimators"}), 20, False),
    _Kind(frozenset({"step", "iter", "iteration", "itr", "update", "generation", "trees"}), 20, True),
    _Kind(frozenset({"episodes", "games"}), 2, False),
    _SIZES,
)  # fmt: skip
"""What is counted, and how many are enough to see that the code computes: one epoch, 20 steps, 64 samples (fewer fall
below common batch sizes, numbers of neighbours and of clusters), two folds (one is no cross-validation)."""
_UNLIMITED: Final = frozenset({"", "-1", "0", "None"})
_MAX_CONFIG: Final = 200_000
_MAX_CONFIGS: Final = 40


class SmokeScale(NamedTuple):
    """The smaller variant of a chain's commands."""

    commands: tuple[PlannedCommand, ...]
    """Empty when there is none."""
    files: tuple[PlannedFile, ...]
    changes: tuple[ScaleChange, ...]
    why_not: str


def smoke_scale(snapshot: Snapshot, usage: Sequence[Usage], configs: Sequence[str] = ()) -> SmokeScale:
    """The smoke scale of a chain.

    Args:
        snapshot: the repository.
        usage: the chain's commands at full scale.
        configs: configurations that are known to be part of the chain.
    """
    commands: list[PlannedCommand] = []
    changes: list[ScaleChange] = []
    files: dict[str, PlannedFile] = {}
    foreign: list[str] = []
    for step in usage:
        program = started_program(snapshot, step)
        if program is None:
            foreign.append(" ".join(step.argv[:3]))
            commands.append(PlannedCommand(argv=step.argv, directory=step.directory))
            continue
        added, found = _smaller_arguments(program)
        overrides, overridden = _smaller_overrides(program)
        added += overrides
        changes += [*found, *overridden]
        for path in dict.fromkeys((*configs, *configs_of(snapshot, step, program))):
            if (
                path not in files
                and readable_config(snapshot, path)
                and (smaller := _smaller_config(path, snapshot.text(path, _MAX_CONFIG)))
            ):
                files[path] = PlannedFile(path=path, text=smaller[0])
                changes += smaller[1]
        commands.append(PlannedCommand(argv=(*step.argv, *added), directory=step.directory))
    if not changes:
        why = "no option or configuration counts epochs, steps, repeats or samples, and none is a switch like --debug"
        if foreign:
            why = f"`{foreign[0]}` starts no Python file whose options could be read"
        return SmokeScale((), (), (), why)
    return SmokeScale(tuple(commands), tuple(files.values()), tuple(dict.fromkeys(changes)), "")


# --- options ---------------------------------------------------------------------------------------------------------


def _smaller_arguments(program: StartedProgram) -> tuple[list[str], list[ScaleChange]]:
    """Words to add to the command (of an option that is given twice the last one counts), and what they change."""
    options = [option for _, option in program.options]
    given = effective(options, program.arguments)
    added: list[str] = []
    changes: list[ScaleChange] = []
    for path, option in program.options:
        if option.positional or option.choices:
            continue
        line = program.unit.line(option.start) if path == program.path else option.start
        where = f"{path}:{line}"
        flag = max(option.flags, key=len)
        if option.switch:
            if _name(option.name) in _SWITCHES and not option.negated and given.get(option.name) != "True":
                added.append("/".join(flag.split("/")[:1]))
                changes.append(ScaleChange(name=option.name, full="not set", smoke="set", where=where))
            continue
        value = given.get(option.name, option.default)
        smaller = _list_of_seeds(option, value) or _smaller(option.name, value, option)
        if smaller is not None:
            added += [f"{flag}={smaller}"] if option.kind == "absl" else [flag, smaller]
            changes.append(ScaleChange(name=option.name, full=value or "not set", smoke=smaller, where=where))
    return added, changes


def _smaller_overrides(program: StartedProgram) -> tuple[list[str], list[ScaleChange]]:
    """Hydra's `key=value` words of a command; the last one of a key counts."""
    added: list[str] = []
    changes: list[ScaleChange] = []
    for word in program.arguments:
        name, equals, value = word.lstrip("+").partition("=")
        smaller = _smaller(name.rpartition(".")[2], value) if equals and not word.startswith("-") else None
        if smaller is not None and _hydra(program) is not None:
            added.append(f"{name}={smaller}")
            changes.append(ScaleChange(name=name, full=value, smoke=smaller, where="the command"))
    return added, changes


def _hydra(program: StartedProgram) -> str | None:
    """The directory of the configurations of a program that Hydra starts; None for others."""
    for node in ast.walk(program.unit.tree) if program.unit.tree is not None else ():
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("hydra.main"):
            named = {word.arg: literal(word.value) for word in node.keywords}
            given = named.get("config_path") or (literal(node.args[0]) if node.args else None) or "."
            return posixpath.normpath(posixpath.join(posixpath.dirname(program.path), given))
    return None


def _name(name: str) -> str:
    return "_".join(word.lower() for word in _WORD.findall(name))


def _list_of_seeds(option: Option, value: str | None) -> str | None:
    """The first of several seeds: each of them is one repeat."""
    many = option.many and value is not None and len(value.split()) > 1
    return value.split()[0] if many and value is not None and "seeds" in _name(option.name).split("_") else None


def _smaller(name: str, value: str | None, option: Option | None = None) -> str | None:
    """A smaller value of a setting that counts something; None for all others."""
    words = frozenset(_name(name).split("_"))
    kind = next((kind for kind in _KINDS if kind.words & words), None)
    if kind is None or words & _OTHERWISE:
        return None
    # a sample size is a number of samples, a step size is not a number of steps
    if kind.counted and not words & (_QUANTITY | {"size"} if kind is _SIZES else _QUANTITY):
        return None
    text = (value or "").strip()
    if text in _UNLIMITED:
        # `--max-steps` without a value is a limit that is not set; `--steps` without one is computed by the program
        limits = bool({"max", "limit", "subset", "maximum"} & words) and option is not None and not option.required
        return str(kind.small) if limits else None
    if not re.fullmatch(r"\d+", text):
        return None
    return str(kind.small) if int(text) > kind.small else None


# --- configurations --------------------------------------------------------------------------------------------------


def configs_of(snapshot: Snapshot, step: Usage, program: StartedProgram) -> Iterator[str]:
    """Configurations that the command names, an option names by default, or its code and what that imports names."""
    files = {file.path: file for file in snapshot.files}
    options = [option for _, option in program.options]
    values = {option.name: option.default or "" for option in options} | effective(options, program.arguments)
    words = [*program.arguments, *values.values()]
    for word in dict.fromkeys(part for text in words for part in re.split(r"[\s=]", text)):
        if word.endswith((".yaml", ".yml", ".json")):
            path = posixpath.normpath(posixpath.join(step.directory, word))
            if path in files:
                yield path
    named = {name.rpartition("/")[2] for name in program.config_names}
    yield from [path for path in sorted(files) if path.rpartition("/")[2] in named][:_MAX_CONFIGS]
    if (folder := _hydra(program)) is not None:
        prefix = "" if folder == "." else f"{folder}/"
        inside = [path for path in sorted(files) if path.startswith(prefix) and path.endswith((".yaml", ".yml"))]
        yield from inside[:_MAX_CONFIGS]


def readable_config(snapshot: Snapshot, path: str) -> bool:
    """Is it a YAML or JSON file of the repository that is small enough to be a configuration?"""
    return any(
        file.path == path and not file.binary and file.size <= _MAX_CONFIG and path.endswith((".yaml", ".yml", ".json"))
        for file in snapshot.files
    )


def _smaller_config(path: str, text: str) -> tuple[str, list[ScaleChange]] | None:
    """The configuration with smaller counts, everything else as it is written; None where nothing can be smaller."""
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.YAMLError:
        return None
    changes: list[ScaleChange] = []
    places: list[tuple[int, int, str]] = []
    for name, node in integers_in(root):
        smaller = _smaller(name.rpartition(".")[2], node.value)
        if smaller is not None:
            places.append((node.start_mark.index, node.end_mark.index, smaller))
            where = f"{path}:{node.start_mark.line + 1}"
            changes.append(ScaleChange(name=name, full=node.value, smoke=smaller, where=where))
    for start, end, smaller in sorted(places, reverse=True):
        text = text[:start] + smaller + text[end:]
    return (text, changes) if changes else None


def integers_in(node: Any, prefix: str = "", depth: int = 0) -> Iterator[tuple[str, Any]]:
    """(dotted name, node) of the whole numbers of a composed YAML document."""
    if depth > 8:
        return
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                yield from integers_in(value, f"{prefix}.{key.value}" if prefix else key.value, depth + 1)
    elif isinstance(node, yaml.ScalarNode) and node.tag == "tag:yaml.org,2002:int" and prefix:
        yield prefix, node
