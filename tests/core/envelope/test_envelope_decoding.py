"""Decoding: whatever arrives that is no envelope is a typed error that names the path, and never anything else."""

from __future__ import annotations

import json
import re
from typing import Any

import msgspec
import pytest
from envelope_bytes import REPLY, REQUEST, paths, put, refused, sent
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.limits import (
    CHAIN_MAX,
    HINTS_MAX,
    ID_CHARS_MAX,
    INPUTS_BYTES_MAX,
    ITEMS_MAX,
    MESSAGE_BYTES_MAX,
    NAME_CHARS_MAX,
    NESTING_MAX,
    OBJECTIVE_CHARS_MAX,
    REPLY_BYTES_MAX,
    REQUEST_BYTES_MAX,
    WARNINGS_MAX,
)
from comity.core.envelope.codec import decode_reply, decode_request
from comity.core.envelope.envelope import Artifact, Background, Error, Reply, Request, encode
from comity.errors import CODES, CallerError

FIELDS = {*Request.__struct_encode_fields__, *Reply.__struct_encode_fields__}


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


# --- what is not an envelope --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["request_id", "target", "capability", "user_id", "limits", "deadline_at"])
def test_a_missing_field_is_named(field):
    assert paths(sent(REQUEST, **{field: None})) == [field]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"extra": 1}, "extra"),
        ({"body": {}}, "body"),
        ({"limits": {"depth_max": 1, "depth": 2}}, "limits.depth"),
        ({"context": {"facts": [], "fact": 1}}, "context.fact"),
        ({"context": {"references": [{"source_id": "a"}, {"source_id": "b", "x": 1}]}}, "context.references[1].x"),
        ({"expected_output": {"kind": 1}}, "expected_output.kind"),
        ({"a\nb": 1}, "?"),
        ({"x" * 1_000: 1}, "?"),
    ],
)
def test_an_unknown_field_is_named_with_its_path(changed, path):
    assert paths(sent(REQUEST, **changed)) == [path]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"extra": 1}, "extra"),
        ({"error": {"code": "A_B", "message": "", "why": 1}}, "error.why"),
        ({"usage": {"t": 1}}, "usage.t"),
    ],
)
def test_an_unknown_field_of_a_reply_is_named_with_its_path(changed, path):
    assert paths(sent(REPLY, **changed), decode_reply) == [path]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        ({"target": 7}, "target"),
        ({"deadline_at": "soon"}, "deadline_at"),
        ({"deadline_at": 1.5}, "deadline_at"),
        ({"priority": "urgent"}, "priority"),
        ({"chain": "ORC"}, "chain"),
        ({"chain": ["ORC", 7]}, "chain[1]"),
        ({"limits": {"depth_max": -1}}, "limits"),
        ({"limits": {"calls_max": True}}, "limits.calls_max"),
        ({"context": {"references": [{}]}}, "context.references[0].source_id"),
        ({"inputs": [1]}, "inputs"),
        ({"inputs": "text"}, "inputs"),
        ({"inputs": 7}, "inputs"),
        ({"history": "all"}, "history"),
        ({"history": -1}, "history"),
        ({"history": True}, "history"),
        ({"fingerprint": "7"}, "fingerprint"),
    ],
)
def test_a_field_of_the_wrong_type_is_named_with_its_path(changed, path):
    assert paths(sent(REQUEST, **changed)) == [path]


@pytest.mark.parametrize(
    "changed",
    [
        {field: value}
        for field in ("request_id", "target", "capability", "user_id", "tenant_id")
        for value in ("", "a\n", "a\u200b", "a\x7f", "x" * (ID_CHARS_MAX + 1))
    ]
    + [
        {field: value}
        for field in (
            "session_id",
            "correlation_id",
            "root_id",
            "source",
            "parent_id",
            "parent_session_id",
            "trace_id",
            "span_id",
        )
        for value in ("a\n", "x" * (ID_CHARS_MAX + 1))
    ],
)
def test_an_id_is_printable_and_of_bounded_length(changed):
    assert paths(sent(REQUEST, **changed)) == list(changed)


def test_ids_of_exactly_the_length_pass():
    longest = {"target": "x" * ID_CHARS_MAX, "capability": "x" * NAME_CHARS_MAX, "chain": ["x" * ID_CHARS_MAX] * CHAIN_MAX}
    assert decode_request(sent(REQUEST, **longest)).depth == CHAIN_MAX
    assert paths(sent(REQUEST, capability="x" * (NAME_CHARS_MAX + 1))) == ["capability"]
    assert paths(sent(REQUEST, chain=["a"] * (CHAIN_MAX + 1))) == ["chain"]
    assert paths(sent(REQUEST, chain=["a", "b\n"])) == ["chain[1]"]


def test_all_wrong_fields_are_named_at_once():
    wrong = {"user_id": "", "session_id": "a\n", "message": "\x00", "chain": ["", "\n"], "metadata": {"a": "\x00"}}
    assert paths(sent(REQUEST, **wrong)) == ["user_id", "session_id", "chain[1]", "message", "metadata.a"]


# --- bytes that are no document -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("decode", [decode_request, decode_reply])
@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b" ",
        b"null",
        b"7",
        b"[]",
        b'"text"',
        b"{",
        b"{}x",
        b'{"a":}',
        b"\xff\xfe",
        b'{"target":"\xff"}',
        b'{"target":"\\ud800"}',
        b'{"target":NaN}',
        b'{"deadline_at":1e999}',
        b'{"deadline_at":' + b"9" * 5_000 + b"}",
        b"[" * 10_000 + b"]" * 10_000,
        b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
        b"\xef\xbb\xbf{}",
    ],
    ids=lambda value: value[:24] if isinstance(value, bytes) else value.__name__,
)
def test_bytes_that_are_no_envelope_are_malformed(raw, decode):
    assert refused(raw, decode).code == "ENVELOPE_MALFORMED"


BROKEN = [
    (b"NaN", ""),
    (b"Infinity", ""),
    (b"-Infinity", ""),
    (b"1e999", "{}.a[1]"),
    (b"-1e400", "{}.a[1]"),
    (b"9" * 5_000, "{}.a[1]"),
    (b'"\xff"', ""),
    (b'"\xed\xa0\x80"', ""),
    (b'"\\ud800"', ""),
    (b'"\\udc00x"', ""),
    (b'"\x00"', ""),
    (b"01", ""),
]


@pytest.mark.parametrize(("value", "path"), BROKEN, ids=[value[:12] for value, _ in BROKEN])
@pytest.mark.parametrize("field", ["inputs", "metadata", "context"])
def test_what_is_broken_inside_of_a_request_is_a_typed_error(value, path, field):
    document = b'{"a":[1,' + value + b"]}"
    if field == "context":
        document = b'{"extra":' + document + b"}"
    found = paths(put(document, envelope=REQUEST, field=field))
    if path:
        assert found == [path.format("context.extra" if field == "context" else field)]


@pytest.mark.parametrize(("value", "path"), BROKEN, ids=[value[:12] for value, _ in BROKEN])
@pytest.mark.parametrize("field", ["data", "metadata"])
def test_what_is_broken_inside_of_a_reply_is_a_typed_error(value, path, field):
    found = paths(put(b'{"a":[1,' + value + b"]}", envelope=REPLY, field=field), decode_reply)
    if path:
        assert found == [path.format(field)]


@pytest.mark.parametrize("control", ["\x00", "\x08", "\x1b", "\x7f"])
def test_control_characters_are_named_wherever_they_are(control):
    bad = f"a{control}"
    assert paths(sent(REQUEST, inputs={"a": [1, bad]}), code="INPUT_VALIDATION_FAILED") == ["inputs.a[1]"]
    assert paths(sent(REQUEST, message=bad, objective=bad)) == ["objective", "message"]
    assert paths(sent(REQUEST, context={"facts": ["fine", bad]})) == ["context.facts[1]"]
    assert paths(sent(REQUEST, metadata={"a": {"b": bad}})) == ["metadata.a.b"]
    assert paths(sent(REQUEST, expected_output={"fields": [bad]})) == ["expected_output.fields[0]"]
    assert paths(sent(REPLY, data=[bad]), decode_reply, code="INPUT_VALIDATION_FAILED") == ["data[0]"]
    assert paths(sent(REPLY, message=bad), decode_reply) == ["message"]
    assert paths(sent(REPLY, warnings=["fine", bad]), decode_reply) == ["warnings[1]"]
    assert paths(sent(REPLY, artifacts=[{"type": "json", "value": {"x": bad}}]), decode_reply) == ["artifacts[0].value.x"]


# --- sizes --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_message_of_exactly_a_hundred_kibibytes_passes_and_one_byte_more_is_refused(letter):
    longest = letter * (MESSAGE_BYTES_MAX // len(letter.encode()))
    assert decode_request(sent(REQUEST, message=longest)).message == longest
    assert paths(sent(REQUEST, message=longest + "x")) == ["message"]
    for field in ("message", "summary", "thought"):
        assert getattr(decode_reply(sent(REPLY, **{field: longest})), field) == longest
        assert paths(sent(REPLY, **{field: longest + "x"}), decode_reply) == [field]


def test_an_objective_of_exactly_its_length_passes_and_one_more_is_refused():
    assert decode_request(sent(REQUEST, objective="x" * OBJECTIVE_CHARS_MAX))
    assert paths(sent(REQUEST, objective="x" * (OBJECTIVE_CHARS_MAX + 1))) == ["objective"]


def test_inputs_and_data_of_exactly_a_mebibyte_pass_and_one_byte_more_is_refused():
    for envelope, decode, field, most in (
        (REQUEST, decode_request, "inputs", INPUTS_BYTES_MAX),
        (REPLY, decode_reply, "data", REPLY_BYTES_MAX),
    ):
        longest = {"a": "x" * (most - len('{"a":""}'))}
        assert decode(put(json.dumps(longest, separators=(",", ":")).encode(), envelope=envelope, field=field))
        longest["a"] += "x"
        raw = put(json.dumps(longest, separators=(",", ":")).encode(), envelope=envelope, field=field)
        assert paths(raw, decode, code="ENVELOPE_TOO_LARGE") == [field]


@pytest.mark.parametrize(("decode", "most"), [(decode_request, REQUEST_BYTES_MAX), (decode_reply, 2 * REPLY_BYTES_MAX)])
def test_ten_megabytes_are_refused_before_they_are_read(decode, most):
    assert refused(b"x" * 10_000_000, decode).code == "ENVELOPE_TOO_LARGE"
    assert refused(b" " * (most + 1), decode).code == "ENVELOPE_TOO_LARGE"
    assert refused(b" " * most, decode).code == "ENVELOPE_MALFORMED"


def test_exactly_the_nesting_passes_and_one_level_more_is_refused():
    assert decode_request(sent(REQUEST, inputs={"a": nested(NESTING_MAX - 1)}))
    deeper = sent(REQUEST, inputs={"a": nested(NESTING_MAX)})
    assert paths(deeper, code="INPUT_VALIDATION_FAILED") == ["inputs"]
    assert decode_reply(sent(REPLY, data=nested(NESTING_MAX)))
    assert paths(sent(REPLY, data=nested(NESTING_MAX + 1)), decode_reply, code="INPUT_VALIDATION_FAILED") == ["data"]
    assert paths(sent(REQUEST, metadata={"a": nested(NESTING_MAX)})) == ["metadata"]
    assert paths(sent(REQUEST, context={"intermediate_results": nested(NESTING_MAX)})) == ["context"]


def test_exactly_the_number_of_values_passes_and_one_more_is_refused():
    assert decode_reply(sent(REPLY, data=[0] * ITEMS_MAX))
    assert paths(sent(REPLY, data=[0] * (ITEMS_MAX + 1)), decode_reply, code="ENVELOPE_TOO_LARGE") == ["data"]
    assert decode_request(sent(REQUEST, inputs={"a": [0] * (ITEMS_MAX - 1)}))
    assert paths(sent(REQUEST, inputs={"a": [0] * ITEMS_MAX}), code="ENVELOPE_TOO_LARGE") == ["inputs"]


def test_lists_of_exactly_their_length_pass_and_one_more_is_refused():
    assert decode_request(sent(REQUEST, context={"hints": ["h"] * HINTS_MAX}))
    assert paths(sent(REQUEST, context={"hints": ["h"] * (HINTS_MAX + 1)})) == ["context.hints"]
    assert decode_reply(sent(REPLY, warnings=["w"] * WARNINGS_MAX))
    assert paths(sent(REPLY, warnings=["w"] * (WARNINGS_MAX + 1)), decode_reply) == ["warnings"]


@pytest.mark.parametrize(
    "wrong", [{"confidence": None}, {"confidence": 2}, {"status": "error"}, {"status": "partial"}, {"status": "done"}]
)
def test_the_rules_of_a_reply_hold_on_the_wire_too(wrong):
    assert refused(sent(REPLY, **wrong), decode_reply).code == "ENVELOPE_MALFORMED"


# --- whatever arrives ---------------------------------------------------------------------------------------------------


documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)


def flaws(raw: bytes) -> list[Any]:
    """What one can hold against what came of the bytes: an envelope travels on as it is, an error says what is wrong where."""
    found: list[Any] = []
    for decode in (decode_request, decode_reply):
        try:
            envelope = decode(raw)
        except CallerError as error:
            found += [] if error.code in CODES else [error]
            problems = error.facts.get("problems", ())
            found += [problem for problem in problems if problem.path not in error.message or not is_place(problem.path, raw)]
        else:
            found += [] if decode(encode(envelope)) == envelope else [envelope]
    return found


def is_place(path: str, raw: bytes) -> bool:
    """Whether a path begins at a field of an envelope, or at a key of what arrived."""
    first = re.split(r"[.\[]", path, maxsplit=1)[0]
    # Where the JSON breaks off after the number that is wrong, there is no telling under which key it was.
    is_known = first in FIELDS | {"$", "?"} or path.startswith("[...]")
    return is_known or f'"{first or path}'.encode() in raw


@given(st.binary(max_size=60) | st.text(max_size=60).map(lambda text: text.encode(errors="replace")))
def test_no_bytes_whatsoever_make_a_decoder_raise_anything_else(raw):
    assert flaws(raw) == []


FULL = [
    encode(
        msgspec.structs.replace(
            REQUEST,
            context=Background(facts=("a",), prior_outputs={"x": [1]}),
            chain=("ORC",),
            metadata={"k": "v"},
            version="0.9",
        )
    ),
    encode(
        msgspec.structs.replace(REPLY, warnings=("w",), error=Error.of("A_B", "x"), artifacts=(Artifact(type="id", value=1),))
    ),
    encode(REQUEST),
]
PIECES = [
    b"\x00",
    b"\xff",
    b"\\ud800",
    b"1e999",
    b"NaN",
    b'"',
    b"{",
    b"}",
    b"[",
    b"]",
    b",",
    b":",
    b"null",
    b"-1",
    b"0.8",
    b'"a":1,',
]


@given(
    st.sampled_from(FULL), st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 6), st.sampled_from(PIECES)), max_size=3)
)
def test_no_change_to_a_valid_envelope_makes_a_decoder_raise_anything_else(raw, changes):
    for place, length, piece in changes:
        at = place % (len(raw) + 1)
        raw = raw[:at] + piece + raw[at + length :]
    assert flaws(raw) == []


@given(st.sampled_from([REQUEST, REPLY]), st.data())
def test_no_value_of_any_field_makes_a_decoder_raise_anything_else(envelope, data):
    names = [*type(envelope).__struct_fields__, "inputs", "deadline_ms", "call_chain"]
    changed = data.draw(
        st.dictionaries(st.sampled_from(names), documents | st.sampled_from(["0.8", "0.9", "error"]), max_size=3)
    )
    assert flaws(json.dumps(json.loads(encode(envelope)) | changed).encode()) == []


@pytest.mark.parametrize(
    ("decode", "envelope", "path"),
    [
        (decode_request, {"inputs": {"a": 1}, "metadata": {"m": 1}}, "inputs.a"),
        (decode_reply, {"data": {"a": 1}}, "data.a"),
    ],
)
def test_a_key_that_stands_twice_is_refused_by_its_path(decode, envelope, path):
    plain = json.loads(encode(REQUEST if decode is decode_request else Reply.success({}))) | envelope
    decode(json.dumps(plain).encode())
    twice = json.dumps(plain).replace('"a": 1', '"a": 1, "a": 1000').encode()
    assert paths(twice, decode) == [path]
