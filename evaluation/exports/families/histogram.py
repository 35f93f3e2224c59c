"""A histogram task in two halves: settings, text, template and artefacts; the hidden reference."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import JsonValue

from evaluation.families.histogram.catalogue import CatalogueEntry, read_catalogue
from evaluation.families.histogram.task import HistogramTask
from evaluation.families.histogram.workspace import paper_pdf, regular_files
from evaluation.task import EvaluationTask
from pipeline.digests import file_digest
from pipeline.formats.family_parts import FamilyPart, FamilyShape, WithheldFile, telling_runs
from pipeline.task import Family

__all__ = ["SHAPE", "parts"]

SHAPE: Final = FamilyShape(
    family=Family.HISTOGRAM,
    public={
        "paper": "string", "target": "string", "observable": "string", "mode": "string", "difficulty": "string",
        "file": "string", "bins": [{"low": "float64", "high": "float64", "label": "string"}],
    },
    private={"bins": ["int64"], "values": ["float64"], "tolerance": "float64"},
    title="binned distributions (Collider-Bench)",
    about="the agent gets a paper and an empty histogram, and fills its bins from a simulation and analysis of its own;"
    " `expbench score histogram` compares them with a hidden reference.",
    chart=("Bins by histogram task", "bins"),
)  # fmt: skip
WITHHELD: Final = "the licence of the paper is not stated as one that allows a copy"


def parts(directory: Path, tasks: Sequence[EvaluationTask], shared_papers: frozenset[str]) -> list[FamilyPart]:
    """See `evaluation.exports.families.forms.family_parts`."""
    known = {task.id: task for task in tasks}
    entries, _ = read_catalogue(directory)
    return [_part(entry, known[entry.task.id], shared_papers) for entry in entries if entry.task.id in known]


def _part(entry: CatalogueEntry, loaded: EvaluationTask, shared_papers: frozenset[str]) -> FamilyPart:
    task = entry.task
    home, shared = f"tasks/{task.id}", f"shared/{task.paper}"
    given = {
        f"{home}/task.toml": entry.directory / "task.toml",
        f"{home}/TASK.md": entry.directory / "TASK.md",
        f"{home}/template/{task.file}": entry.directory / "template" / task.file,
    }
    for source, place in (
        (entry.directory / "artifacts", f"{home}/artifacts"),
        (entry.shared / "object_efficiencies", f"{shared}/object_efficiencies"),
    ):
        given |= {f"{place}/{path.relative_to(source).as_posix()}": path for path in regular_files(source)}
    pdf, paper = paper_pdf(entry), f"{shared}/paper/{task.paper}.pdf"
    withheld: tuple[WithheldFile, ...] = ()
    if pdf is not None and loaded.public.paper.id in shared_papers:
        given[paper] = pdf
    elif pdf is not None:
        withheld = (WithheldFile(path=paper, sha256=file_digest(pdf), why=WITHHELD),)
    return FamilyPart(
        public=loaded.public,
        category=loaded.category,
        columns=_columns(task),
        truth={"bins": list(task.scored), "values": list(task.truth), "tolerance": task.tolerance},
        public_files={name: path.read_bytes() for name, path in sorted(given.items())},
        private_files={
            f"{shared}/reference/{task.file}": (entry.shared / "reference" / task.file).read_bytes(),
        },
        withheld=withheld,
        paper_files=(paper,) if paper in given else (),
        figures={
            "bins": len(task.template.bins), "mode": task.mode, "difficulty": task.difficulty or "not stated",
            "target": task.target or "not stated",
        },
        runs=tuple(("reference", run) for run in telling_runs(task.truth)),
    )  # fmt: skip


def _columns(task: HistogramTask) -> dict[str, JsonValue]:
    return {
        "paper": task.paper,
        "target": task.target,
        "observable": task.observable,
        "mode": task.mode,
        "difficulty": task.difficulty,
        "file": task.file,
        "bins": [item.model_dump(mode="json") for item in task.template.bins],
    }
