"""What a link may be made of, and that nothing else passes."""

import pytest
from opentelemetry.trace import Link as OtelLink
from opentelemetry.trace import SpanContext

from comity.core.insight.insight import Support
from comity.core.tracing.links import id_problem, read_link, read_span_id, read_trace_id
from comity.core.tracing.span import Link, Span
from comity.core.tracing.trace_context import TraceContext
from comity.errors import CallerError

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
CONTEXT = SpanContext(int(TRACE, 16), int(SPAN, 16), is_remote=False)


@pytest.mark.parametrize(
    "given",
    [
        CONTEXT,
        OtelLink(CONTEXT),
        Support(trace_id=TRACE, span_id=SPAN),
        Link(trace_id=TRACE, span_id=SPAN),
        TraceContext(TRACE, SPAN),
        {"trace_id": TRACE, "span_id": SPAN},
        {"trace_id": TRACE.upper(), "span_id": SPAN.upper()},
        f"00-{TRACE}-{SPAN}-01",
    ],
)
def test_every_way_to_name_a_span_is_a_link_to_it(given):
    found = read_link(given)
    assert (found.trace_id, found.span_id) == (TRACE, SPAN)


def test_the_relationship_and_the_attributes_of_a_link_are_kept():
    assert read_link({"trace_id": TRACE, "span_id": SPAN, "relationship": "cause"}).attributes == {"link.relationship": "cause"}
    assert read_link(Support(trace_id=TRACE, span_id=SPAN, relationship="cause")).attributes == {"link.relationship": "cause"}
    assert read_link(OtelLink(CONTEXT, {"a": 1})).attributes == {"a": 1}


@pytest.mark.parametrize(
    "given",
    [
        {"trace_id": "trace-xyz", "span_id": "1"},
        {"trace_id": TRACE, "span_id": "1"},
        {"trace_id": TRACE},
        {"trace_id": "0" * 32, "span_id": SPAN},
        {"trace_id": TRACE, "span_id": "0" * 16},
        {"trace_id": TRACE, "span_id": SPAN, "to": "x"},
        {"trace_id": TRACE + "\n", "span_id": SPAN},
        Support(trace_id="trace-xyz", span_id="1"),
        SpanContext(0, 0, is_remote=False),
        "trace-xyz",
        None,
        7,
        object(),
    ],
)
def test_what_names_no_span_is_refused_with_what_would(given):
    with pytest.raises(CallerError) as caught:
        read_link(given)
    assert "hex digits" in caught.value.message


@pytest.mark.parametrize("given", ["trace-xyz", "", None, True, -1, 2**128, b"a" * 32, "g" * 32, "1" * 31])
def test_an_id_of_a_trace_is_32_hex_digits(given):
    with pytest.raises(CallerError) as caught:
        read_trace_id(given)
    assert caught.value.facts["field"] == "trace_id"


def test_ids_are_taken_as_numbers_too():
    assert (read_trace_id(int(TRACE, 16)), read_span_id(7)) == (TRACE, "0000000000000007")


def test_the_id_that_is_wrong_in_a_span_is_named():
    good = Span(trace_id=TRACE, span_id=SPAN, links=(Link(trace_id=TRACE, span_id=SPAN),))
    assert id_problem(good) == ""
    assert "link" in id_problem(Span(trace_id=TRACE, span_id=SPAN, links=(Link(trace_id="x", span_id=SPAN),)))
    assert "parent_id" in id_problem(Span(trace_id=TRACE, span_id=SPAN, parent_id="1"))
