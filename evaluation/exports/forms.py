"""A task as another harness gets it: what the agent is told and given, the verifier's files, the oracle's files.

`experiment` has a verifier of its own, which needs Python alone (`_inside/verify.py`). The families with files are
scored by `expbench score` itself (`_inside/score.py` calls it), which a container gets as an archive of our modules.
The causal family has no form elsewhere: its bench, which knows the answer, runs beside the container.
"""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Mapping
from importlib import resources
from importlib.metadata import version
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.agents.base import AgentContext
from evaluation.episode import EpisodeLimits
from evaluation.exports.parts import CANARY, expected_json, not_exportable, program, times, write_oracle
from evaluation.families.experiment import instructions
from evaluation.families.registry import family_rules
from evaluation.task import EvaluationTask
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_bytes, write_text
from pipeline.task import Family

__all__ = ["SCORER_PACKAGES", "ExportedTask", "exported", "scorer_packages", "unexportable", "write_scorer"]

SCORER_PACKAGES: Final = (
    "charset-normalizer", "numpy", "packaging", "pydantic", "pydantic-settings", "pyyaml", "rich", "scipy", "typer",
)  # fmt: skip
"""What `expbench score` imports of others; 190 MB in an image."""
_PACKAGES: Final = ("pipeline", "masking", "evaluation", "flows")
_OLDEST: Final = (3, 11)
_HISTOGRAM_FILES: Final = "results"
_SCORE_S: Final = 600
"""The scorer's time: it computes, and runs nothing of the submission."""


class ExportedTask(NamedTuple):
    """What an export writes of a task. The two functions write ground truth into a directory of their own."""

    instructions: str
    tree: Path
    """The agent's workspace, a git working tree."""
    program: str
    """Name of the verifier's program in `_inside`."""
    verifier_s: int
    write_verifier: Callable[[Path], None]
    write_solution: Callable[[Path], str]
    """Says why there is none; empty when it was written."""


def unexportable(task: EvaluationTask) -> str:
    """Why a task cannot be carried out by another harness; empty when it can."""
    family = task.public.family
    if family is Family.EXPERIMENT:
        return not_exportable(task)
    if family is Family.CAUSAL:
        return "its bench knows the answer and runs beside the container: evaluate it here, or serve it (`causal-mcp`)"
    if task.blocked or task.masked_repository is None or task.private is None:
        return task.blocked or "its workspace is not at hand"
    if _python_of(task) < _OLDEST:
        return f"its Python {task.public.environment.python} is too old for the scorer"
    if family is Family.TABLE and task.id.endswith(".code-only"):
        return "nothing is run in its code-only mode: there would be nothing to verify without a judge"
    return ""


def _python_of(task: EvaluationTask) -> tuple[int, ...]:
    stated = task.public.environment.python
    return tuple(int(part) for part in stated.split(".")[:2]) if stated else _OLDEST


def exported(task: EvaluationTask) -> ExportedTask:
    """How a task is exported; one that `unexportable` has nothing against.

    Raises:
        ExpbenchError: its files cannot be read.
    """
    resources_ = task.public.resources
    limits = EpisodeLimits(
        wall_s=resources_.wall_time_s, cpus=resources_.cpus, memory_mb=resources_.memory_mb, gpus=resources_.gpus
    )
    assert task.masked_repository is not None
    rules = family_rules(task.public.family)
    if rules is None:
        return ExportedTask(
            instructions=instructions(task, limits=limits),
            tree=task.masked_repository,
            program="verify.py",
            verifier_s=times(task).verifier,
            write_verifier=lambda directory: write_text(directory / "expected.json", expected_json(task)),
            write_solution=lambda directory: write_oracle(task, directory),
        )
    if task.public.family is Family.HISTOGRAM and (task.masked_repository / "bin" / "read-paper").is_file():
        # its service runs beside the container; the paper itself is in the workspace
        task = rules.without_tool(task, "read-paper")
    tree = task.masked_repository
    assert tree is not None
    return ExportedTask(
        instructions=rules.instructions(task, limits=limits),
        tree=tree,
        program="score.py",
        verifier_s=_SCORE_S,
        write_verifier=lambda directory: _write_scored(task, directory),
        write_solution=lambda directory: _write_family_solution(task, directory),
    )


# --- families that `expbench score` scores


def _write_scored(task: EvaluationTask, directory: Path) -> None:
    """`score.json`, and below `truth/` what it names."""
    write = _histogram if task.public.family is Family.HISTOGRAM else _table
    arguments, files = write(task, directory / "truth")
    value = {
        "task": task.id, "canary": CANARY, "family": task.public.family.value, "seconds": _SCORE_S,
        "arguments": {name: f"truth/{path}" for name, path in arguments.items()}, "files": files,
    }  # fmt: skip
    write_text(directory / "score.json", json.dumps(value, indent=1) + "\n")


def _histogram(task: EvaluationTask, truth: Path) -> tuple[Mapping[str, str], list[str]]:
    from evaluation.families.histogram.private import private_task

    known = private_task(task)
    assert task.private is not None
    for folder in ("task", "reference"):
        shutil.copytree(task.private / folder, truth / folder)
    arguments = {"--task": "task", "--reference": f"reference/{known.file}"}
    return arguments, [f"{_HISTOGRAM_FILES}/{known.file}"]


def _table(task: EvaluationTask, truth: Path) -> tuple[Mapping[str, str], list[str]]:
    from evaluation.families.table.imported import task_files
    from evaluation.families.table.rules import table_task

    known = table_task(task)
    for name, path in task_files(known).items():
        write_bytes(truth / "task" / name, path.read_bytes())
    return {"--task": "task"}, list(known.expected.all)


def _write_family_solution(task: EvaluationTask, directory: Path) -> str:
    """What the family's own oracle hands in."""
    rules = family_rules(task.public.family)
    assert rules is not None
    try:
        launch = rules.oracle(task, AgentContext(wall_s=_SCORE_S, instructions=""))
    except ExpbenchError as error:
        if error.kind is not FailureKind.DATA_UNAVAILABLE:
            raise
        return error.cause
    for name, text in sorted(launch.files.items()):
        if task.public.family is Family.TABLE:
            write_text(directory / name.removeprefix("solution/"), text)
        elif not name.endswith(".py"):  # the oracle's own program puts the file where it belongs
            write_text(directory / _HISTOGRAM_FILES / name, text)
    return ""


def scorer_packages() -> list[str]:
    """Exact pins of what the scorer needs: the versions that are installed here."""
    return [f"{name}=={version(name)}" for name in SCORER_PACKAGES]


def write_scorer(directory: Path) -> None:
    """Write `score.py`, and `expbench.zip`: our modules as Python imports them; the same bytes for the same modules."""
    write_text(directory / "score.py", program("score.py"))
    target = directory / "expbench.zip"
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in _PACKAGES:
            root = Path(str(resources.files(package)))
            for path in sorted(root.rglob("*")):
                if path.is_file() and "__pycache__" not in path.parts:
                    name = f"{package}/{path.relative_to(root).as_posix()}"
                    entry = zipfile.ZipInfo(name)  # 1980: times are not part of what the modules are
                    entry.compress_type = zipfile.ZIP_DEFLATED
                    archive.writestr(entry, path.read_bytes())
