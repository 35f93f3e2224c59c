"""Asking an A2A agent for a task, and polling it until it ends (PRBench B.2, step 5).

The agent's card says which version of the protocol it speaks. One failed poll is not the end of a run of hours: polls
are tried again until they have failed for longer than a pause that a restarted proxy explains.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from evaluation.a2a.access import GREEN_TOKEN, WHITE_TOKEN, BearerAuth
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox.base import StopHandle

if TYPE_CHECKING:
    import httpx
    from a2a.client import Client
    from a2a.types import AgentCard, Message, Task

__all__ = ["Either", "Stop", "ask", "card_of", "ended", "state_name"]

_REQUEST_S: Final = 300.0
"""Of one request; a submission of 50 MB takes seconds on a local network."""
_CARD_S: Final = 30.0
_GIVE_UP_S: Final = 120.0
"""Of polls that fail without a break."""
_STOP_LOOK_S: Final = 0.5


class Stop(Protocol):
    """What of a `StopHandle` is looked at."""

    @property
    def reason(self) -> str:
        """Why it is to end; empty as long as it is not."""

    @property
    def aborted(self) -> bool:
        """Is what was made of no use any more?"""


class Either:
    """Several handles, any of which ends the work."""

    def __init__(self, *handles: StopHandle | None) -> None:
        self._handles = [handle for handle in handles if handle is not None]

    @property
    def reason(self) -> str:
        """The first reason."""
        return next((handle.reason for handle in self._handles if handle.reason), "")

    @property
    def aborted(self) -> bool:
        """Was any aborted?"""
        return any(handle.aborted for handle in self._handles)


def card_of(url: str, token: str | None = None) -> AgentCard:
    """The card of an agent; `token` is sent with the request, to this address alone.

    Raises:
        ExpbenchError: `NETWORK`: nobody answers there, or it is no A2A agent.
    """
    from a2a.client import A2ACardResolver

    async def get() -> AgentCard:
        async with _http(url, token, _CARD_S) as http:
            return await A2ACardResolver(http, url.rstrip("/")).get_agent_card()

    try:
        return asyncio.run(get())
    except _failures() as error:
        raise _unreachable(url, error) from error


def ask(
    url: str, message: Message, *, poll_s: float, most_s: float, stop: Stop | None = None, token: str | None = None,
    told: Callable[[str], object] = lambda text: None,
) -> Task:  # fmt: skip
    """Send a message and wait for its task to end.

    Args:
        url: base URL of the agent.
        message: what is asked.
        poll_s: seconds between two looks.
        most_s: seconds after which the task is cancelled.
        stop: to give up; the task is cancelled.
        token: bearer token, sent to this address alone.
        told: receives each new status in words.

    Returns:
        The task: ended, or as it was when the time was over (`ended` tells).

    Raises:
        ExpbenchError: `NETWORK`: the agent cannot be reached; `AUTHENTICATION`: it wants another token, or one at
            all; `PROTOCOL_BROKEN`: it answers with something that is no
            task; `INTERRUPTED`: `stop` was aborted.
    """
    return asyncio.run(_ask(url, message, poll_s, most_s, stop, token, told))


def ended(task: Task) -> bool:
    """Did the task come to an end?"""
    from a2a.types import TaskState

    return task.status.state in {
        TaskState.TASK_STATE_COMPLETED, TaskState.TASK_STATE_FAILED, TaskState.TASK_STATE_CANCELED,
        TaskState.TASK_STATE_REJECTED, TaskState.TASK_STATE_INPUT_REQUIRED, TaskState.TASK_STATE_AUTH_REQUIRED,
    }  # fmt: skip


def state_name(task: Task) -> str:
    """The state in a word: `completed`, `failed`, ..."""
    from a2a.types import TaskState

    return str(TaskState.Name(task.status.state)).removeprefix("TASK_STATE_").lower()


def _http(url: str, token: str | None, seconds: float) -> httpx.AsyncClient:
    import httpx

    from evaluation.a2a.bounded import BoundedTransport

    return httpx.AsyncClient(timeout=seconds, auth=BearerAuth(url, token), transport=BoundedTransport(seconds))


def _failures() -> tuple[type[Exception], ...]:
    """What talking to an agent raises: the protocol's and the network's errors, and answers that are no messages."""
    import httpx
    from a2a.utils.errors import A2AError
    from google.protobuf.json_format import ParseError  # type: ignore[import-untyped]

    return (A2AError, httpx.HTTPError, ParseError, ValueError)


async def _ask(
    url: str, message: Message, poll_s: float, most_s: float, stop: Stop | None, token: str | None,
    told: Callable[[str], object],
) -> Task:  # fmt: skip
    from a2a.client import A2ACardResolver, ClientConfig, ClientFactory
    from a2a.types import SendMessageRequest

    async with _http(url, token, _REQUEST_S) as http:
        try:
            card = await A2ACardResolver(http, url.rstrip("/")).get_agent_card()
            client = ClientFactory(ClientConfig(streaming=False, polling=True, httpx_client=http)).create(card)
            task: Task | None = None
            async for response in client.send_message(SendMessageRequest(message=message)):
                if response.HasField("task"):
                    task = response.task
        except _failures() as error:
            raise _unreachable(url, error) from error
        if task is None:
            raise ExpbenchError(
                FailureKind.PROTOCOL_BROKEN, url, "answers with a message, not with a task that can be polled",
                consequence="Nothing is known of its work",
                next_step="The agent has to open an A2A task and hand in artifacts (docs/table.md)",
            )  # fmt: skip
        return await _polled(client, task, url, poll_s, most_s, stop, told)


async def _polled(
    client: Client, task: Task, url: str, poll_s: float, most_s: float, stop: Stop | None,
    told: Callable[[str], object],
) -> Task:  # fmt: skip
    from a2a.types import GetTaskRequest

    failures = _failures()
    began = good = time.monotonic()
    said = ""
    while not ended(task):
        text = f"{state_name(task)}: {_words(task)}"
        if text != said:
            told(text)
            said = text
        over = time.monotonic() - began > most_s
        if over or (stop is not None and stop.reason):
            task = await _cancelled(client, task)
            if stop is not None and stop.aborted:
                raise ExpbenchError(
                    FailureKind.INTERRUPTED, url, stop.reason, consequence="Its task was cancelled",
                    next_step="Run the same command with --resume to go on",
                )  # fmt: skip
            return task
        await _wait(poll_s, stop)
        try:
            task = await client.get_task(GetTaskRequest(id=task.id))
            good = time.monotonic()
        except failures as error:
            if time.monotonic() - good > _GIVE_UP_S:
                raise _unreachable(url, error, f"no poll was answered for {_GIVE_UP_S:.0f} s: ") from error
    told(f"{state_name(task)}: {_words(task)}")
    return task


async def _wait(seconds: float, stop: Stop | None) -> None:
    """Sleep, looking at the handle now and then."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and not (stop is not None and stop.reason):
        await asyncio.sleep(min(left, _STOP_LOOK_S))


async def _cancelled(client: Client, task: Task) -> Task:
    """The task after it was cancelled; as it was, where the agent refuses."""
    from a2a.types import CancelTaskRequest

    try:
        return await client.cancel_task(CancelTaskRequest(id=task.id))
    except _failures():
        return task


def _words(task: Task) -> str:
    return " ".join(part.text for part in task.status.message.parts if part.text)[:300]


def _unreachable(url: str, error: Exception, when: str = "") -> ExpbenchError:
    words = f"{when}{error}" if str(error) else f"{when}{type(error).__name__}"
    if "401" in words and "HTTP" in words.upper():
        return ExpbenchError(
            FailureKind.AUTHENTICATION, url, f"the agent there wants a bearer token that it was not sent: {words}",
            consequence="Nothing was asked of it",
            next_step=f"Set {WHITE_TOKEN} (for a white agent) or {GREEN_TOKEN} (for a green one) to its token",
        )  # fmt: skip
    return ExpbenchError(
        FailureKind.NETWORK, url, f"the agent there cannot be talked to: {words}",
        consequence="Nothing is known of its work", next_step="Check that it runs and that the URL is that of its card",
    )  # fmt: skip
