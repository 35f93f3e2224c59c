"""Claude Code (Anthropic): its program from npm, in print mode, with an endpoint that speaks Anthropic's messages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pydantic import Field

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import INSTRUCTIONS, ProductAgent, model_and_url
from evaluation.agents.readers.claude_code import read_claude_code
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["ClaudeCodeAgent", "ClaudeCodeOptions"]


class ClaudeCodeOptions(Record):
    """What a user may set."""

    max_turns: int | None = Field(default=None, ge=1)
    command_timeout_s: int = Field(default=600, ge=1)
    """Of one command; its own default is 120 s."""


class ClaudeCodeAgent(ProductAgent):
    """Adapter of Claude Code."""

    name = "claude-code"
    description = "Claude Code in print mode (Anthropic's protocol)"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, ClaudeCodeOptions)

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "anthropic")
        bundle, mounts = self.bundle()
        # web tools would need a network; questions to a user would wait for ever
        argv = [
            bundle.program, "-p", "--output-format", "stream-json", "--verbose", "--model", model,
            "--dangerously-skip-permissions", "--disallowedTools", "WebFetch,WebSearch,AskUserQuestion",
        ]  # fmt: skip
        if self._options.max_turns is not None:
            argv += ["--max-turns", str(self._options.max_turns)]
        milliseconds = str(self._options.command_timeout_s * 1000)
        return AgentLaunch(
            # print mode takes the prompt from standard input, where its length has no bound
            argv=("/bin/sh", "-c", 'instructions=$1; shift; exec "$@" < "$instructions"', "sh",
                  f"{context.inbox}/{INSTRUCTIONS}", *argv),
            env={
                "ANTHROPIC_BASE_URL": url.removesuffix("/v1"),
                "ANTHROPIC_API_KEY": "none",  # the gateway adds the key, outside the container
                "ANTHROPIC_SMALL_FAST_MODEL": model,
                "ANTHROPIC_DEFAULT_HAIKU_MODEL": model,
                "CLAUDE_CONFIG_DIR": "/tmp/claude",  # noqa: S108 - of the container
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "DISABLE_AUTOUPDATER": "1",
                "DISABLE_TELEMETRY": "1",
                "DISABLE_ERROR_REPORTING": "1",
                "BASH_DEFAULT_TIMEOUT_MS": milliseconds,
                "BASH_MAX_TIMEOUT_MS": milliseconds,
                # it refuses to skip permissions as root outside of a sandbox
                "IS_SANDBOX": "1",
            },
            files={INSTRUCTIONS: context.instructions},
            mounts=mounts,
        )  # fmt: skip

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_claude_code(stdout, stderr)
