"""Bundles: what a product agent needs, built once on this machine and mounted read-only into its containers.

A bundle is a directory `CACHE/agents/<name>-<digest>`; the digest is that of its recipe (locked versions and the
builder's revision), so a new recipe is a new bundle and an old one stays usable beside it. It is complete when it has
a `bundle.json`, which is written last. Nothing is installed into a task's image: all agents meet the same environment,
and none needs a network.

Non-goal: choosing versions. They are in `locks/`, made with `uv pip compile` and `npm install --package-lock-only`.
"""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import ClassVar, Final, Literal

from pydantic import Field, ValidationError

from evaluation.agents.base import AgentAvailability
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import exclusive_lock, remove_tree, write_text
from pipeline.progress import Reporter
from pipeline.schema import Record, StoredRecord
from pipeline.settings import Settings

__all__ = [
    "RECIPES", "Bundle", "BundleManifest", "Recipe", "bundle_availability", "find_bundle", "install_agent",
    "installable", "require_bundle",
]  # fmt: skip

_REVISION: Final = 1
"""Raised when the same recipe gives another bundle."""
_MANIFEST: Final = "bundle.json"


class Recipe(Record):
    """How an agent's bundle is made."""

    name: str
    version: str
    """Of the agent; its dependencies are in the lock."""
    builder: Literal["python", "npm"]
    entry: str
    """Python: a module that must be importable. npm: the program, as a glob below the bundle."""
    size_mb: int
    """Measured, for the announcement."""

    def lock_files(self) -> dict[str, str]:
        """The shipped lock: file name -> text."""
        folder = resources.files("evaluation.agents").joinpath("locks", self.name)
        return {item.name: item.read_text(encoding="utf-8") for item in sorted(folder.iterdir(), key=lambda i: i.name)}

    @property
    def digest(self) -> str:
        """sha256 of all that decides what is in the bundle."""
        recipe = self.model_dump(mode="json", exclude={"size_mb"})
        return digest_of({"recipe": recipe, "lock": self.lock_files(), "revision": _REVISION})


RECIPES: Final[dict[str, Recipe]] = {
    recipe.name: recipe
    for recipe in (
        Recipe(name="openhands", version="1.58.0", builder="python", entry="openhands.tools", size_mb=690),
        Recipe(name="mini-swe-agent", version="2.4.6", builder="python", entry="minisweagent", size_mb=760),
        Recipe(name="aider", version="0.86.2", builder="python", entry="aider", size_mb=730),
        Recipe(
            name="claude-code",
            version="2.1.330",
            builder="npm",
            entry="node_modules/@anthropic-ai/claude-code-linux-*/claude",
            size_mb=364,
        ),
        Recipe(
            name="codex",
            version="0.169.0",
            builder="npm",
            entry="node_modules/@openai/codex-linux-*/vendor/*/bin/codex",
            size_mb=404,
        ),
    )
}


class BundleManifest(StoredRecord):
    """`bundle.json`."""

    SCHEMA_VERSION: ClassVar[int] = 1

    name: str
    version: str
    digest: str
    entry: str
    """The program to start, relative to the bundle."""
    size_bytes: int = Field(ge=0)
    python: str | None = None


class Bundle(Record):
    """An installed bundle."""

    path: Path
    manifest: BundleManifest

    @property
    def target(self) -> str:
        """Where it is mounted in the container."""
        return f"/opt/agents/{self.manifest.name}"

    @property
    def program(self) -> str:
        """The program to start, inside the container."""
        return f"{self.target}/{self.manifest.entry}"


def installable() -> tuple[str, ...]:
    """Names of the agents that have a recipe."""
    return tuple(sorted(RECIPES))


def find_bundle(name: str) -> Bundle | None:
    """The bundle of this agent's present recipe, if it is installed here.

    Raises:
        KeyError: the agent has no recipe.
    """
    path = _folder(RECIPES[name])
    try:
        manifest = BundleManifest.model_validate_json((path / _MANIFEST).read_bytes())
    except (OSError, ValidationError):  # not there, not finished, or written by a later expbench: install it (again)
        return None
    return Bundle(path=path, manifest=manifest)


def require_bundle(name: str) -> Bundle:
    """The installed bundle.

    Raises:
        ExpbenchError: `TOOL_MISSING`, it is not installed.
    """
    bundle = find_bundle(name)
    if bundle is None:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING,
            f"agent {name}",
            f"its bundle (version {RECIPES[name].version}) is not installed on this machine",
            consequence="No episode was run",
            next_step=f"Install it once with `expbench agents --install {name}`",
        )
    return bundle


def bundle_availability(name: str) -> AgentAvailability:
    """What `expbench agents` says of an agent that needs a bundle. Never raises."""
    recipe = RECIPES[name]
    bundle = find_bundle(name)
    if bundle is None:
        return AgentAvailability(
            available=False,
            detail=f"version {recipe.version} is not installed (about {recipe.size_mb} MB)",
            next_step=f"expbench agents --install {name}",
        )
    return AgentAvailability(available=True, detail=f"version {recipe.version} in {bundle.path}")


def install_agent(name: str, reporter: Reporter, *, force: bool = False) -> Bundle:
    """Build the agent's bundle in the cache directory, unless it is there.

    Args:
        name: one of `installable()`.
        reporter: progress.
        force: build it even if it is there.

    Returns:
        The bundle.

    Raises:
        ExpbenchError: `USAGE`, no such agent or none that is installed; `TOOL_MISSING`, Python 3.12 or npm is missing;
            `NETWORK`, a package cannot be had; `DISK_FULL`; `SANDBOX_BROKEN`, what was built does not start.
    """
    if name not in RECIPES:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"agent {name!r}",
            "there is nothing to install for it",
            consequence="Nothing was installed",
            next_step=f"Choose one of: {', '.join(installable())} (the other agents come with expbench)",
        )
    found = find_bundle(name)
    if found is not None and not force:
        return found
    recipe = RECIPES[name]
    path = _folder(recipe)
    with exclusive_lock(path.with_name(f".{path.name}.lock"), f"the bundle of {name}"):
        return _build(recipe, path, reporter)


def _folder(recipe: Recipe) -> Path:
    return Settings().cache_dir.absolute() / "agents" / f"{recipe.name}-{recipe.digest[:16]}"


def _build(recipe: Recipe, path: Path, reporter: Reporter) -> Bundle:
    """Build at the final place: interpreters and scripts write paths down, so nothing is built elsewhere and moved.

    What an interrupted build left has no manifest; it is removed first.
    """
    from evaluation.agents import npm_bundle, python_bundle

    began = time.monotonic()
    stage = f"install {recipe.name}"
    reporter.start(stage)
    reporter.note(stage, f"version {recipe.version}, about {recipe.size_mb} MB, into {path}")
    try:
        remove_tree(path)
        path.mkdir(parents=True)
        builder = python_bundle if recipe.builder == "python" else npm_bundle
        built = builder.build(recipe, path, lambda message: reporter.note(stage, message))
        _readable(path)
        size = sum(entry.stat().st_size for entry in path.rglob("*") if entry.is_file() and not entry.is_symlink())
        manifest = BundleManifest(
            name=recipe.name,
            version=recipe.version,
            digest=recipe.digest,
            entry=built.entry,
            size_bytes=size,
            python=built.python,
        )
        write_text(path / _MANIFEST, manifest.model_dump_json(indent=1))
    except OSError as error:
        remove_tree(path)
        raise ExpbenchError(
            FailureKind.DISK_FULL,
            str(path),
            f"cannot be written: {error.strerror or error}",
            consequence=f"{recipe.name} was not installed",
            next_step="Make room, or set EXPBENCH_CACHE_DIR to a directory with room, and try again",
        ) from error
    except ExpbenchError:
        remove_tree(path)
        raise
    reporter.end(stage, f"{size >> 20} MB in {time.monotonic() - began:.0f} s")
    return Bundle(path=path, manifest=manifest)


def _readable(path: Path) -> None:
    """In its container the agent is another user: everything has to be readable for others."""
    for entry in (path, *path.rglob("*")):
        if entry.is_symlink():
            continue
        mode = entry.stat().st_mode
        wanted = mode | (0o555 if entry.is_dir() or mode & 0o100 else 0o444)
        if wanted != mode:
            entry.chmod(wanted)
