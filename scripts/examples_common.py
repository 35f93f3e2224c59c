"""What both worked examples share: numbers with their origin, running experiments, rendering text from numbers.

Non-goal: LaTeX and PDF, see `examples_papers.py`; what a single example computes, see `examples_<name>.py`.
"""

from __future__ import annotations

import csv
import json
import math
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import jinja2
import yaml

EXAMPLES = Path(__file__).resolve().parents[1] / "datasets" / "examples"

# A printed number must not flip when a computation is off by a little: its unrounded value stays away from the nearest
# rounding boundary by this share of half a unit of the last digit. The accuracies of one example are multiples of
# 1/150 and so keep 6.7 % by construction; everything else is a matter of the seed, which is chosen by this rule.
MARGIN = 0.05


class ExampleError(Exception):
    """The example is not what it says; the message names the number or file."""


@dataclass(frozen=True)
class Number:
    """A number as it is printed, with its unrounded value and where that comes from."""

    id: str
    text: str
    value: float | None
    origin: Mapping[str, Any]


@dataclass
class Numbers:
    """All numbers of one example, by id."""

    by_id: dict[str, Number] = field(default_factory=dict)

    def add(self, number: Number) -> None:
        """Add a number; its id must be new."""
        if number.id in self.by_id:
            raise ExampleError(f"number {number.id} is defined twice")
        self.by_id[number.id] = number

    def measured(self, id_: str, value: float, decimals: int, origin: Mapping[str, Any]) -> None:
        """Add a measured value, printed with `decimals` digits.

        Raises:
            ExampleError: the value is too close to a rounding boundary.
        """
        scaled = value * 10**decimals
        distance = abs((scaled - math.floor(scaled)) - 0.5) * 2
        if distance < MARGIN:
            raise ExampleError(
                f"{id_} = {value} is {distance:.3f} of half a unit from a rounding boundary at {decimals} decimals "
                f"(at least {MARGIN} wanted). The printed number is not stable. Choose another seed"
            )
        self.add(Number(id_, f"{value:.{decimals}f}", value, origin))

    def derived(self, id_: str, text: str, formula: str) -> None:
        """Add a number that was computed from printed numbers, so that readers get the same when they do."""
        self.add(Number(id_, text, None, {"derived": formula}))

    def difference(self, id_: str, first: str, second: str, decimals: int = 1) -> None:
        """Add the difference of two printed numbers."""
        value = float(self[first]) - float(self[second])
        self.derived(id_, f"{value:.{decimals}f}", f"{first} - {second}")

    def settings(self, path: Path, relative: str, keys: tuple[str, ...], formats: Mapping[str, str]) -> None:
        """Add settings of a YAML file as `setting.<key>`."""
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        for key in keys:
            text = format(values[key], formats.get(key, ""))
            self.add(Number(f"setting.{key}", text, None, {"file": relative, "key": key}))

    def __getitem__(self, id_: str) -> str:
        if id_ not in self.by_id:
            raise ExampleError(f"no number is called {id_}")
        return self.by_id[id_].text

    def value(self, id_: str) -> float:
        """The unrounded value of a measured number."""
        value = self.by_id[id_].value
        if value is None:
            raise ExampleError(f"{id_} is not a measured number")
        return value

    def as_json(self) -> list[dict[str, Any]]:
        """The entries of numbers.json, in order of definition."""
        return [
            {"id": n.id, "text": n.text, **({} if n.value is None else {"value": n.value}), "origin": dict(n.origin)}
            for n in self.by_id.values()
        ]


@dataclass(frozen=True)
class Example:
    """One worked example: what is run, how numbers are read off, what is generated from them."""

    name: str
    runs: tuple[tuple[str, ...], ...]
    """Arguments after the interpreter, from the repository's root."""
    collect: Callable[[Path], Numbers]
    """Numbers of a repository in which all runs were made. Also checks what the prose says in words."""
    fragments: Callable[[Numbers], dict[str, str]]
    """File name below paper/tables -> LaTeX."""
    keep: Mapping[str, str]
    """Files that the runs write -> where they are committed, relative to the example."""
    image_pages: tuple[int, ...] = ()
    """Pages (from 1; negative from the end) that become images."""
    submodules: tuple[str, ...] = ()

    @property
    def root(self) -> Path:
        """The example's directory in the checkout."""
        return EXAMPLES / self.name


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file as dictionaries."""
    with path.open(newline="", encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def log_name(run: tuple[str, ...]) -> str:
    """`ablate` of both `experiments/ablate.py` and `-m experiments.ablate`."""
    return run[1].rpartition(".")[2] if run[0] == "-m" else Path(run[0]).stem


def run_experiments(example: Example, into: Path, python: str = sys.executable) -> Path:
    """Copy the repository (with submodules) below `into`, make all runs there, return the copy.

    Committed results are left out of the copy: what is read afterwards was computed now.
    """
    copy = into / example.name
    shutil.copytree(example.root / "repository", copy, ignore=shutil.ignore_patterns("__pycache__", "results"))
    for path in example.submodules:
        shutil.copytree(example.root / "submodules" / path, copy / path, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONIOENCODING": "utf-8",
    }
    for run in example.runs:
        done = subprocess.run(
            [python, *run], cwd=copy, env=environment, capture_output=True, encoding="utf-8", check=False
        )
        (copy / f"{log_name(run)}.log").write_text(done.stdout, encoding="utf-8")
        if done.returncode:
            raise ExampleError(
                f"{example.name}: `{' '.join(run)}` failed with exit code {done.returncode}:\n{done.stderr}"
            )
    return copy


def render_templates(example: Example, numbers: Numbers, ran: Path) -> dict[Path, str]:
    """Texts of all files with a template, by path relative to the example.

    `<< n("id") >>` is a number, `<< log("run_benchmark") >>` what a run printed, as the body of a JSON string when
    followed by `|json`.
    """
    environment = jinja2.Environment(
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        autoescape=False,  # plain text and JSON, never HTML
    )
    environment.filters["json"] = lambda text: json.dumps(text, ensure_ascii=False)[1:-1]
    environment.globals["n"] = lambda id_: numbers[id_]
    environment.globals["log"] = lambda name: (ran / f"{name}.log").read_text(encoding="utf-8")
    templates = example.root / "templates"
    texts = {}
    for path in sorted(templates.rglob("*.j2")):
        template = environment.from_string(path.read_text(encoding="utf-8"))
        texts[path.relative_to(templates).with_suffix("")] = template.render()
    return texts
