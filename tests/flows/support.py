"""Workspaces for tests that need one without curating."""

from __future__ import annotations

from pathlib import Path

from pipeline.store import Inputs, Workspace, WorkspaceInfo


def empty_workspace(root: Path) -> Workspace:
    """A workspace with a head and no tasks."""
    inputs = Inputs(
        paper_sha256="0" * 64,
        repository="code",
        commit="a" * 40,
        engine="keyless",
        sandbox="docker",
        repeats=2,
        max_tasks=None,
    )
    workspace = Workspace(root)
    workspace.write_info(
        WorkspaceInfo(inputs=inputs, paper_id="paper", created_at="2026-01-01T00:00:00+00:00", expbench="0.1.0")
    )
    return workspace
