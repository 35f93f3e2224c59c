"""The whole way in containers: data phase, offline run, second data phase, refusals; by the libraries that do it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from hashlib import md5, sha256
from pathlib import Path

import pytest

from pipeline.data.phase import DataPhase, with_data
from pipeline.data.records import DataRecord
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.progress import SilentReporter
from pipeline.sandbox import BuildSpec, Command, Image, Limits, RunResult, RunSpec, open_sandbox
from tests.pipeline.data.data_host import DataHost, Page, serve_data_host

pytestmark = pytest.mark.docker

PACKAGES = (
    "certifi==2026.10.18", "charset-normalizer==3.5.2", "cloudpickle==3.1.2", "filelock==4.2.11", "fsspec==2026.9.0", "huggingface-hub==0.36.2",
    "idna==3.20", "joblib==1.6.0", "numpy==2.2.6", "packaging==26.3", "pyyaml==6.0.3", "requests==2.34.2",
    "scikit-learn==1.5.2", "scipy==1.17.1", "threadpoolctl==3.8.0", "tqdm==4.70.1", "typing-extensions==4.16.0",
    "urllib3==2.8.0",
)  # fmt: skip
NAMES = ("api.openml.org", "www.openml.org", "download.pytorch.org", "huggingface.co", "cdn-lfs.hf.co")
LIMITS = Limits(wall_s=240, cpus=2, memory_mb=1024, pids=64, disk_mb=256, output_mb=1)
ARFF = b"@RELATION tiny\n@ATTRIBUTE a REAL\n@ATTRIBUTE class {x,y}\n@DATA\n1.5,x\n2.5,y\n4.0,y\n"
WEIGHTS = bytes(range(256)) * 20000
COMMIT = "c" * 40
SCRIPT = """
import hashlib, json, subprocess, urllib.request
from pathlib import Path
from huggingface_hub import hf_hub_download
from sklearn.datasets import fetch_openml

data = fetch_openml("tiny", version=1, as_frame=False, parser="liac-arff")
print("openml", data.data.sum(), list(data.target))
urllib.request.urlretrieve("http://download.pytorch.org/models/net.pth", "net.pth")
print("torch", hashlib.sha256(Path("net.pth").read_bytes()).hexdigest()[:8])
print("hub", json.loads(Path(hf_hub_download("lab/tiny", "config.json")).read_text())["layers"])
print("lfs", Path(hf_hub_download("lab/tiny", "model.bin")).stat().st_size)
print("wget", subprocess.run(["python", "-c", "print('children are waited for')"], capture_output=True).stdout)
"""


def publish(host: DataHost) -> None:
    """A data set of OpenML, weights of torch's hub, a repository of Hugging Face with a small and a large file."""
    url = "https://api.openml.org/data/v1/download/7"
    description = {
        "id": "7", "name": "tiny", "description": "three rows", "version": "1", "format": "ARFF", "status": "active", "file_id": "7", "url": url,
        "default_target_attribute": "class", "licence": "CC BY 4.0", "md5_checksum": md5(ARFF).hexdigest(),
    }  # fmt: skip
    features = [
        {"index": "0", "name": "a", "data_type": "numeric", "is_target": "false", "is_ignore": "false",
         "is_row_identifier": "false", "number_of_missing_values": "0"},
        {"index": "1", "name": "class", "data_type": "nominal", "nominal_value": ["x", "y"], "is_target": "true",
         "is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"},
    ]  # fmt: skip
    listed = {"data": {"dataset": [{"did": 7, "name": "tiny", "version": 1, "status": "active"}]}}
    api = "api.openml.org/api/v1/json/data"
    for path, value in {
        f"{api}/list/data_name/tiny/limit/2/data_version/1": listed,
        f"{api}/7": {"data_set_description": description},
        f"{api}/features/7": {"data_features": {"feature": features}},
        f"{api}/qualities/7": {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "3.0"}]}},
    }.items():
        host.pages[path] = Page(json.dumps(value).encode(), "application/json")
    host.pages["api.openml.org/data/v1/download/7"] = Page(ARFF, "text/plain")
    host.pages["download.pytorch.org/models/net.pth"] = Page(WEIGHTS)
    small, large = b'{"layers": 3}', b"\x01" * 3_000_000
    resolve = "huggingface.co/lab/tiny/resolve/main"
    host.pages[f"{resolve}/config.json"] = Page(
        small, "application/json", ETag=f'"{"a" * 40}"', X_Repo_Commit=COMMIT, Accept_Ranges="bytes"
    )
    host.pages[f"{resolve}/model.bin"] = Page(
        status=302, Location="https://cdn-lfs.hf.co/lab/model.bin?Expires=1&Signature=abc", X_Repo_Commit=COMMIT,
        X_Linked_Etag=f'"{sha256(large).hexdigest()}"', X_Linked_Size=str(len(large)),
    )  # fmt: skip
    host.pages["cdn-lfs.hf.co/lab/model.bin?Expires=1&Signature=abc"] = Page(large)


@pytest.fixture(scope="module")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    log = tmp_path_factory.mktemp("build") / "build.log"
    spec = BuildSpec(packages=PACKAGES)
    return open_sandbox("docker").build(spec, log=log, owner="tests", reporter=SilentReporter())


@pytest.fixture
def host() -> Iterator[DataHost]:
    with serve_data_host(*NAMES) as served:
        publish(served)
        yield served


class Bench:
    """A tree with one script, its data phase and its runs."""

    def __init__(self, root: Path, image: Image, host: DataHost) -> None:
        self.root, self._image, self._host = root, image, host
        self._sandbox = open_sandbox("docker")
        (root / "tree").mkdir()
        self.spec = RunSpec(commands=(Command(argv=("python", "go.py")),), limits=LIMITS, env={"HF_HUB_OFFLINE": "1"})

    def write(self, script: str) -> None:
        (self.root / "tree" / "go.py").write_text(script)

    def fetch(self, name: str, **options: object) -> tuple[DataRecord, str]:
        phase = DataPhase(self.root / "cache", upstream=self._host.upstream, **options)  # type: ignore[arg-type]
        out = self.root / name
        record = phase.fetch(
            self.spec, self._image, self.root / "tree", sandbox=self._sandbox, out=out, owner="tests-data"
        )
        return record, self._said(out)

    def run(self, name: str, spec: RunSpec) -> tuple[RunResult, str]:
        out = self.root / name
        result = self._sandbox.run(self._image, self.root / "tree", spec, out=out, owner="tests-data")
        return result, self._said(out)

    @staticmethod
    def _said(out: Path) -> str:
        return (out / "0.stdout").read_text() + (out / "0.stderr").read_text()


@pytest.fixture
def bench(tmp_path: Path, image: Image, host: DataHost) -> Bench:
    return Bench(tmp_path, image, host)


def test_data_phase_offline_run_and_second_phase(bench: Bench, host: DataHost) -> None:
    bench.write(SCRIPT)
    record, said = bench.fetch("data")
    assert record.result.failure is None, said
    assert "openml 8.0 ['x', 'y', 'y']" in said
    files = {file.url: file for file in record.files}
    weights = files["http://download.pytorch.org/models/net.pth"]
    assert (weights.size, weights.sha256) == (len(WEIGHTS), sha256(WEIGHTS).hexdigest())
    assert weights.licence == "unknown: recipe only"
    assert files["https://api.openml.org/data/v1/download/7"].licence == "CC BY 4.0"
    assert record.refused == ()
    assert json.loads((bench.root / "data" / "data.json").read_text())["digest"] == record.digest
    asked = len(host.asked)

    blocked, _ = bench.run("blocked", bench.spec)
    assert blocked.failure is FailureKind.RUN_FAILED  # without its data it cannot
    assert with_data(bench.spec, record).commands == bench.spec.commands
    result, offline = bench.run("offline", with_data(bench.spec, record))
    assert result.failure is None, offline
    assert [line for line in offline.splitlines() if line.startswith(("openml", "torch", "hub", "lfs", "wget"))] == [
        line for line in said.splitlines() if line.startswith(("openml", "torch", "hub", "lfs", "wget"))
    ]
    assert [item.path for item in result.produced] == ["net.pth"]

    again, _ = bench.fetch("again")
    assert (again.result.failure, again.fetched_bytes, again.digest) == (None, 0, record.digest)
    assert {asked.outcome for asked in again.requests} == {"cached"}
    assert len(host.asked) == asked


HOSTILE = """
import os, socket, subprocess, urllib.request

def attempt(name, do):
    try:
        print(name, "->", do())
    except OSError as error:
        print(name, "-> refused:", error)

get = lambda url: urllib.request.urlopen(url, timeout=20).read()[:40]
post = lambda url: urllib.request.urlopen(urllib.request.Request(url, data=b"secret"), timeout=20).read()
attempt("other", lambda: get("https://evil.example.com/x"))
attempt("redirect", lambda: get("https://api.openml.org/redirect"))
attempt("metadata", lambda: socket.create_connection(("169.254.169.254", 80), 3))
attempt("host", lambda: socket.create_connection(("172.17.0.1", 22), 3))
attempt("address", lambda: socket.create_connection(("1.1.1.1", 443), 3))
attempt("endless", lambda: get("http://download.pytorch.org/endless"))
attempt("post", lambda: post("https://api.openml.org/upload"))
attempt("query", lambda: get("https://api.openml.org/?" + "s" * 5000))
attempt("mount", lambda: open("/expbench-data/index.json", "a"))
attempt("blob", lambda: open("/expbench-data/blobs/x", "w"))
attempt("allowed", lambda: get("https://api.openml.org/data/v1/download/7"))
print("environment", sorted(name for name in os.environ if "PROXY" in name.upper()))
"""


def test_a_hostile_program_gets_nothing_out(bench: Bench, host: DataHost) -> None:
    host.pages["api.openml.org/redirect"] = Page(status=302, Location="http://169.254.169.254/latest/meta-data/")
    host.pages["download.pytorch.org/endless"] = Page(endless=True, length=False)
    bench.write(HOSTILE)
    record, said = bench.fetch("data", limit_bytes=2 << 20)
    lines = dict(line.split(" -> ", 1) for line in said.splitlines() if " -> " in line)
    assert {name for name, text in lines.items() if not text.startswith("refused")} == {"allowed"}, said
    assert not any("secret" in str(asked) or "sss" in str(asked) for asked in host.asked)
    refused = {asked.url for asked in record.refused}
    assert {"evil.example.com", "http://download.pytorch.org/endless", "https://api.openml.org/upload"} <= refused
    assert any("redirects to http://169.254.169.254/" in problem.message for problem in record.problems)
    result, offline = bench.run("offline", with_data(bench.spec, record))
    lines = dict(line.split(" -> ", 1) for line in offline.splitlines() if " -> " in line)
    assert result.failure is None
    assert {name for name, text in lines.items() if not text.startswith("refused")} == {"allowed"}, offline
    assert "Not recorded by the data phase" in lines["query"]


def test_offline_is_refused_with_the_next_step(bench: Bench, host: DataHost) -> None:
    bench.write(SCRIPT)
    with pytest.raises(ExpbenchError, match="--data fetch") as caught:
        bench.fetch("data", mode="offline")
    assert caught.value.kind is FailureKind.DATA_UNAVAILABLE
    assert host.asked == []
