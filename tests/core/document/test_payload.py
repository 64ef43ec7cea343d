"""Documents: what JSON can say comes through unchanged, what it cannot say is refused by its path, nothing is lost silently."""

from __future__ import annotations

import dataclasses
import enum
import json
import math
import string
import uuid
from collections import OrderedDict, deque
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count, repeat
from typing import Any

import msgspec
import pydantic
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from comity.core.call.limits import ITEMS_MAX, NAME_CHARS_MAX, NESTING_MAX, PROBLEMS_MAX
from comity.core.document.payload import (
    PayloadError,
    Problem,
    check,
    check_keys,
    pack,
    readable,
    step,
    text_problem,
    unpack,
    unpack_long,
    walk,
)
from comity.core.document.slices import ONE_GO_BYTES

BYTES_MAX = 1_000_000
CONTROLS = [chr(code) for code in (*range(0x20), 0x7F) if chr(code) not in "\t\n\r"]


@dataclasses.dataclass
class Point:
    x: float
    note: Any = None


class Record(msgspec.Struct):
    x: float
    note: Any = None


class Model(pydantic.BaseModel):
    x: float
    note: Any = None


@pydantic.dataclasses.dataclass
class Checked:
    x: float
    note: Any = None


class Colour(enum.Enum):
    RED = "red"


def packed(value: Any, *, bytes_max: int = BYTES_MAX) -> bytes:
    return pack(value, path="inputs", bytes_max=bytes_max)


def refused(value: Any, *, bytes_max: int = BYTES_MAX) -> PayloadError:
    with pytest.raises(PayloadError) as caught:
        packed(value, bytes_max=bytes_max)
    error = caught.value
    assert error.problems
    assert str(error) == "; ".join(f"{problem.path}: {problem.message}" for problem in error.problems)
    msgspec.json.encode(error.problems)  # what is told can itself be told
    return error


def paths(value: Any) -> list[str]:
    error = refused(value)
    assert error.code == "INPUT_VALIDATION_FAILED"
    return [problem.path for problem in error.problems]


def problems_of(raw: bytes) -> tuple[Problem, ...]:
    """What a receiver finds wrong with a document."""
    try:
        check(raw, path="inputs", bytes_max=BYTES_MAX)
    except PayloadError as error:
        return error.problems
    return ()


def nested(depth: int, *, inside: Any = 1, is_object: bool = False) -> Any:
    value = inside
    for _ in range(depth):
        value = {"a": value} if is_object else [value]
    return value


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="".join(CONTROLS)), max_size=20)
leaves = st.none() | st.booleans() | st.integers(-(2**200), 2**200) | st.floats(allow_nan=False, allow_infinity=False) | texts
json_values = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)


def same(one: Any, other: Any) -> bool:
    """Equal in value and kind: True is not 1, and 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


# --- what JSON can say --------------------------------------------------------------------------------------------------


@given(json_values)
@example([None, True, 0, -0.0, "", [], {}, "null", "NaN", "\\u0000", "\U0001f600", "\u2028", "a\tb\r\nc"])
def test_everything_json_can_say_comes_back_the_same(value):
    raw = packed(value)
    assert same(unpack(raw), value)
    assert same(json.loads(raw), value)


@given(json_values)
def test_what_was_packed_is_valid_for_whoever_gets_it(value):
    assert problems_of(packed(value)) == ()


@given(json_values)
def test_packing_copies(value):
    before = packed(value)
    mine = unpack(before)
    raw = packed(mine)
    if isinstance(mine, list):
        mine.append("more")
    elif isinstance(mine, dict):
        mine["more"] = 1
    assert raw == before
    assert same(unpack(raw), value)


def test_each_unpacking_is_a_value_of_its_own():
    raw = packed({"a": [1]})
    first = unpack(raw)
    first["a"].append(2)
    assert unpack(raw) == {"a": [1]}


# --- what is close to JSON ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("beside", [{}, {"null": None}], ids=["alone", "beside a null"])
@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Point(1.5, [Point(2, "a")]), {"x": 1.5, "note": [{"x": 2, "note": "a"}]}),
        (Record(1.5, "a"), {"x": 1.5, "note": "a"}),
        (Model(x=1.5, note={"m": Model(x=2)}), {"x": 1.5, "note": {"m": {"x": 2.0, "note": None}}}),
        (Checked(1.5), {"x": 1.5, "note": None}),
        (datetime(2026, 1, 18, 14, 30, tzinfo=UTC), "2026-01-18T14:30:00Z"),
        (date(2026, 1, 18), "2026-01-18"),
        (timedelta(hours=1), "PT3600S"),
        (uuid.UUID(int=7), "00000000-0000-0000-0000-000000000007"),
        (Decimal("1.10"), "1.10"),
        ({3}, [3]),
        (frozenset(["a"]), ["a"]),
        ((1, (2,)), [1, [2]]),
        (deque([1]), [1]),
        (Colour.RED, "red"),
        (b"\xff\x00", "/wA="),
        (OrderedDict(a=1), {"a": 1}),
        ({1: "a"}, {"1": "a"}),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_value_that_json_can_stand_for_is_written_one_way_whatever_is_beside_it(value, expected, beside):
    assert unpack(packed({"v": value, **beside})) == {"v": expected, **beside}


# --- what JSON cannot say -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("beside", [{}, {"null": None}])
@pytest.mark.parametrize(
    "hide",
    [
        lambda n: n,
        lambda n: [1, {"b": n}],
        lambda n: (1, (n,)),
        Point,
        lambda n: Point(1, [Point(n)]),
        Record,
        lambda n: Model(x=n),
        lambda n: {"m": [Model(x=1, note=Model(x=n))]},
        Checked,
        lambda n: deque([n]),
        lambda n: {1: n},
        lambda n: [Point(1, Model(x=1, note=Record(n)))],
    ],
)
def test_a_number_that_is_not_finite_never_becomes_null(number, beside, hide):
    (path,) = paths({"v": hide(number), **beside})
    assert path.startswith("inputs.v")


def test_a_number_that_is_not_finite_is_named_by_its_path():
    assert paths({"a": [1, {"b": math.nan}], "c": None, "d": Point(math.inf, [1, -math.inf])}) == [
        "inputs.d.note[1]",
        "inputs.d.x",
        "inputs.a[1].b",
    ]
    assert paths(math.nan) == ["inputs"]


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"{ord(control):02x}")
def test_a_control_character_is_named_by_its_path(control):
    assert paths({"a": ["fine", {"b": f"x{control}y"}]}) == ["inputs.a[1].b"]
    assert paths({"a": {f"x{control}": 1}}) == ["inputs.a.?"]
    assert paths(control) == ["inputs"]


@pytest.mark.parametrize("surrogate", ["\ud800", "a\udc80b"])
def test_text_that_is_not_utf8_is_named_by_its_path(surrogate):
    assert paths({"a": [1, surrogate]}) == ["inputs.a[1]"]
    assert paths({"a": {surrogate: 1}}) == ["inputs.a.?"]
    assert paths({"a": {surrogate: object()}}) == ["inputs.a.?", "inputs.a.?"]


@pytest.mark.parametrize(
    "thing",
    [object(), lambda: 1, Colour, ValueError("x"), iter([1]), count(), (n for n in [1]), range(3), 10**5_000],
    ids=lambda thing: type(thing).__name__,
)
def test_a_thing_without_a_json_form_is_named_by_its_path_and_kind(thing):
    error = refused({"a": [{"b": thing}], "c": None})
    assert error.code == "INPUT_VALIDATION_FAILED"
    assert error.problems == (Problem("inputs.a[0].b", f"{type(thing).__name__} has no JSON form"),)


def test_things_inside_of_records_are_named_by_their_own_path():
    assert paths({"a": Point(1, object())}) == ["inputs.a.note"]
    assert paths({"a": [Record(1, {"b": object()})]}) == ["inputs.a[0].note.b"]
    assert paths({"a": Model(x=1, note=object())}) == ["inputs.a"]
    assert paths({"a": {1, object()}}) == ["inputs.a"]


@pytest.mark.parametrize("key", [None, (1, 2), True, frozenset()])
def test_a_key_that_is_no_text_or_number_is_refused(key):
    error = refused({"a": {key: 1}})
    assert error.problems == (Problem("inputs.a", f"{type(key).__name__} cannot be a key"),)


def endless_list() -> Any:
    loop: list[Any] = [1]
    loop.append(loop)
    return loop


def endless_dict() -> Any:
    loop: dict[str, Any] = {}
    loop["a"] = [{"b": loop}]
    return loop


def endless_record() -> Any:
    loop = Point(1)
    loop.note = [loop]
    return loop


def endless_twins() -> Any:
    """Two ways on at every step: looking at all of them would not end either."""
    loop: list[Any] = []
    loop += [loop, loop]
    return loop


@pytest.mark.parametrize("make", [endless_list, endless_dict, endless_record, endless_twins])
def test_what_contains_itself_is_refused_and_the_search_for_it_ends(make):
    (path,) = paths({"a": make()})
    assert path.startswith("inputs.a")
    assert "contains itself" in refused({"a": make()}).problems[0].message


def test_problems_are_told_up_to_a_number():
    assert len(paths(["\x00"] * (PROBLEMS_MAX + 50))) == PROBLEMS_MAX
    assert len(paths([math.nan] * (PROBLEMS_MAX + 50))) == PROBLEMS_MAX
    assert len(paths([object()] * (PROBLEMS_MAX + 50))) == PROBLEMS_MAX


def test_a_huge_value_with_one_bad_leaf_is_given_up_in_bounded_time():
    error = refused([object(), *repeat(0, 3 * ITEMS_MAX)])
    assert f"more than {ITEMS_MAX:,} values" in error.problems[0].message


wild = st.recursive(
    leaves
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.text(st.characters(categories=["Cs", "Cc"]), max_size=2)
    | st.builds(object)
    | st.builds(Point, st.floats())
    | st.builds(Model, x=st.floats()),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text("ab", max_size=3) | st.integers() | st.none() | st.sampled_from(["\ud800", "\x00"]), inner, max_size=3
        )
        | st.builds(Point, st.floats(), inner)
        | st.tuples(inner)
    ),
    max_leaves=10,
)


@given(wild)
def test_any_value_is_either_packed_or_refused_with_paths(value):
    try:
        raw = packed(value)
    except PayloadError:
        assert all(problem.path.startswith("inputs") and problem.path.isprintable() for problem in refused(value).problems)
    else:
        assert packed(unpack(raw)) == raw
        assert problems_of(raw) == ()


@given(wild)
def test_no_number_is_ever_lost(value):
    """What was written has a null for every None of the value, and for nothing else."""
    assume(not isinstance(value, str))
    try:
        raw = packed([value, None])
    except PayloadError:
        return

    def nones(one: Any) -> int:
        if isinstance(one, (Point, Model)):
            return nones(one.x) + nones(one.note)
        if isinstance(one, dict):
            return sum(map(nones, one.values()))
        return sum(map(nones, one)) if isinstance(one, (list, tuple)) else one is None

    assert nones(unpack(raw)) == nones(value) + 1


# --- sizes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filler", ["x", "é", "null ", '\\"'])
def test_a_document_of_exactly_the_size_passes_and_one_byte_more_is_refused(filler):
    value = {"a": filler * 1_000}
    size = len(packed(value))
    assert len(packed(value, bytes_max=size)) == size
    error = refused(value, bytes_max=size - 1)
    assert error.code == "ENVELOPE_TOO_LARGE"
    assert error.problems == (Problem("inputs", f"is {size:,} bytes; at most {size - 1:,} are allowed"),)


@pytest.mark.parametrize("is_object", [True, False])
@pytest.mark.parametrize("inside", ["[[[[{{{{", 'a"]}\\', [], {}, [1, {"b": 2}], None])
def test_exactly_the_nesting_passes_and_one_level_more_is_refused(is_object, inside):
    levels = 2 if inside == [1, {"b": 2}] else 1 if inside in ([], {}) else 0
    deepest = nested(NESTING_MAX - levels, inside=inside, is_object=is_object)
    assert unpack(packed(deepest)) == deepest
    error = refused(nested(1, inside=deepest, is_object=is_object))
    assert error.code == "INPUT_VALIDATION_FAILED"
    assert error.problems == (Problem("inputs", f"is nested more than {NESTING_MAX} levels deep"),)


def test_many_values_beside_each_other_are_not_deep():
    value = [{"a": [n, {"b": "]}"}]} for n in range(1_000)]
    assert unpack(packed(value)) == value


@pytest.mark.parametrize("depth", [100, 10_000, 200_000])
def test_very_deep_nesting_is_refused_not_a_crash(depth):
    value = nested(depth)
    assert refused(value).problems[0].path.startswith("inputs")
    while isinstance(value, list):  # taken apart by hand: freeing it at once would recurse as deep
        value = value[0]


def test_exactly_the_number_of_values_passes_and_one_more_is_refused():
    assert len(unpack(packed([0] * ITEMS_MAX))) == ITEMS_MAX
    error = refused([0] * (ITEMS_MAX + 1))
    assert error.code == "ENVELOPE_TOO_LARGE"
    assert error.problems == (Problem("inputs", f"holds {ITEMS_MAX + 1:,} values; at most {ITEMS_MAX:,} are allowed"),)
    pairs = {f"{n}": [] for n in range(ITEMS_MAX // 2 + 1)}
    assert refused(pairs, bytes_max=10 * BYTES_MAX).code == "ENVELOPE_TOO_LARGE"


def test_commas_and_brackets_in_texts_are_no_values():
    text = ',[{",\\"' * (ITEMS_MAX // 4)
    assert unpack(packed({"a": text}, bytes_max=10 * BYTES_MAX)) == {"a": text}


@pytest.mark.parametrize("raw", [b'"\\u0007"', b'"\\b"', b'{"a\\f":1}', b'"\x7f"', b'["\\u007F"]', b'"\\u001b"'])
def test_a_document_from_outside_is_searched_for_control_characters_however_they_are_written(raw):
    with pytest.raises(PayloadError):
        check(raw, path="inputs", bytes_max=100)


@pytest.mark.parametrize("raw", [b'"\\\\u0007"', b'"\\\\b"', b'"\\u00e9"', b'"\\t\\n\\r"', b'"\\/"', b'"\\u2028"'])
def test_what_only_looks_like_a_control_character_is_none(raw):
    assert problems_of(raw) == ()


# --- texts --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", "é", "€", "😀"])
def test_the_size_of_a_text_is_counted_in_bytes(letter):
    size = len(letter.encode())
    assert text_problem(letter * 10, path="message", bytes_max=10 * size) is None
    problem = text_problem(letter * 10, path="message", bytes_max=10 * size - 1)
    assert problem == Problem("message", f"is {10 * size} bytes; at most {10 * size - 1} are allowed")


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"{ord(control):02x}")
def test_a_text_may_not_hold_control_characters(control):
    for text in (control, f"a{control}", f"é{control}"):
        assert text_problem(text, path="message", bytes_max=100) == Problem("message", "holds a control character")


@given(st.text(st.characters(codec=None)), st.integers(1, 50))
def test_any_text_can_be_made_one_that_nothing_is_wrong_with(text, most):
    assert text_problem(readable(text, most), path="message", bytes_max=most) is None


@pytest.mark.parametrize("wrong", [None, 7, b"text", ["text"], type("Text", (str,), {})("text")])
def test_a_text_must_be_text(wrong):
    problem = text_problem(wrong, path="message", bytes_max=100)
    assert problem == Problem("message", f"must be text, not {type(wrong).__name__}")


def test_line_breaks_and_tabs_are_fine_and_surrogates_are_not():
    assert text_problem("a\tb\r\nc", path="message", bytes_max=100) is None
    assert text_problem("", path="message", bytes_max=0) is None
    problem = text_problem("a\ud800", path="message", bytes_max=100)
    assert problem is not None
    assert "surrogate" in problem.message


# --- paths --------------------------------------------------------------------------------------------------------------


def test_a_walk_names_everything_once_with_its_depth():
    seen = list(walk({"a": [1, {"b": 2}]}, "in"))
    assert seen[0] == ("in", {"a": [1, {"b": 2}]}, 0)
    assert sorted((path, depth) for path, item, depth in seen if not isinstance(item, (dict, list))) == [
        ("in.a", 0),
        ("in.a[0]", 2),
        ("in.a[1].b", 2),
        ("in.a[1].b", 3),
    ]


def test_a_walk_comes_when_it_is_asked():
    assert isinstance(walk([], ""), Iterator)
    assert next(walk(endless_list(), "in"))[0] == "in"


@pytest.mark.parametrize(
    ("key", "shown"),
    [("a", "a"), ("a.b", "a.b"), ("é", "é"), (7, "7"), (1.5, "1.5"), ("\n", "?"), ("\ud800", "?"), (None, "?"), ((1,), "?")],
)
def test_a_key_that_cannot_be_shown_shows_as_a_question_mark(key, shown):
    assert step("inputs", key) == f"inputs.{shown}"
    assert step("", key) == shown


def test_a_key_is_shown_up_to_a_length():
    assert step("in", "k" * NAME_CHARS_MAX) == "in." + "k" * NAME_CHARS_MAX
    assert step("in", "k" * (NAME_CHARS_MAX + 1)) == "in.?"


# --- keys that stand twice ---


@given(st.recursive(st.none() | st.integers() | st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner)))
def test_a_document_that_was_written_from_data_has_no_key_twice(value):
    check_keys(msgspec.json.encode(value))


@pytest.mark.parametrize(
    ("raw", "paths"),
    [
        ('{"a":1,"a":1}', ["a"]),
        ('{"a":1,"\\u0061":2}', ["a"]),
        ('[{"b":{"c":1,"d":2,"c":3}},{"e":0,"e":0}]', ["[1].e", "[0].b.c"]),
        ('{"a":{"x":1},"b":{"x":1}}', []),
    ],
)
def test_a_key_that_stands_twice_in_one_object_is_refused_by_its_path(raw, paths):
    if not paths:
        check_keys(raw)
        return
    with pytest.raises(PayloadError) as caught:
        check_keys(raw)
    assert [problem.path for problem in caught.value.problems] == paths


def test_looking_for_keys_in_what_is_nested_too_deep_is_a_typed_error_too():
    with pytest.raises(PayloadError, match="nested too deep"):
        check_keys("[" * 100_000 + "]" * 100_000)


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({1: 1, "1": 2}, "x.1"),
        ({"a": [{"b": {2.5: 1, "2.5": 2}}]}, "x.a[0].b.2.5"),
        ([{b"x": 1, "eA==": 2}], "x[0].eA=="),
        ({"a": {}, 1: 1, "1": 2}, "x.1"),
        ({Colour.RED: 1, "red": 2}, "x.red"),
    ],
)
def test_two_keys_that_become_one_are_refused_by_their_path(value, path):
    with pytest.raises(PayloadError) as caught:
        pack(value, "x", BYTES_MAX)
    assert caught.value.problems == (Problem(path, "stands twice"),)


@pytest.mark.parametrize(
    "beside",
    [
        {f"k{number}": "text" for number in range(4_000)},
        [{"k": number} for number in range(4_000)],
        [[[number]] for number in range(5_000)],
        (Point(1, 2), "x" * ONE_GO_BYTES),
    ],
    ids=["one object of many keys", "many objects", "many lists", "a value of another kind"],
)
def test_two_keys_that_become_one_are_refused_in_a_long_value_too(beside):
    """Where all keys are known to be text the written document is not read again; it must be known of each."""
    assert len(pack({"a": beside, "b": {"1": 2}}, "x", BYTES_MAX)) > ONE_GO_BYTES
    with pytest.raises(PayloadError) as caught:
        pack({"a": beside, "b": {1: 1, "1": 2}}, "x", BYTES_MAX)
    assert caught.value.problems == (Problem("x.b.1", "stands twice"),)


@given(
    st.recursive(
        st.text(':"\\\\,{}', max_size=4), lambda inner: st.dictionaries(st.text('a:"\\\\', max_size=2), inner), max_leaves=8
    )
)
def test_a_document_without_a_repeated_key_needs_one_parser_alone(value):
    """Colons are counted outside of strings, whatever the strings hold; a key more than the decoder kept is one of two."""
    for raw in (json.dumps(value), json.dumps(value, indent=1, ensure_ascii=False)):
        check_keys(raw)
        with pytest.raises(PayloadError, match="stands twice"):
            check_keys(f'{{"a": {raw}, "a": 1}}')


@given(st.dictionaries(st.integers() | st.text(string.digits, max_size=2), st.integers(), max_size=6))
def test_keys_that_are_numbers_become_text_and_none_is_lost(value):
    is_lossless = len({str(key) for key in value}) == len(value)
    for nested in (value, {"a": value}, [value]):
        if is_lossless:
            assert unpack(pack({"in": nested}, "x", BYTES_MAX))["in"] == json.loads(json.dumps(nested))
        else:
            with pytest.raises(PayloadError, match="stands twice"):
                pack(nested, "x", BYTES_MAX)


@pytest.mark.parametrize("text", [",[{", '"', '",', "\\", '\\",', ""])
def test_what_stands_in_texts_is_not_counted_as_structure(text):
    values = [text, "plain"] * (ITEMS_MAX // 2 - 1)
    raw = pack(values, "inputs", 10 * ITEMS_MAX)
    assert unpack(raw) == values
    with pytest.raises(PayloadError, match="values; at most"):
        pack([*values, 1, 2, 3], "inputs", 10 * ITEMS_MAX)


@pytest.mark.parametrize("number", ["1.5e300", "5e-324", "1.7976931348623157e308", "-2.5e+17", "12345678901234567890", "1e-7"])
@pytest.mark.parametrize("rest", [b"", b',{"a":"\xc3\xa9 e30"},null,true,0.1', b',"\\u00e9 \\ud83d\\ude00"'])
def test_a_long_document_of_numbers_with_exponents_is_read_as_a_short_one(number, rest):
    raw = b"[" + b",".join([number.encode()] * 10_000) + rest + b"]"
    assert unpack_long(raw) == msgspec.json.decode(raw)


@pytest.mark.parametrize(
    ("number", "is_quick"),
    [(b"1.5e300", True), (b"1.5E+300", True), (b'2e-9,"\\u0041"', True), (b'"one"', False), (b'"e5"', False)],
)
def test_exponents_are_counted_where_a_digit_is_before_them(number, is_quick, monkeypatch):
    """The decoder for other documents takes 18 µs for a number such as 1.5E300, whatever its letter."""
    read = []
    monkeypatch.setattr(json, "loads", lambda raw, **_: read.append(raw) or [])
    raw = b"[" + b",".join([number] * 10_000) + b"]"
    unpack_long(raw)
    assert bool(read) is is_quick


@pytest.mark.parametrize(
    "wrong", [b"NaN", b"-Infinity", b'"\xff"', b'"\\ud800"', b"[" * 5_000, b"01", b"1.e5", b"1e999", b'"\xed\xa0\x80"']
)
def test_what_is_no_json_is_none_beside_numbers_with_exponents(wrong):
    raw = b"[" + b"1.5e300," * 10_000 + wrong + b"]"
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError, RecursionError)):
        unpack_long(raw)
