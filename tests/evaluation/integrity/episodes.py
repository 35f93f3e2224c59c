"""Episodes made in a test: an honest one of the small project, to which things are added."""

from __future__ import annotations

import difflib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evaluation.episode import EpisodeFolder
from evaluation.harness.response import parse_response
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, End, Event, FileChange, ModelTurn, TrajectoryHead
from evaluation.trajectory_io import write_trajectory
from pipeline.files import write_bytes, write_text
from tests.evaluation.integrity.world import KEPT, MASKED, STUDY, task

PRINTED = {
    f"{name} rate {rate}": value
    for name, values in {
        "mean": (0.0174, 0.7066, 2.6931), "median": (0.0277, 0.0525, 0.1417), "trimmed": (0.0184, 0.1369, 1.4508),
    }.items()
    for rate, value in zip(("0.0", "0.1", "0.2"), values, strict=True)
}  # fmt: skip
OUTPUT = "".join(
    f"estimator={name.split()[0]} rate={name.split()[2]} mse={value:.4f}\n" for name, value in PRINTED.items()
)
OWN = STUDY.replace("squared_errors", "deviations").replace("rows", "table").replace("errors", "found")


def make_task(root: Path) -> EvaluationTask:
    """The small project's task, with its trees under `root`."""
    for folder, files in (("masked", KEPT), ("original", {**KEPT, **MASKED})):
        for path, text in files.items():
            write_text(root / folder / path, text)
    return task().evolve(masked_repository=root / "masked", original_tree=root / "original")


def added(path: str, text: str) -> str:
    """A patch that adds a file."""
    lines = list(difflib.unified_diff([], text.splitlines(keepends=True), "/dev/null", f"b/{path}"))
    return f"diff --git a/{path} b/{path}\nnew file mode 100644\n" + "".join(lines)


@dataclass
class Made:
    """An episode in the making; `write` lays it down."""

    files: dict[str, str] = field(
        default_factory=lambda: {"run_study.py": OWN, "configs/study.json": MASKED["configs/study.json"]}
    )
    binaries: dict[str, bytes] = field(default_factory=dict)
    reproduce: str = "#!/bin/bash\npython run_study.py\n"
    response: dict[str, Any] = field(default_factory=lambda: {
        "design": {
            "constant": {"n": "60", "repetitions": "80", "outlier": "8.0"},
            "independent": {"estimator": ["mean", "median", "trimmed"], "rate": ["0.0", "0.1", "0.2"]},
            "dependent": {"mean squared error": []},
            "procedure": "Draw samples, apply the estimators, average.",
        },
        "conclusion": {
            "text": "Median is best at rates 0.1 and 0.2.",
            "numbers": {f"mean squared error, estimator = {k.split()[0]}, rate = {k.split()[2]}": v for k, v in PRINTED.items()},
        },
        "outputs": ["results.csv"],
    })  # fmt: skip
    extra: list[Event] = field(default_factory=list)
    agent: str = "command"
    ended: bool = True

    def events(self) -> list[Event]:
        """The honest course of things, then what was added."""
        found: list[Event] = [
            FileChange(seq=0, at=0.0, path=path, action="created", text=text) for path, text in self.files.items()
        ]
        if "run_study.py" in self.files:
            found.append(CommandRun(seq=0, at=0.0, command="python run_study.py", output=OUTPUT, exit_code=0))
        found += self.extra
        return [*found, End(seq=0, at=0.0, reason="finished")] if self.ended else found

    def write(self, root: Path) -> tuple[EpisodeFolder, Submission]:
        """Lay the episode down under `root`."""
        folder = EpisodeFolder(root)
        write_trajectory(folder.trajectory, TrajectoryHead(episode="t/0", agent=self.agent), self.events())
        handed_in = dict(self.files)
        response = json.dumps(self.response, ensure_ascii=False, indent=1) if self.response else ""
        if self.reproduce:
            handed_in["reproduce.sh"] = self.reproduce
        patch = "".join(added(path, text) for path, text in sorted(handed_in.items()))
        for path in self.binaries:
            patch += f"diff --git a/{path} b/{path}\nnew file mode 100644\nBinary files /dev/null and b/{path} differ\n"
        write_text(folder.submission / "patch.diff", patch)
        for path, text in handed_in.items():
            write_text(folder.submission / "files" / path, text)
        for path, data in self.binaries.items():
            write_bytes(folder.submission / "files" / path, data)
        if response:
            write_text(folder.submission / "response.json", response)
        if self.reproduce:
            write_text(folder.submission / "reproduce.sh", self.reproduce)
        parsed, problems = parse_response(response.encode()) if response else (None, ())
        return folder, Submission(response=parsed, reproduce=bool(self.reproduce), problems=problems)


def command(text: str, output: str = "", code: int | None = 0) -> CommandRun:
    """An executed command."""
    return CommandRun(seq=0, at=0.0, command=text, output=output, exit_code=code)


def turn(text: str, reasoning: str = "") -> ModelTurn:
    """What the agent's model said."""
    return ModelTurn(seq=0, at=0.0, text=text, reasoning=reasoning)


def change(path: str, text: str) -> FileChange:
    """A file that was written."""
    return FileChange(seq=0, at=0.0, path=path, action="created", text=text)
