"""The ledger: sums equal the sum of parts, unknown stays unknown, and a crash costs one line at most."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.llm import CallLedger, CallRecord, Totals, Usage

usages = st.none() | st.builds(Usage, input_tokens=st.integers(0, 10**6), output_tokens=st.integers(0, 10**6))
money = st.none() | st.decimals("0", "100", places=9)
records = st.builds(
    CallRecord,
    call=st.just("c"),
    attempt=st.integers(0, 3),
    outcome=st.sampled_from(["done", "cached", "rate_limit"]),
    provider=st.just("openai"),
    model=st.sampled_from(["a", "b"]),
    endpoint=st.just("e"),
    key=st.just("k"),
    stage=st.none() | st.sampled_from(["extract", "locate"]),
    task=st.none() | st.sampled_from(["t1", "t2"]),
    usage=usages,
    cost_usd=money,
    sent=st.booleans(),
    started_at=st.just("2026-01-01T00:00:00+00:00"),
    duration_s=st.floats(0, 1000).map(lambda x: round(x, 4)),
)


def add(parts: list[Totals]) -> Totals:
    total = Totals()
    for part in parts:
        total = total + part
    return total


@settings(max_examples=40, deadline=None)
@given(st.lists(records, max_size=12))
def test_sums_equal_the_sum_of_parts(written: list[CallRecord]):
    with tempfile.TemporaryDirectory() as folder:
        ledger = CallLedger(Path(folder) / "calls.jsonl")
        for record in written:
            ledger.append(record)
        assert ledger.records() == written
        total = ledger.totals()
        assert add([Totals.of(record) for record in written]) == total
    sent = [record for record in written if record.sent]
    assert total.calls == len(sent)
    costs = [record.cost_usd for record in sent]
    assert total.cost_usd == (None if None in costs else sum(costs, Decimal(0)))
    assert total.known_cost_usd == sum((cost for cost in costs if cost is not None), Decimal(0))
    assert total.input_tokens == sum(record.usage.input_tokens for record in sent if record.usage)


def record(call: str) -> CallRecord:
    return CallRecord(
        call=call, attempt=1, outcome="done", provider="p", model="m", endpoint="e", key="k", sent=True,
        started_at="2026-01-01T00:00:00+00:00", duration_s=1.0,
    )  # fmt: skip


def test_a_torn_line_costs_only_itself(tmp_path: Path):
    ledger = CallLedger(tmp_path / "calls.jsonl")
    ledger.append(record("first"))
    ledger.append(record("torn"))
    ledger.path.write_bytes(ledger.path.read_bytes()[:-30])
    ledger.append(record("next"))
    assert [found.call for found in ledger.records()] == ["first", "next"]


def test_threads_and_processes_lose_nothing(tmp_path: Path):
    path = tmp_path / "calls.jsonl"
    script = (
        "import sys; from pathlib import Path; from tests.pipeline.llm.test_ledger import record, CallLedger\n"
        "for i in range(20): CallLedger(Path(sys.argv[1])).append(record(f'{sys.argv[2]}-{i}'))"
    )
    processes = [subprocess.Popen([sys.executable, "-c", script, str(path), name]) for name in "ab"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda i: CallLedger(path).append(record(f"t-{i}")), range(40)))
    assert [process.wait(60) for process in processes] == [0, 0]
    calls = [found.call for found in CallLedger(path).records()]
    assert len(calls) == len(set(calls)) == 80


def test_an_empty_ledger_sums_to_nothing(tmp_path: Path):
    assert CallLedger(tmp_path / "none.jsonl").totals() == Totals()
