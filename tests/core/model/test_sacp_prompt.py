"""The protocol prompt says what the ladder reads, and costs what the docs say."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema_rs
import pytest

from comity.core.document.payload import Problem
from comity.core.model.reply import Rung, Status, read
from comity.core.model.reply.fields import decode_said
from comity.core.model.sacp_prompt import correction, listed, protocol_prompt, reply_schema, sample
from comity.core.model.tokens import estimate

SCHEMA = {
    "type": "object",
    "properties": {"total": {"type": "number"}, "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}}},
    "required": ["total"],
    "$defs": {"Line": {"type": "object", "properties": {"text": {"type": "string"}}}},
}
SNAPSHOT = Path(__file__).parent / "sacp_prompt.txt"
WHOLE = protocol_prompt(
    data_schema=SCHEMA, example=sample(SCHEMA), success_criteria=["the total is right"], failure_criteria=["nothing is legible"]
)


def test_the_prompt_is_the_one_that_was_agreed():
    assert SNAPSHOT.read_text(encoding="utf-8") == f"{protocol_prompt()}\n\n=====\n\n{WHOLE}\n"


def test_the_page_says_what_the_prompt_costs():
    page = (Path(__file__).parents[3] / "docs" / "models.md").read_text(encoding="utf-8")
    assert f"about {estimate(protocol_prompt())} tokens" in page


def test_every_status_word_is_explained_and_allowed():
    assert all(f"`{status}`:" in WHOLE for status in Status)
    assert reply_schema(None)["properties"]["status"]["enum"] == [str(status) for status in Status]


@pytest.mark.parametrize("prompt", [protocol_prompt(), WHOLE])
def test_the_example_is_a_reply_of_the_shape_that_it_shows(prompt):
    validator = jsonschema_rs.validator_for(SCHEMA)
    example = prompt.rpartition("Example:\n")[2]
    said = decode_said(example)
    assert said.status is Status.SUCCESS
    assert prompt != WHOLE or validator.is_valid(said.data)


@pytest.mark.parametrize("prompt", [protocol_prompt(), WHOLE])
def test_neither_the_prompt_nor_a_part_of_it_is_a_reply(prompt):
    example = prompt.rpartition("Example:\n")[2]
    plain = json.loads(example)
    parts = [example[:cut] for cut in range(20, len(example), 7)]
    fences = [f"```{label}\n{said}\n```" for label in ("json", "python", "yaml") for said in (example, f"reply = {plain!r}")]
    for echo in (prompt, f"{prompt}\n\n", example, f"> {example}", json.dumps(plain, indent=2), *parts, *fences):
        reading = read(echo)
        assert (reading.rung, reading.degraded) == (Rung.FALLBACK, True), echo
    real = '{"thought":"t","status":"success","data":{"n":1},"message":"m"}'
    assert read(f"{prompt}\n\n{real}").data == {"n": 1}


def test_the_schema_of_a_reply_keeps_references_whole_and_lets_a_failure_have_no_data():
    validator = jsonschema_rs.validator_for(reply_schema(SCHEMA))
    good = {"thought": "", "status": "success", "data": {"total": 1, "lines": [{"text": "a"}]}, "message": ""}
    assert validator.is_valid(good)
    assert validator.is_valid(good | {"status": "failure", "data": {}})
    assert not validator.is_valid(good | {"data": {"total": 1, "lines": [{"text": 3}]}})
    assert not validator.is_valid(good | {"status": "ok"})


def test_a_correction_names_every_problem():
    text = correction(listed((Problem("data.total", "is required"), Problem("", "holds no JSON object"))))
    assert "- `data.total` is required\n- The reply holds no JSON object" in text


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"const": 3}, 3),
        ({"enum": ["a", "b"]}, "a"),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 1),
        ({"type": ["string", "null"]}, "text"),
        ({"type": "object", "properties": {"a": {"type": "boolean"}}}, {"a": True}),
        ({"$ref": "#/nowhere"}, "text"),
        (True, {}),
    ],
)
def test_a_sample_has_the_shape_of_its_schema(schema, value):
    assert sample(schema) == value


def test_a_schema_that_refers_to_itself_has_a_sample():
    assert sample({"$ref": "#/$defs/N", "$defs": {"N": {"type": "object", "properties": {"n": {"$ref": "#/$defs/N"}}}}})
