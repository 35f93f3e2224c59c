"""Configuration: defaults, overridden by environment variables `EXPBENCH_*`, overridden by command-line options."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict

from pipeline.execution_plan import Scale
from pipeline.sandbox.base import Limits

__all__ = ["Settings"]


class Settings(BaseSettings):
    """Settings of this machine and user; none of them is a secret."""

    model_config = SettingsConfigDict(env_prefix="EXPBENCH_", env_nested_delimiter="__", frozen=True)

    cache_dir: Path = Field(default_factory=lambda: Path.home() / ".cache" / "expbench")
    """Resolutions, indexes and process-sandbox environments; safe to delete."""
    engine: Literal["keyless", "model"] = "keyless"
    sandbox: Literal["docker", "process"] | None = None
    """None: Docker when it is usable, otherwise the process sandbox, announced."""
    scale: Scale = "auto"
    """How big tasks are executed: `full` as the paper did; `smoke` as small as the code's own settings allow, which
    confirms no number; `auto`: full, and smoke where full hits a limit or wants a GPU that is not there."""
    repeats: int = Field(default=2, ge=1, le=100)
    """Clean re-executions per task; two are the least that show flakiness."""
    refinement_rounds: int = Field(default=3, ge=1, le=20)
    """How many chains of scripts are tried before a task is rejected."""
    equivalents: int = Field(default=6, ge=0, le=50)
    """How many further scripts are run to see whether they compute the answer too (and must be masked with it)."""
    vision: bool = True
    """With a model: show it the pictures of tables and figures."""
    reading_workers: int = Field(default=4, ge=1, le=64)
    """With a model: questions about one paper under way at once; providers of hosted models allow at least as many."""
    write_scripts: bool = False
    """With a model: let it write a script where none of the repository reproduces the claims; marked as such."""
    agent_runs: int = Field(default=6, ge=0, le=100)
    """With a model and Docker: commands that the locator's agent may run per task to look at scripts; 0: none."""
    embeddings: str | None = None
    """With a model: name of an embedding model at the same endpoint, for a dense index beside the lexical one."""
    limits: Limits = Limits()
    """Per re-execution, e.g. `EXPBENCH_LIMITS__WALL_S=3600`."""
