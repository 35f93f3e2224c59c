"""Options of `expbench evaluate`: limits of an episode, and who grades it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final, Literal

import typer

__all__ = [
    "Ablate", "AgentModel", "AgentName", "AgentOptions", "Counterfactual", "CounterfactualMinutes", "Cpus",
    "DiskMb", "DryRun", "ExecuteAll", "GpuType", "Gpus", "JudgeCalls", "JudgeEngine", "JudgeModel", "JudgeTokens",
    "JudgeUsd", "MaxCalls", "MaxTokens", "MaxUsd", "MemoryMb", "Network", "Panel", "Repeats", "Resume",
    "RunToWrite", "Source", "TaskPatterns", "WallMinutes", "Workers",
]  # fmt: skip

_LIMITS: Final = "Limits of an episode"
_GRADING: Final = "Grading"

Source = Annotated[
    Path, typer.Argument(help="Workspace, release, or published EXP-Bench data.", metavar="SOURCE", exists=True)
]
AgentName = Annotated[str, typer.Option(help="Name of the agent (see `expbench agents`).")]
AgentOptions = Annotated[
    list[str] | None, typer.Option(help="NAME=VALUE for the agent; may be repeated.", metavar="NAME=VALUE")
]
AgentModel = Annotated[str | None, typer.Option(help="The agent's model; default: EXPBENCH_MODEL.")]
TaskPatterns = Annotated[
    list[str] | None, typer.Option(help="Only tasks whose id matches; may be repeated.", metavar="GLOB")
]
Repeats = Annotated[int, typer.Option(min=1, help="Episodes per task.")]
Workers = Annotated[int, typer.Option(min=1, max=256, help="Episodes at once.")]
RunToWrite = Annotated[Path | None, typer.Option(help="Run to write; default: ./expbench-run-<agent>.", metavar="RUN")]
Resume = Annotated[bool, typer.Option("--resume", help="Go on with a run; finished steps are kept.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check everything and say what would be done.")]

WallMinutes = Annotated[float, typer.Option(min=0.01, help="Wall time (EXP-Bench: 40).", rich_help_panel=_LIMITS)]
MaxCalls = Annotated[int | None, typer.Option(min=0, help="Model calls.", rich_help_panel=_LIMITS)]
MaxTokens = Annotated[int | None, typer.Option(min=0, help="Tokens, input and output.", rich_help_panel=_LIMITS)]
MaxUsd = Annotated[float | None, typer.Option(min=0, help="Dollars for its model.", rich_help_panel=_LIMITS)]
Cpus = Annotated[float, typer.Option(min=0.1, help="CPUs of an episode.", rich_help_panel=_LIMITS)]
MemoryMb = Annotated[int, typer.Option(min=64, help="Memory of an episode.", rich_help_panel=_LIMITS)]
DiskMb = Annotated[int, typer.Option(min=16, help="Counts as memory of this machine.", rich_help_panel=_LIMITS)]
Gpus = Annotated[int, typer.Option(min=0, help="GPUs of an episode.", rich_help_panel=_LIMITS)]
GpuType = Annotated[str | None, typer.Option(help="Part of the GPU's name, e.g. A40.", rich_help_panel=_LIMITS)]
Network = Annotated[
    str,
    typer.Option(
        help="What the agent may reach beside its model: `none`, or `allow=HOST,...` (TLS, recorded).",
        rich_help_panel=_LIMITS,
    ),
]

JudgeEngine = Annotated[
    Literal["keyless", "model"],
    typer.Option(help="Who grades; `keyless` needs no language model.", rich_help_panel=_GRADING),
]
JudgeModel = Annotated[
    str | None, typer.Option(help="Name of the judge; default: EXPBENCH_MODEL.", rich_help_panel=_GRADING)
]
Panel = Annotated[int, typer.Option(min=1, max=15, help="Votes per criterion.", rich_help_panel=_GRADING)]
JudgeUsd = Annotated[
    float | None,
    typer.Option(min=0.0, help="Money that the judging model may cost in this run.", rich_help_panel=_GRADING),
]
JudgeCalls = Annotated[int | None, typer.Option(min=0, help="Calls that it may make.", rich_help_panel=_GRADING)]
JudgeTokens = Annotated[int | None, typer.Option(min=0, help="Tokens that it may use.", rich_help_panel=_GRADING)]
ExecuteAll = Annotated[
    bool, typer.Option("--execute-all", help="Re-execute what the monitor fails, too.", rich_help_panel=_GRADING)
]
Counterfactual = Annotated[
    Literal["off", "on", "auto"],
    typer.Option(
        help="Run each submission again with other random streams, muted draws and permuted labels: computed numbers "
        "answer, typed ones stay. `auto`: within the budget.",
        rich_help_panel=_GRADING,
    ),
]
CounterfactualMinutes = Annotated[
    float, typer.Option(min=0.1, help="Budget of these runs for an episode.", rich_help_panel=_GRADING)
]
Ablate = Annotated[
    str,
    typer.Option(
        help="Leave out a share of the set-up (`method:0.5`), or a tool of the workspace (`tool:read-paper`).",
    ),
]
