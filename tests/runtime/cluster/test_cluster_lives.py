"""A tree that another node goes on with: what its earlier life did still counts, and what it never did is never told."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Sequence

import pytest
from cluster_world import World, play

from comity import Agent, Context, Limits, Node, Reply, Status, Tool
from comity.core.agent import agent as agents
from comity.core.cluster import messages as wire
from comity.core.journal.records import Accepted, Document, Record, Settled, StoredCall
from comity.core.journal.terms import Terms
from comity.engines.memory.cluster import MemoryLeases, SharedJournal
from comity.engines.memory.engine import JournalEngine
from comity.engines.memory.journal import MemoryJournal
from comity.errors import UnavailableError
from comity.ports import Then
from comity.runtime.cluster.outbound import READS_MAX
from comity.testing import VirtualClock


def code_of(reply: object) -> str:
    return "" if reply.error is None else reply.error.code  # type: ignore[attr-defined]


async def go_away(world: World, node_id: str, *addresses: str) -> None:
    """Cut a node off from everybody; its leases have run out, and it is not told."""
    world.network.cut.add(node_id)
    world.leases.deaf.add(node_id)
    for address in addresses:
        world.leases.expire(address)
    await asyncio.sleep(0.1)


def doer(name: str, runs: list[str]) -> Agent:
    agent = Agent(name)

    @agent.capability("DO")
    async def do(ctx: Context) -> str:
        runs.append(ctx.request.request_id)
        return name

    return agent


def other_way_round(runs: list[str]) -> Agent:
    """An agent that in its first life makes its first call and waits, and in the second makes its second call before that."""
    agent = Agent("ASKER")

    @agent.capability("ASK")
    async def ask(ctx: Context) -> list[str]:
        one, two = ctx.call("ONE", "DO"), ctx.call("TWO", "DO")
        runs.append("asker")
        if runs.count("asker") == 1:
            two.close()
            await one
            await asyncio.sleep(60)
        return [code_of(await two), code_of(await one)]

    return agent


def test_what_an_earlier_life_began_counts_before_it_is_asked_for_again() -> None:
    runs: list[str] = []
    agents = [other_way_round(runs), doer("ONE", runs), doer("TWO", runs)]

    async def case(world: World, one: Node, two: Node) -> None:
        tight = Limits(calls_max=2)
        first = asyncio.ensure_future(one.call("ASKER", "ASK", user_id="u", request_id="r", limits=tight))
        await asyncio.sleep(0.5)
        await go_away(world, "n1", "ASKER", "ONE")
        reply = await two.call("ASKER", "ASK", user_id="u", request_id="r", limits=tight)
        assert reply.data == ["BUDGET_CALLS_EXHAUSTED", ""]
        assert world.kinds("r.1") == ["admitted", "settled"]
        assert world.kinds("r.2") == ["refused"]
        assert reply.usage.calls == 1
        first.cancel()

    play(case, agents, agents)


def test_a_call_that_was_begun_and_is_refused_when_taken_up_counts_still() -> None:
    runs: list[str] = []
    asker = Agent("ASKER")
    hanging = Agent("ONE")

    @asker.capability("ASK")
    async def ask(ctx: Context) -> list[str]:
        return [code_of(await ctx.call("ONE", "DO")), code_of(await ctx.call("TWO", "DO"))]

    @hanging.capability("DO")
    async def hang() -> None:
        await asyncio.sleep(60)

    async def case(world: World, one: Node, two: Node) -> None:
        tight = Limits(calls_max=2)
        first = asyncio.ensure_future(one.call("ASKER", "ASK", user_id="u", request_id="r", limits=tight))
        await asyncio.sleep(0.5)
        await go_away(world, "n1", "ASKER", "ONE")
        hanging.status = agents.Status.MAINTENANCE
        reply = await two.call("ASKER", "ASK", user_id="u", request_id="r", limits=tight)
        assert reply.data == ["ROUTING_AGENT_IN_MAINTENANCE", "BUDGET_CALLS_EXHAUSTED"]
        stored = world.store.call("r.1")
        assert stored is not None
        assert stored.reply is not None
        assert stored.reply.status == "error"
        first.cancel()

    play(case, [asker, hanging, doer("TWO", runs)], [asker, hanging, doer("TWO", runs)])


def with_journal(world: World, hosted: Sequence[Agent], journal: SharedJournal) -> Node:
    """Return one more node, with a journal that is not as good as the others'."""
    transport = world.network.transport()
    leases = MemoryLeases(world.leases, journal)
    return Node(hosted, engine=JournalEngine(journal, leases, transport), clock=VirtualClock(), lag_ms=None)


class SlowJournal(SharedJournal):
    """Takes a second to write, each append after the one before."""

    def __init__(self, shared: MemoryJournal, node_id: str) -> None:
        super().__init__(shared, node_id)
        self._waiting: deque[tuple[Sequence[Record], Then | None, Terms | None]] = deque()

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        self._waiting.append((records, then, terms))
        asyncio.get_running_loop().call_later(1, self._write_next)  # timers of the same moment fire in any order

    def _write_next(self) -> None:
        super().append(*self._waiting.popleft())


def test_a_call_that_the_store_never_took_has_no_late_result() -> None:
    front, back = Agent("FRONT"), Agent("BACK")
    returned: list[bool] = []

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        return code_of(await ctx.call("BACK", "DO", timeout_ms=60_000))

    @back.capability("DO")
    async def do() -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(0.2)  # it does not stop at once, and then it has a result
        returned.append(True)
        return "done"

    async def case(world: World, one: Node) -> None:
        slow = with_journal(world, [back], SlowJournal(world.store, "n2"))
        async with slow:
            await slow.call("BACK", "DO", user_id="u", timeout_ms=3_000)  # from now on it holds the agent
            reply = await one.call("FRONT", "ASK", user_id="u", request_id="r", timeout_ms=500)
            assert reply.status == "timeout"
            await asyncio.sleep(10)
        assert returned[-1]
        assert world.kinds("r") == ["admitted", "settled"]
        assert world.kinds("r.1") == []

    play(case, [front], child_margin=0)


def test_a_node_loses_an_agent_whose_code_goes_on_after_its_call_has_ended_and_keeps_the_others() -> None:
    front, back = Agent("FRONT"), Agent("BACK")

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        reply = await ctx.call("BACK", "DO", timeout_ms=100, objective="the same")
        await asyncio.sleep(20)
        return code_of(reply)

    @back.capability("DO")
    async def do() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            await asyncio.sleep(60)

    async def case(world: World, one: Node) -> None:
        asked = asyncio.ensure_future(one.call("FRONT", "ASK", user_id="u"))
        await asyncio.sleep(1)
        before = world.leases.find("FRONT")
        world.leases.expire("BACK")
        assert (await asked).data == "CALL_TIMEOUT"
        after = world.leases.find("FRONT")
        assert before is not None
        assert after is not None
        assert after.token == before.token  # renewed all the while

    play(case, [front, back])


def test_a_second_life_counts_what_a_call_used_that_was_begun_for_the_first() -> None:
    front, back = Agent("FRONT"), Agent("BACK")

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        return (await ctx.call("BACK", "DO")).data

    @back.capability("DO")
    async def do(ctx: Context) -> str:
        await asyncio.sleep(5)
        ctx.report_usage(prompt_tokens=10)
        return "done"

    async def case(world: World, one: Node, two: Node) -> None:
        await two.call("BACK", "DO", user_id="u")  # from now on it is there
        first = asyncio.ensure_future(one.call("FRONT", "ASK", user_id="u", request_id="r"))
        await asyncio.sleep(0.5)
        await go_away(world, "n1", "FRONT")
        reply = await two.call("FRONT", "ASK", user_id="u", request_id="r")
        assert (reply.data, reply.usage.prompt_tokens, reply.usage.calls) == ("done", 10, 1)
        assert world.kinds("r.1") == ["admitted", "settled"]
        first.cancel()

    play(case, [front], [front, back])


def test_an_activation_whose_state_cannot_be_trusted_is_followed_by_one_under_a_new_token() -> None:
    agent = Agent("BACK")

    @agent.capability("DO")
    async def do(ctx: Context, seconds: float) -> list[float]:
        ctx.state["seen"] = [*ctx.state.get("seen", []), seconds]
        await asyncio.sleep(seconds)
        return ctx.state["seen"]

    async def case(world: World, one: Node) -> None:
        short = asyncio.ensure_future(one.call("BACK", "DO", {"seconds": 1}, user_id="u", request_id="short"))
        await asyncio.sleep(0.1)
        long = asyncio.ensure_future(one.call("BACK", "DO", {"seconds": 10}, user_id="u", request_id="long"))
        await asyncio.sleep(0.1)
        stored = world.store.call("short")
        assert stored is not None
        assert stored.request is not None
        ended = Reply(status=Status.SUCCESS, data="elsewhere", request_id="short", confidence=1.0)
        world.store.append((Settled(stored.request, ended, 0),))  # somebody was faster
        assert (await short).data == "elsewhere"
        assert (await long).data == [10]  # begun again, with nothing of what the other did
        fence = world.store.load(Document.FENCE, "BACK")
        assert fence is not None
        assert fence[0] == 2

    play(case, [agent])


@pytest.mark.parametrize("caller_node", ["n1", "n2"])
def test_what_a_tool_did_for_the_first_life_of_a_call_is_not_done_for_the_second(caller_node: str) -> None:
    front, back = Agent("FRONT", tools_allowed=["pay"]), Agent("BACK", tools_allowed=["pay"])
    paid: list[int] = []
    runs: list[int] = []

    @front.capability("ASK")
    async def ask(ctx: Context) -> int:
        return (await ctx.call("BACK", "DO")).data

    @back.capability("DO")
    async def do(ctx: Context) -> int:
        runs.append(len(runs))
        result = await ctx.use_tool("pay")
        if len(runs) == 1:
            await asyncio.sleep(60)
        return result

    def pay() -> int:
        paid.append(1)
        return len(paid)

    async def case(world: World, one: Node, two: Node) -> None:
        assert (await one.call("BACK", "HOLD", user_id="u")).ok  # it is with the first node
        asked = asyncio.ensure_future((one if caller_node == "n1" else two).call("FRONT", "ASK", user_id="u"))
        await asyncio.sleep(0.5)
        if caller_node == "n1":
            world.leases.expire("BACK")
            world.leases.acquire("BACK", "n2")
            one._path.placement.holds.spoil("BACK")
        else:
            await go_away(world, "n1", "BACK")
        assert (await asked).data == 1
        assert (len(runs), len(paid)) == (2, 1)

    @back.capability("HOLD")
    async def hold() -> None: ...

    tool = Tool(name="pay", function=pay)
    play(case, [front, back], [front, back], tools=[tool])


class FlakyJournal(SharedJournal):
    """Cannot be read as often as it is told, and from when it is told not be written either."""

    unreadable = 0
    is_unwritable = False

    @property
    def is_idle(self) -> bool:  # type: ignore[override]
        return not self.is_unwritable

    def append(self, records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
        if not self.is_unwritable:
            super().append(records, then, terms)
        else:
            asyncio.get_running_loop().call_later(0.05, self._fail, then)

    def _fail(self, then: Then | None) -> None:
        self.failure = UnavailableError("the store could not be written", code="STORE_UNAVAILABLE")
        if then is not None:
            then(self.failure)

    def call(self, request_id: str) -> StoredCall | None:
        if self.unreadable:
            self.unreadable -= 1
            raise UnavailableError("the store could not be read", code="STORE_UNAVAILABLE")
        return self._shared.call(request_id)


def test_what_a_call_used_counts_also_when_its_end_is_found_in_the_store_at_the_last_moment() -> None:
    front, back = Agent("FRONT"), Agent("BACK")

    @front.capability("ASK")
    async def ask(ctx: Context) -> list[object]:
        reply = await ctx.call("BACK", "DO", timeout_ms=500)
        return [str(reply.status), ctx.limits.tokens_max]

    @back.capability("DO")
    async def do(ctx: Context) -> None:
        ctx.report_usage(prompt_tokens=7)

    async def case(world: World, two: Node) -> None:
        journal = FlakyJournal(world.store, "n2")
        one = with_journal(world, [front], journal)
        world.network.fault = lambda sender, receiver, message: () if isinstance(message, wire.Answer) else (0.001,)
        async with one:
            asked = asyncio.ensure_future(one.call("FRONT", "ASK", user_id="u", limits=Limits(tokens_max=100)))
            await asyncio.sleep(0.3)
            journal.unreadable = 3  # when its time is up, and a little longer
            reply = await asked
        assert journal.unreadable == 0
        assert reply.data == ["success", 93]
        assert (reply.usage.prompt_tokens, reply.usage.calls) == (7, 1)

    play(case, [back])


def test_a_question_that_comes_twice_is_refused_once_however_slow_the_store_is() -> None:
    front, back = Agent("FRONT"), Agent("BACK")
    runs: list[str] = []

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        return code_of(await ctx.call("BACK", "DO"))

    @back.capability("DO")
    async def do(ctx: Context) -> None:
        runs.append(ctx.request.request_id)

    def twice(sender: str, receiver: str, message: wire.Message) -> tuple[float, ...]:
        return (0.001, 0.5) if isinstance(message, wire.Ask) else (0.001,)

    async def case(world: World, one: Node) -> None:
        world.network.fault = twice
        slow = with_journal(world, [back], SlowJournal(world.store, "n2"))
        async with slow:
            assert (await slow.call("BACK", "DO", user_id="u", request_id="r")).ok  # from now on it holds the agent
            back.status = agents.Status.MAINTENANCE
            asked = asyncio.ensure_future(one.call("FRONT", "ASK", user_id="u", request_id="s"))
            await asyncio.sleep(0.3)
            back.status = agents.Status.ACTIVE
            assert (await asked).data == "ROUTING_AGENT_IN_MAINTENANCE"
            await asyncio.sleep(5)
        assert runs == ["r"]
        assert world.kinds("s.1") == ["refused"]

    play(case, [front])


def test_a_node_that_cannot_write_sends_nobody_what_it_could_not_write() -> None:
    front, back = Agent("FRONT"), Agent("BACK")
    runs: list[bool] = []

    @front.capability("ASK")
    async def ask(ctx: Context, times: int = 1) -> str:
        return code_of(await ctx.call("BACK", "DO"))

    @back.capability("DO")
    async def do() -> None:
        runs.append(True)

    async def case(world: World, two: Node) -> None:
        journal = FlakyJournal(world.store, "n2")
        async with with_journal(world, [front], journal) as one:
            assert (await one.call("FRONT", "ASK", user_id="u")).ok
            journal.is_unwritable = True
            reply = await one.call("FRONT", "ASK", user_id="u", request_id="r")
            assert code_of(reply) == "STORE_UNAVAILABLE"
        assert len(world.messages(wire.Ask)) == len(runs) == 1  # of the first one
        assert world.kinds("r") == []

    play(case, [back])


def test_who_asks_again_for_a_call_that_moved_gives_it_no_more_time() -> None:
    agent = Agent("BACK")
    runs: list[str] = []

    @agent.capability("DO")
    async def do() -> None:
        runs.append("run")
        await asyncio.sleep(60)

    async def case(world: World, one: Node, two: Node) -> None:
        began = asyncio.get_running_loop().time()
        first = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=5_000))
        await asyncio.sleep(0.5)
        await go_away(world, "n1", "BACK")
        reply = await two.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=50_000)
        assert (reply.status, runs) == ("timeout", ["run", "run"])
        assert 5 <= asyncio.get_running_loop().time() - began < 5.1
        first.cancel()

    play(case, [agent], [agent])


def test_an_agent_that_was_lost_and_comes_back_at_once_has_a_new_token() -> None:
    agent = Agent("BACK")

    @agent.capability("DO")
    async def do() -> None: ...

    async def case(world: World, one: Node) -> None:
        await one.call("BACK", "DO", user_id="u")
        lease = world.leases.find("BACK")
        assert lease is not None
        assert one._path is not None
        one._path.placement.holds.lost("BACK", lease.token)  # its lease has run out by this node's clock alone
        await one.call("BACK", "DO", user_id="u")
        fence = world.store.load(Document.FENCE, "BACK")
        assert fence is not None
        assert fence[0] == lease.token + 1

    play(case, [agent])


def test_nothing_is_refused_on_record_below_a_caller_that_has_ended() -> None:
    front, back = Agent("FRONT"), Agent("BACK", status=agents.Status.MAINTENANCE)

    @front.capability("ASK")
    async def ask(ctx: Context) -> str:
        return code_of(await ctx.call("BACK", "DO"))

    @back.capability("DO")
    async def do() -> None: ...

    async def case(world: World, one: Node) -> None:
        async with with_journal(world, [back], SlowJournal(world.store, "n2")):
            reply = await one.call("FRONT", "ASK", user_id="u", request_id="r", timeout_ms=1_500)
            assert reply.status == "timeout"
            await asyncio.sleep(10)
        assert world.kinds("r") == ["admitted", "settled"]
        assert "refused" not in world.kinds("r.1")

    play(case, [front], child_margin=0)


def backend() -> Agent:
    agent = Agent("BACK")

    @agent.capability("DO")
    async def do() -> str:
        return "done"

    return agent


@contextlib.asynccontextmanager
async def unheard(world: World, two: Node) -> AsyncIterator[tuple[FlakyJournal, asyncio.Future[Reply]]]:
    """A call of another node to an agent that `two` holds, while no message arrives, and the journal of that other node."""
    await two.call("BACK", "DO", user_id="u")  # from now on it holds the agent
    journal = FlakyJournal(world.store, "n2")
    world.network.fault = lambda *_: ()
    async with with_journal(world, [backend()], journal) as one:
        asked = asyncio.ensure_future(one.call("BACK", "DO", user_id="u", request_id="r", timeout_ms=500))
        await asyncio.sleep(0.3)
        yield journal, asked


def test_a_user_is_told_of_a_timeout_only_once_the_store_has_said_what_became_of_the_call() -> None:
    async def case(world: World, two: Node) -> None:
        async with unheard(world, two) as (journal, asked):
            append = journal.append

            def accepted_in_between(records: Sequence[Record], then: Then | None = None, terms: Terms | None = None) -> None:
                if records and type(records[0]) is Accepted:
                    world.store.append(records[:1])
                    journal.unreadable = 2
                append(records, then, terms)

            journal.append = accepted_in_between  # type: ignore[method-assign]
            reply = await asked
            assert reply.status == "timeout"
            assert world.kinds("r") == ["admitted", "settled"]
            assert journal.unreadable == 0

    play(case, [backend()])


@pytest.mark.parametrize("has_failed", [False, True])
def test_a_user_is_told_that_the_store_cannot_be_read_after_ten_tries_or_at_once_if_it_has_failed(has_failed: bool) -> None:
    """Dies where a store that stays unreadable is asked without end, or once too few, or though it has failed."""

    async def case(world: World, two: Node) -> None:
        async with unheard(world, two) as (journal, asked):
            journal.unreadable = 1_000
            if has_failed:
                journal.failure = UnavailableError("the store could not be written", code="STORE_UNAVAILABLE")
            reply = await asked
            assert (reply.status, reply.error.code) == ("error", "STORE_UNAVAILABLE")
            assert 1_000 - journal.unreadable == (2 if has_failed else 1 + READS_MAX)  # once for an end that came unheard
            journal.unreadable, journal.failure = 0, None

    play(case, [backend()])
