from query_world import span

from comity.core.tracing.query.ast import Attribute, Binary, Compare, Literal, Scope, SpansetFilter
from comity.core.tracing.query.compare import Comparison
from comity.core.tracing.query.trace import Trace
from comity.core.tracing.span import Status

SELECTED = SpansetFilter(Binary("=", Attribute(Scope.SPAN, "slow"), Literal(True)))


def compared(node, spans, steps=1):
    comparison, trace = Comparison(node, steps), Trace(spans)
    for at, one in enumerate(spans):
        comparison.add(one, trace, at % steps)
    return {tuple(value for _, value in labels if value is not None): values for labels, values in comparison.series().items()}


def test_every_field_is_counted_in_its_group_with_a_total():
    spans = [
        span(1, name="a", attributes={"slow": True, "n": 1}),
        span(2, 1, name="a", attributes={"slow": True}, status=Status.ERROR),
        span(3, 1, name="b", resource={"zone": "eu"}),
    ]
    found = compared(Compare(SELECTED), spans)
    assert found["selection", "a"] == [2.0]
    assert found["baseline", "b"] == [1.0]
    assert found["selection", Status.ERROR] == [1.0]
    assert found["baseline", "eu"] == [1.0]
    assert found["selection", 1] == [1.0]
    assert ("selection", "b") not in found


def test_counts_fall_into_their_steps():
    spans = [span(n, None if n == 1 else 1, name="a") for n in range(1, 4)]
    assert compared(Compare(SELECTED), spans, steps=2)["baseline", "a"] == [2.0, 1.0]


def test_only_the_commonest_values_are_kept_and_the_total_counts_all():
    spans = [span(n, None if n == 1 else 1, attributes={"v": "often" if n < 4 else f"rare{n}"}) for n in range(1, 7)]
    comparison, trace = Comparison(Compare(SELECTED, 1), 1), Trace(spans)
    for one in spans:
        comparison.add(one, trace, 0)
    series = comparison.series()
    kept = [
        dict(labels)["span.v"]
        for labels in series
        if dict(labels).get("__meta_type") == "baseline" and "span.v" in dict(labels)
    ]
    assert kept == ["often"]
    assert series[("__meta_type", "baseline_total"), ("span.v", "nil")] == [6.0]


def test_a_window_narrows_the_selection_in_time_from_after_its_start_up_to_its_end():
    spans = [span(n, None if n == 1 else 1, start_ns=at, attributes={"slow": True}) for n, at in enumerate((5, 10, 15, 20), 1)]
    found = compared(Compare(SELECTED, 10, (10, 20)), spans)
    assert found["selection", True] == [2.0]
    assert found["baseline", True] == [2.0]


def test_scopes_children_and_what_tempo_keeps_apart_are_counted_too():
    spans = [span(1, scope_name="lib", scope_attributes={"lang": "py"}), span(2, 1, attributes={"tags": ("a", "b")})]
    comparison, trace = Comparison(Compare(SELECTED), 1), Trace(spans)
    for one in spans:
        comparison.add(one, trace, 0)
    found = {labels[1]: values for labels, values in comparison.series().items() if labels[0][1] == "baseline"}
    assert found["instrumentation:name", "lib"] == found["instrumentation.lang", "py"] == [1.0]
    assert found["span:childCount", 1] == found["span:childCount", 0] == [1.0]
    assert found["span.http.method", "nil"] == found["resource.k8s.pod.name", "nil"] == [2.0]
    assert found["span.tags", "nil"] == [1.0]  # no label holds an array


def test_values_of_different_types_are_counted_apart():
    spans = [span(n, None if n == 1 else 1, attributes={"v": value}) for n, value in enumerate((1, 1.0, True, 1), 1)]
    comparison, trace = Comparison(Compare(SELECTED), 1), Trace(spans)
    for one in spans:
        comparison.add(one, trace, 0)
    counted = {
        repr(dict(labels)["span.v"]): values for labels, values in comparison.series().items() if "span.v" in dict(labels)
    }
    assert counted == {"1": [2.0], "1.0": [1.0], "True": [1.0], "'nil'": [4.0]}
