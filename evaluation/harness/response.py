"""Reading `response.json` as agents really write it; every liberty that is taken is a problem that names it.

What is accepted beside the documented form (`evaluation.submission.Response`):

- the text: a byte order mark, a Markdown fence around the object, trailing commas, NaN and infinities, escapes that
  are half a character (replaced);
- the design: `constants`, `constant_variables`, `independent_variables`, ... for the three groups, at the top level
  too; a group as a list of names, of `name: value` texts or of `{name, values}` objects; values as one text,
  number, boolean or nested list;
- the conclusion: a text alone; `numbers` as a list of `{name, value}` objects or as nested objects, whose keys are then
  joined by ` / `; numbers as text (`"87.3%"`, `"1,234.5"`, `"−1.2 × 10^-3"`; a `±` part is dropped);
- `outputs`: one text, or a list with other values.

Nothing is guessed beyond that: what fits none of these is left out, and a problem says so. What an agent may write is
bounded in depth and length, so that nothing behind this page meets a text that it cannot read in time.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, Final

from pydantic import JsonValue

from evaluation.submission import RESPONSE, Conclusion, Response, ResponseDesign
from pipeline.schema import Problem, Severity
from pipeline.validation.numbers import plain_exponents

__all__ = ["parse_response"]

_COMPONENT: Final = "evaluation.response"
_GROUPS: Final = ("constant", "independent", "dependent")
_FENCE: Final = re.compile(r"```[\w-]*[ \t]*\r?\n")
_NUMBER: Final = re.compile(r"[-+]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?(?:[eE][-+]?\d+)?")
_MINUS: Final = re.compile("[\u2212\u2013](?=\\.?\\d)")
_HALVES: Final = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs: JSON can escape them, no encoding can write them."""
_DEEPEST: Final = 40
_LONGEST: Final = 30_000
"""Characters of one text; the longest of 155 published outcomes has 1,516."""
_MOST_ITEMS: Final = 5000
"""Of anything: a response that holds more is a dump, not an answer."""


class _Reader:
    """Collects the problems of one response."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def say(self, where: str, message: str, severity: Severity = Severity.WARNING) -> None:
        self.problems.append(
            Problem(component=_COMPONENT, where=f"{RESPONSE}: {where}", message=message, severity=severity)
        )

    def bounded(self, where: str, value: Any, depth: int) -> Any:
        """The value without what is nested too deeply, with texts that are not too long and can be written."""
        if isinstance(value, str):
            if len(value) > _LONGEST:
                self.say(where, f"is longer than {_LONGEST} characters: the rest is left out")
            return _HALVES.sub("\ufffd", value[:_LONGEST])
        if not isinstance(value, dict | list):
            return value
        if depth >= _DEEPEST:
            self.say(where, "is nested too deeply: it is left out")
            return None
        if isinstance(value, list):
            return [self.bounded(where, item, depth + 1) for item in value]
        found = {}
        for key, item in value.items():
            name = self.bounded(f"{where}: a name", key, depth)
            found[name] = self.bounded(f"{where}.{name[:80]}" if where else name[:80], item, depth + 1)
        return found

    # --- design

    def design(self, top: dict[str, Any]) -> ResponseDesign:
        given = top.get("design", {})
        if isinstance(given, str):
            self.say("design", "is a text: it is taken as the procedure")
            return ResponseDesign(procedure=given)
        if not isinstance(given, dict):
            self.say("design", f"is {_kind(given)}, an object was expected: it is left out", Severity.ERROR)
            given = {}
        groups: dict[str, dict[str, tuple[str, ...]]] = {}
        for group in _GROUPS:
            value = self._group_value(top, given, group)
            groups[group] = {} if value is None else self.group(f"design.{group}", value)
        procedure = given.get("procedure", "")
        return ResponseDesign(**groups, procedure=procedure if isinstance(procedure, str) else _text(procedure))

    def _group_value(self, top: dict[str, Any], given: dict[str, Any], group: str) -> Any:
        names = (group, f"{group}s", f"{group}_variables", f"{group} variables", f"{group}_variable")
        for holder, prefix in ((given, "design."), (top, "")):
            for name in names:
                if name in holder:
                    if (name, prefix) != (group, "design."):
                        self.say(f"{prefix}{name}", f"is taken as design.{group}", Severity.INFO)
                    return holder[name]
        return None

    def group(self, where: str, value: Any) -> dict[str, tuple[str, ...]]:
        """Variable -> its values."""
        if isinstance(value, dict):
            return {str(name): self.values(f"{where}.{name}", item) for name, item in list(value.items())[:_MOST_ITEMS]}
        if isinstance(value, str):
            value = [value]
        if not isinstance(value, list):
            self.say(where, f"is {_kind(value)}: it is left out", Severity.ERROR)
            return {}
        self.say(where, "is a list: its entries are taken as variables", Severity.INFO)
        found: dict[str, tuple[str, ...]] = {}
        for item in value[:_MOST_ITEMS]:
            if isinstance(item, dict):
                name = next((item[key] for key in ("name", "variable") if isinstance(item.get(key), str)), None)
                if name is None and len(item) == 1:
                    name, held = next(iter(item.items()))
                else:
                    held = next((item[key] for key in ("values", "value", "description") if key in item), [])
                if name is None:
                    self.say(where, f"an entry without a name is left out: {_text(item)[:80]}")
                    continue
                found[name] = self.values(f"{where}.{name}", held)
            elif isinstance(item, str):
                name, colon, rest = item.partition(":")
                found[name.strip()] = (rest.strip(),) if colon and rest.strip() else ()
            else:
                self.say(where, f"an entry that is {_kind(item)} is left out")
        return found

    def values(self, where: str, value: Any) -> tuple[str, ...]:
        """The values of a variable as texts."""
        if value is None:
            return ()
        if isinstance(value, dict) and set(value) & {"values", "value"}:
            return self.values(where, value.get("values", value.get("value")))
        if isinstance(value, list):
            return tuple(_text(item) for item in value[:_MOST_ITEMS] if item is not None)
        if isinstance(value, dict):
            self.say(where, "is an object: its entries are taken as `key: value`", Severity.INFO)
            return tuple(f"{key}: {_text(item)}" for key, item in list(value.items())[:_MOST_ITEMS])
        return (_text(value),)

    # --- conclusion

    def conclusion(self, value: Any) -> Conclusion:
        if isinstance(value, str):
            self.say("conclusion", "is a text alone: it states no numbers", Severity.INFO)
            return Conclusion(text=value)
        if not isinstance(value, dict):
            self.say("conclusion", f"is {_kind(value)}: it is left out", Severity.ERROR)
            return Conclusion()
        text = next((value[key] for key in ("text", "summary", "conclusion", "answer") if key in value), "")
        if "text" not in value and text:
            self.say("conclusion", "has no `text`: another field is taken", Severity.INFO)
        numbers: dict[str, float] = {}
        self.numbers("conclusion.numbers", value.get("numbers"), "", numbers)
        if len(numbers) >= _MOST_ITEMS:
            self.say("conclusion.numbers", f"holds {_MOST_ITEMS} numbers: what comes behind them is left out")
        return Conclusion(text=text if isinstance(text, str) else _text(text), numbers=numbers)

    def numbers(self, where: str, value: Any, name: str, found: dict[str, float]) -> None:
        """Collect name -> number out of whatever holds them."""
        if value is None or len(found) >= _MOST_ITEMS:
            return
        if isinstance(value, dict):
            inner = next((value[key] for key in ("value", "mean") if key in value), None)
            label = value.get("name") or value.get("metric")
            if inner is not None and (name or isinstance(label, str)):
                self.say(f"{where}: {name or label}", "is an object: its value is taken", Severity.INFO)
                self.numbers(where, inner, _joined(name, str(label) if label and not name else ""), found)
                return
            for key, item in value.items():
                self.numbers(where, item, _joined(name, str(key)), found)
        elif isinstance(value, list):
            for index, item in enumerate(value):
                inner_name = name if isinstance(item, dict) else _joined(name, str(index + 1))
                self.numbers(where, item, inner_name, found)
        else:
            number = self.number(f"{where}: {name}", value)
            if number is not None:
                if name in found:
                    self.say(f"{where}: {name}", "is given more than once: the first is kept")
                found.setdefault(name or "value", number)

    def number(self, where: str, value: Any) -> float | None:
        """One number; None, with a problem, where it is none."""
        if isinstance(value, bool):
            self.say(where, "is true or false, not a number: left out")
            return None
        if isinstance(value, int | float):
            try:
                number = float(value)
            except OverflowError:
                number = math.inf
            if math.isfinite(number):
                return number
            self.say(where, "is not finite: left out")
            return None
        text = str(value).strip()
        match = _NUMBER.match(plain := plain_exponents(_MINUS.sub("-", text)))
        rest = plain[match.end() :].strip() if match else plain
        if match is None or not re.search(r"\d", match[0]) or not re.fullmatch(r"(?:%|[^\d]{0,20}|(?:±|\+/-).*)", rest):
            self.say(where, f"is no number: {text[:60]!r} is left out")
            return None
        number = float(match[0].replace(",", ""))
        if not math.isfinite(number):
            self.say(where, "is not finite: left out")
            return None
        self.say(where, f"is the text {text[:60]!r}: {number:g} is taken", Severity.INFO)
        return number

    # --- outputs

    def outputs(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            value = [value]
        if isinstance(value, dict):
            value = list(value.values())
        if not isinstance(value, list):
            self.say("outputs", f"is {_kind(value)}: it is left out", Severity.ERROR)
            return ()
        found: list[str] = []
        for item in value[:_MOST_ITEMS]:
            if isinstance(item, dict) and isinstance(item.get("path"), str):
                item = item["path"]  # noqa: PLW2901 - the form with a description beside it
            if not isinstance(item, str) or not item.strip() or "\0" in item:
                self.say("outputs", f"an entry that is no path is left out: {_text(item)[:60]!r}")
                continue
            path = item.strip().removeprefix("/work/").removeprefix("./")
            if path.startswith("/") or ".." in path.split("/"):
                self.say("outputs", f"{path[:80]!r} is outside the workspace: left out")
                continue
            found.append(path)
        return tuple(dict.fromkeys(found))


def parse_response(data: bytes) -> tuple[Response | None, tuple[Problem, ...]]:
    """A response out of the bytes of `response.json`, and what had to be interpreted or left out.

    Returns:
        None where it is no JSON object at all.
    """
    reader = _Reader()
    value = reader.bounded("", _load(data, reader), 0)
    if not isinstance(value, dict):
        if value is not None:
            reader.say("top level", f"is {_kind(value)}, an object was expected", Severity.ERROR)
        return None, tuple(reader.problems)
    known = {"design", "conclusion", "outputs"} | {
        f"{group}{ending}" for group in _GROUPS for ending in ("", "s", "_variables", " variables", "_variable")
    }
    response = Response(
        design=reader.design(value),
        conclusion=reader.conclusion(value.get("conclusion", {})),
        outputs=reader.outputs(value.get("outputs", [])),
        extra={key: _finite(item) for key, item in value.items() if key not in known},
    )
    return response, tuple(reader.problems)


def _load(data: bytes, reader: _Reader) -> Any:
    text = data.decode("utf-8", "replace")
    if "\ufffd" in text and b"\xef\xbf\xbd" not in data:
        reader.say("encoding", "is not UTF-8: undecodable bytes are replaced")
    if text.startswith("\ufeff"):
        reader.say("encoding", "begins with a byte order mark", Severity.INFO)
        text = text[1:]
    bare = text.strip()
    if bare.endswith("```") and (opening := _FENCE.match(bare)):
        reader.say("form", "stands in a Markdown fence", Severity.INFO)
        text = bare[opening.end() : -3]
    try:
        return json.loads(text)
    except RecursionError:
        reader.say("form", "is nested too deeply", Severity.ERROR)
        return None
    except ValueError as error:
        first = error
    try:
        # strings are matched first, so that a comma inside one stays
        relaxed = re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda match: match[1] or "", text)
        value = json.loads(relaxed)
    except (ValueError, RecursionError):
        reader.say("form", f"is no JSON: {first}", Severity.ERROR)
        return None
    reader.say("form", "holds trailing commas", Severity.INFO)
    return value


def _joined(first: str, second: str) -> str:
    return f"{first} / {second}" if first and second else first or second


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _finite(value: Any) -> JsonValue:
    """The value with NaN and infinities as text: JSON has none."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list):
        return [_finite(item) for item in value]
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    return value  # type: ignore[no-any-return]
