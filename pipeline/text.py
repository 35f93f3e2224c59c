"""Small text helpers that several stages share."""

from __future__ import annotations

import re
import unicodedata

__all__ = ["shorten", "slug"]


def slug(text: str, limit: int) -> str:
    """ASCII lower-case words joined by hyphens, at most `limit` characters, cut at a word where possible.

    Empty when nothing of the text is a letter or digit.
    """
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    words = re.findall(r"[a-z0-9]+", plain)
    result = ""
    for word in words:
        candidate = f"{result}-{word}" if result else word[:limit]
        if len(candidate) > limit:
            break
        result = candidate
    return result


def shorten(text: str, limit: int) -> str:
    """One line of at most `limit` characters, ending in an ellipsis when cut."""
    line = " ".join(text.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"
