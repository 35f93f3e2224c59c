"""Aider: edits files from one message. It has no loop of tools of its own, so two calls are made of it.

In the first it gets the instructions, and `reproduce.sh` is its test: what that prints on failure goes back to it. In
the second `reproduce.sh` is run once more, its output is put into the chat, and it is told to write `response.json`. It
is the weakest fit of the products: it cannot look at anything between those two.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from evaluation.agents.base import AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.product import INSTRUCTIONS, ProductAgent, model_and_url
from evaluation.agents.readers.aider import read_aider
from evaluation.task import EvaluationTask
from evaluation.trajectory import Event
from pipeline.schema import Record

__all__ = ["AiderAgent", "AiderOptions"]

_FINISH: Final = (
    "The output of reproduce.sh is above. Now write response.json in the root of the workspace, in the form that the "
    "instructions ask for, with the numbers of that output and no others. If reproduce.sh has failed, correct it and "
    "say so in the conclusion."
)


# It shows the model what reproduce.sh prints; this keeps it for the trajectory, too.
_RUN: Final = """\
cd {workspace} && mkdir -p {runs} || exit 1
out={runs}/$(printf %04d "$(ls {runs} | grep -c out)")
bash reproduce.sh > "$out.out" 2>&1
code=$?
echo "$code" > "$out.code"
cat "$out.out"
exit "$code"
"""


class AiderOptions(Record):
    """What a user may set."""

    edit_format: str | None = None
    """Aider's own choice for models that it knows; `whole` or `diff` for others."""


class AiderAgent(ProductAgent):
    """Adapter of aider."""

    name = "aider"
    description = "aider: two rounds of edits with reproduce.sh between them (OpenAI-compatible models)"

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, AiderOptions)

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`."""
        model, url = model_and_url(self.name, context, "openai")
        bundle, mounts = self.bundle()
        common = [
            bundle.program, "-I", "-B", "-m", "aider", "--model", f"openai/{model}", "--yes-always", "--no-pretty",
            "--no-stream", "--no-auto-commits", "--no-dirty-commits", "--no-gitignore", "--no-check-update",
            "--no-show-model-warnings", "--no-show-release-notes", "--analytics-disable", "--no-detect-urls",
            "--no-suggest-shell-commands", "--chat-history-file", f"{context.outbox}/chat.md",
            "--llm-history-file", f"{context.outbox}/llm.txt", "--input-history-file", "/dev/null",
        ]  # fmt: skip
        if self._options.edit_format:
            common += ["--edit-format", self._options.edit_format]
        run = f"sh {context.inbox}/run.sh"
        first = ["--auto-test", "--test-cmd", run, "--message-file", f"{context.inbox}/{INSTRUCTIONS}"]
        second = ["--load", f"{context.inbox}/commands.txt", "--message-file", f"{context.inbox}/finish.md"]
        script = "\n".join(
            [
                f"cd {shlex.quote(context.workspace)} || exit 1",
                shlex.join([*common, *first]),
                shlex.join([*common, *second]),
                "code=$?",
                "rm -rf .aider.tags.cache.v*",  # its index of the repository is no part of a submission
                'exit "$code"',
            ]
        )
        return AgentLaunch(
            argv=("/bin/sh", "-c", script),
            env={
                "OPENAI_API_BASE": url,
                "OPENAI_API_KEY": "none",  # the gateway adds the key, outside the container
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",
                "LITELLM_TELEMETRY": "False",
                "AIDER_ANALYTICS": "false",
            },
            files={
                INSTRUCTIONS: context.instructions,
                "commands.txt": f"/read-only {context.inbox}/{INSTRUCTIONS}\n/run {run}\n",
                "run.sh": _RUN.format(workspace=shlex.quote(context.workspace), runs=f"{context.outbox}/runs"),
                "finish.md": _FINISH,
            },
            mounts=mounts,
        )

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """See `AgentAdapter.read_events`."""
        return read_aider(logs / "chat.md", logs / "runs", stderr)
