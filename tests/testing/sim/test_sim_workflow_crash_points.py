"""Crash points of a run, all of them: cut at every step and every write, it gives the same result and each effect happened once."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter

import pytest

from comity import Agent, Context, Tool
from comity.errors import CallerError, UnavailableError
from comity.testing import World
from comity.testing.sim.nodes import CrashedError, SimNode
from comity.workflow import load

ALL = bool(os.environ.get("COMITY_CRASH_POINTS"))  # every step too, not every 29th
TWELVE = load("""
workflow: twelve
nodes:
  a: {call: W/PAY, input: {n: 1}}
  b: {call: W/PAY, after: [a], input: {n: 2}}
  c: {call: W/PAY, after: [a], input: {n: 3}}
  d: {call: W/PAY, after: [b], input: {n: 4}}
  e: {call: W/PAY, after: [c], input: {n: 5}}
  t: {wait: 2m, after: [d]}
  q: {ask: "Go on?", options: [yes, no], after: [e]}
  f: {call: W/PAY, after: [t], input: {n: 6}}
  g: {call: W/PAY, after: [q], input: {n: 7}}
  h: {call: W/PAY, after: [f, g], input: {n: 8}}
  i: {call: W/PAY, after: [h], input: {n: 9}}
  s: {set: {sum: "{{a.data.n + b.data.n + c.data.n + d.data.n + e.data.n + f.data.n + g.data.n + h.data.n + i.data.n}}"}, after: [i]}
output: {sum: "{{s.data.sum}}", answer: "{{q.data.answer}}"}
""")


async def client(node: SimNode) -> object:
    """Ask for one run, answer its question and wait for its result, as a careful client does: again after every crash."""
    for _ in range(1_000):
        with contextlib.suppress(CrashedError, UnavailableError):
            await node.until_up()
            flows = node.node.workflows
            if not flows.definitions:
                flows.add(TWELVE)
            handle = await node.within(flows.start("twelve", user_id="u", run_id="run"))
            if handle.record.status.has_ended:
                return await node.within(handle.result())
            for question in handle.record.questions:
                with contextlib.suppress(CallerError):  # answered just before the crash
                    await node.within(handle.answer(question.question_id, "yes"))
        await asyncio.sleep(20.0)
    raise AssertionError("the run did not end")


def play(**cut):
    paid: dict[str, int] = {}  # by idempotency key: what the world outside knows, which takes each key once
    ran: Counter[int] = Counter()

    async def pay(idempotency_key: str, n: int) -> int:
        await asyncio.sleep(0.001)
        return paid.setdefault(idempotency_key, n)

    worker = Agent("W", tools_allowed=["pay"])

    @worker.capability("PAY")
    async def work(ctx: Context, n: int) -> dict:
        ran[n] += 1
        return {"n": await ctx.use_tool("pay", n=n)}

    replies = []

    async def scenario(world):
        tool = Tool(name="pay", function=pay, takes_key=True, idempotent=True)
        node = await world.node([worker], tools=[tool])
        world.arm(node)
        replies.append(await client(node))

    return World(1, **cut).run(scenario), replies, paid, ran


WHOLE = play()


def test_the_uncut_run_has_steps_and_writes_to_cut():
    outcome, (reply,), paid, ran = WHOLE
    assert outcome.ok, outcome.failure
    assert reply.data == {"sum": 45, "answer": "yes"}
    assert sorted(paid.values()) == list(range(1, 10))
    assert set(ran.values()) == {1}
    assert outcome.writes > 40


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("cut", ["cut_at_append", "cut_at_step"])
def test_a_run_that_is_cut_anywhere_gives_the_same_result_and_each_effect_once(cut, part):
    most = WHOLE[0].writes if cut == "cut_at_append" else WHOLE[0].steps
    crashed = 0
    stride = 1 if cut == "cut_at_append" or ALL else 29  # a prime: other points with every change of the code
    for point in range(1 + part * stride, most + 1, 4 * stride):
        outcome, replies, paid, ran = play(**{cut: point})
        assert outcome.failure == "", (cut, point, outcome.failure)
        (reply,) = replies
        assert reply.data == {"sum": 45, "answer": "yes"}, (point, reply)
        assert sorted(paid.values()) == list(range(1, 10)), (point, paid)
        assert sum(ran.values()) <= 9 + 2, (point, ran)  # at most the two branches that ran when it was cut run again
        crashed += outcome.marks.get("node crashed", 0)
    assert crashed
