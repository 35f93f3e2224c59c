"""`expbench score causal`, `expbench causal-mcp`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from flows.commands.shared import Json, print_value

__all__ = ["app", "score"]

app = typer.Typer()
score = typer.Typer()


@score.command(
    epilog="Examples:\n\n  expbench score causal --task datasets/causal/core-v0/causal-l1-market-101.json "
    "--submission run/episodes/causal-l1-market-101/0 --json\n\n"
    "  expbench score causal --task tasks --submission bench.json\n\n"
    "Exit codes: 0 it was scored, an episode without an answer included (0 points); 2 usage; 5 the task or the log "
    "cannot be read, or they do not belong together."
)
def causal(
    task: Annotated[
        Path, typer.Option(help="A frozen task, or a directory that holds the one of the log.", metavar="PATH")
    ],
    submission: Annotated[
        Path,
        typer.Option(help="A bench log, an episode of `expbench solve`, or an episode's directory.", metavar="PATH"),
    ],
    json_output: Json = False,
) -> None:
    """Score a bench log: points, process audit and failure flags (petri-bench 4, 4.1, 7.3)."""
    from evaluation.families.causal.grading import grade, read_log
    from evaluation.families.causal.store import find_task

    log = read_log(submission)
    graded = grade(find_task(task, log.task), log)
    if json_output:
        print_value(graded.model_dump(mode="json") | {"metrics": graded.metrics()}, True)
        return
    print_value({"task": graded.task, **graded.metrics(), "flags": ", ".join(graded.flags)}, False)


@app.command(
    "causal-mcp",
    epilog="Examples:\n\n  expbench causal-mcp --task tasks/causal-l1-market-101.json --log bench.json\n\n"
    "  expbench causal-mcp --task TASK.json --log bench.json --transport http --port 8790 --json\n\n"
    "Afterwards: expbench score causal --task TASK.json --submission bench.json\n\n"
    "Exit codes: 0 the client has closed the connection; 2 usage; 5 the task or the log cannot be read; 130 "
    "interrupted.",
)
def causal_mcp(
    task: Annotated[Path, typer.Option(help="The frozen task.", metavar="FILE")],
    log: Annotated[
        Path, typer.Option(help="Where the bench's log is kept; an episode that was cut off goes on.", metavar="FILE")
    ],
    transport: Annotated[Literal["stdio", "http"], typer.Option(help="`http` is streamable HTTP, at /mcp.")] = "stdio",
    host: Annotated[str, typer.Option(help="Address to listen on (http).")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port to listen on (http); 0 takes a free one.")] = 8790,
    json_output: Annotated[
        bool,
        typer.Option("--json", help="http: one JSON line with task, url and log on standard output when it serves."),
    ] = False,
) -> None:
    """Serve the blind bench of one task as an MCP server with its four tools: one episode, one budget."""
    from evaluation.families.causal.mcp_server import serve_http, serve_stdio
    from evaluation.families.causal.store import find_task
    from pipeline.errors import ExpbenchError, FailureKind

    chosen = find_task(task)
    if transport == "stdio":
        if json_output:
            raise ExpbenchError(
                FailureKind.USAGE, "--json", "has no place where standard output carries the protocol (stdio)",
                consequence="Nothing is served", next_step="Use --transport http, or leave --json out",
            )  # fmt: skip
        serve_stdio(chosen, log)
        return

    def ready(url: str) -> None:
        typer.echo(f"Serving {chosen.id} at {url}", err=True)
        if json_output:
            sys.stdout.write(json.dumps({"task": chosen.id, "url": url, "log": str(log)}) + "\n")
            sys.stdout.flush()

    serve_http(chosen, log, host=host, port=port, ready=ready)
