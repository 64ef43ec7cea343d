"""The fields of a definition file, in one table: what `read` accepts and the JSON Schema for editors are both made from it."""

from __future__ import annotations

from typing import Any, Final

from comity.core.workflow.duration import DURATION_PATTERN
from comity.core.workflow.model import DEFAULT_STEPS_MAX, MAP_ITEMS_MAX, Kind, On

Schema = dict[str, Any]
_NAME: Final[Schema] = {"type": "string", "pattern": r"^[A-Za-z_][A-Za-z0-9_]*$", "maxLength": 64}
_TEXT: Final[Schema] = {"type": "string"}
_DURATION: Final[Schema] = {"type": "string", "pattern": DURATION_PATTERN, "description": "such as 90s, 15m, 1h30m, 3d or P3D"}
_ANY: Final[Schema] = {}
_OBJECT: Final[Schema] = {"type": "object"}
_COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
_POSITIVE: Final[Schema] = {"type": "integer", "minimum": 1}
_COST: Final[Schema] = {"type": "number", "minimum": 0}
_CONDITION: Final[Schema] = {
    "type": ["string", "object"],
    "description": 'CEL such as `response.status == "success"`, or rules with field, operator and value',
}
_NAMES: Final[Schema] = {"type": "array", "items": _NAME}


def _closed(fields: dict[str, Schema], *required: str) -> Schema:
    return {"type": "object", "properties": fields, "required": list(required), "additionalProperties": False}


_CALLED: Final[Schema] = {
    "anyOf": [
        {
            "type": "string",
            "pattern": r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$",
            "description": "AGENT/CAPABILITY, or AGENT",
        },
        _closed({"agent": _TEXT, "capability": _TEXT}, "agent"),
    ]
}
RETRY: Final = {
    "max": _COUNT,
    "on": {"type": "array", "items": _TEXT, "description": "error codes; without it every retryable error"},
    "backoff": _DURATION,
    "factor": {"type": "number", "minimum": 1},
    "backoff_max": _DURATION,
    "instruct": {"type": "boolean", "description": "the error's message goes to the agent as its instruction"},
}
EACH: Final = {
    "over": _ANY,
    "concurrency": {"type": "integer", "minimum": 1, "maximum": MAP_ITEMS_MAX},
    "tolerate": {**_COUNT, "description": "the number of items that may fail"},
}
UNDO: Final = {"call": _CALLED, "input": _OBJECT, "message": _TEXT}
WAIT: Final = {"for": _DURATION, "until": _ANY, "event": _TEXT, "match": _CONDITION}

# What each verb takes beside what every node may have.
VERBS: Final[dict[Kind, tuple[Schema, str]]] = {
    Kind.CALL: (_CALLED, "a capability of an agent; without one, the capability `message` of an agent with a model"),
    Kind.RUN: ({"type": "string"}, "another workflow, as a part of this run"),
    Kind.AGGREGATE: (
        {"anyOf": [_TEXT, {"type": "object", "properties": {"strategy": _TEXT, "of": _NAMES}, "required": ["strategy"]}]},
        "one reply of several: merge, concat, first, best, vote, synthesise, or a strategy of the node's own",
    ),
    Kind.ASK: (_TEXT, "a question to a person; the run waits for the answer"),
    Kind.WAIT: ({"anyOf": [_DURATION, _closed(WAIT)]}, "for a duration, until a time, or for an event"),
    Kind.SET: (_ANY, "data made by mapping alone"),
    Kind.DECIDE: (_ANY, "takes the first of its edges whose condition holds; its value is shown as response.data"),
    Kind.JOIN: (
        {"anyOf": [{"enum": ["all", "any"]}, _POSITIVE]},
        "waits for all taken edges, for the first, or for N of them",
    ),
    Kind.FINISH: ({"enum": ["success", "failure"]}, "ends the whole run"),
}
ALLOWED: Final[dict[Kind, frozenset[str]]] = {
    Kind.CALL: frozenset(
        {"input", "message", "objective", "map", "retry", "timeout", "undo", "output", "output_schema", "dynamic"}
    ),
    Kind.RUN: frozenset({"input", "map", "retry", "undo", "output", "output_schema"}),
    Kind.AGGREGATE: frozenset({"retry", "timeout", "output", "output_schema"}),
    Kind.ASK: frozenset({"options", "answer", "default", "timeout", "output"}),
    Kind.WAIT: frozenset({"timeout", "output"}),
    Kind.SET: frozenset({"output_schema"}),
    Kind.DECIDE: frozenset(),
    Kind.JOIN: frozenset(),
    Kind.FINISH: frozenset({"output", "message"}),
}
COMMON: Final = frozenset({"after", "when", "join", "route", "description"})
NODE: Final[dict[str, tuple[Schema, str]]] = {
    "after": (_NAMES, "nodes whose success leads here: the short form of edges"),
    "when": (_CONDITION, "skips the node unless it holds"),
    "join": ({"anyOf": [{"enum": ["all", "any"]}, _POSITIVE]}, "which of several incoming edges it waits for; all taken ones"),
    "route": ({"enum": ["all", "first"]}, "takes every edge that applies, or the first"),
    "description": (_TEXT, "for people"),
    "input": (_OBJECT, "the inputs, with templates"),
    "message": (_TEXT, "text for an agent with a model, or of the end"),
    "objective": (_TEXT, "what the call is for"),
    "map": (_closed(EACH, "over"), "runs once per item of a list; `item` and `index` stand in its templates"),
    "retry": (_closed(RETRY, "max"), "tries again after a failure"),
    "timeout": (_DURATION, "of one attempt, or of the wait for an answer or event"),
    "undo": (_closed(UNDO, "call"), "takes a completed node back when the run fails or is cancelled"),
    "output": (_ANY, "replaces response.data of the node"),
    "output_schema": (_OBJECT, "the JSON Schema of response.data"),
    "dynamic": ({"type": "boolean"}, "next_step_hint may choose among the targets of its edges"),
    "options": ({"type": "array", "minItems": 1}, "the answers a person may choose from"),
    "answer": (_OBJECT, "the JSON Schema of the answer"),
    "default": (_ANY, "the answer if none comes in time"),
}
EDGE: Final[dict[str, tuple[Schema, str]]] = {
    "id": ({**_TEXT, "minLength": 1, "maxLength": 128}, "its name; from, to and a number if it is not given"),
    "from": (_NAME, "a node, or start"),
    "to": (_NAME, "a node, or end"),
    "when": (_CONDITION, "the whole condition: nothing is added to it"),
    "on": ({"enum": [str(one) for one in On]}, "without a condition: success (the default), error, retry, always"),
    "else": ({"type": "boolean"}, "taken if the node succeeded and no other of its edges is taken"),
    "max": (_POSITIVE, "how many times the edge may close a loop"),
}
LIMITS: Final[dict[str, tuple[Schema, str]]] = {
    "steps_max": (_POSITIVE, f"calls that the run makes itself, {DEFAULT_STEPS_MAX} if it is not given"),
    "calls_max": (_POSITIVE, "calls that the run makes, and those below them"),
    "tokens_max": (_POSITIVE, "tokens of all of them"),
    "cost_max": (_COST, "of all tokens, by the two prices"),
    "prompt_cost": (_COST, "of a million prompt tokens"),
    "completion_cost": (_COST, "of a million completion tokens"),
    "runtime_max": (_DURATION, "from start to end, waits included"),
}
TOP: Final[dict[str, tuple[Schema, str]]] = {
    "workflow": ({"type": "string", "pattern": r"^[A-Za-z0-9][\w.-]*$", "maxLength": 128}, "its name"),
    "version": (_TEXT, "for people; a run is pinned to the content"),
    "description": (_TEXT, "what it is for"),
    "triggers": ({"type": "array", "items": _TEXT}, "phrases with which users ask for it"),
    "input": (_OBJECT, "the JSON Schema of the input"),
    "output": (_ANY, "the result, with templates"),
    "output_schema": (_OBJECT, "the JSON Schema of the result"),
    "limits": (_closed({name: schema for name, (schema, _) in LIMITS.items()}), "what a run may use"),
    "nodes": (_OBJECT, "the nodes by name"),
    "edges": ({"type": "array"}, "the edges"),
}


def json_schema() -> Schema:
    """Return the JSON Schema of a definition file, for editors."""
    nodes = [
        {
            "properties": {
                verb.value: {**schema, "description": about},
                **{
                    name: {"description": NODE[name][1], **NODE[name][0]}
                    for name in sorted(ALLOWED[verb] | COMMON - {verb.value})
                },
            },
            "required": [verb.value],
            "additionalProperties": False,
        }
        for verb, (schema, about) in VERBS.items()
    ]
    edge = {name: {"description": about, **schema} for name, (schema, about) in EDGE.items()}
    properties = {name: {"description": about, **schema} for name, (schema, about) in TOP.items()}
    properties["nodes"] = {"type": "object", "propertyNames": _NAME, "additionalProperties": {"type": "object", "oneOf": nodes}}
    properties["edges"] = {"type": "array", "items": _closed(edge, "from", "to")}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Comity workflow",
        **_closed(properties, "workflow", "nodes"),
    }
