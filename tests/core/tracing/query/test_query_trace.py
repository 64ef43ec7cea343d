from hypothesis import given
from query_world import span, traces

from comity.core.tracing.query.trace import NOWHERE, Position, Trace
from comity.core.tracing.span import Event, Link


def test_positions_number_the_tree_from_its_root_and_children_as_they_came():
    root, late, early, leaf = span(1), span(2, 1, start_ns=9), span(3, 1, start_ns=4), span(4, 3)
    trace = Trace([late, root, leaf, early])
    assert trace.position(root) == Position(1, 8, -1)
    assert trace.position(late) == Position(2, 3, 1)
    assert trace.position(early) == Position(4, 7, 1)
    assert trace.position(leaf) == Position(5, 6, 4)


def test_a_span_that_no_root_leads_to_has_no_position():
    orphan, below, loop_a, loop_b, own = span(2, 9), span(3, 2), span(4, 5), span(5, 4), span(6, 6)
    trace = Trace([span(1), orphan, below, loop_a, loop_b, own])
    assert [trace.position(s) for s in (orphan, below, loop_a, loop_b, own)] == [NOWHERE] * 5


def test_a_span_that_names_itself_as_parent_is_not_its_own_child():
    assert Trace([span(6, 6)]).children == {}


def test_two_spans_with_one_id_do_not_number_their_children_twice():
    first, twin, child = span(1), span(1, start_ns=5), span(2, 1)
    trace = Trace([first, twin, child])
    assert trace.position(child).parent == trace.position(first).left
    assert trace.position(twin).right == trace.position(twin).left + 1


def test_the_extent_of_a_trace_covers_all_its_spans():
    trace = Trace([span(1, start_ns=10, end_ns=20), span(2, 1, start_ns=5, end_ns=12), span(3, 1, start_ns=30, end_ns=1)])
    assert (trace.start_ns, trace.end_ns, trace.duration_ns) == (5, 30, 25)


def test_the_root_is_the_first_span_without_a_parent():
    late = span(1, start_ns=9, name="late", resource={"service.name": "x"})
    early = span(2, start_ns=1, name="early", resource={"service.name": 5})
    assert Trace([late, early]).root is early
    assert Trace([late, early]).root_name == "early"
    assert Trace([late, early]).root_service_name == ""
    assert Trace([late]).root_service_name == "x"
    assert Trace([span(3, 9)]).root is None


def test_an_expression_can_be_narrowed_to_one_event_or_link():
    one, two = Event(name="one", time_ns=1), Event(name="two", time_ns=2)
    link = Link(trace_id="a", span_id="b")
    trace = Trace([span(1, events=(one, two), links=(link, link))])
    assert list(trace.events(trace.spans[0])) == [one, two]
    trace.event, trace.link = two, link
    assert list(trace.events(trace.spans[0])) == [two]
    assert list(trace.links(trace.spans[0])) == [link]


@given(traces(spans_max=10))
def test_the_numbers_of_positions_are_all_different_and_nest(spans):
    trace = Trace(spans)
    positions = [trace.position(s) for s in spans if trace.position(s) is not NOWHERE]
    numbers = sorted(n for p in positions for n in (p.left, p.right))
    assert numbers == list(range(1, 2 * len(positions) + 1))
    for outer in positions:
        for inner in positions:
            assert (
                inner == outer
                or inner.right < outer.left
                or inner.left > outer.right
                or (outer.left < inner.left and inner.right < outer.right)
                or (inner.left < outer.left and outer.right < inner.right)
            )
