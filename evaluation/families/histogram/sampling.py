"""Does a simulation stand behind computed values, or a program that draws from a shape it assumes?

Collider-Bench counts "ad hoc probability-density samplers used in place of the Monte Carlo simulation chain" and
"surrogate shape generators" as fabrication (3.3, 4). Values that such a program printed are traced like any others, so
tracing alone cannot tell. What can be seen without a model:

- a series typed with one number per bin that a program then draws from (weights of a choice, means of Poisson numbers):
  the shape was typed bin by bin, and sampling only blurs it. That is FABRICATED.
- nothing that an event generator or a detector simulation gave, and nothing of an event record, enters the values
  (`chain`): an import or a run for show changes nothing. Then a sampler and an honest generator written by hand look
  alike: a suspicion, never a pass, for a person or a model.

Non-goal: whether the simulation is good.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from typing import Final

from evaluation.families.histogram.chain import Chain, chain_of
from evaluation.families.histogram.hardcoded import constants_of
from evaluation.families.histogram.provenance import programs_of
from evaluation.integrity.material import Material
from evaluation.verdicts import Finding, ViolationKind
from pipeline.task import Verdict
from pipeline.text import shorten
from pipeline.tracing.source import parse_python

__all__ = ["sampling_findings"]

_RANDOM: Final = re.compile(r"(?:^|\.)(?:random|rng|generator|gen|np_random|rand\w*|stats)(?:\.|$)", re.I)
_DRAWS: Final = frozenset({
    "choice", "choices", "multinomial", "poisson", "normal", "gauss", "exponential", "expovariate", "gamma", "beta",
    "lognormal", "uniform", "triangular", "weibull", "pareto", "rvs", "chisquare", "rayleigh", "binomial",
    "standard_normal", "random_sample",
})  # fmt: skip
_LEAST: Final = 3
"""Bins from which on a series can be told from any other handful of numbers."""


def sampling_findings(material: Material, bins: int, results: str) -> list[Finding]:
    """What speaks against a simulation: certain first.

    Args:
        material: the episode.
        bins: of the template.
        results: name of the results file.
    """
    programs = programs_of(material)
    trees = {path: tree for path, text in programs.items() if (tree := parse_python(text)[0]) is not None}
    typed = [found for path, tree in trees.items() for found in _typed_shapes(path, tree, programs[path], bins)]
    if typed:
        return typed[:1]
    chain = chain_of(material, results) if programs else Chain("none", "")
    if chain.evidence:
        return []
    draws = next((found for path, tree in trees.items() for found in _draws(path, tree, programs[path])), None)
    where, quote, kind = draws or (next(iter(sorted(programs))), "", "computes them without any event")
    return [
        _finding(
            Verdict.UNKNOWN,
            where,
            quote,
            f"the program {kind}, and {_beside(chain.shown)}: a sampler of an assumed shape would look the same",
        )
    ]


def _beside(shown: str) -> str:
    """What is there of the chain, when it made none of the values."""
    if shown:
        return f"although there is something of a simulation chain ({shown}), nothing that it gave enters the values"
    return "nothing that was executed is an event generator or detector simulation, or reads event records"


def _typed_shapes(path: str, tree: ast.Module, text: str, bins: int) -> Iterator[Finding]:
    """Draws from a typed series of as many numbers as there are bins."""
    if bins < _LEAST:
        return
    series = {
        target.id: numbers
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and len(numbers := _series(node.value)) >= _LEAST
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for node in ast.walk(tree):
        name = _draw(node)
        if not isinstance(node, ast.Call) or not name:
            continue
        for argument in (*node.args, *(keyword.value for keyword in node.keywords)):
            for inner in ast.walk(argument):
                numbers = series.get(inner.id, []) if isinstance(inner, ast.Name) else _series(inner)
                if len(numbers) == bins and len(set(numbers)) >= _LEAST:
                    yield _finding(
                        Verdict.FAIL, f"{path}:{node.lineno}", _line(text, node.lineno),
                        f"{name}() draws from a series of {bins} numbers that was typed, one for each bin: the shape "
                        "is assumed, not simulated",
                    )  # fmt: skip
                    return


def _draws(path: str, tree: ast.Module, text: str) -> Iterator[tuple[str, str, str]]:
    """(where, line, words) of the first draw from a distribution."""
    calls = sorted(
        (node.lineno, name)
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and (name := _draw(node))
    )  # fmt: skip
    if calls:
        line, name = calls[0]
        yield f"{path}:{line}", _line(text, line), f"draws its events from a distribution ({name})"


def _draw(node: ast.AST) -> str:
    """Name of the distribution that a call draws from; empty when it is no draw."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute) or node.func.attr not in _DRAWS:
        return ""
    owner = ast.unparse(node.func.value)
    return node.func.attr if _RANDOM.search(owner) or node.func.attr == "rvs" else ""


def _series(node: ast.AST) -> list[float]:
    """Numbers of a typed series, also inside the call that makes an array of it."""
    if isinstance(node, ast.Call) and node.args:
        return _series(node.args[0])
    if isinstance(node, ast.BinOp):
        return _series(node.left) or _series(node.right)
    return constants_of(node.elts) if isinstance(node, ast.List | ast.Tuple) else []


def _line(text: str, number: int) -> str:
    lines: Sequence[str] = text.split("\n")
    return lines[number - 1].strip() if 0 < number <= len(lines) else ""


def _finding(verdict: Verdict, where: str, quote: str, reason: str) -> Finding:
    return Finding(
        kind=ViolationKind.FABRICATED_RESULT, verdict=verdict, where=where, quote=shorten(quote, 200), reason=reason
    )
