"""What OpenAI's strict mode asks of a JSON schema, so that a schema that passes here is accepted there.

Rules from OpenAI's guide "Structured model outputs", section "Supported schemas": the root is an object and no `anyOf`;
every object lists all its properties in `required` and has `additionalProperties: false`; some keywords do not exist.
"""

from __future__ import annotations

import re
from typing import Any, Final

__all__ = ["schema_defect", "schema_name_defect"]

_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")
_UNSUPPORTED: Final = frozenset(
    {"allOf", "oneOf", "not", "dependentRequired", "dependentSchemas", "if", "then", "else", "patternProperties"}
)
_MAX_DEPTH = 10
"""OpenAI's limit of nesting."""
_MAX_PROPERTIES = 5000
"""OpenAI's limit over the whole schema."""


def schema_name_defect(name: Any) -> str | None:
    """Why a schema's name is rejected."""
    if not isinstance(name, str) or not _NAME.match(name):
        return f"the name must match ^[a-zA-Z0-9_-]{{1,64}}$, got {name!r}"
    return None


def schema_defect(schema: Any) -> str | None:
    """Why strict mode rejects a schema, with the place, or None."""
    if not isinstance(schema, dict):
        return "a schema object is missing"
    if schema.get("type") != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{schema.get('type')}\"'"
    count = [0]
    return _walk(schema, (), 1, count) or (
        f"too many properties: {count[0]} > {_MAX_PROPERTIES}" if count[0] > _MAX_PROPERTIES else None
    )


def _walk(node: Any, path: tuple[str, ...], depth: int, count: list[int]) -> str | None:
    if not isinstance(node, dict):
        return None
    if defect := _own_defect(node, depth):
        return f"In context={path!r}, {defect}"
    properties = node.get("properties", {})
    count[0] += len(properties)
    children = [((*path, "properties", key), value, depth + 1) for key, value in properties.items()]
    children += [((*path, "$defs", key), value, depth) for key, value in node.get("$defs", {}).items()]
    children += [((*path, "anyOf", str(i)), value, depth) for i, value in enumerate(node.get("anyOf", []))]
    if "items" in node:
        children.append(((*path, "items"), node["items"], depth + 1))
    return next(filter(None, (_walk(child, place, level, count) for place, child, level in children)), None)


def _own_defect(node: dict[str, Any], depth: int) -> str | None:
    if bad := sorted(_UNSUPPORTED & node.keys()):
        return f"'{bad[0]}' is not permitted."
    if depth > _MAX_DEPTH:
        return f"more than {_MAX_DEPTH} levels of nesting."
    if "$ref" in node and node.keys() - {"$ref"}:
        return f"$ref cannot have keywords {sorted(node.keys() - {'$ref'})}."
    properties = node.get("properties", {})
    if (node.get("type") == "object" or properties) and node.get("additionalProperties") is not False:
        return "'additionalProperties' is required to be supplied and to be false."
    if missing := sorted(set(properties) - set(node.get("required", []))):
        return (
            "'required' is required to be supplied and to be an array including every key in properties. "
            f"Missing '{missing[0]}'."
        )
    return None
