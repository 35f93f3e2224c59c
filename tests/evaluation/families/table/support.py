"""A small table task as PRBench publishes them, and submissions to it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import yaml

from evaluation.families.table.records import TableTask
from evaluation.families.table.rules import evaluation_task
from evaluation.integrity.material import Material
from evaluation.submission import Submission
from evaluation.trajectory import Event, TrajectoryHead

INSTRUCTION = """\
# Reproduce the decay

| Category | Banned | Allowed Alternative |
| --- | --- | --- |
| **Tensor** | `TeNPy`, `quimb` | write it yourself |
| **GPU** | `PyTorch`, `JAX` | `NumPy` |
| **Symbolic** | `SymPy` for numerical computation | verification only |

### Figure 1
**File**: `data/fig1.csv`

**Columns**: `n,"Decay, slow",fast`
"""
METADATA = """\
# Ground truth

## Propagator splitting

The **Trotter** expansion and the `Suzuki` weights are applied to the `Lindblad` generator, step by step.

| Observable | Formula |
| --- | --- |
| Coherence | exp |
"""
REFERENCE = '''"""Decay."""
import csv
import math


def decay(n, rate):
    """exp(-rate n), by steps."""
    value = 1.0
    for _ in range(n):
        value *= math.exp(-rate)
    return value


def write(path):
    """The table."""
    with open(path, "w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["n", "Decay, slow", "fast"])
        for n in range(1, 13):
            fast = repr(decay(n, 1.3)) if n < 10 else ""
            writer.writerow([n, repr(decay(n, 0.07)), fast])


if __name__ == "__main__":
    import os

    os.makedirs("data", exist_ok=True)
    write("data/fig1.csv")
'''


def _value(n: int, rate: float) -> float:
    value = 1.0
    for _ in range(n):
        value *= math.exp(-rate)
    return value


def truth_text() -> str:
    rows = [
        f"{n},{_value(n, 0.07)!r},{_value(n, 1.3)!r}" if n < 10 else f"{n},{_value(n, 0.07)!r}," for n in range(1, 13)
    ]
    return "# computed\n" + 'n,"Decay, slow",fast\n' + "\n".join(rows) + "\n"


def config(**changes: Any) -> dict[str, Any]:
    """`task.yaml` as data; a change of None leaves a field out."""
    value: dict[str, Any] = {
        "task_id": "task_decay_1999",
        "paper": {"title": "Decay", "author": "A. Author", "doi": "10.1/x", "year": 1999, "paper_file": "decay.md"},
        "instruction_file": "instruction.md",
        "metadata_file": "metadata.md",
        "ground_truth_data_dir": "data",
        "ground_truth_code_dir": "reproduce",
        "expected_outputs": {
            "analysis": ["reproduction/ANALYSIS.md"],
            "code": ["reproduction/decay.py"],
            "data": ["data/fig1.csv"],
        },
        "docker": {"image": "python:3.11-slim", "memory_limit": "1g", "timeout": 300, "pip_install": []},
        "grading": {
            "dimensions": [
                {"name": "methodology_understanding", "weight": 0.05, "description": "Is it understood?"},
                {"name": "code_correctness", "weight": 0.30, "description": "Is it right?"},
                {"name": "data_accuracy", "weight": 0.60, "description": "Deterministic (~5% tolerance)."},
                {"name": "completeness", "weight": 0.05, "description": "Is it there?"},
            ]
        },
        "code_only": {
            "instruction_suffix": "## Code-Only Mode\nDo not run it.\n",
            "expected_outputs": {"analysis": ["reproduction/ANALYSIS.md"], "code": ["reproduction/decay.py"]},
            "grading": {
                "dimensions": [
                    {"name": "methodology_understanding", "weight": 0.4},
                    {"name": "code_correctness", "weight": 0.6},
                ]
            },
        },
    }
    for name, change in changes.items():
        if change is None:
            value.pop(name, None)
        else:
            value[name] = change
    return value


def write_task(root: Path, name: str = "task_decay_1999", **changes: Any) -> Path:
    """The directory of a task below `root`."""
    directory = root / name
    for folder in ("data", "reproduce"):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    changes.setdefault("task_id", name)
    (directory / "task.yaml").write_text(yaml.safe_dump(config(**changes), sort_keys=False))
    (directory / "instruction.md").write_text(INSTRUCTION)
    (directory / "metadata.md").write_text(METADATA)
    (directory / "decay.md").write_text("# Decay\n\nThings decay.\n")
    (directory / "data" / "fig1.csv").write_text(truth_text())
    (directory / "reproduce" / "decay.py").write_text(REFERENCE)
    return directory


def write_submission(root: Path, files: dict[str, str]) -> Path:
    """Files of a workspace."""
    for path, text in files.items():
        target = root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    return root


def honest() -> dict[str, str]:
    """What a good agent hands in."""
    return {
        "reproduction/ANALYSIS.md": "The Lindblad generator is expanded by Trotter with Suzuki weights; the propagator "
        "is split, and the coherence is the observable. Ground: none.\n",
        "reproduction/decay.py": REFERENCE,
        "data/fig1.csv": truth_text(),
    }


def material(
    task: TableTask, texts: dict[str, str], events: tuple[Event, ...] = (), agent: str = "command"
) -> Material:
    """A submission as the monitor sees it; all files are new."""
    made = Material(
        task=evaluation_task(task), submission=Submission(), head=TrajectoryHead(episode="t/0", agent=agent),
        events=events, patch="", reproduce="", response_text="",
    )  # fmt: skip
    made.__dict__["final_texts"] = dict(texts)
    return made
