"""Inspect tasks made by expbench; they need inspect-ai alone.

    inspect eval expbench_inspect.py --model openai/gpt-5-mini
    inspect eval expbench_inspect.py -T only=TASK-ID --model openai/gpt-5-mini
    inspect eval expbench_inspect.py --solver oracle --model mockllm/model       (the ceiling: applies the ground truth)

The agent sees the instructions and the masked repository in its sandbox. What it is verified with is in `private/` and
reaches the sandbox after the agent has ended; `-T sandbox=local` runs everything on this machine, without isolation.
Histograms and tables are taken out of the sandbox and scored on this machine by `expbench score`: the command
`expbench` has to be on the path, or named in the environment variable EXPBENCH.
"""
# mypy: disable-error-code="import-not-found,untyped-decorator,misc,no-any-return"

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
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
REWARDS = {
    "experiment": ("execution", "conclusion"),
    "histogram": ("closeness", "valid"),
    "table": ("overall", "data_accuracy"),
}


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


def reported() -> tuple[str, ...]:
    """What is reported beside `reward`: what all samples have, which is nothing where there are several families."""
    lines = (HERE / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    families = {json.loads(line)["metadata"]["family"] for line in lines}
    return REWARDS[families.pop()] if len(families) == 1 else ()


def of_all(rewards: dict[str, float]) -> dict[str, float]:
    """The rewards that are reported; Inspect takes means over samples with the same names only."""
    return {name: rewards[name] for name in ("reward", *reported())}


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


@scorer(metrics={"reward": [mean(), stderr()], **{name: [mean()] for name in reported()}})
def verified() -> Scorer:
    """Does the submission run again, and are its numbers those that were expected?"""

    async def score(state: TaskState, target: Target) -> Score:
        private = HERE / "private" / str(state.sample_id)
        if (private / "score.json").is_file():
            return await scored(private)
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
        return Score(
            value=of_all(details["rewards"]), explanation=details["execution"], metadata={"claims": details["claims"]}
        )

    return score


async def scored(private: Path) -> Score:
    """The submission, taken out of the sandbox, and scored by `expbench score` on this machine."""
    settings = json.loads((private / "score.json").read_text(encoding="utf-8"))
    with tempfile.TemporaryDirectory(prefix="expbench-score-") as scratch:
        submission, out = Path(scratch) / "submission", Path(scratch) / "out"
        submission.mkdir()
        for name in settings["files"]:
            try:
                data = await environment().read_file(f"{WORKSPACE}/{name}", text=False)
            except (FileNotFoundError, IsADirectoryError, PermissionError):
                continue  # not handed in: the scorer counts it
            target = submission / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        given = ["--score", str(private / "score.json"), "--submission", str(submission), "--out", str(out)]
        done = subprocess.run(
            [sys.executable, str(HERE / "score.py"), *given], capture_output=True, text=True, check=False
        )
        if done.returncode:  # the machinery failed: Inspect reports an error, no score
            raise RuntimeError(done.stderr[-2000:])
        details: dict[str, Any] = json.loads((out / "details.json").read_text(encoding="utf-8"))
    explanation = details["report"].get("reason") or json.dumps(details["rewards"])
    return Score(value=of_all(details["rewards"]), explanation=explanation, metadata={"report": details["report"]})
