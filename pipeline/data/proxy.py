"""The recording proxy of a data phase: answers a container's requests from the cache, else from an allowed host.

TLS ends here, by certificates that only this container believes: method and URL are seen, so that nothing but reading
passes, every file has its URL and digest, and the same answers can be given again without a network. Nothing that a
client sends goes out but a bounded URL; headers, cookies and credentials stay.
"""

from __future__ import annotations

import contextlib
import datetime
import http.client
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final
from urllib.parse import urljoin, urlsplit

from pipeline.data._inside.replay import CHUNK, MOST_BODY, Handler, Server, request_key
from pipeline.data.allow import AllowList
from pipeline.data.certificates import Authority
from pipeline.data.records import Asked, Reply
from pipeline.data.store import DataStore, is_sound
from pipeline.data.upstream import Upstream
from pipeline.schema import Problem

__all__ = ["Ask", "Recorder", "serve_recorder"]

Ask = Callable[[str], bool]
"""Asks a person; True: go on."""

_LONGEST_URL: Final = 2048
_LONGEST_TOLD_URL: Final = 8192
"""A URL that an allowed host gave in a redirect (signed ones are long): it says nothing that the host does not know."""
_MOST_SAID: Final = 64 << 10
"""Characters of all URLs and bodies of a phase that reach the network: 72 data sets of OpenML take 17,000."""
_MOST_REQUESTS: Final = 5000
_MB: Final = 1 << 20
_KEPT_HEADERS: Final = {
    "content-type", "content-encoding", "content-disposition", "content-language", "etag", "last-modified", "link",
    "location",
}  # fmt: skip
_LONGEST_HEADER: Final = 8192
_PASSING: Final = 500
_TOO_MANY: Final = 429
_FORMS: Final = ("application/json", "application/x-www-form-urlencoded")
_REFUSED: Final = "Refused by the data phase"


class _RefusedError(Exception):
    """A request that is not answered, and why."""


class Recorder:
    """What a data phase may do, and what it did.

    Args:
        store: the cache.
        allow: what may be fetched.
        upstream: the way out.
        limit_bytes: that may come over the network.
        ask: whether a file may go over the limit; None: it may not.
        refresh: fetch what the cache has once more.
    """

    def __init__(
        self, store: DataStore, allow: AllowList, upstream: Upstream, *, limit_bytes: int, ask: Ask | None,
        refresh: bool,
    ) -> None:  # fmt: skip
        self.store, self.allow, self._upstream = store, allow, upstream
        self._limit, self._ask, self._refresh = limit_bytes, ask, refresh
        self._guard = threading.RLock()
        self._told: set[str] = set()
        self._said = 0
        self._reserved = 0
        self.closed = False
        self.fetched_bytes = 0
        self.replies: dict[str, Reply] = {}
        self.requests: list[Asked] = []
        self.problems: list[Problem] = []

    def note(self, method: str, url: str, outcome: str, detail: str = "") -> None:
        """One request, in the order of their ends."""
        with self._guard:
            if len(self.requests) < _MOST_REQUESTS:
                entry = {"method": method[:16], "url": url[:_LONGEST_TOLD_URL], "outcome": outcome, "detail": detail}
                self.requests.append(Asked.model_validate(entry))

    def complain(self, where: str, message: str) -> None:
        """Something that a person should know of."""
        with self._guard:
            self.problems.append(Problem(component="data.phase", where=where[:300], message=message))

    def find(self, method: str, url: str, body: bytes) -> Reply | None:
        """What is known already: by this phase, or by the cache, where its file is sound."""
        for key in (request_key(method, url, body), *([request_key("GET", url, b"")] if method == "HEAD" else [])):
            reply = self.replies.get(key)
            if reply is None and not self._refresh:
                reply = self.store.find(key)
                if reply is not None and method != "HEAD" and not is_sound(self.store.blob(reply.sha256), reply.sha256):
                    self.complain(url, f"the cache's copy (sha256 {reply.sha256}) is gone or damaged: fetched again")
                    reply = None
            if reply is not None:
                return self._use(reply)
        return None

    def require_allowed(self, method: str, url: str, body: bytes | None, raw: str) -> None:
        """May it be asked for, and is it short enough to say little?

        Raises:
            _RefusedError: with the reason.
        """
        if not url or body is None:
            raise _RefusedError(f"no plain URL, or a body of more than {MOST_BODY} bytes: {raw[:200]}")
        if not self.allow.allows(method, url):
            host = urlsplit(url).hostname
            how = "only GET and HEAD are" if self.allow.knows(host or "") else "EXPBENCH_DATA_HOSTS adds hosts;"
            raise _RefusedError(f"{method} of {url[:300]} is not on the list of what may be fetched ({how} allowed)")
        with self._guard:
            told = url in self._told
            said = 0 if told else len(url) + len(body)
            if len(url) > (_LONGEST_TOLD_URL if told else _LONGEST_URL):
                raise _RefusedError(f"the URL has {len(url)} characters, {_LONGEST_URL} may be sent: {url[:200]}")
            if self._said + said > _MOST_SAID or len(self.requests) >= _MOST_REQUESTS:
                raise _RefusedError(
                    f"this run has asked for {len(self.requests)} URLs of {self._said} characters: no more go out"
                )
            self._said += said

    def fetch(self, handler: Handler, url: str, body: bytes) -> None:
        """Get it from its host, keep it, and hand it to the client while it comes.

        Raises:
            _RefusedError: over the limit, or no public address.
            OSError, http.client.HTTPException: the host or the client failed.
        """
        method = handler.command
        content_type = handler.headers.get("Content-Type") or ""
        form = next((form for form in _FORMS if content_type.startswith(form)), _FORMS[0])
        try:
            response = self._upstream.open(method, url, body, form)
        except PermissionError as error:
            raise _RefusedError(str(error)) from error
        with contextlib.closing(response):
            if response.status >= _PASSING or response.status == _TOO_MANY:
                handler.send_head(response.status, response.reason, [], 0)
                self.note(method, url, "failed", f"its host answers {response.status}")
                return
            relay = _Relay(handler, response)
            reply = self._receive(response, relay, url, request_key(method, url, body))
        before = self.store.find(reply.key)
        reply = self._use(self.store.keep(reply))
        if before is not None and before.sha256 != reply.sha256 and before.status == reply.status:
            self.complain(
                url,
                f"holds other bytes than before: sha256 {before.sha256} ({before.size} bytes, {before.fetched_at}), "
                f"now {reply.sha256} ({reply.size} bytes)",
            )
        self.note(method, url, "fetched", f"{reply.status}, {reply.size} bytes")
        if handler.begun:
            relay.finish()
        else:
            handler.send_reply(reply.model_dump(mode="json"), self.store.blob(reply.sha256))

    def _receive(self, response: http.client.HTTPResponse, relay: _Relay, url: str, key: str) -> Reply:
        """Keep an answer's body, and hand on what can be handed on meanwhile."""
        if relay.length is not None and not relay.head_only:
            self._reserve(url, relay.length)
        with self.store.receive() as incoming:
            for data in self._read(response, url, 0 if relay.head_only else relay.length):
                incoming.write(data)
                relay.push(data)
        self._follow(url, dict(relay.headers).get("location", ""))
        return Reply(
            key=key, url=url, status=response.status, reason=response.reason, headers=relay.headers,
            sha256=incoming.sha256, size=(relay.length or 0) if relay.head_only else incoming.size,
            fetched_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        )  # fmt: skip

    def _read(self, response: http.client.HTTPResponse, url: str, length: int | None) -> Iterator[bytes]:
        """The body; never more than may come."""
        count = 0
        while data := response.read1(CHUNK):
            count += len(data)
            if length is None:
                self._reserve(url, len(data))
            with self._guard:
                self.fetched_bytes += len(data)
            if self.closed:
                raise _RefusedError("the run has ended")
            yield data
        if length is not None and count != length:
            raise http.client.IncompleteRead(b"", length - count)

    def _reserve(self, url: str, count: int) -> None:
        """Take from what may come; ask where that is not enough.

        Raises:
            _RefusedError: it is too much.
        """
        with self._guard:
            if self._reserved + count > self._limit:
                state = f"{count / _MB:.1f} MB, after {self._reserved / _MB:.1f} of {self._limit / _MB:.0f} MB"
                if self._ask is None or not self._ask(f"{url} has {state}. Fetch it all the same?"):
                    raise _RefusedError(f"{url[:300]} has {state}: EXPBENCH_DATA_LIMIT_MB sets how much may be fetched")
                self._limit = self._reserved + count
            self._reserved += count

    def _follow(self, url: str, location: str) -> None:
        """Remember where a host sends us; say so when we shall not go there."""
        if not location:
            return
        target = urljoin(url, location).partition("#")[0]
        host = urlsplit(target).hostname or ""
        with self._guard:
            self._told.add(target)
        if not self.allow.allows("GET", target):
            self.complain(url, f"redirects to {target[:300]}, which is not on the list of what may be fetched ({host})")

    def _use(self, reply: Reply) -> Reply:
        with self._guard:
            return self.replies.setdefault(reply.key, reply)


class _Relay:
    """Hands a body of known length to the client while it comes, but for the last part of it.

    That one waits until the answer is kept: a client that has everything may ask again, or end its run, at once. One
    that goes away wanted the beginning only; the record wants the file.
    """

    def __init__(self, handler: Handler, response: http.client.HTTPResponse) -> None:
        announced = response.headers.get("Content-Length") or ""
        self.length = int(announced) if announced.isdecimal() and not response.chunked else None
        self.head_only = handler.command == "HEAD"
        self.headers = _kept_headers(response)
        self._handler, self._response = handler, response
        self._streams = self.length is not None and not self.head_only and not handler.headers.get("Range")
        self._held = b""

    def push(self, data: bytes) -> None:
        """One more part."""
        if self._streams and self._held:
            if not self._handler.begun:
                self._handler.send_head(self._response.status, self._response.reason, self.headers, self.length)
            self._write()
        self._held = data

    def finish(self) -> None:
        """The last part."""
        if self._streams:
            self._write()

    def _write(self) -> None:
        try:
            self._handler.wfile.write(self._held)
        except OSError:
            self._streams = False


def _kept_headers(response: http.client.HTTPResponse) -> tuple[tuple[str, str], ...]:
    """What describes a file, and the hosts' own `x-` headers, which libraries read."""
    found = {name.lower(): value for name, value in response.getheaders() if len(value) <= _LONGEST_HEADER}
    kept = {name: value for name, value in found.items() if name in _KEPT_HEADERS or name.startswith("x-")}
    return tuple(sorted((name, value.replace("\r", " ").replace("\n", " ")) for name, value in kept.items()))


class _Recording(Handler):
    """Answers one request of a data phase."""

    server: _Proxy

    def answer(self) -> None:
        """From the cache, from its host, or with the reason why not."""
        recorder = self.server.recorder
        if self.command == "RESOLVE":  # a name that the container's name server does not know
            why = "the name is not on the list of hosts; EXPBENCH_DATA_HOSTS adds hosts"
            recorder.note("RESOLVE", self.path.rpartition(":")[0], "refused", why)
            return
        url = self.url()
        body = self.body()
        try:
            known = recorder.find(self.command, url, body or b"")
            if known is not None and recorder.allow.allows(self.command, url):
                recorder.note(self.command, url, "cached")
                self.send_reply(known.model_dump(mode="json"), recorder.store.blob(known.sha256))
                return
            recorder.require_allowed(self.command, url, body, self.requestline)
            recorder.fetch(self, url, body or b"")
        except _RefusedError as refusal:
            recorder.note(self.command, url or self.requestline, "refused", str(refusal))
            if not self.begun:
                self.send_refusal(_REFUSED, str(refusal))
        except (OSError, http.client.HTTPException) as error:
            recorder.note(self.command, url, "failed", f"{type(error).__name__}: {error}"[:300])
            if not self.begun:  # otherwise the connection ends where the file does
                self.send_head(502, "Bad Gateway", [], 0)


class _Proxy(Server):
    """The proxy behind a unix socket."""

    address_family = socket.AF_UNIX
    allow_reuse_address = False

    def __init__(self, path: Path, recorder: Recorder, authority: Authority, scratch: Path) -> None:
        self.recorder = recorder
        self._authority = authority
        self._scratch = scratch
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._guard = threading.Lock()
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.sni_callback = self._choose
        super().__init__(str(path), _Recording)  # type: ignore[arg-type]  # typed for addresses of the internet

    def _choose(self, connection: ssl.SSLObject | ssl.SSLSocket, name: str | None, _: ssl.SSLContext) -> int | None:
        """The certificate of the host that is asked for."""
        host = (name or "").lower()
        if not self.recorder.allow.knows(host):
            return ssl.ALERT_DESCRIPTION_UNRECOGNIZED_NAME
        with self._guard:
            if host not in self._contexts:
                file = self._scratch / "host.pem"
                file.write_bytes(self._authority.issue([host]))
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(file)
                file.unlink()
                self._contexts[host] = context
        connection.context = self._contexts[host]
        return None


@contextlib.contextmanager
def serve_recorder(recorder: Recorder, authority: Authority, path: Path, scratch: Path) -> Iterator[None]:
    """Serve at a unix socket that everybody who sees it may use, until the block ends.

    Args:
        recorder: of the phase.
        authority: that the container believes.
        path: of the socket.
        scratch: a directory that the container does not see.
    """
    server = _Proxy(path, recorder, authority, scratch)
    path.chmod(0o666)
    server.serve_in_thread()
    try:
        yield
    finally:
        recorder.closed = True
        server.shutdown()
        server.server_close()
