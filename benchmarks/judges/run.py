"""Accuracy of the keyless judge of conclusions per kind of change: `python -m benchmarks.judges.run DATA`.

DATA is a directory with published EXP-Bench tasks. The papers are split in two by their ids: rules may be developed
against the one half, the other is only measured.
"""

from __future__ import annotations

import argparse
import json
import sys
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from benchmarks.judges.variants import variants_of
from evaluation.judges.calibration import Label
from evaluation.judges.conclusion import MEANING, judge_conclusion
from evaluation.submission import Conclusion, Response
from pipeline.formats.expbench import read_published
from pipeline.task import ExperimentTruth, Verdict


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--wrong", help="print the wrong verdicts of this half: dev or held-out")
    arguments = parser.parse_args()
    counts: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for half, kind, label, verdict, told in judged(arguments.data):
        outcome = "unknown" if verdict is Verdict.UNKNOWN else "right" if verdict.value == label else "wrong"
        counts[half, kind][outcome] += 1
        counts[half, f"all {label}"][outcome] += 1
        if outcome == "wrong" and arguments.wrong == half:
            sys.stderr.write(f"\n[{kind}] {verdict}: {told}\n")
    _show(counts)


Judged = tuple[str, str, Literal["pass", "fail"], Verdict, str]


def judged(data: Path) -> Iterator[Judged]:
    """(half, kind of change, label, verdict, what was said and expected) of every variant."""
    outcomes = _outcomes(data)
    for index, (paper, task, truth) in enumerate(outcomes):
        half = "held-out" if zlib.crc32(paper.encode()) % 2 else "dev"
        others = [other.expected.text for source, _, other in outcomes if source != paper]
        for variant in variants_of(truth.expected.text, others, seed=index):
            response = Response(conclusion=Conclusion(text=variant.text))
            meaning = next(item for item in judge_conclusion(truth, response) if item.item == MEANING)
            told = f"{task}: {meaning.reason}\n  said: {variant.text[:600]}\n  expected: {truth.expected.text[:600]}"
            yield half, variant.kind, variant.label, meaning.verdict, told


def conclusion_labels(data: Path) -> Iterator[Label]:
    """The same as labels with the judge's verdicts beside."""
    for index, (half, kind, label, verdict, told) in enumerate(judged(data)):
        yield Label(
            episode=f"{told.partition(':')[0]}:{index}/0", dimension="conclusion", item=MEANING, label=label,
            verdict=verdict, annotator="mechanical", comment=f"{kind} ({half})",
        )  # fmt: skip


def _outcomes(data: Path) -> list[tuple[str, str, ExperimentTruth]]:
    found = []
    for published in read_published(data).tasks:
        task = published.task
        if isinstance(task.truth, ExperimentTruth) and task.truth.expected.text.strip():
            found.append((task.paper.id, task.id, task.truth))
    return found


def _show(counts: dict[tuple[str, str], Counter[str]]) -> None:
    sys.stdout.write("half      kind                    n  right wrong unknown   of decided right\n")
    for (half, kind), found in sorted(
        counts.items(), key=lambda item: (item[0][0], item[0][1].startswith("all"), item[0][1])
    ):
        total, decided = sum(found.values()), found["right"] + found["wrong"]
        share = f"{found['right'] / decided:.3f}" if decided else "-"
        sys.stdout.write(
            f"{half:9} {kind:20} {total:5} {found['right'] / total:6.3f} {found['wrong'] / total:5.3f} "
            f"{found['unknown'] / total:6.3f}   {share}\n"
        )
    sys.stdout.write(
        json.dumps({f"{half}: {kind}": dict(found) for (half, kind), found in sorted(counts.items())}) + "\n"
    )


if __name__ == "__main__":
    main()
