"""An agent hands work off as part of its own call: the tree's limits, end and restart reach it."""

from __future__ import annotations

import asyncio

from death import die

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Limits, Node
from comity.core.call.guardrail import redact_failures
from comity.core.envelope.envelope import ExpectedOutput
from comity.core.handoff.machine import State


def boss(**more):
    agent = Agent("BOSS", **more)

    @agent.capability("ASK")
    async def ask(ctx: Context, to: str = "o11y", what: str = "investigate", mail: str = "") -> dict:
        reply = await ctx.hand_off(to, what, {"mail": mail}, task="Find it", expected_output=ExpectedOutput(fields=("cause",)))
        return {"status": str(reply.status), "data": reply.data, "code": reply.error.code if reply.error else None}

    return agent


async def serve(node, work):
    receiver = AsyncHandoffReceiver("o11y", ["investigate"], node=node)
    return receiver, asyncio.ensure_future(receiver.serve(work))


async def test_the_reply_of_whoever_took_it_is_the_reply_of_the_call(make_node):
    async with make_node([boss()]) as node:
        seen = []

        def work(handoff):
            seen.append((handoff.from_agent, handoff.request.chain, handoff.inputs["mail"]))
            return {"cause": "N+1", "mail": handoff.inputs["mail"], "new": "bob@example.com"}

        _, serving = await serve(node, work)
        reply = await node.call("BOSS", "ASK", {"mail": "ann@example.com"}, user_id="u", request_id="r")
        assert reply.data["data"] == {"cause": "N+1", "mail": "ann@example.com", "new": "bob@example.com"}
        ((source, chain, mail),) = seen
        assert (source, chain) == ("BOSS", ("BOSS",))
        assert "ann@" not in mail
        rows = [(row.request_id, row.kind) for row in node.audit.rows()]
        assert rows == [("r", "admitted"), ("r.1", "admitted"), ("r.1", "settled"), ("r", "settled")]
        serving.cancel()


async def test_the_rules_of_calls_between_agents_hold(make_node):
    async with make_node([boss()]) as node:
        reply = await node.call("BOSS", "ASK", {"to": "BOSS", "what": "ASK"}, user_id="u")
        assert reply.data["code"] == "ROUTING_CYCLE_DETECTED"
    async with make_node([boss(can_call=["o11y"])]) as node:
        for to, code in (
            ("BOSS", "ROUTING_UNKNOWN_CAPABILITY"),
            ("bad name", "ROUTING_UNKNOWN_AGENT"),
            ("else", "ROUTING_NOT_PERMITTED"),
        ):
            reply = await node.call("BOSS", "ASK", {"to": to}, user_id="u")
            assert (reply.data["status"], reply.data["code"]) == ("refused", code)
        reply = await node.call("BOSS", "ASK", user_id="u", limits=Limits(depth_max=0))
        assert reply.data["code"] == "LIMIT_DEPTH_EXCEEDED"
        assert node.handoffs.queue.find() == []


async def test_what_a_receiver_rejects_or_fails_is_an_answer(make_node):
    async with make_node([boss()]) as node:
        receiver = AsyncHandoffReceiver("o11y", node=node)
        for end, code in (("fail", "TARGET_FAILED"), ("reject", "HANDOFF_REJECTED")):
            asking = asyncio.ensure_future(node.call("BOSS", "ASK", user_id="u"))
            handoff = await anext(receiver.watch_handoffs())
            if end == "fail":
                await receiver.accept(handoff.id)
            await getattr(receiver, end)(handoff.id, "no")
            assert (await asking).data["code"] == code


async def test_a_guardrail_judges_why_a_receiver_failed_before_it_is_stored(make_node):
    async with make_node([boss()], guardrails=[redact_failures()], privacy=None) as node:
        receiver = AsyncHandoffReceiver("o11y", node=node)
        asking = asyncio.ensure_future(node.call("BOSS", "ASK", user_id="u"))
        handoff = await anext(receiver.watch_handoffs())
        await receiver.accept(handoff.id)
        await receiver.fail(handoff.id, "Ann's PIN 9137 was wrong")
        await asking
        (stored,) = node.handoffs.queue.find()
    assert stored.reply.error.message == "The message was withheld."
    assert "PIN 9137" not in repr(stored)


async def test_it_is_withdrawn_when_its_caller_is_cancelled_or_runs_out_of_time(make_node):
    async with make_node([boss()], child_margin=0) as node:
        handle = node.start_call("BOSS", "ASK", user_id="u")
        await asyncio.sleep(1)
        handle.cancel()
        assert (await handle.reply()).status == "cancelled"
        assert (await node.call("BOSS", "ASK", user_id="u", timeout_ms=2_000)).status == "timeout"
        await asyncio.sleep(1)
        assert {one.state for one in node.handoffs.queue.find()} <= {State.CANCELLED, State.TIMEOUT}
        assert len(node.handoffs.queue.find()) == 2


def test_a_tree_that_is_run_again_waits_for_the_same_handoff(tmp_path):
    store = tmp_path / "store.db"

    async def begin():
        node = Node([boss()], store=store, lag_ms=None)
        await node.start()
        node.start_call("BOSS", "ASK", user_id="u", request_id="r")
        receiver = AsyncHandoffReceiver("o11y", node=node, keeps=True)
        (taken,) = await asyncio.wait_for(receiver.take(), 30)
        node.handoffs.close()
        node._runtime.desk = None
        await die(node)
        return taken

    async def finish(taken):
        async with AsyncHandoffReceiver("o11y", store=store, keeps=True) as receiver:
            await receiver.complete(taken.id, {"cause": "found while nobody waited"})

    async def resume():
        async with Node([boss()], store=store, lag_ms=None) as node:
            return await asyncio.wait_for(node.call("BOSS", "ASK", user_id="u", request_id="r"), 30)

    taken = asyncio.run(begin())
    asyncio.run(finish(taken))
    assert asyncio.run(resume()).data["data"] == {"cause": "found while nobody waited"}


async def test_several_can_be_awaited_at_once(make_node):
    agent = Agent("BOSS")

    @agent.capability("ALL")
    async def everything(ctx: Context) -> list:
        replies = await ctx.gather(*(ctx.hand_off("o11y", "investigate", {"n": number}) for number in range(3)))
        return [reply.data for reply in replies]

    async with make_node([agent]) as node:
        _, serving = await serve(node, lambda handoff: handoff.inputs["n"])
        assert (await node.call("BOSS", "ALL", user_id="u")).data == list(range(3))
        serving.cancel()


async def test_a_receiver_that_serves_no_more_stops_what_it_has_begun(make_node):
    async def work(handoff):
        begun.set()
        try:
            await asyncio.sleep(3_600)
            ends.append("by itself")
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise
        finally:
            stopped.set()

    ends = []
    begun, stopped = asyncio.Event(), asyncio.Event()
    async with make_node([boss()]) as node:
        _, serving = await serve(node, work)
        node.start_call("BOSS", "ASK", user_id="u")
        await begun.wait()
        serving.cancel()
        async with asyncio.timeout(1):
            await stopped.wait()
        assert ends == ["cancelled"]


async def test_an_expectation_that_makes_no_sense_is_refused_in_a_call_too(make_node):
    agent = Agent("BOSS")

    @agent.capability("ASK")
    async def ask(ctx: Context) -> str:
        return (await ctx.hand_off("o11y", "investigate", expected_output={"fields": 7})).error.code

    async with make_node([agent]) as node:
        assert (await node.call("BOSS", "ASK", user_id="u")).data == "INPUT_VALIDATION_FAILED"
        assert node.handoffs.queue.find() == []


async def test_a_handoff_of_a_call_that_another_withdraws_has_failed_and_the_call_goes_on(make_node):
    async with make_node([boss()]) as node:
        calling = asyncio.ensure_future(node.call("BOSS", "ASK", user_id="u", request_id="r"))
        await asyncio.sleep(1)
        await AsyncHandoffManager(agent_id="BOSS", node=node, user_id="u").cancel("r.1")
        reply = await asyncio.wait_for(calling, 5)
        assert (reply.data["status"], reply.data["code"]) == ("error", "TARGET_FAILED")
