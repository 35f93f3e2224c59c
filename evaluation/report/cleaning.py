"""Text of others on its way into a report: made visible and harmless. Escaping for HTML comes on top of it.

Control characters, terminal colours, and characters that turn or hide text (bidirectional controls, zero-width) would
let an agent's text look other than it is; they are shown as their code. In a public report, texts that only graders may
see are blanked wherever they occur.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["WITHHELD", "clean_text", "cleaner"]

WITHHELD: Final = "[withheld]"
_ANSI: Final = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?)")
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)
_SHORTEST: Final = 12
"""Characters from which a private text is blanked: shorter ones (`AUC`, `0.91`) occur in every honest submission."""


def clean_text(text: str) -> str:
    """Text without terminal codes, and with hidden characters shown as `⟨U+202E⟩`."""
    if not text or (text.isascii() and text.isprintable()):
        return text
    plain = _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    return _HIDDEN.sub(lambda found: f"⟨U+{ord(found[0]):04X}⟩", plain)


def cleaner(private: Iterable[str] = ()) -> Callable[[str], str]:
    """`clean_text` that also blanks private texts, whatever their spacing and case."""
    texts = {" ".join(text.split()) for text in private}
    listed = sorted((text for text in texts if len(text) >= _SHORTEST), key=lambda text: (-len(text), text))
    if not listed:
        return clean_text
    spaced = (r"\s+".join(re.escape(word) for word in text.split()) for text in listed)
    pattern = re.compile("|".join(spaced), re.I)
    return lambda text: pattern.sub(WITHHELD, clean_text(text))
