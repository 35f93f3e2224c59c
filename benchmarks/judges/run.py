"""How often the keyless judge of conclusions is right: `python -m benchmarks.judges.run TASK FOLDER [FOLDER ...]`.

TASK is a task's directory in a workspace (`truth.yaml`). A FOLDER holds `conclusions_numbers.json` (name -> number, as
an agent reports them) and `conclusions.json` (a list of {"text", "true"}): every text is judged beside these numbers.
Printed are the counts, the texts that were judged wrongly, and which expected numbers were found.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path

from pydantic import TypeAdapter

from evaluation.judges.conclusion import MEANING, RELATIONS, judge_conclusion
from evaluation.submission import Conclusion, Response
from pipeline.schema import Record
from pipeline.store import Workspace
from pipeline.task import ExperimentTruth, Verdict


class Said(Record):
    """A conclusion in words, and whether it is true of the task."""

    text: str
    true: bool


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", type=Path)
    parser.add_argument("folders", type=Path, nargs="+")
    arguments = parser.parse_args()
    directory = arguments.task.resolve()
    truth = Workspace(directory.parent.parent).load_task(directory.name).truth
    for folder in arguments.folders:
        _show(folder, truth)


def score(truth: ExperimentTruth, said: list[Said], numbers: dict[str, float]) -> Counter[str]:
    """`true passed`, `false failed`, ...: every text by the verdict on its words."""
    counts: Counter[str] = Counter()
    for one in said:
        verdict = _words(truth, one.text, numbers)
        counts[f"{str(one.true).lower()} {_TOLD[verdict]}"] += 1
        if (verdict is Verdict.PASS and not one.true) or (verdict is Verdict.FAIL and one.true):
            sys.stdout.write(f"  WRONG ({verdict}): {one.text}\n")
    return counts


_TOLD = {Verdict.PASS: "passed", Verdict.FAIL: "failed", Verdict.UNKNOWN: "unknown"}


def _words(truth: ExperimentTruth, text: str, numbers: dict[str, float]) -> Verdict:
    items = judge_conclusion(truth, Response(conclusion=Conclusion(text=text, numbers=numbers)))
    return next(item.verdict for item in items if item.item == MEANING)


def _show(folder: Path, truth: ExperimentTruth) -> None:
    numbers = TypeAdapter(dict[str, float]).validate_json((folder / "conclusions_numbers.json").read_text("utf-8"))
    said = TypeAdapter(list[Said]).validate_json((folder / "conclusions.json").read_text("utf-8"))
    sys.stdout.write(f"{folder.name}: {len(said)} texts beside {len(numbers)} numbers\n")
    counts = score(truth, said, numbers)
    for label in ("false passed", "false failed", "false unknown", "true passed", "true failed", "true unknown"):
        sys.stdout.write(f"  {label:14} {counts[label]}\n")
    items = judge_conclusion(truth, Response(conclusion=Conclusion(text="-", numbers=numbers)))
    judged = [item for item in items if item.item not in {MEANING, RELATIONS}]
    found = [item for item in judged if item.quote]
    verdicts = Counter(item.verdict for item in found)
    sys.stdout.write(f"  numbers found {len(found)} of {len(judged)}: {verdicts[Verdict.PASS]} pass, ")
    sys.stdout.write(f"{verdicts[Verdict.FAIL]} fail, {verdicts[Verdict.UNKNOWN]} unknown\n")
    for item in judged:
        sys.stdout.write(f"    {item.text}: {json.dumps(item.quote) if item.quote else 'not found'} ({item.verdict})\n")


if __name__ == "__main__":
    main()
