"""Labels for `expbench judge --calibrate`, several dimensions, set by construction and by no person.

    python -m benchmarks.judges.labels DATA TRAJECTORIES.jsonl.gz OUT.jsonl [--source WORKSPACE ...]

- conclusion: published outcomes with changed words and numbers (`benchmarks.judges.variants`);
- design: the published variables told anew - spelt differently (met), with another value, in another role, left out
  (not met) - one change a response, so that every other variable of it stays met;
- integrity: the labelled trajectories of scripted agents (attempts that obtain nothing are left out);
- implementation (with --source, workspaces of `expbench curate`): the original's code written otherwise (all met), and
  with one requirement's lines taken out of what runs (`benchmarks.judges.code_variants`).

Every verdict is written beside its label, so that no run is needed to read the file.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from benchmarks.integrity.run import reports
from benchmarks.judges.code_labels import implementation_labels
from benchmarks.judges.run import conclusion_labels
from evaluation.judges.calibration import Label, to_jsonl
from evaluation.judges.design import ROLES, Role, design_items, judge_design
from evaluation.submission import Conclusion, Response, ResponseDesign
from pipeline.formats.expbench import read_published
from pipeline.task import DesignVariable, ExperimentTruth

Told = dict[Role, dict[str, tuple[str, ...]]]


def main() -> None:
    """Write the labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("trajectories", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--source", type=Path, action="append", default=[])
    arguments = parser.parse_args()
    labels = [*conclusion_labels(arguments.data), *_design(arguments.data), *_integrity(arguments.trajectories)]
    labels += implementation_labels(arguments.source)
    arguments.out.write_text(to_jsonl(labels), "utf-8")
    sys.stdout.write(f"{len(labels)} labels in {arguments.out}\n")
    _by_kind(labels)


def _by_kind(labels: list[Label]) -> None:
    """What each kind of change came to, dimension by dimension."""
    counts: dict[tuple[str, str, str], Counter[str]] = defaultdict(Counter)
    for label in labels:
        if label.dimension in {"design", "implementation"}:
            counts[label.dimension, label.comment, label.label][str(label.verdict)] += 1
    for (dimension, kind, wanted), found in sorted(counts.items()):
        told = ", ".join(f"{verdict} {count}" for verdict, count in sorted(found.items()))
        sys.stdout.write(f"{dimension:15} {kind:28} {wanted:4}  {told}\n")


def _integrity(path: Path) -> Iterator[Label]:
    for record, report in reports(path):
        if not record["attempt"]:
            yield Label(
                episode=f"{record['name']}/0", dimension="integrity", label="fail" if record["labels"] else "pass",
                verdict=report.verdict, annotator="mechanical", comment=",".join(record["labels"]) or "honest",
            )  # fmt: skip


# --- design ----------------------------------------------------------------------------------------------------------


def _design(data: Path) -> Iterator[Label]:
    for index, published in enumerate(read_published(data).tasks):
        truth = published.task.truth
        if isinstance(truth, ExperimentTruth) and (items := design_items(truth)):
            drawn = random.Random(index)
            yield from _judged(published.task.id, truth, "spelt differently", _told(truth, _spelt), {})
            for kind in ("left out", "another role", "another value"):
                changeable = [i for i in items if kind != "another value" or _numeric(i[2])]
                if changeable:
                    item, role, variable = drawn.choice(changeable)
                    told = _told(truth, lambda text: text)
                    _change(told, role, variable, kind)
                    yield from _judged(published.task.id, truth, kind, told, {item: "fail"})


def _told(truth: ExperimentTruth, spell: Callable[[str], str]) -> Told:
    return {role: {spell(v.name): v.values for v in getattr(truth, role)} for role in ROLES}


def _spelt(name: str) -> str:
    """`Learning rate` as `learning_rate`."""
    return re.sub(r"[\s-]+", "_", name.strip().lower())


def _numeric(variable: DesignVariable) -> bool:
    return len(variable.values) == 1 and re.fullmatch(r"-?\d+(?:\.\d+)?", variable.values[0].strip()) is not None


def _change(told: Told, role: Role, variable: DesignVariable, kind: str) -> None:
    values = told[role].pop(variable.name)
    if kind == "another role":
        told["dependent" if role != "dependent" else "constant"][variable.name] = values
    elif kind == "another value":
        told[role][variable.name] = (f"{float(values[0]) * 3 + 1:g}",)


def _judged(task: str, truth: ExperimentTruth, kind: str, told: Told, wrong: Mapping[str, str]) -> Iterator[Label]:
    response = Response(design=ResponseDesign(**told), conclusion=Conclusion(text="-"))
    for verdict in judge_design(truth, response):
        yield Label(
            episode=f"{task}:{kind}/0", dimension="design", item=verdict.item, label=wrong.get(verdict.item, "pass"),
            verdict=verdict.verdict, annotator="mechanical", comment=kind,
        )  # fmt: skip


if __name__ == "__main__":
    main()
