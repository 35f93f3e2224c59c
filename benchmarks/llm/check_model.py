"""Check a real endpoint through the layer: chat, streaming, structured output, tools, images, embeddings.

    EXPBENCH_MODEL=... OPENAI_BASE_URL=... [OPENAI_API_KEY=...] \\
        python -m benchmarks.llm.check_model [--embeddings MODEL] [--tools] [--image]

Says for each what the wire gave, whether or not the answer makes sense: a model of 135 million parameters proves the
wire, not the content. The exit code is the number of checks that failed.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from PIL import Image
from pydantic import BaseModel, Field

from pipeline.errors import ExpbenchError
from pipeline.llm import (
    CacheMode,
    CallLedger,
    ExchangeStore,
    ImagePart,
    ModelClient,
    ModelConfig,
    Parameters,
    Reply,
    Request,
    ToolSpec,
    model_config_from_environment,
    user,
)


class Claim(BaseModel):
    """A small schema with the parts that matter: text, number, choice by enumeration, list."""

    metric: str = Field(max_length=40)
    value: float
    higher_is_better: bool
    baselines: list[str] = Field(max_length=3)


class Page(BaseModel):
    """Arguments of the offered tool."""

    number: int


_SENTENCE = "Our method reaches an accuracy of 91.3 % and beats the SVM and the random forest."


class Checks:
    """One check a method; each returns what it saw and raises when the wire is broken."""

    def __init__(self, config: ModelConfig, root: Path, embeddings: str | None) -> None:
        self.root, self.config = root, config
        self.ledger = CallLedger(root / "calls.jsonl")
        self.client = ModelClient(config, store=ExchangeStore(root / "cache"), ledger=self.ledger)
        self.embedder = ModelClient(config.evolve(model=embeddings), ledger=self.ledger) if embeddings else None

    def chat(self) -> str:
        """A plain answer with token counts."""
        reply = self.client.chat(_request("Say hello."))
        return f"{reply.text[:60]!r}, {reply.usage}"

    def stream(self) -> str:
        """The pieces make up the whole."""
        *pieces, reply = self.client.stream(_request("Count from one to five."))
        assert isinstance(reply, Reply)
        joined = "".join(piece.text for piece in pieces if not isinstance(piece, Reply))
        if joined != reply.text:
            raise ValueError(f"the pieces give {joined!r}, the whole is {reply.text!r}")
        return f"{len(pieces)} pieces, usage {'known' if reply.usage else 'unknown'}"

    def structured(self) -> str:
        """A value that fits a schema."""
        got = self.client.structured(_request(f"Extract the claim: {_SENTENCE}"), Claim)
        return f"{got.value!r}, {got.mode}, {got.repairs} repairs"

    def cached(self) -> str:
        """The first answer again, from the store and by replay."""
        again = self.client.chat(_request("Say hello."))
        replay = ModelClient(self.config, store=ExchangeStore(self.root / "cache", CacheMode.REPLAY))
        if not again.cached or replay.chat(_request("Say hello.")).text != again.text:
            raise ValueError("the recorded answer did not come back")
        return "the recorded answer came back"

    def tools(self) -> str:
        """A tool is called."""
        tool = ToolSpec.of("read_page", "Read one page of the paper.", Page)
        reply = self.client.chat(_request("Read page 3 of the paper.").evolve(tools=(tool,)))
        if not reply.tool_calls:
            raise ValueError(f"no tool was called; the answer is {reply.text[:60]!r}")
        return repr(reply.tool_calls)

    def image(self) -> str:
        """An image is taken."""
        data = io.BytesIO()
        Image.new("RGB", (64, 64), (200, 30, 30)).save(data, "PNG")
        reply = self.client.chat(Request(messages=(user("Which colour is it?", ImagePart(data=data.getvalue())),)))
        return f"{reply.text[:60]!r}, {reply.usage}"

    def embeddings(self) -> str:
        """Vectors come back."""
        assert self.embedder is not None
        vectors = self.embedder.embed(["accuracy", "training time"])
        return f"{len(vectors)} vectors of {len(vectors[0])} numbers"

    def close(self) -> None:
        """Close the connections."""
        self.client.close()
        if self.embedder is not None:
            self.embedder.close()


def _request(text: str) -> Request:
    return Request(messages=(user(text),), parameters=Parameters(max_output_tokens=200, temperature=0, seed=1))


def main() -> int:
    """Run the checks and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--embeddings", metavar="MODEL", help="also check this embedding model at the same endpoint")
    parser.add_argument("--tools", action="store_true", help="also check tool calls")
    parser.add_argument("--image", action="store_true", help="also check image input")
    arguments = parser.parse_args()
    try:
        config = model_config_from_environment()
    except ExpbenchError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    failed = 0
    with tempfile.TemporaryDirectory() as scratch:
        checks = Checks(config, Path(scratch), arguments.embeddings)
        wanted: list[Callable[[], str]] = [checks.chat, checks.stream, checks.structured, checks.cached]
        optional = [(checks.tools, arguments.tools), (checks.image, arguments.image)]
        wanted += [check for check, asked in [*optional, (checks.embeddings, bool(arguments.embeddings))] if asked]
        for check in wanted:
            begin = time.perf_counter()
            try:
                outcome = f"ok      {check()}"
            except (ExpbenchError, ValueError) as error:
                failed += 1
                outcome = f"FAILED  {error}"
            print(f"{check.__name__:12} {time.perf_counter() - begin:6.1f} s  {outcome}")
        totals = checks.ledger.totals()
        print(f"{totals.calls} requests, {totals.failed} failed, {totals.input_tokens} + {totals.output_tokens} tokens")
        checks.close()
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
