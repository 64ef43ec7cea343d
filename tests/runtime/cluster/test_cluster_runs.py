"""Runs of workflows where several nodes share the work: a node that is gone leaves its runs to the others."""

from __future__ import annotations

import asyncio

from cluster_world import World, die, play

from comity import Agent, Node
from comity.core.journal.terms import Fence, claim
from comity.runtime.workflow.handle import RunHandle
from comity.workflow import load

FLOW = """
workflow: moves
nodes:
  a: {call: A/STEP, input: {n: 1}}
  b: {call: A/STEP, after: [a], input: {n: 2}}
  q: {ask: "Go on?", after: [b]}
  c: {call: A/STEP, after: [q], input: {n: 3}}
output: {n: "{{c.data.n}}", answer: "{{q.data.answer}}"}
"""


def worker(steps: list[int], gate: asyncio.Event | None = None) -> Agent:
    agent = Agent("A")

    @agent.capability("STEP")
    async def step(n: int) -> dict[str, int]:
        if n == 2 and gate is not None:
            await gate.wait()
        steps.append(n)
        return {"n": n}

    return agent


async def start_first_step(node: Node, steps: list[int]) -> RunHandle:
    """Start a run on a node, and return its handle once its first step is done."""
    node.workflows.add(FLOW)
    handle = await node.workflows.start("moves", user_id="u")
    while steps != [1]:
        await asyncio.sleep(0.01)
    return handle


def test_a_waiting_run_of_a_node_that_died_goes_on_where_the_answer_is_given() -> None:
    steps: list[int] = []

    async def case(world: World, first: Node, second: Node) -> None:
        first.workflows.add(FLOW)
        handle = await first.workflows.start("moves", user_id="u")
        while handle.record.status != "waiting":
            await asyncio.sleep(0.01)
        (question,) = handle.record.questions
        await die(first)
        await second.workflows.answer(handle.run_id, question.question_id, "yes")
        reply = await asyncio.wait_for(second.workflows.result(handle.run_id), 120)
        assert reply.data == {"n": 3, "answer": "yes"}
        assert steps == [1, 2, 3]

    play(case, [worker(steps)], [worker(steps)])


def test_a_running_run_of_a_node_that_died_goes_on_elsewhere_and_no_finished_step_runs_again() -> None:
    steps: list[int] = []

    async def case(world: World, first: Node, second: Node) -> None:
        handle = await start_first_step(first, steps)
        await die(first)
        while second.workflows.get(handle.run_id).status != "waiting":
            await asyncio.sleep(0.1)
        assert steps == [1, 2]

    play(case, [worker(steps, asyncio.Event())], [worker(steps)])


def test_a_run_leaves_a_node_whose_lease_has_run_out_and_its_waiters_there_get_the_result() -> None:
    steps: list[int] = []

    async def case(world: World, first: Node, second: Node) -> None:
        handle = await start_first_step(first, steps)
        waiter = asyncio.ensure_future(handle.result())
        world.leases.deaf.add("n1")
        world.network.cut.add("n1")
        while second.workflows.get(handle.run_id).status != "waiting":
            await asyncio.sleep(0.1)
        assert not first.workflows.has(handle.run_id)
        (question,) = second.workflows.get(handle.run_id).questions
        await second.workflows.answer(handle.run_id, question.question_id, "yes")
        assert (await asyncio.wait_for(waiter, 120)).data == {"n": 3, "answer": "yes"}
        assert steps == [1, 2, 3]
        world.leases.deaf.clear()
        world.network.cut.clear()

    play(case, [worker(steps, asyncio.Event())], [worker(steps)])


def test_a_waiting_run_is_held_by_one_node_and_left_alone_by_the_others() -> None:
    steps: list[int] = []

    async def case(world: World, first: Node, second: Node) -> None:
        first.workflows.add(FLOW)
        handle = await first.workflows.start("moves", user_id="u")
        await asyncio.sleep(600)  # of virtual time: many sweeps, and longer than an idle agent stays in memory
        assert first.workflows.has(handle.run_id)
        assert not second.workflows.has(handle.run_id)
        (question,) = second.workflows.get(handle.run_id).questions
        await second.workflows.answer(handle.run_id, question.question_id, "yes")
        assert (await asyncio.wait_for(second.workflows.result(handle.run_id), 120)).data["answer"] == "yes"
        assert steps == [1, 2, 3]

    play(case, [worker(steps)], [worker(steps)])


def test_what_happens_to_a_run_at_a_former_holder_stands_in_no_history() -> None:
    text = "workflow: w\nnodes: {a: {wait: 30s}, e: {wait: {event: paid}}}"

    async def case(world: World, first: Node, second: Node) -> None:
        handle = await first.workflows.start(load(text), user_id="u")
        await asyncio.sleep(0.1)
        fence = first._path.calls[handle.run_id].way.fence
        assert fence is not None
        before = second.workflows.store.events(handle.run_id)
        world.store.append((claim(Fence(fence.address, fence.token + 1), "n2"),))
        told = asyncio.create_task(first.workflows.signal(handle.run_id, "paid", 5))
        await asyncio.sleep(1)
        assert second.workflows.store.events(handle.run_id) == before
        told.cancel()

    play(case, [worker([])], [worker([])])
