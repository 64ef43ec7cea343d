import pytest
from hypothesis import given
from hypothesis import strategies as st
from query_world import SEARCHES, span, traces
from tempo_recording import recorded_answers

from comity.core.tracing.query import decode_search, decode_series, encode_search, encode_series, query_range, search
from comity.core.tracing.query.metrics import Series
from comity.core.tracing.query.trace import NOT_RECEIVED
from comity.core.tracing.query.values import Duration
from comity.core.tracing.query.wire import encode_result
from comity.core.tracing.span import Kind, SpanError, Status

SPANS = [
    span(1, name="root", end_ns=2 * 10**6, resource={"service.name": "a"}, trace_id=0xAB),
    span(2, 1, kind=Kind.CLIENT, status=Status.ERROR, end_ns=5, resource={"service.name": "b"}, trace_id=0xAB),
]


def test_a_value_is_written_as_tempo_writes_it():
    assert [encode_result(v) for v in ("x", 5, 0.5, True, None, Duration(1500), Status.OK, Kind.CLIENT, ("a",))] == [
        {"stringValue": "x"},
        {"intValue": "5"},
        {"doubleValue": 0.5},
        {"boolValue": True},
        {"stringValue": "nil"},
        {"stringValue": "1.5µs"},
        {"stringValue": "ok"},
        {"stringValue": "client"},
        {"arrayValue": {"values": [{"stringValue": "a"}]}},
    ]


def test_a_search_is_written_with_what_was_found_of_each_trace():
    answer = encode_search(search("{ name = `root` } | count() = 1", [SPANS]))
    spanset = {
        "spans": [{"spanID": "0000000000000001", "startTimeUnixNano": "0", "durationNanos": "2000000", "name": "root"}],
        "matched": 1,
        "attributes": [{"key": "count()", "value": {"intValue": "1"}}],
    }
    assert answer["traces"] == [
        {
            "traceID": "ab",
            "rootServiceName": "a",
            "rootTraceName": "root",
            "startTimeUnixNano": "0",
            "durationMs": 2,
            "spanSet": spanset,
            "spanSets": [spanset],
            "serviceStats": {"a": {"spanCount": 1}, "b": {"spanCount": 1, "errorCount": 1}},
        }
    ]
    assert answer["metrics"] == {"inspectedTraces": 1, "inspectedSpans": "2"}


def test_fields_of_a_span_are_written_and_its_name_only_if_asked_for():
    (trace,) = encode_search(search("{ kind = client }", [SPANS]))["traces"]
    (written,) = trace["spanSet"]["spans"]
    assert written["attributes"] == [{"key": "kind", "value": {"stringValue": "client"}}]
    assert "name" not in written


def test_a_trace_whose_root_has_not_arrived_says_so():
    (trace,) = encode_search(search("{}", [[SPANS[1]]]))["traces"]
    assert trace["rootServiceName"] == NOT_RECEIVED
    assert "rootTraceName" not in trace


def test_what_is_empty_or_zero_is_left_out_as_protobuf_does():
    (trace,) = encode_search(search("{}", [[span(1)]]))["traces"]
    assert trace["spanSet"]["spans"] == [{"spanID": "0" * 15 + "1", "startTimeUnixNano": "0"}]
    assert {"durationMs", "rootTraceName", "rootServiceName"}.isdisjoint(trace)


def test_series_are_written_with_zeros_left_out():
    series = query_range("{} | count_over_time() by (kind)", [SPANS], start_ns=0, end_ns=10**9, step_ns=10**9)
    assert encode_series(series)["series"] == [
        {
            "labels": [{"key": "kind", "value": {"stringValue": "client"}}],
            "samples": [{"timestampMs": "0", "value": 1.0}, {"timestampMs": "1000"}],
        },
        {
            "labels": [{"key": "kind", "value": {"stringValue": "unspecified"}}],
            "samples": [{"timestampMs": "0", "value": 1.0}, {"timestampMs": "1000"}],
        },
    ]


def test_numbers_json_cannot_say_are_written_as_words():
    one = Series(labels=(("p", 0.5),), samples=((1, float("inf")), (2, float("-inf"))))
    assert encode_series([one])["series"][0]["samples"] == [
        {"timestampMs": "1", "value": "Infinity"},
        {"timestampMs": "2", "value": "-Infinity"},
    ]


@given(st.lists(traces(), max_size=3), SEARCHES)
def test_a_search_answer_is_read_back_and_written_the_same(some, query):
    document = encode_search(search(query, some, limit=0, spans_per_spanset=0))
    assert encode_search(decode_search(document)) == document


def test_what_a_real_tempo_answered_is_read_and_written_the_same():
    misc = recorded_answers()["misc"]
    raw = misc["raw search limit=2 spss=1 blocker"]["answer"]
    assert encode_search(decode_search(raw))["traces"] == raw["traces"]
    raw = misc["raw metrics"]["answer"]
    kept = [{"labels": one["labels"], "samples": one["samples"]} for one in raw["series"]]  # exemplars are not
    assert encode_series(decode_series(raw))["series"] == kept


@pytest.mark.parametrize(
    "broken", [[], {"traces": [{}]}, {"traces": [{"traceID": 7}]}, {"series": [{"samples": [{}]}]}, {"series": 7}]
)
def test_an_answer_that_is_none_is_refused(broken):
    with pytest.raises(SpanError):
        decode_search(broken) and decode_series(broken)
