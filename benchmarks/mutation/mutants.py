"""Which mutants a file has, and which of them are tried.

A mutant is one place and one kind of change there. cosmic-ray offers up to eleven variants of one (`+` to every other
binary operator), nearly all of which die of a TypeError: one is drawn, lest a path's `/` counts eleven times.
"""

from __future__ import annotations

import difflib
import random
import tomllib
import warnings
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code

from benchmarks.mutation.operators import list_operators

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")
ALL_BELOW: Final = 150
"""Files of fewer mutants than this are tried whole when they are a target of their own."""


class Mutant(NamedTuple):
    """One file with one change."""

    file: str
    line: int
    lines: tuple[int, ...]
    """From where the statement begins to where the change ends: coverage may know it by any of them."""
    operator: str
    code: str
    """Of the whole file, changed."""
    diff: str


class Place(NamedTuple):
    """Where one kind of change can be made, with its variants (operator, occurrence)."""

    file: str
    line: int
    lines: tuple[int, ...]
    variants: tuple[tuple[str, int], ...]


class Declared(NamedTuple):
    """A mutant that behaves as the original does, and why."""

    file: str
    before: str
    after: str
    reason: str


def find_places(file: str, source: str) -> list[Place]:
    """All of a file's, in the order of its lines."""
    tree = get_ast(source)
    nodes = [node for node in ast_nodes(tree) if not (_is_annotation(node) or _is_signature(node) or _is_guard(node))]
    all_nodes = list(ast_nodes(tree))
    wanted = {id(node) for node in nodes}
    found: dict[tuple[Any, str], list[tuple[str, int]]] = defaultdict(list)
    for name, operator in list_operators().items():
        occurrence = 0
        for node in all_nodes:
            for position in operator.mutation_positions(node):
                if id(node) in wanted:
                    found[(position, name.split("_", maxsplit=1)[0])].append((name, occurrence))
                occurrence += 1
    starts = _statement_starts(all_nodes)
    places = [
        Place(file, begin[0], tuple(range(max(s for s in (1, *starts) if s <= begin[0]), end[0] + 1)), tuple(variants))
        for ((begin, end), _), variants in found.items()
    ]
    return sorted(places, key=lambda place: (place.line, place.variants))


def draw_mutants(places: Sequence[Place], *, size: int, seed: int, root: Path) -> list[Mutant]:
    """So many at random without repetition, in random order: the first ones of a run that was ended are a sample too.

    A variant that is no Python (`def f(+, a)`) is replaced by another of its place.
    """
    chance = random.Random(seed)
    order = chance.sample(places, k=len(places))
    drawn: list[Mutant] = []
    for place in order:
        if len(drawn) == size:
            break
        if (mutant := _make_mutant(place, chance, root)) is not None:
            drawn.append(mutant)
    return drawn


def _make_mutant(place: Place, chance: random.Random, root: Path) -> Mutant | None:
    source = (root / place.file).read_text(encoding="utf-8")
    operators = list_operators()
    for name, occurrence in chance.sample(place.variants, k=len(place.variants)):
        try:
            code = mutate_code(source, operators[name], occurrence)
        except AttributeError:  # cosmic-ray 8.7 replaces the name in `except ValueError`, not in `except json.X`
            continue
        if code is None or code == source or not _compiles(code):
            continue
        diff = "\n".join(difflib.unified_diff(source.splitlines(), code.splitlines(), n=0, lineterm=""))
        changed = [line for line in diff.splitlines() if line.startswith(("-", "+")) and line[:3] not in ("---", "+++")]
        return Mutant(place.file, place.line, place.lines, name, code, "\n".join(changed))
    return None


def _compiles(code: str) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `1 is x` warns
        try:
            compile(code, "mutant", "exec")
        except (SyntaxError, ValueError):
            return False
    return True


def _is_signature(node: Any) -> bool:
    """A `*` or `/` between parameters, which cosmic-ray takes for an operator between numbers."""
    return (
        node.type == "operator" and node.parent is not None and node.parent.type in ("parameters", "lambdef", "param")
    )


def _is_guard(node: Any) -> bool:
    """`zip(..., strict=True)`, `dataclass(frozen=True)`: they forbid what code that is right never does."""
    parent = node.parent
    guards = ("strict", "frozen", "slots")
    return parent is not None and parent.type == "argument" and getattr(parent.children[0], "value", "") in guards


def _is_annotation(node: Any) -> bool:
    """What only type checkers read: `str | None` after a colon or an arrow."""
    child, parent = node, node.parent
    while parent is not None:
        if parent.type == "tfpdef" and child is not parent.children[0]:
            return True
        if parent.type == "annassign" and child is parent.children[1]:
            return True
        if parent.type == "funcdef" and child is parent.annotation:
            return True
        child, parent = parent, parent.parent
    return False


def _statement_starts(nodes: Sequence[Any]) -> list[int]:
    kinds = ("simple_stmt", "if_stmt", "for_stmt", "while_stmt", "with_stmt", "try_stmt", "funcdef", "classdef")
    headers = {"elif", "else", "except", "finally"}
    return sorted(
        {node.start_pos[0] for node in nodes if node.type in kinds}
        | {node.start_pos[0] for node in nodes if node.type == "keyword" and node.value in headers}
    )


def read_equivalents(root: Path) -> list[Declared]:
    """Those of `equivalent.toml`; an entry whose line is no longer in its file is an error, lest it hides another."""
    entries = tomllib.loads(EQUIVALENT.read_text(encoding="utf-8")).get("mutant", [])
    declared = [Declared(**entry) for entry in entries]
    for one in declared:
        lines = {line.strip() for line in (root / one.file).read_text(encoding="utf-8").splitlines()}
        if one.before not in lines:
            raise SystemExit(
                f"{EQUIVALENT.name} declares a mutant of the line {one.before!r}, which {one.file} no longer has: "
                "the declaration would cover nothing. Remove or renew it."
            )
    return declared


def is_declared(mutant: Mutant, declared: Sequence[Declared]) -> bool:
    """Whether a person has said of this very change that nothing can tell it from the original."""
    lines = mutant.diff.splitlines()
    before = [line[1:].strip() for line in lines if line.startswith("-")]
    after = [line[1:].strip() for line in lines if line.startswith("+")]
    return any(one.file == mutant.file and [one.before] == before and [one.after] == after for one in declared)
