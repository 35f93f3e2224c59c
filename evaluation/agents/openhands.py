"""OpenHands (All Hands AI) through its SDK, headless, from a bundle with a Python of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from pydantic import Field

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import ProductAgent, model_and_url, program_text
from evaluation.agents.readers.openhands import read_openhands
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["OpenHandsAgent", "OpenHandsOptions"]

# It ends by itself before the harness ends it, so that its own log says why.
_MARGIN_S: Final = 10.0


class OpenHandsOptions(Record):
    """What a user may set."""

    max_iterations: int = Field(default=500, ge=1)
    """Turns of the agent; 500 is the SDK's own default."""
    condense_after: int = Field(default=80, ge=10)
    """Events after which the SDK's summarising condenser shortens the conversation."""
    max_input_tokens: int | None = Field(default=None, ge=1000)
    model_timeout_s: int = Field(default=600, ge=1)


class OpenHandsAgent(ProductAgent):
    """Adapter of OpenHands."""

    name = "openhands"
    description = "OpenHands SDK with terminal, file editor and task tracker (OpenAI-compatible models)"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, OpenHandsOptions)

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "openai")
        bundle, mounts = self.bundle()
        config = {
            # LiteLLM's name for any endpoint that speaks OpenAI's protocol
            "model": f"openai/{model}",
            "base_url": url,
            "workspace": context.workspace,
            "outbox": context.outbox,
            "wall_s": max(context.wall_s - _MARGIN_S, context.wall_s / 2),
            "instructions": context.instructions,
            "seed": context.seed,
            **self._options.model_dump(),
        }
        return AgentLaunch(
            argv=(bundle.program, "-I", "-B", f"{context.inbox}/run.py", f"{context.inbox}/config.json"),
            env={
                "OPENHANDS_SUPPRESS_BANNER": "1",
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_TELEMETRY": "False",
                "OTEL_SDK_DISABLED": "true",
            },
            files={**program_text("openhands_program", "run.py"), "config.json": json.dumps(config, indent=1)},
            mounts=mounts,
        )

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_openhands(logs / "events.jsonl", logs / "result.json", stderr)
