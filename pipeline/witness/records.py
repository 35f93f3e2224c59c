"""What a witness tells of a run: its Python processes, the functions that ran in them, their random streams and files.

A witness is loaded into every Python process of a run by a file of ours in the environment's `site-packages`, which the
code under test did not put there. It can also move what the run starts from: then the same code is run under another
premise, and what it computes has to answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, Self

from pydantic import Field, FiniteFloat, model_validator

from pipeline.schema import Problem, Record, StoredRecord

__all__ = ["FunctionRun", "Perturbation", "Plotted", "ProcessRun", "Response", "WitnessReport"]


class Perturbation(StrEnum):
    """What is moved from outside in a run."""

    NONE = "none"
    MOVED = "moved"
    """Every random stream starts elsewhere: seeds that the code fixes are moved by a fixed amount."""
    MUTED = "muted"
    """Continuous random draws return the mean of their distribution: what is only noise around a typed value stands
    bare, what is computed from drawn data is another thing."""
    PERMUTED = "permuted"
    """Labels and targets lose their tie to the inputs: in data files that are read, and in what the repository's own
    functions and the data sets of libraries return."""


class FunctionRun(Record):
    """A function below the tree that ran, over all processes of the run."""

    path: str
    """Relative to the tree; the function `<module>` is the file itself, executed."""
    name: str
    """Qualified name, e.g. `Ridge.fit`."""
    line: int = Field(ge=0)
    calls: int = Field(ge=1)
    arguments: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """(parameter, distinct values as text, in the order of their first use): numbers, strings, booleans and None, and
    short sequences of these; at most 64 values each. Arrays and other objects are left out."""
    callers: tuple[str, ...] = ()
    """`path:line` below the tree, at most 32."""


class Plotted(Record):
    """One series of numbers that a plot was given: a line, a set of bars, a row of a heat map or of a drawn table."""

    kind: str
    """The function of matplotlib that was given it (`barh` for bars that lie), or the type of a trace of plotly."""
    axes: int = Field(ge=0)
    """Which axes of the process it stands in, from 1 on."""
    title: str = ""
    """Of the axes, else of the figure."""
    x_label: str = ""
    y_label: str = ""
    """Of the axis that the values are read from: of lying bars it is the horizontal one, and `x_label` the other."""
    series: str = ""
    """Its name in the legend, or of the row; empty where the program gave none."""
    x: tuple[FiniteFloat | str, ...] = Field(default=(), max_length=2000)
    """Where each value stands: a number, or the text that stands there (a category, a date, a named tick)."""
    values: tuple[FiniteFloat, ...] = Field(default=(), max_length=2000)
    errors: tuple[FiniteFloat, ...] = Field(default=(), max_length=2000)
    """Half lengths of the error bars, one for each value; empty where there are none."""

    @model_validator(mode="after")
    def _check_lengths(self) -> Self:
        if len(self.x) != len(self.values) or len(self.errors) not in {0, len(self.values)}:
            raise ValueError("values, their places and their error bars differ in number")
        return self


class ProcessRun(Record):
    """One Python process of a run."""

    argv: tuple[str, ...]
    directory: str
    """Relative to the tree, absolute outside."""
    functions: tuple[FunctionRun, ...] = ()
    libraries: tuple[tuple[str, int], ...] = ()
    """(top-level package outside the tree, calls of its Python functions)."""
    seeds: tuple[str, ...] = ()
    """Distinct seeds given to random generators, in order, as text; at most 256."""
    draws: int = Field(default=0, ge=0)
    """Calls that drew random values or shuffled."""
    touched: int = Field(default=0, ge=0)
    """How often the perturbation changed a value: 0 says that this process was not perturbed."""
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """Files opened, relative to the tree where below it, at most 512 each."""
    printed: str = ""
    """Text that went through `sys.stdout`, its last 256 KiB."""
    plotted: tuple[Plotted, ...] = Field(default=(), max_length=400)
    """What matplotlib and plotly were given, in the order of the calls: the first and the last 1,000 values of each
    series, the first 200,000 of all; images of up to 400 cells; text only where it is a number."""
    facts: tuple[str, ...] = ()
    """What an experiment does not do and a stand-in may: `print` replaced, modules of the tree in place of installed
    ones, start-up files of its own, the tracer taken out; each with file and line where known."""
    complete: bool = True
    """Did it end in order? Otherwise what is told may lack its end."""


class WitnessReport(StoredRecord):
    """All Python processes of one run."""

    SCHEMA_VERSION: ClassVar[int] = 1

    perturbation: Perturbation = Perturbation.NONE
    amount: int = 0
    """Of a `moved` run: by which its seeds were moved."""
    processes: tuple[ProcessRun, ...] = ()
    files_permuted: int = Field(default=0, ge=0)
    """Data files whose columns were permuted before the run."""
    problems: tuple[Problem, ...] = ()

    @property
    def functions(self) -> tuple[FunctionRun, ...]:
        """Of all processes together: an experiment may well start a process for each of its levels."""
        groups: dict[tuple[str, str], list[FunctionRun]] = {}
        for process in self.processes:
            for function in process.functions:
                groups.setdefault((function.path, function.name), []).append(function)
        return tuple(_joined(group) for group in groups.values())

    @property
    def seeds(self) -> tuple[str, ...]:
        """Of all processes together, each once."""
        return tuple(dict.fromkeys(seed for process in self.processes for seed in process.seeds))

    @property
    def touched(self) -> int:
        """How often it changed something: in all processes, and in data files before they began."""
        return self.files_permuted + sum(process.touched for process in self.processes)


def _joined(group: Sequence[FunctionRun]) -> FunctionRun:
    """One function's record over several processes."""
    if len(group) == 1:
        return group[0]
    arguments: dict[str, dict[str, None]] = {}
    for function in group:
        for name, values in function.arguments:
            arguments.setdefault(name, {}).update(dict.fromkeys(values))
    return group[0].evolve(
        calls=sum(function.calls for function in group),
        arguments=tuple((name, tuple(values)) for name, values in arguments.items()),
        callers=tuple(dict.fromkeys(caller for function in group for caller in function.callers)),
    )


class Response(Record):
    """How the numbers of an experiment answer to a perturbation; that of a task's own code is part of its truth."""

    perturbation: Perturbation
    values: tuple[tuple[str, float], ...] = ()
    """(claim id, value under the perturbation in the claim's scale), of those that the run still printed."""
    touched: int = 0
    failed: bool = False
    """The run did not end well under it: it depends on what was moved."""
