"""What `expbench evaluate` checks before anything is run: agent, models and their keys, prices, Docker.

`evaluate` raises the first of them; `--dry-run` tells all of them.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaluation.agents.base import AgentAdapter
from evaluation.task import EvaluationTask
from flows.evaluation_records import EvaluateOptions
from pipeline.errors import Cause, ExpbenchError, FailureKind
from pipeline.llm import redact
from pipeline.sandbox import StoppableSandbox, open_sandbox

if TYPE_CHECKING:
    from evaluation.harness.upstream import Upstream
    from pipeline.llm import PriceList

__all__ = [
    "agent_sandbox", "blocked_tasks", "matching", "obstacles", "require_available", "require_judge", "require_launch",
    "require_no_secrets", "upstreams_and_prices", "without_unused_model",
]  # fmt: skip


def without_unused_model(options: EvaluateOptions, agent: AgentAdapter) -> EvaluateOptions:
    """A model that the environment names is not the model of an agent that calls none."""
    return options.evolve(model=None) if agent.kind == "bound" else options


def require_available(agent: AgentAdapter) -> None:
    """Is all there that the agent needs on this machine?

    Raises:
        ExpbenchError: `TOOL_MISSING`.
    """
    found = agent.availability()
    if not found.available:
        raise ExpbenchError(
            FailureKind.TOOL_MISSING, f"agent {agent.name}", found.detail, consequence="No episode was run",
            next_step=found.next_step or "`expbench agents` says what it needs",
        )  # fmt: skip


def require_no_secrets(options: EvaluateOptions) -> None:
    """Options of agents are written down: a key does not belong there, and the container must not get one.

    Raises:
        ExpbenchError: `USAGE`.
    """
    held = [name for name, value in options.agent_options.items() if redact(value) != value]
    if held:
        raise ExpbenchError(
            FailureKind.USAGE, f"--agent-option {held[0]}", "holds what looks like a key",
            consequence="No episode was run",
            next_step="Leave it out: the gateway adds keys outside the container, from the environment",
        )  # fmt: skip


def require_launch(agent: AgentAdapter, options: EvaluateOptions, tasks: Sequence[EvaluationTask]) -> None:
    """Can the agent be started with these options and this model? Asked before a run is begun in its name.

    Args:
        agent: with its options.
        options: of the run.
        tasks: of the run; the first that can be carried out is asked for. What is wrong with a task is its episode's.

    Raises:
        ExpbenchError: what the user has to mend; and see `upstreams_and_prices`.
    """
    from evaluation.harness.launch_spec import agent_context

    upstreams, _ = upstreams_and_prices(options)
    context = agent_context("", model=options.model, upstreams=upstreams, wall_s=options.limits.wall_s)
    for task in [task for task in tasks if not task.blocked][:1]:
        try:
            agent.launch(task, context)
        except ExpbenchError as error:
            if error.failure.cause is Cause.USER:
                raise


def blocked_tasks(tasks: Sequence[EvaluationTask]) -> tuple[ExpbenchError, ...]:
    """Why tasks cannot be carried out here, one error a task: each of their episodes would be blocked."""
    from evaluation.harness.workspace import require_task

    return obstacles([partial(require_task, task) for task in tasks])


def require_judge(options: EvaluateOptions) -> None:
    """Is there a key for the model that is to grade? Asked before an agent has worked, and was paid, for nothing.

    A run that goes on may find all it needs among its recorded exchanges; the model layer says if it does not.

    Raises:
        ExpbenchError: `USAGE`, no model is named; `AUTHENTICATION`.
    """
    if options.judge == "keyless" or options.resume:
        return
    from pipeline.llm import model_config_from_environment
    from pipeline.llm.config import find_key

    config = model_config_from_environment(options.judge_model)
    try:
        find_key(config)
    except ExpbenchError as error:
        raise ExpbenchError(
            error.kind, f"judge {config.model} at {error.object}", error.cause, consequence="No episode was run",
            next_step=f"{error.next_step}; or grade with `--judge keyless`",
        ) from error  # fmt: skip


def agent_sandbox() -> StoppableSandbox:
    """Docker: only a container keeps the ground truth on this machine out of an agent's sight.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE`.
    """
    try:
        sandbox = open_sandbox("docker")
    except ExpbenchError as error:
        raise ExpbenchError(
            error.kind,
            "Docker Engine",
            error.cause,
            consequence="No episode was run: agents work in containers only, which keep the ground truth from them",
            # the process sandbox serves curation; an agent in it could read this machine's files
            next_step=error.next_step.removesuffix(", or use `--sandbox process`"),
        ) from error
    assert isinstance(sandbox, StoppableSandbox)
    return sandbox


def upstreams_and_prices(options: EvaluateOptions) -> tuple[tuple[Upstream, ...], PriceList]:
    """Endpoints and prices of the agent's model. A limit of money can be kept only where the model has a price.

    Raises:
        ExpbenchError: `USAGE`, it has none; `AUTHENTICATION`, a model is named, and there is no key for any endpoint.
    """
    from pipeline.llm import load_prices

    prices, upstreams = load_prices(), _upstreams(options)
    wanted = options.limits.money_usd is not None and options.model is not None and bool(upstreams)
    if wanted and not any(upstream.priced(prices, str(options.model)) for upstream in upstreams):
        raise ExpbenchError(
            FailureKind.USAGE, "--max-usd", f"the price of {options.model} is not known, so the limit cannot be kept",
            consequence="No episode was run",
            next_step="Add its price to a file named by EXPBENCH_PRICES (docs/models.md), or give --max-tokens",
        )  # fmt: skip
    return upstreams, prices


def _upstreams(options: EvaluateOptions) -> tuple[Upstream, ...]:
    if options.model is None:
        return ()
    from evaluation.harness.upstream import upstreams_from_environment

    found, missing = upstreams_from_environment()
    if not found:
        first = missing[0]
        raise ExpbenchError(
            first.kind,
            f"model {options.model}",
            "; ".join(f"{error.object}: {error.cause}" for error in missing),
            consequence="No episode was run",
            next_step="Set the key of the endpoint that your agent's protocol belongs to (docs/models.md)",
        )
    return found


def matching(
    tasks: Sequence[EvaluationTask], patterns: Sequence[str], source: Path, consequence: str
) -> list[EvaluationTask]:
    """The tasks whose id matches one of the patterns; all where there are none.

    Raises:
        ExpbenchError: `USAGE`: that is no task.
    """
    found = [task for task in tasks if not patterns or any(fnmatch.fnmatchcase(task.id, item) for item in patterns)]
    if not found:
        raise ExpbenchError(
            FailureKind.USAGE, str(source),
            f"none of its {len(tasks)} task(s) matches {', '.join(patterns)}" if tasks else "holds no task",
            consequence=consequence,
            next_step="Choose among: " + (", ".join(task.id for task in tasks[:20]) or "(none)"),
        )  # fmt: skip
    return found


def obstacles(checks: Sequence[Callable[[], object]]) -> tuple[ExpbenchError, ...]:
    """What each of the checks says is in the way; every one is asked."""
    found = []
    for check in checks:
        try:
            check()
        except ExpbenchError as error:
            found.append(error)
    return tuple(found)
