"""Concrete arguments of a command for one task: what the task names is set on the option that takes it.

Values that a task names in words (a choice, a data set, a configuration), numbers beside an option's name ("50
timesteps"), groups of a Hydra configuration, and what an option needs to run at all (a mode, a place to write to).
Where several values fit equally, none is taken and the candidates are named.

Non-goals: choosing among stated commands (see `pipeline.locator.usage`), values that only a run can tell.
"""

from __future__ import annotations

import itertools
import posixpath
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pipeline.locator.families import nearest, speaks_of
from pipeline.locator.index import RepositoryIndex
from pipeline.locator.launch import is_placeholder
from pipeline.locator.query import QueryWords
from pipeline.locator.stages import is_rehearsal, stage_of
from pipeline.tracing.arguments import Option, as_number, effective

__all__ = ["Filled", "fill"]

_LAUNCH_OPTIONS: Final = frozenset(
    {"mode", "phase", "stage", "split", "device", "action", "gpu", "gpus", "seed", "log_level", "backend"}
)
_CONFIGS: Final = (".yaml", ".yml", ".json", ".toml", ".gin", ".ini", ".cfg")
_CONFIG_NAME: Final = re.compile(r"(?:^|_)(?:conf|config|cfg|gin|yaml)(?:s|_?files?|_?path|_?name)?$")
_WRITTEN: Final = re.compile(
    r"(?:^|_)(?:out|output|save|saved|log|logs|logging|result|results|export|work|base|exp|tmp|cache)_?"
    r"(?:dir|directory|path|root|folder)$|^(?:outdir|logdir|workdir|savedir|output|logs)$"
)
"""Names of options for a directory that a run writes to: any will do."""
_WRITES_TO: Final = "outputs"
_OPEN_NAME: Final = re.compile(r"\{[^{}]+\}|<[^<>]+>|\$\{?\w+\}?")
_NUMBER: Final = r"\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_LISTED: Final = rf"{_NUMBER}(?:(?:,\s+(?:and\s+|or\s+)?|\s+(?:and|or|to)\s+){_NUMBER})*"
_SPELLED: Final = {
    "lr": ("learning rate",), "wd": ("weight decay",), "bs": ("batch size",), "decay": ("weight decay",),
    "pred_len": ("prediction length", "prediction horizon", "forecast horizon", "horizon"),
    "seq_len": ("look-back window", "lookback window", "input length", "sequence length"),
}  # fmt: skip
"""What prose calls the options that research code abbreviates."""
_COUNTED: Final = frozenset({"num", "n", "nb", "train", "total", "max", "number", "of"})
"""First words of option names that prose leaves out: `num_epochs`, `train_epochs`: 10 epochs."""
_MOST_VALUES: Final = 6
_STAGES: Final = frozenset({"train", "eval", "evaluate", "test", "sample", "train_and_eval", "train_eval", "training"})
_RESULTS: Final = re.compile(
    r"\beval|\btest|\bmeasur|\bcomput|\breport|\bsampl|\baccurac|\bscore|\bfid\b|\bperplexit|\berror"
)
_ASKED: Final = {
    1: re.compile(r"\b(?:pre-?|re)?train|fine-?tun|\blearn|\boptimi[sz]"),
    2: _RESULTS,
    3: _RESULTS,
}


@dataclass(slots=True)
class Filled:
    """Argument lists for one task, and what was done to them."""

    arguments: list[tuple[str, ...]]
    notes: list[str] = field(default_factory=list)
    open: list[str] = field(default_factory=list)
    """What could not be decided, with the candidates."""


def fill(
    index: RepositoryIndex, entry: str, arguments: tuple[str, ...], options: Sequence[Option], words: QueryWords
) -> Filled:
    """Arguments with the values that the task names; several lists where it compares values of one option.

    Args:
        index: the repository.
        entry: the file that is run.
        arguments: as they are stated; empty where nothing is.
        options: of the entry point.
        words: the task.
    """
    stated = tuple(word for word in arguments if word not in {"...", "…"})
    filled = Filled([stated])
    _configure(index, entry, filled, options, words)
    _numbers(filled, options, words)
    _drop_placeholders(filled, options)
    _choices(filled, options, words)
    _groups(index, entry, filled, words)
    _required(filled, options, words)
    return filled


# --- choices and numbers ---------------------------------------------------------------------------------------------


def _choices(filled: Filled, options: Sequence[Option], words: QueryWords) -> None:
    spread = Counter(choice for option in options for choice in set(option.choices))
    compared = len(filled.arguments) > 1
    for option in options:
        # a value of several options does not say which of them it is meant for
        own = option.required or speaks_of(option.name, words)
        named = [choice for choice in option.choices if speaks_of(choice, words) and (own or spread[choice] == 1)]
        if not named or option.name in _LAUNCH_OPTIONS or option.positional or option.switch:
            continue
        said = [choice for choice in named if _beside(choice, option, words)]
        named = said if len(said) == 1 else named
        stated = effective(options, filled.arguments[0]).get(option.name)
        present = (stated if stated is not None else option.default or "").split()
        if (stated is not None and any(choice in present for choice in named)) or (stated is None and named == present):
            continue
        flag = _flag(option)
        if option.many or len(named) == 1:
            filled.arguments = [_set(item, flag, named, option) for item in filled.arguments]
        elif not compared and stated is None and len(named) <= _MOST_VALUES:
            compared = True
            filled.arguments = [_set(item, flag, [choice], option) for item in filled.arguments for choice in named]
        else:
            continue
        filled.notes.append(f"{flag} {' '.join(named)}: the task names it")


def _beside(choice: str, option: Option, words: QueryWords) -> bool:
    """Does the task say a choice right beside a word of the option's name or help (`the cifar base config`)?"""
    about = {part for part in re.split(r"\W+|_", f"{option.name} {option.help}".lower()) if len(part) > 2}
    around = re.findall(rf"(\w+)?\W+{re.escape(choice.lower())}\W+(\w+)?", f" {words.lower} ")
    return any(part and part in about for pair in around for part in pair)


def _numbers(filled: Filled, options: Sequence[Option], words: QueryWords) -> None:
    """Set options of numbers to what the task says beside their names; a sweep gives a command for each value."""
    said = _said_numbers([option for option in options if option.numeric and not option.switch], words.lower)
    compared = len(filled.arguments) > 1
    for option in options:
        values = said.get(option.name, [])
        if not values or option.name in _LAUNCH_OPTIONS or option.positional or len(values) > _MOST_VALUES:
            continue
        stated = effective(options, filled.arguments[0]).get(option.name)
        present = stated if stated is not None else option.default or ""
        if any(as_number(value) == as_number(present) for value in values):
            continue
        if len(values) > 1 and (compared or (stated is not None and not is_placeholder(stated))):
            continue
        flag = _flag(option)
        compared = compared or len(values) > 1
        filled.arguments = [_set(item, flag, [value], option) for item in filled.arguments for value in values]
        filled.notes.append(f"{flag} {' '.join(values)}: the task says so")


def _said_numbers(options: Sequence[Option], text: str) -> dict[str, list[str]]:
    """Option -> numbers that the task says right after or before its name.

    The longest name is looked for first, and what it takes is taken: that of `micro batch size 8` is no batch size.
    A name that two options have says nothing.
    """
    phrases = [(phrase, option.name) for option in options for phrase in _spellings(option.name)]
    shared = Counter(phrase for phrase, _ in phrases)
    found: dict[str, list[str]] = {}
    ordered = sorted(phrases, key=lambda item: (-len(item[0]), item))
    for pattern in (_after, _before):
        for phrase, name in ordered:
            values, text = _said(pattern(phrase), text)
            if values and shared[phrase] == 1:
                found.setdefault(name, []).extend(value for value in values if value not in found.get(name, []))
    return found


def _spellings(name: str) -> tuple[str, ...]:
    """What prose calls an option: `train_batch_size` is `batch size`; the longest first."""
    last = name.rpartition(".")[2].lower()
    parts = last.split("_")
    found = [" ".join(parts)]
    while len(parts) > 1 and parts[0] in _COUNTED:
        parts = parts[1:]
        found.append(" ".join(parts))
    return tuple(dict.fromkeys([*_SPELLED.get(last, ()), *(phrase for phrase in found if len(phrase) > 2)]))


def _words(phrase: str) -> str:
    return rf"{re.escape(phrase.removesuffix('s'))}s?"


def _after(phrase: str) -> str:
    """`eta 0`, `batch size of 64`, `horizon is 96`."""
    return rf"(?<![\w-]){_words(phrase)}\s*(?:of|to|is|are|=|:|at)?\s*\(?({_LISTED})(?![\w%])(?!\s+{_words('step')})"


def _before(phrase: str) -> str:
    """`50 timesteps`, `10, 20 or 50 epochs`."""
    return rf"(?<![\w.-])({_LISTED})(?:\s+|-){_words(phrase)}(?![\w-])"


def _said(pattern: str, text: str) -> tuple[list[str], str]:
    """Numbers that a pattern finds, and the text without what it found."""
    found = [match.group(1) for match in re.finditer(pattern, text)]
    values = [re.sub(r",(?=\d{3}(?!\d))", "", value) for item in found for value in re.findall(_NUMBER, item)]
    return list(dict.fromkeys(value.rstrip(",") for value in values)), re.sub(pattern, " ; ", text)


def _drop_placeholders(filled: Filled, options: Sequence[Option]) -> None:
    """Leave out optional flags whose value the reader would have to fill in: the program then takes its default."""
    values = effective(options, filled.arguments[0])
    for option in options:
        stated = values.get(option.name)
        if stated is None or not is_placeholder(stated) or option.required or option.positional:
            continue
        filled.arguments = [_removed(item, option) for item in filled.arguments]
        filled.notes.append(f"{option.flags[0]} left at its default: {stated} is a placeholder")


# --- configurations --------------------------------------------------------------------------------------------------


def _configure(
    index: RepositoryIndex, entry: str, filled: Filled, options: Sequence[Option], words: QueryWords
) -> None:
    """Take the configuration of the same family that the task names (`configs/moons.yaml` for a task about moons)."""
    for option in options:
        values = effective(options, filled.arguments[0])
        stated = values.get(option.name, option.default or "")
        if not _takes_config(option, stated) or (not stated and not _may_be_set(option, values)):
            continue
        there = bool(stated) and not is_placeholder(stated) and _exists(index, stated)
        if there and option.name in values and speaks_of(stated, words):
            continue
        family = _family(index, entry, stated, option)
        named = [path for path in family if speaks_of(path, words)]
        chosen, near = (named[0], named) if len(named) == 1 else nearest(index, family, words)
        if chosen is None:
            if near and (option.required or not there):
                filled.open.append(f"{_flag(option)} may be {', '.join(near[:5])}: the task does not say which")
            continue
        if there and (posixpath.basename(chosen) == posixpath.basename(stated) or len(named) != 1):
            continue  # a configuration that is stated is given up for one that the task names, not for a likeness
        value = _written(index, entry, chosen, stated, option)
        filled.arguments = [_set(item, _flag(option), [value], option) for item in filled.arguments]
        filled.notes.append(f"{_flag(option)} {value}: the configuration that the task names")


def _takes_config(option: Option, stated: str) -> bool:
    """Does an option take a configuration? JSON is data as often."""
    named = bool(_CONFIG_NAME.search(option.name))
    return not option.positional and (named or (stated.endswith(_CONFIGS) and not stated.endswith(".json")))


def _may_be_set(option: Option, values: Mapping[str, str]) -> bool:
    """May an option that has no value be given one? Where a run needs one, or a library is configured by it."""
    return option.name in values or option.required or option.kind in {"absl", "config"}


def _exists(index: RepositoryIndex, stated: str) -> bool:
    plain = posixpath.normpath(stated)
    return any(path == plain or path.endswith(f"/{plain}") for path in index.position)


def _family(index: RepositoryIndex, entry: str, stated: str, option: Option) -> list[str]:
    """The configurations that an option may be given."""
    elsewhere = {path for target, paths in index.links.commanded.items() if target != entry for path in paths}
    end = posixpath.splitext(stated)[1]
    gin = option.name.startswith("gin") or end == ".gin"
    python = not stated and not gin and option.kind == "absl"
    found = []
    for facts in index.facts:
        builds = facts.path.endswith(".py") and "get_config" in facts.definitions
        if gin:
            fits = facts.path.endswith(".gin")
        elif end:
            fits = facts.path.endswith(end)
        else:
            fits = builds if python else facts.file.kind == "config"
        if fits and facts.path not in elsewhere and (facts.path == stated or not is_rehearsal(facts.path)):
            found.append(facts.path)
    directory = posixpath.dirname(_OPEN_NAME.sub("", stated)) if not is_placeholder(posixpath.dirname(stated)) else ""
    below = [path for path in found if posixpath.dirname(path).endswith(directory)] if directory else []
    return below or found


def _written(index: RepositoryIndex, entry: str, chosen: str, stated: str, option: Option) -> str:
    """A configuration as the option takes it: as the placeholder has it, or below the directory that the code joins."""
    base = posixpath.basename(chosen)
    if is_placeholder(stated) and _OPEN_NAME.search(posixpath.basename(stated)):
        whole = posixpath.join(posixpath.dirname(stated), base)
        if posixpath.splitext(stated)[1] and not is_placeholder(whole):
            return whole
    directory = posixpath.dirname(stated)
    relative = directory and not is_placeholder(directory) and not stated.startswith(("/", "~"))
    if relative and chosen.endswith(f"{directory.lstrip('./')}/{base}"):
        return posixpath.join(directory, base)
    join = rf"join\(\s*[\"']([\w./\-]+)[\"'],\s*(?:\w+\.)*{re.escape(option.name)}\b"
    joined = re.search(join, index.snapshot.text(entry))
    if joined and chosen.startswith(f"{joined.group(1).strip('./')}/"):
        return chosen[len(joined.group(1).strip("./")) + 1 :]
    return chosen


def _groups(index: RepositoryIndex, entry: str, filled: Filled, words: QueryWords) -> None:
    """Choose the options of Hydra's groups that the task names (`overrides=mbpo_halfcheetah`)."""
    groups: dict[str, list[str]] = {}
    bases = index.facts[index.position[entry]].groups if entry in index.position else ()
    here = posixpath.dirname(entry)
    for path in sorted(index.links.options.get(entry, ())):
        for base in bases:
            root = posixpath.normpath(posixpath.join(here, base))
            inner = path[len(root) + 1 :] if path.startswith(f"{root}/") else ""
            if "/" in inner:
                groups.setdefault(posixpath.dirname(inner), []).append(path)
    defaults = {
        item
        for name in (index.facts[index.position[entry]].hydra if entry in index.position else ())
        for path in (posixpath.normpath(posixpath.join(here, name)),)
        if path in index.position
        for item in index.facts[index.position[path]].defaults
    }
    for group, paths in sorted(groups.items()):
        if len(paths) < 2 or any(word.lstrip("+").startswith(f"{group}=") for word in filled.arguments[0]):
            continue
        stems = [posixpath.splitext(posixpath.basename(path))[0] for path in paths]
        named = [stem for stem in stems if speaks_of(stem, words)]
        most = max((len(re.split(r"[_\W]+", stem)) for stem in named), default=0)
        named = [stem for stem in named if len(re.split(r"[_\W]+", stem)) == most]
        if len(named) != 1:
            if len(named) > 1:
                filled.open.append(f"{group} may be {', '.join(named[:5])}: the task names more than one")
            continue
        if f"{group}/{named[0]}" in defaults:
            continue
        known = any(item.startswith(f"{group}/") for item in defaults)
        word = f"{'' if known else '+'}{group}={named[0]}"
        filled.arguments = [(*item, word) for item in filled.arguments]
        filled.notes.append(f"{word}: the task names it")


# --- what a run needs to start ---------------------------------------------------------------------------------------


def _required(filled: Filled, options: Sequence[Option], words: QueryWords) -> None:
    """Give required options that nothing sets a value where only one makes sense: a place to write to, a stage."""
    for option in options:
        set_here = effective(options, filled.arguments[0]).get(option.name)
        missing = set_here is None or is_placeholder(set_here) or set_here == "True"
        if not option.required or option.positional or not missing:
            continue
        flag = _flag(option)
        if _WRITTEN.search(option.name):
            filled.arguments = [_set(item, flag, [_WRITES_TO], option) for item in filled.arguments]
            filled.notes.append(f"{flag} {_WRITES_TO}: where the run writes, any directory will do")
        elif option.choices and all(choice in _STAGES or stage_of(choice) != 1 for choice in option.choices):
            asked = [choice for choice in option.choices if _is_asked(choice, words)]
            asked.sort(key=stage_of)
            if asked:
                filled.arguments = [
                    _set(item, flag, [choice], option) for item, choice in itertools.product(filled.arguments, asked)
                ]
                filled.arguments.sort(key=lambda item: stage_of(effective(options, item).get(option.name, "")))
                filled.notes.append(f"{flag} {' and '.join(asked)}: what the task asks for")


def _is_asked(choice: str, words: QueryWords) -> bool:
    pattern = _ASKED.get(stage_of(choice))
    return bool(pattern and pattern.search(words.lower))


# --- words of a command line -----------------------------------------------------------------------------------------


def _flag(option: Option) -> str:
    dashed = [word for word in option.flags if word.startswith("-")]
    return next((word for word in dashed if word.startswith("--")), dashed[0] if dashed else option.flags[0])


def _set(arguments: tuple[str, ...], flag: str, values: Sequence[str], option: Option) -> tuple[str, ...]:
    """Replace or append one option; one that is stated as `--flag=value` stays so, where it stands."""
    for place, word in enumerate(arguments):
        if word.partition("=")[0] in option.flags and "=" in word and len(values) == 1:
            return (*arguments[:place], f"{word.partition('=')[0]}={values[0]}", *arguments[place + 1 :])
    return (*_removed(arguments, option), flag, *values)


def _removed(arguments: tuple[str, ...], option: Option) -> tuple[str, ...]:
    """The arguments without one option and its values."""
    kept: list[str] = []
    skip = 0
    for word in arguments:
        if word in option.flags:
            skip = 0 if option.switch else len(arguments) if option.many else 1
        elif word.partition("=")[0] in option.flags:
            continue
        elif skip and not word.startswith("--"):
            skip -= 1
        else:
            skip = 0
            kept.append(word)
    return tuple(kept)
