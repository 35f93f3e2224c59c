"""`POST /v1/embeddings`: deterministic unit vectors by feature hashing, so that texts that share words are near.

Not a stand-in for a model's quality: it makes an index's wiring and ranking testable.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
import struct
from typing import Any

from tests.doubles.protocol_server._exchange import Rejection

__all__ = ["DIMENSIONS", "check", "embedding", "respond"]

DIMENSIONS = 64
_WORD = re.compile(r"\w+")


def embedding(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """A unit vector: each word adds +-1 at a place given by its digest."""
    vector = [0.0] * dimensions
    for word in _WORD.findall(text.lower()) or [text]:
        digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).digest()
        vector[int.from_bytes(digest[:4], "big") % dimensions] += 1.0 if digest[4] & 1 else -1.0
    norm = math.sqrt(sum(value * value for value in vector))
    if norm == 0.0:  # opposite signs met at the same place
        vector[0], norm = 1.0, 1.0
    return [value / norm for value in vector]


def _inputs(value: Any) -> list[str] | None:
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list) or not value:
        return None
    if all(isinstance(item, int) for item in value):
        return [" ".join(map(str, value))]  # one text as tokens
    texts = [
        item if isinstance(item, str) else " ".join(map(str, item)) if isinstance(item, list) else None
        for item in value
    ]
    return [text for text in texts if text is not None] if all(text is not None for text in texts) else None


def check(body: dict[str, Any]) -> Rejection | None:
    """OpenAI's rules: texts or token lists, none empty, at most 2048."""
    texts = _inputs(body.get("input"))
    if texts is None or any(not text for text in texts):
        return Rejection(400, "'$.input' is invalid. Please check the API reference.", None, "input")
    if len(texts) > 2048:
        return Rejection(400, f"'$.input' is invalid: at most 2048 inputs, got {len(texts)}.", None, "input")
    dimensions = body.get("dimensions", DIMENSIONS)
    if not isinstance(dimensions, int) or dimensions < 1:
        return Rejection(400, "'dimensions' must be at least 1.", None, "dimensions")
    return None


def respond(body: dict[str, Any]) -> dict[str, Any]:
    """The body of the answer, as numbers or (the official client's default) as base64 of little-endian float32."""
    texts = _inputs(body["input"]) or []
    data = []
    for index, text in enumerate(texts):
        vector = embedding(text, body.get("dimensions", DIMENSIONS))
        packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode("ascii")
        value: Any = packed if body.get("encoding_format") == "base64" else vector
        data.append({"object": "embedding", "index": index, "embedding": value})
    tokens = sum(max(1, len(text) // 4) for text in texts)
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": body["model"], "usage": usage}
