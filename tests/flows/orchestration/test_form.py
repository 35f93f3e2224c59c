"""The form's schema, which the server checks answers against: without a server."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from flows.review import Answer, Wording, content_digest
from tests.flows.review.support import candidate, review_workspace


def schema(tmp_path: Path, refused: Answer | None = None) -> dict[str, Any]:
    from flows.orchestration.form import form_for

    task = candidate()
    problems = ("The question is empty.",) if refused else ()
    return form_for(review_workspace(tmp_path / "work", task), task, problems, refused).model_json_schema()


def test_texts_are_filled_in_with_title_and_description(tmp_path: Path) -> None:
    fields = schema(tmp_path)["properties"]
    assert fields["question"]["default"] == candidate().question
    assert fields["question"]["title"] == "Question"
    assert "must not" in fields["question"]["description"].lower()
    assert fields["masked"]["default"] == "README.md [removed]"
    assert fields["sources"]["default"] == "scripts/run secret.py [entry]"


@pytest.mark.parametrize(
    ("given", "good"),
    [
        ({"decision": "approve", "reviewer": "Ada"}, True),
        ({"decision": "reject", "reviewer": "Ada", "comment": "wrong"}, True),
        ({"decision": "reject", "reviewer": "Ada", "comment": ""}, False),
        ({"decision": "reject", "reviewer": "Ada"}, False),
        ({"decision": "send back to locate", "reviewer": "Ada", "comment": " \n"}, False),
        ({"decision": "edit", "reviewer": "  "}, False),
        ({"decision": "edit"}, False),
        ({"reviewer": "Ada"}, False),
        ({"decision": "approve", "reviewer": "Ada", "status": "released"}, False),
    ],
)
def test_the_rules_are_in_the_schema(tmp_path: Path, given: dict[str, str], good: bool) -> None:
    if good:
        jsonschema.validate(given, schema(tmp_path))
    else:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(given, schema(tmp_path))


def test_what_was_typed_into_a_refused_form_is_kept(tmp_path: Path) -> None:
    task = candidate()
    wording = Wording.of(task).evolve(question="", method="Typed for an hour.")
    refused = Answer(
        decision="edit", reviewer="Ada", comment="better", wording=wording, shown=content_digest(task), run="r/0"
    )
    fields = schema(tmp_path, refused)["properties"]
    assert fields["method"]["default"] == "Typed for an hour."
    assert (fields["reviewer"]["default"], fields["comment"]["default"]) == ("Ada", "better")
    other = refused.evolve(shown="another content")
    fields = schema(tmp_path / "other", other)["properties"]
    assert fields["method"]["default"] == task.method, (
        "texts that were typed over another content would undo its change"
    )
