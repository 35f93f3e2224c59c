"""What a validation is about to run, and why it is that: full and smoke scale, seeds, data, files that should come.

The record only; `pipeline.validation.plan` makes it. It is stored with the task's validation, so that a reviewer sees
which command gave the numbers and which one merely shows that the code runs.
"""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field

from pipeline.schema import Record

__all__ = ["ExecutionPlan", "PlannedCommand", "PlannedFile", "RunScale", "Scale", "ScaleChange", "SeedUse"]

RunScale = Literal["full", "smoke"]
"""`full`: the paper's size, its numbers are compared. `smoke`: as small as the code's own settings allow; shows that it
runs and computes, and nothing about the numbers."""
Scale = Literal["full", "smoke", "auto"]
"""What is asked for. `auto`: full, and smoke where full does not fit this machine or its limits."""


_SHOWN: Final = 6


class PlannedCommand(Record):
    """A command without a shell, from `directory` below the repository's root."""

    argv: tuple[str, ...] = Field(min_length=1)
    directory: str = "."


class PlannedFile(Record):
    """A configuration as the smoke scale needs it; it replaces the repository's file in a copy."""

    path: str
    text: str


class ScaleChange(Record):
    """One setting that the smoke scale makes smaller."""

    name: str
    full: str
    """The value at full scale; `not set` where the command leaves it open."""
    smoke: str
    where: str
    """Where the code declares it: `train.py:14`, `configs/base.yaml:3`."""


class SeedUse(Record):
    """A random seed of the run."""

    name: str
    value: str
    """The value; of one that is set for each repeat, `0, 1, ...`."""
    source: Literal["command", "default", "config", "code", "set"]
    """`set`: the script takes one and nothing sets it, so that repeat n gets n - 1."""
    where: str


class ExecutionPlan(Record):
    """Both scales of a run."""

    commands: tuple[PlannedCommand, ...]
    """Full scale: as the repository says."""
    smoke: tuple[PlannedCommand, ...] = ()
    """Smoke scale; empty where the code has no setting that makes it smaller."""
    smoke_files: tuple[PlannedFile, ...] = ()
    changes: tuple[ScaleChange, ...] = ()
    no_smoke: str = ""
    """Why there is no smoke scale."""
    seeds: tuple[SeedUse, ...] = ()
    data_needs: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    """Files that the scripts write by a name that stands in their code."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the smoke scale makes smaller, and the seeds, as sentences."""
        if self.changes:
            changed = ", ".join(f"{item.name} {item.full} -> {item.smoke}" for item in self.changes[:_SHOWN])
            more = f" and {len(self.changes) - _SHOWN} more" if len(self.changes) > _SHOWN else ""
            smoke = f"Smoke scale: {changed}{more}"
        else:
            smoke = f"Smoke scale: none; {self.no_smoke}"
        seeds = [f"{seed.name} = {seed.value} ({seed.source}, {seed.where})" for seed in self.seeds[:_SHOWN]]
        return smoke, "Seeds: " + ("; ".join(seeds) if seeds else "none that could be read")
