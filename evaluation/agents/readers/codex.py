"""Codex: what `codex exec --json` prints, one JSON object a line.

It prints commands, changed files and messages, but not which of them came out of one answer of the model.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

from evaluation.agents.readers.events import Builder, JsonLines, as_dict, as_list, as_text, hit_limit
from evaluation.trajectory import Event

__all__ = ["read_codex"]

_QUIET: Final = frozenset({"thread.started", "turn.started", "item.updated"})
_ACTIONS: Final[dict[str, Literal["created", "edited", "deleted"]]] = {"add": "created", "delete": "deleted"}


def read_codex(stdout: Path, stderr: Path) -> Iterator[Event]:
    """Events of a run.

    Args:
        stdout: what it printed.
        stderr: what it printed there.
    """
    build, lines = Builder(), JsonLines(stdout)
    running: dict[str, dict[str, Any]] = {}
    seen = False
    for record in lines:
        seen = True
        yield from _events(build, record, running)
    for item in running.values():  # the log breaks off in the middle of them
        yield build.command(_script(item.get("command")), item.get("aggregated_output"), call=item.get("id"))
    if complaint := lines.complaint():
        yield build.note(complaint)
    if not seen:
        yield build.no_log("codex", stderr)


def _events(build: Builder, record: dict[str, Any], running: dict[str, dict[str, Any]]) -> Iterator[Event]:
    kind = as_text(record.get("type"))
    item = as_dict(record.get("item"))
    if kind == "item.started":
        if item.get("type") == "command_execution":
            running[as_text(item.get("id"))] = item
    elif kind == "item.completed":
        running.pop(as_text(item.get("id")), None)
        yield from _item(build, item)
    elif kind == "turn.completed":
        yield build.end("finished")
    elif kind == "turn.failed":
        detail = as_text(as_dict(record.get("error")).get("message"))
        yield build.end("limit" if hit_limit(detail) else "agent_error", detail)
    elif kind == "error":
        yield build.note(f"error: {as_text(record.get('message'))}")
    elif kind not in _QUIET:
        yield build.note(f"unknown kind of event: {kind}")


def _item(build: Builder, item: dict[str, Any]) -> Iterator[Event]:
    kind, call = as_text(item.get("type")), item.get("id")
    if kind == "agent_message":
        yield build.turn(item.get("text"))
    elif kind == "reasoning":
        yield build.turn("", reasoning=item.get("text"))
    elif kind == "command_execution":
        code = item.get("exit_code")
        yield build.command(_script(item.get("command")), item.get("aggregated_output"), call=call, exit_code=code)
    elif kind == "file_change":
        for change in as_list(item.get("changes")):
            action = _ACTIONS.get(as_text(as_dict(change).get("kind")), "edited")
            yield build.change(as_dict(change).get("path"), action, as_dict(change).get("diff"), call=call)
        yield build.result(call, "apply_patch", item.get("status"), is_error=item.get("status") == "failed")
    elif kind == "error":
        yield build.note(item.get("message"))
    else:
        known = ("id", "type", "status")
        rest = {name: value for name, value in item.items() if name not in known}
        yield build.result(call, kind, rest, is_error=item.get("status") == "failed")


def _script(command: Any) -> str:
    """The command that was asked for, without the shell that Codex puts around it."""
    text = as_text(command)
    try:
        words = shlex.split(text)
    except ValueError:  # cut, or no shell's quoting
        return text
    shell = len(words) == 3 and words[0].rpartition("/")[2] in ("bash", "sh", "zsh") and words[1] in ("-c", "-lc")
    return words[2] if shell else text
