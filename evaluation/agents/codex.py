"""Codex (OpenAI): its program from npm, `codex exec`, against an endpoint that speaks OpenAI's responses."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import INSTRUCTIONS, ProductAgent, model_and_url
from evaluation.agents.readers.codex import read_codex
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["CodexAgent", "CodexOptions"]

_HOME: Final = "/tmp/codex"  # noqa: S108 - of the container
# The prompt comes from standard input, where its length has no bound
_START: Final = 'mkdir -p "$CODEX_HOME"; instructions=$1; shift; exec "$@" - < "$instructions"'


class CodexOptions(Record):
    """What a user may set."""

    reasoning_effort: str | None = None


class CodexAgent(ProductAgent):
    """Adapter of Codex."""

    name = "codex"
    description = "Codex CLI, `codex exec` (OpenAI's responses protocol)"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, CodexOptions)

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "openai")
        bundle, mounts = self.bundle()
        settings: dict[str, str | int | bool] = {
            "model_provider": "gateway",
            "model_providers.gateway.name": "gateway",
            "model_providers.gateway.base_url": url,
            "model_providers.gateway.wire_api": "responses",
            "model_providers.gateway.requires_openai_auth": False,
            # without bounds it reconnects to a dead endpoint without end
            "model_providers.gateway.request_max_retries": 4,
            "model_providers.gateway.stream_max_retries": 4,
            "web_search": "disabled",
            # a login shell sets PATH anew, and the task's environment is no longer the first on it
            "allow_login_shell": False,
            "analytics.enabled": False,
            "check_for_update_on_startup": False,
        }
        if self._options.reasoning_effort:
            settings["model_reasoning_effort"] = self._options.reasoning_effort
        # the container is the sandbox: its own needs privileges that the container does not have
        argv = [bundle.program, "exec", "--json", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox",
                "--model", model, "--cd", context.workspace]  # fmt: skip
        for name, value in settings.items():
            argv += ["-c", f"{name}={json.dumps(value)}"]  # TOML's values, for these types
        return AgentLaunch(
            argv=("/bin/sh", "-c", _START, "sh", f"{context.inbox}/{INSTRUCTIONS}", *argv),
            env={"CODEX_HOME": _HOME},
            files={INSTRUCTIONS: context.instructions},
            mounts=mounts,
        )

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_codex(stdout, stderr)
