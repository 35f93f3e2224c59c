"""Configuration: defaults, overridden by environment variables `EXPBENCH_*`, overridden by command-line options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

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
    seeds: int = Field(default=5, ge=0, le=64)
    """Further runs of a validated task with other random streams, which its bands are learnt from; 0: as printed, else
    at least 3. Six values in all put the band's half-width at 2.8 standard deviations, twenty at 2.1."""
    rehearsal_s: float = Field(default=1200.0, ge=0)
    """Wall time of all rehearsals of a repository's commands together; 0: nothing is run before it is drafted."""
    refinement_rounds: int = Field(default=3, ge=1, le=20)
    """How many chains of scripts are tried before a task is rejected."""
    equivalents: int = Field(default=6, ge=0, le=50)
    """How many further scripts are run to see whether they compute the answer too (and must be masked with it)."""
    vision: bool = True
    """With a model: show it the pictures of tables that may have been read wrongly."""
    reading_workers: int = Field(default=4, ge=1, le=64)
    """With a model: tasks of one paper written at once; providers of hosted models allow at least as many."""
    write_scripts: bool = False
    """With a model: let it write a script where none of the repository reproduces the claims; marked as such."""
    limits: Limits = Limits()
    """Per re-execution, e.g. `EXPBENCH_LIMITS__WALL_S=3600`."""
    data: Literal["fetch", "offline"] | None = None
    """May data that an experiment downloads be fetched, once, from named hosts? None: in containers, yes."""
    data_hosts: Annotated[tuple[str, ...], NoDecode] = ()
    """Hosts beside those of `pipeline/data/hosts.yaml`, separated by commas: `data.example.org,*.example.net`."""
    data_limit_mb: int = Field(default=2048, gt=0)
    """What one experiment may fetch; a file beyond it is asked about on a terminal, and refused elsewhere."""

    @field_validator("seeds")
    @classmethod
    def _enough_seeds(cls, value: int) -> int:
        if 0 < value < 3:  # two values give a band of 15.6 deviations, and a task whose seed is masked is then refused
            raise ValueError(f"{value} further runs teach no band: 0 for none, else at least 3")
        return value

    @field_validator("data_hosts", mode="before")
    @classmethod
    def _split_hosts(cls, value: Any) -> Any:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value
