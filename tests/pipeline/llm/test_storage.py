"""A full disk and missing permissions under ledger and cache: typed errors, no call that is not on record."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CallLedger, ExchangeStore, Request, user
from pipeline.llm.budget import Budget
from tests.doubles.protocol_server import turns
from tests.llm_fixtures import Serve
from tests.pipeline.llm.test_client import Make

ASK = Request(messages=(user("question"),))


def refuse(monkeypatch: pytest.MonkeyPatch, function: str, number: int, times: int | None = None) -> None:
    """Let a function of `os` fail with an error number (root may write everywhere: no permission would stop it)."""
    real, left = getattr(os, function), [times]

    def failing(*arguments, **options):
        if left[0] == 0:
            return real(*arguments, **options)
        left[0] = None if left[0] is None else left[0] - 1
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, function, failing)


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (errno.ENOSPC, FailureKind.DISK_FULL),
        (errno.EDQUOT, FailureKind.DISK_FULL),
        (errno.EACCES, FailureKind.RECORD_INVALID),
        (errno.EROFS, FailureKind.RECORD_INVALID),
    ],
)
def test_without_a_line_before_it_no_call_is_made(
    protocol_server: Serve, make_client: Make, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, number, kind
):
    server = protocol_server(turns.text("answer"))
    budget = Budget()
    client = make_client(server, budget=budget)
    monkeypatch.setattr("pipeline.llm.ledger._write_all", failing(number))
    with pytest.raises(ExpbenchError) as caught:
        client.chat(ASK)
    assert caught.value.kind is kind
    assert str(tmp_path / "calls.jsonl") in str(caught.value)
    assert "The call was not made" in str(caught.value)
    assert server.requests == []
    assert (budget.reserved.calls, budget.spent.calls) == (0, 0)


def failing(number: int, after: int = 0):
    calls = []

    def write(descriptor: int, data: bytes) -> None:
        calls.append(data)
        if len(calls) > after:
            raise OSError(number, os.strerror(number))
        os.write(descriptor, data)

    return write


def test_a_disk_that_fills_up_during_the_call_leaves_its_worst_case_on_record(
    protocol_server: Serve, make_client: Make, ledger: CallLedger, monkeypatch: pytest.MonkeyPatch
):
    server = protocol_server(turns.text("answer"))
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.llm.ledger._write_all", failing(errno.ENOSPC, after=1))
        with pytest.raises(ExpbenchError) as caught:
            make_client(server).chat(ASK)
    assert caught.value.kind is FailureKind.DISK_FULL
    (record,) = ledger.records()
    assert record.outcome == "unknown_outcome"
    assert ledger.spent().tokens == record.bound_tokens > 0


def test_a_cache_on_a_full_disk(protocol_server: Serve, make_client: Make, monkeypatch, tmp_path: Path):
    server = protocol_server(turns.text("answer"))
    client = make_client(server, store=ExchangeStore(tmp_path / "cache"))
    refuse(monkeypatch, "fsync", errno.ENOSPC)
    with pytest.raises(ExpbenchError) as caught:
        client.chat(ASK)
    assert caught.value.kind is FailureKind.DISK_FULL
    assert "the cache of model calls" in caught.value.cause


def test_a_file_where_the_cache_should_be(protocol_server: Serve, make_client: Make, tmp_path: Path):
    (tmp_path / "cache").write_text("not a directory")
    server = protocol_server(turns.text("answer"))
    with pytest.raises(ExpbenchError) as caught:
        make_client(server, store=ExchangeStore(tmp_path / "cache")).chat(ASK)
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert server.requests == []


def test_a_directory_where_the_ledger_should_be(tmp_path: Path):
    (tmp_path / "calls.jsonl").mkdir()
    with pytest.raises(ExpbenchError) as caught:
        CallLedger(tmp_path / "calls.jsonl").records()
    assert caught.value.kind is FailureKind.RECORD_INVALID
    assert "The calls so far are not known" in str(caught.value)
