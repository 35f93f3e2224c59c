"""The bench as an MCP server: the four tools, over stdio or streamable HTTP, for agents that speak the protocol.

One server is one episode: whoever connects, and however often, shares its bench and budget, and the log goes on where
it stopped when the server is started again. The brief is the server's instructions. Clients see the tools' schemas and
their answers, never the log.

Non-goal: keeping the frozen task from an agent that can read this machine's files; run such an agent in a container
(`expbench evaluate`), or serve it over HTTP from elsewhere.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Final

import anyio
import anyio.to_thread
import mcp_types as types
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from evaluation.families.causal.bench import Bench, EpisodeLog
from evaluation.families.causal.service import BenchDesk
from evaluation.families.causal.task import CausalTask
from evaluation.families.causal.tools import brief, system_prompt, tools_for
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["bench_server", "open_desk", "serve_http", "serve_stdio"]

PATH: Final = "/mcp"


def open_desk(task: CausalTask, record: Path) -> BenchDesk:
    """The desk of an episode whose log is (or will be) at `record`.

    Raises:
        ExpbenchError: `WORKSPACE_CONFLICT`: there is something else; `DISK_FULL`, it cannot be written.
    """
    try:
        log = EpisodeLog.model_validate_json(record.read_bytes())
    except FileNotFoundError:
        log = None
    except (OSError, ValueError) as error:
        raise _conflict(record, f"it is no bench log: {str(error).splitlines()[0]}") from error
    if log is not None and log.task != task.id:
        raise _conflict(record, f"it is the log of {log.task}, not of {task.id}")
    try:
        record.parent.mkdir(parents=True, exist_ok=True)
        return BenchDesk(Bench(task, log), record)
    except OSError as error:
        raise ExpbenchError(
            FailureKind.DISK_FULL, str(record), f"cannot be written: {error.strerror}",
            consequence="No episode was begun", next_step="Name another file with --log",
        ) from error  # fmt: skip


def bench_server(task: CausalTask, desk: BenchDesk) -> Server:
    """An MCP server of this bench, not yet connected."""
    offered = [
        types.Tool(name=name, description=text, input_schema=arguments.model_json_schema(by_alias=True))
        for name, (text, arguments) in tools_for(task).items()
    ]

    async def on_list_tools(
        context: ServerRequestContext, params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=offered)

    async def on_call_tool(context: ServerRequestContext, params: types.CallToolRequestParams) -> types.CallToolResult:
        answer = await anyio.to_thread.run_sync(desk.call, params.name, params.arguments or {})
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=json.dumps(answer))],
            structured_content=answer,
            is_error="error" in answer,
        )

    told = f"{system_prompt(task)}\n\n{brief(task)}"
    return Server(
        "expbench-bench", version="1", instructions=told, on_list_tools=on_list_tools, on_call_tool=on_call_tool
    )


def serve_stdio(task: CausalTask, record: Path) -> None:
    """Serve one client on standard input and output until it closes them.

    Raises:
        ExpbenchError: see `open_desk`.
    """
    server = bench_server(task, open_desk(task, record))

    async def serve() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    anyio.run(serve)


def serve_http(
    task: CausalTask, record: Path, *, host: str, port: int, ready: Callable[[str], object] = lambda url: None
) -> None:
    """Serve any number of clients over streamable HTTP until the process is told to end.

    Args:
        task: the mystery world.
        record: file of the log.
        host: address to listen on.
        port: 0 takes a free one.
        ready: told the URL once it is listened on.

    Raises:
        ExpbenchError: see `open_desk`; `USAGE`: the address cannot be listened on.
    """
    import uvicorn

    server = bench_server(task, open_desk(task, record))
    try:
        listener = socket.create_server((host, port))
    except OSError as error:
        raise ExpbenchError(
            FailureKind.USAGE, f"{host}:{port}", f"cannot be listened on: {error.strerror}",
            consequence="No episode was begun", next_step="Choose another --host or --port (0 takes a free one)",
        ) from error  # fmt: skip
    app = server.streamable_http_app(streamable_http_path=PATH, host=host)
    config = uvicorn.Config(app, log_level="warning", access_log=False, timeout_graceful_shutdown=2)
    ready(f"http://{host}:{listener.getsockname()[1]}{PATH}")
    with listener:
        uvicorn.Server(config).run(sockets=[listener])


def _conflict(record: Path, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.WORKSPACE_CONFLICT, str(record), cause, consequence="No episode was begun, and nothing was changed",
        next_step="Name another file with --log",
    )  # fmt: skip
