"""The reply ladder: the public corpus of messy replies, and what holds for every text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from json_parts import is_part

from comity.core.call.limits import ITEMS_MAX, NESTING_MAX, REPLY_BYTES_MAX
from comity.core.document.payload import Problem
from comity.core.document.schema import join
from comity.core.model.reply import LOSSY, TEXT_CHARS_MAX, Reading, Repair, Rung, Status, read

CORPUS = [
    pytest.param(case, id=f"{group['group']}: {case['name']}")
    for group in yaml.safe_load((Path(__file__).parent / "reply_corpus.yaml").read_text(encoding="utf-8"))
    for case in group["cases"]
]
CASES: list[dict[str, Any]] = [param.values[0] for param in CORPUS]

# SACP §7.2, word for word.
FALLBACK = {
    "thought": "System Note: LLM failed to provide structured JSON output.",
    "status": "failure",
    "message": "The LLM returned an invalid response format.",
}

CLEAN = '{"thought":"t","status":"success","data":{"n":1},"message":"m"}'


def text_of(case: dict[str, Any]) -> str:
    return case["text"] if "text" in case else "".join(piece * times for piece, times in case["parts"])


def checker(schema: dict[str, Any]):
    validator = jsonschema_rs.validator_for(schema)
    return lambda data: tuple(Problem(join("data", e.instance_path), e.message) for e in validator.iter_errors(data))


@pytest.mark.parametrize("case", CORPUS)
def test_a_messy_reply_is_read_as_the_corpus_says(case):
    text = text_of(case)
    reading = read(text, data_schema=checker(case["schema"]) if "schema" in case else None)
    assert reading.rung == case["rung"]
    assert list(reading.repairs) == case.get("repairs", [])
    if reading.rung is Rung.FALLBACK:
        raw_output = case.get("raw_output", text[:TEXT_CHARS_MAX] if case.get("is_cut") else text)
        fits = len(msgspec.json.encode({"raw_output": raw_output})) <= REPLY_BYTES_MAX
        assert raw_output.startswith(reading.data["raw_output"])
        assert reading.data.keys() == {"raw_output"}
        assert (reading.data["raw_output"] == raw_output) is fits
        assert {name: getattr(reading, name) for name in FALLBACK} == FALLBACK
        assert reading.degraded
        assert reading.problems
    else:
        assert reading.status == case.get("status", "success")
        assert reading.data == case.get("data", {"n": 1})
        assert reading.degraded is case.get("degraded", False)
        assert reading.next_step_hint == case.get("hint", "")
        assert reading.extra == case.get("extra", {})
    for name in ("thought", "message"):
        if name in case:
            assert getattr(reading, name) == case[name]
    if "problems" in case:
        assert [problem.path for problem in reading.problems] == case["problems"]


def test_the_corpus_is_large_and_every_case_has_its_own_name():
    assert len(CORPUS) >= 150
    assert len({param.id for param in CORPUS}) == len(CORPUS)


def test_the_corpus_shows_every_repair():
    assert {repair for case in CASES for repair in case.get("repairs", [])} == set(Repair)


def test_a_reading_is_degraded_exactly_when_a_repair_may_have_cost_content():
    for case in CASES:
        reading = read(text_of(case))
        assert reading.degraded is (reading.rung is Rung.FALLBACK or not LOSSY.isdisjoint(reading.repairs)), case["name"]


# Values for properties.

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


def replies_with(values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Return valid replies, their fields in any order."""
    fields = {
        "thought": st.text(),
        "status": st.sampled_from([status.value for status in Status]),
        "data": st.dictionaries(st.text(max_size=8), values, max_size=3),
        "message": st.text(),
    }
    return (
        st.fixed_dictionaries(fields, optional={"next_step_hint": st.text()})
        .flatmap(lambda reply: st.permutations(list(reply.items())))
        .map(dict)
    )


# Data and texts that hold other agents' replies, as objects and as strings.
QUOTED = replies_with(VALUES)
REPLIES = replies_with(VALUES | QUOTED | QUOTED.map(json.dumps)) | QUOTED.map(
    lambda reply: reply | {"message": json.dumps(reply | {"status": "success"})}
)
LAYOUTS = st.sampled_from([{}, {"indent": 2}, {"separators": (",", ":")}, {"ensure_ascii": False}])
PHRASES = (
    *("Sure!", "Here", "is {it}", "{ open", "} closed", "[1]", "a [b] c", 'so "quoted"', "it's", '5"', "{x: 1}", "\n"),
    *("`code`", '{"a": 1}', '{"a", "b"}', "a: b", "{{name}}", "//", "# title", "1,000", "\\", "“smart”", "{}"),
    '{"status": "ok"}',
)
PROSE = st.lists(st.sampled_from(PHRASES), max_size=6).map(" ".join)
# Tokens rather than characters: random characters rarely come near the grammar.
PIECES = (
    *"{}[]\"':,\\`/#*.…“”-+ \n\0",
    *("```json\n", "```", "<think>", "</think>", "45", "true", "\\u", "\ud800", "\ufeff", '\\"', '{\\"a\\":'),
    *('"thought":"t"', '"status":"success"', '"data":{', '"message":"', CLEAN, CLEAN[:-1], CLEAN[1:]),
)
TOKENS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)
ANY_TEXT = st.text(st.characters(exclude_categories=())) | TOKENS


@given(ANY_TEXT)
def test_any_text_gives_a_reading_that_can_be_sent(text):
    reading = read(text)
    assert msgspec.convert(msgspec.json.decode(msgspec.json.encode(reading)), Reading) == reading
    assert reading.degraded or reading.status in Status


@given(REPLIES, LAYOUTS)
def test_a_clean_reply_is_read_as_it_is(reply, layout):
    expected = Reading(**(reply | {"status": Status(reply["status"])}))
    assert read(json.dumps(reply, **layout)) == expected


@given(REPLIES, LAYOUTS, PROSE, PROSE)
def test_prose_around_a_reply_changes_nothing(reply, layout, before, after):
    reading = read(f"{before}\n{json.dumps(reply, **layout)}\n{after}")
    assert (reading.status, reading.data) == (reply["status"], reply["data"])
    assert reading.degraded is False


@given(REPLIES, LAYOUTS, PROSE, PROSE, st.sampled_from(["json", "", "JSON", "text"]))
def test_a_fence_around_a_reply_changes_nothing(reply, layout, before, after, label):
    reading = read(f"{before}\n```{label}\n{json.dumps(reply, **layout)}\n```\n{after}")
    assert (reading.status, reading.data, reading.message) == (reply["status"], reply["data"], reply["message"])
    assert (reading.rung, reading.degraded) == (Rung.FENCED, False)


@given(REPLIES, LAYOUTS, PROSE, QUOTED)
def test_a_think_block_before_a_reply_changes_nothing(reply, layout, thoughts, draft):
    reading = read(f"<think>{thoughts} {json.dumps(draft)}</think>\n{json.dumps(reply, **layout)}")
    assert (reading.status, reading.data, reading.message) == (reply["status"], reply["data"], reply["message"])
    assert reading.repairs == (Repair.THINK_BLOCK,)


@given(REPLIES, LAYOUTS, st.sampled_from(["", "Here: ", "```json\n", "<think>x</think>"]), st.data())
def test_a_cut_reply_never_contradicts_the_whole(reply, layout, before, data):
    text = json.dumps(reply, **layout)
    cut_at = data.draw(st.integers(min_value=0, max_value=len(text) - 1))
    after = data.draw(st.sampled_from(["", "\n", "\n```"]) if before == "```json\n" else st.just(""))
    reading = read(before + text[:cut_at] + after)
    assert reading.degraded
    if reading.rung is not Rung.FALLBACK:
        assert Repair.TRUNCATED in reading.repairs
        assert reading.problems
        assert reading.status == reply["status"]
        assert is_part(reading.data, reply["data"])
        assert reply["thought"].startswith(reading.thought)
        assert reply["message"].startswith(reading.message)


@given(REPLIES, st.sampled_from(["ok", "done", "successful", "error", "success!", "", "needs_input", "partial"]))
def test_an_unknown_status_is_never_guessed(reply, word):
    reading = read(json.dumps(reply | {"status": word}))
    assert (reading.rung, reading.status) == (Rung.FALLBACK, "failure")


def test_a_clean_reply_never_reaches_the_repairing_rungs():
    assert read(CLEAN, steps_max=0).rung is Rung.RAW


def test_a_broken_reply_is_given_up_when_its_steps_are_spent():
    text = CLEAN[:-1] + ",}"
    assert read(text, steps_max=200).rung is Rung.REPAIRED
    given_up = read(text, steps_max=20)
    assert given_up.rung is Rung.FALLBACK
    assert "20 steps" in given_up.problems[0].message


def test_the_longest_text_that_is_read_has_exactly_the_limit():
    assert read(CLEAN, text_chars_max=len(CLEAN)).rung is Rung.RAW
    assert read(CLEAN, text_chars_max=len(CLEAN) - 1).data == {"raw_output": CLEAN[:-1]}


@pytest.mark.parametrize("comma", ["", ","])
def test_data_may_be_as_deep_as_an_envelope_allows_and_no_deeper(comma):
    def nested(depth: int) -> str:
        arrays = "[" * (depth - 1) + "]" * (depth - 1)
        return f'{{"thought":"t","status":"success","message":"m","data":{{"a":{arrays}}}{comma}}}'

    assert read(nested(NESTING_MAX)).status is Status.SUCCESS
    refused = read(nested(NESTING_MAX + 1))
    assert refused.rung is Rung.FALLBACK
    assert [problem.path for problem in refused.problems] == ["data"]


def test_a_text_of_brackets_is_refused_without_being_read():
    reading = read("{}" * (ITEMS_MAX + 1), steps_max=10**9)
    assert reading.problems == (Problem("", "holds more than 100,000 objects and arrays"),)


def test_the_checker_sees_the_data_of_a_result_only():
    seen = []

    def check(data):
        seen.append(data)
        return ()

    for status in Status:
        read(json.dumps({"thought": "", "status": status, "data": {"of": status}, "message": ""}), data_schema=check)
    assert seen == [{"of": "success"}, {"of": "completed"}]


def test_the_checker_is_not_asked_about_an_object_that_is_no_reply():
    assert read('{"a": 1} ' + CLEAN, data_schema=lambda data: ()).problems == ()


def test_problems_name_places_and_never_repeat_values():
    reading = read('{"thought":"t","status":"secret-1","data":["secret-2"],"message":{"x":"secret-3"}}')
    assert [problem.path for problem in reading.problems] == ["status", "data", "message"]
    assert "secret" not in "".join(problem.message for problem in reading.problems)
    assert "success, failure, clarification_needed" in reading.problems[0].message


def test_what_a_checker_finds_is_handed_on_unchanged():
    problem = Problem("data.n", "must be even")
    assert read(CLEAN, data_schema=lambda data: (problem,)).problems == (problem,)


def test_of_several_misfits_the_one_most_like_a_reply_is_explained():
    text = '{"a": 1} {"thought":"t","status":"ok","data":{},"message":"m"} {"status":"fine"}'
    assert [problem.path for problem in read(text).problems] == ["status"]


def test_of_equal_misfits_the_first_is_explained():
    text = '{"thought":"t","status":"ok","data":{},"message":"m"} {"thought":"t","status":"success","data":[],"message":"m"}'
    assert [problem.path for problem in read(text).problems] == ["status"]


@pytest.mark.parametrize(("levels", "rung"), [(1, Rung.RAW), (3, Rung.RAW), (4, Rung.FALLBACK)])
def test_a_reply_may_be_escaped_three_times(levels, rung):
    text = CLEAN
    for _ in range(levels):
        text = json.dumps(text)[1:-1]
    assert read(text).rung is rung


def test_a_reading_cannot_be_changed():
    with pytest.raises(AttributeError):
        read(CLEAN).status = Status.FAILURE


OTHER = '{"thought":"t","status":"failure","data":{"n":2},"message":"x"}'


@pytest.mark.parametrize(
    "text",
    [
        f"{CLEAN} and then {OTHER[:-12]}",
        f'{OTHER[:-1]},"data":{{"n":3}}}} {CLEAN}',
        f'[{{"a":1,"reply":{OTHER}}},{CLEAN}]',
    ],
    ids=["it breaks off", "it says something twice", "it is wrapped with something else"],
)
def test_a_whole_reply_is_read_rather_than_one_that_lost_something(text):
    reading = read(text)
    assert (reading.status, reading.data) == (Status.SUCCESS, {"n": 1})


def test_objects_and_arrays_of_a_text_are_counted_together():
    half = ITEMS_MAX // 2 + 1
    reading = read("[" * half + "{" * half)
    assert reading.problems == (Problem("", f"holds more than {ITEMS_MAX:,} objects and arrays"),)


def test_marks_of_thinking_within_a_text_that_is_json_are_content():
    reading = read(json.dumps(f"<think>x</think>{CLEAN}"))
    assert (reading.data, reading.repairs) == ({"n": 1}, ("string_encoded", "prose"))


@pytest.mark.parametrize("before", ["", "Here it is: "])
@pytest.mark.parametrize(
    ("status", "is_checked"), [("success", True), ("completed", True), ("failure", False), ("clarification_needed", False)]
)
def test_only_a_result_must_have_the_data_that_was_asked_for(before, status, is_checked):
    text = json.dumps({"thought": "t", "status": status, "data": {"n": "none"}, "message": "m"})
    reading = read(before + text, data_schema=checker({"type": "object", "properties": {"n": {"type": "integer"}}}))
    assert (reading.rung is Rung.FALLBACK) is is_checked
