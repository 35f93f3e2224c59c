"""Clearing notebooks: what a run left behind goes, what a person wrote stays."""

from __future__ import annotations

import json
from typing import Any

import pytest

from masking.notebooks import clear_outputs, has_outputs


def notebook(*cells: Any, **more: Any) -> bytes:
    """As `clear_outputs` writes it."""
    value = {"cells": list(cells), "metadata": {}, "nbformat": 4, "nbformat_minor": 5, **more}
    return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass")


def code(**more: Any) -> dict[str, Any]:
    return {"cell_type": "code", "metadata": {}, "source": ["x"], "outputs": [], "execution_count": None, **more}


@pytest.mark.parametrize(
    "left",
    [
        notebook(code(outputs=[{"output_type": "stream", "text": ["1"]}])),
        notebook(code(execution_count=3)),
        notebook(code(attachments={"a.png": {}})),
        notebook(code(metadata={"scrolled": True})),
        notebook(code(), metadata={"widgets": {"state": 1}}),
        notebook({"cell_type": "markdown", "metadata": {}, "source": [], "attachments": {}}),
    ],
)
def test_whatever_a_run_left_behind_is_seen_and_goes(left: bytes) -> None:
    assert has_outputs(left)
    assert not has_outputs(clear_outputs(left))


def test_what_a_person_wrote_stays() -> None:
    clean = notebook(
        code(metadata={"tags": ["parameters"]}), 7, {"cell_type": "markdown", "metadata": {}, "source": ["é \ud800"]},
        metadata={"kernelspec": {"name": "python3"}, "language_info": {"name": "python"}},
    )  # fmt: skip
    assert not has_outputs(clean)
    assert clear_outputs(clean) == clean


def test_cells_behind_something_odd_are_cleared_too() -> None:
    left = notebook("odd", code(execution_count=3), {"cell_type": "code"}, metadata=5)
    cleared = json.loads(clear_outputs(left))
    assert cleared["cells"] == ["odd", code(), {"cell_type": "code", "outputs": [], "execution_count": None}]
    assert cleared["metadata"] == 5


def test_the_third_format_keeps_its_cells_in_sheets() -> None:
    cell = {"cell_type": "code", "input": ["x"], "outputs": [{"text": "0.5"}], "prompt_number": 4}
    data = json.dumps({"worksheets": [{"cells": [cell]}, "none", {"cells": 1}], "nbformat": 3}).encode()
    assert has_outputs(data)
    cleared = json.loads(clear_outputs(data))["worksheets"][0]["cells"][0]
    assert cleared == {"cell_type": "code", "input": ["x"], "outputs": [], "prompt_number": None}


@pytest.mark.parametrize(("data", "message"), [(b"[]", "a JSON object"), (b"[" * 100_000, "nested too deeply")])
def test_what_is_no_notebook_says_why(data: bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        has_outputs(data)
