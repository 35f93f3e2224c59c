"""How many tokens a request has, before an endpoint counts them.

Two answers for two uses. `worst_tokens` is a bound that no byte-level tokenizer passes (a token is at least one byte),
for budgets. `typical_tokens` is an expectation, for forecasts and for deciding whether a text fits a context window;
the endpoint has the last word there. Tokenizer files are not used: they would have to be downloaded per model.
"""

from __future__ import annotations

import math
from typing import Final

from pipeline.llm.types import ImagePart, Request, TextPart, ordered_json

__all__ = ["BYTES_PER_TOKEN", "TYPICAL_IMAGE", "typical_text_tokens", "typical_tokens", "worst_tokens"]

# Providers' rule of thumb is 4 bytes per token of English; numbers, code and symbols take more tokens than that.
BYTES_PER_TOKEN: Final = 3.6
# Role markers, names and separators: ChatML spends 4-8 tokens per message; instructions around tools up to 700.
_PER_MESSAGE: Final = 16
_PER_REQUEST: Final = 64
_FOR_TOOLS: Final = 1024
TYPICAL_IMAGE: Final = 1000


def worst_tokens(request: Request, image_tokens: int) -> int:
    """The most input tokens that a request can have."""
    return _bytes(request) + _overhead(request) + _images(request) * image_tokens


def typical_tokens(request: Request) -> int:
    """The input tokens to expect."""
    return math.ceil(_bytes(request) / BYTES_PER_TOKEN) + 8 * len(request.messages) + _images(request) * TYPICAL_IMAGE


def typical_text_tokens(text: str) -> int:
    """The tokens to expect for a text."""
    return math.ceil(len(text.encode("utf-8", "surrogatepass")) / BYTES_PER_TOKEN)


def _overhead(request: Request) -> int:
    return _PER_REQUEST + _PER_MESSAGE * len(request.messages) + (_FOR_TOOLS if request.tools else 0)


def _images(request: Request) -> int:
    return sum(isinstance(part, ImagePart) for message in request.messages for part in message.content)


def _bytes(request: Request) -> int:
    size = 0
    for message in request.messages:
        for part in message.content:
            if isinstance(part, TextPart):
                size += len(part.rendered().encode("utf-8", "surrogatepass"))
        size += sum(len(call.name) + len(ordered_json(call.arguments)) + len(call.id) for call in message.tool_calls)
        size += len(message.tool_call_id or "")
    size += sum(len(ordered_json(tool.model_dump(mode="json"))) for tool in request.tools)
    if request.response_schema is not None:
        size += len(ordered_json(request.response_schema))
    return size
