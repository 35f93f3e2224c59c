"""What `expbench export` writes: tasks and trajectories in other harnesses' forms, from any source that we read."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Literal

from evaluation.agents.atif import export_atif
from evaluation.exports.harbor import write_harbor
from evaluation.exports.inspect_tasks import write_inspect
from evaluation.exports.parts import ExportReport
from evaluation.sources import load_tasks
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.formats.expbench import is_published, quirk_counts, read_published, write_published
from pipeline.formats.expbench_export import as_published
from pipeline.formats.expbench_import import is_imported, read_imported
from pipeline.formats.huggingface import is_release, read_release
from pipeline.progress import Reporter
from pipeline.schema import Problem, Record
from pipeline.scratch import scratch_directory
from pipeline.store import Workspace

__all__ = ["AtifReport", "PublishedReport", "export_published", "export_tasks", "export_trajectories"]


class PublishedReport(Record):
    """What was written in EXP-Bench's form."""

    directory: Path
    papers: int
    tasks: int
    files: tuple[str, ...]
    quirks: dict[str, int]
    """Of published data: departures from its own form, kept."""
    left: int
    """Tasks of which something has no place in that form."""


class AtifReport(Record):
    """Trajectories that were written."""

    written: tuple[Path, ...]
    problems: tuple[Problem, ...] = ()


def export_published(source: Path, out: Path, *, conference: str | None = None) -> PublishedReport:
    """Write the tasks of a source in EXP-Bench's published layout.

    Args:
        source: workspace, release with its ground truth, import, or published data.
        out: directory to write.
        conference: folder for tasks that were not imported; None: from venue and year.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is none of these, or cannot be read.
    """
    if (source / "workspace.json").is_file():
        dataset = as_published(Workspace(source).tasks(), conference)
    elif is_release(source):
        dataset = as_published(read_release(source), conference)
    elif is_imported(source):
        dataset = read_imported(source)
    elif is_published(source):
        dataset = read_published(source)
    else:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(source),
            "it is no workspace, release, import or published EXP-Bench data",
            consequence="Nothing was written",
            next_step="Name a directory that `expbench curate`, `release` or `import` wrote",
        )
    files = write_published(out, dataset.papers, dataset.tasks, dataset.other_lines)
    return PublishedReport(
        directory=out, papers=len(dataset.papers), tasks=len(dataset.tasks),
        files=tuple(path.relative_to(out.resolve()).as_posix() for path in files),
        quirks=quirk_counts(dataset.problems),
        left=sum("no place for" in problem.message for problem in dataset.problems),
    )  # fmt: skip


def export_tasks(
    form: Literal["harbor", "inspect"], source: Path, out: Path, *, reporter: Reporter, only: Collection[str] = (),
    base_image: str | None = None, installed: bool = False, network: Literal["no-network", "public"] = "no-network",
) -> ExportReport:  # fmt: skip
    """Write the tasks of a source as harbor task directories or Inspect tasks.

    Args:
        form: of which harness.
        source: see `evaluation.sources.load_tasks`.
        out: directory to write.
        reporter: progress.
        only: ids of the tasks; empty means all.
        base_image: image that the containers build on; None: Docker's official Python.
        installed: it has the tasks' packages.
        network: of harbor's containers.

    Raises:
        ExpbenchError: the source cannot be read, `out` holds something else, or `NOTHING_TO_RELEASE`: no task of it can
            be carried out elsewhere.
    """
    with scratch_directory() as scratch:
        tasks, _ = load_tasks(source, scratch=Path(scratch), reporter=reporter, only=only)
        if form == "harbor":
            report = write_harbor(tasks, out, base_image=base_image, installed=installed, network=network)
        else:
            report = write_inspect(tasks, out, base_image=base_image, installed=installed)
    if not report.tasks:
        reasons = "; ".join(sorted({why for _, why in report.skipped})) or "it holds no task"
        raise ExpbenchError(
            FailureKind.NOTHING_TO_RELEASE,
            str(source),
            f"none of its tasks can be exported ({reasons})",
            consequence="No task was written",
            next_step="Export from a workspace, or from a release that has its private part",
        )
    return report


def export_trajectories(source: Path, out: Path) -> AtifReport:
    """Write trajectories as ATIF.

    Args:
        source: `trajectory.jsonl`, the directory of an episode, or that of a run with `episodes/`.
        out: of one episode a `.json` file or a directory; of a run a directory.

    Raises:
        ExpbenchError: `RECORD_INVALID`: there is no trajectory, or it cannot be read.
    """
    single = source if source.is_file() else source / "trajectory.jsonl"
    if single.is_file():
        target = out if out.suffix == ".json" else out / "trajectory.json"
        return AtifReport(written=(target,), problems=tuple(export_atif(single, target)))
    found = sorted(source.rglob("trajectory.jsonl"))
    if not found:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(source),
            "it holds no trajectory (trajectory.jsonl)",
            consequence="Nothing was written",
            next_step="Name a run of `expbench evaluate`, or the directory of one of its episodes",
        )
    written, problems = [], []
    for path in found:
        parts = [part for part in path.parent.relative_to(source).parts if part != "episodes"]
        target = out / f"{'.'.join(parts) or 'trajectory'}.json"
        problems += export_atif(path, target)
        written.append(target)
    return AtifReport(written=tuple(written), problems=tuple(problems))
