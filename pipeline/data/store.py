"""The content-addressed cache of what data phases fetched, and the directory that an offline run gets of it.

<root>/sha256/ab/abcd...     bodies, by digest, never changed
<root>/index/<key>.json      `Reply` by the digest of method and URL
<root>/records/<digest>/     one run's answers: index.json, blobs/ (hard links), certificate, launcher, server
<root>/incoming/             what is just arriving
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import IO, Final
from urllib.parse import urlsplit

from pipeline.data.certificates import Authority
from pipeline.data.records import Reply
from pipeline.digests import digest_of, file_digest, text_digest
from pipeline.files import find_record, replace_directory, write_text

__all__ = ["DataStore", "Incoming", "is_sound", "write_launcher"]

_LAUNCHER: Final = "__main__.py"
_EMPTY: Final = hashlib.sha256(b"").hexdigest()
_sound: set[tuple[int, int, int, int, str]] = set()


class Incoming:
    """A body that is arriving."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> None:
        """One more part of it."""
        self._stream.write(data)
        self._digest.update(data)
        self.size += len(data)

    @property
    def sha256(self) -> str:
        """Of what has arrived so far."""
        return self._digest.hexdigest()


class DataStore:
    """The cache below one directory; safe under concurrent processes, as nothing in it is changed in place.

    Args:
        root: its directory.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def blob(self, sha256: str) -> Path:
        """Where a body lies."""
        return self.root / "sha256" / sha256[:2] / sha256

    def find(self, key: str) -> Reply | None:
        """What the index says of a request; an entry of another version counts as none."""
        return find_record(self._entry(key), Reply)

    @contextmanager
    def receive(self) -> Iterator[Incoming]:
        """A place for a body, which is kept when the block ends without an exception."""
        directory = self.root / "incoming"
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=directory, delete=False) as stream:
            temporary = Path(stream.name)
            try:
                incoming = Incoming(stream)
                yield incoming
                stream.flush()
                os.fsync(stream.fileno())
                temporary.chmod(0o444)
                path = self.blob(incoming.sha256)
                path.parent.mkdir(parents=True, exist_ok=True)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise

    def keep(self, reply: Reply) -> Reply:
        """Enter an answer into the index, with what the same request gave before."""
        before = self.find(reply.key)
        if before is not None:
            changed = before.sha256 != reply.sha256
            older = ((before.sha256, before.fetched_at),) if changed else ()
            reply = reply.evolve(previous=(*before.previous, *older))
        write_text(self._entry(reply.key), reply.model_dump_json(indent=1) + "\n")
        return reply

    def make_record(self, replies: Iterable[Reply]) -> tuple[str, Path]:
        """The directory of one run's answers, made when there is none; its digest and path."""
        chosen = sorted(replies, key=lambda reply: reply.key)
        said = [reply.model_dump(mode="json", exclude={"fetched_at", "previous"}) for reply in chosen]
        digest = digest_of(said)
        directory = self.root / "records" / digest
        if not self._is_whole(directory, chosen):
            with replace_directory(directory) as made:
                self._fill_record(made, chosen, said)
        return digest, directory

    def _is_whole(self, directory: Path, replies: list[Reply]) -> bool:
        """Is the record made, of the very files that the cache has? A damaged one was replaced there, not here."""
        bodies = {reply.sha256 for reply in replies} - {_EMPTY}
        blobs = directory / "blobs"
        return (directory / "index.json").is_file() and all(
            (blobs / sha256).is_file() and (blobs / sha256).samefile(self.blob(sha256)) for sha256 in bodies
        )

    def _fill_record(self, directory: Path, replies: list[Reply], said: list[dict[str, object]]) -> None:
        hosts = sorted({urlsplit(reply.url).hostname or "" for reply in replies})
        authority = Authority()
        write_launcher(directory)
        (directory / "names").write_text("\n".join(hosts) + "\n", encoding="ascii")
        (directory / "ca.pem").write_bytes(authority.certificate)
        (directory / "host.pem").write_bytes(authority.issue(hosts))
        (directory / "blobs").mkdir()
        for sha256 in {reply.sha256 for reply in replies} - {_EMPTY}:
            os.link(self.blob(sha256), directory / "blobs" / sha256)
        (directory / "blobs" / _EMPTY).touch()
        index = {reply.key: entry for reply, entry in zip(replies, said, strict=True)}
        (directory / "index.json").write_text(json.dumps(index, sort_keys=True, indent=1) + "\n", encoding="utf-8")
        _open_to_all(directory)

    def _entry(self, key: str) -> Path:
        return self.root / "index" / f"{text_digest(key)}.json"


def is_sound(path: Path, sha256: str) -> bool:
    """Is the body there, and still what it was? Read once a process, as long as nobody touches it."""
    try:
        state = path.stat()
    except FileNotFoundError:
        return False
    mark = (state.st_dev, state.st_ino, state.st_mtime_ns, state.st_size, sha256)
    if mark not in _sound and file_digest(path) == sha256:
        _sound.add(mark)
    return mark in _sound


def write_launcher(directory: Path) -> None:
    """The programs of the container's side; `python DIRECTORY` runs them."""
    for package, name, target in (
        ("pipeline.network._inside", "launch.py", _LAUNCHER),
        ("pipeline.data._inside", "replay.py", "replay.py"),
    ):
        text = resources.files(package).joinpath(name).read_text(encoding="utf-8")
        (directory / target).write_text(text, encoding="utf-8")
    _open_to_all(directory)


def _open_to_all(directory: Path) -> None:
    """A run is another user, whatever this process's umask is."""
    for here, _, names in os.walk(directory):
        Path(here).chmod(0o755)
        for name in names:
            path = Path(here) / name
            if path.stat().st_uid == os.geteuid():
                path.chmod(0o444 if path.parent.name == "blobs" else 0o644)
