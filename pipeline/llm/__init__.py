"""The model layer: every place where a language model reads, searches or judges goes through here.

Importing it is cheap: each name is imported when it is used first (all of them together take 0.25 s beside pydantic),
and the client libraries by the first call (about 3 s).
"""

from importlib import import_module
from typing import TYPE_CHECKING, Final

from pipeline.llm.redact import redact, register_secret  # at once: the module has the name of its function

if TYPE_CHECKING:
    from pipeline.llm.budget import Budget, BudgetError, BudgetLimits, Spent, current_budget
    from pipeline.llm.cache import CacheMode, Exchange, ExchangeStore, request_key
    from pipeline.llm.cancel import CancelToken, Clock, SystemClock
    from pipeline.llm.client import ModelClient
    from pipeline.llm.config import ModelConfig, model_config_from_environment
    from pipeline.llm.context import ContextPolicy
    from pipeline.llm.environment import ModelSettings
    from pipeline.llm.errors_map import ModelError
    from pipeline.llm.ledger import CallLedger, CallRecord, Totals
    from pipeline.llm.prices import Price, PriceList, load_prices
    from pipeline.llm.prompts import Prompt, load_prompt, parse_prompt
    from pipeline.llm.retry import RetryPolicy
    from pipeline.llm.structured import Structured
    from pipeline.llm.types import (
        Delta,
        FinishReason,
        ImagePart,
        InvalidToolCall,
        Message,
        Parameters,
        PromptRef,
        Reply,
        Request,
        TextPart,
        ToolCall,
        ToolSpec,
        Usage,
        assistant,
        system,
        tool_result,
        user,
    )
    from pipeline.llm.untrusted import TOOL_NOTICE, Addressed, addressed_to_models, tool_output

__all__ = [
    "TOOL_NOTICE",
    "Addressed",
    "Budget",
    "BudgetError",
    "BudgetLimits",
    "CacheMode",
    "CallLedger",
    "CallRecord",
    "CancelToken",
    "Clock",
    "ContextPolicy",
    "Delta",
    "Exchange",
    "ExchangeStore",
    "FinishReason",
    "ImagePart",
    "InvalidToolCall",
    "Message",
    "ModelClient",
    "ModelConfig",
    "ModelError",
    "ModelSettings",
    "Parameters",
    "Price",
    "PriceList",
    "Prompt",
    "PromptRef",
    "Reply",
    "Request",
    "RetryPolicy",
    "Spent",
    "Structured",
    "SystemClock",
    "TextPart",
    "ToolCall",
    "ToolSpec",
    "Totals",
    "Usage",
    "addressed_to_models",
    "assistant",
    "current_budget",
    "load_prices",
    "load_prompt",
    "model_config_from_environment",
    "parse_prompt",
    "redact",
    "register_secret",
    "request_key",
    "system",
    "tool_output",
    "tool_result",
    "user",
]

_HOME: Final = {
    name: module
    for module, names in {
        "budget": "Budget BudgetError BudgetLimits Spent current_budget",
        "cache": "CacheMode Exchange ExchangeStore request_key",
        "cancel": "CancelToken Clock SystemClock",
        "client": "ModelClient",
        "config": "ModelConfig model_config_from_environment",
        "context": "ContextPolicy",
        "environment": "ModelSettings",
        "errors_map": "ModelError",
        "ledger": "CallLedger CallRecord Totals",
        "prices": "Price PriceList load_prices",
        "prompts": "Prompt load_prompt parse_prompt",
        "retry": "RetryPolicy",
        "structured": "Structured",
        "types": "Delta FinishReason ImagePart InvalidToolCall Message Parameters PromptRef Reply Request TextPart "
        "ToolCall ToolSpec Usage assistant system tool_result user",
        "untrusted": "TOOL_NOTICE Addressed addressed_to_models tool_output",
    }.items()
    for name in names.split()
}


def __getattr__(name: str) -> object:
    """Import a public name from its module when it is used first (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """The public names, imported or not."""
    return sorted({*globals(), *__all__})
