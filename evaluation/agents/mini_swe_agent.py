"""mini-SWE-agent (SWE-agent team): bash only, every command in a new shell; run headless from a bundle."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import ProductAgent, model_and_url
from evaluation.agents.readers.mini_swe_agent import read_mini_swe_agent
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["MiniSweAgent", "MiniSweOptions"]

_TRAJECTORY: Final = "trajectory.json"
_MARGIN_S: Final = 10.0


class MiniSweOptions(Record):
    """What a user may set."""

    max_steps: int = Field(default=0, ge=0)
    """0: no limit but the harness's."""
    command_timeout_s: int = Field(default=600, ge=1)
    """Its own default, 30 s, ends experiments."""


class MiniSweAgent(ProductAgent):
    """Adapter of mini-SWE-agent."""

    name = "mini-swe-agent"
    description = "mini-SWE-agent: a bash-only loop (OpenAI-compatible models)"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, MiniSweOptions)

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "openai")
        bundle, mounts = self.bundle()
        config = {
            "run": {"task": context.instructions},
            "agent": {
                "mode": "yolo",
                "confirm_exit": False,
                "step_limit": self._options.max_steps,
                "cost_limit": 0.0,  # money is counted and capped by the gateway, which knows the prices
                "wall_time_limit_seconds": int(max(context.wall_s - _MARGIN_S, context.wall_s / 2)),
                "output_path": f"{context.outbox}/{_TRAJECTORY}",
            },
            "environment": {"cwd": context.workspace, "timeout": self._options.command_timeout_s},
            "model": {
                "model_name": f"openai/{model}",
                "model_kwargs": {"api_base": url, "api_key": "none", "seed": context.seed, "timeout": 600},
                "cost_tracking": "ignore_errors",
            },
        }
        # JSON is YAML; the file comes after the agent's own defaults and is merged into them
        argv = (bundle.program, "-I", "-B", "-m", "minisweagent.run.mini", "-c", "mini.yaml", "-c",
                f"{context.inbox}/episode.yaml", "-o", f"{context.outbox}/{_TRAJECTORY}")  # fmt: skip
        return AgentLaunch(
            argv=argv,
            env={
                "MSWEA_CONFIGURED": "true",
                "MSWEA_SILENT_STARTUP": "1",
                "MSWEA_COST_TRACKING": "ignore_errors",
                # 10 attempts by default, with up to a minute between them, also after the gateway's last word (402)
                "MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT": "4",
                # it creates its configuration directory at import, and the home directory need not be writable
                "MSWEA_GLOBAL_CONFIG_DIR": f"{context.outbox}/mini-swe-agent",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_TELEMETRY": "False",
            },
            files={"episode.yaml": json.dumps(config, indent=1)},
            mounts=mounts,
        )

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_mini_swe_agent(logs / _TRAJECTORY, stderr)
