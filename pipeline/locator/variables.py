"""Variables that a document sets in one block and uses in another: `MODEL_FLAGS="--width 64"`, `train.py $MODEL_FLAGS`.

A README states one command and the flags of each experiment apart; the flags whose surroundings speak most of the task
are put in.

Non-goal: variables of shell scripts, which are read with the script (see `pipeline.locator.shell`).
"""

from __future__ import annotations

import math
import re
import shlex
from collections import Counter
from dataclasses import dataclass, field
from typing import Final

from pipeline.locator.query import QueryWords
from pipeline.locator.text import tokens

__all__ = ["put_in", "uses_variables"]

_USED: Final = re.compile(r"^\$\{?([A-Za-z_]\w*)\}?$")
_SET: Final = re.compile(
    r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(?P<quote>[\"'])(.*)(?P=quote)\s*$|"
    r"^\s*(?:export\s+)?([A-Za-z_]\w*)=(\S+)\s*$"
)
_NEAR: Final = 4
"""Lines of prose above a block that say what it is for."""


@dataclass(slots=True)
class _Block:
    line: int
    about: str
    values: dict[str, str] = field(default_factory=dict)


def uses_variables(arguments: tuple[str, ...]) -> bool:
    """Is an argument nothing but a variable?"""
    return any(_USED.match(word) for word in arguments)


def put_in(arguments: tuple[str, ...], text: str, words: QueryWords) -> tuple[tuple[str, ...], int | None]:
    """The arguments with the variables that a document sets.

    Args:
        arguments: of a command of the document.
        text: the document.
        words: the task.

    Returns:
        The arguments, and the line of the block that was taken; None, and the arguments as they are, where no block
        sets them all or none speaks of the task more than the others.
    """
    wanted = {match.group(1) for word in arguments if (match := _USED.match(word))}
    blocks = [block for block in _blocks(text) if wanted & block.values.keys()]
    complete = [block for block in blocks if wanted <= block.values.keys()] or blocks
    if not complete:
        return arguments, None
    said = set(words.all)
    bags = [set(tokens(f"{block.about} {' '.join(block.values.values())}")) for block in complete]
    frequency = Counter(token for bag in bags for token in bag)
    scores = [
        sum(math.log(1 + len(bags) / frequency[token]) for token in bag & said) / math.sqrt(len(bag) + 5)
        for bag in bags
    ]
    order = sorted(range(len(bags)), key=lambda number: (-round(scores[number], 6), complete[number].line))
    if len(order) > 1 and round(scores[order[0]], 6) == round(scores[order[1]], 6):
        return arguments, None
    best = complete[order[0]]
    filled: list[str] = []
    for word in arguments:
        match = _USED.match(word)
        value = best.values.get(match.group(1)) if match else None
        filled += _split(value) if value is not None else [word]
    return tuple(filled), best.line


def _split(value: str) -> list[str]:
    try:
        return shlex.split(value)
    except ValueError:
        return value.split()


def _blocks(text: str) -> list[_Block]:
    """Runs of lines that set variables, with what is said above them."""
    lines = text.replace("\\\n", "  \n").splitlines()
    found: list[_Block] = []
    current: _Block | None = None
    prose: list[str] = []
    for number, line in enumerate(lines, 1):
        match = _SET.match(line)
        if match:
            if current is None:
                current = _Block(number, " ".join(prose[-_NEAR:]))
                found.append(current)
            name = match.group(1) or match.group(4)
            current.values[name] = match.group(3) if match.group(1) else match.group(5)
            continue
        if line.strip().startswith("```"):
            continue
        if current is not None:
            current, prose = None, []
        if line.strip():
            prose = [*(prose if lines[number - 2].strip() else prose[-1:]), line] if number > 1 else [line]
    return found
