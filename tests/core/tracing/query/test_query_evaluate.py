import pytest
from query_world import found, span

from comity.core.tracing.span import Event, Kind, Link, Status

MS = 10**6
RESOURCE = {"service.name": "gateway", "replicas": 3, "both": "resource"}
SPANS = [
    span(
        1,
        name="root",
        kind=Kind.SERVER,
        status=Status.OK,
        start_ns=0,
        end_ns=500 * MS,
        attributes={"text": "abc", "whole": 7, "part": 0.5, "flag": True, "tags": ("a", "b"), "both": "span", "bag": {"k": 1}},
        resource=RESOURCE,
        scope_name="lib",
        scope_version="1.0",
        scope_attributes={"lang": "py"},
    ),
    span(
        2,
        1,
        name="child",
        kind=Kind.CLIENT,
        status=Status.ERROR,
        status_message="boom",
        start_ns=100 * MS,
        end_ns=150 * MS,
        attributes={"whole": 8, "zero": 0, "flag": False},
        resource=RESOURCE,
        events=(
            Event(name="first", time_ns=110 * MS, attributes={"x": 1, "y": "p"}),
            Event(name="second", time_ns=120 * MS, attributes={"x": 2, "y": "q"}),
        ),
        links=(Link(trace_id="0" * 30 + "ab", span_id="0" * 14 + "cd", attributes={"why": "evidence"}),),
    ),
]


@pytest.mark.parametrize(
    ("condition", "ids"),
    [
        ('span.text = "abc"', [1]),
        ('span.text != "x"', [1]),
        ('span.text > "abb"', [1]),
        ('span.text =~ "a.c"', [1]),
        ('span.text =~ "b"', []),
        ('span.text !~ "x.*"', [1]),
        ("span.whole = 7", [1]),
        ("span.whole != 7", [2]),
        ("span.whole >= 7 && span.whole < 8", [1]),
        ("span.part > 0.4", [1]),
        ("span.flag", [1]),
        ("!span.flag", [2]),
        ("span.flag = false", [2]),
        ("span.flag != false", [1]),
        ('span.tags = "b"', [1]),
        ('span.tags != "b"', [1]),
        ('span.tags != "b" && span.tags != nil', []),
        ('span.tags != "c"', [1]),
        ('span.tags =~ "a|x"', [1]),
        ('span.tags !~ "a|x"', [1]),
        ("span.bag = 1", []),
        ("span.bag != nil", []),
        ("span.text = nil", [2]),
        ("span.text != nil", [1]),
        ('resource.service.name = "gateway"', [1, 2]),
        (".replicas = 3", [1, 2]),
        ('.both = "span"', [1]),
        ('.both = "resource"', [2]),
        ('instrumentation.lang = "py"', [1]),
        ("instrumentation:name = `lib` && instrumentation:version = `1.0`", [1]),
        ("name = `root`", [1]),
        ("span:name = `child`", [2]),
        ("status = error", [2]),
        ("status != error", [1]),
        ("statusMessage = `boom`", [2]),
        ("statusMessage = ``", [1]),
        ("kind = client", [2]),
        ("span:kind != client", [1]),
        ("duration = 50ms", [2]),
        ("duration > 50000000", [1]),
        ("duration > 1s * 0.4", [1]),
        ("span:duration <= 50ms", [2]),
        ("traceDuration = 500ms", [1, 2]),
        ("rootName = `root` && name = `child`", [2]),
        ("rootServiceName = `gateway`", [1, 2]),
        ("trace:id = `1`", [1, 2]),
        ("trace:id = `00000000000000000000000000000001`", [1, 2]),
        ("span:id = `0000000000000002`", [2]),
        ("span:parentID = `0000000000000001`", [2]),
        ("span:parentID = ``", []),
        ("span:parentID != ``", [2]),
        ("span:childCount = 1", [1]),
        ("nestedSetParent = -1", [1]),
        ("nestedSetLeft = 2 && nestedSetRight = 3 && nestedSetParent = 1", [2]),
        ("name != nil", [1, 2]),
        ("event:name = `second`", [2]),
        ("event:name != `second`", [2]),
        ("event:name != nil", [2]),
        ("event:timeSinceStart = 10ms", [2]),
        ("event.x = 2 && event.y = `q`", [2]),
        ("event.x = 2 && event.y = `p`", []),
        ("event.x = 2 && event:name = `first`", []),
        ("(event.x = 2 && event.y = `p`) || 1 = 2", [2]),
        ("event.x = nil", []),
        ("event.none = nil", [2]),
        ("link:traceID = `ab` && link:spanID = `00000000000000cd`", [2]),
        ("link.why = `evidence`", [2]),
        ("link.why = `evidence` && link:traceID = `other`", []),
        ("span.whole + 1 = 8", [1]),
        ("span.whole / 2 = 3", [1]),
        ("span.whole % 2 = 0", [2]),
        ("span.whole ^ 2 = 128", [1]),
        ("span.part ^ 2 = 0.25", [1]),
        ("span.whole * span.part = 3.5", [1]),
        ("-span.whole = -7", [1]),
        ("-span.text = 1", []),
        ("span.whole / span.zero = 1", []),
        ("!(span.whole / span.zero = 1) || span.whole = 8", [1]),
        ("(span.whole > 7) = true", [2]),
        ("duration > span.whole", [1, 2]),
        ("span.text + 1 = 2", []),
        ('"abc" = span.text', [1]),
        ("7 = span.whole", [1]),
    ],
)
def test_a_condition_selects_the_spans_on_which_it_holds(condition, ids):
    assert found(f"{{ {condition} }}", SPANS) == ids


def test_a_duration_that_ends_before_it_starts_is_zero():
    assert found("{ duration = 0 }", [span(1, start_ns=5, end_ns=3)]) == [1]


def test_a_trace_without_a_root_has_no_root_names():
    assert found("{ rootName = `` && rootServiceName = `` }", [span(2, 1, name="orphan")]) == [2]
