"""Every liberty that the reader of `response.json` takes: what is taken, what is left out, and what is said of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaluation.harness import response as module
from evaluation.harness.response import parse_response
from evaluation.submission import Conclusion, Response, ResponseDesign
from pipeline.schema import Severity

E, W, I = Severity.ERROR, Severity.WARNING, Severity.INFO  # noqa: E741


def read(value: Any) -> tuple[Response, list[tuple[str, str, Severity]]]:
    """A response, and (where, message, severity) of what was said."""
    response, problems = parse_response(value if isinstance(value, bytes) else json.dumps(value).encode())
    assert response is not None
    assert all(problem.component == "evaluation.response" for problem in problems)
    return response, [(p.where.removeprefix("response.json: "), p.message, p.severity) for p in problems]


def design(value: Any) -> tuple[ResponseDesign, list[tuple[str, str, Severity]]]:
    response, said = read({"design": value})
    return response.design, said


def numbers(value: Any) -> tuple[dict[str, float], list[tuple[str, str, Severity]]]:
    response, said = read({"conclusion": {"text": "t", "numbers": value}})
    return response.conclusion.numbers, said


# --- design


def test_a_design_in_words_is_the_procedure() -> None:
    found, said = design("do this")
    assert found == ResponseDesign(procedure="do this")
    assert said == [("design", "is a text: it is taken as the procedure", W)]


@pytest.mark.parametrize(("value", "kind"), [([], "a list"), (3, "a number"), (True, "true or false"), (None, "null")])
def test_a_design_of_another_kind_is_left_out(value: Any, kind: str) -> None:
    found, said = design(value)
    assert found == ResponseDesign()
    assert said == [("design", f"is {kind}, an object was expected: it is left out", E)]


@pytest.mark.parametrize("group", ["constant", "independent", "dependent"])
@pytest.mark.parametrize("ending", ["", "s", "_variables", " variables", "_variable"])
@pytest.mark.parametrize("inside", [True, False])
def test_groups_are_found_under_their_other_names(group: str, ending: str, inside: bool) -> None:
    name = group + ending
    response, said = read({"design": {name: {"x": "1"}}} if inside else {name: {"x": "1"}})
    assert response.design == ResponseDesign(**{group: {"x": ("1",)}})
    place = f"design.{name}" if inside else name
    assert said == ([] if inside and not ending else [(place, f"is taken as design.{group}", I)])
    assert response.extra == {}


def test_the_design_goes_before_the_top_and_the_documented_name_before_others() -> None:
    response, _ = read({"design": {"constants": {"c": 1}, "constant": {"a": 1}}, "constant": {"b": 1}})
    assert response.design.constant == {"a": ("1",)}


@pytest.mark.parametrize(
    ("group", "found", "said"),
    [
        ({"a": None}, {"a": ()}, []),
        ({"a": [1, None, "x", [2]]}, {"a": ("1", "x", "[2]")}, []),
        ({"a": True}, {"a": ("true",)}, []),
        ({"a": {"values": ["v"], "why": "w"}}, {"a": ("v",)}, []),
        ({"a": {"value": 3}}, {"a": ("3",)}, []),
        ({"a": {"min": 1, "max": "ü"}}, {"a": ("min: 1", "max: ü")}, [(".a", "is an object: its entries are taken as `key: value`", I)]),
        (["a: 1", " b ", "c:"], {"a": ("1",), "b": (), "c": ()}, [("", "is a list: its entries are taken as variables", I)]),
        ("a: 1", {"a": ("1",)}, [("", "is a list: its entries are taken as variables", I)]),
        ([{"name": "a", "values": [1]}, {"variable": "b", "value": 2}, {"name": "c", "description": "d"}, {"e": 5},
          {"name": "f"}], {"a": ("1",), "b": ("2",), "c": ("d",), "e": ("5",), "f": ()},
         [("", "is a list: its entries are taken as variables", I)]),
        ([{"x": 1, "y": 2}], {}, [("", "is a list: its entries are taken as variables", I),
                                  ("", 'an entry without a name is left out: {"x": 1, "y": 2}', W)]),
        ([3, None], {}, [("", "is a list: its entries are taken as variables", I),
                         ("", "an entry that is a number is left out", W), ("", "an entry that is null is left out", W)]),
        (7, {}, [("", "is a number: it is left out", E)]),
        (False, {}, [("", "is true or false: it is left out", E)]),
        (None, {}, []),
    ],
)  # fmt: skip
def test_the_forms_of_a_group(group: Any, found: dict[str, Any], said: list[tuple[str, str, Severity]]) -> None:
    response, problems = read({"design": {"constant": group}})
    assert response.design.constant == found
    assert problems == [(f"design.constant{where}", message, how) for where, message, how in said]


def test_a_procedure_that_is_no_text_is_kept_as_json() -> None:
    assert design({"procedure": ["a", "b"]})[0].procedure == '["a", "b"]'
    assert design({"procedure": "p"})[0].procedure == "p"


# --- conclusion


@pytest.mark.parametrize(
    ("value", "found", "said"),
    [
        ("t", Conclusion(text="t"), [("conclusion", "is a text alone: it states no numbers", I)]),
        ([1], Conclusion(), [("conclusion", "is a list: it is left out", E)]),
        ({"summary": "s"}, Conclusion(text="s"), [("conclusion", "has no `text`: another field is taken", I)]),
        ({"conclusion": "s"}, Conclusion(text="s"), [("conclusion", "has no `text`: another field is taken", I)]),
        ({"answer": "s"}, Conclusion(text="s"), [("conclusion", "has no `text`: another field is taken", I)]),
        ({"text": "t", "summary": "s"}, Conclusion(text="t"), []),
        ({"text": ["t"]}, Conclusion(text='["t"]'), []),
        ({}, Conclusion(), []),
    ],
)  # fmt: skip
def test_the_forms_of_a_conclusion(value: Any, found: Conclusion, said: list[Any]) -> None:
    response, problems = read({"conclusion": value})
    assert (response.conclusion, problems) == (found, said)


N = "conclusion.numbers: "


@pytest.mark.parametrize(
    ("value", "found", "said"),
    [
        ({"a": 1, "b": {"c": 2, "d": {"e": 3}}}, {"a": 1, "b / c": 2, "b / d / e": 3}, []),
        ({"a": {"value": 1, "unit": "s"}}, {"a": 1}, [(N + "a", "is an object: its value is taken", I)]),
        ({"a": {"mean": 1, "name": "n"}}, {"a": 1}, [(N + "a", "is an object: its value is taken", I)]),
        ([{"metric": "m", "value": 2}], {"m": 2}, [(N + "m", "is an object: its value is taken", I)]),
        ([{"value": 2}], {"value": 2}, []),
        ([1, [2, 3]], {"1": 1, "2 / 1": 2, "2 / 2": 3}, []),
        (5, {"value": 5}, []),
        ([{"name": "a", "value": 1}, {"name": "a", "value": 2}], {"a": 1},
         [(N + "a", "is an object: its value is taken", I), (N + "a", "is an object: its value is taken", I),
          (N + "a", "is given more than once: the first is kept", W)]),
        ({"a": True}, {}, [(N + "a", "is true or false, not a number: left out", W)]),
        ({"a": 10**400}, {}, [(N + "a", "is not finite: left out", W)]),
        ({"a": "1e999"}, {}, [(N + "a", "is not finite: left out", W)]),
        ({"a": "about"}, {}, [(N + "a", "is no number: 'about' is left out", W)]),
        ({"a": ""}, {}, [(N + "a", "is no number: '' is left out", W)]),
        ({"a": "%"}, {}, [(N + "a", "is no number: '%' is left out", W)]),
        ({"a": " 1,234.5 % "}, {"a": 1234.5}, [(N + "a", "is the text '1,234.5 %': 1234.5 is taken", I)]),
        ({"a": "1 ± 2"}, {"a": 1}, [(N + "a", "is the text '1 ± 2': 1 is taken", I)]),
        ({"a": "1 +/- 2"}, {"a": 1}, [(N + "a", "is the text '1 +/- 2': 1 is taken", I)]),
        ({"a": "3" + "x" * 20}, {"a": 3}, [(N + "a", f"is the text '3{'x' * 20}': 3 is taken", I)]),
        ({"a": "3" + "x" * 21}, {}, [(N + "a", f"is no number: '3{'x' * 21}' is left out", W)]),
        ({"a": "z" * 70}, {}, [(N + "a", f"is no number: '{'z' * 60}' is left out", W)]),
        ({"a": None}, {}, []), (None, {}, []),
    ],
)  # fmt: skip
def test_the_forms_of_numbers(value: Any, found: dict[str, float], said: list[Any]) -> None:
    assert numbers(value) == (found, said)


def test_infinities_of_json_are_left_out() -> None:
    response, said = read(
        b'{"conclusion": {"text": "t", "numbers": {"a": NaN, "b": -Infinity}}, "more": [NaN, {"x": Infinity}]}'
    )
    assert response.conclusion.numbers == {}
    assert said == [(N + name, "is not finite: left out", W) for name in "ab"]
    assert response.extra == {"more": ["nan", {"x": "inf"}]}


# --- outputs


@pytest.mark.parametrize(
    ("value", "found", "said"),
    [
        ("a.csv", ("a.csv",), []),
        ({"x": "a", "y": "b"}, ("a", "b"), []),
        ([{"path": "a", "what": "b"}, " b ", "./c", "/work/d", "a"], ("a", "b", "c", "d"), []),
        (7, (), [("outputs", "is a number: it is left out", E)]),
        ([{"file": "a"}], (), [("outputs", "an entry that is no path is left out: '{\"file\": \"a\"}'", W)]),
        (["  "], (), [("outputs", "an entry that is no path is left out: '  '", W)]),
        (["a\0b"], (), [("outputs", "an entry that is no path is left out: 'a\\x00b'", W)]),
        ([{"path": 3}], (), [("outputs", "an entry that is no path is left out: '{\"path\": 3}'", W)]),
        (["/etc/x"], (), [("outputs", "'/etc/x' is outside the workspace: left out", W)]),
        (["a/../b"], (), [("outputs", "'a/../b' is outside the workspace: left out", W)]),
        (["..a", "a..b/c"], ("..a", "a..b/c"), []),
    ],
)  # fmt: skip
def test_the_forms_of_outputs(value: Any, found: tuple[str, ...], said: list[Any]) -> None:
    response, problems = read({"outputs": value})
    assert (response.outputs, problems) == (found, said)


# --- the text


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'\xef\xbb\xbf{"outputs": "a"}', [("encoding", "begins with a byte order mark", I)]),
        (b'```json \r\n{"outputs": "a"}\n```\n', [("form", "stands in a Markdown fence", I)]),
        (b'{"outputs": ["a",],}', [("form", "holds trailing commas", I)]),
        (b'{"outputs": "a", "x": "\xff"}', [("encoding", "is not UTF-8: undecodable bytes are replaced", W)]),
        (b'{"outputs": "a", "x": "\xef\xbf\xbd"}', []),
    ],
)  # fmt: skip
def test_the_forms_of_the_text(data: bytes, said: list[Any]) -> None:
    response, problems = read(data)
    assert response.outputs == ("a",)
    assert problems == said


@pytest.mark.parametrize(
    ("data", "where", "said"),
    [
        (b"[1]", "top level", "is a list, an object was expected"), (b'"x"', "top level", "is a text, an object was expected"),
        (b"```\n{}", "form", "is no JSON: "), (b"{1}", "form", "is no JSON: "),
        (b"[" * 5000, "form", "is nested too deeply"), (b"[" * 5000 + b",]", "form", "is nested too deeply"),
    ],
)  # fmt: skip
def test_what_is_no_response_is_said_as_an_error(data: bytes, where: str, said: str) -> None:
    response, problems = parse_response(data)
    assert response is None
    [problem] = problems
    assert (problem.where, problem.severity) == (f"response.json: {where}", E)
    assert problem.message.startswith(said)


def test_unknown_keys_are_kept_and_known_ones_are_not_repeated() -> None:
    response, said = read({"note": "n", "design": {}, "constants": {}, "conclusion": {}, "outputs": []})
    assert response.extra == {"note": "n"}
    assert said == [("constants", "is taken as design.constant", I)]


# --- bounds


def test_what_is_too_long_is_cut_at_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST", 10)
    response, said = read({"note": "x" * 10, "much": "y" * 11})
    assert response.extra == {"note": "x" * 10, "much": "y" * 10}
    assert said == [("much", "is longer than 10 characters: the rest is left out", W)]


def test_the_place_of_a_problem_is_its_path() -> None:
    deep: Any = "x"
    for _ in range(40):
        deep = [deep]
    response, said = read({"a": {"b": deep}})
    assert said == [("a.b", "is nested too deeply: it is left out", W)]
    assert response.extra != {}
    assert read({"a": deep[0][0]})[1] == []


def test_no_more_than_so_many_of_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_ITEMS", 3)
    assert len(read({"design": {"constant": {str(n): n for n in range(5)}}})[0].design.constant) == 3
    assert len(read({"design": {"constant": [str(n) for n in range(5)]}})[0].design.constant) == 3
    assert len(read({"design": {"constant": {"v": list(range(5))}}})[0].design.constant["v"]) == 3
    assert len(read({"design": {"constant": {"v": {str(n): n for n in range(5)}}}})[0].design.constant["v"]) == 3
    assert len(read({"outputs": [str(n) for n in range(5)]})[0].outputs) == 3
    found, said = numbers({str(n): n for n in range(5)})
    assert found == {"0": 0, "1": 1, "2": 2}
    assert said == [("conclusion.numbers", "holds 3 numbers: what comes behind them is left out", W)]
    assert numbers({"0": 0, "1": 1})[1] == []
