"""The submission: what an agent handed in. The one thing that is graded, together with the trajectory that made it.

The agent writes `response.json` (a `Response`) and `reproduce.sh` into the root of its workspace; the patch is taken by
the harness, by comparing the workspace with the masked commit. A part that is missing or unreadable is said in
`problems`, and the rest is graded all the same.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field, JsonValue

from pipeline.schema import Problem, Record, StoredRecord

__all__ = ["REPRODUCE", "RESPONSE", "ChangedFile", "Conclusion", "Response", "ResponseDesign", "Submission"]

RESPONSE = "response.json"
REPRODUCE = "reproduce.sh"


class ResponseDesign(Record):
    """The experimental design as the agent states it: variable name -> its values."""

    constant: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    independent: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    dependent: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    procedure: str = ""

    def texts(self) -> list[str]:
        """All that it says: the procedure, and each variable's name and values."""
        variables = [*self.constant.items(), *self.independent.items(), *self.dependent.items()]
        return [self.procedure, *(text for name, values in variables for text in (name, *values))]


class Conclusion(Record):
    """The answer: in words, and the numbers it rests on."""

    text: str = ""
    numbers: dict[str, float] = Field(default_factory=dict)
    """Name (metric and condition in the agent's own words) -> value."""


class Response(Record):
    """What `response.json` holds, after documented normalisation (lists and single values become tuples of text)."""

    design: ResponseDesign = ResponseDesign()
    conclusion: Conclusion = Conclusion()
    outputs: tuple[str, ...] = ()
    """Files that `reproduce.sh` produces, relative to the workspace."""
    extra: dict[str, JsonValue] = Field(default_factory=dict)
    """Keys that we do not know; kept, never graded."""


class ChangedFile(Record):
    """A file that the patch adds, changes or removes."""

    path: str
    action: Literal["added", "modified", "deleted"]
    size: int = 0
    binary: bool = False


class Submission(StoredRecord):
    """What was taken from the workspace; the files themselves lie beside it (`patch.diff`, `files/`)."""

    SCHEMA_VERSION: ClassVar[int] = 1

    response: Response | None = None
    """None: there was none, or it could not be read (`problems` says which)."""
    reproduce: bool = False
    """Is there a `reproduce.sh`?"""
    changed: tuple[ChangedFile, ...] = ()
    patch_sha256: str = ""
    """Empty: nothing was changed."""
    patch_bytes: int = 0
    truncated: tuple[str, ...] = ()
    """Paths left out of the patch because of a size limit."""
    redacted: tuple[str, ...] = ()
    """Paths in which a secret was blanked."""
    problems: tuple[Problem, ...] = ()
