"""The command-line tools of an agent's workspace, each with its files and its lines in the documentation.

Only what is really there is documented: the simulation stack of the paper (generators, detector simulation) is part of
an environment where a task's `[environment]` names it, not a tool of ours. A tool can be taken out (Collider-Bench
D.1): its files and every mention of it go, so that an agent cannot tell that something is missing.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.schema import Record

__all__ = ["TOOLS", "WorkspaceTool", "chosen_tools"]


class WorkspaceTool(Record):
    """One tool."""

    name: str
    purpose: str
    files: tuple[str, ...]
    """Below `workspace_files/`, and at the same place in the workspace."""
    cheats: tuple[str, ...]
    """Lines of the cheat sheet; `{paper}` is replaced."""


TOOLS: Final = (
    WorkspaceTool(
        name="read-paper",
        purpose="Extract the paper's text, render its figures as PNG",
        files=("bin/read-paper", "tools/read_paper.py", "tools/READ-PAPER.md"),
        cheats=("bin/read-paper papers/{paper}.pdf [--pages 3-5] [--figures]",),
    ),
    WorkspaceTool(
        name="run-analysis",
        purpose="Run a Python program of the analysis in the workspace's environment and keep its output",
        files=("bin/run-analysis", "tools/run_analysis.py", "tools/RUN-ANALYSIS.md"),
        cheats=("bin/run-analysis [analysis/analysis.py]",),
    ),
    WorkspaceTool(
        name="check-results",
        purpose="Say whether the file in `results/` has the form that can be scored",
        files=("bin/check-results", "tools/check_results.py", "tools/CHECK-RESULTS.md"),
        cheats=("bin/check-results",),
    ),
)


def chosen_tools(without: Iterable[str] = ()) -> tuple[WorkspaceTool, ...]:
    """The tools of a workspace.

    Raises:
        ExpbenchError: `USAGE`: a tool that is to be left out does not exist.
    """
    left_out = set(without)
    names = [tool.name for tool in TOOLS]
    unknown = sorted(left_out - set(names))
    if unknown:
        raise ExpbenchError(
            FailureKind.USAGE,
            f"ablation `tool:{unknown[0]}`",
            "a workspace of the histogram family has no such tool",
            consequence="Nothing was evaluated",
            next_step="Choose one of " + ", ".join(f"tool:{name}" for name in names),
        )
    return tuple(tool for tool in TOOLS if tool.name not in left_out)
