"""Runs of workflows under faults: each is started, answered and waited for by a client that asks again after every crash.

Which flow, and what its agents answer, is drawn from the seed. Every run ends, and its history satisfies the invariants of
`workloads.run_invariants`.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from comity.core.agent.agent import Agent
from comity.core.envelope.envelope import Reply
from comity.core.workflow.model import Definition
from comity.core.workflow.read import load
from comity.errors import CallerError, ComityError
from comity.testing.sim.nodes import CrashedError, SimNode
from comity.testing.sim.world import World
from workloads.run_invariants import judge

HEALED_AFTER: Final = 40  # looks of a client, a second apart; then faults stop, so that every run ends
LOOKS_MAX: Final = 400
RUNS: Final = 3
MARKS: Final = ("a run completed", "a run failed")
# A branch that is skipped before its join, a failure that is taken back, and a loop with a question, a timer and an early join.
SKIPS: Final = """
workflow: skips
nodes:
  a: {call: W/DO, input: {n: "{{input.n}}"}, undo: {call: W/UNDO}, retry: {max: 1, backoff: 1s}}
  b: {call: W/DO, after: [a], input: {n: 2}, undo: {call: W/UNDO}}
  c: {call: W/DO, input: {n: 3}}
  c2: {call: W/DO, after: [c], input: {n: 4}}
  w: {wait: 5s, after: [b]}
  d: {call: W/DO, after: [w, c2], input: {n: "{{input.n}}"}}
edges:
  - {from: a, to: c, when: 'response.data.n > 5'}
"""
UNDOES: Final = """
workflow: undoes
nodes:
  a: {call: W/DO, input: {n: 1}, undo: {call: W/UNDO}}
  b: {call: W/DO, input: {n: 2}, after: [a], undo: {call: W/UNDO}}
  c: {call: W/DO, input: {n: 3}, after: [a], undo: {call: W/UNDO}}
  d: {call: W/MAYBE, input: {n: "{{input.n}}"}, after: [b, c]}
"""
TURNS: Final = """
workflow: turns
nodes:
  a: {call: W/DO, input: {n: 1}}
  q: {ask: "Again?", options: [yes, no], after: [a], timeout: 20s, default: no}
  x: {call: W/DO, input: {n: 2}}
  y: {wait: 3s}
  j: {join: 1, after: [x, y]}
edges:
  - {from: q, to: a, when: 'response.data.answer == "yes"', max: 2}
  - {from: q, to: x, else: true}
  - {from: q, to: y, when: 'response.data.answer == "no"'}
"""
FLOWS: Final[tuple[Definition, ...]] = tuple(map(load, (SKIPS, UNDOES, TURNS)))


def worker() -> Agent:
    """Return the agent that does every step."""
    agent = Agent("W")

    @agent.capability("DO")
    async def do(n: int) -> dict[str, int]:
        await asyncio.sleep(0.01)
        return {"n": n}

    @agent.capability("MAYBE")
    async def maybe(n: int) -> Reply:
        await asyncio.sleep(0.01)
        return Reply.success({"n": n}) if n % 2 else Reply.failure("not this one", code="TARGET_FAILED")

    @agent.capability("UNDO")
    async def undo() -> dict[str, int]:
        return {}

    return agent


async def runs(world: World) -> None:
    """Runs of workflows go on after every crash, and their invariants hold."""
    chance = world.stream("runs")
    node = await world.node([worker()])
    world.arm(node)
    asked = [(f"run{number}", chance.choice(FLOWS), chance.randint(0, 9)) for number in range(RUNS)]
    answers = {run_id: chance.choice(("yes", "no")) for run_id, _, _ in asked}
    looks = 0
    while asked:
        looks += 1
        if looks == HEALED_AFTER:
            await world.heal()
        assert looks < LOOKS_MAX, f"EveryRunEnds: {[run_id for run_id, _, _ in asked]} did not end"
        with contextlib.suppress(CrashedError, ComityError):
            await node.until_up()
            for one in list(asked):
                if await _ended(world, node, *one, answers[one[0]]):
                    asked.remove(one)
        await asyncio.sleep(1.0)


async def _ended(world: World, node: SimNode, run_id: str, flow: Definition, n: int, answer: str) -> bool:
    """Start a run, or look after it; return whether it has ended, having judged it."""
    if node.node is None:  # it crashed while the answer to another run was refused
        return False
    flows = node.node.workflows
    handle = await node.within(flows.start(flow, {"n": n}, user_id="u", run_id=run_id))
    record = handle.record
    if not record.status.has_ended:
        for question in record.questions:
            with contextlib.suppress(CallerError):  # answered just before the crash
                await node.within(handle.answer(question.question_id, answer))
        return False
    await node.within(handle.result())
    judge(flows.store.program(record.definition), flows.store.events(run_id))
    world.reached(f"a run {record.status}")
    return True
