import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from span_strategies import SPANS

from comity.core.tracing.span import (
    INT64_MIN,
    VALUE_NESTING_MAX,
    Kind,
    Span,
    SpanError,
    Status,
    decode_spans,
    decode_value,
    encode_spans,
    encode_value,
    group_by_trace,
)

TRACE_ID, SPAN_ID = "0123456789abcdef" * 2, "00f067aa0ba902b7"


def request(**fields):
    raw = {"traceId": TRACE_ID, "spanId": SPAN_ID} | fields
    return {"resourceSpans": [{"scopeSpans": [{"spans": [raw]}]}]}


def only(document):
    (span,) = decode_spans(document)
    return span


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ({"stringValue": "x"}, "x"),
        ({"stringValue": ""}, ""),
        ({"boolValue": False}, False),
        ({"intValue": "-9223372036854775808"}, INT64_MIN),
        ({"intValue": 5}, 5),
        ({"doubleValue": 1}, 1.0),
        ({"doubleValue": "Infinity"}, float("inf")),
        ({"bytesValue": "AAH/"}, b"\x00\x01\xff"),
        ({"arrayValue": {"values": [{"stringValue": "a"}, {"intValue": "1"}]}}, ("a", 1)),
        ({"arrayValue": {}}, ()),
        ({"kvlistValue": {"values": [{"key": "k", "value": {"boolValue": True}}]}}, {"k": True}),
        ({}, None),
        (None, None),
    ],
)
def test_every_kind_of_value_is_read(raw, value):
    found = decode_value(raw)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "raw",
    [
        {"stringValue": 1},
        {"boolValue": "true"},
        {"intValue": "x"},
        {"intValue": 1.5},
        {"intValue": True},
        {"intValue": str(2**64)},
        {"doubleValue": "x"},
        {"doubleValue": True},
        {"bytesValue": "!"},
        {"arrayValue": {"values": 5}},
        {"kvlistValue": {"values": [{"key": 5}]}},
        {"dateValue": 1},
        {"stringValue": "a", "intValue": 1},
        "x",
        5,
    ],
)
def test_what_is_no_value_is_refused(raw):
    with pytest.raises(SpanError):
        decode_value(raw)


def test_values_nest_to_a_bound():
    raw = {"intValue": "1"}
    for _ in range(VALUE_NESTING_MAX):
        raw = {"arrayValue": {"values": [raw]}}
    decode_value(raw)
    with pytest.raises(SpanError, match="nest"):
        decode_value({"arrayValue": {"values": [raw]}})
    with pytest.raises(SpanError, match="nest"):
        decode_value({"kvlistValue": {"values": [{"key": "k", "value": raw}]}})


def test_ids_are_read_in_hex_and_base64_with_or_without_padding():
    for encode in (
        bytes.hex,
        lambda raw: raw.hex().upper(),
        lambda raw: base64.b64encode(raw).decode(),
        lambda raw: base64.b64encode(raw).decode().rstrip("="),
    ):
        trace_id, span_id = encode(bytes.fromhex(TRACE_ID)), encode(bytes.fromhex(SPAN_ID))
        span = only(request(traceId=trace_id, spanId=span_id, parentSpanId=span_id))
        assert (span.trace_id, span.span_id, span.parent_id) == (TRACE_ID, SPAN_ID, SPAN_ID)


@pytest.mark.parametrize("parent", ["", None, "0" * 16, base64.b64encode(bytes(8)).decode()])
def test_an_empty_or_zero_parent_is_a_root(parent):
    assert only(request(parentSpanId=parent)).parent_id is None


@pytest.mark.parametrize(
    ("kind", "found"), [(0, Kind.UNSPECIFIED), (2, Kind.SERVER), ("SPAN_KIND_CLIENT", Kind.CLIENT), (None, Kind.UNSPECIFIED)]
)
def test_a_kind_is_read_as_number_or_name(kind, found):
    assert only(request(kind=kind)).kind is found


@pytest.mark.parametrize(("code", "found"), [(1, Status.OK), ("STATUS_CODE_ERROR", Status.ERROR), (None, Status.UNSET)])
def test_a_status_is_read_as_number_or_name(code, found):
    span = only(request(status={"code": code, "message": "m"}))
    assert (span.status, span.status_message) == (found, "m")


@pytest.mark.parametrize(
    "fields",
    [
        {"traceId": "xyz"},
        {"traceId": "g" * 32},
        {"traceId": None},
        {"spanId": TRACE_ID},
        {"kind": 6},
        {"kind": "CLIENT"},
        {"status": {"code": 3}},
        {"status": []},
        {"name": 5},
        {"startTimeUnixNano": "soon"},
        {"attributes": {"a": 1}},
        {"attributes": [{"value": {}}]},
        {"events": {}},
        {"links": [{"traceId": TRACE_ID}]},
    ],
)
def test_a_span_that_is_not_otlp_is_refused_with_its_path(fields):
    with pytest.raises(SpanError) as caught:
        decode_spans(request(**fields))
    assert caught.value.path.startswith("document.resourceSpans[0].scopeSpans[0].spans[0]")


@pytest.mark.parametrize("document", [None, [], {"resourceSpans": 5}, {"resourceSpans": [5]}, {"trace": 5}])
def test_a_document_that_holds_no_spans_is_empty_or_refused(document):
    if document is None:
        assert decode_spans(document) == []
        return
    with pytest.raises(SpanError):
        decode_spans(document)


def test_what_tempo_returns_for_a_trace_is_read_as_well():
    spans = decode_spans(request(name="x"))
    assert decode_spans({"batches": request(name="x")["resourceSpans"]}) == spans
    assert decode_spans({"trace": request(name="x")}) == spans


def test_spans_of_one_resource_share_its_attributes():
    pair = [{"key": "service.name", "value": {"stringValue": "s"}}]
    raw = {"traceId": TRACE_ID, "spanId": SPAN_ID}
    first, second = decode_spans(
        {
            "resourceSpans": [
                {
                    "resource": {"attributes": pair},
                    "scopeSpans": [
                        {"scope": {"name": "n", "version": "v", "attributes": pair}, "spans": [raw]},
                        {"spans": [raw]},
                    ],
                }
            ]
        }
    )
    assert first.resource == {"service.name": "s"}
    assert first.resource is second.resource
    assert (first.scope_name, first.scope_version, first.scope_attributes) == ("n", "v", {"service.name": "s"})
    assert second.scope_name == ""


def test_of_a_repeated_attribute_the_first_counts():
    pairs = [{"key": "a", "value": {"intValue": "1"}}, {"key": "a", "value": {"intValue": "2"}}]
    assert only(request(attributes=pairs)).attributes == {"a": 1}


def test_a_duration_is_never_negative():
    assert Span(trace_id="", span_id="", start_ns=3, end_ns=10).duration_ns == 7
    assert Span(trace_id="", span_id="", start_ns=10, end_ns=3).duration_ns == 0


def test_spans_are_grouped_by_trace_in_order_of_appearance():
    spans = [Span(trace_id=trace, span_id=str(n)) for n, trace in enumerate("abab")]
    assert [[s.span_id for s in group] for group in group_by_trace(spans)] == [["0", "2"], ["1", "3"]]


def test_spans_are_encoded_under_their_resource_and_scope():
    resource = {"service.name": "s"}
    one = Span(trace_id=TRACE_ID, span_id=SPAN_ID, resource=resource, scope_name="a")
    two = Span(trace_id=TRACE_ID, span_id=SPAN_ID, resource=resource, scope_name="b")
    (group,) = encode_spans([one, two, one])["resourceSpans"]
    assert [(s["scope"]["name"], len(s["spans"])) for s in group["scopeSpans"]] == [("a", 2), ("b", 1)]


def test_an_encoded_span_spells_out_what_is_set_and_leaves_out_what_is_not():
    (group,) = encode_spans([Span(trace_id=TRACE_ID, span_id=SPAN_ID, kind=Kind.CLIENT, start_ns=5, end_ns=6)])["resourceSpans"]
    assert group["scopeSpans"][0]["spans"][0] == {
        "traceId": TRACE_ID,
        "spanId": SPAN_ID,
        "name": "",
        "kind": 3,
        "startTimeUnixNano": "5",
        "endTimeUnixNano": "6",
        "attributes": [],
        "events": [],
        "links": [],
        "status": {},
    }


def test_numbers_json_cannot_say_are_encoded_as_words():
    assert [encode_value(v)["doubleValue"] for v in (float("nan"), float("inf"), float("-inf"))] == [
        "NaN",
        "Infinity",
        "-Infinity",
    ]


@given(st.lists(SPANS, max_size=3), st.booleans())
def test_a_span_that_was_encoded_is_read_back_the_same(spans, base64_ids):
    document = json.loads(json.dumps(encode_spans(spans, base64_ids=base64_ids)))
    assert sorted(decode_spans(document), key=repr) == sorted(spans, key=repr)


JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(
                ["resourceSpans", "scopeSpans", "spans", "resource", "attributes", "key", "value", "status", "traceId"]
            ),
            inner,
            max_size=3,
        ),
    ),
    max_leaves=15,
)


@given(JSON)
def test_any_json_is_spans_or_a_span_error(document):
    try:
        assert all(isinstance(span, Span) for span in decode_spans(document))
    except SpanError as error:
        assert error.path
