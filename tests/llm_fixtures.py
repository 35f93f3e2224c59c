"""Fixtures around the protocol server. Import them where they are used:

from tests.llm_fixtures import protocol_server  # noqa: F401
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from pipeline.llm import ModelClient, ModelConfig, Parameters, RetryPolicy
from tests.doubles.protocol_server import ProtocolServer, Script, Turn

Serve = Callable[..., ProtocolServer]
Connect = Callable[..., ModelClient]


@pytest.fixture
def protocol_server() -> Iterator[Serve]:
    """`protocol_server(*turns, default=None, order="sequence", **options)` starts a server; all end with the test."""
    with ExitStack() as stack:

        def serve(*turns: Turn, default: Turn | None = None, order: Any = "sequence", **options: Any) -> ProtocolServer:
            script = Script(turns=turns, default=default, order=order)
            return stack.enter_context(ProtocolServer(script, **options))

        yield serve


@pytest.fixture(autouse=False)
def no_ambient_model(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the machine's own configuration of models, proxies or tracing reaches a test."""
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    monkeypatch.setenv("LANGCHAIN_TRACING_V2", "false")


@pytest.fixture
def connect(no_ambient_model: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connect]:
    """`connect(server, **options of the client)` is a client of a protocol server; all are closed with the test."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-a-test")
    with ExitStack() as stack:

        def make(server: ProtocolServer, **options: Any) -> ModelClient:
            config = ModelConfig(
                model="scripted",
                base_url=server.base_url,
                parameters=Parameters(max_output_tokens=1000),
                retry=RetryPolicy(attempts=1),
                timeout_s=60.0,
            )
            return stack.enter_context(ModelClient(config, **options))

        yield make
