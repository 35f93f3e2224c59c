"""What is installed here, which sandbox and engine will be used, and how to get the rest: `expbench doctor`.

Looks, and changes nothing: no image is built, no endpoint is called, no key is printed.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import ValidationError

from pipeline.errors import ExpbenchError
from pipeline.sandbox.lanes import available_memory_mb
from pipeline.schema import Record
from pipeline.settings import Settings

if TYPE_CHECKING:
    from rich.table import Table

    from pipeline.llm import ModelConfig
    from pipeline.sandbox.base import SandboxStatus

__all__ = ["Check", "CheckStatus", "diagnose", "to_table"]

_GB = 1 << 30
# The environment of a small repository (NumPy, SciPy, matplotlib) takes about 1 GB beside a base image of 0.4 GB.
_DISK_GB = 5.0
# Two re-executions at the default limit of 4 GB never run at once; the rest is for expbench itself (0.3 GB seen).
_MEMORY_GB = 4.5
_PROBE_S = 20


class CheckStatus(StrEnum):
    """How a check ended."""

    OK = "ok"
    WARN = "warn"
    """Works, with less."""
    MISSING = "missing"
    """Not there; what needs it cannot be done."""


class Check(Record):
    """One line of the report."""

    name: str
    status: CheckStatus
    detail: str
    """What was found."""
    next_step: str = ""
    """What to do about it; empty when nothing is to be done."""


def diagnose(settings: Settings | None = None) -> tuple[Check, ...]:
    """Look at this machine. Never raises for what it finds, and takes a few seconds at most.

    Args:
        settings: settings in force; default: from the environment.
    """
    settings = settings or Settings()
    docker, process, model = _docker_status(), _process_status(), _model(settings)
    return (
        _python(),
        _git(),
        _uv(),
        _tesseract(),
        _docker(docker),
        *([_base_image()] if docker.available else []),
        _process(process),
        _default_sandbox(settings, docker, process),
        _keyless(),
        model,
        _default_engine(settings, model),
        _disk(settings.cache_dir),
        _memory(),
        _gpus(),
    )


def to_table(checks: Iterable[Check]) -> Table:
    """The report as a table for the terminal."""
    from rich.table import Table
    from rich.text import Text

    styles = {CheckStatus.OK: "green", CheckStatus.WARN: "yellow", CheckStatus.MISSING: "red"}
    table = Table(show_header=True, header_style="bold", box=None, padding=(0, 2, 0, 0))
    for heading in ("check", "status", "found, and what to do"):
        table.add_column(heading, overflow="fold", no_wrap=heading != "found, and what to do")
    for check in checks:
        status = Text(check.status.value, style=styles[check.status])
        found = Text(check.detail)
        if check.next_step:  # below, not beside: most rows have none, and its column took a third of the width
            found.append(f"\n{check.next_step}", style="bold")
        table.add_row(Text(check.name), status, found)
    return table


def _said(*argv: str) -> str | None:
    """Standard output (or error, where that is empty) of a program, or None when it cannot be run or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, check=False, timeout=_PROBE_S, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return (done.stdout or done.stderr).decode("utf-8", "replace").strip()


def _tool(name: str, argv: tuple[str, ...], next_step: str, shorten: Callable[[str], str]) -> Check:
    said = _said(*argv)
    if said is None:
        return Check(name=name, status=CheckStatus.MISSING, detail="not found, or it does not run", next_step=next_step)
    return Check(name=name, status=CheckStatus.OK, detail=shorten(said))


def _python() -> Check:
    detail = f"{platform.python_implementation()} {platform.python_version()} ({sys.executable})"
    return Check(name="Python", status=CheckStatus.OK, detail=detail)


def _git() -> Check:
    return _tool(
        "git", ("git", "--version"), "Install git: apt-get install git", lambda said: said.removeprefix("git ")
    )


def _uv() -> Check:
    """The `uv` that expbench depends on lies beside its interpreter; one on PATH serves too."""
    beside = Path(sys.executable).with_name("uv")
    program = str(beside) if beside.is_file() else shutil.which("uv") or "uv"
    return _tool(
        "uv",
        (program, "--version"),
        "Reinstall expbench (uv is one of its dependencies): uv sync --locked",
        lambda s: s,
    )


def _tesseract() -> Check:
    said, languages = _said("tesseract", "--version"), _said("tesseract", "--list-langs")
    if said is None or languages is None:
        return Check(
            name="Tesseract", status=CheckStatus.WARN,
            detail="not found: pages without a text layer cannot be read, other pages can",
            next_step="apt-get install tesseract-ocr",
        )  # fmt: skip
    version = said.splitlines()[0].removeprefix("tesseract ")
    names = sorted(line.strip() for line in languages.splitlines()[1:] if line.strip())
    if "eng" not in names:
        return Check(
            name="Tesseract", status=CheckStatus.WARN,
            detail=f"{version}, without English ({', '.join(names) or 'none'})",
            next_step="apt-get install tesseract-ocr-eng",
        )  # fmt: skip
    return Check(name="Tesseract", status=CheckStatus.OK, detail=f"{version}, languages: {', '.join(names)}")


def _docker_status() -> SandboxStatus:
    from pipeline.sandbox.docker import DockerSandbox

    return DockerSandbox().status()


def _process_status() -> SandboxStatus:
    from pipeline.sandbox.process import ProcessSandbox

    return ProcessSandbox().status()


def _docker(status: SandboxStatus) -> Check:
    if status.available:
        return Check(name="Docker Engine", status=CheckStatus.OK, detail=status.detail)
    return Check(name="Docker Engine", status=CheckStatus.WARN, detail=status.detail, next_step=status.next_step)


def _base_image() -> Check:
    import docker
    from docker.errors import DockerException, ImageNotFound

    from pipeline.sandbox.images import BaseRecipe

    reference = os.environ.get("EXPBENCH_BASE_IMAGE") or BaseRecipe().reference
    try:
        client = docker.from_env(timeout=_PROBE_S)
        try:
            size = int(client.images.get(reference).attrs.get("Size", 0))
        finally:
            client.close()
    except ImageNotFound:
        if "EXPBENCH_BASE_IMAGE" in os.environ:
            todo, status = f"docker pull {reference}, or unset EXPBENCH_BASE_IMAGE", CheckStatus.MISSING
        elif shutil.which("debootstrap") and os.geteuid() == 0:
            todo, status = "Nothing: the first run makes it with debootstrap (about two minutes)", CheckStatus.OK
        else:
            todo, status = (
                "Nothing where an image registry can be reached; otherwise apt-get install debootstrap and run the "
                "first curation as root",
                CheckStatus.WARN,
            )
        return Check(name="base image", status=status, detail=f"{reference}: not there yet", next_step=todo)
    except (DockerException, OSError) as error:
        return Check(
            name="base image", status=CheckStatus.WARN, detail=f"{reference}: not known ({error})",
            next_step="Look at the engine's log and run expbench doctor again",
        )  # fmt: skip
    return Check(name="base image", status=CheckStatus.OK, detail=f"{reference}, {size / 1e6:.0f} MB")


def _process(status: SandboxStatus) -> Check:
    fine = status.available and "not isolated" not in status.detail.lower()
    return Check(
        name="process sandbox", status=CheckStatus.OK if fine else CheckStatus.WARN, detail=status.detail,
        next_step=status.next_step,
    )  # fmt: skip


def _default_sandbox(settings: Settings, docker: SandboxStatus, process: SandboxStatus) -> Check:
    """The same choice as `pipeline.sandbox.open_sandbox`."""
    name = "sandbox by default"
    if settings.sandbox is not None:
        status = docker if settings.sandbox == "docker" else process
        detail = f"{settings.sandbox} (EXPBENCH_SANDBOX)"
        if status.available:
            return Check(name=name, status=CheckStatus.OK, detail=detail)
        return Check(
            name=name, status=CheckStatus.MISSING, detail=f"{detail}: {status.detail}",
            next_step=status.next_step or "Unset EXPBENCH_SANDBOX",
        )  # fmt: skip
    if docker.available:
        return Check(name=name, status=CheckStatus.OK, detail="docker")
    if process.available:
        return Check(
            name=name, status=CheckStatus.WARN, next_step=docker.next_step,
            detail="process: code of repositories runs on this machine with limits, but without a container around it",
        )  # fmt: skip
    return Check(
        name=name, status=CheckStatus.MISSING, detail="none: code of repositories cannot be run",
        next_step=docker.next_step,
    )  # fmt: skip


def _keyless() -> Check:
    return Check(name="keyless engine", status=CheckStatus.OK, detail="always there: no model, no account, no network")


def _model(settings: Settings) -> Check:
    """What the environment says about a model; the key itself is never shown, and nothing is called."""
    from pipeline.llm import ModelSettings, model_config_from_environment
    from pipeline.llm.config import find_key, key_variable

    name = "model engine"
    host = urlsplit(os.environ.get("OPENAI_BASE_URL", "").strip()).hostname
    base = f"OPENAI_BASE_URL leads to {host}" if host else "OPENAI_BASE_URL is not set"
    try:
        if not ModelSettings().name:
            key = "set" if os.environ.get("OPENAI_API_KEY", "").strip() else "not set"
            return Check(
                name=name, status=CheckStatus.WARN,
                detail=f"EXPBENCH_MODEL is not set, OPENAI_API_KEY is {key}, {base}",
                next_step="Only for --engine model: set EXPBENCH_MODEL and OPENAI_API_KEY (docs/models.md)",
            )  # fmt: skip
        config = model_config_from_environment()
        find_key(config)
    except (ExpbenchError, ValidationError) as error:
        step = error.next_step if isinstance(error, ExpbenchError) else "Correct the EXPBENCH_MODEL_* variables"
        cause = error.cause if isinstance(error, ExpbenchError) else "a setting of the model is invalid"
        return Check(name=name, status=CheckStatus.WARN, detail=f"{cause}; {base}", next_step=step)
    key = f"{key_variable(config.provider)} is there" if _has_key(config.provider) else "no key, the server is your own"
    sees = "pictures are shown to it" if settings.vision else "no pictures are shown to it (EXPBENCH_VISION)"
    return Check(
        name=name, status=CheckStatus.OK, detail=f"{config.model} at {config.host}; {key}; {sees}; {_price(config)}"
    )


def _has_key(provider: str) -> bool:
    from pipeline.llm.config import key_variable

    return bool(os.environ.get(key_variable(provider), "").strip())


def _price(config: ModelConfig) -> str:
    from pipeline.llm import load_prices

    try:
        known = load_prices().find(config) is not None
    except ExpbenchError as error:
        return f"price unknown ({error.cause})"
    return "its price is known" if known else "its price is unknown, so --budget-usd cannot be kept (docs/models.md)"


def _default_engine(settings: Settings, model: Check) -> Check:
    name = "engine by default"
    if settings.engine == "keyless":
        return Check(name=name, status=CheckStatus.OK, detail="keyless")
    if model.status is CheckStatus.OK:
        return Check(name=name, status=CheckStatus.OK, detail="model (EXPBENCH_ENGINE)")
    return Check(
        name=name, status=CheckStatus.MISSING, detail=f"model (EXPBENCH_ENGINE), which cannot be used: {model.detail}",
        next_step=model.next_step or "Unset EXPBENCH_ENGINE or pass --engine keyless",
    )  # fmt: skip


def _disk(cache: Path) -> Check:
    existing = next(path for path in (cache, *cache.parents) if path.exists())
    free = {"cache": shutil.disk_usage(existing).free / _GB, "this folder": shutil.disk_usage(Path.cwd()).free / _GB}
    detail = ", ".join(f"{gb:.1f} GB free for {where}" for where, gb in free.items())
    if min(free.values()) < _DISK_GB:
        return Check(
            name="disk", status=CheckStatus.WARN, detail=detail,
            next_step=f"Free some space ({_DISK_GB:g} GB serve most repositories), or set EXPBENCH_CACHE_DIR elsewhere",
        )  # fmt: skip
    return Check(name="disk", status=CheckStatus.OK, detail=detail)


def _memory() -> Check:
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / _GB
        free = available_memory_mb() / 1024
    except (OSError, KeyError, ValueError):
        return Check(name="memory", status=CheckStatus.WARN, detail="not known on this system")
    detail = f"{free:.1f} of {total:.1f} GB available, {os.cpu_count()} CPUs"
    if free < _MEMORY_GB:
        return Check(
            name="memory", status=CheckStatus.WARN, detail=detail,
            next_step="Lower EXPBENCH_LIMITS__MEMORY_MB (a re-execution may use 4096 MB), or free some memory",
        )  # fmt: skip
    return Check(name="memory", status=CheckStatus.OK, detail=detail)


def _gpus() -> Check:
    said = _said("nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader")
    if not said:
        return Check(
            name="GPUs", status=CheckStatus.WARN, detail="none found: experiments that need one end as rejected tasks"
        )
    return Check(name="GPUs", status=CheckStatus.OK, detail="; ".join(sorted(said.splitlines())))
