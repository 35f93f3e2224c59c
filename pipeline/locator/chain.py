"""Which files belong together to answer one task: what is run, what states the run, what it is configured by.

A chain grows from one file of the ranking (its seed): a script that states commands leads to what they run, a
configuration or a document to what loads or states it, a part to a program that imports it. Beside the seed's own
program, a chain has what the same stated block runs (prepare, train, evaluate). Non-goal: the order of the ranking.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Final, Literal

from pipeline.locator.index import RepositoryIndex
from pipeline.locator.links import KnownCommand
from pipeline.locator.places import acts
from pipeline.locator.ranking import Ranking, is_config

__all__ = ["ChainPlan", "Role", "plan_chains"]

Role = Literal["entry", "config", "wrapper", "library"]
_MAX_ENTRIES: Final = 4
_MAX_STEPS: Final = 3
"""Programs of one block that are steps of one run (prepare, train, evaluate); more are a list to choose from."""
_SEEDS: Final = 24
"""Files of the ranking that a chain is looked for from."""
_IMPORT_DEPTH: Final = 4
_ORDER: Final[dict[Role, int]] = {"wrapper": 0, "config": 1, "entry": 2, "library": 3}


@dataclass(slots=True)
class ChainPlan:
    """A chain before its commands are known."""

    seed: str
    entries: list[str]
    members: dict[str, Role] = field(default_factory=dict)
    """All files, in the order in which they are run or read."""
    because: dict[str, str] = field(default_factory=dict)
    """Why a file is in the chain, beyond its rank."""


def plan_chains(ranking: Ranking, limit: int) -> list[ChainPlan]:
    """Up to `limit` chains with different entry points, best first."""
    plans: list[ChainPlan] = []
    taken: set[str] = set()
    for number in ranking.order[:_SEEDS]:
        plan = _grow(ranking, ranking.index.facts[number].path)
        if plan is None or set(plan.entries) <= taken:
            continue
        taken.update(plan.entries)
        plans.append(plan)
        if len(plans) >= limit:
            break
    return plans


def _grow(ranking: Ranking, seed: str) -> ChainPlan | None:
    """The chain of one file; None where nothing is run for it."""
    index = ranking.index
    number = index.position[seed]
    kind, place = index.facts[number].file.kind, index.places[number]
    if place.test or not ranking.scores[number]:
        return None  # tests check code, they make no results of a paper
    plan = ChainPlan(seed, [])
    if kind in {"shell", "make"}:
        plan.entries = _targets(ranking, seed)
        if len(plan.entries) > _MAX_STEPS:  # all experiments of a repository: the one of the task, and not the list
            plan.entries = [best] if (best := _best(ranking, plan.entries)) else []
        else:
            plan.members[seed] = "wrapper"
            plan.because[seed] = f"runs {', '.join(plan.entries)}"
    elif kind == "document":
        stated = [unit.command.target for unit in index.units if unit.command.path == seed]
        plan.entries = [best] if (best := _best(ranking, stated)) else []
    elif is_config(index.facts[number]):
        loads = [path for edges in (index.links.configs, index.links.commanded, index.links.options)
                 for path, found in edges.items() if seed in found]  # fmt: skip
        loader = _best(ranking, [path for path in loads if _runs(index, path)])
        plan.entries = [loader] if loader else []
        plan.members[seed] = "config"
        plan.because[seed] = f"loaded by {loader}"
    elif _runs(index, seed):
        plan.entries = [seed]
    else:
        user = _importer(ranking, seed)
        plan.entries = [user] if user else []
        plan.members[seed] = "library"
        plan.because[seed] = f"imported by {user}"
    if not plan.entries:
        return None
    _add_steps(ranking, plan)
    _add_wrapper(ranking, plan)
    _add_config(ranking, plan)
    plan.members |= {path: "entry" for path in plan.entries if path not in plan.members}
    plan.members = dict(sorted(plan.members.items(), key=lambda item: _ORDER[item[1]]))
    return plan


def _runs(index: RepositoryIndex, path: str) -> bool:
    """Is it a program: run by itself, or by a command that is stated?"""
    number = index.position.get(path)
    if number is None or index.facts[number].file.kind not in {"python", "notebook"}:
        return False
    stated = any(command.target == path for command in index.links.commands)
    return index.places[number].runs or (stated and acts(index.facts[number]))


def _targets(ranking: Ranking, script: str, depth: int = 2) -> list[str]:
    """Programs that a script runs, directly or through other scripts, in order; of many, the best for the task."""
    index = ranking.index
    found: list[str] = []
    stated = [command.target for command in index.links.commands if command.path == script]
    for path in dict.fromkeys([*stated, *sorted(index.links.runs.get(script, ()))]):
        if _runs(index, path):
            found.append(path)
        elif depth and path != script and path in index.links.runs:
            found += _targets(ranking, path, depth - 1)
    best = set(sorted(set(found), key=lambda path: (-ranking.score(path), path))[:_MAX_ENTRIES])
    return [path for path in dict.fromkeys(found) if path in best]


def _best(ranking: Ranking, paths: list[str]) -> str | None:
    known = [path for path in paths if path in ranking.index.position]
    return min(known, key=lambda path: (-ranking.score(path), path)) if known else None


def _importer(ranking: Ranking, path: str) -> str | None:
    """The best-scored program that reaches `path` by imports, nearest first."""
    index = ranking.index
    importers: dict[str, set[str]] = {}
    for source, targets in index.links.imports.items():
        for target in targets:
            importers.setdefault(target, set()).add(source)
    seen, level = {path}, [path]
    for _ in range(_IMPORT_DEPTH):
        level = sorted({source for target in level for source in importers.get(target, ())} - seen)
        seen.update(level)
        programs = [item for item in level if _runs(index, item) and not index.places[index.position[item]].test]
        if user := _best(ranking, programs):
            return user
    return None


def _add_steps(ranking: Ranking, plan: ChainPlan) -> None:
    """What is run in the same block of a document as the entry, in its order, when the block is not a long list."""
    index, unit = ranking.index, ranking.unit(plan.entries[0])
    if unit is None or unit.command.origin != "document" or len(plan.entries) > 1:
        return
    stated = unit.command
    block = [other.command for other in index.units
             if other.command.path == stated.path and _paragraph(other.command) == _paragraph(stated)]  # fmt: skip
    targets = [command.target for command in sorted(block, key=lambda item: item.line) if _runs(index, command.target)]
    steps = list(dict.fromkeys(targets))
    if 1 < len(steps) <= _MAX_STEPS and plan.entries[0] in steps:
        plan.entries = steps
        place = f"stated with it in {stated.path}:{stated.line}"
        plan.because |= {path: place for path in steps if path != plan.seed}


def _paragraph(command: KnownCommand) -> list[str]:
    """The heading and the paragraph above a command, without its comment."""
    return command.context.split("\n")[:2]


def _add_wrapper(ranking: Ranking, plan: ChainPlan) -> None:
    """The script that states the entry's best command, where it runs little else."""
    index = ranking.index
    unit = ranking.unit(plan.entries[0])
    path = unit.command.path if unit is not None and unit.command.origin in {"shell", "make"} else ""
    if path in index.position and index.links.runs.get(path, set()) <= set(plan.entries):
        plan.members.setdefault(path, "wrapper")
        plan.because.setdefault(path, f"runs {', '.join(plan.entries)}")


def _add_config(ranking: Ranking, plan: ChainPlan) -> None:
    """The configuration that the entry, or the script that runs it, loads by itself; of several, the best."""
    if "config" in plan.members.values():
        return
    for source in [*plan.entries, *(path for path, role in plan.members.items() if role == "wrapper")]:
        loaded = [path for path in ranking.index.links.configs.get(source, ()) if ranking.score(path)]
        if best := _best(ranking, loaded):
            plan.members.setdefault(posixpath.normpath(best), "config")
            plan.because.setdefault(best, f"loaded by {source}")
