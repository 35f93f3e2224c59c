"""Canary keys are planted in the environment, everything is made to go wrong, and every artefact is searched for them.

The endpoint does what hostile or careless ones do: it echoes the key it was sent, in answers, tool arguments, errors,
headers and broken bodies.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import os
import pickle
import re
import subprocess
import sys
import traceback
import urllib.parse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from pipeline.errors import ExpbenchError
from pipeline.llm import (
    Budget,
    BudgetLimits,
    CallLedger,
    Delta,
    ExchangeStore,
    ModelClient,
    ModelConfig,
    PromptRef,
    Request,
    RetryPolicy,
    ToolSpec,
    assistant,
    system,
    user,
)
from tests.doubles.protocol_server import Cut, ErrorReply, ProtocolServer, Script, Turn, turns
from tests.llm_fixtures import no_ambient_model  # noqa: F401

ROOT = Path(__file__).resolve().parents[3]
KEYS = {
    "shaped": "sk-proj-CANARY0a1b2c3d4e5f60718293a4b5c6d7e8f9",
    # no provider's shape, and another text in URLs, JSON and base64
    "plain": 'CANARY/of+the=test&with%20all"kinds\\of:marks',
}
OTHERS = {
    "ANTHROPIC_API_KEY": "sk-ant-api03-OTHERCANARY99887766554433221100",
    "HF_TOKEN": "hf_THIRDCANARYabcdefghijklmnop",
    "DATABASE_PASSWORD": "FOURTHCANARY-correct-horse-battery",
}


class Claim(BaseModel):
    metric: str
    value: float


class SilentClock:
    """Back-off takes no time."""

    def monotonic(self) -> float:
        return 0.0

    def sleep(self, seconds: float, cancel: Any) -> None:
        """Nothing."""


def forms(secret: str) -> list[str]:
    """The ways in which a secret may be written down."""
    raw = secret.encode()
    encoded = base64.b64encode(raw).decode().rstrip("=")
    # inside a longer text, base64 shifts: whatever the shift, a run of the inner groups must show
    shifted = [base64.b64encode(b"x" * n + raw).decode()[4 : -(4 + n)] for n in (1, 2)]
    escaped = json.dumps(secret)[1:-1]
    quoted = [urllib.parse.quote(secret, safe=""), urllib.parse.quote(secret)]
    return list(dict.fromkeys([secret, encoded, *shifted, *quoted, escaped, repr(secret)[1:-1]]))


def search(name: str, content: str | bytes, secrets: list[str]) -> list[str]:
    data = content.encode("utf-8", "surrogateescape") if isinstance(content, str) else content
    return [f"{name}: {form[:12]}..." for secret in secrets for form in forms(secret) if form.encode() in data]


def search_tree(root: Path, secrets: list[str]) -> list[str]:
    found = []
    for path in sorted(root.rglob("*")):
        found += search(str(path), str(path), secrets)
        if path.is_file():
            found += search(str(path), path.read_bytes(), secrets)
    return found


def describe_exception(error: BaseException) -> str:
    """All that a crash reporter could write down: the chain, attributes, and every frame's local variables."""
    texts = []
    seen: BaseException | None = error
    while seen is not None:
        texts += [str(seen), repr(seen), repr(vars(seen)), repr(seen.args)]
        seen = seen.__cause__ or seen.__context__
    report = traceback.TracebackException.from_exception(error, capture_locals=True)
    # the frames of this test hold the canaries themselves
    ours = "".join(str(f.locals) for f in report.stack if f.locals and Path(f.filename) != Path(__file__))
    return "\n".join([*texts, *traceback.format_exception(error), ours])


@pytest.fixture(params=sorted(KEYS))
def key(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, no_ambient_model: None) -> str:  # noqa: F811
    secret = KEYS[request.param]
    for name, value in OTHERS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENAI_API_KEY", secret)
    return secret


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """All that anybody logs, at the lowest level, in a file."""
    path = tmp_path / "artefacts" / "debug.log"
    path.parent.mkdir()
    root, before = logging.getLogger(), logging.getLogger().level
    handler = logging.FileHandler(path)
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    names = ("openai", "openai._base_client", "httpx", "httpx2", "httpcore", "httpcore2", "langchain_openai")
    levels = {name: logging.getLogger(name).level for name in names}
    for name in names:
        logging.getLogger(name).setLevel(logging.DEBUG)
    yield path
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
    root.setLevel(before)
    root.removeHandler(handler)
    handler.close()


class World:
    """A client whose artefacts all lie below one directory, and what it showed its caller."""

    def __init__(self, root: Path, server: ProtocolServer) -> None:
        self.root, self.server = root, server
        self.shown: list[str] = []
        self.ledger = CallLedger(root / "calls.jsonl")
        self.client = ModelClient(
            ModelConfig(model="m", base_url=server.base_url, retry=RetryPolicy(attempts=2)),
            store=ExchangeStore(root / "cache"),
            ledger=self.ledger,
            budget=Budget("canary", BudgetLimits(calls=100)),
            clock=SilentClock(),
        )

    def show(self, action: Callable[[], Any]) -> Any:
        """Do something and keep what it returns or raises, in all the ways in which that could be written down."""
        try:
            result = action()
            values = list(result) if isinstance(result, Iterator) else [result]
        except ExpbenchError as error:
            self.shown += [describe_exception(error), json.dumps(error.as_dict()), str(pickle.dumps(error.args))]
            return error
        # pieces of a stream as their reader sees them: one after the other, with no seam at which a key could hide
        self.shown.append("".join(value.text for value in values if isinstance(value, Delta)))
        self.shown += [repr(values), *(v.model_dump_json() for v in values if isinstance(v, BaseModel))]
        return values[-1]


@pytest.fixture
def world(key: str, tmp_path: Path, log: Path) -> Iterator[Callable[..., World]]:
    opened: list[World] = []

    def make(*script: Turn) -> World:
        server = ProtocolServer(Script.of(*script), record_to=tmp_path / "artefacts" / "requests.jsonl").start()
        opened.append(World(tmp_path / "artefacts", server))
        return opened[-1]

    yield make
    for one in opened:
        one.client.close()
        one.server.close()


def check(world: World, key: str, *, secrets: list[str] | None = None) -> None:
    """The key was used, and is nowhere."""
    secrets = [key] if secrets is None else secrets
    requests = world.server.requests
    assert requests
    assert all(r.credential_digest == hashlib.sha256(key.encode()).hexdigest() for r in requests), "the key was sent"
    assert world.ledger.records(), "the ledger was written"
    found = search_tree(world.root, secrets)
    for number, text in enumerate(world.shown):
        found += search(f"shown {number}", text, secrets)
    for request in requests:
        found += search(f"request {request.number}", request.model_dump_json(), secrets)
    found += search("client", repr([world.client, world.client.config, vars(world.client)]), secrets)
    assert found == []
    assert (world.root / "debug.log").stat().st_size > 0, "something was logged"


def ask(*parts: str) -> Request:
    return Request(messages=(system("Answer."), user(*parts)), prompt=PromptRef(name="p", version="1", digest="d"))


def test_a_key_in_what_is_asked_is_not_sent_on(world, key):
    """Repositories hold `.env` files; the reader's own key may be in one."""
    fine = turns.text("fine")
    w = world(fine, fine, fine, turns.structured({"metric": "a", "value": 1}), fine)
    w.show(lambda: w.client.chat(ask(f"OPENAI_API_KEY={key}\n")))
    w.show(lambda: w.client.stream(ask(f"in a URL: http://h.invalid/?k={urllib.parse.quote(key, safe='')}")))
    w.show(lambda: w.client.chat(Request(messages=(user("x"), assistant(f"I saw {key}"), user("y")))))
    w.show(lambda: w.client.structured(ask(f"as JSON {json.dumps({'k': key})}"), Claim))
    w.show(lambda: w.client.embed([f"a text with {key} inside"]))
    inside = [base64.b64encode(f"{'x' * n} OPENAI_API_KEY={key}\n".encode()).decode() for n in range(3)]
    whole = [key, base64.b64encode(key.encode()).decode(), urllib.parse.quote(key), json.dumps(key), repr(key)]
    w.show(lambda: w.client.chat(ask("\n".join(["all forms:", *whole, *inside]))))
    outcomes = [r.outcome for r in w.server.requests]
    assert outcomes == ["turn 1", "turn 2", "turn 3", "turn 4", "computed", "turn 5"]
    check(w, key)


def test_a_key_that_the_endpoint_echoes_is_not_kept(world, key):
    call = turns.tool_call("look", path=f"/{key}", nested=[{key: key}])
    w = world(
        turns.text(f"You sent {key}."),
        turns.text(f"You sent {key}.", chunk_chars=3),
        turns.tool_calls(call),
        turns.tool_calls(call, chunk_chars=3),
        turns.structured({"metric": key, "value": "none"}),  # does not fit: the value is quoted in the repair
        turns.structured({"metric": key, "value": 2}),
        turns.refusal(f"Not with {key}."),
        turns.text("headers", headers={"x-request-id": key, "x-note": key}),
    )
    tool = ToolSpec(name="look", description="Look.", parameters={"type": "object", "properties": {}})
    w.show(lambda: w.client.chat(ask("1")))
    reply = w.show(lambda: w.client.stream(ask("2")))
    assert reply.text == "You sent [redacted:OPENAI_API_KEY]."
    w.show(lambda: w.client.chat(ask("3").evolve(tools=(tool,))))
    w.show(lambda: w.client.stream(ask("4").evolve(tools=(tool,))))
    assert w.show(lambda: w.client.structured(ask("5"), Claim)).repairs == 1
    assert isinstance(w.show(lambda: w.client.chat(ask("6"))), ExpbenchError)
    w.show(lambda: w.client.chat(ask("7")))
    assert w.server.unused == []
    check(w, key)


def failures(key: str, how: str = "chat") -> dict[str, Turn]:
    after = 12 if how == "stream" else 400  # events or bytes: in the middle of the text
    echo = f"Incorrect API key provided: {key}. Bearer {key}"
    return {
        "401": turns.error(401, echo, code="invalid_api_key"),
        "400": turns.error(400, echo),
        "429 twice": turns.rate_limited(1, headers={"x-request-id": key}, times=2),
        "500 twice": turns.error(500, echo, times=2, headers={"x-request-id": key}),
        "unknown status": turns.error(418, echo, code=key),
        "malformed twice": turns.malformed_json(times=2),
        "page twice": turns.wrong_content_type(times=2),
        "cut": turns.cut(turns.text(f"{key} " * 9), after).evolve(times=2),
        "quiet cut": turns.cut(turns.text(f"{key} " * 9), after, quiet=True).evolve(times=2),
        "event": turns.text(
            f"{key} " * 5, times=2, cut=Cut(after=3, how="error", error=ErrorReply(status=500, message=echo, code=key))
        ),
        "malformed event": turns.malformed_sse(turns.text(f"{key} " * 5, chunk_chars=200), 2).evolve(times=2),
        "reset": turns.reset(times=2),
        "wrong shape": turns.structured({"metric": key}, times=3),
    }


@pytest.mark.parametrize("name", sorted(failures("")))
@pytest.mark.parametrize("how", ["chat", "stream"])
def test_no_failure_gives_the_key_away(world, key, name, how):
    w = world(failures(key, how)[name])
    if name == "wrong shape":
        error = w.show(lambda: w.client.structured(ask("x"), Claim))
    else:
        error = w.show(lambda: getattr(w.client, how)(ask("x")))
    assert isinstance(error, ExpbenchError)
    check(w, key)


def test_other_secrets_of_the_environment_are_not_in_diagnostics(world, key):
    """An endpoint (or a proxy) that quotes the environment in its errors."""
    echo = " ".join(OTHERS.values())
    w = world(turns.error(401, echo, code="x", headers={"x-request-id": OTHERS["ANTHROPIC_API_KEY"]}))
    error = w.show(lambda: w.client.chat(ask("x")))
    assert isinstance(error, ExpbenchError)
    check(w, key, secrets=[key, *OTHERS.values()])


SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.DEBUG)
from pathlib import Path
from pipeline.llm import *
root, url = Path(sys.argv[1]), sys.argv[2]
client = ModelClient(
    ModelConfig(model="m", base_url=url, retry=RetryPolicy(attempts=1)),
    store=ExchangeStore(root / "cache"),
    ledger=CallLedger(root / "calls.jsonl"),
)
print(client.chat(Request(messages=(user("one"),))))
client.chat(Request(messages=(user("two"),)))
"""


def test_a_crash_with_debug_output_prints_no_key(key, tmp_path):
    """A fresh process, all loggers on from the start, and an exception that nobody catches."""
    answers = (turns.text(f"you sent {key}"), turns.error(401, f"Incorrect API key provided: {key}"))
    # the environment cannot hold what has a NUL; everything else passes through it unchanged
    environment = {**os.environ, "OPENAI_API_KEY": key, "OPENAI_LOG": "debug", **OTHERS}
    with ProtocolServer(Script.of(*answers)) as server:
        result = subprocess.run(
            [sys.executable, "-c", SCRIPT, tmp_path, server.base_url],
            capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120, check=False,
        )  # fmt: skip
        assert [r.credential_digest for r in server.requests] == [hashlib.sha256(key.encode()).hexdigest()] * 2
    assert result.returncode == 1
    assert "ModelError" in result.stderr
    assert re.search(r"DEBUG", result.stderr), "debug output was on"
    secrets = [key, *OTHERS.values()]
    assert search("stdout", result.stdout, secrets) + search("stderr", result.stderr, secrets) == []
    assert search_tree(tmp_path, secrets) == []


def test_the_search_finds_what_is_there(tmp_path):
    """The search itself, in every form, so that an empty result means something."""
    for secret in KEYS.values():
        for number, form in enumerate(forms(secret)):
            (tmp_path / f"{number}.txt").write_text(f"before {form} after")
            assert search_tree(tmp_path, [secret]), form
            (tmp_path / f"{number}.txt").unlink()
        (tmp_path / "b64").write_bytes(base64.b64encode(b"a longer text with " + secret.encode() + b" inside it"))
        assert search_tree(tmp_path, [secret])
        (tmp_path / "b64").unlink()
    assert search_tree(tmp_path, list(KEYS.values())) == []
