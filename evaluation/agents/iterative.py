"""Our own agent: a plain loop of model and tools in the style of PaperBench's IterativeAgent (arXiv 2504.01848).

Its program runs inside the container on nothing but the standard library of the container's Python, and speaks OpenAI's
chat completions to the gateway. It needs no installation, so it is the agent that can always be run.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field

from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import model_and_url, program_text
from evaluation.agents.readers.iterative import read_iterative
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["IterativeAgent", "IterativeOptions"]

_PACKAGE: Final = "iterative_program"
_START: Final = """\
import sys

sys.path.insert(0, {inbox!r})
from iterative_program.loop import main

sys.exit(main({config!r}))
"""


class IterativeOptions(Record):
    """What a user may set; see `iterative_program.config.Config` for what each means."""

    context_tokens: int = Field(default=100_000, ge=4000)
    max_output_tokens: int = Field(default=8192, ge=256)
    temperature: float | None = Field(default=None, ge=0, le=2)
    max_turns: int | None = Field(default=None, ge=1)
    idle_turns: int = Field(default=10, ge=1)
    reserve_s: float = Field(default=180.0, ge=0)
    command_timeout_s: float = Field(default=600.0, gt=0)


class IterativeAgent:
    """Adapter of the `iterative` program."""

    name: ClassVar[str] = "iterative"
    description: ClassVar[str] = "our own loop: shell, Python and file tools, no early stop (OpenAI-compatible models)"
    kind: Literal["bound", "loop", "product", "command"] = "loop"
    version: str | None = "1"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, IterativeOptions)

    def availability(self) -> AgentAvailability:
        """Always: its program comes with expbench."""
        return AgentAvailability(
            available=True, detail="comes with expbench; needs Python 3.9 or later in the container"
        )

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "openai")
        config = {
            "model": model,
            "base_url": url,
            "workspace": context.workspace,
            "outbox": context.outbox,
            "wall_s": context.wall_s,
            "instructions": context.instructions,
            "seed": context.seed,
            **self._options.model_dump(),
        }
        folder = resources.files(f"evaluation.agents.{_PACKAGE}")
        names = sorted(item.name for item in folder.iterdir() if item.name.endswith(".py"))
        path = f"{context.inbox}/config.json"
        files = {f"{_PACKAGE}/{name}": text for name, text in program_text(_PACKAGE, *names).items()}
        files["start.py"] = _START.format(inbox=context.inbox, config=path)
        files["config.json"] = json.dumps(config, indent=1)
        # -I: nothing of the workspace or of its environment variables may replace a module of the program
        return AgentLaunch(argv=("python3", "-I", "-B", f"{context.inbox}/start.py"), files=files)

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_iterative(logs / "events.jsonl", stderr)
