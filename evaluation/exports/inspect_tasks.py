"""Inspect tasks: a directory that `inspect eval` takes, with one sample a task.

```
OUT/
  expbench_inspect.py   the task `expbench`, the solver `oracle`, the scorer `verified`
  verify.py  samples.jsonl
  environments/<task>/compose.yaml  Dockerfile  requirements.txt  repository.tar.gz
  private/<task>/expected.json  solution/    ground truth: the scorer's and the oracle's
                 score.json  truth/          of a histogram or table, in the place of expected.json
  score.py                              calls `expbench score` on this machine, where such tasks are among them
```

The scorer's values are those of the harbor export (`evaluation.exports.harbor`).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from evaluation.exports.forms import ExportedTask, exported, unexportable
from evaluation.exports.harbor import dockerfile
from evaluation.exports.parts import ExportReport, notes_for, program
from evaluation.task import EvaluationTask
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import replace_directory, write_text
from pipeline.formats.archives import write_archive

__all__ = ["write_inspect"]

_MODULE: Final = "expbench_inspect.py"
_HOME: Final = "/home/agent"
"""Working directory of the sandbox; the repository is in `workspace` below it."""


def write_inspect(
    tasks: Sequence[EvaluationTask], out: Path, *, base_image: str | None = None, installed: bool = False
) -> ExportReport:
    """Write the directory; an earlier export there is replaced as a whole.

    Args:
        tasks: as `evaluation.sources.load_tasks` gives them.
        out: directory to write.
        base_image: see `evaluation.exports.harbor.write_harbor`.
        installed: see there.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: `out` holds something else.
    """
    if out.is_dir() and any(out.iterdir()) and not (out / _MODULE).is_file():
        raise ExpbenchError(
            FailureKind.WORKSPACE_CONFLICT,
            str(out),
            "holds files that are no export of Inspect tasks",
            consequence="Nothing was written",
            next_step="Choose an empty or new directory",
        )
    rows: list[dict[str, Any]] = []
    skipped, without = [], []
    programs: set[str] = set()
    with replace_directory(out) as directory:
        for task in tasks:
            why = unexportable(task)
            if why:
                skipped.append((task.id, why))
                continue
            form = exported(task)
            missing = _write_task(task, form, directory, base_image, installed=installed)
            if missing:
                without.append((task.id, missing))
            rows.append(_sample(task, form))
            programs.add(form.program)
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_text(directory / "samples.jsonl", lines)
        for name in sorted(programs):
            write_text(directory / name, program(name))
        write_text(directory / _MODULE, program(_MODULE))
    return ExportReport(
        form="inspect", directory=out, tasks=tuple(row["id"] for row in rows), skipped=tuple(skipped),
        without_oracle=tuple(without),
        notes=notes_for(tasks, [row["id"] for row in rows]),
    )  # fmt: skip


def _sample(task: EvaluationTask, form: ExportedTask) -> dict[str, Any]:
    public = task.public
    where = "The repository is in the directory `workspace`; work there.\n\n"
    metadata = {
        "family": public.family.value,
        "paper": public.paper.title,
        "repository": public.repository.url,
        "repository_commit": public.repository.commit,
    }
    return {"id": task.id, "input": where + form.instructions, "metadata": metadata}


def _write_task(
    task: EvaluationTask, form: ExportedTask, directory: Path, base_image: str | None, *, installed: bool
) -> str:
    environment = directory / "environments" / task.id
    write_archive(environment / "repository.tar.gz", form.tree)
    write_text(
        environment / "Dockerfile", dockerfile(task, base_image, installed=installed, workspace=None, home=_HOME)
    )
    pins = task.public.environment.packages
    write_text(environment / "requirements.txt", "".join(f"{pin}\n" for pin in pins))
    write_text(environment / "compose.yaml", yaml.safe_dump(_compose(task), sort_keys=False))
    private = directory / "private" / task.id
    form.write_verifier(private)
    return form.write_solution(private / "solution")


def _compose(task: EvaluationTask) -> dict[str, Any]:
    resources = task.public.resources
    service: dict[str, Any] = {
        "build": ".",
        "init": True,
        "command": "tail -f /dev/null",
        "network_mode": "none",
        "cpus": float(math.ceil(resources.cpus)),
        "mem_limit": f"{resources.memory_mb}mb",
    }
    if resources.gpus:
        device = {"driver": "nvidia", "count": resources.gpus, "capabilities": ["gpu"]}
        service["deploy"] = {"resources": {"reservations": {"devices": [device]}}}
    return {"services": {"default": service}}
