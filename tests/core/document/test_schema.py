"""Schemas: what a function or a JSON Schema says is what is checked, strictly, with every problem named and no value told."""

from __future__ import annotations

import dataclasses
import enum
import functools
import json
import socket
import uuid
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from comity.core.call.limits import PROBLEMS_MAX
from comity.core.document.schema import Checker, JsonSchema, PythonType, SchemaError, from_return, from_signature, join
from comity.core.envelope.envelope import Reply

PERSONAL = "ann@example.com"


class Context:
    """What a first parameter is recognised by."""


@dataclasses.dataclass
class Address:
    street: str
    numbers: list[int]


class Customer(pydantic.BaseModel):
    name: Annotated[str, Field(min_length=2)]
    address: Address | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Colour(enum.Enum):
    RED = "red"


def check(checker: Checker, value: Any) -> Any:
    checked = checker.check(json.dumps(value).encode())
    assert not checked.problems, checked.problems
    return checked.value


def paths(checker: Checker, value: Any) -> list[str]:
    checked = checker.check(json.dumps(value).encode())
    assert checked.value is None
    return [problem.path for problem in checked.problems]


def takes(kind: Any) -> Checker:
    def function(x): ...

    function.__annotations__ = {"x": kind}
    return from_signature(function)[0]


# --- from a signature ---------------------------------------------------------------------------------------------------


async def npv(ctx: Context, cash_flows: list[float], discount_rate: float = 0.1) -> dict: ...


def plain(cash_flows: list[float]) -> dict: ...


def untyped(ctx, anything, more=None): ...


@pytest.mark.parametrize(("function", "wants"), [(npv, True), (plain, False), (untyped, True)])
def test_a_function_wants_the_context_if_its_first_parameter_says_so(function, wants):
    assert from_signature(function)[1] is wants


def test_a_first_parameter_named_ctx_of_another_type_is_an_input():
    def odd(ctx: int): ...

    checker, wants = from_signature(odd)
    assert not wants
    assert check(checker, {"ctx": 1}) == {"ctx": 1}


def test_only_the_first_parameter_is_the_context():
    def late(x: int, ctx): ...

    checker, wants = from_signature(late)
    assert not wants
    assert paths(checker, {"x": 1}) == ["inputs.ctx"]


def test_the_context_is_no_input():
    checker, _ = from_signature(npv)
    assert check(checker, {"cash_flows": [1.5]}) == {"cash_flows": [1.5]}
    assert paths(checker, {"cash_flows": [], "ctx": {}}) == ["inputs.ctx"]


def test_a_parameter_with_a_default_may_be_left_out_and_is_left_to_the_function():
    checker, _ = from_signature(npv)
    assert check(checker, {"cash_flows": []}) == {"cash_flows": []}
    assert check(checker, {"cash_flows": [], "discount_rate": 0.2}) == {"cash_flows": [], "discount_rate": 0.2}
    assert paths(checker, {"cash_flows": [], "discount_rate": None}) == ["inputs.discount_rate"]


def test_a_parameter_without_a_type_takes_anything():
    checker, _ = from_signature(untyped)
    for value in (None, 1, "x", [{"a": 1}]):
        assert check(checker, {"anything": value}) == {"anything": value}


def test_annotations_given_as_text_are_read():
    def texts(x: "list[Customer]", y: "int | None" = None): ...  # noqa: UP037

    checker, _ = from_signature(texts)
    assert check(checker, {"x": [{"name": "Ann"}], "y": None}) == {"x": [Customer(name="Ann")], "y": None}


def test_unknown_inputs_are_refused_unless_the_function_takes_any():
    def any_more(x: int, **more: Any): ...

    assert paths(takes(int), {"x": 1, "y": 2}) == ["inputs.y"]
    assert check(from_signature(any_more)[0], {"x": 1, "y": 2}) == {"x": 1, "y": 2}


def test_methods_and_wrapped_functions_are_read_like_functions():
    class Holder:
        def method(self, ctx: Context, x: int): ...

    @functools.wraps(plain)
    def wrapper(*args, **kwargs): ...

    checker, wants = from_signature(Holder().method)
    assert wants
    assert check(checker, {"x": 1}) == {"x": 1}
    assert paths(from_signature(wrapper)[0], {}) == ["inputs.cash_flows"]


def positional(x: int, /): ...


def variadic(*xs: int): ...


def unknown_name(x: NoSuchName): ...  # type: ignore[name-defined]  # noqa: F821


def no_attribute(x: enum.NoSuchThing): ...  # type: ignore[name-defined]


def no_schema(x: socket.socket): ...


@pytest.mark.parametrize(
    ("function", "says"),
    [
        (positional, "'x' of positional cannot be given by name"),
        (variadic, "'xs' of variadic cannot be given by name"),
        (unknown_name, "annotations of unknown_name cannot be read"),
        (no_attribute, "annotations of no_attribute cannot be read"),
        (no_schema, "cannot be used as a type"),
        (functools.partial(plain), "cannot be read"),
        (type, "cannot be"),
    ],
)
def test_a_signature_that_cannot_be_used_is_a_schema_error_that_says_why(function, says):
    with pytest.raises(SchemaError, match=says):
        from_signature(function)


# --- strictness ---------------------------------------------------------------------------------------------------------

UUID = uuid.UUID("0198a2b4-7c1e-7000-8000-000000000001")


@pytest.mark.parametrize(
    ("kind", "given_value", "expected"),
    [
        (int, 5, 5),
        (float, 5, 5.0),
        (float, 5.5, 5.5),
        (bool, True, True),
        (str, "5", "5"),
        (int | None, None, None),
        (datetime, "2026-01-18T14:30:22Z", datetime(2026, 1, 18, 14, 30, 22, tzinfo=UTC)),
        (date, "2026-01-18", date(2026, 1, 18)),
        (uuid.UUID, str(UUID), UUID),
        (Decimal, "1.10", Decimal("1.10")),
        (Colour, "red", Colour.RED),
        (set[int], [1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (Literal["a", "b"], "b", "b"),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (
            Customer,
            {"name": "Ann", "address": {"street": "x", "numbers": [1]}},
            Customer(name="Ann", address=Address("x", [1])),
        ),
        (Address, {"street": "x", "numbers": []}, Address("x", [])),
        (Annotated[int, Field(ge=0)], 0, 0),
    ],
)
def test_json_becomes_what_the_type_says(kind, given_value, expected):
    found = check(takes(kind), {"x": given_value})["x"]
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("kind", "wrong"),
    [
        (int, "5"),
        (int, 5.5),
        (int, True),
        (int, None),
        (bool, 1),
        (bool, "true"),
        (float, "5"),
        (float, True),
        (str, 5),
        (datetime, "yesterday"),
        (datetime, 1_700_000_000),
        (date, "2026-02-30"),
        (uuid.UUID, "no"),
        (Colour, "blue"),
        (list[int], {"0": 1}),
        (list[int], 1),
        (dict[str, int], [1]),
        (Literal["a"], "b"),
        (Annotated[int, Field(ge=0)], -1),
        (Annotated[str, Field(max_length=2)], "abc"),
        (Customer, {"name": "A"}),
        (Customer, "Ann"),
        (Address, {"street": "x"}),
    ],
)
def test_json_of_another_type_is_refused_not_converted(kind, wrong):
    assert paths(takes(kind), {"x": wrong})[0].startswith("inputs.x")


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_a_number_that_is_not_finite_is_no_number(number):
    checked = takes(float).check(b'{"x":%s}' % number.encode())
    assert [problem.path for problem in checked.problems] == ["inputs.x"]


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**63), 2**63 - 1), st.text(), st.booleans())
def test_plain_values_come_through_unchanged(number, whole, text, flag):
    def function(number: float, whole: int, text: str, flag: bool): ...

    value = {"number": number, "whole": whole, "text": text, "flag": flag}
    assert check(from_signature(function)[0], value) == value


# --- all problems, with their paths, without their values -----------------------------------------------------------------


def everything(
    cash_flows: list[float],
    rate: float,
    customer: Customer,
    when: datetime,
    pet: Annotated[Cat | Dog, Field(discriminator="kind")],
    colour: Colour,
    by_name: dict[str, int],
    code: Annotated[str, Field(pattern="^[A-Z]+$")],
    choice: Literal["a", "b"],
    number: Annotated[int, Field(lt=10)],
    either: int | bool,
    key: uuid.UUID,
): ...


WRONG = {
    "cash_flows": [1, PERSONAL, 3, PERSONAL],
    "customer": {"name": PERSONAL, "address": {"street": 7, "numbers": [1, PERSONAL]}},
    "when": PERSONAL,
    "pet": {"kind": PERSONAL},
    "colour": PERSONAL,
    "by_name": {"a": PERSONAL},
    "code": PERSONAL,
    "choice": PERSONAL,
    "number": 4_111_111_111_111_111,
    "either": PERSONAL,
    "key": PERSONAL,
    "extra": PERSONAL,
}


def test_every_problem_is_named_at_once_with_its_path():
    assert paths(from_signature(everything)[0], WRONG) == [
        "inputs.cash_flows[1]",
        "inputs.cash_flows[3]",
        "inputs.rate",
        "inputs.customer.address.street",
        "inputs.customer.address.numbers[1]",
        "inputs.when",
        "inputs.pet",
        "inputs.colour",
        "inputs.by_name.a",
        "inputs.code",
        "inputs.choice",
        "inputs.number",
        "inputs.either.int",
        "inputs.either.bool",
        "inputs.key",
        "inputs.extra",
    ]


def test_no_message_repeats_a_value():
    for problem in from_signature(everything)[0].check(json.dumps(WRONG).encode()).problems:
        assert PERSONAL not in problem.message
        assert "4111" not in problem.message
        assert problem.message


def test_a_wrong_tag_is_told_with_the_tags_there_are():
    (problem,) = takes(Annotated[Cat | Dog, Field(discriminator="kind")]).check(b'{"x":{"kind":"ann"}}').problems
    assert "'cat', 'dog'" in problem.message
    assert "ann" not in problem.message


@pytest.mark.parametrize("make", [lambda: takes(list[int]), lambda: JsonSchema(OBJECT_OF_NUMBERS, path="inputs")])
def test_problems_are_told_up_to_a_number(make):
    assert len(paths(make(), {"x": ["no"] * (PROBLEMS_MAX + 50)})) == PROBLEMS_MAX


OBJECT_OF_NUMBERS = {"type": "object", "properties": {"x": {"type": "array", "items": {"type": "number"}}}}


@given(st.binary() | st.text().map(str.encode))
def test_no_bytes_make_a_checker_of_types_raise(raw):
    checked = takes(list[int]).check(raw)
    assert checked.problems
    assert all(problem.path.startswith("inputs") for problem in checked.problems)


# --- results ------------------------------------------------------------------------------------------------------------


def returns(kind: Any) -> Checker | None:
    def function(): ...

    function.__annotations__ = {"return": kind}
    return from_return(function)


@pytest.mark.parametrize("raised", [KeyError("gone"), SystemExit(1)])
def test_a_validator_that_fails_in_any_way_is_a_schema_error_that_says_how(raised):
    def fail(value: int) -> int:
        raise raised

    with pytest.raises(SchemaError, match=f"n: its validator failed with {type(raised).__name__}"):
        PythonType(Annotated[int, pydantic.AfterValidator(fail)], path="n").check(b"1")


@pytest.mark.parametrize("kind", [Any, None, dict, object, Reply, Reply | str, Reply[int] | None])
def test_an_annotation_that_says_nothing_checks_nothing(kind):
    assert returns(kind) is None
    assert from_return(lambda: 1) is None


def test_a_result_is_checked_against_what_is_annotated():
    checker = returns(list[Customer])
    assert checker is not None
    assert check(checker, [{"name": "Ann"}]) == [Customer(name="Ann")]
    assert paths(checker, [{"name": "Ann"}, {"name": 5}]) == ["data[1].name"]


def test_a_result_that_may_be_any_object_is_read_as_it_is_and_must_be_one():
    checker = returns(dict[str, Any])
    assert checker is not None
    assert checker.is_plain
    assert check(checker, {"a": [1, 2.0, None]}) == {"a": [1, 2.0, None]}
    assert paths(checker, [1]) == ["data"]
    numbers = returns(dict[str, int])
    assert numbers is not None
    assert not numbers.is_plain
    assert paths(numbers, {"a": "1"}) == ["data.a"]


def test_an_annotation_need_not_be_hashable():
    checker = returns(Annotated[list[int], {"unhashable": []}])
    assert checker is not None
    assert check(checker, [1]) == [1]


def test_a_type_can_be_told_as_json_schema():
    schema = from_signature(npv)[0].json_schema()
    assert schema["required"] == ["cash_flows"]
    assert schema["properties"]["cash_flows"] == {"items": {"type": "number"}, "title": "Cash Flows", "type": "array"}
    assert schema["additionalProperties"] is False
    number = PythonType(int, path="data")
    assert number.json_schema() == {"type": "integer"}
    number.json_schema()["type"] = "string"  # the caller's own
    assert number.json_schema() == {"type": "integer"}


# --- JSON Schema ----------------------------------------------------------------------------------------------------------

SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "required": ["rate", "cash_flows"],
    "additionalProperties": False,
    "properties": {
        "rate": {"type": "number", "maximum": 1},
        "cash_flows": {"type": "array", "items": {"$ref": "#/$defs/amount"}},
        "mail": {"type": "string", "maxLength": 3},
        "kind": {"enum": ["a"]},
        "who": {"not": {"type": "string"}},
    },
    "$defs": {"amount": {"type": "number"}},
}


def test_a_document_that_fits_a_json_schema_is_returned_as_it_is():
    value = {"rate": 0.1, "cash_flows": [1, 2.5]}
    assert check(JsonSchema(SCHEMA, path="inputs"), value) == value


def test_every_problem_with_a_json_schema_is_named_at_once_without_its_value():
    wrong = {"cash_flows": [1, PERSONAL, PERSONAL], "mail": PERSONAL, "kind": PERSONAL, "who": PERSONAL, "extra": PERSONAL}
    problems = JsonSchema(SCHEMA, path="inputs").check(json.dumps(wrong).encode()).problems
    assert sorted(problem.path for problem in problems) == [
        "inputs",
        "inputs",
        "inputs.cash_flows[1]",
        "inputs.cash_flows[2]",
        "inputs.kind",
        "inputs.mail",
        "inputs.who",
    ]
    assert any("rate" in problem.message for problem in problems)
    assert any("extra" in problem.message for problem in problems)
    assert not any(PERSONAL in problem.message for problem in problems)


def test_a_json_schema_is_told_as_given():
    assert JsonSchema(SCHEMA, path="inputs").json_schema() == SCHEMA


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nope"},
        {"properties": {"a": {"type": ["string", "nope"]}}},
        {"required": "a"},
        {"minLength": -1},
        {"pattern": "("},
        {"$ref": "#/$defs/missing"},
        {"$defs": {"a": {"type": 5}}},
        {"enum": [object()]},
        {"properties": {1: {}}},
    ],
)
def test_an_invalid_json_schema_is_a_schema_error(schema):
    with pytest.raises(SchemaError, match="not a valid JSON Schema"):
        JsonSchema(schema, path="inputs")


def test_an_invalid_json_schema_is_told_by_its_path():
    with pytest.raises(SchemaError, match=r"schema\.properties\.a\.type"):
        JsonSchema({"properties": {"a": {"type": "nope"}}}, path="inputs")


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "http://127.0.0.1:{port}/schema.json"},
        {"properties": {"a": {"$ref": "http://127.0.0.1:{port}/schema.json#/a"}}},
        {"$schema": "http://127.0.0.1:{port}/meta.json", "type": "object"},
        {"$ref": "file:///etc/hostname"},
    ],
)
def test_nothing_outside_a_json_schema_is_ever_fetched(schema):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        port = str(server.getsockname()[1])
        with pytest.raises(SchemaError):
            JsonSchema(json.loads(json.dumps(schema).replace("{port}", port)), path="inputs")
        with pytest.raises(BlockingIOError):
            server.accept()


# --- paths --------------------------------------------------------------------------------------------------------------


def test_a_path_is_written_with_dots_and_brackets():
    assert join("inputs", ["cash_flows", 2, "a", 0, 1]) == "inputs.cash_flows[2].a[0][1]"
    assert join("data", []) == "data"


@pytest.mark.parametrize(("kind", "value"), [(Any, "x" * 40_000), (dict, {"a": "x" * 40_000}), (list[Any], ["x"] * 20_000)])
def test_a_long_input_without_a_type_of_its_own_is_not_read_again(kind, value):
    async def work(ctx, value, count: int): ...

    work.__annotations__["value"] = kind
    checker, _ = from_signature(work)
    document = {"value": value, "count": 2}
    raw = json.dumps(document).encode()
    read = checker.check_read(raw, document)
    assert read == checker.check(raw)
    assert read.value == document
    assert read.value["value"] is value
    few = document | {"value": type(value)()}
    for wrong in ({"count": "2"}, {"other": 1}, {"count": None}):
        expected = checker.check(json.dumps(few | wrong).encode()).problems  # which the validator reads
        assert (
            expected
            == checker.check_read(raw, document | wrong).problems
            == checker.check(json.dumps(document | wrong).encode()).problems
        )
        assert expected
    assert checker.check_read(raw, {"count": 2}).problems == checker.check(b'{"count": 2}').problems != ()
    assert checker.check(raw[:-1]).problems == PythonType(dict, path="inputs").check(raw[:-1]).problems != ()
    assert checker.check(b"[%b]" % raw).problems == checker.check(b"[1]").problems != ()
    if kind is not Any:
        assert checker.check_read(raw, document | {"value": "[[PHONE_1_kqzmtwbf]]"}).problems


NESTED = {
    "type": "object",
    "properties": {"rows": {"type": "array", "minItems": 300, "items": {"required": ["a"], "maxProperties": 2}}},
}


@pytest.mark.parametrize(
    ("schema", "document", "expected"),
    [
        ({"items": {"type": "integer"}}, ["x"] * 300, [f"inputs[{place}]" for place in range(PROBLEMS_MAX)]),
        ({"items": {"type": "integer"}}, [1] * 300 + ["x"] * 300, ["inputs[300]"]),
        (NESTED, {"rows": [{"a": 1}] * 350 + [{}] * 9}, ["inputs.rows[350]"]),
        (NESTED, {"rows": [{}] + [{"a": 1}] * 350}, ["inputs.rows[0]"]),
        (NESTED, {"rows": [{f"k{n}": n for n in range(400)}] * 300}, ["inputs.rows[0]"]),
    ],
)
def test_problems_of_a_long_document_are_named_in_its_beginning_and_are_those_of_all_of_it(schema, document, expected):
    assert paths(JsonSchema(schema, path="inputs"), document) == expected


class Row(pydantic.BaseModel):
    a: int
    rest: list[int] = Field(default_factory=list, min_length=0)


@pytest.mark.parametrize(
    ("document", "problems"),
    [
        ([{"a": "x"}] * 2_000, [f"inputs[{place}].a" for place in range(PROBLEMS_MAX)]),
        ([{"rest": []}] + [{"a": "x"}] * 2_000, ["inputs[0].a", "inputs[1].a"]),
        ([{"rest": [1] * 300}] + [{"a": "x"}] * 2_000, ["inputs[0].a"]),
        ([{"a": 1}] * 300 + [{"a": "x"}] * 2_000, ["inputs"]),
    ],
)
def test_thousands_of_problems_are_named_in_the_beginning_of_the_document(document, problems):
    assert paths(PythonType(list[Row], path="inputs"), document)[: len(problems)] == problems


def test_thousands_of_problems_behind_the_beginning_are_counted():
    checked = PythonType(list[int], path="inputs").check(json.dumps([1] * 300 + ["x"] * 2_000).encode())
    assert [problem.message for problem in checked.problems] == ["has 2,000 problems"]
