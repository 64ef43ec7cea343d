"""Where a handoff stands in its trace is part of its request, and survives with it."""

from msgspec.structs import replace

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Request
from comity.core.handoff.trace import metadata_of, place_of, remote_of, result_span_id
from comity.core.tracing.trace_context import TraceContext

REQUEST = Request(
    request_id="h1", target="o11y", capability="find", user_id="u", limits=Limits(), deadline_at=1,
    trace_id="1" * 32, span_id="2" * 16, parent_span_id="3" * 16,
)  # fmt: skip


def test_a_handoff_that_begins_its_trace_is_sampled_and_came_from_nowhere():
    assert metadata_of(None) == {}
    assert remote_of(REQUEST) is None
    assert place_of(REQUEST) == TraceContext("1" * 32, "2" * 16, 1)


def test_what_the_trace_of_a_handoff_came_with_is_read_back_from_its_request():
    remote = TraceContext("1" * 32, "3" * 16, 0, "vendor=x")
    kept = replace(REQUEST, metadata=metadata_of(remote))
    assert remote_of(kept) == remote
    assert place_of(kept) == TraceContext("1" * 32, "2" * 16, 0, "vendor=x")


def test_metadata_that_others_wrote_is_no_place():
    for odd in ({"trace_flags": "1"}, {"trace_flags": -1}, {"trace_flags": True}, {"tracestate": "a=1"}):
        assert remote_of(replace(REQUEST, metadata=odd)) is None


def test_the_span_of_a_result_has_an_id_of_its_own_for_each_attempt():
    ids = {result_span_id(one, fence) for one in ("h1", "h2") for fence in (1, 2)}
    assert len(ids) == 4
    assert all(len(one) == 16 and int(one, 16) for one in ids)
    assert result_span_id("h1", 1) == result_span_id("h1", 1)
