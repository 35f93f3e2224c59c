"""Labels for the judge of implementation, from the tasks of curated workspaces.

Every file that a requirement cites, and every script of the chain, is taken out of the repository and handed in again
by the patch, changed by `benchmarks.judges.code_variants`. No run is needed and nothing is executed.
"""

from __future__ import annotations

import ast
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.judges.code_variants import CodeVariant, Files, code_variants, lines_of, patch_of
from evaluation.agents.oracle import reproduce_script
from evaluation.integrity.material import Material
from evaluation.judges.calibration import Label
from evaluation.judges.implementation import judge_implementation, requirement_id
from evaluation.sources import load_tasks
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from pipeline.progress import SilentReporter
from pipeline.task import ExperimentTruth, MaskedPath

__all__ = ["implementation_labels"]


def implementation_labels(sources: Sequence[Path]) -> Iterator[Label]:
    """Of every task with an original at hand, in every variant; lines that tasks share are taken out once."""
    for source in sources:
        seen: set[frozenset[tuple[str, int]]] = set()
        with tempfile.TemporaryDirectory() as name:
            tasks, _ = load_tasks(source, scratch=Path(name), reporter=SilentReporter())
            for task in tasks:
                if task.truth is not None and task.original_tree is not None:
                    yield from _of_task(task, task.truth, Path(name) / "left" / task.id, seen)


def _of_task(
    task: EvaluationTask, truth: ExperimentTruth, left: Path, seen: set[frozenset[tuple[str, int]]]
) -> Iterator[Label]:
    assert task.original_tree is not None
    cited = {span.path for item in truth.requirements for span in item.spans} | {s.path for s in truth.sources}
    files = {path: (task.original_tree / path).read_text("utf-8") for path in sorted(cited)}
    material = _material(task, truth, set(files), left)
    taken = [frozenset(lines_of(requirement)) for requirement in truth.requirements]
    for number, variant in enumerate(code_variants(files, truth.requirements)):
        if variant.gone is not None and taken[variant.gone] in seen:
            continue
        yield from _of_variant(truth, material, files, variant, f"{task.id}:{number}/0")
    seen |= set(taken)


def _material(task: EvaluationTask, truth: ExperimentTruth, taken: set[str], left: Path) -> Material:
    """An episode on the repository without these files."""
    assert task.masked_repository is not None
    shutil.copytree(task.masked_repository, left, ignore=shutil.ignore_patterns(".git"))
    for path in taken:
        (left / path).unlink(missing_ok=True)
    reason = "handed in again by the patch"
    masked = tuple(MaskedPath(path=path, action="removed", reason=reason) for path in sorted(taken))
    changed = task.model_copy(update={"masked_repository": left, "masked_paths": masked})
    return Material(
        task=changed, submission=Submission(reproduce=True), head=None, events=(), patch="",
        reproduce=reproduce_script(truth.usage), response_text="",
    )  # fmt: skip


def _of_variant(
    truth: ExperimentTruth, base: Material, files: Files, variant: CodeVariant, episode: str
) -> Iterator[Label]:
    """The requirement that was taken out, and those whose lines are all there and still called from somewhere."""
    material = Material(
        task=base.task, submission=base.submission, head=None, events=(), patch=patch_of(variant.files),
        reproduce=base.reproduce, response_text="",
    )  # fmt: skip
    verdicts = {verdict.item: verdict.verdict for verdict in judge_implementation(truth, material)}
    gone = lines_of(truth.requirements[variant.gone]) if variant.gone is not None else set()
    for position, requirement in enumerate(truth.requirements):
        own = lines_of(requirement)
        if position == variant.gone:
            label = "fail"
        elif own & gone or not _called(files, own, gone):
            continue
        else:
            label = "pass"
        item = requirement_id(position)
        yield Label(
            episode=episode, dimension="implementation", item=item, label=label, verdict=verdicts[item],
            annotator="mechanical", comment=variant.kind,
        )  # fmt: skip


def _called(files: Files, own: set[tuple[str, int]], gone: set[tuple[str, int]]) -> bool:
    """Is every function that holds the lines named in lines that are neither its own nor taken out?"""
    names = {name for path, line in own if (name := _function_at(files[path], line))}
    rest = "\n".join(
        line
        for path, text in sorted(files.items())
        for number, line in enumerate(text.split("\n"), 1)
        if (path, number) not in gone and f"def {line.strip().removeprefix('def ')}" != line.strip()
    )
    return all(f"{name}(" in rest or f"{name}," in rest or f"{name})" in rest or name == "main" for name in names)


def _function_at(text: str, line: int) -> str:
    return next(
        (
            node.name
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or 0)
        ),
        "",
    )
