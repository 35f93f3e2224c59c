"""What is kept of a call through the gateway: a record of the exchange, an event of the trajectory, what was odd of it.

Also the form of the gateway's own answers. Values only; who writes them where is the gateway's matter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaluation.harness.exchange import Call
from evaluation.trajectory import ModelCall, TokenUsage
from pipeline.llm.redact import redact_content
from pipeline.llm.types import Usage

if TYPE_CHECKING:
    from starlette.responses import Response

__all__ = ["call_event", "exchange_record", "final_answer", "oddities"]


def exchange_record(call: Call, status: int, usage: Usage | None, duration_s: float, *, whole: bool) -> dict[str, Any]:
    """A line of the gateway's record; the cost is None where it is not known, never 0."""
    exchange: dict[str, Any] = {
        "at": call.at, "endpoint": call.endpoint, "provider": call.upstream.provider, "status": status,
        "model": call.model, "duration_s": duration_s, "usage": usage and usage.model_dump(mode="json"),
        "cost_usd": _cost(call, status), "request_sha256": call.digest,
    }  # fmt: skip
    exchange |= {"taken_out": call.removed} if call.removed else {}
    return exchange if whole else exchange | {"broken_off": True}


def call_event(call: Call, status: int, usage: Usage | None, duration_s: float) -> ModelCall:
    """The call in the trajectory."""
    tokens = None if usage is None else TokenUsage(
        input_tokens=usage.input_tokens, output_tokens=usage.output_tokens,
        cached_input_tokens=usage.cached_input_tokens,
    )  # fmt: skip
    return ModelCall(
        seq=0, at=call.at, endpoint=call.endpoint, status=status, model=call.model and redact_content(call.model),
        usage=tokens, cost_usd=_cost(call, status), request_sha256=call.digest, duration_s=duration_s,
    )  # fmt: skip


def oddities(call: Call, model: str | None) -> list[str]:
    """What was taken out of a request, and whether it names another model than the run does."""
    said = [f"{what} was taken out of the agent's requests: the provider would run it" for what in call.removed]
    if model and call.model and call.model != model:
        said.append(f"the agent called the model {call.model}, the run states {model}")
    return said


def final_answer(body: bytes, status: int) -> Response:
    """An answer of the gateway's own, which no client shall ask for again."""
    from starlette.responses import Response

    return Response(body, status_code=status, headers={"content-type": "application/json", "x-should-retry": "false"})


def _cost(call: Call, status: int) -> float | None:
    return 0.0 if status >= 400 else None if call.cost is None else float(call.cost)
