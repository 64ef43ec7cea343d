"""OTLP in protobuf: what we write the official classes read, and the other way round."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from span_strategies import SPANS

from comity.core.tracing.otlp import decode_request, encode_partial, encode_request
from comity.core.tracing.span import VALUE_NESTING_MAX, Span, SpanError


@given(st.lists(SPANS, max_size=4))
def test_what_is_written_is_read_back_and_is_what_the_official_classes_write(spans):
    ours = encode_request(spans)
    found = decode_request(ours)
    assert sorted(found, key=repr) == sorted(spans, key=repr)
    official = ExportTraceServiceRequest.FromString(ours)
    assert decode_request(official.SerializeToString()) == found


@given(st.lists(SPANS, min_size=1, max_size=2), st.data())
def test_a_damaged_request_is_refused_or_read_and_nothing_else_is_raised(spans, data):
    body = bytearray(encode_request(spans))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = body[: data.draw(st.integers(0, len(body)))]
    with contextlib.suppress(SpanError):
        assert all(isinstance(span, Span) for span in decode_request(bytes(body)))


def test_spans_of_one_resource_and_scope_are_sent_in_one_group():
    resource = {"service.name": "x"}
    spans = [Span(trace_id="1" * 32, span_id=f"{number:016x}", resource=resource, scope_name="s") for number in (1, 2)]
    official = ExportTraceServiceRequest.FromString(encode_request(spans))
    (group,) = official.resource_spans
    (scope,) = group.scope_spans
    assert [span.span_id.hex() for span in scope.spans] == ["0" * 15 + "1", "0" * 15 + "2"]
    assert scope.scope.name == "s"


def test_what_a_later_version_adds_is_skipped():
    official = ExportTraceServiceRequest()
    official.resource_spans.add(schema_url="later").scope_spans.add(schema_url="later").spans.add(
        trace_id=b"\x01" * 16, span_id=b"\x02" * 8
    )
    unknown = b"\xfa\x07\x03abc"  # field 127
    (span,) = decode_request(official.SerializeToString() + unknown)
    assert span.span_id == "02" * 8


@pytest.mark.parametrize("field", ["trace_id", "span_id"])
@pytest.mark.parametrize("raw", [b"", b"\x01" * 7, b"\0" * 16, b"\0" * 8])
def test_a_span_without_a_real_id_is_refused(field, raw):
    official = ExportTraceServiceRequest()
    fields = {"trace_id": b"\x01" * 16, "span_id": b"\x02" * 8} | {field: raw}
    official.resource_spans.add().scope_spans.add().spans.add(**fields)
    with pytest.raises(SpanError, match=field):
        decode_request(official.SerializeToString())


def test_values_nested_too_deeply_are_refused():
    value = ()
    for _ in range(VALUE_NESTING_MAX + 1):
        value = (value,)
    with pytest.raises(SpanError, match="nest"):
        decode_request(encode_request([Span(trace_id="1" * 32, span_id="1" * 16, attributes={"deep": value})]))


def test_the_answer_to_a_partly_taken_export_is_official():
    answer = ExportTraceServiceResponse.FromString(encode_partial(300, "too late"))
    assert (answer.partial_success.rejected_spans, answer.partial_success.error_message) == (300, "too late")
