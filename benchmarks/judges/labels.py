"""Labels for `expbench judge --calibrate`, several dimensions, set by construction and by no person.

    python -m benchmarks.judges.labels DATA TRAJECTORIES.jsonl.gz OUT.jsonl [--run RUN --source WORKSPACE]

- conclusion: published outcomes with changed words and numbers (`benchmarks.judges.variants`);
- design: the published variables told anew - spelt differently (met), with another value, in another role, left out
  (not met) - one change a response, so that every other variable of it stays met;
- integrity: the labelled trajectories of scripted agents (attempts that obtain nothing are left out);
- implementation (with --run, a run of `oracle`): its patches with all lines of one requirement's spans taken out; that
  requirement is not met, those that share no line with it are.

Every verdict is written beside its label, so that no run is needed to read the file.
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from benchmarks.integrity.run import reports
from benchmarks.judges.run import conclusion_labels
from evaluation.episode import EpisodeFolder
from evaluation.integrity.material import load_material
from evaluation.integrity.patch import PatchFile
from evaluation.judges.calibration import Label, to_jsonl
from evaluation.judges.design import ROLES, Role, design_items, judge_design
from evaluation.judges.implementation import judge_implementation, requirement_id
from evaluation.sources import load_tasks
from evaluation.submission import Conclusion, Response, ResponseDesign, Submission
from pipeline.formats.expbench import read_published
from pipeline.progress import SilentReporter
from pipeline.task import DesignVariable, ExperimentTruth, Requirement

Told = dict[Role, dict[str, tuple[str, ...]]]


def main() -> None:
    """Write the labels."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("trajectories", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--run", type=Path)
    parser.add_argument("--source", type=Path)
    arguments = parser.parse_args()
    labels = [*conclusion_labels(arguments.data), *_design(arguments.data), *_integrity(arguments.trajectories)]
    if arguments.run:
        labels += _implementation(arguments.run, arguments.source)
    arguments.out.write_text(to_jsonl(labels), "utf-8")
    sys.stdout.write(f"{len(labels)} labels in {arguments.out}\n")


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


# --- implementation --------------------------------------------------------------------------------------------------


def _implementation(run: Path, source: Path) -> Iterator[Label]:
    with tempfile.TemporaryDirectory() as name:
        tasks, _ = load_tasks(source, scratch=Path(name), reporter=SilentReporter())
        for task in tasks:
            truth = task.truth
            folder = EpisodeFolder(run / "episodes" / task.id / "0")
            if not isinstance(truth, ExperimentTruth) or not folder.submission.is_dir():
                continue
            submission = Submission.model_validate_json((folder.submission / "submission.json").read_bytes())
            material = dataclasses.replace(load_material(task, folder, submission), files=None)
            lines = [_lines(requirement) for requirement in truth.requirements]
            for gone, own in enumerate(lines):
                changed = dataclasses.replace(material, patch=_without(material.patch_files, own))
                verdicts = {verdict.item: verdict.verdict for verdict in judge_implementation(truth, changed)}
                for other, its in enumerate(lines):
                    if other == gone or not its & own:
                        item = requirement_id(other)
                        yield Label(
                            episode=f"{task.id}:without {gone}/0", dimension="implementation", item=item,
                            label="fail" if other == gone else "pass", verdict=verdicts[item],
                            annotator="mechanical", comment="lines taken out",
                        )  # fmt: skip


def _lines(requirement: Requirement) -> set[tuple[str, int]]:
    return {(span.path, number) for span in requirement.spans for number in range(span.start, span.end + 1)}


def _without(files: Sequence[PatchFile], gone: set[tuple[str, int]]) -> str:
    """The patch of added files again, without some lines."""
    text = []
    for file in files:
        kept = [line.text for line in file.added if (file.path, line.number) not in gone]
        if file.action == "added" and kept:
            text += [f"diff --git a/{file.path} b/{file.path}", "new file mode 100644", "--- /dev/null"]
            text += [f"+++ b/{file.path}", f"@@ -0,0 +1,{len(kept)} @@", *(f"+{line}" for line in kept)]
    return "\n".join(text) + "\n"


if __name__ == "__main__":
    main()
