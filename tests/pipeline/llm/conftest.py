from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from pipeline.llm import (
    CallLedger,
    CancelToken,
    ExchangeStore,
    ModelClient,
    ModelConfig,
    Parameters,
    RetryPolicy,
)
from tests.llm_fixtures import no_ambient_model, protocol_server  # noqa: F401 - fixtures

KEY = "sk-canary-7f3a9c51e2d84b60"


class FakeClock:
    """Time moves when somebody sleeps; what was slept is kept."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float, cancel: CancelToken) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ledger(tmp_path: Path) -> CallLedger:
    return CallLedger(tmp_path / "calls.jsonl")


@pytest.fixture
def make_client(
    no_ambient_model: None,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    clock: FakeClock,
    ledger: CallLedger,
) -> Iterator[Callable[..., ModelClient]]:
    """`make_client(server, mode=..., window=..., attempts=..., **options of the client)`; closed with the test."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    with ExitStack() as stack:

        def make(server: Any, *, store: ExchangeStore | None = None, attempts: int = 4, **options: Any) -> ModelClient:
            fields = {"model": "scripted", "parameters": Parameters(max_output_tokens=100, temperature=0.0, seed=7)}
            fields |= {"retry": RetryPolicy(attempts=attempts), "timeout_s": 30.0} | options.pop("config", {})
            config = ModelConfig(base_url=getattr(server, "base_url", server), **fields)
            chosen: dict[str, Any] = {"ledger": ledger, "clock": clock, "rng": random.Random(1)} | options
            return stack.enter_context(ModelClient(config, store=store, **chosen))

        yield make
