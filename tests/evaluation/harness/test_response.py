"""`response.json` as agents write it: liberties are taken by rule and named, nothing is guessed."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
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


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(JSON)
def test_any_json_is_read_without_failing_and_can_be_stored(value: Any) -> None:
    response, _ = parse_response(json.dumps(value).encode())
    assert (response is not None) == isinstance(value, dict)
    if response is not None:
        assert all(math.isfinite(number) for number in response.conclusion.numbers.values())
        assert Response.model_validate_json(response.model_dump_json()) == response


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.sampled_from(["design", "conclusion", "outputs", "constants"]), JSON))
def test_any_value_at_a_known_place_is_read_without_failing(value: dict[str, Any]) -> None:
    response, _ = parse_response(json.dumps(value).encode())
    assert response is not None


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_failing(data: bytes) -> None:
    parse_response(data)


@pytest.mark.parametrize("depth", [41, 300, 900])
def test_nesting_is_bounded_and_said(depth: int) -> None:
    """`extra` of 300 levels made the harness fail instead of the response, and 600 levels ended it with a traceback."""
    nested = b"[" * depth + b"1" + b"]" * depth
    response, problems = parse_response(b'{"conclusion": {"text": "yes"}, "notes": ' + nested + b"}")
    assert response is not None
    assert response.conclusion.text == "yes"
    assert any("nested too deeply" in problem.message for problem in problems)
    assert Response.model_validate_json(response.model_dump_json()) == response


def test_half_characters_are_replaced_so_that_the_response_can_be_kept() -> None:
    data = b'{"conclusion": {"text": "a\\ud800b", "numbers": {"x\\udc00": 1}}, "outputs": ["\\ud800"], "\\udfff": "\\ud800"}'
    response, problems = parse_response(data)
    assert response is not None
    assert response.conclusion.text == "a\ufffdb"
    assert response.conclusion.numbers == {"x\ufffd": 1.0}
    response.model_dump_json()
    for problem in problems:
        problem.model_dump_json()


def test_a_text_is_cut_at_a_length_and_said() -> None:
    response, problems = parse_response(json.dumps({"conclusion": {"text": "word " * 20_000}}).encode())
    assert response is not None
    assert len(response.conclusion.text) == 30_000
    assert [problem.where for problem in problems] == ["response.json: conclusion.text"]


def test_more_numbers_than_are_read_are_said() -> None:
    response, problems = parse_response(json.dumps({"conclusion": {"numbers": list(range(6000))}}).encode())
    assert response is not None
    assert len(response.conclusion.numbers) == 5000
    assert any("left out" in problem.message for problem in problems)


@pytest.mark.parametrize(
    "data",
    [b"```json\n" + b"\n" * 300_000 + b"{}", b'{"a": ' + b", " * 200_000 + b"x}", b'{"a":' + b'"a' * 200_001 + b"x}"],
)
def test_a_response_that_is_hard_to_read_is_given_up_at_once(data: bytes) -> None:
    """The fence of line breaks took the harness more than five minutes, and with it all episodes of the run."""
    response, problems = parse_response(data)
    assert response is None
    assert problems


def test_a_fence_may_have_spaces_and_line_breaks_around_it() -> None:
    for text in (
        '\n```json\n{"outputs": ["a"]}\n```\n',
        '```\r\n{"outputs": ["a"]}\r\n```',
        '``` \n\n{"outputs": ["a"]}```',
    ):
        response, problems = parse_response(text.encode())
        assert response is not None
        assert response.outputs == ("a",)
        assert [problem.message for problem in problems][:1] == ["stands in a Markdown fence"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("−0.5", -0.5), ("1.2e−3", 1.2e-3), ("1.2 × 10^-3", 1.2e-3), ("3.4×10⁻⁵", 3.4e-5), ("10^{6}", 1e6),
        ("2.5 \\times 10^{-4}", 2.5e-4), ("−87.3 %", -87.3), ("1,234.5", 1234.5), ("85.2 ± 0.3", 85.2),
    ],
)  # fmt: skip
def test_numbers_as_people_write_them(text: str, value: float) -> None:
    assert parsed({"conclusion": {"numbers": {"a": text}}}).conclusion.numbers == {"a": pytest.approx(value)}


@pytest.mark.parametrize("text", ["5-10", "> 5", "1,5", "12 345", "1_000", "nan", "-inf", "1e400", "3/10", "2.3.4"])
def test_what_is_not_one_number_is_left_out_and_said(text: str) -> None:
    response, problems = parse_response(json.dumps({"conclusion": {"numbers": {"a": text}}}).encode())
    assert response is not None
    assert response.conclusion.numbers == {}
    assert problems
