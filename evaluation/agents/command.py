"""The user's own agent: any command or script, run in the container as it is.

The command finds what it needs in its environment:

- `EXPBENCH_INSTRUCTIONS`: file with the instructions; `EXPBENCH_WORKSPACE`: the repository (also its directory);
- `EXPBENCH_OUT`: directory for its own logs, which are kept; `EXPBENCH_WALL_S`: seconds it has;
- `EXPBENCH_MODEL`, `OPENAI_BASE_URL`, `OPENAI_API_KEY` (a placeholder), `ANTHROPIC_BASE_URL`, `ANTHROPIC_API_KEY`
  (likewise): the gateway, where the run names a model.

A command may write `events.jsonl` into `EXPBENCH_OUT`, one event of `evaluation.trajectory` a line (`seq` may be 0);
otherwise the trajectory holds one command with what it printed. What it writes there is its claim: kinds that only the
harness can tell (calls of the model, limits, what others said) become notes, and no command is an observed one.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from evaluation.agents.base import AgentAvailability, AgentContext, AgentLaunch
from evaluation.agents.options import parse_options
from evaluation.agents.readers.events import JsonLines
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun, Event, Note
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["CommandAgent", "tail_of"]

_EVENTS: Final = "events.jsonl"
_EVENT: Final[TypeAdapter[Event]] = TypeAdapter(Event)
_TAIL: Final = 256 << 10
"""Bytes of output that the one event holds; the whole output lies in `agent/`."""


class CommandOptions(Record):
    """What a user may set."""

    cmd: str = Field(default="", max_length=100_000)
    """The command line, split as a shell would; run without a shell."""
    script: str = Field(default="", max_length=4096)
    """A file of this machine that is handed over and run with `sh` (or by its own `#!` line)."""
    model: bool = False
    """Does it need a model?"""


class CommandAgent:
    """Runs `--agent-option cmd=...` or `--agent-option script=FILE`."""

    name: ClassVar[str] = "command"
    description: ClassVar[str] = "your own command or script, as it is"
    kind: Literal["bound", "loop", "product", "command"] = "command"
    version: str | None = None

    def __init__(self, options: Mapping[str, str] | None = None) -> None:
        self._options = parse_options(self.name, options or {}, CommandOptions)

    def availability(self) -> AgentAvailability:
        """Always; what the command itself needs is not known."""
        return AgentAvailability(
            available=True,
            detail="needs --agent-option cmd=COMMAND or script=FILE; model=true when it calls one",
        )

    def launch(self, task: EvaluationTask, context: AgentContext) -> AgentLaunch:
        """See `AgentAdapter.launch`.

        Raises:
            ExpbenchError: `USAGE`: there is no command, or the script cannot be read.
        """
        files = {"instructions.md": context.instructions}
        if self._options.script:
            files["agent.sh"] = _script(Path(self._options.script))
            first = files["agent.sh"].split("\n", 1)[0]
            interpreter = shlex.split(first[2:]) if first.startswith("#!") else ["/bin/sh"]
            argv = (*interpreter, f"{context.inbox}/agent.sh")
        else:
            argv = tuple(_split(self._options.cmd))
        env = {
            "EXPBENCH_INSTRUCTIONS": f"{context.inbox}/instructions.md",
            "EXPBENCH_WORKSPACE": context.workspace,
            "EXPBENCH_OUT": context.outbox,
            "EXPBENCH_WALL_S": f"{context.wall_s:g}",
            "EXPBENCH_SEED": str(context.seed),
        }
        if self._options.model:
            if not context.model:
                raise _usage("it needs a model, and none is given", "Name a model with --model or EXPBENCH_MODEL")
            env["EXPBENCH_MODEL"] = context.model
            for provider, url in (("OPENAI", context.base_url_openai), ("ANTHROPIC", context.base_url_anthropic)):
                if url:
                    env |= {f"{provider}_BASE_URL": url, f"{provider}_API_KEY": "added-by-the-gateway"}
        return AgentLaunch(argv=argv, env=env, files=files, needs_model=self._options.model, traced=True)

    def read_events(self, logs: Path, stdout: Path, stderr: Path) -> Iterator[Event]:
        """Its own events where it wrote some, otherwise one command with its output."""
        own = logs / _EVENTS
        if own.is_file() and not own.is_symlink():
            yield from _own_events(JsonLines(own))
            return
        command = self._options.cmd or f"sh {Path(self._options.script).name}"
        texts = [tail_of(path, _TAIL) for path in (stdout, stderr)]
        output = "\n".join(text for text, _ in texts if text)
        yield CommandRun(seq=0, at=0, command=command, output=output, truncated=any(cut for _, cut in texts))


def _own_events(log: JsonLines) -> Iterator[Event]:
    for number, line in log.lines():
        try:
            yield _EVENT.validate_json(line)
        except ValidationError:
            log.unreadable.append(number)
    if complaint := log.complaint():
        yield Note(seq=0, at=0, text=complaint)


def tail_of(path: Path, most: int) -> tuple[str, bool]:
    """The end of a file as text, and whether something before it is missing."""
    if not path.is_file():
        return "", False
    size = path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(max(0, size - most))
        return stream.read(most).decode("utf-8", "replace"), size > most


def _script(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _usage(
            f"its script {path} cannot be read as text: {error}", "Correct --agent-option script=FILE"
        ) from error


def _split(command: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise _usage(f"its command line cannot be split: {error}", "Correct --agent-option cmd=COMMAND") from error
    if not words:
        raise _usage("there is no command", "Give --agent-option cmd=COMMAND or script=FILE")
    return words


def _usage(cause: str, next_step: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE, "agent command", cause, consequence="No episode was run", next_step=next_step
    )
