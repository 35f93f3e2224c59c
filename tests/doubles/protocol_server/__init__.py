"""A server that speaks the model endpoints' real HTTP protocols from scripted turns.

For tests of everything that talks to a model, and for running real agents without one: OpenAI's chat completions,
responses, embeddings and models, and Anthropic's messages; streamed or not; tool calls, structured output, images,
errors with Retry-After, slow, cut and malformed answers. It listens on the loopback interface only and serves HTTP with
the standard library alone. Non-goal: imitating a model's content.

    with ProtocolServer(Script.of(text("hello"))) as server:
        client = openai.OpenAI(base_url=server.base_url, api_key="any")
"""

from tests.doubles.protocol_server import turns
from tests.doubles.protocol_server._embeddings import embedding
from tests.doubles.protocol_server._state import Features, Responder
from tests.doubles.protocol_server.clock import Clock, ManualClock, RealClock
from tests.doubles.protocol_server.recording import RecordedImage, RecordedRequest
from tests.doubles.protocol_server.script import (
    Cut,
    Endpoint,
    ErrorReply,
    Match,
    Script,
    ScriptedUsage,
    ToolCall,
    Turn,
    load_script,
)
from tests.doubles.protocol_server.server import ProtocolServer

__all__ = [
    "Clock",
    "Cut",
    "Endpoint",
    "ErrorReply",
    "Features",
    "ManualClock",
    "Match",
    "ProtocolServer",
    "RealClock",
    "RecordedImage",
    "RecordedRequest",
    "Responder",
    "Script",
    "ScriptedUsage",
    "ToolCall",
    "Turn",
    "embedding",
    "load_script",
    "turns",
]
