"""Commands, settings and needs of the tracer against what was written by hand for public repositories.

Each case (`settings.jsonl`) is a task on one repository at one commit: its entry points, parts of the command that
runs it, 8 to 14 effective values with the lines that say so, and what the run needs. All were written before the
tracer was run on them. Repositories come from outside: `DIR/<name>/`. With `--given` the entry points are taken as
known, without it they are what `locate` finds. Non-goal: the ranking, which `benchmarks.locator.run` measures.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from pipeline.locator import Chain, TaskQuery, build_index, locate
from pipeline.locator.directory import directory_snapshot
from pipeline.locator.query import QueryWords
from pipeline.locator.usage import usage_for
from pipeline.task import SourceScript, Usage
from pipeline.tracing import Trace, trace
from pipeline.tracing.loading import named_configs
from pipeline.tracing.values import SEVERAL

__all__ = ["main", "score"]


def score(case: dict[str, Any], usage: list[Usage], traced: Trace | None) -> Counter[str]:
    """Values right, among several, wrong and missing; lines of the right ones; parts of commands; needs."""
    found = Counter({"values": len(case["values"]), "parts": len(case["command"]), "needs": len(case["needs"])})
    settings = {item.name: item for item in (traced.hyperparameters if traced is not None else ())}
    for wanted in case["values"]:
        name = wanted["name"]
        fitting = (
            [settings[name]] if name in settings else [s for key, s in settings.items() if key.endswith(f".{name}")]
        )
        right = [item for item in fitting if any(_same(item.value, value) for value in wanted["value"])]
        several = [
            item for item in fitting if any(_same(v, w) for v in item.value.split(SEVERAL) for w in wanted["value"])
        ]
        if not fitting:
            found["missing"] += 1
        elif right and len(right) == len(fitting):
            found["right"] += 1
            places = {
                (at.path, line) for at in right[0].evidence if at.kind == "code" for line in range(at.start, at.end + 1)
            }
            found["lines right"] += any((path, line) in places for path, line in wanted["lines"])
        else:
            found["among several" if several else "wrong"] += 1
    commands = [" ".join(step.argv).replace("=", " ") for step in usage]
    found["parts right"] = sum(any(part.replace("=", " ") in text for text in commands) for part in case["command"])
    needs = [need.lower() for need in (traced.data_needs if traced is not None else ())]
    found["needs right"] = sum(any(need.lower() in text for text in needs) for need in case["needs"])
    return found


def _same(left: str, right: str) -> bool:
    try:
        return float(left.replace("_", "")) == float(right.replace("_", ""))
    except ValueError:
        plain = [text.strip().strip("'\"").lower().replace(" ", "").rstrip("/") for text in (left, right)]
        return plain[0] == plain[1]


def _run(case: dict[str, Any], directory: Path, *, given: bool) -> tuple[list[Usage], Trace | None]:
    snapshot = directory_snapshot(directory)
    index = build_index(snapshot)
    query = TaskQuery(question=case["question"], method=case["method"])
    if not given:
        chain: Chain | None = locate(index, query).chain
        return (
            (list(chain.usage), trace(snapshot, chain.sources, chain.usage, about=query.text)) if chain else ([], None)
        )
    words = QueryWords.of(query)
    usage = [step for entry in case["entries"] for step in usage_for(index, entry, words).usage]
    sources = [SourceScript(path=path, role="entry", score=1.0) for path in case["entries"]]
    hydra = [path for entry in case["entries"] for path in sorted(index.links.configs.get(entry, ()))]
    configs = named_configs(snapshot, usage, case["entries"]) or hydra[:1]
    sources += [SourceScript(path=path, role="config", score=1.0) for path in configs if ":" not in path]
    return usage, trace(snapshot, sources, usage, about=query.text)


def main() -> None:
    """Print a line for each case and the sums."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=Path, default=Path(__file__).with_name("settings.jsonl"))
    parser.add_argument("--repositories", type=Path, required=True)
    parser.add_argument("--given", action="store_true", help="take the entry points as known")
    arguments = parser.parse_args()
    sums: dict[str, Counter[str]] = {}
    for line in arguments.cases.read_text().splitlines():
        case = json.loads(line)
        directory = arguments.repositories / case["repository"].rpartition("/")[2]
        if not directory.is_dir():
            print(f"{case['repository']}: not in {arguments.repositories}, left out", file=sys.stderr)
            continue
        found = score(case, *_run(case, directory, given=arguments.given))
        sums.setdefault(case["set"], Counter()).update(found)
        print(case["set"], case["repository"], dict(found))
    for name, found in sorted(sums.items()):
        print(f"set {name}: {dict(found)}")


if __name__ == "__main__":
    main()
