"""Small published tasks, papers and episodes, made in a test."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

import pymupdf
import yaml

from evaluation.episode import EpisodeFolder
from evaluation.families.histogram.rules import RULES
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import End, Event, TrajectoryHead
from evaluation.trajectory_io import write_trajectory
from pipeline.progress import SilentReporter

EDGES = ((600.0, 800.0), (800.0, 1000.0), (1000.0, 1300.0), (1300.0, 1600.0))
TRUTH = (0.49, 1.78, 6.10, 46.48)
FILE = "histogram_T5Wg.yaml"


def template(values: Sequence[object] = ("null",) * 4, edges: Sequence[tuple[object, object]] = EDGES) -> str:
    """Two documents, as published."""
    return "instructions: fill in\nluminosity_fb: 35.9\n---\n" + series(values, edges)


def series(values: Sequence[object], edges: Sequence[tuple[object, object]] = EDGES) -> str:
    """The second document."""
    filled = "".join(f"  - {{value: {value}}}\n" for value in values)
    bins = "".join(f"  - {{low: {low}, high: {high}}}\n" for low, high in edges)
    return (
        f"dependent_variables:\n- header: {{name: T5Wg}}\n  values:\n{filled}"
        f"independent_variables:\n- header: {{name: STGAMMA, units: GEV}}\n  values:\n{bins}"
    )


def publish(root: Path, *, task: str = "p-1_sim-T5Wg", paper: str = "P-1", mode: str = "shape_norm") -> Path:
    """A task in the published layout below `root/tasks`; its directory."""
    directory = root / "tasks" / task
    (directory / "template").mkdir(parents=True)
    (directory / "task.toml").write_text(
        f'[task]\nid = "{task}"\npaper = "{paper}"\ntype = "simulation"\nobservable = "STgamma"\n'
        f'[metadata]\ndifficulty = "easy"\nwalltime = "2h30m"\n[metrics]\ntolerance = 0.05\nmode = "{mode}"\n'
    )
    (directory / "TASK.md").write_text(
        "> **Task type:** simulation\n\n### Task\n\nPredict the yield in `S_T`.\n\n### Output\n\n"
        "| `results/*.yaml` | Fill the `null` bin values with your predicted signal yields. |\n"
    )
    (directory / "template" / FILE).write_text(template())
    shared = root / "tasks" / "shared" / paper
    (shared / "reference").mkdir(parents=True, exist_ok=True)
    (shared / "reference" / FILE).write_text(series(TRUTH))
    (shared / "paper").mkdir(exist_ok=True)
    write_paper(shared / "paper" / f"{paper}.pdf")
    return directory


def write_paper(path: Path) -> None:
    """A PDF of three pages, one of them with a figure."""
    document = pymupdf.open()
    texts = (
        ("A search for photons", "We look for photons. The luminosity is 35.9 and the selection follows Section 2."),
        ("2 Selection", "Photons with more than 100 GeV are selected. The distribution is shown in Figure 1."),
        ("3 Results", "Nothing was found beyond the background, and limits are set on the gluino mass."),
    )
    for number, (heading, text) in enumerate(texts):
        page = document.new_page(width=595, height=842)
        page.insert_text((72, 90), heading, fontsize=16)
        page.insert_textbox((72, 120, 520, 300), text + " " + text, fontsize=11)
        if number == 1:
            for step in range(5):
                page.draw_rect(
                    (100 + 60 * step, 500 - 30 * step, 150 + 60 * step, 560), color=(0, 0, 1), fill=(0.5, 0.5, 1)
                )
            page.insert_text((72, 600), "Figure 1: The distribution of the photons.", fontsize=10)
    document.save(path)
    document.close()


def load_one(root: Path, scratch: Path, *, build: bool = False) -> EvaluationTask:
    """The only task below `root`."""
    tasks, problems = RULES.load(root, scratch=scratch, only=(), reporter=SilentReporter(), build=build)
    assert problems == []
    [task] = tasks
    return task


def filled(values: Sequence[object]) -> str:
    """What an agent's program writes: one style for all values."""
    documents = list(yaml.safe_load_all(template()))
    documents[1]["dependent_variables"][0]["values"] = [{"value": value} for value in values]
    return yaml.safe_dump_all(documents, sort_keys=False)


def episode(
    root: Path, events: Sequence[Event], files: dict[str, str], *, agent: str = "command", ended: bool = True
) -> tuple[EpisodeFolder, Submission]:
    """An episode as the harness leaves it before its grades: trajectory, patch, files that were handed in."""
    folder = EpisodeFolder(root)
    final = [*events, End(seq=0, at=0, reason="finished")] if ended else list(events)
    write_trajectory(folder.trajectory, TrajectoryHead(episode="t/0", agent=agent), final)
    patch = ""
    for name, text in sorted(files.items()):
        path = folder.submission / "files" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        lines = difflib.unified_diff([], text.splitlines(keepends=True), "/dev/null", f"b/{name}")
        patch += f"diff --git a/{name} b/{name}\nnew file mode 100644\n" + "".join(lines)
    folder.submission.mkdir(parents=True, exist_ok=True)
    (folder.submission / "patch.diff").write_text(patch)
    submission = Submission()
    (folder.submission / "submission.json").write_text(submission.model_dump_json())
    return folder, submission
