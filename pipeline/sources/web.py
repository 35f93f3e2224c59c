"""One client for everything that is looked up: cached on disk, rate-limited per service, retried by the failure table.

An answer is kept under the digest of its address and parameters, never of its headers: keys and tokens are neither
stored nor printed. What was looked up is not asked again until it is too old, which is also how an interrupted run goes
on. "There is no such thing" (404, 410 and 451: gone, or taken down by law) is an answer and is kept too.

Non-goal: pretending. Without network, or offline by choice, a look-up that is not in the cache fails, and what it would
have said stays unknown.
"""

from __future__ import annotations

import email.utils
import json
import re
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Self

from pydantic import JsonValue, ValidationError

from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.schema import StoredRecord
from pipeline.text import shorten
from pipeline.version import version

if TYPE_CHECKING:
    import httpx2

__all__ = ["Service", "WebClient"]

_ATTEMPTS: Final = 4
_WAIT_S: Final = (1.0, 2.0, 4.0)
_LONGEST_WAIT_S: Final = 60.0
"""A service that asks for a longer pause is given up for this run: its limits are per hour or per day."""
_TIMEOUT_S: Final = 30.0
_MOST_BYTES: Final = 64 << 20
"""A page of 1,000 OpenReview notes has about 8 MB, a paper up to 50 MB."""
_AGAIN: Final = frozenset({429, 500, 502, 503, 504})
_ABSENT: Final = frozenset({404, 410, 451})
_MOST_OF_REFUSAL: Final = 1 << 16
_UNNAMED_WAIT_S: Final = 60.0
"""Pause after a refusal that says "rate limit" and not how long: GitHub's documentation asks for at least a minute."""
_LIMITED: Final = re.compile(r"rate.?limit|too many requests", re.IGNORECASE)


class Service(NamedTuple):
    """Whom to ask."""

    name: str
    url: str
    """Base address, without a slash at its end."""
    interval_s: float
    """Least time between two requests; what the service's documentation asks for without a key."""
    headers: Mapping[str, str] = {}
    """May hold a key."""
    parameters: Mapping[str, str] = {}
    """Sent with every request, and may hold a key: not part of what an answer is kept under."""
    variable: str = ""
    """Environment variable that takes a key, for those who are refused without one."""
    absent: frozenset[int] = _ABSENT
    """Statuses that say that there is no such thing."""


class _Answer(StoredRecord):
    """A kept answer."""

    SCHEMA_VERSION: ClassVar[int] = 1

    service: str
    path: str
    parameters: dict[str, str]
    status: int
    at: str
    """ISO 8601, UTC."""
    body: JsonValue = None


class WebClient:
    """Asks services for JSON and files.

    Args:
        cache: directory of kept answers, safe to delete.
        offline: answer from the cache only.
        max_age: older answers are asked for again; None: none is too old.
        now: the time, aware.
        clock: seconds that only grow.
        sleep: waits.
    """

    def __init__(
        self,
        cache: Path,
        *,
        offline: bool = False,
        max_age: timedelta | None = timedelta(days=30),
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.cache, self.offline, self.max_age = cache, offline, max_age
        self._now, self._clock, self._sleep = now, clock, sleep
        self._last: dict[str, float] = {}
        self._client: httpx2.Client | None = None
        self.asked: dict[str, int] = {}
        """Requests that were made, by service; answers from the cache do not count."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def cached(self, service: Service, path: str, parameters: Mapping[str, str] | None = None) -> bool:
        """Would the answer come from the cache?"""
        return self._kept(service, path, dict(parameters or {})) is not None

    def get_json(self, service: Service, path: str, parameters: Mapping[str, str] | None = None) -> JsonValue:
        """The JSON that a service answers; None when it has no such thing (`Service.absent`).

        Args:
            service: whom to ask.
            path: below the service's address, with a slash at its beginning.
            parameters: of the request.

        Raises:
            ExpbenchError: `NETWORK`, `RATE_LIMIT`, `OVERLOADED`, `AUTHENTICATION`, `REQUEST_REJECTED`: there is no
                answer; `PROTOCOL_BROKEN`: it is not JSON.
        """
        wanted = dict(parameters or {})
        kept = self._kept(service, path, wanted)
        if kept is not None:
            return kept.body
        status, data = self._request(service, service.url + path, wanted)
        body: JsonValue = None
        if status not in service.absent:
            try:
                body = json.loads(data)
            except ValueError as error:
                raise _failed(
                    FailureKind.PROTOCOL_BROKEN, service, path, f"the answer is not JSON ({error})", "Try again later"
                ) from error
        answer = _Answer(
            service=service.name, path=path, parameters=wanted, status=status,
            at=self._now().isoformat(timespec="seconds"), body=body,
        )  # fmt: skip
        write_text(self._place(service, path, wanted), answer.model_dump_json(indent=1) + "\n")
        return body

    def get_file(self, service: Service, url: str) -> bytes | None:
        """The bytes at an address; None when there is nothing. Not kept: its caller stores it.

        Raises:
            ExpbenchError: as `get_json`.
        """
        status, data = self._request(service, url, {})
        return data if status not in service.absent else None

    # --- cache

    def _place(self, service: Service, path: str, parameters: Mapping[str, str]) -> Path:
        key = digest_of([service.url, path, dict(parameters)])
        return self.cache / service.name / key[:2] / f"{key}.json"

    def _kept(self, service: Service, path: str, parameters: dict[str, str]) -> _Answer | None:
        place = self._place(service, path, parameters)
        if not place.is_file():
            return None
        try:
            answer = _Answer.model_validate_json(place.read_bytes())
            at = datetime.fromisoformat(answer.at)
        except (ValidationError, ValueError, OSError):
            return None  # damaged, or of another version: it is asked for again
        fresh = self.max_age is None or self.offline or self._now() - at <= self.max_age
        return answer if fresh else None

    # --- network

    def _request(self, service: Service, url: str, parameters: Mapping[str, str]) -> tuple[int, bytes]:
        """(status, body) of 200 and of what is absent; anything else is an error, after its retries.

        Raises:
            ExpbenchError: see `get_json`.
        """
        where = url.removeprefix(service.url)
        if self.offline:
            raise _failed(FailureKind.NETWORK, service, where, "offline by choice, and it was not looked up before",
                          "Run without --offline")  # fmt: skip
        for attempt in range(_ATTEMPTS):
            self._wait_for_turn(service)
            status, data, pause, why = self._once(service, url, parameters)
            if status == 200 or status in service.absent:
                return status, data
            if status not in _AGAIN and status != 0 and pause is None:
                break
            wait = pause if pause is not None else _WAIT_S[min(attempt, len(_WAIT_S) - 1)]
            if attempt == _ATTEMPTS - 1 or wait > _LONGEST_WAIT_S:
                break
            self._sleep(wait)
        kind, step = _kind(status, service, limited=pause is not None)
        raise _failed(kind, service, where, why, step)

    def _once(self, service: Service, url: str, parameters: Mapping[str, str]) -> tuple[int, bytes, float | None, str]:
        """One request: (status, body, pause that was asked for, what to say of it); status 0: nothing came back."""
        import httpx2

        if self._client is None:
            agent = {"User-Agent": f"expbench/{version()}"}
            self._client = httpx2.Client(timeout=_TIMEOUT_S, follow_redirects=True, headers=agent)
        self.asked[service.name] = self.asked.get(service.name, 0) + 1
        try:
            with self._client.stream(
                "GET", url, params={**parameters, **service.parameters}, headers=dict(service.headers)
            ) as answer:
                data = bytearray()
                for piece in answer.iter_bytes():
                    data += piece
                    if len(data) > _MOST_BYTES:
                        return 413, b"", None, f"the answer is larger than {_MOST_BYTES >> 20} MB"
                said = "" if answer.status_code == 200 else _said(bytes(data))
                pause = _pause(answer.headers, answer.status_code, said, self._now())
                why = f"it answered {answer.status_code}" + (f" ({said})" if said else "")
                return answer.status_code, bytes(data), pause, why
        except (httpx2.TimeoutException, TimeoutError):
            return 0, b"", None, f"no answer within {_TIMEOUT_S:.0f} s"
        except (httpx2.HTTPError, httpx2.StreamError, httpx2.InvalidURL, OSError) as error:
            return 0, b"", None, f"it cannot be reached ({type(error).__name__})"

    def _wait_for_turn(self, service: Service) -> None:
        before = self._last.get(service.name)
        if before is not None and (rest := service.interval_s - (self._clock() - before)) > 0:
            self._sleep(rest)
        self._last[service.name] = self._clock()


def _said(body: bytes) -> str:
    """The message of a refusal, shortened: `message` (GitHub, OpenAlex, OpenReview) or `error` (Semantic Scholar)."""
    try:
        value = json.loads(body[:_MOST_OF_REFUSAL])
    except ValueError:
        return ""
    texts = [value.get(name) for name in ("name", "message", "error")] if isinstance(value, dict) else []
    return shorten(": ".join(" ".join(text.split()) for text in texts if isinstance(text, str)), 200)


def _pause(headers: Mapping[str, str], status: int, said: str, now: datetime) -> float | None:
    """Seconds that the service asks to wait.

    `Retry-After`, or the reset of an exhausted limit (GitHub and others); a minute where only the message speaks of a
    limit: GitHub's secondary limit, and OpenAlex's 403 to those who ask too fast.
    """
    if status not in {403, 429, 503}:
        return None
    after = headers.get("retry-after")
    if after:
        if after.strip().isdigit():
            return float(after)
        try:
            return max(0.0, (email.utils.parsedate_to_datetime(after) - now).total_seconds())
        except (TypeError, ValueError):
            return None
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdigit():
        return max(0.0, float(reset) - now.timestamp())
    return _UNNAMED_WAIT_S if status == 403 and _LIMITED.search(said) else None


def _kind(status: int, service: Service, *, limited: bool) -> tuple[FailureKind, str]:
    key = f" in {service.variable}" if service.variable else ""
    if status == 429 or (status == 403 and limited):
        return FailureKind.RATE_LIMIT, f"Wait, or give a key{key}: its limits are higher"
    if status in {401, 403}:
        return FailureKind.AUTHENTICATION, f"Give a valid key or token{key}, or work from exports with --offline"
    if status == 0:
        return FailureKind.NETWORK, "Check the network, or work from exports with --offline"
    if status >= 500:
        return FailureKind.OVERLOADED, "Try again later: what was looked up is kept"
    return FailureKind.REQUEST_REJECTED, "Report this: the service's interface may have changed"


def _failed(kind: FailureKind, service: Service, where: str, cause: str, step: str) -> ExpbenchError:
    return ExpbenchError(
        kind, f"{service.name} {where}", cause, consequence="What it knows stays unknown", next_step=step
    )
