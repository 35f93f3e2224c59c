"""One request on its way through the gateway, the sockets it comes in by, and what an endpoint's status means."""

from __future__ import annotations

import socket
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from evaluation.harness.policy import Route
from evaluation.harness.upstream import Upstream
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["ENDPOINT_FAILURES", "Call", "listen", "no_gateway"]

ENDPOINT_FAILURES: Final[dict[int, FailureKind]] = {
    401: FailureKind.AUTHENTICATION,
    403: FailureKind.REQUEST_REJECTED,
    404: FailureKind.REQUEST_REJECTED,
    408: FailureKind.MODEL_TIMEOUT,
    429: FailureKind.RATE_LIMIT,
    529: FailureKind.OVERLOADED,
}
"""What an endpoint's status says of the endpoint (404: it does not have the model); other 4xx are about the request,
which is the agent's."""


class Call:
    """One request on its way."""

    def __init__(self, where: Route, upstream: Upstream, endpoint: str, at: float) -> None:
        self.where, self.upstream, self.endpoint, self.at = where, upstream, endpoint, at
        self.model: str | None = None
        self.body: dict[str, Any] | None = None
        self.digest = ""
        self.removed: list[str] = []
        self.usage_added = False
        self.stream = False
        self.cost: Decimal | None = None


def listen(path: Path) -> socket.socket:
    """A listening unix socket at a path that anybody may connect to who can reach it.

    Raises:
        OSError: it cannot be made (a path of more than 107 bytes, for one).
    """
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        path.chmod(0o666)  # the agent is another user; who reaches the directory is decided by its parent
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener


def no_gateway(folder: Path, cause: str) -> ExpbenchError:
    """The gateway cannot be opened."""
    return ExpbenchError(
        FailureKind.SANDBOX_BROKEN,
        f"gateway in {folder}",
        f"cannot listen: {cause}",
        consequence="The agent was not started",
        next_step="Check that the directory for temporary files (TMPDIR) is writable and its path short",
    )
