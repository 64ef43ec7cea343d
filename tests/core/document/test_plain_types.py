"""Objects of plain types: the quick reader takes nothing that the validator refuses, and reads every value as it does."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

import pydantic
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec import MsgspecError
from typing_extensions import TypedDict

from comity.core.document.payload import PayloadError, pack, taker
from comity.core.document.plain_types import is_plain, is_simple, reader
from comity.core.document.schema import from_signature

FIELDS = {"text": str, "count": int, "share": float, "is_open": bool}
FIELDS |= {"parts": list[float], "sums": dict[str, int], "rows": list[dict[str, list[bool]]], "note": str | None}
CONFIG: Any = {"extra": "forbid", "allow_inf_nan": False}
VALIDATORS = {}
for _name, _kind in FIELDS.items():
    _made: Any = TypedDict("_made", {_name: _kind})  # type: ignore[misc]
    _made.__pydantic_config__ = CONFIG
    VALIDATORS[_name] = pydantic.TypeAdapter(_made).validator.validate_json

numbers = st.integers() | st.floats() | st.sampled_from([0, -0.0, 1.0, 1e3, 2**63, 2**64, -(2**63) - 1, 10**30, 1e308])
scalars = st.none() | st.booleans() | numbers | st.text(max_size=4)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
)


def taken(read, raw: bytes) -> str | None:
    """Return what is read, with the types of all values, or None if it is refused."""
    try:
        return repr(read(raw))
    except (MsgspecError, pydantic.ValidationError):
        return None


@given(st.sampled_from(sorted(FIELDS)), values)
@example("count", 1.0)
@example("count", 10**400)
@example("share", 10**400)
@example("is_open", 1)
@example("text", 1)
def test_what_the_reader_takes_the_validator_reads_alike(name: str, value: object) -> None:
    raw = json.dumps({name: value}).encode()
    made = reader({name: FIELDS[name]})
    assert made is not None
    decode, as_dict = made
    if (quick := taken(lambda given: as_dict(decode(given)), raw)) is not None:
        assert quick == taken(lambda given: VALIDATORS[name](given, strict=True), raw)


SIMPLE = {"text": str, "count": int, "share": float, "is_open": bool, "parts": list[float], "rows": list[list[str]]}


@given(st.sampled_from(sorted(SIMPLE)), values)
@example("share", float("nan"))
@example("parts", [1.0, float("inf")])
@example("text", "a\x7fb")
@example("text", "a\x00b")
@example("text", 'say "yes"')
@example("text", "null")
@example("rows", [["{[", "\ud800"]])
def test_what_is_read_while_it_is_packed_is_what_packing_and_reading_give(name: str, value: object) -> None:
    made = reader({name: SIMPLE[name]})
    assert made is not None
    assert is_simple(SIMPLE[name])
    if (found := taker(*made)({name: value})) is not None:
        raw, inputs = found
        assert raw == pack({name: value}, "inputs", 1_000_000, True)
        assert repr(inputs) == repr(made[1](made[0](raw)))


def test_a_number_that_json_cannot_say_is_left_to_packing_which_names_it() -> None:
    made = reader({"parts": list[float]})
    assert made is not None
    take = taker(*made)
    assert take({"parts": [1.0]}) == (b'{"parts":[1.0]}', {"parts": [1.0]})
    assert take({"parts": [float("nan")]}) is None
    with pytest.raises(PayloadError, match="parts\\[0\\]: is not a finite number"):
        pack({"parts": [float("nan")]}, "inputs", 1_000_000, True)


@pytest.mark.parametrize("kind", [dict[str, int], list[dict[str, int]], str | None, list[float | None]])
def test_tables_and_nulls_are_looked_at_after_packing(kind: Any) -> None:
    assert not is_simple(kind)


@pytest.mark.parametrize(
    "kind", [Any, bytes, object, list, dict[int, str], int | str, Literal["a"], Annotated[int, 5], tuple[int]]
)
def test_other_types_are_left_to_the_validator(kind: Any) -> None:
    assert not is_plain(kind)
    assert not is_plain(list[kind])
    assert reader({"plain": str, "other": kind}) is None


def test_an_input_that_is_left_out_keeps_the_default_of_the_function() -> None:
    def book(where: str, nights: int = 1, note: str | None = None) -> None: ...

    checker, _ = from_signature(book)
    assert checker.check(b'{"where":"Rome"}').value == {"where": "Rome"}
    assert checker.check(b'{"where":"Rome","note":null}').value == {"where": "Rome", "note": None}


def test_what_the_reader_does_not_take_gets_every_problem_of_the_validator() -> None:
    def book(where: str, nights: int) -> None: ...

    checker, _ = from_signature(book)
    told = {(one.path, one.message) for one in checker.check(b'{"where":1,"night":2}').problems}
    assert {path for path, _ in told} == {"inputs.where", "inputs.nights", "inputs.night"}
    assert ("inputs.night", "is unknown; did you mean nights?") in told


def test_a_name_that_no_struct_can_have_is_left_to_the_validator() -> None:
    def keep(__struct_fields__: str) -> None: ...

    checker, _ = from_signature(keep)
    assert checker.check(b'{"__struct_fields__":"a"}').value == {"__struct_fields__": "a"}
