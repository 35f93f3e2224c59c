"""One thing that a run needs besides its code, and the sentence that says so.

Stored tasks keep the sentence (`file data/a.csv (train.py:12)`); what reads one takes it apart here and nowhere else.
"""

from __future__ import annotations

import re
from typing import Final, Literal, Self

from pydantic import Field

from pipeline.schema import Record

__all__ = ["Need", "NeedKind"]

NeedKind = Literal[
    "file",
    "checkpoint",
    "download",
    "data set or model",
    "data set",
    "simulation",
    "environment variable",
    "URL",
    "path",
]
_STATED: Final = re.compile(
    r"(?P<kind>file|checkpoint|download|data set or model|data set|simulation|environment variable|URL|path) "
    r"(?P<name>.+?)(?: \((?P<path>[^()]+):(?P<line>\d+)\))?"
)


class Need(Record):
    """A file, a download, a data set, a simulation or an environment variable."""

    kind: NeedKind
    name: str
    """A path, a URL, a name; in backquotes an expression whose value is only known when it runs."""
    path: str | None = None
    """The file that needs it."""
    line: int | None = Field(default=None, ge=1)

    @property
    def text(self) -> str:
        """The sentence: `checkpoint weights.pt (eval.py:7)`."""
        place = f" ({self.path}:{self.line})" if self.path is not None and self.line is not None else ""
        return f"{self.kind} {self.name}{place}"

    @property
    def open(self) -> bool:
        """Is its name only known when it runs?"""
        return self.name.startswith("`")

    @classmethod
    def read(cls, text: str) -> Self | None:
        """The need that a sentence states; None where it is none of this form, as other tools write them."""
        found = _STATED.fullmatch(text)
        if found is None:
            return None
        line = int(found["line"]) if found["line"] else None
        return cls.model_validate({"kind": found["kind"], "name": found["name"], "path": found["path"], "line": line})
