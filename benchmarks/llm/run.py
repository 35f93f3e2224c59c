"""What the model layer costs per call, beside the bare `openai` client in the same run.

    python -m benchmarks.llm.run [--calls 200] [--rounds 5] [--callers 32]

All against the local protocol server on this machine, so that there is no model's time in the figures: what is left is
the server's own time (the same for all rows) and that of the client. Rows alternate within a round, so that a busy
moment of the machine meets all of them; the figure of a row is the median over all its calls, the spread its quartiles.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import openai
from langchain_openai import ChatOpenAI

from pipeline.llm import (
    Budget,
    BudgetLimits,
    CallLedger,
    ExchangeStore,
    ModelClient,
    ModelConfig,
    Price,
    PriceList,
    Request,
    user,
)
from tests.doubles.protocol_server import ProtocolServer, Script, turns

PRICES = PriceList(as_of="2026-01-01", models=(Price(model="m", input=Decimal(1), output=Decimal(2)),))
PARAGRAPH = "The accuracy of the proposed method exceeds that of the baseline on all three data sets. "


def question(number: int) -> str:
    """A question of the size of a page (about 4 KB), never the same twice."""
    return f"[{number}] " + PARAGRAPH * 45


class Rows:
    """The ways to ask, each a function of a running number."""

    def __init__(self, base_url: str, root: Path) -> None:
        self.bare = openai.OpenAI(base_url=base_url, api_key="benchmark", max_retries=0)
        self.langchain = ChatOpenAI(base_url=base_url, api_key="benchmark", model="m", max_retries=0)
        config = ModelConfig(model="m", base_url=base_url)
        self.plain = ModelClient(config, prices=PRICES)
        self.ledger_only = ModelClient(config, ledger=CallLedger(root / "only.jsonl"), prices=PRICES)
        self.full = ModelClient(
            config,
            store=ExchangeStore(root / "cache"),
            ledger=CallLedger(root / "calls.jsonl"),
            budget=Budget("benchmark", BudgetLimits(usd=Decimal(1_000_000))),
            prices=PRICES,
        )
        self._number = 0
        self.full.chat(self._request(0))  # question 0 is the cached one

    @staticmethod
    def _request(number: int) -> Request:
        return Request(messages=(user(question(number)),))

    def _fresh(self) -> int:
        self._number += 1
        return self._number

    def ask_bare(self) -> None:
        """The official client."""
        messages: list[Any] = [{"role": "user", "content": question(self._fresh())}]
        self.bare.chat.completions.create(model="m", messages=messages, max_tokens=4096)

    def ask_langchain(self) -> None:
        """LangChain's model."""
        self.langchain.invoke(question(self._fresh()))

    def ask_plain(self) -> None:
        """Our client without store and ledger."""
        self.plain.chat(self._request(self._fresh()))

    def ask_ledger(self) -> None:
        """Our client with the ledger alone: one line, flushed to the disk."""
        self.ledger_only.chat(self._request(self._fresh()))

    def ask_full(self) -> None:
        """Our client with store, ledger and budget; not cached."""
        self.full.chat(self._request(self._fresh()))

    def ask_cached(self) -> None:
        """Our client, answered from the store."""
        assert self.full.chat(self._request(0)).cached

    def stream_bare(self) -> None:
        """The official client, streaming."""
        messages: list[Any] = [{"role": "user", "content": question(self._fresh())}]
        for _ in self.bare.chat.completions.create(model="m", messages=messages, stream=True):
            pass

    def stream_full(self) -> None:
        """Our client with everything, streaming."""
        for _ in self.full.stream(self._request(self._fresh())):
            pass

    def close(self) -> None:
        """Close all connections."""
        self.bare.close()
        self.plain.close()
        self.ledger_only.close()
        self.full.close()


def measure(rows: dict[str, Callable[[], None]], calls: int, rounds: int) -> dict[str, list[float]]:
    """Seconds of each call, rows alternating in blocks."""
    for ask in rows.values():  # libraries, connections
        for _ in range(5):
            ask()
    seconds: dict[str, list[float]] = {name: [] for name in rows}
    for _ in range(rounds):
        for name, ask in rows.items():
            for _ in range(calls // rounds):
                begin = time.perf_counter()
                ask()
                seconds[name].append(time.perf_counter() - begin)
    return seconds


def throughput(ask: Callable[[], None], calls: int, callers: int) -> float:
    """Calls per second of `callers` threads."""
    with ThreadPoolExecutor(callers) as pool:
        begin = time.perf_counter()
        for done in [pool.submit(ask) for _ in range(calls)]:
            done.result()
        return calls / (time.perf_counter() - begin)


def flush_seconds(root: Path) -> float:
    """Median time to write 4 KB and have it on the disk, as the ledger and the store each do once per paid call."""

    def once(number: int) -> float:
        begin = time.perf_counter()
        with (root / f"flush-{number}").open("wb") as stream:
            stream.write(b"x" * 4096)
            stream.flush()
            os.fsync(stream.fileno())
        return time.perf_counter() - begin

    return statistics.median(once(number) for number in range(100))


def import_seconds(statement: str) -> float:
    """Median wall time of a fresh interpreter that imports, less that of an empty one."""

    def once(code: str) -> float:
        begin = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        return time.perf_counter() - begin

    return statistics.median(once(statement) for _ in range(5)) - statistics.median(once("pass") for _ in range(5))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--callers", type=int, default=32)
    arguments = parser.parse_args()
    os.environ["OPENAI_API_KEY"] = "benchmark"
    print(f"Python {platform.python_version()}, openai {openai.__version__}, {os.cpu_count()} cores")
    with tempfile.TemporaryDirectory() as scratch, ProtocolServer(Script(default=turns.text(PARAGRAPH * 5))) as server:
        rows = Rows(server.base_url, Path(scratch))
        table = {
            "bare openai client": rows.ask_bare,
            "langchain ChatOpenAI": rows.ask_langchain,
            "layer, no store or ledger": rows.ask_plain,
            "layer, ledger": rows.ask_ledger,
            "layer, store + ledger + budget": rows.ask_full,
            "layer, cached": rows.ask_cached,
            "bare openai client, stream": rows.stream_bare,
            "layer, stream": rows.stream_full,
        }
        seconds = measure(table, arguments.calls, arguments.rounds)
        base = statistics.median(seconds["bare openai client"])
        print(f"\n{'one caller':34} {'median':>9} {'quartiles':>17} {'to bare':>9}   (ms per call)")
        for name, values in seconds.items():
            low, middle, high = statistics.quantiles(values, n=4)
            against = statistics.median(seconds["bare openai client, stream"]) if "stream" in name else base
            print(f"{name:34} {middle * 1e3:9.2f} {low * 1e3:8.2f}-{high * 1e3:<8.2f} {(middle - against) * 1e3:+9.2f}")
        print(f"{'(one flush of 4 KB to this disk)':34} {flush_seconds(Path(scratch)) * 1e3:9.2f}")
        print(f"\n{arguments.callers} callers (calls per second)")
        for name in ("bare openai client", "layer, store + ledger + budget", "layer, cached"):
            print(f"{name:34} {throughput(table[name], arguments.calls, arguments.callers):9.0f}")
        rows.close()
    print("\nimports (s)")
    for name in ("pipeline.llm", "openai", "langchain_openai"):
        print(f"{name:34} {import_seconds(f'import {name}'):9.2f}")


if __name__ == "__main__":
    main()
