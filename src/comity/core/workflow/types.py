"""What JSON Schemas say about a path: whether it can exist, and which types stand there. Silence is never a mistake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from comity.core.workflow.mapping import Path

Schema = dict[str, Any]
# A schema has one of them, or it takes anything.
_KEYWORDS: Final = frozenset(
    [
        "$ref",
        "$dynamicRef",
        "allOf",
        "anyOf",
        "oneOf",
        "not",
        "if",
        "type",
        "enum",
        "const",
        "properties",
        "patternProperties",
        "additionalProperties",
        "propertyNames",
        "required",
        "dependentRequired",
        "dependentSchemas",
        "dependencies",
        "minProperties",
        "maxProperties",
        "unevaluatedProperties",
        "items",
        "prefixItems",
        "additionalItems",
        "contains",
        "minItems",
        "maxItems",
        "uniqueItems",
        "unevaluatedItems",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "title",
        "description",
    ]
)
_RESPONSE: Final[Schema] = {
    "type": "object",
    "properties": {
        "status": {
            "enum": [
                "success",
                "partial",
                "failure",
                "skipped",
                "clarification_needed",
                "completed",
                "retry_with_instruction",
                "cancelled",
            ]
        },
        "outcome": {"enum": ["success", "partial", "needs_input", "refused", "error", "timeout", "cancelled"]},
        "data": {},
        "message": {"type": "string"},
        "confidence": {"type": "number"},
        "warnings": {"type": "array", "items": {"type": "string"}},
        "next_step_hint": {"type": "string"},
        "degraded": {"type": "boolean"},
        "error": {
            "type": "object",
            "properties": {
                "code": {"type": "string"},
                "message": {"type": "string"},
                "retryable": {"type": "boolean"},
                "facts": {},
                "node": {},
                "not_undone": {},
            },
        },
    },
}
RUN: Final[Schema] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "workflow": {"type": "string"},
        "version": {"type": "string"},
        "started_at": {"type": "integer"},
    },
}
ERROR: Final[Schema] = _RESPONSE["properties"]["error"]


def response_schema(data: Schema | None) -> Schema:
    """Return the schema of a node's response whose data has this schema."""
    return {**_RESPONSE, "properties": {**_RESPONSE["properties"], "data": data or {}}}


def schemas_at(schema: Schema, path: Path) -> list[Schema] | None:
    """Return the schemas that a value at a path may have; empty where there can be none, None where nothing is known."""
    current: list[Schema] | None = list(_resolved(schema, schema))
    for step in path:
        if current is None:
            return None
        following: list[Schema] = []
        for one in current:
            below = _below(one, step)
            if below is None:
                return None
            following += (resolved for part in below for resolved in _resolved(part, schema))
        current = following
    return current


def _below(schema: Schema, step: str | int) -> list[Schema] | None:
    """Return the schemas of a field or element; empty where there is none, None where the schema does not say."""
    if isinstance(step, int):
        if "items" in schema or "prefixItems" in schema:
            items = schema.get("items", {})
            return [items] if isinstance(items, dict) else None
        return None if not _types(schema) or "array" in (_types(schema) or ()) else []
    kinds = _types(schema)
    if kinds is not None and "object" not in kinds:
        return []
    properties = schema.get("properties")
    more = schema.get("additionalProperties")
    if isinstance(properties, dict) and step in properties:
        return [properties[step]] if isinstance(properties[step], dict) else None
    if isinstance(more, dict):
        return [more]
    if more is True or not isinstance(properties, dict) or "patternProperties" in schema:
        return None
    return []


def _resolved(schema: Any, root: Schema, depth: int = 0) -> Iterator[Schema]:
    """Yield a schema without references and alternatives: one per alternative."""
    if not isinstance(schema, dict) or depth > 8:
        yield {}
        return
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target: Any = root
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part) if isinstance(target, dict) else None
        yield from _resolved(target, root, depth + 1)
        return
    for word in ("anyOf", "oneOf"):
        if isinstance(schema.get(word), list):
            for one in schema[word]:
                yield from _resolved(one, root, depth + 1)
            return
    yield schema if "allOf" not in schema else {}


def _types(schema: Schema) -> frozenset[str] | None:
    """Return the JSON types that a schema allows, or None if it does not say."""
    kind = schema.get("type")
    if isinstance(kind, str):
        return frozenset({kind})
    if isinstance(kind, list):
        return frozenset(kind)
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        return frozenset(map(type_of, values))
    return None


def types_of(schemas: Iterable[Schema] | None) -> frozenset[str] | None:
    """Return the JSON types that a value of one of these schemas may have; None if that is not known."""
    if schemas is None:
        return None
    found: frozenset[str] = frozenset()
    for one in schemas:
        kinds = _types(one)
        if kinds is None:
            return None
        found |= kinds
    return found


def type_of(value: Any) -> str:
    """Return the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case dict():
            return "object"
    return "array"


def fits(given: frozenset[str] | None, wanted: frozenset[str] | None) -> bool:
    """Return whether a value of one of the given types may be of one of the wanted ones."""
    if given is None or wanted is None:
        return True
    if "number" in wanted:
        wanted |= {"integer"}
    if "number" in given:  # a number may be whole
        given |= {"integer"}
    return bool(given & wanted)


def enum_of(schemas: Iterable[Schema] | None) -> list[Any] | None:
    """Return every value that is possible, where that is a list; None if it is not."""
    found: list[Any] = []
    for one in schemas or ():
        values = one.get("enum", [one["const"]] if "const" in one else None)
        if not isinstance(values, list):
            return None
        found += values
    return found or None


def says_nothing(schema: Schema) -> bool:
    """Return whether a schema has keys, and none that JSON Schema knows: `{n: {…}}` for `{properties: {n: {…}}}`."""
    return bool(schema) and _KEYWORDS.isdisjoint(schema)
