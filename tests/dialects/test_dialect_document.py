"""Taking a document in: JSON in any wrapping, bounded, and nothing else."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from comity.core.call.limits import NESTING_MAX, REPLY_BYTES_MAX, WARNINGS_MAX, Limits
from comity.core.envelope.envelope import Reply, Request
from comity.dialects.reading.document import (
    UNSTATED_CONFIDENCE,
    left_ms,
    load,
    renamed,
    sealed_inputs,
    short_number,
    sound_reply,
    sound_request,
)
from comity.errors import CallerError


def code_of(function, *arguments, **options):
    with pytest.raises(CallerError) as caught:
        function(*arguments, **options)
    return caught.value.code


@pytest.mark.parametrize(
    "document",
    ['{"a":[1,null]}', b'{"a":[1,null]}', bytearray(b'{"a":[1,null]}'), memoryview(b'{"a":[1,null]}'), {"a": (1, None)}],
)
def test_an_object_is_taken_in_whatever_it_comes_in(document):
    assert load(document) == {"a": [1, None]}


def test_what_was_taken_in_is_a_copy():
    inner = []
    plain = load({"a": inner})
    plain["a"].append(1)
    assert inner == []


@pytest.mark.parametrize(
    "document",
    ["", "[]", "{", "nul", b"\xff", '{"a":"\\ud800"}', "\ud800", 5, None, [1], {"a": float("nan")}, {"a": {1, 2}, "b": object()},
     '{"a":"\\u0000"}', "[" * 100_000, '{"a":' * (NESTING_MAX + 1) + "1" + "}" * (NESTING_MAX + 1)],
)  # fmt: skip
def test_what_is_no_sound_object_is_malformed(document):
    assert code_of(load, document) == "ENVELOPE_MALFORMED"


def test_a_document_is_bounded_in_size():
    assert code_of(load, '{"a":1}', bytes_max=6) == "ENVELOPE_TOO_LARGE"
    assert code_of(load, {"a": 1}, bytes_max=6) == "ENVELOPE_TOO_LARGE"
    assert load('{"a":1}', bytes_max=7) == {"a": 1}


def test_inputs_and_data_are_bounded_in_size():
    assert code_of(sealed_inputs, {"a": "x" * 1024 * 1024}, path="inputs") == "ENVELOPE_TOO_LARGE"
    assert code_of(sound_reply, Reply.success("x" * REPLY_BYTES_MAX), {}) == "ENVELOPE_TOO_LARGE"


def test_problems_of_the_envelope_are_told_in_the_words_of_the_dialect():
    request = Request("r", "t", "c", "u", Limits(), 0)
    assert sound_request(request, {}) is request
    with pytest.raises(CallerError, match=r"^ENVELOPE_MALFORMED: to: must be"):
        sound_request(replace(request, target=""), {"target": "to"})
    with pytest.raises(CallerError, match=r"^ENVELOPE_MALFORMED: notes: has 101"):
        sound_reply(Reply.success(warnings=("w",) * (WARNINGS_MAX + 1)), {"warnings": "notes"})


@pytest.mark.parametrize(
    ("path", "word"), [("a", "x"), ("a.b", "x.b"), ("a.c", "y"), ("a.c.d", "y.d"), ("e.a", "e.a"), ("", "")]
)
def test_a_path_is_renamed_by_its_longest_known_part(path, word):
    assert renamed(path, {"a": "x", "a.c": "y"}) == word


@pytest.mark.parametrize(("deadline_at", "left"), [(10, 0), (9, 0), (11, 1), (10**12, 24 * 60 * 60 * 1000)])
def test_time_left_is_never_negative_and_at_most_a_day(deadline_at, left):
    assert left_ms(deadline_at, since_ms=10) == left


def test_whole_numbers_are_written_short():
    assert [repr(short_number(number)) for number in (245.0, 0.5, 1e300)] == ["245", "0.5", "1e+300"]


def test_unstated_confidence_is_what_the_envelope_assumes():
    partial = Reply.partial(None, warnings=["w"])
    assert {reply.status: reply.confidence for reply in (Reply.success(), partial)} == UNSTATED_CONFIDENCE


@pytest.mark.parametrize("document", ['{"a":{"b":1,"b":2}}', b'{"a":{"b":1,"b":2}}'])
def test_a_key_that_stands_twice_is_refused_by_its_path(document):
    with pytest.raises(CallerError, match=r"a\.b: stands twice") as caught:
        load(document)
    assert caught.value.code == "ENVELOPE_MALFORMED"
