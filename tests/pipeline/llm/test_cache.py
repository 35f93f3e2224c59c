"""The store of exchanges among processes, and what it keeps."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.llm import CacheMode, CancelToken, Exchange, ExchangeStore, ModelConfig, register_secret

KEY = "ab" * 32
WORKER = """
import sys
from pathlib import Path
from pipeline.llm.cache import ExchangeStore
from pipeline.llm.cancel import CancelToken
root, counter = Path(sys.argv[1]), Path(sys.argv[1]) / "counter"
for _ in range(100):
    with ExchangeStore(root).single_flight("ab" * 32, CancelToken()):
        counter.write_text(str(int(counter.read_text()) + 1))
"""


def test_one_process_at_a_time(tmp_path: Path):
    (tmp_path / "counter").write_text("0")
    workers = [subprocess.Popen([sys.executable, "-c", WORKER, str(tmp_path)]) for _ in range(3)]
    assert [worker.wait(60) for worker in workers] == [0, 0, 0]
    assert (tmp_path / "counter").read_text() == "300"
    assert list((tmp_path / "locks").iterdir()) == []


def test_a_process_that_dies_frees_its_lock(tmp_path: Path):
    script = (
        "import os, sys; from pathlib import Path; from pipeline.llm.cache import *\n"
        "from pipeline.llm.cancel import CancelToken\n"
        f"ExchangeStore(Path(sys.argv[1])).single_flight('{KEY}', CancelToken()).__enter__(); os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False).returncode == 9
    with ExchangeStore(tmp_path).single_flight(KEY, CancelToken()):
        pass


def test_waiting_for_a_lock_can_be_cancelled(tmp_path: Path):
    store, token = ExchangeStore(tmp_path), CancelToken()
    with store.single_flight(KEY, CancelToken()):
        token.cancel()
        with pytest.raises(ExpbenchError) as caught, store.single_flight(KEY, token):
            raise AssertionError("two were let in")
    assert caught.value.kind is FailureKind.INTERRUPTED


def test_modes(tmp_path: Path):
    exchange = Exchange(key=KEY, request={"a": 1}, vector=(1.0, 2.0))
    ExchangeStore(tmp_path, CacheMode.OFF).put(exchange)
    ExchangeStore(tmp_path, CacheMode.REPLAY).put(exchange)
    assert ExchangeStore(tmp_path).get(KEY) is None
    ExchangeStore(tmp_path, CacheMode.REFRESH).put(exchange)
    assert ExchangeStore(tmp_path, CacheMode.REPLAY).get(KEY) == exchange
    for mode in (CacheMode.OFF, CacheMode.REFRESH):
        assert ExchangeStore(tmp_path, mode).get(KEY) is None
    assert ExchangeStore(None).mode is CacheMode.OFF
    assert ExchangeStore(None, CacheMode.REPLAY).mode is CacheMode.REPLAY


def test_an_entry_under_another_name_is_not_believed(tmp_path: Path):
    store = ExchangeStore(tmp_path)
    store.put(Exchange(key=KEY, request={}, vector=(1.0,)))
    other = "ab" + "cd" * 31
    store.path(KEY).rename(store.path(other))
    assert store.get(other) is None


def test_secrets_are_not_stored(tmp_path: Path):
    register_secret("PLANTED", "planted-secret-9f8e7d6c5b4a")
    store = ExchangeStore(tmp_path)
    store.put(Exchange(key=KEY, request={"planted-secret-9f8e7d6c5b4a": ["x planted-secret-9f8e7d6c5b4a"]}))
    assert "planted-secret" not in store.path(KEY).read_text()
    assert store.get(KEY).request == {"[redacted:PLANTED]": ["x [redacted:PLANTED]"]}


def test_what_endpoints_can_do_is_kept_per_model_and_endpoint(tmp_path: Path):
    store, config = ExchangeStore(tmp_path), ModelConfig(model="m", base_url="http://localhost:1/v1")
    assert store.capability(config, "schema") is None
    store.remember_capability(config, "schema", "instructed")
    assert ExchangeStore(tmp_path, CacheMode.REPLAY).capability(config, "schema") == "instructed"
    assert store.capability(config, "api") is None
    assert store.capability(config.evolve(model="n"), "schema") is None
    assert store.capability(config.evolve(base_url="http://localhost:2/v1"), "schema") is None
