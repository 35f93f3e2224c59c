"""The model layer: every place where a language model reads, searches or judges goes through here.

Importing it is cheap; the client libraries are imported by the first call.
"""

from pipeline.llm.budget import Budget, BudgetError, BudgetLimits, Spent, current_budget
from pipeline.llm.cache import CacheMode, Exchange, ExchangeStore, request_key
from pipeline.llm.cancel import CancelToken, Clock, SystemClock
from pipeline.llm.client import ModelClient
from pipeline.llm.config import ModelConfig, ModelSettings, model_config_from_environment
from pipeline.llm.context import ContextPolicy
from pipeline.llm.errors_map import ModelError
from pipeline.llm.ledger import CallLedger, CallRecord, Totals
from pipeline.llm.prices import Price, PriceList, load_prices
from pipeline.llm.prompts import Prompt, load_prompt, parse_prompt
from pipeline.llm.redact import redact, register_secret
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
