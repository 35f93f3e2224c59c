"""An A2A agent as an HTTP server: its card, JSON-RPC on `/`, and the older protocol 0.3 for clients that speak it.

An agent listens on this machine unless it is told otherwise, and asks for a bearer token where it has one (`access`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from evaluation.a2a.access import BearerGate, declare_bearer
from evaluation.harness.serving import ServingThread, until_started
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.version import version

if TYPE_CHECKING:
    import socket

    import uvicorn
    from a2a.server.agent_execution import AgentExecutor
    from a2a.types import AgentCard
    from starlette.types import ASGIApp

__all__ = ["address", "agent_card", "running", "serve"]

_CLOSE_S: Final = 60.0
_STOP_S: Final = 5


def agent_card(name: str, description: str, skill: str, tags: tuple[str, ...], url: str) -> AgentCard:
    """The card of one of our agents.

    Args:
        name: of the agent.
        description: what it is.
        skill: what it does, in words.
        tags: of the skill.
        url: where it listens.
    """
    from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill
    from a2a.utils.constants import PROTOCOL_VERSION_0_3, PROTOCOL_VERSION_1_0, TransportProtocol

    binding = TransportProtocol.JSONRPC.value
    return AgentCard(
        name=name,
        description=description,
        version=version(),
        supported_interfaces=[
            AgentInterface(url=url, protocol_binding=binding, protocol_version=PROTOCOL_VERSION_1_0),
            AgentInterface(url=url, protocol_binding=binding, protocol_version=PROTOCOL_VERSION_0_3),
        ],
        capabilities=AgentCapabilities(streaming=False, push_notifications=False),
        default_input_modes=["text/plain", "application/json", "application/gzip"],
        default_output_modes=["text/plain", "application/json", "application/gzip"],
        skills=[AgentSkill(id=tags[0], name=name, description=skill, tags=list(tags))],
    )


def address(listener: socket.socket, host: str) -> str:
    """URL of a listening socket."""
    return f"http://{host}:{listener.getsockname()[1]}/"


def serve(executor: AgentExecutor, card: AgentCard, listener: socket.socket, token: str | None = None) -> None:
    """Answer until the process is told to end (Ctrl-C, SIGTERM); with a token, whoever sends it."""
    server = _server(executor, card, token)

    async def go() -> None:
        await server.serve(sockets=[listener])
        _end_work(executor)  # the loop waits for its threads when it closes

    asyncio.run(go())


@contextmanager
def running(
    executor: AgentExecutor, card: AgentCard, listener: socket.socket, token: str | None = None
) -> Iterator[str]:
    """The agent in a thread of this process, as long as the block lasts.

    Yields:
        Its URL.

    Raises:
        ExpbenchError: `INTERNAL`: it did not start.
    """
    server = _server(executor, card, token)

    async def go(ready: Callable[[], None], closing: asyncio.Event) -> None:
        serving = await until_started(server, [listener])
        ready()
        await closing.wait()
        server.should_exit = True
        await serving

    thread = ServingThread(go, name=f"a2a-{card.name}")
    try:
        if problem := thread.start():
            raise ExpbenchError(
                FailureKind.INTERNAL, f"agent {card.name}", f"did not start: {problem}",
                consequence="Nothing was run", next_step="Report this with the command that was used",
            )  # fmt: skip
        yield card.supported_interfaces[0].url
    finally:
        _end_work(executor)
        thread.stop(_CLOSE_S)
        listener.close()


def _end_work(executor: AgentExecutor) -> None:
    """Give up what one of our executors has under way; a stranger's ends as it can."""
    from evaluation.a2a.executor import WorkExecutor

    if isinstance(executor, WorkExecutor):
        executor.stop_all("the agent was ended")


def _server(executor: AgentExecutor, card: AgentCard, token: str | None) -> uvicorn.Server:
    import uvicorn
    from a2a.server.request_handlers import DefaultRequestHandler
    from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
    from a2a.server.tasks import InMemoryTaskStore
    from a2a.utils.constants import AGENT_CARD_WELL_KNOWN_PATH
    from starlette.applications import Starlette

    if token is not None:
        declare_bearer(card)
    handler = DefaultRequestHandler(agent_executor=executor, task_store=InMemoryTaskStore(), agent_card=card)
    routes = [*create_agent_card_routes(card), *create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True)]
    served: ASGIApp = Starlette(routes=routes)
    if token is not None:
        served = BearerGate(served, token, AGENT_CARD_WELL_KNOWN_PATH)
    config = uvicorn.Config(
        served, log_level="warning", access_log=False, timeout_graceful_shutdown=_STOP_S,
        lifespan="off",
    )  # fmt: skip
    return uvicorn.Server(config)
