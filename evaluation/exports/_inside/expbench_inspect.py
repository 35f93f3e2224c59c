"""Inspect tasks made by expbench; they need inspect-ai alone.

    inspect eval expbench_inspect.py --model openai/gpt-5-mini
    inspect eval expbench_inspect.py -T only=TASK-ID --model openai/gpt-5-mini
    inspect eval expbench_inspect.py --solver oracle --model mockllm/model       (the ceiling: applies the ground truth)

The agent sees the instructions and the masked repository in its sandbox. What it is verified with is in `private/` and
reaches the sandbox after the agent has ended; `-T sandbox=local` runs everything on this machine, without isolation.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return"

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from inspect_ai import Task, task
from inspect_ai.agent import react
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import Generate, Solver, TaskState, solver
from inspect_ai.tool import bash, python
from inspect_ai.util import sandbox as environment

HERE = Path(__file__).resolve().parent
WORKSPACE = "workspace"
TOOL_SECONDS = 600


def samples(sandbox: str, only: str | None) -> list[Sample]:
    """One sample a task; nothing of its ground truth."""
    found = []
    for line in (HERE / "samples.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if only is not None and row["id"] != only:
            continue
        compose = str(HERE / "environments" / row["id"] / "compose.yaml")
        found.append(
            Sample(
                id=row["id"],
                input=row["input"],
                metadata=row["metadata"],
                files={"repository.tar.gz": str(HERE / "environments" / row["id"] / "repository.tar.gz")},
                setup=f"mkdir -p {WORKSPACE} && tar -xzf repository.tar.gz -C {WORKSPACE} && rm repository.tar.gz",
                sandbox=(sandbox, compose) if sandbox == "docker" else sandbox,
            )
        )
    return found


@task
def expbench(sandbox: str = "docker", only: str | None = None) -> Task:
    """Research experiments from papers.

    Args:
        sandbox: `docker`, or another provider of Inspect.
        only: id of the one task to run.
    """
    return Task(
        dataset=MemoryDataset(samples(sandbox, only), name="expbench"),
        solver=react(tools=[bash(timeout=TOOL_SECONDS), python(timeout=TOOL_SECONDS)]),
        scorer=verified(),
    )


@solver
def oracle() -> Solver:
    """Apply the ground truth: a task on which this does not score 1 is not sound."""

    async def solve(state: TaskState, generate: Generate) -> TaskState:
        root = HERE / "private" / str(state.sample_id) / "solution"
        if not root.is_dir():
            raise FileNotFoundError(f"{state.sample_id} has no solution: export from the workspace of its curation")
        for path in sorted(root.rglob("*")):
            if path.is_file():
                await environment().write_file(f"{WORKSPACE}/{path.relative_to(root).as_posix()}", path.read_bytes())
        return state

    return solve


@scorer(metrics={"reward": [mean(), stderr()], "execution": [mean()], "conclusion": [mean()]})
def verified() -> Scorer:
    """Does the submission run again, and are its numbers those that were expected?"""

    async def score(state: TaskState, target: Target) -> Score:
        private = HERE / "private" / str(state.sample_id)
        expected = (private / "expected.json").read_text(encoding="utf-8")
        box = environment()
        await box.write_file("verifier/verify.py", (HERE / "verify.py").read_text(encoding="utf-8"))
        await box.write_file("verifier/expected.json", expected)
        seconds = json.loads(expected)["seconds"] + 120
        arguments = ["--workspace", WORKSPACE, "--expected", "verifier/expected.json", "--out", "verifier/out"]
        done = await box.exec(["python3", "verifier/verify.py", *arguments], timeout=seconds)
        if not done.success:  # the machinery failed: Inspect reports an error, no score
            raise RuntimeError(f"the verifier did not run: {done.stderr[-2000:]}")
        details: dict[str, Any] = json.loads(await box.read_file("verifier/out/details.json"))
        return Score(value=details["rewards"], explanation=details["execution"], metadata={"claims": details["claims"]})

    return score
