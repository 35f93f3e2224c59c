"""Causal tasks for the harness: the brief and a client for the agent, the world for the graders.

The workspace is a git repository of three files; the frozen task, which holds the answer, lies in a directory that no
container mounts.
"""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Final

from evaluation.families.causal.generate import to_json
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.tools import brief, system_prompt, tools_for
from evaluation.lock import repository_commit
from evaluation.recipes import as_repository
from evaluation.task import EvaluationTask
from pipeline.digests import digest_of, text_digest
from pipeline.files import read_record
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.scratch import scratch_directory
from pipeline.store import write_if_changed
from pipeline.task import Environment, Family, Provenance, PublicTask, Resources, Status

__all__ = ["WORLD", "evaluation_task", "world_of"]

WORLD: Final = "world.json"
PAPER: Final = Paper(
    id="petri-bench",
    title="petri-bench: Scoring the Scientific Method of LLM Agents on Procedurally Generated Causal-Discovery Tasks",
    year=2026,
    url="https://doi.org/10.5281/zenodo.20618024",
)
"""The benchmark that the family follows; the worlds themselves are generated here and in no paper."""
_LAUNCHER: Final = '#!/bin/sh\nexec python3 "$(dirname -- "$0")/bench.py" "$@"\n'
_NOT_BUILT: Final = "0" * 40
_MARKDOWN: Final = """\
# {title}

{system}

```
{brief}
```

# The bench

Experiments run on a bench outside this directory. `./bench --help` (or `import bench` in Python, from this directory)
has four tools:

{tools}

`./bench status` tells how many of the {budget} calls are left; experiments and probes count; claims and refused
calls do not. An answer is final and ends the episode. The form of the answer:

```json
{answer}
```

Answers are statistics only: means of both sides, relative change, Mann-Whitney U, the p value adjusted by Holm over the
simulation's metrics, whether it is significant (p < 0.05), and Cliff's delta (positive: side b is larger).
"""
_ANSWERS: Final = {
    "L1": '{"params": ["NAME"], "direction": "up"}',
    "L2": '{"params": ["NAME"], "direction": "up", "magnitude": "small"}',
    "L3": '{"params": ["NAME", "NAME"], "interaction": "positive"}',
    "L1V": '{"params": ["NAME"], "effects": {"METRIC": "up", "OTHER": "none"}}',
    "L1B": '{"params": ["NAME"], "metric": "METRIC", "direction": "up"}',
    "L4": '{"params": ["NAME"], "estimate": 0.5}',
}


def evaluation_task(task: CausalTask, *, scratch: Path, build: bool) -> EvaluationTask:
    """The task as the harness runs it.

    Args:
        task: the frozen task.
        scratch: directory for workspaces and what only graders see; what is there is used again.
        build: without it, nothing is written, and the task is blocked.

    Raises:
        ExpbenchError: git is missing, the disk is full.
    """
    files = _files(task)
    workspace = private = None
    if build:
        workspace = _workspace(task, files, scratch)
        private = scratch / "private" / task.id
        private.mkdir(parents=True, exist_ok=True)
        write_if_changed(private / WORLD, to_json(task))
    public = PublicTask(
        id=task.id,
        family=Family.CAUSAL,
        status=Status.RELEASED,
        paper=PAPER,
        repository=RepositoryRef(
            url="generated", commit=repository_commit(workspace) or _NOT_BUILT, license="Apache-2.0"
        ),
        question=brief(task),
        method=system_prompt(task),
        agent_instructions=files["TASK.md"],
        environment=Environment(),
        resources=Resources(cpus=1.0, memory_mb=1024, wall_time_s=1800),
        provenance=Provenance(engine="keyless", stages=(("generate", f"{task.simulation} {task.engine_version}"),)),
    )
    return EvaluationTask(
        public=public,
        category=task.tier,
        masked_repository=workspace,
        private=private,
        private_digest=text_digest(to_json(task)),
        blocked="" if build else "its workspace was not asked for",
    )


def _files(task: CausalTask) -> dict[str, str]:
    tools = "\n".join(f"- `{name}`: {text}" for name, (text, _) in tools_for(task).items())
    title = "Phase boundary" if task.tier == "L4" else "Mystery world"
    text = _MARKDOWN.format(
        title=title,
        system=system_prompt(task),
        brief=brief(task),
        tools=tools,
        budget=task.budget,
        answer=_ANSWERS[task.tier],
    )
    program = resources.files("evaluation.families.causal.workspace_files").joinpath("bench.py")
    return {"TASK.md": text, "bench": _LAUNCHER, "bench.py": program.read_text(encoding="utf-8")}


def _workspace(task: CausalTask, files: dict[str, str], scratch: Path) -> Path:
    """The repository of one commit; named by its content, so that another version of the client is another one."""
    into = scratch / "masked" / f"{task.id}-{digest_of(files)[:16]}"
    if (into / ".git").is_dir():  # renamed into place when it was complete
        return into
    into.parent.mkdir(parents=True, exist_ok=True)
    with scratch_directory(into.parent) as made:
        for name, text in files.items():
            path = Path(made) / name
            path.write_text(text, encoding="utf-8")
            path.chmod(0o644 if name == "TASK.md" else 0o755)
        return as_repository(Path(made), RepositoryRef(url="generated", commit=_NOT_BUILT), into)


def world_of(task: EvaluationTask) -> CausalTask:
    """The frozen task behind a task of the harness; graders' side only.

    Raises:
        ExpbenchError: `RECORD_INVALID`.
    """
    return read_record(
        (task.private or Path()) / WORLD, CausalTask, consequence="The episode cannot be run or graded",
        next_step="Run the same command with --resume: it is written again from the frozen task",
    )  # fmt: skip
