"""Which files belong together to answer one task: an entry point, what runs it, what it is configured by, its steps.

A chain grows from one file of the ranking (its seed). A wrapper leads to what it runs, a configuration to what loads
it, a library to a runnable file that imports it. On rank alone only scripts for other stages beside it are taken in,
when they speak of the task nearly as much: rank says "about the same thing", links say "part of the same run".
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass, field
from typing import Literal

from pipeline.locator.ranking import Ranking
from pipeline.locator.stages import is_rehearsal, stage_of

__all__ = ["ChainPlan", "Role", "plan_chains"]

Role = Literal["entry", "config", "wrapper", "library"]

_MAX_ENTRIES = 4
# A step of the same documented sequence or wrapper joins when its score is this near to the entry's. In 103 published
# tasks, out of fold, true companions lie a median of 1.3 below the first file, other linked files 2.9.
_STEP_GAP = 1.6
_CONFIG_GAP = 2.5
_WRAPPED_GAP = 4.0
_IMPORT_DEPTH = 4
# A file that a link alone brought in leaves again when it lies this far below the best one; a script for another stage
# in the same directory joins when it lies this near to it. Of 154 companions of a true file in 103 published tasks, 98
# lie in its directory and 43 are linked with it. F1 of the set of files, out of fold: links alone .48, without the far
# ones .50, with the other stages .54; with all near siblings, whatever their stage, .52.
_FAR_GAP = 1.5
_NEAR_GAP = 1.3
_NEAR_RANK = 6


@dataclass(slots=True)
class ChainPlan:
    """A chain before its commands are known."""

    seed: str
    entries: list[str]
    members: dict[str, Role] = field(default_factory=dict)
    """All files in the order in which they are run or read."""
    because: dict[str, str] = field(default_factory=dict)
    """Why a file is in the chain, beyond its rank."""


def plan_chains(ranking: Ranking, limit: int) -> list[ChainPlan]:
    """Up to `limit` chains with different entry points, best first."""
    plans: list[ChainPlan] = []
    taken: set[str] = set()
    for number in ranking.order[: 12 + 4 * limit]:
        seed = ranking.index.facts[number].path
        if ranking.index.static["tests"][number]:
            continue  # tests check code, they make no results of a paper
        plan = _grow(ranking, seed)
        if plan is None or not plan.entries or plan.entries[0] in taken or set(plan.entries) <= taken:
            continue
        taken.update(plan.entries)
        _drop_far(ranking, plan)
        wide = _with_neighbours(ranking, plan) if not plans else None
        plans += [wide, plan] if wide is not None else [plan]
        if len(plans) >= limit:
            break
    return plans[:limit]


def _drop_far(ranking: Ranking, plan: ChainPlan) -> None:
    """Take out what hangs on the chain by a link but says little of the task; what is run stays."""
    position = ranking.index.position
    top = max((ranking.score(path) for path in plan.members if path in position), default=0.0)
    for path in [item for item, role in plan.members.items() if role in {"wrapper", "library"}]:
        if path != plan.seed and top - ranking.score(path) > _FAR_GAP:
            del plan.members[path]


def _with_neighbours(ranking: Ranking, plan: ChainPlan) -> ChainPlan | None:
    """The best chain with the scripts for other stages (train, evaluate, plot) beside it; None: there are none.

    Two scripts for the same stage are two experiments. The chain without the added ones follows as the next best one,
    for runs in which a sibling turns out to belong to another experiment.
    """
    index = ranking.index
    top = float(ranking.scores[ranking.order[0]])
    directories = {posixpath.dirname(path) for path in plan.members}
    joined: dict[str, Role] = {}
    for number in ranking.order[:_NEAR_RANK]:
        path, kind = index.facts[number].path, index.facts[number].file.kind
        if path in plan.members or top - float(ranking.scores[number]) > _NEAR_GAP:
            continue
        if posixpath.dirname(path) not in directories or not index.static["runnable"][number]:
            continue
        if any(stage_of(path) == stage_of(other) for other in (*plan.members, *joined)):
            continue
        if not index.static["tests"][number] and not index.static["teaching"][number]:
            joined[path] = "wrapper" if kind in {"shell", "make"} else "entry"
    runs = [path for path, role in joined.items() if role == "entry"]
    if not joined or len(plan.entries) + len(runs) > _MAX_ENTRIES:
        return None
    wide = ChainPlan(plan.seed, sorted([*plan.entries, *runs], key=stage_of), {**plan.members, **joined})
    wide.because = {**plan.because, **dict.fromkeys(joined, "beside it, and the task is about it as well")}
    in_turn: dict[str, Role] = dict.fromkeys(wide.entries, "entry")
    wide.members = _ordered({**in_turn, **wide.members})
    return wide


def _grow(ranking: Ranking, seed: str) -> ChainPlan | None:
    index = ranking.index
    facts = index.facts[index.position[seed]]
    plan = ChainPlan(seed, [])
    kind = facts.file.kind
    if kind in {"shell", "make"}:
        targets = _one_perstage_of(ranking, _targets(ranking, seed))
        if not targets:
            return None
        plan.entries = targets
        plan.members[seed] = "wrapper"
        plan.because[seed] = f"runs {', '.join(targets)}"
    elif kind == "config":
        loader = _best(ranking, [path for path, found in index.links.configs.items() if seed in found])
        if loader is None:
            return None
        grown = _grow(ranking, loader) if index.facts[index.position[loader]].file.kind != "config" else None
        if grown is None:
            return None
        grown.seed = seed
        grown.members.setdefault(seed, "config")
        grown.because.setdefault(seed, f"loaded by {loader}")
        return grown
    elif kind == "notebook" or _is_runnable(ranking, seed):
        plan.entries = [seed]
    else:
        user = _runnable_importer(ranking, seed)
        plan.entries = [user] if user else [seed]
        if user:
            plan.members[seed] = "library"
            plan.because[seed] = f"imported by {user}"
    _add_steps(ranking, plan)
    plan.entries.sort(key=stage_of)
    _add_wrapper_and_configs(ranking, plan)
    for path in plan.entries:
        plan.members.setdefault(path, "entry")
    plan.members = _ordered(plan.members)
    return plan


def _ordered(members: dict[str, Role]) -> dict[str, Role]:
    rank_of: dict[Role, int] = {"wrapper": 0, "config": 1, "entry": 2, "library": 3}
    return dict(sorted(members.items(), key=lambda item: rank_of[item[1]]))


def _is_runnable(ranking: Ranking, path: str) -> bool:
    index = ranking.index
    number = index.position[path]
    return bool(
        index.static["runnable"][number] or index.static["documented"][number] or index.static["called"][number]
    )


def _targets(ranking: Ranking, script: str, depth: int = 2) -> list[str]:
    """Python files that a wrapper runs, directly or through other wrappers, in order."""
    found: list[str] = []
    index = ranking.index
    ordered = [command.target for command in index.links.commands if command.path == script]
    for path in [*dict.fromkeys(ordered), *sorted(index.links.runs.get(script, ()))]:
        number = index.position.get(path)
        if number is None:
            continue
        if index.facts[number].file.kind in {"python", "notebook"}:
            found.append(path)
        elif depth and path != script:
            found += _targets(ranking, path, depth - 1)
    unique = list(dict.fromkeys(found))
    if len(unique) > _MAX_ENTRIES:
        best = set(sorted(unique, key=lambda path: (-ranking.score(path), path))[:_MAX_ENTRIES])
        unique = [path for path in unique if path in best]
    return unique


def _one_perstage_of(ranking: Ranking, targets: list[str]) -> list[str]:
    """A wrapper that runs several experiments one after the other answers with the one that the task is about."""
    kept: dict[int, str] = {}
    for path in targets:
        known = kept.get(stage_of(path))
        if known is None or ranking.score(path) > ranking.score(known):
            kept[stage_of(path)] = path
    top = max((ranking.score(path) for path in kept.values()), default=0.0)
    return [path for path in targets if path in kept.values() and top - ranking.score(path) <= _WRAPPED_GAP]


def _best(ranking: Ranking, paths: list[str]) -> str | None:
    known = [path for path in paths if path in ranking.index.position]
    return min(known, key=lambda path: (-ranking.score(path), path)) if known else None


def _runnable_importer(ranking: Ranking, path: str) -> str | None:
    """The best-scored runnable file that reaches `path` by imports, nearest first."""
    importers: dict[str, set[str]] = {}
    for source, targets in ranking.index.links.imports.items():
        for target in targets:
            importers.setdefault(target, set()).add(source)
    seen, level = {path}, [path]
    for _ in range(_IMPORT_DEPTH):
        level = sorted({source for target in level for source in importers.get(target, ())} - seen)
        seen.update(level)
        runnable = [source for source in level if source in ranking.index.position and _is_runnable(ranking, source)]
        tests = ranking.index.static["tests"]
        user = _best(ranking, [item for item in runnable if not tests[ranking.index.position[item]]])
        if user:
            return user
    return None


def _add_steps(ranking: Ranking, plan: ChainPlan) -> None:
    """Scripts that the same wrapper or documented block runs beside the entry, when the task is about them too."""
    index = ranking.index
    top = max((ranking.score(path) for path in plan.entries if path in index.position), default=0.0)
    groups: list[tuple[str, set[str]]] = [
        (f"documented with it in {section.path}:{section.line}", set(run)) for section, _, run in index.links.sections
    ]
    groups += [(f"run with it by {path}", set(runs)) for path, runs in index.links.runs.items()]
    for reason, group in groups:
        if not set(plan.entries) & group or len(group) > 2 * _MAX_ENTRIES:
            continue
        for path in sorted(
            group - set(plan.entries), key=lambda item: -ranking.score(item) if item in index.position else 0
        ):
            if path not in index.position or len(plan.entries) >= _MAX_ENTRIES:
                continue
            if index.facts[index.position[path]].file.kind not in {"python", "notebook"}:
                continue
            if any(stage_of(path) == stage_of(entry) for entry in plan.entries):
                continue  # two scripts for the same stage are two experiments, not two steps of one
            if top - ranking.score(path) <= _STEP_GAP and not index.static["tests"][index.position[path]]:
                plan.entries.append(path)
                plan.because[path] = reason


def _add_wrapper_and_configs(ranking: Ranking, plan: ChainPlan) -> None:
    index = ranking.index
    top = max((ranking.score(path) for path in plan.entries if path in index.position), default=0.0)
    # a wrapper that runs several more scripts is that of all experiments, not of this one
    wrappers = [
        path
        for path, runs in index.links.runs.items()
        if path in index.position and runs & set(plan.entries) and len(runs - set(plan.entries)) <= 1
    ]
    wrapper = _best(ranking, [path for path in wrappers if index.facts[index.position[path]].file.kind == "shell"])
    if wrapper and "wrapper" not in plan.members.values() and top - ranking.score(wrapper) <= _STEP_GAP:
        plan.members[wrapper] = "wrapper"
        plan.because[wrapper] = f"runs {', '.join(path for path in plan.entries if path in index.links.runs[wrapper])}"
    sources = [*plan.entries, *(path for path, role in plan.members.items() if role == "wrapper")]
    for source in sources:
        configs = [path for path in index.links.configs.get(source, ()) if path in index.position]
        best = _best(ranking, [path for path in configs if not is_rehearsal(path)] or configs)
        if best and (top - ranking.score(best) <= _CONFIG_GAP or len(configs) == 1):
            plan.members.setdefault(best, "config")
            plan.because.setdefault(best, f"loaded by {source}")
