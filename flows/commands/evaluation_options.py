"""Options of `expbench evaluate` that say how its episodes run: their limits, and who grades them."""

from __future__ import annotations

from functools import partial
from typing import Annotated, Literal, NamedTuple

import typer

__all__ = ["Episodes"]

_limit = partial(typer.Option, rich_help_panel="Limits of an episode")
_grading = partial(typer.Option, rich_help_panel="Grading")


class Episodes(NamedTuple):
    """The fields of `EvaluationParameters` as options, for `with_options`."""

    wall_minutes: Annotated[float, _limit(min=0.01, help="Wall time (EXP-Bench: 40).")] = 40.0
    max_calls: Annotated[int | None, _limit(min=0, help="Model calls.")] = None
    max_tokens: Annotated[int | None, _limit(min=0, help="Tokens, input and output.")] = None
    max_usd: Annotated[float | None, _limit(min=0, help="Dollars for its model.")] = None
    cpus: Annotated[float, _limit(min=0.1, help="CPUs of an episode.")] = 2.0
    memory_mb: Annotated[int, _limit(min=64, help="Memory of an episode.")] = 4096
    disk_mb: Annotated[int, _limit(min=16, help="Counts as memory of this machine.")] = 4096
    gpus: Annotated[int, _limit(min=0, help="GPUs of an episode.")] = 0
    gpu_type: Annotated[str | None, _limit(help="Part of the GPU's name, e.g. A40.")] = None
    network: Annotated[
        str,
        _limit(help="What the agent may reach beside its model: `none`, or `allow=HOST,...` (TLS, recorded)."),
    ] = "none"
    judge: Annotated[
        Literal["keyless", "model"],
        _grading(help="Who grades; `keyless` needs no language model."),
    ] = "keyless"
    judge_model: Annotated[str | None, _grading(help="Name of the judge; default: EXPBENCH_MODEL.")] = None
    panel: Annotated[int, _grading(min=1, max=15, help="Votes per criterion.")] = 1
    judge_budget_usd: Annotated[
        float | None,
        _grading("--judge-usd", min=0.0, help="Money that the judging model may cost in this run."),
    ] = None
    judge_max_calls: Annotated[int | None, _grading("--judge-calls", min=0, help="Calls that it may make.")] = None
    judge_max_tokens: Annotated[int | None, _grading("--judge-tokens", min=0, help="Tokens that it may use.")] = None
    execute_all: Annotated[bool, _grading("--execute-all", help="Re-execute what the monitor fails, too.")] = False
    counterfactual: Annotated[
        Literal["off", "on", "auto"],
        _grading(
            help="Run each submission again with other random streams, muted draws and permuted labels: computed "
            "numbers answer, typed ones stay. `auto`: within the budget."
        ),
    ] = "auto"
    counterfactual_minutes: Annotated[float, _grading(min=0.1, help="Budget of these runs for an episode.")] = 15.0
    ablate: Annotated[
        str,
        typer.Option(
            help="Leave out a share of the set-up (`method:0.5`), or a tool of the workspace (`tool:read-paper`).",
        ),
    ] = ""
