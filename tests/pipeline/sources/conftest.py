from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pipeline.sources.web import WebClient
from tests.pipeline.sources.api_server import Services, api_server


class Clock:
    """Time that passes only when somebody waits."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.waits: list[float] = []

    def clock(self) -> float:
        return self.seconds

    def sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.seconds += seconds

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)


@pytest.fixture
def services(monkeypatch: pytest.MonkeyPatch) -> Iterator[Services]:
    with api_server() as found:
        for name, value in found.environment().items():
            monkeypatch.setenv(name, value)
        for name in ("OPENALEX_API_KEY", "S2_API_KEY", "GITHUB_TOKEN", "OPENREVIEW_TOKEN"):
            monkeypatch.delenv(name, raising=False)
        yield found


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def client(tmp_path: Path, clock: Clock) -> Iterator[WebClient]:
    with WebClient(tmp_path / "cache", now=clock.now, clock=clock.clock, sleep=clock.sleep) as made:
        yield made
