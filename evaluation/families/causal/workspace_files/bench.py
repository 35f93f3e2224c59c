#!/usr/bin/env python3
"""Client of the experiment bench: four tools, as a command and as a Python module.

As a command (every answer is one JSON object; a refused call is {"error": ...} and exit code 1):

    ./bench experiment --a '{}' --b '{"noise": 0.6}' [--metric NAME]
    ./bench probe --guess '{"noise": 0.6}' [--metric NAME]
    ./bench claim noise up                                  (up, down or none)
    ./bench submit '{"params": ["noise"], "direction": "down"}'
    ./bench status

In Python (a refused call raises bench.BenchError):

    import bench
    bench.experiment({}, {"noise": 0.6})
    bench.submit(params=["noise"], direction="down")

The bench, its budget and the simulations are outside this container: a second client talks to the same bench and shares
the same budget.
"""

from __future__ import annotations

import json
import os
import socket
import sys
from typing import Any

SOCKET = os.environ.get("BENCH_SOCKET", "/harness/bench.sock")
TIMEOUT_S = 300


class BenchError(Exception):
    """The bench refused a call."""


def call(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """One call; the answer holds `error` when the call was refused."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(SOCKET)
        connection.sendall(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
        answer = b""
        while not answer.endswith(b"\n"):
            part = connection.recv(65536)
            if not part:
                raise BenchError("the bench closed the connection")
            answer += part
    found: dict[str, Any] = json.loads(answer)
    return found


def _checked(tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    answer = call(tool, arguments)
    if "error" in answer:
        raise BenchError(answer["error"])
    return answer


def experiment(
    config_a: dict[str, float] | None = None, config_b: dict[str, float] | None = None, metric: str | None = None
) -> dict[str, Any]:
    """A replicated comparison of two configurations, each a dict of overrides on the control."""
    return _checked("experiment", {"configA": config_a or {}, "configB": config_b or {}, "metric": metric})


def probe(guess: dict[str, float] | None = None, metric: str | None = None) -> dict[str, Any]:
    """A guessed configuration (side a) against the hidden world (side b)."""
    return _checked("probe", {"guess": guess or {}, "metric": metric})


def claim(param: str, effect: str) -> dict[str, Any]:
    """Record a belief; free."""
    return _checked("claim", {"param": param, "effect": effect})


def submit(**answer: Any) -> dict[str, Any]:
    """The final answer, which ends the episode."""
    return _checked("submit", answer)


def status() -> dict[str, Any]:
    """Calls left, and whether the episode has ended."""
    return _checked("status", {})


def _options(words: list[str], names: dict[str, str]) -> dict[str, Any]:
    """Values of `--name VALUE`: JSON, but for the metric's name."""
    found: dict[str, Any] = {}
    while words:
        name = words.pop(0)
        if name not in names or not words:
            raise ValueError("options: " + " ".join(names))
        value = words.pop(0)
        found[names[name]] = value if name == "--metric" else json.loads(value)
    return found


def _arguments(tool: str, words: list[str]) -> dict[str, Any]:
    if tool == "experiment":
        return _options(words, {"--a": "configA", "--b": "configB", "--metric": "metric"})
    if tool == "probe":
        return _options(words, {"--guess": "guess", "--metric": "metric"})
    if tool == "claim" and len(words) == 2:
        return {"param": words[0], "effect": words[1]}
    if tool == "submit" and len(words) == 1:
        answer = json.loads(words[0])
        if isinstance(answer, dict):
            return answer
    if tool == "status" and not words:
        return {}
    raise ValueError("see ./bench --help")


def main(words: list[str]) -> int:
    """The command; its exit code."""
    if not words or words[0] in {"-h", "--help", "help"}:
        sys.stdout.write((__doc__ or "").strip() + "\n")
        return 0
    try:
        answer = call(words[0], _arguments(words[0], words[1:]))
    except (ValueError, OSError, BenchError) as error:
        answer = {"error": str(error)}
    sys.stdout.write(json.dumps(answer) + "\n")
    return 1 if "error" in answer else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
