"""The text that tells a model how to reply, and the JSON Schema of such a reply: SACP in our words.

The text goes after the author's own instructions, so that it is the last thing the model reads before the task. It is made once
per agent. `docs/models.md` says what it costs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from string import Template
from typing import Any, Final

import msgspec

from comity.core.document.payload import Problem
from comity.core.model.reply import Status
from comity.core.model.reply.quotes import EXAMPLE, PLACEHOLDER

_MEANINGS: Final = {
    Status.SUCCESS: "the task is done.",
    Status.FAILURE: "the task cannot be done; `message` says why.",
    Status.CLARIFICATION_NEEDED: "only the user can say how to go on; `message` is the question.",
    Status.COMPLETED: "the task is done, and with it the whole work: nobody has to act after you.",
    Status.RETRY_WITH_INSTRUCTION: (
        "whoever gave you the task must do its part again; `message` tells it what to do differently. Once only."
    ),
}
_SAMPLES: Final[dict[str, Any]] = {
    "string": "text", "integer": 1, "number": 0.5, "boolean": True, "null": None, "object": {}, "array": [],
}  # fmt: skip
_SAMPLE_DEPTH_MAX: Final = 6
PLACEHOLDERS: Final = ("statuses", "data_schema", "criteria", "example")  # of a template


def protocol_prompt(
    *,
    data_schema: Mapping[str, Any] | None = None,
    example: Mapping[str, Any] | None = None,
    success_criteria: Sequence[str] = (),
    failure_criteria: Sequence[str] = (),
    template: str = "",
) -> str:
    """Return the text that is added to an agent's instructions. `example` is data that fits the schema.

    A `template` is used instead of our own words; see `template_problem`.
    """
    statuses = "\n".join(f"  - `{status}`: {meaning}" for status, meaning in _MEANINGS.items())
    criteria = _criteria("success", success_criteria) + _criteria("failure", failure_criteria)
    if template:
        values = (statuses, "" if data_schema is None else _text(data_schema), "\n\n".join(criteria), _text(_example(example)))
        return Template(template).substitute(dict(zip(PLACEHOLDERS, values, strict=True)))
    parts = [
        f"""\
## How to reply
A program reads your reply. Reply with one JSON object and nothing around it: no sentence before or after it, no code fence. \
If you use tools, use them first; the object is your last word.

Its fields:
- `thought` (string): how you came to the result. People who check your work may read it; the user does not see it.
- `status` (string): how the task ended, one of
{statuses}
- `data` (object): the results that other agents and programs need, and nothing else. May be empty.
- `message` (string): what the user reads.
- `next_step_hint` (string, optional): what should happen next."""
    ]
    if data_schema is not None:
        parts.append(f"If the task is done, `data` fits this JSON Schema:\n{_text(data_schema)}")
    parts += criteria
    parts.append(f"Example:\n{_text(_example(example))}")
    return "\n\n".join(parts)


def template_problem(template: str, *, has_schema: bool = False, has_criteria: bool = False) -> str:
    """Return what is wrong with a template of the protocol, or nothing.

    It may name `$statuses`, `$data_schema`, `$criteria` and `$example`; `$$` is a dollar sign. It must name the schema and the
    criteria of an agent that has them, since the model would not learn of them otherwise.
    """
    found = Template(template)
    if not found.is_valid():
        return "a dollar sign in it that begins no name must be written $$"
    names = found.get_identifiers()
    if unknown := [name for name in names if name not in PLACEHOLDERS]:
        return f"${unknown[0]} is no placeholder; there are {', '.join(f'${name}' for name in PLACEHOLDERS)}"
    needed = (("data_schema", has_schema, "output_type"), ("criteria", has_criteria, "criteria"))
    missing = [f"${name}, since the agent has {why}" for name, is_needed, why in needed if is_needed and name not in names]
    return f"it must hold {' and '.join(missing)}" if missing else ""


def reply_schema(data_schema: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the JSON Schema of a reply, for providers that can hold a model to one."""
    text = {"type": "string"}
    data: dict[str, Any] = {"type": "object"}
    schema: dict[str, Any] = {"type": "object"}
    if data_schema is not None:
        # References point at the root of a document, which is now the reply. An agent that failed has no result to give.
        inner = dict(data_schema)
        definitions: dict[str, Any] = {name: inner.pop(name) for name in ("$defs", "definitions") if name in inner}
        data = {"anyOf": [inner, {"type": "object", "properties": {}, "additionalProperties": False}]}
        schema |= definitions
    schema["properties"] = {
        "thought": text, "status": text | {"enum": [str(status) for status in Status]}, "data": data, "message": text,
        "next_step_hint": text,
    }  # fmt: skip
    schema["required"] = ["thought", "status", "data", "message"]
    schema["additionalProperties"] = False
    return schema


def listed(problems: Sequence[Problem]) -> str:
    """Return every problem of a reply, exactly, one a line."""
    return "\n".join(f"- {f'`{problem.path}` ' if problem.path else 'The reply '}{problem.message}" for problem in problems)


def correction(quoted: str) -> str:
    """Return the text for a model whose reply could not be used: what is wrong with the reply, quoted, and what to do."""
    return (
        f"Your reply could not be used:\n{quoted}\n\n"
        "Reply again, now with the one JSON object alone. Keep what was right, correct these points, use no tools."
    )


SYNTHESIS: Final = "No more tools can be used. Reply now, with what you have, in the form you were told."
WRAP_UP: Final = "Little is left of what this task may cost. Use no tool you can do without, and reply soon and briefly."


def sample(schema: Any) -> Any:
    """Return a small value of the shape a JSON Schema describes; limits and patterns are not looked at."""
    return _sample(schema, schema, 0)


def _sample(schema: Any, root: Any, depth: int) -> Any:
    if not isinstance(schema, Mapping) or depth > _SAMPLE_DEPTH_MAX:
        return {}
    for key in ("const", "default"):
        if key in schema:
            return schema[key]
    for key in ("examples", "enum"):
        if schema.get(key):
            return schema[key][0]
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        target = root
        for step in reference[2:].split("/"):
            target = target.get(step, {}) if isinstance(target, Mapping) else {}
        return _sample(target, root, depth + 1)
    for key in ("anyOf", "oneOf", "allOf"):
        if schema.get(key):
            return _sample(schema[key][0], root, depth + 1)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    if kind == "object" or "properties" in schema:
        return {name: _sample(inner, root, depth + 1) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [_sample(schema["items"], root, depth + 1)] if "items" in schema else []
    return _SAMPLES.get(str(kind), "text")


def _example(data: Mapping[str, Any] | None) -> dict[str, Any]:
    if data is None:
        return {name: getattr(EXAMPLE, name) for name in ("thought", "status", "data", "message")}
    return {"thought": PLACEHOLDER, "status": str(Status.SUCCESS), "data": data, "message": PLACEHOLDER}


def _criteria(status: str, criteria: Sequence[str]) -> list[str]:
    if not criteria:
        return []
    listed = "\n".join(f"- {criterion}" for criterion in criteria)
    return [f"Reply `{status}` {'only if all of this holds' if status == 'success' else 'if any of this holds'}:\n{listed}"]


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
