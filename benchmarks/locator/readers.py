"""Measure the locator's reader on published tasks: files found, calls, tokens, refusals; repository by repository.

    python -m benchmarks.locator.readers prepare WORK [PAPER ...] --cases CASES --commits COMMITS --mirrors DIR
    python -m benchmarks.locator.readers ask WORK [PAPER ...]
    python -m benchmarks.locator.readers score WORK [PAPER ...] --cases CASES

`prepare` exports each repository at its commit to WORK/repositories/PAPER and writes the tasks without their truth to
WORK/cases/PAPER.jsonl: question, method and expected outcome, as the benchmark of the rules has them. `ask` gives them
to `expbench locate --cases --engine model`, one repository at a time, at the endpoint that the environment names (a
model, or a desk: `expbench desk DIR`); it goes on where it ended, and may run for several papers in several processes.
`score` alone sees the truth. COMMITS: JSON, paper -> {"repo": "owner/name", "head": commit}; a mirror is a directory
DIR/owner+name/..., bare or not.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.locator.cases import METRICS, score, table
from flows.locate_inputs import Case, read_cases
from pipeline.llm import CallLedger
from pipeline.locator import build_index
from pipeline.locator.directory import directory_snapshot
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.repository import open_snapshot

GIVEN = ("paper_id", "task_index", "question", "method", "expected_outcome")


def prepare(work: Path, cases: Path, commits: Path, mirrors: Path, papers: Sequence[str]) -> None:
    """Export repositories and write tasks without their truth; says which repositories are missing."""
    known = json.loads(commits.read_text(encoding="utf-8"))
    for paper, rows in _by_paper(cases, papers):
        mirror = mirrors / known[paper]["repo"].replace("/", "+")
        source = next((place for place in (*sorted(mirror.glob("*")), mirror) if _is_git(place)), None)
        if source is None:
            print(f"{paper}: {known[paper]['repo']} is missing: no git directory in {mirror}")
            continue
        into = work / "repositories" / paper
        if not into.with_name(f"{into.name}.json").is_file():
            open_snapshot(str(source), commit=known[paper]["head"], into=into)
        told = [{name: "" if row.get(name) is None else row[name] for name in GIVEN} for row in rows]
        target = work / "cases" / f"{paper}.jsonl"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in told), encoding="utf-8")
        print(f"{paper}: {len(rows)} tasks, {known[paper]['repo']} at {known[paper]['head'][:12]}")


def _is_git(place: Path) -> bool:
    return (place / ".git").exists() or (place / "HEAD").is_file()


def ask(work: Path, papers: Sequence[str]) -> None:
    """Let the model of the environment choose, one repository at a time."""
    for cases in sorted((work / "cases").glob("*.jsonl")):
        if papers and cases.stem not in papers:
            continue
        out = work / "predictions" / cases.name
        if out.is_file():
            continue
        out.parent.mkdir(parents=True, exist_ok=True)
        command = ["locate", "--cases", cases, "--repositories", work / "repositories", "--out", out]
        run = "from flows.cli import main; main()"
        subprocess.run([sys.executable, "-c", run, *map(str, command), "--engine", "model"], check=True)


def evaluate(work: Path, cases: Path, papers: Sequence[str]) -> None:
    """Print metrics of the reader and of the rules on the same tasks, and what the reader took."""
    reader: dict[str, list[dict[str, float]]] = {}
    rules: dict[str, list[dict[str, float]]] = {}
    cost: Counter[str] = Counter()
    tasks = 0
    print("| paper | tasks | hit@1 | calls | tokens in a task | tokens out a task | refused | left to the rules |")
    print("|---" * 8 + "|")
    for paper, rows in _by_paper(cases, papers):
        found = work / "predictions" / f"{paper}.jsonl"
        if not found.is_file():
            print(f"| {paper} | {len(rows)} | no prediction yet | | | | | |")
            continue
        predicted = {item["task_index"]: item for item in map(json.loads, found.read_text().splitlines())}
        asked = {case.task_index: case for case in read_cases(work / "cases" / f"{paper}.jsonl")}
        index = build_index(directory_snapshot(work / "repositories" / paper))
        ranked = {number: _by_rules(index, case) for number, case in asked.items()}
        truth = {row["task_index"]: frozenset(row["sources"]) for row in rows}
        reader[paper] = [score(_unique(predicted[number]["ranked"]), truth[number]) for number in truth]
        rules[paper] = [score(ranked[number], truth[number]) for number in truth]
        taken = Counter({"tasks": len(rows), "rules": sum(item["engine"] == "keyless" for item in predicted.values())})
        taken += _taken(found.with_name(f"{found.name}.model"))
        cost += taken
        tasks += len(rows)
        hit = np.mean([row["hit@1"] for row in reader[paper]])
        print(f"| {paper} | {len(rows)} | {hit:.3f} | {taken['calls']} | {taken['in'] / len(rows):.0f} | "
              f"{taken['out'] / len(rows):.0f} | {taken['refused']} | {taken['rules']} |")  # fmt: skip
    if not tasks:
        return
    lines = [("reader, mean over papers", _macro(reader)), ("rules, mean over papers", _macro(rules)),
             ("reader, mean over tasks", _mean(reader)), ("rules, mean over tasks", _mean(rules))]  # fmt: skip
    print(f"\n{table(lines, METRICS)}\n\n{tasks} tasks of {len(reader)} papers: {cost['calls']} calls, "
          f"{(cost['in'] + cost['out']) / tasks:.0f} tokens a task ({cost['in']} in, {cost['out']} out in all), "
          f"{cost['unknown']} calls of unknown usage, {cost['turns']} turns, {cost['refused']} refusals by the gate, "
          f"{cost['rules']} tasks left to the rules")  # fmt: skip
    for paper in reader:
        for why in _refusals(work / "predictions" / f"{paper}.jsonl.model"):
            print(f"refused, {paper}: {why}")


def _by_rules(index: Any, case: Case) -> list[str]:
    ranking = rank(index, QueryWords.of(case.query))
    return [index.facts[place].path for place in ranking.order]


def _unique(paths: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(paths))


def _taken(record: Path) -> Counter[str]:
    """Calls and tokens of the ledger (answers of the cache left out), turns and refusals of the conversations."""
    found: Counter[str] = Counter()
    for call in CallLedger(record / "calls.jsonl").records():
        if call.sent:
            found["calls"] += 1
            found["unknown"] += call.usage is None
            found["in"] += call.usage.input_tokens if call.usage is not None else 0
            found["out"] += call.usage.output_tokens if call.usage is not None else 0
    found["turns"] = sum(len(way["steps"]) for way in _ways(record))
    found["refused"] = len(list(_refusals(record)))
    return found


def _ways(record: Path) -> Iterator[dict[str, Any]]:
    for path in sorted((record / "reader").glob("*.json")):
        yield json.loads(path.read_text(encoding="utf-8"))


def _refusals(record: Path) -> Iterator[str]:
    for way in _ways(record):
        for step in way["steps"]:
            yield from (" ".join(text.split())[:400] for text in step["results"] if text.startswith("The answer does"))


def _macro(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    return _mean({"": [_mean({paper: found}) for paper, found in rows.items()]})


def _mean(rows: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, float]:
    return {name: float(np.mean([row[name] for found in rows.values() for row in found])) for name in METRICS}


def _by_paper(cases: Path, papers: Sequence[str]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    rows = [json.loads(line) for line in cases.read_text(encoding="utf-8").splitlines() if line.strip()]
    for paper in papers or sorted({str(row["paper_id"]) for row in rows}):
        yield paper, [row for row in rows if str(row["paper_id"]) == paper]


def main() -> None:
    """Prepare, ask or score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("prepare", "ask", "score"))
    parser.add_argument("work", type=Path)
    parser.add_argument("papers", nargs="*")
    parser.add_argument("--cases", type=Path)
    parser.add_argument("--commits", type=Path)
    parser.add_argument("--mirrors", type=Path)
    given = parser.parse_intermixed_args()
    needed = {"prepare": ("cases", "commits", "mirrors"), "ask": (), "score": ("cases",)}[given.what]
    if missing := [name for name in needed if getattr(given, name) is None]:
        parser.error(f"{given.what} needs {', '.join(f'--{name}' for name in missing)}")
    if given.what == "prepare":
        prepare(given.work, given.cases, given.commits, given.mirrors, given.papers)
    elif given.what == "ask":
        ask(given.work, given.papers)
    else:
        evaluate(given.work, given.cases, given.papers)


if __name__ == "__main__":
    main()
