"""Bundles of agents that are published on npm as programs for this platform."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.agents.bundle_build import Built, Say, run_installer
from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from evaluation.agents.bundles import Recipe

__all__ = ["build"]


def build(recipe: Recipe, path: Path, say: Say) -> Built:
    """Install what the lock names, its integrity checked by npm, without running any package's scripts.

    Raises:
        ExpbenchError: `TOOL_MISSING`, no npm, or no program for this platform; `NETWORK`.
    """
    npm = shutil.which("npm")
    if npm is None:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING,
            f"agent {recipe.name}",
            "npm cannot be found on PATH",
            consequence="The agent was not installed",
            next_step="Install Node.js 20 or later with npm, and try again",
        )
    for name, text in recipe.lock_files().items():
        (path / name).write_text(text, encoding="utf-8")
    say("installing with npm")
    # scripts off: they only copy the program to a second place, and an installer need not run foreign code here
    argv = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    run_installer(f"agent {recipe.name}", argv, cwd=path)
    programs = sorted(program for program in path.glob(recipe.entry) if program.is_file())
    # npm decides by processor and C library; more than one means that it could not tell
    programs = [program for program in programs if "musl" not in program.relative_to(path).parts[2]] or programs
    if not programs:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING,
            f"agent {recipe.name} {recipe.version}",
            f"npm installed no program at {recipe.entry}: there is none for this platform",
            consequence="The agent was not installed",
            next_step="Use a Linux machine with an x86-64 or arm64 processor, or another agent",
        )
    programs[0].chmod(0o755)
    return Built(entry=str(programs[0].relative_to(path)))
