"""Text blocks: what is understood, what is refused with its line, and that nothing takes long or escapes."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from steps import grows_no_faster_than_the_text

from comity.core.call.limits import ITEMS_MAX, NESTING_MAX, REQUEST_BYTES_MAX
from comity.dialects.kdap_block import Block, Texts, parse
from comity.errors import CallerError

HEADINGS = {"REQUEST": Texts(frozenset({"id"}), frozenset({"names"})), "HANDOFF CONTEXT": Texts(frozenset(), frozenset())}


def fields_of(text):
    return parse(f"REQUEST\n{text}", HEADINGS).fields


def complaint(text):
    with pytest.raises(CallerError) as caught:
        parse(text, HEADINGS)
    assert caught.value.code == "ENVELOPE_MALFORMED"
    (problem,) = caught.value.facts["problems"]
    return f"{problem.path}: {problem.message}"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("-100000", -100000),
        ("0.12", 0.12),
        ("1e3", 1000.0),
        ("007", "007"),
        ("1.", "1."),
        ("٣", "٣"),
        ("true", True),
        ("null", None),
        ("True", "True"),
        ("18_months", "18_months"),
        ("Step 3 of 5 (Financial Analysis)", "Step 3 of 5 (Financial Analysis)"),
        ("https://a.b/c: d", "https://a.b/c: d"),
        ("a, b", "a, b"),
        ("", ""),
        ('"quoted, \\u00e9"', "quoted, é"),
        ('"open', '"open'),
        ('"a" and "b"', '"a" and "b"'),
        ("1" * 401, "1" * 401),
        ("1e999", "1e999"),
        ("{}", {}),
        ("[]", []),
        ("{a: 1, b: two words, c: [x, y z], }", {"a": 1, "b": "two words", "c": ["x", "y z"]}),
        ('{"a b": "c, d", e:f}', {"a b": "c, d", "e": "f"}),
        ("{\n a: 1\n b: 2\n}", {"a": 1, "b": 2}),
        ("[\n one,\n two\n three\n]", ["one", "two", "three"]),
        ("[{agent: DOC, capability: X}, [1]]", [{"agent": "DOC", "capability": "X"}, [1]]),
        ("{at: 12:30}", {"at": "12:30"}),
    ],
)
def test_a_value_is_read_as_the_seed_writes_it(written, meant):
    value = fields_of(f"key: {written}")["key"]
    assert json.dumps(value) == json.dumps(meant)


def test_text_fields_stay_text():
    assert fields_of("id: 123\nnames: [1, true, a]") == {"id": "123", "names": ["1", "true", "a"]}
    assert fields_of("id: [not a list\nnames: []") == {"id": "[not a list", "names": []}
    assert fields_of('id: "12"') == {"id": "12"}
    assert fields_of("id: null") == {"id": None}


def test_rules_and_blank_lines_stand_around_a_block():
    assert parse("\n---\nHANDOFF CONTEXT\r\n\r\na: 1\r\n\n  b:   2  \n-----\n\n---\n", HEADINGS) == Block(
        "HANDOFF CONTEXT", {"a": 1, "b": 2}
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "$: is neither"),
        ("REPORT\na: 1", "$: is neither"),
        ("REQUEST\n\njust words", "line 3: must start with `key:`"),
        ("REQUEST\na: 1\na: 2", "line 3: says a a second time"),
        ("REQUEST\na: {b: 1, b: 2}", "line 2: says b a second time"),
        ("REQUEST\na: {b: 1", "line 2: ends before its `}`"),
        ("REQUEST\na: {\n b: [1,", "line 3: ends before its `]`"),
        ("REQUEST\na: {b}", "line 2: must have `key: value` inside braces"),
        ("REQUEST\na: {b: }", "line 2: lacks a value"),
        ("REQUEST\na: [1, , 2]", "line 2: lacks a value"),
        ("REQUEST\na: [1 }", "line 2: must have a comma or a line end between values"),
        ("REQUEST\na: [[1] [2]]", "line 2: must have a comma or a line end between values"),
        ('REQUEST\na: {"b" 1}', "line 2: must have `:` after a key"),
        ('REQUEST\na: ["b]', "line 2: opens a quote that does not close"),
        ('REQUEST\na: ["\\x"]', "line 2: holds a string that is not valid JSON"),
        ("REQUEST\na: [1] more", "line 2: goes on after its value has ended"),
        ("REQUEST\na: 1\n---\nRESPONSE", "line 4: stands outside the block"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(text, told):
    assert complaint(text).startswith(told)


def test_nesting_and_values_are_bounded():
    assert fields_of(f"a: {'[' * NESTING_MAX}{']' * NESTING_MAX}")
    assert "nested deeper" in complaint(f"REQUEST\na: {'[' * (NESTING_MAX + 1)}")
    assert "values" in complaint(f"REQUEST\na: [{'1,' * (ITEMS_MAX + 1)}]")


def test_a_block_is_bounded_in_size():
    with pytest.raises(CallerError) as caught:
        parse("x" * (REQUEST_BYTES_MAX + 1), HEADINGS)
    assert caught.value.code == "ENVELOPE_TOO_LARGE"


@pytest.mark.parametrize("part", ['"', '\\"', "[", "{a:", "a:\n", "a: b\n", ", ", "a ", ": ", " ", "\n", "---\n", "{a: [", "1"])
def test_the_steps_of_reading_grow_no_faster_than_the_text(part):
    def read(text):
        with pytest.raises(CallerError):
            parse(text, HEADINGS)

    assert grows_no_faster_than_the_text(read, part * (4_000 // len(part)), start="REQUEST\na: {b: ")
    read("REQUEST\na: {b: " + part * (1_000_000 // len(part)))


PIECES = st.lists(
    st.sampled_from(
        ["REQUEST\n", "a", ":", " ", "{", "}", "[", "]", ",", "\n", '"', "\\", "-1", "---", "null", "é", "\x00", "\ud800"]
    ),
    max_size=25,
).map("".join)


@given(PIECES, st.booleans())
@example("a: \x85b: 1", True)
def test_any_text_is_read_or_refused_by_a_caller_error(text, is_headed):
    try:
        block = parse("REQUEST\n" + text if is_headed else text, HEADINGS)
    except CallerError:
        return
    assert block.heading in HEADINGS


LEAVES = st.none() | st.booleans() | st.integers(-999, 999) | st.sampled_from(["word", "two words", "(x)", "a/b", "é"])
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["k", "key_2", "K3"]), inner, max_size=3),
    max_leaves=6,
)


def loose(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {loose(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[\n  " + ",\n  ".join(map(loose, value)) + "\n]" if value else "[]"
    return value if isinstance(value, str) else json.dumps(value)


@given(VALUES)
def test_what_is_written_loosely_is_read_back(value):
    assert fields_of(f"key: {loose(value)}\nnext: 1") == {"key": value, "next": 1}
