"""Handoffs in traces: under their names in every mode, linked to their results, and continued by their receivers."""

from __future__ import annotations

import asyncio
import functools
import json

import pytest
from handoff_pair import FOUND, code_of, pair
from opentelemetry.sdk.trace import TracerProvider

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Node
from comity.core.tracing.naming import Mode
from comity.core.tracing.telemetry import Origin, Settings
from comity.engines.sqlite.spans.store import SpanStore
from comity.ports import ambient

TRACER = TracerProvider().get_tracer("test")
LEGACY = {"handoff.id", "handoff.capability_id", "handoff.inputs", "handoff.result"}
OTEL = {"gen_ai.tool.call.id", "gen_ai.tool.name", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"}


def live(test):
    """Run a test in real time, since threads take part in it."""

    @functools.wraps(test)
    def run(**given):
        asyncio.run(test(**given))

    return run


def boss():
    agent = Agent("BOSS")

    @agent.capability("ASK")
    async def ask(ctx: Context, secret: int = 1) -> dict:
        reply = await ctx.hand_off("o11y", "investigate", {"secret": secret}, task="Find it")
        return {"status": str(reply.status)}

    return agent


async def spans_of(node):
    await node.flush_spans()
    return {span.name: span for span in node.spans.find("{ }")}


async def done(node, **asked):
    """Return the id of a handoff that was handed off and completed on a node."""
    manager, receiver = pair(node)
    made = await manager.create_handoff("o11y", "investigate", "Find it", {"secret": 1}, **asked)
    await receiver.take()
    await receiver.complete(made, FOUND)
    return made


@pytest.mark.parametrize("within_a_call", [False, True])
@pytest.mark.parametrize("mode", Mode)
async def test_the_mode_decides_on_the_names_and_content_on_the_words(make_node, mode, within_a_call):
    for content in (False, True):
        settings = Settings(origin=Origin(mode=mode), captures_content=content)
        async with make_node([boss()], telemetry=settings) as node:
            if within_a_call:
                receiver = AsyncHandoffReceiver("o11y", ["investigate"], node=node)
                serving = asyncio.ensure_future(receiver.serve(lambda _: FOUND))
                await node.call("BOSS", "ASK", user_id="u")
                serving.cancel()
            else:
                await done(node)
            spans = await spans_of(node)
        for name in ("handoff investigate", "handoff.result investigate"):
            attributes = spans[name].attributes
            words = {one for one in LEGACY | OTEL if one in attributes}
            expected = {Mode.LEGACY: LEGACY, Mode.OTEL: OTEL, Mode.DUAL: LEGACY | OTEL}[mode]
            said = {one for one in expected if one.endswith(("inputs", "result", "arguments"))}
            assert words == (expected if content else expected - said)
            assert ("gen_ai.tool.type" in attributes) == (mode is not Mode.LEGACY)
            assert (attributes["handoff.status"], attributes["handoff.to_agent"]) == ("completed", "o11y")
            assert ("secret" in str(attributes)) == content
        if content:
            shown = spans["handoff investigate"].attributes
            assert json.loads(shown.get("handoff.inputs") or shown["gen_ai.tool.call.arguments"]) == {"secret": 1}
            assert (shown["handoff.task"], json.loads(shown.get("handoff.result") or shown["gen_ai.tool.call.result"])) == (
                "Find it",
                FOUND,
            )


async def test_a_handoff_is_linked_to_its_result_which_stands_below_it(make_node):
    async with make_node() as node:
        await done(node)
        spans = await spans_of(node)
    handoff, result = spans["handoff investigate"], spans["handoff.result investigate"]
    assert (result.trace_id, result.parent_id, result.kind) == (handoff.trace_id, handoff.span_id, "consumer")
    assert [(link.trace_id, link.span_id, link.attributes["link.relationship"]) for link in handoff.links] == [
        (result.trace_id, result.span_id, "result")
    ]
    assert result.start_ns >= handoff.start_ns


async def test_a_handoff_of_a_call_is_linked_to_its_result_too_and_one_that_fails_says_so(make_node):
    async with make_node([boss()]) as node:
        receiver = AsyncHandoffReceiver("o11y", ["investigate"], node=node)
        asking = asyncio.ensure_future(node.call("BOSS", "ASK", user_id="u"))
        (handoff,) = await receiver.take()
        await receiver.fail(handoff.id, "no")
        await asking
        spans = await spans_of(node)
        found = node.spans.find('{ handoff.capability_id = "investigate" }')
    handed, result = spans["handoff investigate"], spans["handoff.result investigate"]
    assert handed.attributes["handoff.status"] == result.attributes["handoff.status"] == "failed"
    assert handed.parent_id == spans["invoke_agent BOSS"].span_id
    assert [link.span_id for link in handed.links] == [result.span_id]
    assert {span.name for span in found} == {"handoff investigate", "handoff.result investigate"}


async def test_a_handoff_of_a_call_that_nobody_takes_is_a_span_that_timed_out(make_node):
    async with make_node([boss()]) as node:
        await node.call("BOSS", "ASK", user_id="u", timeout_ms=500)
        spans = await spans_of(node)
    assert spans["handoff investigate"].attributes["handoff.status"] in {"timeout", "cancelled"}
    assert "handoff.result investigate" not in spans


async def test_a_handoff_joins_the_trace_it_is_made_in_and_its_receiver_goes_on_with_it(make_node):
    async with make_node([boss()]) as node:
        manager, receiver = pair(node)
        seen = []

        async def work(handoff):
            here = ambient.current()
            seen.append((here.trace_id, here.span_id, handoff.traceparent[:-3]))
            return FOUND

        serving = asyncio.ensure_future(receiver.serve(work))
        with TRACER.start_as_current_span("outside") as outside:
            made = await manager.create_handoff("o11y", "investigate")
        handoff = await manager.await_result(made)
        serving.cancel()
    trace_id, span_id = f"{outside.context.trace_id:032x}", handoff.request.span_id
    assert handoff.request.trace_id == trace_id
    assert handoff.request.parent_span_id == f"{outside.context.span_id:016x}"
    assert seen == [(trace_id, span_id, f"00-{trace_id}-{span_id}")]


async def test_headers_name_the_trace_of_a_handoff_and_one_that_is_not_sampled_leaves_no_span(make_node):
    far = "00-" + "ab" * 16 + "-" + "cd" * 8
    async with make_node() as node:
        manager, _ = pair(node)
        for flags in ("01", "00"):
            made = await done(node, traceparent=f"{far}-{flags}", tracestate="vendor=x")
            handoff = await manager.get_handoff_status(made)
            assert (handoff.request.trace_id, handoff.tracestate) == ("ab" * 16, "vendor=x")
            assert handoff.traceparent == f"00-{'ab' * 16}-{handoff.request.span_id}-{flags}"
        await node.flush_spans()
        assert len(node.spans.find("{ }")) == 2  # of the one that is sampled


async def test_what_a_handoff_was_made_with_can_be_read_off_it(make_node):
    async with make_node() as node:
        manager, receiver = pair(node)
        await manager.create_handoff(
            "o11y", "investigate", priority="high", timeout_ms=1234, expected_output={"type": "report", "fields": ["a"]}
        )
        (handoff,) = await receiver.take()
        assert (handoff.priority, handoff.timeout_ms, handoff.expected_output.fields) == ("high", 1234, ("a",))
        assert handoff.created_at == handoff.request.created_at


@live
async def test_a_result_of_another_store_is_read_from_its_trace_where_content_is_kept(tmp_path):
    async with Node(telemetry=Settings(captures_content=True)) as there:
        made = await done(there)
        handoff = await AsyncHandoffManager("checkout", "orchestrator", node=there).get_handoff_status(made)
        await there.flush_spans()
        spans = there.spans.trace(handoff.result_trace_id)
    with SpanStore(tmp_path / "tempo.db") as tempo:
        tempo.ingest(spans)
        async with Node() as here:
            manager = AsyncHandoffManager("checkout", "orchestrator", node=here, traces=tempo)
            assert (await manager.get_result_from_trace(handoff.result_trace_id)).root_cause == "N+1 query"
            blind = AsyncHandoffManager("checkout", "orchestrator", node=here)
            assert await code_of(blind.get_result_from_trace(handoff.result_trace_id)) == "HANDOFF_UNKNOWN"
            tempo_empty = AsyncHandoffManager("checkout", "orchestrator", node=here, traces=tempo)
            assert await code_of(tempo_empty.get_result_from_trace("9" * 32)) == "HANDOFF_UNKNOWN"


@live
async def test_a_trace_shows_no_result_of_another_users_handoff():
    async with Node(telemetry=Settings(captures_content=True)) as node:
        made = await done(node)
        await node.flush_spans()
        mine = await AsyncHandoffManager("checkout", "orchestrator", node=node).get_handoff_status(made)
        other = AsyncHandoffManager("checkout", "eve", node=node, traces=node.spans)
        assert await code_of(other.get_result_from_trace(mine.result_trace_id)) == "HANDOFF_UNKNOWN"
