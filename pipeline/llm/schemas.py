"""JSON schemas of pydantic models in the dialect that endpoints enforce.

OpenAI's strict mode wants every property required and no others allowed, no defaults, `anyOf` instead of `oneOf`, and a
`$ref` without neighbours. A model that cannot be put so (free mappings) is sent without strictness.
"""

from __future__ import annotations

import re
from typing import Any

from pydantic import BaseModel, JsonValue

__all__ = ["plain_schema", "response_schema", "simple_schema"]


def plain_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """The model's JSON schema, as it is validated."""
    return model.model_json_schema(mode="validation")


def response_schema(model: type[BaseModel]) -> dict[str, JsonValue]:
    """The `json_schema` member of OpenAI's `response_format`."""
    schema: Any = plain_schema(model)
    strict = not _has_free_mapping(schema)
    if strict:
        schema = _strict(schema)
    name = re.sub(r"[^A-Za-z0-9_-]", "_", model.__name__)[:64]
    return {"name": name, "schema": schema, "strict": strict}


# Left out of simple schemas: what a value may be beyond its shape is checked when it has arrived.
_BOUNDS = frozenset(
    {"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
    | {"pattern", "format", "multipleOf", "uniqueItems", "title", "description", "default", "examples", "$defs"}
)


def simple_schema(schema: dict[str, JsonValue]) -> dict[str, JsonValue] | None:
    """A schema's shape alone, without references and bounds; None for one that refers to itself.

    llama.cpp's Python server (0.3.36) turns schemas into grammars: it knows no `$ref`, writes a bound of 500 characters
    as 500 nested rules, and dies (SIGSEGV at the first token) of a grammar that it cannot parse.
    """
    definitions = schema.get("$defs")
    try:
        simple = _simple(schema, definitions if isinstance(definitions, dict) else {}, ())
    except RecursionError:
        return None
    return simple if isinstance(simple, dict) else None


def _simple(node: Any, definitions: dict[str, Any], inside: tuple[str, ...]) -> Any:
    if isinstance(node, list):
        return [_simple(item, definitions, inside) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        name = str(node["$ref"]).rpartition("/")[2]
        if name in inside or name not in definitions:
            raise RecursionError(name)
        return _simple(definitions[name], definitions, (*inside, name))
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key == "properties":
            result[key] = {name: _simple(child, definitions, inside) for name, child in value.items()}
        elif key in {"const", "enum", "required"}:
            result[key] = value
        elif key not in _BOUNDS:
            result[key] = _simple(value, definitions, inside)
    return result


def _has_free_mapping(node: Any) -> bool:
    if isinstance(node, list):
        return any(_has_free_mapping(item) for item in node)
    if not isinstance(node, dict):
        return False
    if node.get("additionalProperties") not in {None, False} if _hashable(node) else True:
        return True
    if node.get("type") == "object" and "properties" not in node:
        return True
    if node == {} or (set(node) <= {"title", "description", "default"} and "title" in node):
        return True  # Any
    return any(
        _has_free_mapping(child)
        for key, value in node.items()
        for child in (value.values() if key in {"properties", "$defs"} and isinstance(value, dict) else [value])
        if isinstance(child, dict | list)
    )


def _hashable(node: dict[str, Any]) -> bool:
    return not isinstance(node.get("additionalProperties"), dict | list)


def _strict(node: Any) -> Any:
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    if "$ref" in node:
        return {"$ref": node["$ref"]}
    result: dict[str, Any] = {}
    for key, value in node.items():
        if key in {"default", "discriminator", "title"}:
            continue
        if key in {"properties", "$defs"}:
            result[key] = {name: _strict(child) for name, child in value.items()}
        elif key == "oneOf":
            result["anyOf"] = _strict(value)
        elif key in {"const", "enum", "examples", "required"}:
            result[key] = value
        else:
            result[key] = _strict(value)
    if "properties" in result:
        result["required"] = list(result["properties"])
        result["additionalProperties"] = False
    return result
