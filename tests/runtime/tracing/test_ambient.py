"""Where running code stands in a trace, by Comity's own notion and by OpenTelemetry's."""

import asyncio
import contextvars
import subprocess
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

from comity.core.tracing.trace_context import TraceContext
from comity.ports import ambient

HERE = TraceContext("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331", 1, "vendor=x")
TRACER = TracerProvider().get_tracer("test")


def test_code_stands_nowhere_until_it_is_put_somewhere_and_again_after_that():
    assert ambient.current() is None
    with ambient.standing_at(HERE):
        found = ambient.current()
        assert (found.trace_id, found.span_id, found.state) == (HERE.trace_id, HERE.span_id, "vendor=x")
    assert ambient.current() is None


def test_a_coroutine_that_is_thrown_away_in_another_context_says_nothing(caplog):
    async def stand():
        with ambient.standing_at(HERE):
            await asyncio.sleep(0)

    coroutine = stand()
    contextvars.copy_context().run(coroutine.send, None)
    coroutine.close()  # raised ValueError: the place was taken in another context
    assert not caplog.records


def test_a_span_begun_inside_is_a_child_of_the_place():
    with ambient.standing_at(HERE), TRACER.start_as_current_span("inner") as span:
        assert f"{span.context.trace_id:032x}" == HERE.trace_id
        assert f"{span.parent.span_id:016x}" == HERE.span_id
        assert ambient.current().span_id == f"{span.context.span_id:016x}"
        assert ambient.current().is_local


def test_an_unsampled_place_makes_unsampled_children():
    with ambient.standing_at(TraceContext(HERE.trace_id, HERE.span_id, 0)), TRACER.start_as_current_span("inner") as span:
        assert not span.is_recording()


def test_a_task_that_enters_a_place_leaves_the_rest_of_the_context_behind():
    from opentelemetry import baggage, context

    def entered():
        context.attach(baggage.set_baggage("user", "another"))
        ambient.enter(HERE)
        return ambient.current().span_id, baggage.get_baggage("user")

    assert contextvars.copy_context().run(entered) == (HERE.span_id, None)


def test_entering_no_place_leaves_the_one_before():
    import contextvars

    def entered():
        trace.use_span(TRACER.start_span("before")).__enter__()
        ambient.enter(None)
        return ambient.current()

    assert contextvars.copy_context().run(entered) is None


def test_a_program_without_opentelemetry_stands_somewhere_all_the_same_and_never_imports_it():
    program = """
import sys
from comity.core.tracing.trace_context import TraceContext
from comity.ports import ambient
import comity
assert not ambient.is_used()
with ambient.standing_at(TraceContext("1" * 32, "2" * 16)):
    assert ambient.current().span_id == "2" * 16
assert ambient.current() is None and ambient.is_used()
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
