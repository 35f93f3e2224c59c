"""Recorded exchanges, found by the digest of what was asked; the same store serves caching and replay.

Entries are written atomically and never changed in part; concurrent processes (and threads) that ask the same thing
wait for the first of them instead of paying twice. Images are kept as digests. An entry that cannot be read counts as
missing.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue, ValidationError

from pipeline.digests import digest_of
from pipeline.files import write_bytes, write_text
from pipeline.llm.cancel import CancelToken
from pipeline.llm.config import ModelConfig
from pipeline.llm.redact import redact_value
from pipeline.llm.storage import storage_errors
from pipeline.llm.types import ImagePart, Message, Parameters, Reply, Request, TextPart, ordered_json
from pipeline.schema import StoredRecord

__all__ = ["CacheMode", "Exchange", "ExchangeStore", "describe_request", "embedding_key", "request_key"]

_KEY_VERSION = 1


class CacheMode(StrEnum):
    """What the store is used for."""

    USE = "use"
    """Answer from the store, ask and record when it has nothing."""
    OFF = "off"
    """Neither read nor write."""
    REFRESH = "refresh"
    """Always ask, and record."""
    REPLAY = "replay"
    """Answer from the store only; never ask."""


class Exchange(StoredRecord):
    """A question and its answer, as stored."""

    key: str
    request: dict[str, JsonValue]
    reply: Reply | None = None
    failure: str | None = None
    """A failure that the same request always meets (too long, rejected). Used by replay only: asking again is free."""
    failure_cause: str | None = None
    vector: tuple[float, ...] | None = None


def describe_request(config: ModelConfig, request: Request, parameters: Parameters) -> dict[str, JsonValue]:
    """Everything that decides an answer, and nothing else: labels, prompt names and time limits are not in it.

    Schemas are kept as text in their own order, because the order of properties is the order of generation.
    """
    described: dict[str, Any] = {
        "version": _KEY_VERSION,
        "kind": "chat",
        **config.identity,
        "parameters": parameters.model_dump(mode="json", exclude_none=True),
        "messages": [_describe_message(message) for message in request.messages],
        "tools": [ordered_json(tool.model_dump(mode="json")) for tool in request.tools],
        "schema": None if request.response_schema is None else ordered_json(request.response_schema),
    }
    if request.response_schema is not None and request.response_mode != "json_schema":
        described["schema_mode"] = request.response_mode
    return described


def request_key(config: ModelConfig, request: Request, parameters: Parameters) -> str:
    """sha256 of `describe_request`."""
    return digest_of(describe_request(config, request, parameters))


def embedding_key(config: ModelConfig, text: str, dimensions: int | None) -> str:
    """Key of the embedding of one text."""
    return digest_of(
        {"version": _KEY_VERSION, "kind": "embedding", **config.identity, "dimensions": dimensions, "text": text}
    )


def _describe_message(message: Message) -> dict[str, Any]:
    content = []
    for part in message.content:
        if isinstance(part, TextPart):
            content.append({"text": part.rendered()})
        elif isinstance(part, ImagePart):
            content.append({"image": part.digest, "media_type": part.media_type, "detail": part.detail})
    return {
        "role": message.role,
        "content": content,
        "tool_calls": [
            {"id": call.id, "name": call.name, "arguments": ordered_json(call.arguments)} for call in message.tool_calls
        ],
        "tool_call_id": message.tool_call_id,
    }


class ExchangeStore:
    """The exchanges below `root`; None keeps nothing (and then replay finds nothing)."""

    def __init__(self, root: Path | None, mode: CacheMode = CacheMode.USE) -> None:
        self.root = root
        self.mode = mode if root is not None or mode is CacheMode.REPLAY else CacheMode.OFF

    @property
    def reads(self) -> bool:
        """Are stored answers used?"""
        return self.mode in {CacheMode.USE, CacheMode.REPLAY}

    @property
    def writes(self) -> bool:
        """Are new answers stored?"""
        return self.mode in {CacheMode.USE, CacheMode.REFRESH}

    def get(self, key: str) -> Exchange | None:
        """The exchange of a key, if there is a complete one.

        Raises:
            ExpbenchError: `RECORD_INVALID` when its file may not be read.
        """
        if not self.reads or self.root is None:
            return None
        with self._storage():
            try:
                exchange = Exchange.model_validate_json(self.path(key).read_bytes())
            except (FileNotFoundError, ValidationError):
                return None
        return exchange if exchange.key == key else None

    def put(self, exchange: Exchange) -> None:
        """Record an exchange, without the keys that this process holds.

        Raises:
            ExpbenchError: `DISK_FULL` or `RECORD_INVALID` when it cannot be written.
        """
        if not self.writes:
            return
        clean = redact_value(exchange.model_dump(mode="json", exclude_none=True))
        data = Exchange.model_validate(clean).model_dump_json(exclude_none=True, indent=1) + "\n"
        with self._storage():
            write_bytes(self.path(exchange.key), data.encode("utf-8", "surrogatepass"))

    def _storage(self) -> contextlib.AbstractContextManager[None]:
        root = self.root or Path()
        return storage_errors(root, "the cache of model calls", "An answer is neither read from it nor recorded in it")

    def path(self, key: str) -> Path:
        """File of a key."""
        if self.root is None:
            raise ValueError("a store without a root has no files")
        return self.root / "exchanges" / key[:2] / f"{key}.json"

    @contextlib.contextmanager
    def single_flight(self, key: str, cancel: CancelToken) -> Iterator[None]:
        """Let one asker of a key in at a time; the kernel frees the lock of a process that dies.

        Raises:
            ExpbenchError: `INTERRUPTED` when cancelled while waiting; `DISK_FULL` or `RECORD_INVALID` when the lock's
                file cannot be made.
        """
        if self.mode is not CacheMode.USE or self.root is None:
            yield
            return
        path = self.root / "locks" / f"{key}.lock"
        with self._storage():
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = _acquire(path, cancel)
        try:
            yield
        finally:
            try:
                with self._storage():
                    path.unlink(missing_ok=True)  # while it is held: `_acquire` sees that the name is another file now
            finally:
                os.close(descriptor)

    # --- what endpoints can do ---

    def capability(self, config: ModelConfig, name: Literal["schema", "api"]) -> str | None:
        """What an earlier call found out about this endpoint and model; None: nothing yet."""
        if self.root is None or self.mode is CacheMode.OFF:
            return None
        with self._storage():
            try:
                return self._capability_path(config, name).read_text(encoding="utf-8").strip()
            except FileNotFoundError:
                return None

    def remember_capability(self, config: ModelConfig, name: Literal["schema", "api"], value: str) -> None:
        """Remember it for this endpoint and model."""
        if self.writes:
            with self._storage():
                write_text(self._capability_path(config, name), f"{value}\n")

    def _capability_path(self, config: ModelConfig, name: str) -> Path:
        if self.root is None:
            raise ValueError("a store without a root has no files")
        return self.root / "endpoints" / f"{digest_of(config.identity)}.{name}"


def _acquire(path: Path, cancel: CancelToken) -> int:
    pause = 0.002
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _names(path, descriptor):
                return descriptor
        except BlockingIOError:
            pass  # somebody asks the same: look again after a moment
        except BaseException:
            os.close(descriptor)
            raise
        else:
            os.close(descriptor)  # locked a file that its last holder had removed
            continue
        os.close(descriptor)
        cancel.wait(pause)
        cancel.check("model call")
        pause = min(pause * 1.5, 0.1)


def _names(path: Path, descriptor: int) -> bool:
    ours = os.fstat(descriptor)
    try:
        theirs = path.stat()
    except FileNotFoundError:
        return False
    return (ours.st_dev, ours.st_ino) == (theirs.st_dev, theirs.st_ino)
