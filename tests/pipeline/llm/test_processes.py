"""Several processes on one cache and one ledger, and one of them killed in the middle of a call."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest

from pipeline.llm import CallLedger, ExchangeStore, ModelClient, ModelConfig, Request, user
from tests.doubles.protocol_server import Match, ProtocolServer, Script, turns
from tests.llm_fixtures import no_ambient_model  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]
QUESTIONS = 6
THREADS = 4
WORKER = f"""
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from pipeline.llm import *
root, url, name = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
ledger = CallLedger(root / "calls.jsonl")
client = ModelClient(ModelConfig(model="m", base_url=url), store=ExchangeStore(root / "cache"), ledger=ledger)
client.chat(Request(messages=(user(f"warming up {{name}}"),)))
print("ready", flush=True)
sys.stdin.readline()
def ask(number):
    return client.chat(Request(messages=(user(f"question {{number % {QUESTIONS}}}."),))).text
with ThreadPoolExecutor({THREADS}) as pool:
    print(*pool.map(ask, range({QUESTIONS * THREADS})), sep="|", flush=True)
"""


@pytest.fixture
def start(tmp_path: Path, no_ambient_model: None):  # noqa: F811
    processes: list[subprocess.Popen[str]] = []

    def make(url: str, name: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", WORKER, tmp_path, url, name]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=dict(os.environ)
        )
        processes.append(process)
        return process

    yield make
    for process in processes:
        process.kill()
        process.communicate()


def test_processes_share_answers_and_the_ledger(start, tmp_path):
    script = [turns.text(f"answer {n}", match=Match(contains=f"question {n}.")) for n in range(QUESTIONS)]
    with ProtocolServer(Script.of(*script, default=turns.text("warm"))) as server:
        workers = [start(server.base_url, name) for name in "ab"]
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        answers = [worker.communicate(timeout=60)[0] for worker in workers]
        assert answers == ["|".join(f"answer {n % QUESTIONS}" for n in range(QUESTIONS * THREADS)) + "\n"] * 2
        assert len(server.requests) == QUESTIONS + 2
        assert "default" in {r.outcome for r in server.requests}
        assert server.unused == []
    outcomes = Counter(record.outcome for record in CallLedger(tmp_path / "calls.jsonl").records())
    assert outcomes == {"done": QUESTIONS + 2, "cached": 2 * QUESTIONS * THREADS - QUESTIONS}


def test_a_killed_process_blocks_nobody(start, tmp_path):
    """Its lock goes with it; what it had asked is asked again, and its unfinished attempt is on record as such."""
    held = turns.text("never seen", match=Match(contains="warming up"), hold="for ever")
    with ProtocolServer(Script.of(held, turns.text("again"))) as server:
        worker = start(server.base_url, "a")
        while not server.requests:
            assert worker.poll() is None
            threading.Event().wait(0.01)
        worker.kill()
        worker.wait()
        ledger = CallLedger(tmp_path / "calls.jsonl")
        config = ModelConfig(model="m", base_url=server.base_url)
        with ModelClient(config, store=ExchangeStore(tmp_path / "cache"), ledger=ledger) as client:
            assert client.chat(Request(messages=(user("warming up a"),))).text == "again"
        lost, done = ledger.records()
    assert (lost.outcome, lost.sent, lost.usage, lost.cost_usd) == ("unknown_outcome", True, None, None)
    assert done.outcome == "done"
    assert lost.bound_tokens > 4096  # the longest answer, and the question
    totals = ledger.totals()
    assert (totals.calls, totals.unknown_outcome, totals.unknown_usage, totals.failed) == (2, 1, 1, 0)
    assert totals.cost_usd is None
    assert ledger.spent().tokens == lost.bound_tokens + done.usage.total
    assert ledger.spent().calls == 2
