"""Docker Engine: connecting, attached containers, and what its errors mean.

Containers are created with our labels, run with their streams attached (so that nothing is logged on the engine's disk)
and remove themselves when they end. stdin is theirs only as long as the client lives: when the client is killed, the
engine closes it, the program inside ends, and nothing stays behind.
"""

from __future__ import annotations

import contextlib
import os
import select
import socket
import struct
import time
from collections.abc import Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from docker import DockerClient

    from pipeline.sandbox.base import StopHandle

__all__ = ["Attached", "connection", "engine_error", "given_up", "gpu_unavailable", "labels", "unavailable"]

_MUX = struct.Struct(">BxxxI")
_STDOUT, _STDERR = 1, 2
_TAIL = 8192
# What the engine says when a container with a device request starts: no driver for it, or the driver found no device.
_NO_GPU: Final = ("could not select device driver", "nvidia-container-cli", "unknown or invalid runtime name: nvidia")
# A busy engine took up to 11 s to create and start a container here (eight builds at once on two cores).
_API_TIMEOUT_S: Final = 120
_REMOVAL_S: Final = 30.0


def labels(owner: str, kind: Literal["container", "image"] = "container") -> dict[str, str]:
    """What everything of ours carries.

    The kind is there because a container inherits its image's labels: what a person starts from one of our images by
    hand is not ours to remove, although it carries the owner that built the image.
    """
    return {"expbench": "1", "expbench.owner": owner, "expbench.kind": kind}


def given_up(what: str, reason: str) -> ExpbenchError:
    """Somebody said stop while it was under way."""
    return ExpbenchError(
        FailureKind.INTERRUPTED,
        what,
        f"was given up: {reason}",
        consequence="What was begun was removed, and no image was made",
        next_step="Run the same command again, with --resume where it has one",
    )


def unavailable(cause: str) -> ExpbenchError:
    """Docker was asked for and cannot be used."""
    return ExpbenchError(
        FailureKind.SANDBOX_UNAVAILABLE,
        "Docker Engine",
        cause,
        consequence="Code cannot be run in containers",
        next_step=next_step_for(cause),
    )


def next_step_for(cause: str) -> str:
    """What makes Docker usable, by what the connection said."""
    if "Permission denied" in cause:
        return (
            "Add yourself to the group docker (`sudo usermod -aG docker $USER`, then log in again), "
            "or use `--sandbox process`"
        )
    if "No such file" in cause:
        return "Install Docker Engine (`sudo apt install docker.io`) and start it, or use `--sandbox process`"
    return "Start Docker Engine (`sudo systemctl start docker`, or `sudo dockerd`), or use `--sandbox process`"


def engine_error(error: Exception, object_: str) -> ExpbenchError:
    """An error of the engine in our terms."""
    text = str(getattr(error, "explanation", None) or error).strip().rstrip(".")
    if any(words in text for words in _NO_GPU):
        return gpu_unavailable(f"Docker Engine answered: {text[:300]}")
    disk = "no space left on device" in text.lower()
    return ExpbenchError(
        FailureKind.DISK_FULL if disk else FailureKind.SANDBOX_BROKEN,
        object_,
        f"Docker Engine answered: {text[:600]}",
        consequence="Nothing is known about the code that was to run",
        next_step="Free space where Docker keeps its data (`docker info`, Docker Root Dir)"
        if disk
        else "Look at the engine's log (`journalctl -u docker`), then run again",
    )


def gpu_unavailable(cause: str) -> ExpbenchError:
    """A run asked for GPUs that cannot be had here."""
    return ExpbenchError(
        FailureKind.GPU_UNAVAILABLE,
        "GPU request",
        cause,
        consequence="Nothing was run",
        next_step="Run on a machine with these GPUs and the NVIDIA container toolkit, or ask for none if the code "
        "also runs on a CPU",
    )


@contextlib.contextmanager
def connection() -> Iterator[DockerClient]:
    """A client of the engine that DOCKER_HOST names (by default the local socket), closed at the end.

    Raises:
        ExpbenchError: `SANDBOX_UNAVAILABLE`, no engine answers.
    """
    import docker
    from docker.errors import DockerException

    _knock()
    try:
        client = docker.from_env(timeout=_API_TIMEOUT_S)
    except DockerException as error:
        raise unavailable(_reason(error)) from error
    try:
        yield client
    finally:
        client.close()


def _knock() -> None:
    """Try a local engine's socket first: the library leaves its own open when nobody answers."""
    address = os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"
    if not address.startswith("unix://"):
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(address.removeprefix("unix://"))
        except OSError as error:
            raise unavailable(f"no engine answers at {address} ({error.strerror})") from error


def _reason(error: BaseException) -> str:
    text = str(error)
    for known in ("Permission denied", "No such file or directory", "Connection refused"):
        if known in text:
            return f"no engine answers at its address ({known})"
    return f"no engine answers: {text[:300]}"


class Attached:
    """A container that runs while this context is open, with its streams attached; a `Channel` to its main program.

    Args:
        client: of the engine.
        what: for messages.
        settings: arguments of `docker.models.containers.ContainerCollection.create`.
    """

    def __init__(self, client: DockerClient, what: str, settings: dict[str, Any]) -> None:
        self._client = client
        self._what = what
        self._settings = settings
        self.id = ""
        self.diagnostics = b""
        self._buffer = bytearray()
        self._socket: socket.socket
        self._holder: Any = None

    def __enter__(self) -> Self:
        """Create, attach, start.

        Raises:
            ExpbenchError: `SANDBOX_BROKEN`, `DISK_FULL`.
        """
        from docker.errors import APIError, DockerException
        from docker.types import LogConfig

        try:
            container = self._client.containers.create(
                **self._settings, stdin_open=True, log_config=LogConfig(type="none", config={}), init=True
            )
            self.id = str(container.id)
            parameters = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._holder = self._client.api.attach_socket(self.id, params=parameters)
            self._socket = getattr(self._holder, "_sock", self._holder)
            self._client.api.start(self.id)
            self._socket.setblocking(False)
        except (APIError, DockerException, OSError) as error:
            self.remove()
            raise engine_error(error, self._what) from error
        except BaseException:
            self.remove()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.remove()

    def remove(self) -> None:
        """Kill and remove the container; it being gone already is fine."""
        from docker.errors import APIError, NotFound

        if self._holder is not None:
            response = getattr(self._holder, "_response", None)
            if response is not None:
                response.close()
            self._holder.close()
            self._socket.close()
            self._holder = None
        if not self.id:
            return
        deadline = time.monotonic() + _REMOVAL_S
        while True:
            try:
                self._client.api.remove_container(self.id, force=True, v=True)
            except NotFound:
                return
            # 409: the engine is removing it by itself, wait until it has; OSError: a busy engine did not answer in time
            except (APIError, OSError) as error:
                if time.monotonic() > deadline:
                    raise engine_error(error, f"removal of container {self.id[:12]}") from error
                time.sleep(0.02)
            else:
                return

    def fileno(self) -> int:
        """See `Channel`."""
        return self._socket.fileno()

    def write_fileno(self) -> int:
        """See `Channel`."""
        return self._socket.fileno()

    def write(self, data: memoryview) -> int:
        """See `Channel`."""
        try:
            return self._socket.send(data[: 1 << 18])
        except BlockingIOError:
            return 0

    def read(self) -> bytes | None:
        """See `Channel`; what arrives on stderr is kept in `diagnostics`."""
        try:
            data = self._socket.recv(1 << 18)
        except BlockingIOError:
            return b""
        except ConnectionResetError:
            return None
        if not data:
            return None
        self._buffer += data
        out = []
        while len(self._buffer) >= _MUX.size:
            stream, size = _MUX.unpack_from(self._buffer)
            if len(self._buffer) < _MUX.size + size:
                break
            payload = bytes(self._buffer[_MUX.size : _MUX.size + size])
            del self._buffer[: _MUX.size + size]
            if stream == _STDOUT:
                out.append(payload)
            elif stream == _STDERR:
                self.diagnostics = (self.diagnostics + payload)[-_TAIL:]
        return b"".join(out)

    def lines(self, deadline_s: float, stop: StopHandle | None = None) -> Iterator[bytes]:
        """Both streams as they come, until the program ends.

        Raises:
            TimeoutError: not within `deadline_s`.
            ExpbenchError: `INTERRUPTED`: `stop` was called.
        """
        deadline = time.monotonic() + deadline_s
        watched = [self.fileno()] if stop is None else [self.fileno(), stop.fileno()]
        while True:
            if stop is not None and stop.reason:
                raise given_up(self._what, stop.reason)
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError
            if self.fileno() not in select.select(watched, [], [], min(left, 1.0))[0]:
                continue
            self.diagnostics = b""
            data = self.read()
            if data is None:
                return
            if data or self.diagnostics:
                yield data + self.diagnostics

    def exit_code(self) -> int:
        """The main program's exit code (waits for it)."""
        return int(self._client.api.wait(self.id, timeout=_API_TIMEOUT_S)["StatusCode"])

    def ran_out_of_memory(self, since: float) -> bool:
        """Did the kernel end something of this container for want of memory? Also true after its removal."""
        filters = {"container": self.id, "event": "oom"}
        events = self._client.api.events(since=int(since), until=int(time.time()) + 1, filters=filters, decode=True)
        return any(True for _ in events)
