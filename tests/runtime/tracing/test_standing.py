"""A call belongs to the trace of the span it is made in, and its own span is current for the code it runs."""

import asyncio
import subprocess
import sys

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from comity import Agent, Context, Node, SyncNode, Tool
from comity.testing import ScriptedModel

TRACER = TracerProvider().get_tracer("test")


def ids(span):
    return f"{span.context.trace_id:032x}", f"{span.context.span_id:016x}"


def here():
    """What an instrumented client would see: the ids of the current span."""
    context = trace.get_current_span().get_span_context()
    return f"{context.trace_id:032x}", f"{context.span_id:016x}"


def add(a: int, b: int) -> list[str]:
    return list(here())


boss = Agent("BOSS", tools_allowed=["add"])
work = Agent("WORK", concurrency=1)


@work.capability("HERE")
async def where(ctx: Context, pause: bool = False):
    if pause:
        await asyncio.sleep(0.01)
    return [*here(), ctx.request.trace_id, ctx.request.span_id]


@work.capability("PLAIN")
def where_plain():
    return list(here())


@boss.capability("ALL")
async def everything(ctx: Context):
    with TRACER.start_as_current_span("client") as client:
        assert f"{client.parent.span_id:016x}" == ctx.request.span_id
        in_client = (await ctx.call("WORK", "HERE")).data
    with ctx.span("step") as step:
        in_step, beside = await ctx.gather(ctx.call("WORK", "HERE"), ctx.call("WORK", "HERE"))
        with ctx.span("inner"):
            ctx.insight("risk", summary="s", confidence=0.5)
        tool = await ctx.use_tool("add", a=1, b=2)
        own = list(here())
    after = (await ctx.call("WORK", "HERE")).data
    return {
        "client": ids(client),
        "in_client": in_client,
        "step": step.context.span_id,
        "own": own,
        "tool": tool,
        "in_step": [in_step.data, beside.data],
        "after": after,
    }


async def recorded(node):
    await node.flush_spans()
    return {span.span_id: span for span in node.spans.find("{ }")}


def test_what_a_capability_does_hangs_under_the_span_it_does_it_in():
    async def main():
        async with Node([boss, work], tools=[Tool.of(add)]) as node:
            with TRACER.start_as_current_span("outside") as outside:
                reply = await node.call("BOSS", "ALL", user_id="u")
            return outside, reply.unwrap(), await recorded(node)

    outside, found, spans = asyncio.run(main())
    trace_id, outside_id = ids(outside)
    assert {span.trace_id for span in spans.values()} == {trace_id}
    (root,) = [span for span in spans.values() if span.name == "invoke_agent BOSS"]
    assert (root.parent_id, root.kind) == (outside_id, "internal")
    parents = [spans[data[3]].parent_id for data in (found["in_client"], *found["in_step"], found["after"])]
    assert parents == [found["client"][1], found["step"], found["step"], root.span_id]
    for data in (found["in_client"], *found["in_step"], found["after"]):
        assert data[:2] == data[2:]  # the call's own span is current in its code
    assert found["own"] == [trace_id, found["step"]]
    (tool,) = [span for span in spans.values() if span.name == "execute_tool add"]
    assert (tool.parent_id, found["tool"]) == (found["step"], [trace_id, tool.span_id])
    (inner,) = [span for span in spans.values() if span.name == "inner"]
    (insight,) = [span for span in spans.values() if span.name == "insight.risk"]
    assert (insight.parent_id, inner.parent_id) == (inner.span_id, found["step"])


def test_every_door_joins_the_trace_of_the_current_span_and_headers_come_before_it():
    far = "00-" + "ab" * 16 + "-" + "cd" * 8 + "-01"

    async def main():
        async with Node([work]) as node:
            with TRACER.start_as_current_span("outside") as outside:
                started = await node.start_call("WORK", "HERE", user_id="u").reply()
                named = await node.call("WORK", "HERE", user_id="u", request_id="chosen")
                headed = await node.call("WORK", "HERE", user_id="u", traceparent=far)
            apart = await node.call("WORK", "HERE", user_id="u")
            return ids(outside)[0], [reply.data[0] for reply in (started, named, headed, apart)]

    outside, (started, named, headed, apart) = asyncio.run(main())
    assert (started, named, headed) == (outside, outside, "ab" * 16)
    assert apart not in {outside, headed}


def test_a_sync_node_joins_the_trace_of_the_thread_that_asks():
    with SyncNode([work]) as node, TRACER.start_as_current_span("outside") as outside:
        assert node.call("WORK", "HERE", user_id="u").data[0] == ids(outside)[0]


def test_a_plain_function_finds_its_call_too():
    async def main():
        async with Node([work]) as node:
            reply = await node.call("WORK", "PLAIN", user_id="u")
            return reply.data, await recorded(node)

    (trace_id, span_id), spans = asyncio.run(main())
    assert spans[span_id].trace_id == trace_id


def test_calls_that_wait_for_one_another_do_not_take_each_others_place():
    """A call that waited is started by the end of the one before it, in whose context it must not stand."""

    async def main():
        async with Node([work]) as node:

            async def asked(name):
                with TRACER.start_as_current_span(name) as span:
                    return ids(span)[0], (await node.call("WORK", "HERE", {"pause": True}, user_id="u")).data

            return await asyncio.gather(*(asked(f"root {number}") for number in range(5)))

    for trace_id, (seen_trace, seen_span, own_trace, own_span) in asyncio.run(main()):
        assert trace_id == seen_trace == own_trace
        assert seen_span == own_span


def test_a_span_that_is_not_sampled_makes_calls_that_are_not():
    off = TracerProvider(sampler=ALWAYS_OFF).get_tracer("off")

    async def main():
        async with Node([work]) as node:
            with off.start_as_current_span("outside"):
                await node.call("WORK", "HERE", user_id="u")
            return await recorded(node)

    assert asyncio.run(main()) == {}


def test_a_request_to_a_model_is_current_while_it_is_under_way():
    seen = []

    def rule(prompt):
        seen.append(here())
        return "fine"

    async def main():
        async with Node([Agent("a", model=ScriptedModel(rule), can_call=[])]) as node:
            await node.call("a", "message", message="hi", user_id="u")
            return await recorded(node)

    spans = asyncio.run(main())
    assert [spans[span_id].name for _, span_id in seen] == ["chat scripted"]


def test_without_opentelemetry_a_call_inside_a_span_hangs_under_it_all_the_same():
    program = """
import asyncio, sys
from comity import Agent, Context, Node
a, b = Agent("A"), Agent("B", concurrency=1)
@b.capability("DO")
async def do(ctx: Context):
    return [ctx.request.parent_span_id, ctx.request.span_id]
@a.capability("GO")
async def go(ctx: Context):
    with ctx.span("step") as span:
        inside = await ctx.call("B", "DO")
    outside = await ctx.call("B", "DO")
    return [span.context.span_id, inside.data, outside.data, ctx.request.span_id]
async def main():
    async with Node([a, b], privacy=None) as node:
        for _ in range(2):
            step, inside, outside, own = (await node.call("A", "GO", user_id="u")).unwrap()
            assert inside[0] == step and outside[0] == own, (step, inside, outside, own)
        alone = (await node.call("B", "DO", user_id="u")).unwrap()
        assert alone[0] == ""
asyncio.run(main())
assert not [name for name in sys.modules if name.startswith("opentelemetry")]
"""
    subprocess.run([sys.executable, "-c", program], check=True)
