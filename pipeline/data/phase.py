"""The data phase: a run that wants to download is made once with its downloads recorded, and offline afterwards.

    phase = DataPhase(cache, allow, limit_bytes=...)
    record = phase.fetch(spec, image, tree, sandbox=sandbox, out=out, owner=owner)
    sandbox.run(image, tree, with_data(spec, record), out=..., owner=owner)

The container has no network in either run. Inside, a name server leads the allowed names (afterwards: those of the
record) to an address of the container's own loopback. There the launcher hands connections to the recording proxy of
this process, or a small server answers from the record, which is mounted read-only. The program itself, its caches and
its temporary files are what they would be anywhere, and it meets the same answers each time.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final, Literal

from pipeline.data.allow import AllowList, default_allow_list
from pipeline.data.certificates import Authority
from pipeline.data.licences import stated_licences
from pipeline.data.proxy import Ask, Recorder, serve_recorder
from pipeline.data.records import UNKNOWN_LICENCE, DataFile, DataRecord, KeptData, Reply
from pipeline.data.store import DataStore, is_sound, write_launcher
from pipeline.data.upstream import Upstream
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import write_text
from pipeline.sandbox.base import Image, ReadOnlyMount, RunSpec, Sandbox, is_container
from pipeline.scratch import scratch_directory
from pipeline.settings import Settings

__all__ = ["DataPhase", "open_data_phase", "require_data", "with_data"]

DEFAULT_LIMIT: Final = 2 << 30
_INSIDE: Final = "/expbench-data"
_ADDRESS: Final = "127.0.0.80"
_PYTHON: Final = "/opt/venv/bin/python"
_SYSTEM_BUNDLE: Final = "/etc/ssl/certs/ca-certificates.crt"
_SOCKET: Final = "proxy.sock"
_OK: Final = 200
# the launcher's process and a thread a connection: 24 MB seen
_BESIDE_MB: Final = 64
_BESIDE_PIDS: Final = 32
_OFFLINE: Final = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


class DataPhase:
    """Fetches what runs download.

    Args:
        cache: directory of the content-addressed cache (`<cache>/data`).
        allow: what may be fetched; None: `hosts.yaml`.
        limit_bytes: that may come over the network, a run.
        mode: `offline` refuses to fetch.
        ask: asks a person whether a file may go over the limit; None: it may not.
        upstream: the way out.
        refresh: fetch what the cache has once more, and say what has changed.
    """

    def __init__(
        self, cache: Path, allow: AllowList | None = None, *, limit_bytes: int = DEFAULT_LIMIT,
        mode: Literal["fetch", "offline"] = "fetch", ask: Ask | None = None, upstream: Upstream | None = None,
        refresh: bool = False,
    ) -> None:  # fmt: skip
        self._store = DataStore(cache / "data")
        self._allow = allow or default_allow_list()
        self._limit, self._mode, self._ask = limit_bytes, mode, ask
        self._upstream = upstream or Upstream()
        self._refresh = refresh

    def fetch(self, spec: RunSpec, image: Image, tree: Path, *, sandbox: Sandbox, out: Path, owner: str) -> DataRecord:
        """Make the run once, with its downloads from the cache or the allowed hosts.

        Args:
            spec: of the offline run; its limits hold here, too.
            image: of its environment.
            tree: the repository.
            sandbox: Docker's.
            out: directory of this run; the record is written to `<out>/data.json`.
            owner: label of the run.

        Returns:
            The record. The run may have failed, or been refused something: see `result` and `refused`.

        Raises:
            ExpbenchError: `DATA_UNAVAILABLE` when nothing may be fetched; `SANDBOX_UNAVAILABLE` when the sandbox is no
                container; and what `Sandbox.run` raises.
        """
        self._require(spec, sandbox)
        recorder = Recorder(
            self._store, self._allow, self._upstream, limit_bytes=self._limit, ask=self._ask, refresh=self._refresh
        )
        authority = Authority()
        with scratch_directory() as scratch:
            mounted, own = scratch / "d", scratch / "own"
            mounted.mkdir()
            own.mkdir(mode=0o700)
            write_launcher(mounted)
            _write_open(mounted / "ca.pem", authority.certificate)
            _write_open(mounted / "names", "\n".join(self._allow.names()).encode("ascii") + b"\n")
            with serve_recorder(recorder, authority, mounted / _SOCKET, own):
                socket = f"{_INSIDE}/{_SOCKET}"
                ways = (f"{_ADDRESS}:80={socket}", f"{_ADDRESS}:443={socket}", f"dns={socket}")
                result = sandbox.run(image, tree, _connected(spec, mounted, ways), out=out, owner=owner)
        replies = tuple(recorder.replies.values())
        digest, directory = self._store.make_record(replies)
        record = DataRecord(
            digest=digest, directory=directory.resolve(), files=self._files(replies),
            requests=tuple(recorder.requests), fetched_bytes=recorder.fetched_bytes,
            problems=tuple(recorder.problems), result=result,
        )  # fmt: skip
        write_text(out / "data.json", json.dumps(record.model_dump(mode="json"), indent=1) + "\n")
        return record

    def _files(self, replies: tuple[Reply, ...]) -> tuple[DataFile, ...]:
        licences = stated_licences(replies, self._store)
        return tuple(
            DataFile(
                url=reply.url, size=reply.size, sha256=reply.sha256, content_type=reply.header.get("content-type", ""),
                fetched_at=reply.fetched_at, licence=licences.get(reply.url, UNKNOWN_LICENCE),
            )
            for reply in replies
            if reply.status == _OK and not reply.key.startswith("HEAD ")
        )  # fmt: skip

    def _require(self, spec: RunSpec, sandbox: Sandbox) -> None:
        what = f"data of `{' '.join(spec.commands[0].argv)[:120]}`"
        if self._mode == "offline":
            raise ExpbenchError(
                FailureKind.DATA_UNAVAILABLE,
                what,
                "the run wants to download, and --data offline (EXPBENCH_DATA=offline) lets nothing be fetched",
                consequence="Nothing was fetched, and the run stays without its data",
                next_step="Use --data fetch, or put the data into the repository",
            )
        if not is_container(sandbox):
            raise ExpbenchError(
                FailureKind.SANDBOX_UNAVAILABLE,
                what,
                "the process sandbox has neither mounts nor a name server, so that downloads cannot be recorded there",
                consequence="Nothing was fetched, and the run stays without its data",
                next_step="Install Docker Engine and use the Docker sandbox",
            )


def open_data_phase(settings: Settings, sandbox: Sandbox, *, ask: Ask | None = None) -> DataPhase:
    """The data phase as the settings want it: fetching where runs are containers, unless they say otherwise.

    Args:
        settings: hosts, limit and mode.
        sandbox: where runs are made.
        ask: asks a person whether a file may go over the limit.

    Raises:
        ExpbenchError: `USAGE`, an entry of EXPBENCH_DATA_HOSTS is no host.
    """
    mode = settings.data or ("fetch" if is_container(sandbox) else "offline")
    allow = default_allow_list().extended(settings.data_hosts)
    return DataPhase(settings.cache_dir, allow, limit_bytes=settings.data_limit_mb << 20, mode=mode, ask=ask)


def with_data(spec: RunSpec, record: KeptData) -> RunSpec:
    """The offline run, which gets what was recorded when it asks for it, and nothing else.

    Args:
        spec: for the sandbox of the data phase.
        record: of the same run's data phase; with no answers in it, the run stays as it is.

    Raises:
        ExpbenchError: `DATA_UNAVAILABLE`, the cache has lost the record or a file of it.
    """
    require_data(record)
    answers = json.loads((record.directory / "index.json").read_text(encoding="utf-8"))
    return _connected(spec, record.directory, (f"replay={_INSIDE}",)) if answers else spec


def require_data(record: KeptData) -> None:
    """Does the cache of this machine still hold what a run downloads?

    Raises:
        ExpbenchError: `DATA_UNAVAILABLE`, it has lost the record or a file of it.
    """
    if not (record.directory / "index.json").is_file():
        raise _lost(record, "its directory is not in the cache of this machine")
    for file in record.files:
        if not is_sound(record.directory / "blobs" / file.sha256, file.sha256):
            raise _lost(record, f"{file.url} (sha256 {file.sha256}) is gone or damaged")


def _lost(record: KeptData, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.DATA_UNAVAILABLE,
        f"data record {record.directory}",
        cause,
        consequence="The run was not started",
        next_step="Make its data phase again where there is a network (`expbench curate`, with --data fetch)",
    )


def _connected(spec: RunSpec, mounted: Path, ways: tuple[str, ...]) -> RunSpec:
    """Its commands behind the launcher, believing the certificates of the mounted directory."""
    launcher = (_PYTHON, "-I", "-S", _INSIDE, *ways, f"names={_INSIDE}/names", "--")
    authority = f"{_INSIDE}/ca.pem"
    trust = dict.fromkeys(
        ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE", "GIT_SSL_CAINFO"), authority
    )
    # Xet and hf_transfer fetch by protocols of their own; the Hub's patience of 10 s ends while a file still comes
    hub = {
        "HF_HUB_DISABLE_XET": "1", "HF_HUB_ENABLE_HF_TRANSFER": "0", "HF_HUB_DISABLE_TELEMETRY": "1",
        "HF_HUB_DOWNLOAD_TIMEOUT": "120", "HF_HUB_ETAG_TIMEOUT": "120",
    }  # fmt: skip
    limits = spec.limits
    return spec.evolve(
        launcher=(*launcher, *spec.launcher),
        env=hub | spec.env | trust | dict.fromkeys(_OFFLINE, "0"),
        limits=limits.evolve(pids=limits.pids + _BESIDE_PIDS, memory_mb=limits.memory_mb + _BESIDE_MB),
        mounts=(
            *spec.mounts,
            ReadOnlyMount(source=mounted, target=_INSIDE),
            ReadOnlyMount(source=mounted / "ca.pem", target=_SYSTEM_BUNDLE),
        ),
        dns="127.0.0.1",
    )


def _write_open(path: Path, data: bytes) -> None:
    """A file that another user can read."""
    path.write_bytes(data)
    path.chmod(0o644)
