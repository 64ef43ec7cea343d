"""While other users call too, the calls that one user makes at once enter a few at a time."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from comity import Agent, Context
from comity.runtime.call.pace import BUSY_S, FEW, LOOK_S, PRESSED_S, REST_S, STAND_BACK, WINDOW_S, Pace
from comity.runtime.call.turnstile import ENTER_MOST, SHARED_NS, TOGETHER, TURNS, Turnstile
from comity.testing.contracts.records import request

BURST = 3 * ENTER_MOST + 1
BOB = ("default", "bob")


def waiting_agent() -> tuple[Agent, asyncio.Event]:
    agent, go_on = Agent("A", concurrency=1000), asyncio.Event()

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> str:
        await go_on.wait()
        return ctx.request.user_id

    return agent, go_on


async def some_turns(turns: int = TURNS) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def test_a_burst_enters_in_rounds_and_another_user_does_not_wait_for_it(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        first = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        users = [call.request.user_id for call in node._path.calls.values()]
        assert users == ["bob", *["eve"] * ENTER_MOST]
        last = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        assert [call.request.user_id for call in node._path.calls.values()].count("bob") == 2
        entered = []
        while not entered or entered[-1] < BURST:
            await some_turns()
            entered.append([call.request.user_id for call in node._path.calls.values()].count("eve"))
        assert max(after - before for before, after in pairwise(entered)) == 1
        go_on.set()
        assert {(await one).data for one in (first, last)} == {"bob"}
        assert {(await one).data for one in burst} == {"eve"}


async def test_a_user_who_is_alone_does_not_wait(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        early = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        alone = asyncio.ensure_future(node.call("A", "WAIT", user_id="eve"))
        await asyncio.sleep(SHARED_NS / 1e9 * 1.01)
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        assert len(node._path.calls) == BURST + 2
        go_on.set()
        await asyncio.gather(early, alone, *burst)


async def test_the_first_user_of_a_node_is_alone(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        assert len(node._path.calls) == BURST
        go_on.set()
        await asyncio.gather(*burst)


async def test_two_tenants_with_a_user_of_one_name_do_not_share_a_line(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        asked = [
            asyncio.ensure_future(node.call("A", "WAIT", user_id="admin", tenant_id=tenant_id))
            for tenant_id in ("acme", "evil")
            for _ in range(BURST)
        ]
        await some_turns()
        tenants = [call.request.tenant_id for call in node._path.calls.values()]
        assert tenants.count("evil") == ENTER_MOST
        go_on.set()
        await asyncio.gather(*asked)


async def test_a_call_that_is_given_up_in_the_line_leaves_no_record_and_takes_no_turn(make_node):
    agent, go_on = waiting_agent()
    async with make_node([agent]) as node:
        bob = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        burst = [asyncio.ensure_future(node.call("A", "WAIT", user_id="eve")) for _ in range(BURST)]
        await some_turns()
        for one in burst[ENTER_MOST : 2 * ENTER_MOST]:
            one.cancel()
        await some_turns(BURST * TURNS)
        assert [call.request.user_id for call in node._path.calls.values()].count("eve") == BURST - ENTER_MOST
        go_on.set()
        await asyncio.gather(bob, *burst, return_exceptions=True)
        assert len({row.request_id for row in node.audit.rows()}) == BURST - ENTER_MOST + 1


async def test_the_calls_that_an_agent_makes_for_a_user_are_counted_with_that_users_own(make_node):
    agent, go_on = waiting_agent()
    boss = Agent("BOSS", can_call=["A"])

    @boss.capability("ASK")
    async def ask(ctx: Context) -> int:
        return len(await ctx.gather(*(ctx.call("A", "WAIT") for _ in range(BURST))))

    async with make_node([agent, boss]) as node:
        bob = asyncio.ensure_future(node.call("A", "WAIT", user_id="bob"))
        await some_turns()
        eve = asyncio.ensure_future(node.call("BOSS", "ASK", user_id="eve"))
        await some_turns()
        assert sum(call.parent is not None for call in node._path.calls.values()) == ENTER_MOST
        go_on.set()
        assert (await eve).data == BURST
        await bob


async def test_calls_whose_places_become_free_at_once_begin_one_by_one(make_node):
    agent, begun = Agent("A", concurrency=4), []

    @agent.capability("WAIT")
    async def wait(ctx: Context) -> None:
        await asyncio.sleep(60)

    @agent.capability("NOTE")
    async def note(ctx: Context) -> None:
        begun.append(ctx.request.user_id)
        await asyncio.sleep(60)

    async with make_node([agent]) as node:
        holding = [asyncio.ensure_future(node.call("A", "WAIT", user_id=f"u{one}")) for one in range(4)]
        await some_turns()
        asked = [asyncio.ensure_future(node.call("A", "NOTE", user_id=f"v{one}")) for one in range(4)]
        await some_turns()
        for one in holding:
            one.cancel()
        counts = []
        while len(begun) < 4:
            await asyncio.sleep(0)
            counts.append(len(begun))
        assert [after - before for before, after in pairwise([0, *counts]) if after > before] == [1] * 4
        for one in asked:
            one.cancel()


def test_while_a_user_with_few_calls_waits_a_line_stands_back_and_its_users_take_turns():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        pace, entered = Pace(), []
        turnstile = Turnstile(loop, pace)

        async def call(user_id: str) -> None:
            turn = turnstile.enter(request("r", user_id=user_id))
            if turn is not None:
                await turn
                entered.append(user_id)
                loop.computed_s += 1.01 * BUSY_S
                pace.note_call(BOB, loop.time())

        await asyncio.gather(*(call("eve") for _ in range(ENTER_MOST + 3)), *(call("mallory") for _ in range(ENTER_MOST + 2)))
        assert entered == ["eve", "mallory", "eve", "mallory", "eve"]
        assert sum(loop.rests) == pytest.approx(4 * STAND_BACK * 1.01 * BUSY_S)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(main())


def test_a_line_for_which_no_user_waits_enters_together_without_a_rest():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        turnstile, entered = Turnstile(loop, Pace()), []
        turns = [turnstile.enter(request("r", user_id="eve")) for _ in range(ENTER_MOST + 2 * TOGETHER)][ENTER_MOST:]
        loop.computed_s += PRESSED_S  # by now eve's own first calls are no reason to wait

        async def call(turn: asyncio.Future[None]) -> None:
            await turn
            entered.append(loop.turn)
            loop.computed_s += BUSY_S

        await asyncio.gather(*(call(turn) for turn in turns if turn is not None))
        assert loop.rests == []
        assert [entered.count(turn) for turn in dict.fromkeys(entered)] == [TOGETHER] * 2

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(main())


async def test_who_has_a_line_lines_up_behind_it_and_the_line_is_of_one_user_in_one_tenant():
    turnstile = Turnstile(asyncio.get_running_loop(), Pace())

    def waits(enter: Any, user_id: str, tenant_id: str = "default") -> bool:
        return enter(request("r", user_id=user_id, tenant_id=tenant_id)) is not None

    assert [waits(turnstile.enter, "eve") for _ in range(ENTER_MOST + 1)] == [False] * ENTER_MOST + [True]
    assert not waits(turnstile.enter, "eve", "acme")
    await asyncio.sleep(0)  # in the next turn of the loop nothing has entered yet, and eve's line is still there
    assert waits(turnstile.enter, "eve")


@pytest.mark.parametrize(("calls", "waits"), [(FEW, False), (FEW + 1, True)])
async def test_a_call_of_a_user_with_many_calls_begins_in_no_turn_in_which_another_entered(calls, waits):
    loop, pace = asyncio.get_running_loop(), Pace()
    turnstile = Turnstile(loop, pace)
    for _ in range(calls):
        pace.note_call(BOB, loop.time())
    assert turnstile.enter(request("r", user_id="eve")) is None
    assert (turnstile.begin(request("r", user_id="bob")) is not None) is waits


@pytest.mark.parametrize(("calls", "waits"), [(FEW, False), (FEW + 1, True)])
async def test_a_call_of_a_user_with_many_calls_begins_behind_the_line_of_another(calls, waits):
    loop, pace = asyncio.get_running_loop(), Pace()
    turnstile = Turnstile(loop, pace)
    for _ in range(calls):
        pace.note_call(BOB, loop.time())
    for _ in range(ENTER_MOST + 1):
        turnstile.enter(request("r", user_id="eve"))
    await asyncio.sleep(0)  # in the next turn of the loop nothing has entered yet
    assert (turnstile.begin(request("r", user_id="bob")) is not None) is waits


def test_while_other_work_that_can_wait_rests_a_line_rests_too():
    async def main() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, HurriedLoop)
        pace = Pace()
        turnstile = Turnstile(loop, pace)
        turns = [turnstile.enter(request("r", user_id="eve")) for _ in range(ENTER_MOST + 1)]
        pace.spend(BUSY_S, loop.time())
        assert turns[-1] is not None
        await turns[-1]
        assert sum(loop.rests) == pytest.approx(STAND_BACK * BUSY_S)

    with asyncio.Runner(loop_factory=HurriedLoop) as runner:
        runner.run(main())


def pressed_pace(now_s: float) -> Pace:
    pace = Pace()
    pace.note_call(BOB, now_s)
    return pace


def test_a_rest_is_bounded_and_what_was_spent_counts_once():
    pace = pressed_pace(1.0 + REST_S)
    pace.spend(BUSY_S / 2, 1.0)
    assert pace.rest_s(1.0) == 0
    pace.spend(60.0, 1.0)
    assert pace.rest_s(1.0) == pytest.approx(LOOK_S)
    assert pace.rest_s(1.0 + REST_S - LOOK_S / 2) == pytest.approx(LOOK_S / 2)
    assert pace.rest_s(1.0 + REST_S) == 0
    pace.spend(BUSY_S / 2, 1.0 + REST_S)
    assert pace.rest_s(1.0 + REST_S) == 0


def test_a_rest_ends_with_the_wait_of_the_user_it_is_for():
    pace = pressed_pace(1.0)
    pace.spend(60.0, 1.0)
    assert pace.rest_s(1.0 + PRESSED_S * 0.99) > 0
    assert pace.rest_s(1.0 + PRESSED_S) == 0


def test_a_user_has_few_calls_again_once_the_calls_are_a_while_ago():
    pace = Pace()
    for _ in range(FEW + 1):
        pace.note_call(BOB, 1.0)
    assert not pace.has_few(BOB)
    assert pace.has_few(("acme", "bob"))
    pace.note_call(BOB, 1.0 + WINDOW_S)
    assert not pace.has_few(BOB)
    assert pace.is_pressed(1.0)
    pace.note_call(BOB, 1.1 + WINDOW_S)
    assert pace.has_few(BOB)


def test_a_user_with_many_calls_makes_no_work_stand_back():
    pace = Pace()
    for _ in range(FEW):
        pace.note_call(BOB, 1.0)
    pace.note_call(BOB, 1.0 + PRESSED_S)
    assert not pace.is_pressed(1.0 + PRESSED_S)


class HurriedLoop(asyncio.SelectorEventLoop):
    """A loop whose clock stands still until a test says that something was computed, or the loop rests."""

    def __init__(self) -> None:
        super().__init__()
        self.computed_s, self.rests, self.turn = 0.0, [], 0

    def time(self) -> float:
        return self.computed_s

    def _run_once(self) -> None:
        self.turn += 1
        super()._run_once()

    def call_later(self, delay: float, callback: Any, *given: Any, **_: Any) -> Any:
        self.rests.append(delay)
        self.computed_s += delay
        return self.call_soon(callback, *given)
