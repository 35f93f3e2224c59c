"""Settings of a submission's run beside those of the original's: what functions were called with, and how many seeds.

Values are those that a witness saw at the calls, as text. Compared are numbers, and words that the task itself uses:
file names and options of the original that nobody told the agent are nobody's duty.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from pipeline.task import ExperimentTruth, PublicTask
from pipeline.validation.numbers import find_numbers, parse_number
from pipeline.validation.tokens import words
from pipeline.witness.records import FunctionRun

__all__ = ["differences", "plain_value", "recognised", "seed_parts", "shown_values", "told_values"]

_MANY: Final = 48
"""Distinct values of a parameter from which on they are data rather than a setting."""


def plain_value(text: str) -> str:
    """A value as it is compared: numbers by value, words by their letters."""
    number = parse_number(text.strip("'\""))
    return f"{number.value:.12g}" if number is not None else " ".join(words(text))


def recognised(public: PublicTask, truth: ExperimentTruth) -> frozenset[str]:
    """Words that the task uses for its conditions and variables, as `plain_value` has them."""
    names = [condition.value for claim in truth.expected.claims for condition in claim.conditions]
    names += [value for variable in (*truth.independent, *truth.constant) for value in variable.values]
    return frozenset(plain_value(name) for name in names) | told_values(public)


def told_values(public: PublicTask) -> frozenset[str]:
    """Single words and numbers of what the agent is told, as `plain_value` has them; shares also as percentages."""
    text = "\n".join((public.question, public.method, public.agent_instructions))
    numbers = [number.value for number in find_numbers(text)]
    scaled = [value * factor for value in numbers for factor in (1.0, 100.0, 0.01)]
    return frozenset(words(text)) | {f"{value:.12g}" for value in scaled}


def differences(
    own: FunctionRun, theirs: FunctionRun, own_seeds: Sequence[str], their_seeds: Sequence[str], told: frozenset[str],
    *, seeds_only: bool = False,
) -> list[str]:  # fmt: skip
    """What a function of the original was called with, and the submission's call of it was not, in words.

    Args:
        own: in the run of the task's own code.
        theirs: in the submission's run.
        own_seeds: seeds that the task's own code gave to random generators.
        their_seeds: those of the submission: which they are is its choice, how many is not.
        told: words that count beside numbers (`recognised`).
        seeds_only: compare only how many seeds there were. Where numbers are right at all levels, the levels ran, be
            it inside of another call: one calibration set of 800 holds those of 25 to 400.
    """
    given = dict(theirs.arguments)
    found = []
    for name, values in own.arguments:
        if name not in given or len(values) > _MANY or len(given[name]) > _MANY:
            continue
        if len(values) > 1 and set(values) <= seed_parts(own_seeds) and set(given[name]) <= seed_parts(their_seeds):
            if len(given[name]) < len(values):
                found.append(f"{own.name}({name}) got {len(given[name])} seeds, the original's {len(values)}")
            continue
        if seeds_only:
            continue
        there = {plain_value(value) for value in given[name]}
        missing = [value for value in values if _counts(value, told) and plain_value(value) not in there]
        if missing:
            had = ", ".join(given[name][:4])
            found.append(f"{own.name}({name}) got {had}, the original's also {', '.join(missing[:4])}")
    return found


def seed_parts(seeds: Iterable[str]) -> frozenset[str]:
    """Seeds and the numbers that they consist of: `default_rng([2019, 3])` is the third trial of one base seed."""
    return frozenset(part for seed in seeds for part in (seed, *(f"{n.value:.12g}" for n in find_numbers(seed))))


def _counts(value: str, told: frozenset[str]) -> bool:
    """A number, or a word that the task uses."""
    return parse_number(value.strip("'\"")) is not None or plain_value(value) in told


def shown_values(ran: Iterable[FunctionRun]) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """(file, function, parameter) -> the values that it was called with."""
    return {(item.path, item.name, name): values for item in ran for name, values in item.arguments}
