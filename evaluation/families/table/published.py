"""The fields of a published `task.yaml` (PRBench A.1), as they are written; unknown ones are named.

Scalars are read as text and typed by the field they belong to. Beside the published fields, a task may state how its
tables are compared:

```yaml
banned_libraries: [tenpy]
comparison:
  tolerance: 0.01                 # relative; of all tables
  absolute_tolerance: 1.0e-9
  files:
    data/fig2.csv:
      tolerance: 0.05
      keys: [alpha]               # which row is which
      columns: {"Open, S=1": 0.1} # columns with a tolerance of their own
      alignment: interpolate      # or key, position
      trend: false
      weight: 2
```

`tolerance`, `absolute_tolerance`, `tolerances` (table -> tolerance) and `key_columns` (table -> columns) are also taken
at the top level and below `grading`; a table may be named by its file name alone.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from evaluation.families.table.records import Alignment

__all__ = ["ComparisonBlock", "FileBlock", "PublishedTableTask", "unknown_fields"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt]?)i?b?", re.IGNORECASE)
_UNITS = {"": 1 / (1 << 20), "k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0 * 1024}


def _megabytes(value: Any) -> Any:
    match = _SIZE.fullmatch(str(value).strip())
    if not match:
        raise ValueError("is no size such as `2g` or `512m`")
    return max(1, round(float(match[1]) * _UNITS[match[2].lower()]))


def _list(value: Any) -> Any:
    """A single name for a list of one; nothing for an empty list."""
    if value is None or value == "":
        return []
    return [value] if isinstance(value, str) else value


Names = Annotated[list[str], BeforeValidator(_list)]


class _Block(BaseModel):
    """A mapping; what it does not know is kept in `model_extra`."""

    model_config = ConfigDict(extra="allow", frozen=True)


class PaperBlock(_Block):
    """`paper:`."""

    title: str = Field(min_length=1)
    author: str = ""
    doi: str = ""
    year: int | None = Field(default=None, ge=1500, le=2500)
    paper_file: str = Field(min_length=1)


class OutputsBlock(_Block):
    """`expected_outputs:`."""

    analysis: Names = []
    code: Names = []
    data: Names = []


class DockerBlock(_Block):
    """`docker:`."""

    image: str = "python:3.11-slim"
    memory_limit: Annotated[int, BeforeValidator(_megabytes)] = 2048
    timeout: int = Field(default=3600, gt=0, le=7 * 24 * 3600)
    pip_install: Names = []


class DimensionBlock(_Block):
    """An item of `grading.dimensions`."""

    name: str = Field(min_length=1)
    weight: float = Field(ge=0, le=1)
    description: str = ""


class GradingBlock(_Block):
    """`grading:`; what it says about comparing is read with the rest of it."""

    dimensions: list[DimensionBlock] = []
    tolerance: Any = None
    absolute_tolerance: Any = None
    tolerances: Any = None
    key_columns: Any = None


class CodeOnlyBlock(_Block):
    """`code_only:`."""

    instruction_suffix: str = ""
    expected_outputs: OutputsBlock = OutputsBlock()
    grading: GradingBlock = GradingBlock()


class FileBlock(_Block):
    """`comparison.files.<path>:`."""

    tolerance: float | None = Field(default=None, ge=0)
    absolute_tolerance: float | None = Field(default=None, ge=0)
    keys: Annotated[list[str] | None, BeforeValidator(lambda value: None if value is None else _list(value))] = None
    columns: dict[str, float] = {}
    alignment: Alignment = "key"
    trend: bool = True
    weight: float = Field(default=1.0, gt=0)


class ComparisonBlock(_Block):
    """`comparison:`."""

    tolerance: float | None = Field(default=None, ge=0)
    absolute_tolerance: float | None = Field(default=None, ge=0)
    files: dict[str, FileBlock] = {}


def _gathered(data: Any) -> Any:
    """`task.yaml` with what it says about comparing, wherever it says it, under `comparison`."""
    if not isinstance(data, dict) or not isinstance(data.get("comparison", {}), dict):
        return data
    data = dict(data)
    comparison = dict(data.get("comparison", {}))
    files = comparison.get("files", {})
    files = (
        {str(k): dict(v) if isinstance(v, dict) else v for k, v in files.items()} if isinstance(files, dict) else files
    )
    grading = data.get("grading")
    places = [data, grading] if isinstance(grading, dict) else [data]
    for place in places:
        for name in ("tolerance", "absolute_tolerance"):
            if name in place:
                comparison.setdefault(name, place[name])
        for name, field in (("tolerances", "tolerance"), ("key_columns", "keys")):
            said = place.get(name)
            for path, value in said.items() if isinstance(said, dict) and isinstance(files, dict) else ():
                entry = files.setdefault(_full(str(path), data), {})
                if isinstance(entry, dict):
                    entry.update(value if isinstance(value, dict) else {field: value})
    if isinstance(files, dict):
        files = {_full(path, data): value for path, value in files.items()}
    if files:
        comparison["files"] = files
    if comparison:
        data["comparison"] = comparison
    return {name: value for name, value in data.items() if name not in _ELSEWHERE}


_ELSEWHERE = frozenset({"tolerance", "absolute_tolerance", "tolerances", "key_columns"})


def _full(path: str, data: dict[str, Any]) -> str:
    """A table as `expected_outputs` names it."""
    outputs = data.get("expected_outputs")
    expected = outputs.get("data") if isinstance(outputs, dict) else None
    names = [item for item in expected if isinstance(item, str)] if isinstance(expected, list) else []
    if path in names:
        return path
    return next((name for name in names if name.rsplit("/", 1)[-1] == path), path)


class PublishedTableTask(_Block):
    """`task.yaml`."""

    task_id: str = Field(min_length=1)
    paper: PaperBlock
    instruction_file: str = "instruction.md"
    metadata_file: str = "metadata.md"
    evaluation_file: str = ""
    """What the paper's appendix calls `metadata_file`."""
    ground_truth_data_dir: str = "data"
    ground_truth_code_dir: str = ""
    input_files: Names = []
    expected_outputs: OutputsBlock = OutputsBlock()
    docker: DockerBlock = DockerBlock()
    grading: GradingBlock = GradingBlock()
    code_only: CodeOnlyBlock | None = None
    banned_libraries: Names = []
    comparison: ComparisonBlock = ComparisonBlock()

    @model_validator(mode="before")
    @classmethod
    def _gather(cls, data: Any) -> Any:
        return _gathered(data)


def unknown_fields(block: BaseModel, prefix: str = "") -> list[str]:
    """Dotted names of fields that nothing here reads, sorted."""
    found = [f"{prefix}{name}" for name in (block.model_extra or {})]
    for name in type(block).model_fields:
        value = getattr(block, name)
        if isinstance(value, BaseModel):
            found += unknown_fields(value, f"{prefix}{name}.")
    return sorted(found)
