"""A holder that lost its lease without knowing: it may compute, but nothing it writes counts, and the next holder goes on."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from cluster_world import World, play

from comity import Agent, Context, Node, Reply, Tool
from comity.core.cluster import messages as wire
from comity.core.journal.records import Document


class Gate:
    """Lets runs of an agent go on when the test says so, in the order in which they came."""

    def __init__(self) -> None:
        self.runs: list[asyncio.Future[None]] = []

    async def wait(self) -> int:
        number = len(self.runs)
        self.runs.append(asyncio.get_running_loop().create_future())
        while True:
            try:
                await asyncio.shield(self.runs[number])
            except asyncio.CancelledError:  # as a thread or a process would, it goes on
                continue
            return number

    def open(self, number: int) -> None:
        self.runs[number].set_result(None)


def stubborn(gate: Gate, used: list[int]) -> tuple[Agent, Tool]:
    agent = Agent("BACK", tools_allowed=["pay"])

    @agent.capability("DO", timeout_ms=60_000)
    async def do(ctx: Context) -> Any:
        ctx.state["runs"] = [*ctx.state.get("runs", []), len(gate.runs)]
        number = await gate.wait()
        ctx.state["ended"] = number
        return {"number": number, "runs": ctx.state["runs"]}

    @agent.capability("PAY", timeout_ms=60_000)
    async def pay(ctx: Context) -> Any:
        number = await gate.wait()
        await ctx.use_tool("pay", number=number)
        return number

    @agent.capability("ASK", timeout_ms=60_000)
    async def ask(ctx: Context) -> Any:
        number = await gate.wait()
        reply = await ctx.call("SIDE", "DO", {"number": number})
        return [number, reply.data]

    def spend(number: int) -> None:
        used.append(number)

    return agent, Tool(name="pay", function=spend)


def side(runs: list[int]) -> Agent:
    agent = Agent("SIDE")

    @agent.capability("DO")
    async def do(number: int) -> int:
        runs.append(number)
        return number

    return agent


async def take_over(world: World, zombie: str, address: str = "BACK") -> None:
    """Cut a node off and let its lease run out; it is not told."""
    world.network.cut.add(zombie)
    world.leases.deaf.add(zombie)
    world.leases.expire(address)
    await asyncio.sleep(0.1)


@pytest.mark.parametrize("capability", ["DO", "PAY", "ASK"])
def test_what_a_former_holder_goes_on_to_do_never_counts_and_the_next_one_does_it(capability: str) -> None:
    gate, used, asked = Gate(), [], []  # type: ignore[var-annotated]
    agent, pay = stubborn(gate, used)

    async def case(world: World, one: Node, two: Node) -> None:
        first = asyncio.ensure_future(one.call("BACK", capability, user_id="u", request_id="r", tools=["pay"]))
        await asyncio.sleep(0.01)
        await take_over(world, "n1")
        second = asyncio.ensure_future(two.call("BACK", capability, user_id="u", request_id="r", tools=["pay"]))
        await asyncio.sleep(0.1)
        assert len(gate.runs) == 2  # both run
        gate.open(0)  # the zombie comes first
        await asyncio.sleep(0.5)
        assert not second.done()
        assert world.kinds("r") == ["admitted"]
        assert (used, asked) == ([], [])
        assert world.store.load(Document.STATE, "BACK") is None
        gate.open(1)
        reply = await second
        assert reply.ok
        assert world.kinds("r") == ["admitted", "settled"]
        if capability == "DO":
            assert reply.data == {"number": 1, "runs": [1]}
        elif capability == "PAY":
            assert used == [1]
            assert world.kinds("r#1") == ["admitted", "settled"]
        else:
            assert asked == [1]
            assert reply.data == [1, 1]
            assert world.kinds("r.1") == ["admitted", "settled"]
        world.network.cut.clear()
        world.leases.deaf.clear()
        answered = await first  # who asked the former holder gets the answer of the next one
        assert answered.data == reply.data
        assert one._path is not None
        assert not one._path.calls

    play(case, [agent, side(asked)], [agent, side(asked)], tools=[pay])


def test_a_node_that_cannot_renew_lets_go_before_anybody_else_can_have_the_address() -> None:
    gate = Gate()
    agent, _ = stubborn(gate, [])

    async def case(world: World, one: Node) -> None:
        call = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r"))
        await asyncio.sleep(0.01)
        began = asyncio.get_running_loop().time()
        world.leases.deaf.add("n1")
        path = one._path
        assert path is not None
        while "r" in path.calls:
            await asyncio.sleep(0.1)
        assert asyncio.get_running_loop().time() - began < 7
        world.leases.deaf.clear()
        while len(gate.runs) < 2:
            await asyncio.sleep(0.1)
        gate.open(1)
        assert (await call).data["number"] == 1
        gate.open(0)

    play(case, [agent])


def test_a_lost_lease_moves_only_the_calls_of_its_agent() -> None:
    slow, quick = Agent("SLOW"), Agent("QUICK")
    runs: list[str] = []

    @slow.capability("DO")
    async def slowly(ctx: Context) -> str:
        runs.append("slow")
        await asyncio.sleep(5)
        return ctx.request.target

    @quick.capability("DO")
    async def quickly(ctx: Context) -> str:
        runs.append("quick")
        return (await ctx.call("SLOW", "DO")).data

    async def case(world: World, one: Node, two: Node) -> None:
        asked = asyncio.ensure_future(one.call("QUICK", "DO", user_id="u", request_id="r"))
        await asyncio.sleep(0.5)
        world.leases.expire("SLOW")
        assert world.leases.acquire("SLOW", "n2").holder == "n2"
        one._path.placement.holds.spoil("SLOW")
        assert (await asked).data == "SLOW"
        assert runs == ["quick", "slow", "slow"]
        assert world.kinds("r.1") == ["admitted", "settled"]

    play(case, [slow, quick], [slow, quick])


def test_a_node_that_closes_hands_what_others_asked_of_it_to_them() -> None:
    runs: list[str] = []

    def back(name: str) -> Agent:
        agent = Agent("BACK")

        @agent.capability("DO")
        async def do(ctx: Context) -> str:
            runs.append(name)
            ctx.state["by"] = [*ctx.state.get("by", []), name]
            await asyncio.sleep(1)
            return ",".join(ctx.state["by"])

        return agent

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await two.call("BACK", "DO", user_id="u")).data == "n2"
        asked = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r"))
        await asyncio.sleep(0.5)
        began = asyncio.get_running_loop().time()
        await two.close()
        reply = await asked
        assert reply.data == "n2,n1"
        assert runs == ["n2", "n2", "n1"]
        assert asyncio.get_running_loop().time() - began < 2  # nobody waited for a lease to run out
        assert world.kinds("r") == ["admitted", "settled"]

    play(case, [back("n1")], [back("n2")])


def test_an_idle_agent_is_given_back_with_its_state() -> None:
    def counting() -> Agent:
        agent = Agent("COUNT", idle_ms=1_000)

        @agent.capability("UP")
        async def up(ctx: Context) -> int:
            ctx.state["n"] = ctx.state.get("n", 0) + 1
            return ctx.state["n"]

        return agent

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await one.call("COUNT", "UP", user_id="u")).data == 1
        assert (await one.call("COUNT", "UP", user_id="u")).data == 2
        await asyncio.sleep(3)
        assert world.leases.find("COUNT") is None
        assert (await two.call("COUNT", "UP", user_id="u")).data == 3
        assert world.messages(wire.Ask) == []

    play(case, [counting()], [counting()])


@pytest.mark.parametrize("message", ["hello", ""])
def test_the_answer_of_a_former_holder_stands_in_no_session(message: str) -> None:
    gate = Gate()
    agent = Agent("BACK")

    @agent.capability("message", timeout_ms=60_000)
    async def answer(topic: str = "t") -> Any:
        return Reply.success({"run": await gate.wait()}, message="" if not message else "heard")

    async def case(world: World, one: Node, two: Node) -> None:
        asked = ("BACK", "message", {"topic": "x"})
        named = {"user_id": "u", "request_id": "r", "session_id": "s", "message": message}
        first = asyncio.ensure_future(one.call(*asked, **named))
        await asyncio.sleep(0.01)
        await take_over(world, "n1")
        second = asyncio.ensure_future(two.call(*asked, **named))
        await asyncio.sleep(0.1)
        gate.open(0)  # the zombie comes first
        await asyncio.sleep(0.5)
        world.network.cut.clear()
        world.leases.deaf.clear()
        # Its node goes on to say something in the same session.
        said = asyncio.ensure_future(one.call("SIDE", "DO", {"number": 7}, user_id="u", session_id="s", message="more"))
        await asyncio.sleep(0.5)
        gate.open(1)
        assert [(await each).data for each in (first, second, said)] == [{"run": 1}, {"run": 1}, 7]
        await asyncio.sleep(10)  # notes of calls without words are written by then
        session = two.session("s")
        assert session is not None
        told = [turn.text for turn in session.turns if turn.request_id == "r" and turn.role == "BACK"]
        asks = [turn for turn in session.turns if turn.request_id == "r" and turn.role == "user"]
        assert (len(told), len(asks)) == (1, 1)

    play(case, [agent, side([])], [agent, side([])])


@pytest.mark.parametrize(("is_known", "request_id"), [(False, "r"), (True, "r"), (True, None)])
def test_what_a_user_says_to_a_former_holder_stands_once_in_the_session(is_known: bool, request_id: str | None) -> None:
    agent = Agent("BACK")

    @agent.capability("message", timeout_ms=60_000)
    async def answer(ctx: Context) -> Reply:
        return Reply.success(message=f"heard {ctx.request.message}")

    async def case(world: World, one: Node, two: Node) -> None:
        asked = {"user_id": "u", "session_id": "s"}
        if is_known:
            assert (await one.call("SIDE", "DO", {"number": 1}, message="before", **asked)).ok
        assert (await one.call("BACK", "message", user_id="u")).ok
        await take_over(world, "n1")
        assert (await two.call("BACK", "message", user_id="u")).ok  # it holds the agent now, and the first node does not know
        world.network.cut.clear()
        world.leases.deaf.clear()
        assert (await one.call("BACK", "message", message="hello", request_id=request_id, **asked)).ok
        session = two.session("s")
        assert session is not None
        assert [turn.text for turn in session.turns if "hello" in turn.text] == ["hello", "heard hello"]

    play(case, [agent, side([])], [agent, side([])])
