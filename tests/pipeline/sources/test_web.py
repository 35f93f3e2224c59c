"""The client of all look-ups: polite, patient within bounds, and it forgets nothing but keys."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sources.web import Service, WebClient
from tests.pipeline.sources.api_server import Services
from tests.pipeline.sources.conftest import Clock


@pytest.fixture
def service(services: Services) -> Service:
    return Service("github", f"{services.url}/github", 2.0, headers={"Authorization": "Bearer of-a-test"})


PATH = "/repos/lab/fast-weights"


def test_an_answer_is_asked_for_once(client: WebClient, service: Service, services: Services) -> None:
    first = client.get_json(service, PATH)
    assert isinstance(first, dict)
    assert first["stargazers_count"] == 412
    assert client.get_json(service, PATH) == first
    assert client.get_json(service, "/repos/lab/gone") is None
    assert client.get_json(service, "/repos/lab/gone") is None
    assert len(services.requests) == client.asked["github"] == 2
    assert client.cached(service, PATH)


def test_requests_of_one_service_keep_their_distance(client: WebClient, service: Service, clock: Clock) -> None:
    for name in ("a", "b", "c"):
        client.get_json(service, f"/repos/lab/{name}")
    assert clock.waits == [2.0, 2.0]


def test_keys_are_sent_and_never_kept(tmp_path: Path, services: Services, client: WebClient) -> None:
    service = Service(
        "openalex",
        f"{services.url}/openalex",
        0.0,
        headers={"x-api-key": "k-header"},
        parameters={"api_key": "k-query"},
    )
    client.get_json(service, "/works", {"filter": "title.search:x"})
    _, parameters, headers = services.requests[0]
    assert parameters["api_key"] == ["k-query"]
    assert headers["x-api-key"] == "k-header"
    assert headers["user-agent"].startswith("expbench/")
    kept = "".join(path.read_text() for path in (tmp_path / "cache").rglob("*.json"))
    assert "OPENALEX" not in kept
    assert "k-header" not in kept
    assert "k-query" not in kept
    services.refusals = [(400, {})]
    with pytest.raises(ExpbenchError) as caught:
        client.get_json(service, "/works", {"filter": "other"})
    assert "k-query" not in str(caught.value)


def test_an_old_answer_is_asked_for_again(tmp_path: Path, service: Service, services: Services, clock: Clock) -> None:
    with WebClient(tmp_path, max_age=timedelta(days=1), now=clock.now, clock=clock.clock, sleep=clock.sleep) as client:
        client.get_json(service, PATH)
        clock.seconds += 80_000
        client.get_json(service, PATH)
        assert len(services.requests) == 1
        clock.seconds += 80_000
        client.get_json(service, PATH)
        assert len(services.requests) == 2


def test_offline_knows_what_was_asked_before_and_nothing_else(
    tmp_path: Path, client: WebClient, service: Service, services: Services
) -> None:
    known = client.get_json(service, PATH)
    with WebClient(tmp_path / "cache", offline=True, max_age=timedelta(0)) as offline:
        assert offline.get_json(service, PATH) == known
        with pytest.raises(ExpbenchError, match="offline by choice") as caught:
            offline.get_json(service, "/repos/lab/other")
    assert caught.value.kind is FailureKind.NETWORK
    assert len(services.requests) == 1


@pytest.mark.parametrize(
    ("refusals", "waits"),
    [
        ([(503, {})], [1.0]),
        ([(500, {}), (502, {})], [1.0, 2.0]),
        ([(429, {"Retry-After": "7"})], [7.0]),
        ([(429, {"Retry-After": "Thu, 01 Jan 2026 00:00:09 GMT"})], [9.0]),
        ([(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767225605"})], [5.0]),
    ],
)
def test_what_passes_is_tried_again(
    client: WebClient, services: Services, clock: Clock, refusals: list[tuple[int, dict[str, str]]], waits: list[float]
) -> None:
    services.refusals = refusals
    service = Service("github", f"{services.url}/github", 0.0)
    assert client.get_json(service, PATH) is not None
    assert clock.waits == waits


@pytest.mark.parametrize(
    ("refusals", "kind", "requests"),
    [
        ([(500, {})] * 4, FailureKind.OVERLOADED, 4),
        ([(429, {"Retry-After": "3600"})], FailureKind.RATE_LIMIT, 1),
        ([(403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1767229200"})], FailureKind.RATE_LIMIT, 1),
        ([(403, {})], FailureKind.AUTHENTICATION, 1),
        ([(401, {})], FailureKind.AUTHENTICATION, 1),
        ([(400, {})], FailureKind.REQUEST_REJECTED, 1),
    ],
)
def test_what_does_not_pass_is_said(
    client: WebClient, services: Services, refusals: list[tuple[int, dict[str, str]]], kind: FailureKind, requests: int
) -> None:
    services.refusals = refusals
    with pytest.raises(ExpbenchError) as caught:
        client.get_json(Service("github", f"{services.url}/github", 0.0), PATH)
    assert caught.value.kind is kind
    assert len(services.requests) == requests
    assert "stays unknown" in caught.value.consequence


def test_a_dead_service_and_a_broken_answer_are_failures(client: WebClient, services: Services) -> None:
    with pytest.raises(ExpbenchError) as caught:
        client.get_json(Service("nobody", "http://127.0.0.1:9", 0.0), "/x")
    assert caught.value.kind is FailureKind.NETWORK
    services.answers["/github/broken"] = b"<html>"
    service = Service("github", f"{services.url}/github", 0.0)
    with pytest.raises(ExpbenchError) as caught:
        client.get_json(service, "/broken")
    assert caught.value.kind is FailureKind.PROTOCOL_BROKEN
    assert not client.cached(service, "/broken")


def test_a_damaged_answer_in_the_cache_is_asked_for_again(
    tmp_path: Path, client: WebClient, service: Service, services: Services
) -> None:
    client.get_json(service, PATH)
    (kept,) = (tmp_path / "cache").rglob("*.json")
    kept.write_text("{half")
    assert client.get_json(service, PATH) is not None
    assert len(services.requests) == 2
