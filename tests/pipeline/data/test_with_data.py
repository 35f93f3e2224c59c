"""The offline run of a record, as a specification; and the settings of a data phase."""

from __future__ import annotations

import json
import ssl
from pathlib import Path

import pytest

from pipeline.data.phase import DataPhase, open_data_phase, with_data
from pipeline.data.records import DataFile, DataRecord
from pipeline.data.store import DataStore
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import Command, Image, RunResult, RunSpec
from pipeline.sandbox.process import ProcessSandbox
from pipeline.settings import Settings
from tests.pipeline.data.conftest import Phases
from tests.pipeline.data.data_host import DataHost, Page

SPEC = RunSpec(commands=(Command(argv=("python", "go.py")),), env={"HF_HUB_OFFLINE": "1", "A": "b"})
URL = "https://api.openml.org/x"


def made(store: DataStore, phase: Phases, host: DataHost, *urls: str) -> DataRecord:
    host.pages["api.openml.org/x"] = Page(b"data")
    one = phase()
    for url in urls:
        one.get(url)
    replies = one.recorder.replies.values()
    digest, directory = store.make_record(replies)
    files = tuple(
        DataFile(url=r.url, size=r.size, sha256=r.sha256, content_type="", fetched_at=r.fetched_at) for r in replies
    )
    return DataRecord(
        digest=digest, directory=directory, files=files, requests=(), fetched_bytes=0, result=RunResult(commands=())
    )


def test_a_record_holds_its_own_files_only_and_a_key_that_signs_nothing_else(
    store: DataStore, phase: Phases, host: DataHost
) -> None:
    host.pages["api.openml.org/other"] = Page(b"other run's")
    phase().get("https://api.openml.org/other")
    record = made(store, phase, host, URL)
    assert list(json.loads((record.directory / "index.json").read_text())) == [f"GET {URL}"]
    assert {path.stat().st_size for path in (record.directory / "blobs").iterdir()} == {0, 4}
    context = ssl.create_default_context(cafile=record.directory / "ca.pem")
    context.load_cert_chain(record.directory / "host.pem")
    again = made(store, phase, host, URL)
    assert (again.digest, again.directory) == (record.digest, record.directory)


def test_the_commands_stay_and_offline_switches_go(store: DataStore, phase: Phases, host: DataHost) -> None:
    spec = with_data(SPEC, made(store, phase, host, URL))
    assert spec.commands == SPEC.commands
    assert (spec.env["HF_HUB_OFFLINE"], spec.env["A"], spec.dns) == ("0", "b", "127.0.0.1")
    assert spec.network == SPEC.network
    nothing = made(store, phase, host)
    assert with_data(SPEC, nothing) == SPEC


@pytest.mark.parametrize("loss", ["record", "file", "content"])
def test_a_cache_that_lost_something_says_so(loss: str, store: DataStore, phase: Phases, host: DataHost) -> None:
    record = made(store, phase, host, URL)
    blob = record.directory / "blobs" / record.files[0].sha256
    if loss == "record":
        (record.directory / "index.json").unlink()
    else:
        blob.unlink()
        if loss == "content":
            blob.write_bytes(b"evil")
    with pytest.raises(ExpbenchError, match="--data fetch") as caught:
        with_data(SPEC, record)
    assert caught.value.kind is FailureKind.DATA_UNAVAILABLE
    assert with_data(SPEC, made(store, phase, host, URL)).dns  # made again from the cache, whose own copy is sound


def test_without_containers_nothing_is_fetched(tmp_path: Path) -> None:
    image = Image(reference="x", digest="x", spec_digest="x")
    sandbox = ProcessSandbox()
    by_default = open_data_phase(Settings(cache_dir=tmp_path), sandbox)
    for phase, said in ((by_default, "--data offline"), (DataPhase(tmp_path), "process sandbox")):
        with pytest.raises(ExpbenchError, match=said):
            phase.fetch(SPEC, image, tmp_path, sandbox=sandbox, out=tmp_path, owner="tests")
