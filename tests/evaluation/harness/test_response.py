"""`response.json` as agents write it: liberties are taken by rule and named, nothing is guessed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.families.experiment import EXAMPLE
from evaluation.harness.response import parse_response
from evaluation.submission import Response

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=15,
)


def parsed(value: Any) -> Response:
    response, _ = parse_response(json.dumps(value).encode())
    assert response is not None
    return response


def test_the_documented_form_is_taken_without_a_word() -> None:
    response, problems = parse_response(json.dumps(EXAMPLE).encode())
    assert problems == ()
    assert response is not None
    assert response.design.independent == {"wing width": ("4 cm", "8 cm")}
    assert response.conclusion.numbers == {"mean distance, 4 cm (m)": 3.1, "mean distance, 8 cm (m)": 4.6}
    assert response.outputs == ("results/distances.csv",)


@pytest.mark.parametrize(
    "design",
    [
        {"design": {"constant": {"n": [5, True, 0.5]}}},
        {"design": {"constants": {"n": ["5", "true", "0.5"]}}},
        {"design": {"constant_variables": [{"name": "n", "values": ["5", "true", "0.5"]}]}},
        {"constant": {"n": {"values": ["5", "true", "0.5"]}}},
        {"design": {"constant": [{"n": ["5", "true", "0.5"]}]}},
    ],
)
def test_designs_mean_the_same_in_every_accepted_form(design: dict[str, Any]) -> None:
    assert parsed(design).design.constant == {"n": ("5", "true", "0.5")}


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ({"a": "87.3%"}, {"a": 87.3}),
        ({"a": "1,234.5"}, {"a": 1234.5}),
        ({"a": "0.91 ± 0.02"}, {"a": 0.91}),
        ({"a": {"b": 1, "c": 2}}, {"a / b": 1, "a / c": 2}),
        ([{"name": "a", "value": 3}], {"a": 3}),
        ({"a": [1, 2]}, {"a / 1": 1, "a / 2": 2}),
        ({"a": None, "b": True, "c": "about ten", "d": "-.5e3", "e": 10**400}, {"d": -500}),
    ],
)
def test_numbers(numbers: Any, expected: dict[str, float]) -> None:
    assert parsed({"conclusion": {"text": "x", "numbers": numbers}}).conclusion.numbers == expected


def test_a_conclusion_that_is_a_text_states_no_numbers() -> None:
    assert parsed({"conclusion": "A is better"}).conclusion.text == "A is better"


def test_outputs_outside_the_workspace_are_left_out() -> None:
    response, problems = parse_response(
        json.dumps({"outputs": ["/work/a.csv", "./b.csv", "../c.csv", "/etc/passwd", 3, "a.csv"]}).encode()
    )
    assert response is not None
    assert response.outputs == ("a.csv", "b.csv")
    assert len(problems) == 3


@pytest.mark.parametrize(
    "text",
    [
        '\ufeff{"conclusion": "x"}',
        '```json\n{"conclusion": "x"}\n```',
        '{"conclusion": "x",}',
        '{"a": NaN, "conclusion": "x"}',
    ],
)
def test_unusual_json_is_read_and_named(text: str) -> None:
    response, problems = parse_response(text.encode())
    assert response is not None
    assert response.conclusion.text == "x"
    assert problems


def test_commas_inside_texts_stay() -> None:
    response, _ = parse_response(b'{"conclusion": "a, ] and , }",}')
    assert response is not None
    assert response.conclusion.text == "a, ] and , }"


@pytest.mark.parametrize("data", [b"", b"not json", b"[1, 2]", b"\xff\xfe\x00", b"[" * 100_000, b"null"])
def test_what_is_no_object_gives_no_response_and_a_reason(data: bytes) -> None:
    response, problems = parse_response(data)
    assert response is None
    assert problems or data == b"null"


@given(JSON)
def test_any_json_is_read_without_failing_and_can_be_stored(value: Any) -> None:
    response, _ = parse_response(json.dumps(value).encode())
    assert (response is not None) == isinstance(value, dict)
    if response is not None:
        assert all(math.isfinite(number) for number in response.conclusion.numbers.values())
        assert Response.model_validate_json(response.model_dump_json()) == response


@given(st.dictionaries(st.sampled_from(["design", "conclusion", "outputs", "constants"]), JSON))
def test_any_value_at_a_known_place_is_read_without_failing(value: dict[str, Any]) -> None:
    response, _ = parse_response(json.dumps(value).encode())
    assert response is not None


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_failing(data: bytes) -> None:
    parse_response(data)
