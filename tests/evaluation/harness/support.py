"""Gateways before a real protocol server, and a small run: tasks, agent scripts, everything that a run needs."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2
from pydantic import SecretStr

from evaluation.agents.base import AgentAdapter
from evaluation.episode import EpisodeLimits
from evaluation.harness.agent_step import AgentStep
from evaluation.harness.episode_runner import EpisodeRunner
from evaluation.harness.gateway import MODEL_SOCKET, Gateway
from evaluation.harness.graders import Graders
from evaluation.harness.meter import GatewayTotals
from evaluation.harness.recorder import read_calls
from evaluation.harness.run import run_owner
from evaluation.harness.upstream import Upstream
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.errors import FailureKind
from pipeline.llm.prices import Price, PriceList
from pipeline.progress import Reporter, SilentReporter
from pipeline.sandbox import StoppableSandbox, open_sandbox
from pipeline.task import DesignVariable, Requirement
from tests.doubles.protocol_server import ProtocolServer
from tests.evaluation.execution_support import make_task, public_task, truth

KEY = "sk-CANARY-KEY-4f9d1c0b7a6e5d3c2b1a"
"""What no agent may ever see."""
PRICES = PriceList(
    as_of="2026-01-01", models=(Price(model="scripted", input="1", output="2"),)  # type: ignore[arg-type]
)  # fmt: skip
SMALL = EpisodeLimits(wall_s=60, cpus=1, memory_mb=256, pids=64, disk_mb=32, output_mb=1)


def upstreams(server: ProtocolServer) -> tuple[Upstream, Upstream]:
    """Both protocols of a protocol server."""
    key = SecretStr(KEY)
    return (
        Upstream(provider="openai", url=server.base_url, default=False, key=key),
        Upstream(provider="anthropic", url=server.base_url, default=False, key=key),
    )


class Opened:
    """A gateway and what it told."""

    def __init__(self, folder: Path, gateway: Gateway, events: list[Event], broken: list[Any]) -> None:
        self.folder, self.gateway, self.events, self.broken = folder, gateway, events, broken
        self.record = folder / "calls.jsonl"
        self.lines: list[str] = []
        self.whole: list[dict[str, Any]] = []
        self.totals = GatewayTotals()
        self.clients = ExitStack()

    def client(self) -> httpx2.Client:
        """A client of its socket; base `/v1`."""
        transport = httpx2.HTTPTransport(uds=str(self.folder / MODEL_SOCKET))
        client = httpx2.Client(transport=transport, base_url="http://gateway/v1", timeout=60)
        self.clients.callback(client.close)
        return client


@contextmanager
def gateway(server: ProtocolServer | None, limits: EpisodeLimits = SMALL, **options: Any) -> Iterator[Opened]:
    """A gateway in a directory with a short path (pytest's are longer than a socket's path may be)."""
    events: list[Event] = []
    broken: list[tuple[FailureKind, str]] = []
    with tempfile.TemporaryDirectory(prefix="gw-") as name:
        folder = Path(name)
        known = () if server is None else upstreams(server)
        given: dict[str, Any] = {"upstreams": known, "prices": PRICES} | options
        made = Gateway(
            folder, limits=limits, record=folder / "calls.jsonl", emit=events.append,
            broken=lambda kind, detail: broken.append((kind, detail)), **given,
        )  # fmt: skip
        with made as running:
            opened = Opened(folder, running, events, broken)
            with opened.clients:
                yield opened
        opened.lines = opened.record.read_text(encoding="utf-8").splitlines()
        opened.whole = list(read_calls(opened.record))
        opened.totals = made.totals()


# --- a small run -----------------------------------------------------------------------------------------------------

ANSWER = json.dumps(
    {
        "design": {"independent": {"rule": ["A", "B"]}},
        "conclusion": {"text": "Rule A wins.", "numbers": {"score": 0.75}},
        "outputs": ["out.txt"],
    }
)
HONEST = f"""\
cat > response.json <<'END'
{ANSWER}
END
cat > experiment.py <<'END'
score = sum([1, 1, 1, 0]) / 4
print("score", score)
open("out.txt", "w").write(str(score))
END
echo 'python experiment.py' > reproduce.sh
bash reproduce.sh
"""
ASKING = (
    """\
python - <<'END'
import json, os, urllib.request
body = {"model": os.environ["EXPBENCH_MODEL"], "messages": [{"role": "user", "content": "hello"}]}
request = urllib.request.Request(
    os.environ["OPENAI_BASE_URL"] + "/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"}
)
print(json.load(urllib.request.urlopen(request))["choices"][0]["message"]["content"])
END
"""
    + HONEST
)
"""Asks its model once, then does the work."""


def tiny_tasks(directory: Path, count: int) -> list[EvaluationTask]:
    """Tasks with a repository of two files and a small ground truth."""
    facts = truth().evolve(
        independent=(DesignVariable(name="rule", values=("A", "B")),),
        requirements=(Requirement(text="Compute the score as a mean", spans=()),),
    )
    return [
        make_task(
            directory / f"task{number}",
            {"README.md": "A repository.\n", "lib.py": f"NUMBER = {number}\n"},
            public=public_task(id=f"paper-task-{number}"),
            truth=facts,
        )
        for number in range(count)
    ]


def tiny_runner(
    root: Path,
    agent: AgentAdapter,
    *,
    limits: EpisodeLimits = SMALL,
    server_url: str | None = None,
    reporter: Reporter | None = None,
    graders: Graders | None = None,
    allow: tuple[str, ...] = (),
) -> tuple[EpisodeRunner, StoppableSandbox]:
    """A runner in Docker; with `server_url` (of a protocol server, ending in `/v1`) the agent has a model."""
    sandbox = open_sandbox("docker")
    assert isinstance(sandbox, StoppableSandbox)
    known = () if server_url is None else (
        Upstream(provider="openai", url=server_url, default=False, key=SecretStr(KEY)),
    )  # fmt: skip
    step = AgentStep(
        agent=agent, sandbox=sandbox, limits=limits, owner=run_owner(root),
        model=None if server_url is None else "scripted", upstreams=known, prices=PRICES, allow=allow,
    )  # fmt: skip
    runner = EpisodeRunner(
        root=root, run=root.name, agent_step=step, graders=graders or Graders(), agent_options={},
        reporter=reporter or SilentReporter(), pause=lambda seconds: None,
    )  # fmt: skip
    return runner, sandbox
