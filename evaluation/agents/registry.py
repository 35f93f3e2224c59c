"""Agents by name. Adapters are named as text, so that importing this costs nothing and a broken one breaks only itself.

Non-goal: discovering what is installed (see `AgentAdapter.availability`).
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Final

from evaluation.agents.base import AgentAdapter
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["AGENTS", "get_agent", "list_agents"]

AGENTS: Final[dict[str, str]] = {
    "oracle": "evaluation.agents.oracle:OracleAgent",
    "noop": "evaluation.agents.noop:NoopAgent",
    "command": "evaluation.agents.command:CommandAgent",
    "iterative": "evaluation.agents.iterative:IterativeAgent",
    "openhands": "evaluation.agents.openhands:OpenHandsAgent",
    "mini-swe-agent": "evaluation.agents.mini_swe_agent:MiniSweAgent",
    "claude-code": "evaluation.agents.claude_code:ClaudeCodeAgent",
    "codex": "evaluation.agents.codex:CodexAgent",
    "aider": "evaluation.agents.aider:AiderAgent",
}
"""Name -> `module:Class`. The class takes the options as its one argument, `Mapping[str, str]`, and raises `USAGE` for
an option that it does not know."""


def get_agent(name: str, options: Mapping[str, str] | None = None) -> AgentAdapter:
    """The adapter of this name with the user's options.

    Raises:
        ExpbenchError: `USAGE`: no such agent, or an option that it does not take.
    """
    if name not in AGENTS:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"agent {name!r}",
            "there is no such agent",
            consequence="No episode was run",
            next_step=f"Choose one of: {', '.join(AGENTS)} (`expbench agents` says what each needs)",
        )
    module, _, class_ = AGENTS[name].partition(":")
    adapter = getattr(importlib.import_module(module), class_)(dict(options or {}))
    assert isinstance(adapter, AgentAdapter)
    return adapter


def list_agents() -> list[AgentAdapter]:
    """All adapters without options, in the order of the table."""
    return [get_agent(name) for name in AGENTS]
