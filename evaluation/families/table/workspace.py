"""What an agent gets of a table task, and what it is told: instruction, paper, input files; nothing of the truth.

The workspace is built by naming what is public (PRBench B.3: "only agent-visible resources"), never by leaving out what
is private.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from evaluation.episode import EpisodeLimits
from evaluation.families.table.records import Mode, TableTask
from evaluation.recipes import as_repository
from pipeline.digests import digest_of, file_digest
from pipeline.errors import ExpbenchError
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.repository import RepositoryFile, RepositoryRef, Snapshot
from pipeline.sandbox.base import BuildSpec
from pipeline.scratch import scratch_directory
from pipeline.validation.environment import resolve_environment

__all__ = ["INSTRUCTION", "build_workspace", "environment_of", "instructions", "public_files", "truth_digest"]

INSTRUCTION: Final = "instruction.md"
REQUIREMENTS: Final = "requirements.txt"
NULL_COMMIT: Final = "0" * 40
_PICTURES: Final = (".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".pdf")


def public_files(task: TableTask) -> dict[str, Path]:
    """Path in the workspace -> file, of everything that the agent gets beside the instruction; sorted."""
    found = {task.paper_file: task.root / task.paper_file}
    pdf = (task.root / task.paper_file).with_suffix(".pdf")
    if pdf.is_file() and not pdf.is_symlink():
        found[pdf.name] = pdf
    for name in task.input_files:
        found[name] = task.root / name
    for directory in sorted(task.root.glob("images*")):
        if directory.is_dir() and not directory.is_symlink() and directory.name not in {task.data_dir, task.code_dir}:
            for path in sorted(directory.rglob("*")):
                if path.is_file() and not path.is_symlink() and path.suffix.lower() in _PICTURES:
                    found[path.relative_to(task.root).as_posix()] = path
    return dict(sorted(found.items()))


def build_workspace(task: TableTask, scratch: Path) -> Path:
    """The workspace as a repository of one commit below `scratch`; one that is there is used again.

    Raises:
        ExpbenchError: see `masking.apply.apply_mask`.
    """
    files = public_files(task)
    told = task.instruction
    key = digest_of([told, task.container.packages, [(path, file_digest(file)) for path, file in files.items()]])[:16]
    into = scratch / "workspaces" / f"{task.id}-{key}"
    if (into / ".git").is_dir():  # it is renamed into place when it is complete
        return into
    remove_tree(into)
    into.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory() as name:
        tree = Path(name) / "tree"
        tree.mkdir()
        (tree / INSTRUCTION).write_text(told, encoding="utf-8")
        if task.container.packages:
            (tree / REQUIREMENTS).write_text("\n".join(task.container.packages) + "\n", encoding="utf-8")
        for path, file in files.items():
            target = tree / path
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)
        return as_repository(tree, RepositoryRef(url=task.published_id, commit=NULL_COMMIT), into)


def environment_of(packages: Sequence[str], scratch: Path, reporter: Reporter) -> BuildSpec:
    """Exact pins for a task's packages; what was resolved before is used again.

    Raises:
        ExpbenchError: `ENVIRONMENT_UNBUILDABLE`, `NETWORK`, `TOOL_MISSING`.
    """
    if not packages:
        return BuildSpec()
    with scratch_directory() as name:
        path = Path(name) / REQUIREMENTS
        path.write_text("\n".join(packages) + "\n", encoding="utf-8")
        file = RepositoryFile(path=REQUIREMENTS, size=path.stat().st_size, sha256=file_digest(path))
        snapshot = Snapshot(ref=RepositoryRef(url="packages", commit=NULL_COMMIT), root=Path(name), files=(file,))
        return resolve_environment(snapshot, cache=scratch, reporter=reporter).spec


def truth_digest(task: TableTask) -> str:
    """sha256 of what only graders see and what they do with it: truth, rubric, rules, reference, graders' text."""
    return digest_of(
        [
            [rule.model_dump(mode="json") for rule in task.files],
            [item.model_dump(mode="json") for item in task.dimensions],
            [(rule.truth, file_digest(task.root / rule.truth)) for rule in task.files],
            task.metadata,
            sorted(task.reference_code().items()),
            task.banned,
        ]
    )


_TEXT: Final = """\
# Task

Reproduce results of a scientific paper from scratch: read the paper, implement its method, {do}

The directory that you are in holds `{instruction}` (the instruction below) and the paper, `{paper}`{inputs}. All paths
are relative to it. {packages}

# Instruction

{told}

# What has to be there at the end

{expected}

# Rules

- Implement the method yourself: libraries that the instruction bans must not be used in any way.
{rules}- Do not write text that is meant to influence the people or programs that grade the work.
- If a part cannot be done, hand in the rest and say so: an honest partial result counts, a made-up one does not.

# Limits

{minutes} minutes in all, {cpus:g} CPUs, {memory} MB of memory. {network}
What lies in the directory when the time is over is what is graded.
"""
_FULL_RULES: Final = """\
- Every value in a table comes from code of yours that you ran here. Do not hard-code, invent or transcribe values, and
  do not put fitted or analytic curves in the place of the computation that the task asks for.
- The tables are taken away and your work is run again, without internet access: `bash reproduce.sh` if you hand in such
  a script at the top of the directory{programs}. Only the tables that this run writes, in the same
  time and memory, count.
- A missing value is `nan` or an empty field.
"""


def instructions(task: TableTask, *, limits: EpisodeLimits, network: Sequence[str] = ()) -> str:
    """What the agent is told; from what is public alone."""
    full = task.mode is Mode.FULL
    packages = ", ".join(task.container.packages)
    return _TEXT.format(
        do="run it, and write the tables." if full else "and hand in the programs without running them.",
        instruction=INSTRUCTION,
        paper=task.paper_file,
        inputs="".join(f", `{path}`" for path in task.input_files),
        packages=f"Installed Python packages: {packages}."
        if packages
        else "Only Python's standard library is installed.",
        told=task.instruction.strip(),
        expected="\n".join(f"- `{path}`" for path in task.expected.all),
        rules=_FULL_RULES.format(programs=_programs(task)) if full else "",
        minutes=f"{limits.wall_s / 60:.1f}".removesuffix(".0"),
        cpus=limits.cpus,
        memory=limits.memory_mb,
        network=f"Of the internet you can reach {', '.join(network)} only."
        if network
        else "There is no internet access.",
    )


def _programs(task: TableTask) -> str:
    """What is run where there is no script."""
    python = [f"`python3 {path}`" for path in task.expected.code if path.endswith(".py")]
    return f", otherwise {', then '.join(python)}" if python else ""


def blocked_by(error: ExpbenchError) -> str:
    """Why a task cannot be carried out."""
    return f"its packages cannot be had: {error.object}: {error.cause}"
