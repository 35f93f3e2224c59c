"""What the server keeps of each request: enough to assert on, nothing that must not be kept.

Credentials are never stored: a flag and a digest tell whether and which one was sent. Image data is replaced by its
digest, so that recordings stay small and readable.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from pipeline.schema import Record

__all__ = ["Outcome", "RecordedImage", "RecordedRequest", "safe_headers", "safe_path", "without_images"]

Outcome = str
"""`turn <n>` (number in the script), `default`, `computed` (embeddings, models, token counts), `rejected <status>`."""

_CREDENTIALS = frozenset(
    {"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie", "x-goog-api-key", "x-auth-token"}
)
_QUERY_CREDENTIALS = frozenset({"key", "api_key", "api-key", "token", "access_token"})
_DATA_URL = re.compile(r"^data:(?P<type>[\w.+/-]+);base64,(?P<data>.*)$", re.DOTALL)


class RecordedImage(Record):
    """An image that a request carried."""

    media_type: str | None
    """None for an image that was given by its address only."""
    sha256: str
    """Of the bytes; of the address when only that was sent."""
    size: int
    """Bytes; 0 when only an address was sent."""


class RecordedRequest(Record):
    """One request as it arrived, in the order of arrival."""

    number: int
    """From 1."""
    method: str
    path: str
    headers: dict[str, str]
    """Lower-case names, without credentials."""
    credential_sent: bool
    credential_digest: str | None
    """sha256 of the credential's value without `Bearer `."""
    body: Any
    """Parsed JSON, image data replaced by digests; None when there was none or it was no JSON."""
    images: tuple[RecordedImage, ...] = ()
    outcome: Outcome


def safe_headers(headers: Mapping[str, str]) -> tuple[dict[str, str], str | None]:
    """The headers without credentials, and the first credential."""
    kept: dict[str, str] = {}
    credential = None
    for name, value in headers.items():
        if name.lower() in _CREDENTIALS:
            credential = credential or value.removeprefix("Bearer ").strip() or None
        else:
            kept[name.lower()] = value
    return kept, credential


def safe_path(target: str) -> str:
    """The request target with credentials in its query blanked."""
    parts = urlsplit(target)
    if not parts.query:
        return target
    query = [(k, "***" if k.lower() in _QUERY_CREDENTIALS else v) for k, v in parse_qsl(parts.query, True)]
    return urlunsplit(parts._replace(query=urlencode(query)))


def without_images(value: Any, found: list[RecordedImage]) -> Any:
    """A copy whose images are replaced by their digests, which are appended to `found`.

    Knows OpenAI's `image_url` (chat), `input_image` (responses) and Anthropic's `source` objects.
    """
    if isinstance(value, list):
        return [without_images(item, found) for item in value]
    if not isinstance(value, dict):
        return value
    if value.get("type") == "base64" and isinstance(value.get("data"), str):
        return {**value, "data": _digest(value["data"], str(value.get("media_type")), found)}
    copy = {key: without_images(item, found) for key, item in value.items()}
    address = value.get("image_url")
    if isinstance(address, dict) and isinstance(address.get("url"), str):
        copy["image_url"] = {**address, "url": _digest_url(address["url"], found)}
    elif isinstance(address, str):
        copy["image_url"] = _digest_url(address, found)
    return copy


def _digest_url(url: str, found: list[RecordedImage]) -> str:
    match = _DATA_URL.match(url)
    if match:
        return _digest(match["data"], match["type"], found)
    found.append(RecordedImage(media_type=None, sha256=hashlib.sha256(url.encode()).hexdigest(), size=0))
    return url


def _digest(data: str, media_type: str, found: list[RecordedImage]) -> str:
    try:
        raw = base64.b64decode(data, validate=True)
    except binascii.Error:
        raw = data.encode()  # not base64 after all: keep the digest of what was sent
    image = RecordedImage(media_type=media_type, sha256=hashlib.sha256(raw).hexdigest(), size=len(raw))
    found.append(image)
    return f"{media_type};sha256={image.sha256};bytes={image.size}"
