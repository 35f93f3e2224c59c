"""Base classes of everything that crosses a boundary: immutable, closed, versioned when stored."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

__all__ = ["Problem", "Record", "Severity", "StoredRecord"]


class Record(BaseModel):
    """An immutable value with a closed set of fields."""

    model_config = ConfigDict(extra="forbid", frozen=True, ser_json_inf_nan="strings", val_json_bytes="base64")

    def evolve(self, **changes: Any) -> Self:
        """A validated copy with some fields changed (`model_copy` does not validate).

        Raises:
            pydantic.ValidationError: a changed field does not fit its type.
        """
        values = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(values | changes)


class StoredRecord(Record):
    """A record that is written to disk: carries its schema version and migrates forward when read.

    Subclasses raise `SCHEMA_VERSION` and override `migrate` when their fields change.
    """

    SCHEMA_VERSION: ClassVar[int] = 1
    schema_version: int = Field(default=1, ge=1)

    @classmethod
    def migrate(cls, data: dict[str, Any], version: int) -> dict[str, Any]:
        """Bring `data`, written at `version`, to `SCHEMA_VERSION`. The base has nothing to do."""
        return data

    @model_validator(mode="before")
    @classmethod
    def _migrate_forward(cls, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        version = int(data.get("schema_version", cls.SCHEMA_VERSION))
        if version > cls.SCHEMA_VERSION:
            raise ValueError(
                f"{cls.__name__} was written with schema version {version}, this expbench knows up to "
                f"{cls.SCHEMA_VERSION}: upgrade expbench to read it"
            )
        if version < cls.SCHEMA_VERSION:
            data = cls.migrate(dict(data), version)
        return {**data, "schema_version": cls.SCHEMA_VERSION}


class Severity(StrEnum):
    """How much a problem takes away from a result."""

    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


class Problem(Record):
    """Something that went wrong at a known place without ending the stage (partial results are first class)."""

    component: str
    """Dotted name of the part that reports, e.g. `extract.ocr`."""
    where: str
    """Page, file or object, e.g. `page 3` or `scripts/run.py`."""
    message: str
    severity: Severity = Severity.WARNING
