"""What the sandbox is asked to run for a launch: launcher, ports, watcher, mounts, variables, limits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from evaluation.agents.base import AgentLaunch, Mount
from evaluation.episode import EpisodeLimits
from evaluation.harness.launch_spec import agent_context, launch_spec
from evaluation.harness.submission_reader import CACHES
from evaluation.harness.upstream import Upstream
from pipeline.sandbox.base import Gpus, Limits, Network, RunSpec

LIMITS = EpisodeLimits(wall_s=1, cpus=2, memory_mb=3, pids=4, disk_mb=5, output_mb=6)
LAUNCH = AgentLaunch(argv=("agent", "go"), env={"A": "1", "B": "1"})
PYTHON = ("/opt/venv/bin/python", "-I", "-S")
MODEL, ALLOWED, NAMES = "8788=/harness/model.sock", "8789=/harness/egress.sock", "dns=/harness/egress.sock"


def spec(launch: AgentLaunch = LAUNCH, limits: EpisodeLimits = LIMITS, **changes: Any) -> RunSpec:
    given: dict[str, Any] = {
        "inbox": Path("/i"),
        "harness": Path("/h"),
        "gateway": False,
        "egress": False,
        "gpu_type": None,
    }
    return launch_spec(launch, {"B": "2", "C": "3"}, limits, **(given | changes))


@pytest.mark.parametrize(
    ("gateway", "egress", "ports"),
    [
        (False, False, ()),
        (True, False, (MODEL,)),
        (False, True, (ALLOWED, NAMES)),
        (True, True, (MODEL, ALLOWED, NAMES)),
    ],
)
@pytest.mark.parametrize("traced", [False, True])
def test_the_launcher_opens_the_ports_and_the_watcher_stands_before_the_agent(
    gateway: bool, egress: bool, ports: tuple[str, ...], traced: bool
) -> None:
    [command] = spec(LAUNCH.evolve(traced=traced), gateway=gateway, egress=egress).commands
    opening = (*PYTHON, "/harness/launch.py", *ports, "--") if ports else ()
    watching = (*PYTHON, "/harness/watch.py", "/harness/trace.sock", "--") if traced else ()
    assert command.argv == (*opening, *watching, "agent", "go")


def test_variables_of_the_companion_go_before_those_of_the_agent() -> None:
    assert spec().env == {"A": "1", "B": "2", "C": "3"}


def test_allowed_hosts_are_reached_by_proxy_and_names_are_answered_inside() -> None:
    made = spec(egress=True)
    proxy = "http://127.0.0.1:8789"
    wanted = dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy)
    wanted |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    assert made.env == {"A": "1", "B": "2", "C": "3"} | wanted
    assert made.dns == "127.0.0.1"
    assert made.network is Network.NONE, "the container itself has none in any case"
    assert spec(gateway=True).dns is None


def test_what_the_container_sees_of_this_machine() -> None:
    made = spec(LAUNCH.evolve(mounts=(Mount(source=Path("/b"), target="/bundle"),)))
    assert [(mount.source, mount.target) for mount in made.mounts] == [
        (Path("/i"), "/agent"), (Path("/h"), "/harness"), (Path("/b"), "/bundle"),
    ]  # fmt: skip
    assert (made.outbox, made.drop) == ("/agent-out", CACHES)
    assert made.limits == Limits(wall_s=1, cpus=2, memory_mb=3, pids=4, disk_mb=5, output_mb=6)


def test_gpus_are_asked_for_where_the_limits_name_some() -> None:
    assert spec(gpu_type="A40").gpus is None
    assert spec(limits=LIMITS.evolve(gpus=2), gpu_type="A40").gpus == Gpus(count=2, type="A40")
    assert spec(limits=LIMITS.evolve(gpus=1)).gpus == Gpus(count=1)


@pytest.mark.parametrize(
    ("providers", "openai", "anthropic"),
    [((), None, None), (("openai",), "http://127.0.0.1:8788/v1", None), (("anthropic",), None, "http://127.0.0.1:8788"),
     (("openai", "anthropic"), "http://127.0.0.1:8788/v1", "http://127.0.0.1:8788")],
)  # fmt: skip
def test_what_an_adapter_is_told(providers: tuple[Any, ...], openai: str | None, anthropic: str | None) -> None:
    upstreams = [Upstream(provider=name, url="u", default=True, key=SecretStr("k" * 12)) for name in providers]
    made = agent_context("do it", model="m", upstreams=upstreams, wall_s=9, seed=4)
    assert (made.base_url_openai, made.base_url_anthropic) == (openai, anthropic)
    assert (made.instructions, made.model, made.wall_s, made.seed) == ("do it", "m", 9, 4)
    assert agent_context("x", model=None, upstreams=(), wall_s=9).seed == 0
