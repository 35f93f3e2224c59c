"""The `llm` solver: any model in the agent loop of petri-bench 7.1, through our model layer (budget, cache, ledger)."""

from __future__ import annotations

import json

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.tools import brief, call_tool, system_prompt, tools_for
from pipeline.llm import Message, ModelClient, Parameters, Request, ToolSpec, system, tool_result, user

__all__ = ["MAX_TURNS", "solve_with_model"]

MAX_TURNS = 24
"""Turns before the episode ends without an answer: three times the budget, for claims and refused calls."""
_NUDGE = "Reply with exactly one tool call. When confident, call submit."


def solve_with_model(task: CausalTask, client: ModelClient, *, repeat: int = 0) -> EpisodeLog:
    """Play one episode with a model.

    A reply without a tool call is asked for once more; after a second one in a row the episode ends without an answer,
    as in the paper's protocol. The log is the whole transcript that is scored.

    Args:
        task: the mystery world.
        client: the model.
        repeat: number of the episode; draws of different repeats are never taken from one another's recordings.

    Raises:
        ModelError, BudgetError: the model could not be asked; nothing of the episode counts then.
    """
    bench = Bench(task)
    tools = tuple(
        ToolSpec.of(name, description, arguments) for name, (description, arguments) in tools_for(task).items()
    )
    messages: list[Message] = [system(system_prompt(task)), user(brief(task))]
    base = client.config.parameters
    parameters = Parameters.model_validate(base.model_dump() | {"sample": repeat})
    silent = 0
    for _ in range(MAX_TURNS):
        reply = client.chat(Request(messages=tuple(messages), tools=tools, parameters=parameters))
        messages.append(reply.as_message())
        if not reply.tool_calls and not reply.invalid_tool_calls:
            silent += 1
            if silent == 2:
                break
            messages.append(user(_NUDGE))
            continue
        silent = 0
        messages += [
            tool_result(broken, json.dumps({"error": f"arguments are no JSON object: {broken.error}"}))
            for broken in reply.invalid_tool_calls
        ]
        messages += [
            tool_result(call, json.dumps(call_tool(bench, call.name, call.arguments))) for call in reply.tool_calls
        ]
        if bench.ended:
            break
    return bench.log
