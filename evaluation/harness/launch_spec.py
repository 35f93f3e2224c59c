"""What the sandbox is asked to run for an agent: launcher, sockets, tracer, mounts, limits.

The launcher connects ports of the container with the sockets of the gateway; where an agent's programs are traced, the
watcher stands between it and the agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.episode import EpisodeLimits
from evaluation.harness.gateway import EGRESS_SOCKET, MODEL_SOCKET
from evaluation.harness.processes import TRACE_SOCKET, WATCHER
from evaluation.harness.submission_reader import CACHES
from evaluation.harness.upstream import Upstream
from evaluation.harness.workspace import LAUNCHER
from pipeline.sandbox.base import Command, Gpus, Limits, ReadOnlyMount, RunSpec

__all__ = ["agent_context", "launch_spec"]

_HARNESS: Final = "/harness"
_PYTHON: Final = "/opt/venv/bin/python"
_MODEL_PORT: Final = 8788
_EGRESS_PORT: Final = 8789


def agent_context(
    told: str, *, model: str | None, upstreams: Iterable[Upstream], wall_s: float, seed: int = 0
) -> AgentContext:
    """What an adapter knows of an episode when it builds a launch.

    Args:
        told: the instructions.
        model: the agent's; None: none is named.
        upstreams: the endpoints that the gateway leads to.
        wall_s: what the episode may take, in seconds.
        seed: for agents that take one.
    """
    url = f"http://127.0.0.1:{_MODEL_PORT}"
    speaks = {upstream.provider for upstream in upstreams}
    return AgentContext(
        model=model, base_url_openai=f"{url}/v1" if "openai" in speaks else None,
        base_url_anthropic=url if "anthropic" in speaks else None, wall_s=wall_s, instructions=told, seed=seed,
    )  # fmt: skip


def launch_spec(
    launch: AgentLaunch, more: Mapping[str, str], limits: EpisodeLimits, *,
    inbox: Path, harness: Path, gateway: bool, egress: bool, gpu_type: str | None,
) -> RunSpec:  # fmt: skip
    """The run of a launch.

    Args:
        launch: by the adapter.
        more: variables of what runs beside the container.
        limits: of the episode.
        inbox: directory with the launch's files.
        harness: directory with launcher, watcher and sockets.
        gateway: is there one?
        egress: may the agent reach allowed hosts through it?
        gpu_type: part of the GPU's name.
    """
    context = AgentContext(wall_s=1, instructions="")
    ports = [f"{_MODEL_PORT}={_HARNESS}/{MODEL_SOCKET}"] if gateway else []
    env = dict(launch.env) | dict(more)
    if egress:
        ports.append(f"{_EGRESS_PORT}={_HARNESS}/{EGRESS_SOCKET}")
        ports.append(f"dns={_HARNESS}/{EGRESS_SOCKET}")
        proxy = f"http://127.0.0.1:{_EGRESS_PORT}"
        # plain http is refused, too, where it is seen
        env |= dict.fromkeys(("HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy"), proxy)
        env |= dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost")
    # without a port to open there is nothing for the launcher to do, and it is a Python to start
    starter = (_PYTHON, "-I", "-S", f"{_HARNESS}/{LAUNCHER}", *ports, "--") if ports else ()
    if launch.traced:
        starter = (*starter, _PYTHON, "-I", "-S", f"{_HARNESS}/{WATCHER}", f"{_HARNESS}/{TRACE_SOCKET}", "--")
    mounts = [ReadOnlyMount(source=mount.source, target=mount.target) for mount in launch.mounts]
    return RunSpec(
        commands=(Command(argv=(*starter, *launch.argv)),),
        env=env,
        limits=_sandbox_limits(limits),
        drop=CACHES,
        mounts=(
            ReadOnlyMount(source=inbox, target=context.inbox),
            ReadOnlyMount(source=harness, target=_HARNESS),
            *mounts,
        ),
        outbox=context.outbox,
        dns="127.0.0.1" if egress else None,
        gpus=Gpus(count=limits.gpus, type=gpu_type) if limits.gpus else None,
    )


def _sandbox_limits(limits: EpisodeLimits) -> Limits:
    return Limits(
        wall_s=limits.wall_s, cpus=limits.cpus, memory_mb=limits.memory_mb, pids=limits.pids,
        disk_mb=limits.disk_mb, output_mb=limits.output_mb,
    )  # fmt: skip
