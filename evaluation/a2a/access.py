"""Who may talk to an agent: a bearer token, asked for by the server and sent by the client.

An agent that listens on this machine alone may go without one; one that others can reach may not. The card stays
readable (a client learns from it that a token is wanted), everything behind it is refused with 401. A client sends its
token to the address it was given and nowhere else, whatever address the card names.

Non-goals: encryption (put a proxy with TLS in front of an agent on a network), several users, roles.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import secrets
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import httpx

from pipeline.errors import ExpbenchError, FailureKind

if TYPE_CHECKING:
    from a2a.types import AgentCard
    from starlette.types import ASGIApp, Receive, Scope, Send

__all__ = [
    "GREEN_TOKEN", "OWN_TOKEN", "WHITE_TOKEN", "BearerAuth", "BearerGate", "declare_bearer", "new_token",
    "require_token_for", "token_from",
]  # fmt: skip

OWN_TOKEN: Final = "EXPBENCH_A2A_TOKEN"
"""Environment variable: what our agent asks for."""
WHITE_TOKEN: Final = "EXPBENCH_A2A_WHITE_TOKEN"
"""Environment variable: what is sent to a white agent."""
GREEN_TOKEN: Final = "EXPBENCH_A2A_GREEN_TOKEN"
"""Environment variable: what is sent to a green agent."""
_LEAST: Final = 16
"""Characters of a token; fewer can be tried one after another."""
_SCHEME: Final = "bearer"


def token_from(variable: str, file: Path | None = None) -> str | None:
    """The token of a file, else of an environment variable; None where there is neither.

    A token is no argument of a command: arguments can be seen by every user of the machine.

    Raises:
        ExpbenchError: `USAGE`: the file cannot be read, or the token is too short or holds spaces.
    """
    where = str(file) if file is not None else variable
    try:
        text = file.read_text("utf-8") if file is not None else os.environ.get(variable, "")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(where, f"cannot be read: {error}") from error
    token = text.strip()
    if not token and file is None:
        return None
    if len(token) < _LEAST or not token.isascii() or not token.isprintable() or " " in token:
        raise _unusable(where, f"holds no token of at least {_LEAST} printable characters without spaces")
    return token


def new_token() -> str:
    """A token for two agents of one process."""
    return secrets.token_urlsafe(32)


def require_token_for(host: str, token: str | None) -> None:
    """Refuse to listen where others can reach, without a token.

    Raises:
        ExpbenchError: `USAGE`: `host` is not a loopback address and there is no token.
    """
    if token is None and not _is_loopback(host):
        raise ExpbenchError(
            FailureKind.USAGE, f"--host {host}", "can be reached by others, and no token is asked of them",
            consequence="The agent was not started",
            next_step=f"Set {OWN_TOKEN} or give --token-file, or listen on 127.0.0.1",
        )  # fmt: skip


def declare_bearer(card: AgentCard) -> None:
    """Say in a card that a bearer token is wanted."""
    from a2a.types import HTTPAuthSecurityScheme, SecurityRequirement, SecurityScheme, StringList

    scheme = HTTPAuthSecurityScheme(scheme=_SCHEME)
    card.security_schemes[_SCHEME].CopyFrom(SecurityScheme(http_auth_security_scheme=scheme))
    requirement = SecurityRequirement()
    requirement.schemes[_SCHEME].CopyFrom(StringList())
    card.security_requirements.append(requirement)


class BearerAuth(httpx.Auth):
    """Sends a token with every request to one address, and with no other.

    Args:
        url: base URL of the agent.
        token: None sends nothing.
    """

    def __init__(self, url: str, token: str | None) -> None:
        self._origin, self._token = _origin(url), token

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """See `httpx.Auth`."""
        if self._token is not None and _origin(str(request.url)) == self._origin:
            request.headers["Authorization"] = f"Bearer {self._token}"
        yield request


class BearerGate:
    """ASGI middleware: what is not the card needs the token.

    Args:
        app: what is behind it.
        token: that is wanted.
        open_path: path of the card.
    """

    def __init__(self, app: ASGIApp, token: str, open_path: str) -> None:
        self._app, self._token, self._open = app, token, open_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 401."""
        if scope["type"] != "http" or scope["path"] == self._open or self._admits(scope):
            await self._app(scope, receive, send)
            return
        from starlette.responses import JSONResponse

        refused = JSONResponse(
            {"error": "this agent wants its bearer token"}, status_code=401, headers={"WWW-Authenticate": "Bearer"}
        )
        await refused(scope, receive, send)

    def _admits(self, scope: Scope) -> bool:
        given = [value for name, value in scope["headers"] if name == b"authorization"]
        if len(given) != 1:
            return False
        kind, _, token = given[0].partition(b" ")
        return kind.lower() == b"bearer" and hmac.compare_digest(token.strip(), self._token.encode())


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _origin(url: str) -> tuple[str, str, int | None]:
    parts = urlsplit(url)
    standard = {"http": 80, "https": 443}.get(parts.scheme)
    return parts.scheme, (parts.hostname or "").lower(), parts.port or standard


def _unusable(where: str, cause: str) -> ExpbenchError:
    return ExpbenchError(
        FailureKind.USAGE, where, cause, consequence="Nothing was started",
        next_step="Make one, for example with `openssl rand -hex 32`",
    )  # fmt: skip
