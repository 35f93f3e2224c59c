from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import openai
import pytest

from tests.doubles.protocol_server import ProtocolServer
from tests.llm_fixtures import no_ambient_model, protocol_server  # noqa: F401

Connect = Callable[..., openai.OpenAI]


@pytest.fixture
def connect(no_ambient_model: None) -> Iterator[Connect]:  # noqa: F811
    """The official client against a server, without its own retries unless asked for."""
    with ExitStack() as stack:

        def make(server: ProtocolServer, **options: Any) -> openai.OpenAI:
            options = {"max_retries": 0, "api_key": "test-key", **options}
            return stack.enter_context(openai.OpenAI(base_url=server.base_url, **options))

        yield make
