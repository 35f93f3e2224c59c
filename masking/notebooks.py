"""Clearing notebook outputs: cells keep their source, everything that a run left behind goes."""

from __future__ import annotations

import json
from typing import Any

__all__ = ["clear_outputs", "has_outputs"]

_KEPT_METADATA = ("kernelspec", "language_info")
_KEPT_CELL_METADATA = ("tags",)


def _load(data: bytes) -> dict[str, Any]:
    try:
        notebook = json.loads(data)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(notebook, dict):
        raise ValueError("a notebook is a JSON object")
    return notebook


def _groups(notebook: dict[str, Any]) -> list[dict[str, Any]]:
    sheets = notebook.get("worksheets")  # notebook format 3
    groups = [notebook, *(sheets if isinstance(sheets, list) else [])]
    return [group for group in groups if isinstance(group, dict) and isinstance(group.get("cells"), list)]


def has_outputs(data: bytes) -> bool:
    """Does any cell hold an output, an attachment, an execution count or a widget's state?

    Raises:
        ValueError: not a notebook.
    """
    return clear_outputs(data) != _dump(_load(data))


def clear_outputs(data: bytes) -> bytes:
    """The notebook without outputs, execution counts, attachments and run-time metadata.

    Raises:
        ValueError: not a notebook.
    """
    notebook = _load(data)
    metadata = notebook.get("metadata")
    if isinstance(metadata, dict):
        notebook["metadata"] = {name: value for name, value in metadata.items() if name in _KEPT_METADATA}
    for group in _groups(notebook):
        for cell in group["cells"]:
            if not isinstance(cell, dict):
                continue
            cell.pop("attachments", None)
            if isinstance(cell.get("metadata"), dict):
                cell["metadata"] = {
                    name: value for name, value in cell["metadata"].items() if name in _KEPT_CELL_METADATA
                }
            if cell.get("cell_type") == "code":
                cell["outputs"] = []
                cell["prompt_number" if "prompt_number" in cell else "execution_count"] = None
    return _dump(notebook)


def _dump(notebook: dict[str, Any]) -> bytes:
    return (json.dumps(notebook, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")
