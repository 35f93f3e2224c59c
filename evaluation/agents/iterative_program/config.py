"""What the program is told at its start: one JSON file, read once."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from pathlib import Path

__all__ = ["Config", "load_config"]


@dataclass(frozen=True)
class Config:
    """Settings of one run; the adapter fills them in, the defaults are its defaults."""

    model: str
    base_url: str
    workspace: str
    outbox: str
    wall_s: float
    instructions: str
    seed: int | None = None
    temperature: float | None = None
    reserve_s: float = 180.0
    """Kept for the last turn, in which the submission is written."""
    margin_s: float = 5.0
    """Before the harness's own deadline: the program wants to end by itself and say why."""
    context_tokens: int = 100_000
    """What a request may hold; older tool output leaves first."""
    max_output_tokens: int = 8192
    command_timeout_s: float = 600.0
    """Default of one command; a call may ask for another, never for more time than is left."""
    shown_chars: int = 16_000
    """Of one tool output, to the model: 4,000 tokens, so that twenty of them fit the default context."""
    logged_chars: int = 262_144
    """Of one tool output, in the log."""
    max_turns: int | None = None
    idle_turns: int = 10
    """Answers in a row without a tool call after which the last turn begins: a model that only repeats that it is done
    would otherwise spend the whole budget on saying so."""
    final_turns: int = 12
    model_timeout_s: float = 600.0
    retries: int = 6
    """Of one model call, for failures that may pass (connection, 408, 409, 429, 5xx)."""


def load_config(path: str) -> Config:
    """Read the configuration; unknown keys are an error, because a misspelt limit must not be ignored.

    Raises:
        ValueError: not an object, or keys that do not exist or are missing.
        OSError: the file cannot be read.
    """
    data = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(data, dict):
        raise ValueError(f"{path}: expected an object")
    known = {field.name for field in fields(Config)}
    unknown = sorted(set(data) - known)
    if unknown:
        raise ValueError(f"{path}: unknown keys {unknown}")
    try:
        return Config(**data)
    except TypeError as error:
        raise ValueError(f"{path}: {error}") from error
