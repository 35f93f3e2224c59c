"""What a file gains from the files it is linked with: a first score passed along edges, laid out once a snapshot.

Rank says "about the same thing"; links say "part of the same run". Edges are arrays, so that a task costs a
millisecond however often weights are learnt. Non-goal: which links there are (see `links`).
"""

from __future__ import annotations

import posixpath
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.locator.facts import FileFacts
from pipeline.locator.lexical import scaled
from pipeline.locator.links import Links
from pipeline.locator.stages import stage_of
from pipeline.locator.text import GENERIC

__all__ = ["Edges", "lay_edges", "link_signals"]

Vector = npt.NDArray[np.float64]
Positions = npt.NDArray[np.int64]
_NEAR: Final = 0.5
"""Difference of the first score that makes a file e times less likely to be the one."""
_GROUP: Final = 12
"""A directory or a section with more files than this says little of any two of them."""


@dataclass(frozen=True, slots=True)
class _Pairs:
    """Edges: `source[i]` leads to `target[i]`."""

    source: Positions
    target: Positions

    def forward(self, strength: Vector) -> Vector:
        """For each target, the strongest of its sources."""
        found = np.zeros(len(strength))
        np.maximum.at(found, self.target, strength[self.source])
        return found

    def backward(self, strength: Vector) -> Vector:
        """For each source, the strongest of its targets."""
        return _Pairs(self.target, self.source).forward(strength)


@dataclass(frozen=True, slots=True)
class _Groups:
    """Sets of things: thing `member[i]` belongs to set `group[i]`."""

    member: Positions
    group: Positions

    def others(self, strength: Vector, size: int) -> Vector:
        """For each of `size` things, the strongest other thing in any of its sets."""
        found = np.zeros(size)
        if not len(self.member):
            return found
        order = np.lexsort((-strength[self.member], self.group))
        member, group = self.member[order], self.group[order]
        first = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
        best = np.repeat(first, np.diff(np.r_[first, len(group)]))
        second = np.minimum(best + 1, len(member) - 1)  # every set has two members at least
        place = np.arange(len(member))
        other = np.where(place == best, second, best)
        np.maximum.at(found, member, strength[member[other]])
        return found


@dataclass(frozen=True, slots=True)
class Edges:
    """All edges between the files of an index, by position."""

    runs: _Pairs
    imports: _Pairs
    uses: _Pairs
    """Runnable code that is no test -> what it imports."""
    configs: _Pairs
    """Named or loaded by default, or named by a stated command."""
    composed: _Pairs
    """Script -> configurations that its configurations are composed of."""
    options: _Pairs
    siblings: _Groups
    sections: _Groups
    names: _Groups
    """Files of different kinds with one distinctive name: `ippo.py` and `ippo.yaml`."""
    steps: _Groups
    """Stages within a directory: things are (directory, stage)."""
    step_files: Positions
    step_of: Positions
    """The runnable files that `steps` are made of, and the (directory, stage) of each."""


def lay_edges(facts: Sequence[FileFacts], links: Links, static: Mapping[str, Vector]) -> Edges:
    """The edges of a snapshot, once."""
    position = {item.path: number for number, item in enumerate(facts)}

    def pairs(*maps: Mapping[str, Iterable[str]]) -> _Pairs:
        found = sorted(
            {
                (position[source], position[path])
                for edges in maps
                for source, targets in edges.items()
                if source in position
                for path in targets
                if path in position
            }
        )
        return _Pairs(*np.array(found, dtype=np.int64).reshape(-1, 2).T)

    directories: dict[str, list[int]] = defaultdict(list)
    names: dict[str, list[int]] = defaultdict(list)
    stages: dict[tuple[str, int], list[int]] = defaultdict(list)
    for number, item in enumerate(facts):
        folder, base = posixpath.split(item.path)
        name = posixpath.splitext(base)[0].lower()
        if name not in GENERIC and name != "__init__":
            names[name].append(number)
        if static["runnable"][number]:
            directories[folder].append(number)
            if not static["tests"][number]:
                stages[folder, stage_of(item.path)].append(number)
    users = {
        item.path
        for number, item in enumerate(facts)
        if item.file.kind == "python" and static["runnable"][number] and not static["tests"][number]
    }
    sections = [[position[path] for path in sorted(named) if path in position] for _, named, _ in links.sections]
    keys = sorted(stages)
    by_folder: dict[str, list[int]] = defaultdict(list)
    for number, (folder, _) in enumerate(keys):
        by_folder[folder].append(number)
    return Edges(
        runs=pairs(links.runs),
        imports=pairs(links.imports),
        uses=pairs({item.path: links.imports.get(item.path, set()) for item in facts if item.path in users}),
        configs=pairs(links.configs, links.commanded),
        composed=pairs(_composed(links.configs)),
        options=pairs(links.options, links.fitting),
        siblings=_groups(directories.values()),
        sections=_groups(sections),
        names=_groups(
            members
            for members in names.values()
            if len(members) <= 4 and len({facts[n].file.kind for n in members}) > 1
        ),
        steps=_groups(by_folder.values()),
        step_files=np.array([number for key in keys for number in stages[key]], dtype=np.int64),
        step_of=np.array([place for place, key in enumerate(keys) for _ in stages[key]], dtype=np.int64),
    )


def _groups(members: Iterable[Sequence[int]]) -> _Groups:
    kept = [group for group in members if 2 <= len(group) <= _GROUP]
    return _Groups(
        np.array([number for group in kept for number in group], dtype=np.int64),
        np.array([place for place, group in enumerate(kept) for _ in group], dtype=np.int64),
    )


def _composed(configs: Mapping[str, set[str]]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for source, targets in configs.items():
        inner = {path for target in targets for path in configs.get(target, ())}
        if inner:
            found[source] = inner - targets
    return found


def link_signals(edges: Edges, first: Vector, *, documents: bool = True) -> dict[str, Vector]:
    """The vectors of all signals that depend on other files' first scores.

    Args:
        edges: from `lay_edges`.
        first: a first score of every file. Its upper half, scaled to 1, is passed on as strength; beside it how near a
            file lies to the top, which only the best few have.
        documents: whether README and documentation count.
    """
    size = len(first)
    strength = scaled(np.maximum(first - np.quantile(first, 0.5) if size else first, 0.0))
    chance = np.exp((first - first.max()) / _NEAR) if size else first
    together = [edges.runs.forward(chance), edges.runs.backward(chance), edges.configs.forward(chance),
                edges.imports.forward(chance)]  # fmt: skip
    return {
        "run_by": edges.runs.forward(strength),
        "config_of": np.maximum(edges.configs.forward(strength), edges.composed.forward(strength)),
        "option_of": edges.options.forward(strength),
        "sibling": edges.siblings.others(strength, size),
        "same_section": edges.sections.others(strength, size) if documents else np.zeros(size),
        "with_best": np.max(together, axis=0),
        "uses_best": edges.uses.backward(chance),
        "config_of_best": edges.configs.forward(chance),
        "named_like_best": edges.names.others(chance, size),
        "step_of_best": _steps(edges, chance),
    }


def _steps(edges: Edges, chance: Vector) -> Vector:
    """The best file of another stage in the same directory."""
    found = np.zeros(len(chance))
    if len(edges.step_files):
        count = int(edges.step_of.max()) + 1
        best = np.zeros(count)
        np.maximum.at(best, edges.step_of, chance[edges.step_files])
        found[edges.step_files] = edges.steps.others(best, count)[edges.step_of]
    return found
