"""The tolerant JSON reader: what it mends, what it refuses, and that it never takes a part for the whole."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from json_parts import is_part

from comity.core.call.limits import NESTING_MAX
from comity.core.model.reply.repair import Repair
from comity.core.model.reply.tolerant import Broken, Budget, Parsed, parse

ANY_CHARACTER = st.characters(exclude_categories=())
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"))
    | st.sampled_from(['{"a": 1}', '"', "\\", "```", 'a, "b": c', "// x", "}", "…", "it's", "\n\t", "😀"])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.text(max_size=6), VALUES, max_size=5) | st.lists(VALUES, max_size=5)
# Tokens rather than characters: random characters rarely come near the grammar.
TOKENS = st.lists(
    st.sampled_from(
        [
            *"{}[]\"':,\\`/#*.…“”‘’-+ \n\0",
            "```",
            "//",
            "/*",
            "*/",
            "45",
            "1.5",
            "true",
            "None",
            "a",
            '"a"',
            '"a":',
            "\\u",
            "\\ud83d",
        ]
    ),
    max_size=60,
).map("".join)


@st.composite
def encodings(draw: st.DrawFn, values: st.SearchStrategy[Any]) -> tuple[Any, str]:
    """Return a value and one of the ways to write it as JSON."""
    value = draw(values)
    text = json.dumps(
        value,
        ensure_ascii=draw(st.booleans()),
        indent=draw(st.sampled_from([None, 2])),
        separators=draw(st.sampled_from([None, (",", ":"), (" , ", " : ")])),
    )
    return value, text


def follow(value: Any, path: tuple[str | int, ...]) -> Any:
    for step in path:
        value = value[step]
    return value


def changed_strings(part: Any, whole: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Return the paths of strings that are shorter than they were."""
    if isinstance(part, dict):
        return [found for key in part for found in changed_strings(part[key], whole[key], (*path, key))]
    if isinstance(part, list):
        return [found for i, item in enumerate(part) for found in changed_strings(item, whole[i], (*path, i))]
    return [path] if isinstance(part, str) and part != whole else []


@given(encodings(DOCUMENTS))
def test_valid_json_is_read_as_it_is_without_repairs(case):
    value, text = case
    assert parse(text, budget=Budget(10**6)) == Parsed(value, len(text))


@given(encodings(DOCUMENTS), st.data())
def test_a_cut_document_never_contradicts_the_whole_and_says_where_it_was_cut(case, data):
    value, text = case
    cut_at = data.draw(st.integers(min_value=1, max_value=len(text) - 1))
    outcome = parse(text[:cut_at], budget=Budget(10**6))
    assert isinstance(outcome, Parsed)
    assert outcome.repairs[-1] == Repair.TRUNCATED
    assert outcome.cut is not None
    assert is_part(outcome.value, value)
    assert changed_strings(outcome.value, value) in ([], [outcome.cut])


@given(
    st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "\n", " ", "```", "...", "…"]),
)
def test_a_number_at_the_end_of_the_text_is_dropped(number, end):
    written = json.dumps(number)
    for stop in range(1, len(written) + 1):
        outcome = parse('{"a": 1, "n": ' + written[:stop] + end)
        assert isinstance(outcome, Parsed)
        assert outcome.value == {"a": 1}


@given(st.text(ANY_CHARACTER) | TOKENS)
def test_no_text_raises_and_every_outcome_lies_inside_it(text):
    for opening in ("", "{", "[", '{"a":', '["'):
        outcome = parse(opening + text)
        place = outcome.end if isinstance(outcome, Parsed) else outcome.at
        assert 0 <= place <= len(opening + text)


@given(TOKENS)
def test_what_is_read_can_be_written(text):
    outcome = parse("{" + text, budget=Budget(10**6))
    if isinstance(outcome, Parsed):
        assert json.loads(json.dumps(outcome.value, allow_nan=False).encode()) == outcome.value


MENDED = [
    ('{"a": 1,}', {"a": 1}, Repair.TRAILING_COMMA),
    ("[1, 2, ]", [1, 2], Repair.TRAILING_COMMA),
    ("[,1,,2]", [1, 2], Repair.EXTRA_COMMA),
    ('{"a": 1 "b": 2}', {"a": 1, "b": 2}, Repair.MISSING_COMMA),
    ('["a" "b"]', ["a", "b"], Repair.MISSING_COMMA),
    ('{"a": {} "b": []}', {"a": {}, "b": []}, Repair.MISSING_COMMA),
    ('{"a": 1 /* one */}', {"a": 1}, Repair.COMMENT),
    ('{"a": 1 // one\n}', {"a": 1}, Repair.COMMENT),
    ("{'a': 'b'}", {"a": "b"}, Repair.SINGLE_QUOTES),
    ("{“a”: “b”}", {"a": "b"}, Repair.SMART_QUOTES),
    ("{a: 1}", {"a": 1}, Repair.UNQUOTED_KEY),
    ("[True, FALSE, None, undefined]", [True, False, None, None], Repair.PYTHON_LITERAL),
    ("[+1, -.5, 5.]", [1, -0.5, 5.0], Repair.NUMBER_FORM),
    ('["a\nb"]', ["a\nb"], Repair.UNESCAPED_NEWLINE),
    ('["a\x1b[0mb"]', ["a[0mb"], Repair.CONTROL_CHARACTER),
    (r'["\d\'"]', ["\\d'"], Repair.BAD_ESCAPE),
    ('{"a": 1, "a": 2}', {"a": 2}, Repair.DUPLICATE_KEY),
    ("[NaN, -Infinity, 1e999]", [None, None, None], Repair.NON_FINITE),
    (f"[{'1' * 4500}]", [None], Repair.NON_FINITE),
    ("[yes, 007, 0x1F, 12-05]", ["yes", "007", "0x1F", "12-05"], Repair.UNQUOTED_VALUE),
    ('{"a": "b "c" d", "e": 1}', {"a": 'b "c" d', "e": 1}, Repair.UNESCAPED_QUOTE),
    ('{"a": , "b": }', {"a": None, "b": None}, Repair.MISSING_VALUE),
    ('{"a": [1, ...], ...}', {"a": [1]}, Repair.ELISION),
    ('{"a": [1}', {"a": [1]}, Repair.MISMATCHED_BRACKET),
    ('{"a": [{"b": 1]}', {"a": [{"b": 1}]}, Repair.MISMATCHED_BRACKET),
    ('{"a": 1]}', {"a": 1}, Repair.MISMATCHED_BRACKET),
    (r'["\ud83d", "\ude00x"]', ["?", "?x"], Repair.LONE_SURROGATE),
    ("[\u00a01]", [1], Repair.ODD_BLANK),
]


@pytest.mark.parametrize(("text", "value", "repair"), MENDED)
def test_a_common_mistake_is_mended_and_named(text, value, repair):
    assert parse(text) == Parsed(value, len(text), (repair,))


@pytest.mark.parametrize(
    "text",
    [
        "{braces}",
        "{ and more",
        "{{",
        '{"a" 1}',
        '{"a", "b"}',
        '{"a": 45,000}',
        '{"a": 45 000}',
        "[45 000]",
        '{"a": 1 + 1}',
        '{"a": (1, 2)}',
        '{"a": 1 | 2}',
        '{"a": some words}',
        "no bracket",
        "",
    ],
)
def test_what_would_have_to_be_invented_is_broken(text):
    assert isinstance(parse(text), Broken)


def test_reading_stops_where_the_document_closes():
    assert parse('x {"a": "}"} and {"b"', 2) == Parsed({"a": "}"}, 12)


def test_a_broken_object_is_told_from_a_brace_in_prose():
    assert parse("{name} is").has_members is False
    assert parse('{"name": {"first": @').has_members is True
    assert parse("{'name': {'first': @").has_members is True


def test_a_broken_document_says_how_many_brackets_were_open():
    assert parse('{"a": [{"b": @') == Broken(13, 3, has_members=True)


def test_a_fence_ends_the_document_but_not_a_string():
    assert parse('{"a": "```", "b": [1, 2\n```\nmore') == Parsed({"a": "```", "b": [1]}, 24, (Repair.TRUNCATED,), ("b",))


def test_the_fence_after_a_cut_string_is_not_part_of_it():
    outcome = parse('{"a": "b\n```\n')
    assert isinstance(outcome, Parsed)
    assert (outcome.value, outcome.cut) == ({"a": "b"}, ("a",))


def test_the_path_of_the_cut_leads_through_objects_and_arrays():
    outcome = parse('{"a": [0, {"b": "c')
    assert isinstance(outcome, Parsed)
    assert outcome.cut == ("a", 1, "b")
    assert follow(outcome.value, outcome.cut) == "c"


@pytest.mark.parametrize("depth", [NESTING_MAX, NESTING_MAX + 1])
def test_depth_is_bounded(depth):
    assert isinstance(parse("[" * depth + "]" * depth), Parsed if depth <= NESTING_MAX else Broken)


def test_ten_thousand_brackets_do_not_exhaust_the_stack():
    text = "[" * 10_000 + "]" * 10_000
    assert isinstance(parse(text, depth_max=10_000), Parsed)


def test_work_is_bounded_by_the_budget():
    text = "[" + "1," * 1000 + "1]"
    assert isinstance(parse(text, budget=Budget(5000)), Parsed)
    assert isinstance(parse(text, budget=Budget(100)), Broken)


def test_long_strings_cost_steps_too():
    budget = Budget(10_000)
    parse('{"a": "' + "x" * 64_000 + '"}', budget=budget)
    assert 1_000 <= 10_000 - budget.left <= 1_100


def test_attempts_share_one_budget():
    budget = Budget(100)
    for _ in range(100):
        parse('{"a": 1}', budget=budget)
    assert isinstance(parse('{"a": 1}', budget=budget), Broken)
