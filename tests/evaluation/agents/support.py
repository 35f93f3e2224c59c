"""What the tests of agents share."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.registry import get_agent
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.paper import Paper
from pipeline.repository import RepositoryRef
from pipeline.task import Family, Provenance, PublicTask, Status

MODEL_URL = "http://127.0.0.1:8788"
RESPONSE = json.dumps(
    {
        "design": {"constant": {"seed": ["0"]}, "independent": {"x": ["6", "7"]}, "dependent": {"y": ["product"]}},
        "conclusion": {"text": "y is 42", "numbers": {"y": 42}},
        "outputs": ["result.txt"],
    }
)
PROGRAM = "y = 6 * 7\nprint('y =', y)\nopen('result.txt', 'w').write(str(y))\n"
REPRODUCE = "set -e\npython3 run.py\n"


def context(**changes: Any) -> AgentContext:
    values = {
        "model": "scripted", "base_url_openai": f"{MODEL_URL}/v1", "base_url_anthropic": MODEL_URL, "wall_s": 120.0,
        "instructions": "Compute y.",
    } | changes  # fmt: skip
    return AgentContext(**values)


def run_iterative(folder: Path, base_url: str, options: dict[str, str] | None = None, **changes: Any) -> list[Event]:
    """Run the program as it is shipped, with this Python, in a directory instead of a container.

    Returns:
        The events of its log; what it left lies in `folder/work`, its exit code in `folder/code`.
    """
    places = {name: folder / name for name in ("inbox", "outbox", "work")}
    for path in places.values():
        path.mkdir()
    launch = start_of(get_agent("iterative", options), context(
        workspace=str(places["work"]), inbox=str(places["inbox"]), outbox=str(places["outbox"]),
        base_url_openai=base_url, **changes,
    ))  # fmt: skip
    for name, text in launch.files.items():
        target = places["inbox"] / name
        target.parent.mkdir(exist_ok=True)
        target.write_text(text, encoding="utf-8")
    argv = [sys.executable, *launch.argv[1:]]
    done = subprocess.run(argv, cwd=places["work"], capture_output=True, timeout=120, check=False)
    (folder / "stdout").write_bytes(done.stdout)
    (folder / "stderr").write_bytes(done.stderr)
    (folder / "code").write_text(str(done.returncode))
    return list(get_agent("iterative").read_events(places["outbox"], folder / "stdout", folder / "stderr"))


def start_of(agent: Any, where: AgentContext) -> AgentLaunch:
    launch = agent.launch(task(), where)
    assert isinstance(launch, AgentLaunch)
    return launch


def task(tree: Path | None = None) -> EvaluationTask:
    """The smallest task there is."""
    public = PublicTask(
        id="paper-product",
        family=Family.EXPERIMENT,
        status=Status.MASKED,
        paper=Paper(id="paper", title="A paper"),
        repository=RepositoryRef(url="repository", commit="0" * 40),
        question="What is y?",
        method="Multiply.",
        agent_instructions="Compute y.",
        provenance=Provenance(engine="keyless"),
    )
    return EvaluationTask(public=public, masked_repository=tree)
