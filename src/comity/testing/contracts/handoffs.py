"""What every handoff queue must do, as one suite. A test module subclasses `HandoffContract` once for each journal it has."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import NoneType
from typing import Any

import pytest
from msgspec import Raw
from msgspec.structs import replace

from comity.core.agent.mailbox import TURNS
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Priority, Reply, Request
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import (
    Accept,
    Cancel,
    Complete,
    Handoff,
    Offer,
    Progress,
    Release,
    State,
)
from comity.core.handoff.queue import Listen, Step, Sweep, Take, Want
from comity.core.journal.records import Accepted, StoredState
from comity.core.journal.terms import Terms
from comity.errors import CallChangedError
from comity.ports import HandoffJournal
from comity.testing.contracts.records import breathe, play

PATIENCE_S = 30
NOW = 1_000
LANE = "default\x1fo11y"
WANT = Want(LANE, (), ())
ME = "node#1"
LIMITS = Limits()
Scenario = Callable[[Any], Awaitable[None]]


def made(request_id: str, *, lane: str = LANE, deadline_at: int = 100_000, made_by: str = "node", **more: Any) -> Handoff:
    fields: dict[str, Any] = {"capability": "investigate", "user_id": "u-1", "session_id": "s-1", "trace_id": "t" * 32}
    request = Request(
        request_id=request_id,
        target=lane.partition("\x1f")[2],
        limits=LIMITS,
        deadline_at=deadline_at,
        created_at=NOW,
        body=Raw(b'{"n":1}'),
        root_id=request_id,
        **(fields | more),
    )
    return Handoff(request=request, lane=lane, made_by=made_by, result_trace_id=request.trace_id)


async def do(journal: HandoffJournal, *steps: Step) -> list[Any]:
    """Do steps in one transaction and wait until they are durable."""
    waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    journal.append(steps, lambda error: waiter.set_result(None) if error is None else waiter.set_exception(error))
    async with asyncio.timeout(PATIENCE_S):
        await waiter
    return list(steps)


async def change(journal: HandoffJournal, handoff_id: str, change: Any, now_ms: int = NOW + 1) -> Any:
    (step,) = await do(journal, Step(handoff_id=handoff_id, change=change, now_ms=now_ms))
    return step.outcome


async def offer(journal: HandoffJournal, *handoffs: Handoff) -> None:
    await do(journal, *(Step(handoff_id=one.id, change=Offer(one), now_ms=NOW) for one in handoffs))


def taking(
    most: int = 1, *, want: Want = WANT, turns: dict[Priority, int] | None = None, now_ms: int = NOW + 5, **more: Any
) -> Step:
    accept = Accept(ME, "o11y", now_ms + 1_000, **more)
    return Step(change=Take(want, accept, most, turns or dict(TURNS)), now_ms=now_ms)


async def sweep(journal: HandoffJournal, now_ms: int) -> None:
    await do(journal, Step(change=Sweep(), now_ms=now_ms))


async def take(journal: HandoffJournal, most: int = 1, *, now_ms: int = NOW + 5, **more: Any) -> list[Handoff]:
    await sweep(journal, now_ms)
    (step,) = await do(journal, taking(most, now_ms=now_ms, **more))
    return [outcome.handoff for outcome in step.outcomes if outcome.handoff is not None]


def run(journal: Any, scenario: Scenario) -> None:
    async def main() -> None:
        journal.open()
        heard: list[Any] = []
        journal.handoffs.open(heard.append)
        journal.heard = heard
        try:
            await scenario(journal)
        finally:
            journal.handoffs.close()
            await journal.close()

    play(journal, main())


async def until(condition: Callable[[], Any]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await breathe()


class HandoffContract:
    """Subclasses say how a journal is made."""

    def make(self, folder: Path) -> HandoffJournal:
        raise NotImplementedError

    @pytest.fixture
    def journal(self, tmp_path: Path) -> HandoffJournal:
        return self.make(tmp_path)

    def test_what_was_offered_is_there_with_everything_it_says(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            handoff = made("h", message="find out", priority=Priority.HIGH)
            await offer(journal, handoff)
            found = journal.handoffs.get("h")
            assert found.request == handoff.request
            assert (found.lane, found.made_by, found.state, found.holder) == (LANE, "node", State.PENDING, "")
            assert journal.handoffs.get("nothing") is None

        run(journal, scenario)

    def test_offering_and_ending_are_audited_and_the_call_is_open_with_nobody_in_between(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("h"))
            stored = journal.call("h")
            assert stored.state is StoredState.HANDED_OFF
            assert journal.abandoned() == []
            (taken,) = await take(journal)
            await change(journal, "h", Progress(Holder(ME, taken.fence), 1))
            await change(journal, "h", Complete(Holder(ME, taken.fence), Reply.success({"a": 1}), "trace-9"))
            assert [(row.request_id, row.kind) for row in journal.rows()] == [("h", "admitted"), ("h", "settled")]
            assert journal.call("h").reply.data == {"a": 1}
            assert journal.verify().ok

        run(journal, scenario)

    def test_a_handoff_is_found_among_the_calls_and_no_call_can_be_accepted_under_its_id(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("h"), replace(made("of-a-tree"), settles=False))
            assert [(call.request_id, call.request) for call in journal.calls(limit=9)] == [("h", made("h").request)]
            assert journal.call("of-a-tree") is None
            told: list[Exception | None] = []
            for request_id in ("h", "new"):
                record = Accepted(made(request_id).request, NOW, "node")
                journal.append((record,), told.append, Terms(unknown=request_id))
            await until(lambda: len(told) == 2)
            assert [type(error) for error in told] == [CallChangedError, NoneType]
            assert sorted(call.request_id for call in journal.calls(limit=9)) == ["h", "new"]

        run(journal, scenario)

    def test_a_result_is_found_by_its_id_and_by_its_trace(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("h"), made("i", trace_id="u" * 32))
            (taken,) = await take(journal)
            await change(journal, taken.id, Complete(Holder(ME, taken.fence), Reply.success([1]), "trace-9"))
            assert journal.handoffs.get(taken.id).result == [1]
            assert [one.id for one in journal.handoffs.by_trace("trace-9")] == [taken.id]
            assert [one.id for one in journal.handoffs.by_trace("u" * 32)] == ["i"]

        run(journal, scenario)

    def test_each_is_taken_once_oldest_first_within_its_priority(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, *(made(f"h{number}") for number in range(5)))
            steps = await do(journal, taking(2), taking(2), taking(2))
            assert [[one.handoff.id for one in step.outcomes] for step in steps] == [["h0", "h1"], ["h2", "h3"], ["h4"]]

        run(journal, scenario)

    def test_what_is_offered_and_taken_in_one_transaction_comes_after_what_waited(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("old"), made("older", lane="default\x1fother"))
            (held,) = await take(journal)
            back = Step(handoff_id="old", change=Release(Holder(ME, held.fence), "going"), now_ms=NOW + 2)
            new = [Step(handoff_id=one, change=Offer(made(one)), now_ms=NOW + 2) for one in ("a", "b", "c")]
            first: Any = taking(2)
            second: Any = taking(2)
            await do(journal, new[0], new[1], first, back, new[2], second)
            assert [[one.handoff.id for one in step.outcomes] for step in (first, second)] == [["a", "b"], ["old", "c"]]
            found = journal.handoffs.get_again([held, *(made(one) for one in ("a", "b", "c", "gone"))])
            assert {(one.id, one.state, one.attempts) for one in found} == {
                ("a", "accepted", 1), ("b", "accepted", 1), ("c", "accepted", 1), ("old", "accepted", 2),
            }  # fmt: skip
            assert [entry.kind for entry in journal.handoffs.get("a").history] == ["created", "accepted"]
            assert journal.handoffs.count_free(LANE) == 0

        run(journal, scenario)

    def test_urgent_ones_go_first_and_nobody_starves(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            waiting = [made(f"{priority}{number}", priority=priority) for number in range(30) for priority in Priority]
            await offer(journal, *waiting)
            order, turns = [], dict(TURNS)
            for _ in range(len(waiting)):
                (step,) = await do(journal, taking(turns=turns))
                order.append(step.outcome.handoff.request.priority)
                turns = step.turns
            a_round = sum(TURNS.values())
            assert order[: TURNS[Priority.CRITICAL]] == [Priority.CRITICAL] * TURNS[Priority.CRITICAL]
            assert Priority.LOW in order[:a_round]
            assert order[:a_round].count(Priority.HIGH) == TURNS[Priority.HIGH]

        run(journal, scenario)

    def test_a_receiver_gets_what_is_for_it_and_what_any_with_its_capabilities_may_do(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(
                journal,
                made("mine"),
                made("not my capability", capability="dance"),
                made("another's", lane="default\x1fother"),
                made("anybody's", lane="default\x1finvestigate"),
                made("another tenant's", lane="acme\x1fo11y", tenant_id="acme"),
            )
            want = Want(LANE, ("investigate",), ("default\x1finvestigate",))
            taken = await take(journal, 9, want=want)
            assert sorted(one.id for one in taken) == ["anybody's", "mine"]

        run(journal, scenario)

    def test_what_is_reserved_is_not_given_to_another(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("h"))
            (reserved,) = await take(journal, reserves=True)
            assert (reserved.state, reserved.holder) == (State.PENDING, ME)
            assert await take(journal) == []
            refused = await change(journal, "h", Accept("other#1", "o11y", NOW + 9_000))
            assert refused.refusal.code == "HANDOFF_TAKEN"
            assert (await change(journal, "h", Accept(ME, "o11y", NOW + 9_000))).handoff.state is State.ACCEPTED

        run(journal, scenario)

    def test_a_lapsed_lease_gives_the_handoff_to_the_next_and_the_zombie_is_refused_and_recorded(
        self, journal: HandoffJournal
    ) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("h"))
            (first,) = await take(journal, now_ms=NOW + 5)
            assert await take(journal, now_ms=NOW + 900) == []
            (second,) = await take(journal, now_ms=NOW + 1_005)
            assert (second.id, second.fence, second.attempts) == ("h", first.fence + 1, 2)
            late = await change(journal, "h", Complete(Holder(ME, first.fence), Reply.success("zombie")), NOW + 1_006)
            assert late.refusal.code == "HANDOFF_LEASE_LOST"
            await change(journal, "h", Complete(Holder(ME, second.fence), Reply.success("second")), NOW + 1_007)
            assert journal.handoffs.get("h").result == "second"
            assert [row.kind for row in journal.rows()] == ["admitted", "late", "settled"]

        run(journal, scenario)

    def test_whoever_sweeps_after_a_deadline_ends_the_call(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("soon", deadline_at=NOW + 10), made("later"))
            assert journal.handoffs.next_due() == NOW + 10
            await sweep(journal, NOW + 10)
            assert journal.handoffs.get("soon").state is State.TIMEOUT
            assert journal.call("soon").reply.error.code == "CALL_TIMEOUT"
            assert journal.handoffs.next_due() == 100_000
            await change(journal, "later", Cancel("done"))
            assert journal.handoffs.next_due() is None

        run(journal, scenario)

    def test_it_lists_newest_first_by_state_and_lane_and_counts_what_waits(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("a"), made("b"), made("c", lane="default\x1fother"))
            await change(journal, "a", Cancel("no"))
            assert [one.id for one in journal.handoffs.find()] == ["c", "b", "a"]
            assert [one.id for one in journal.handoffs.find(limit=1)] == ["c"]
            assert [one.id for one in journal.handoffs.find(states=(State.CANCELLED,))] == ["a"]
            assert [one.id for one in journal.handoffs.find(lane=LANE)] == ["b", "a"]
            assert (journal.handoffs.count_free(LANE), journal.handoffs.count_free("default\x1fother")) == (1, 1)

        run(journal, scenario)

    def test_erasing_a_session_erases_its_handoffs_and_leaves_the_audit_whole(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await offer(journal, made("mine"), made("theirs", session_id="s-2"))
            assert journal.erase("default", "s-1") == 1  # the call and the handoff are one
            assert journal.handoffs.get("mine") is None
            assert journal.handoffs.get("theirs") is not None
            assert journal.verify().ok

        run(journal, scenario)

    def test_a_listener_hears_what_becomes_free_in_its_lanes_and_what_changes_of_its_own(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            await do(journal, Step(change=Listen("node", (LANE,)), now_ms=NOW))
            await offer(journal, made("elsewhere", lane="default\x1fother", made_by="x"), made("here", made_by="x"))
            await until(lambda: journal.heard)
            assert journal.heard == [{f"+{LANE}"}]
            (taken,) = await take(journal)
            await change(journal, "here", Release(Holder(ME, taken.fence), "going"))
            await until(lambda: len(journal.heard) > 1)
            assert journal.heard[1:] == [{"-here", f"+{LANE}"}]
            await do(journal, Step(change=Listen("node", ()), now_ms=NOW))
            await offer(journal, made("unheard"))
            await asyncio.sleep(0)
            assert len(journal.heard) == 2

        run(journal, scenario)

    def test_who_runs_a_tree_again_hears_of_the_end_that_its_handoff_comes_to(self, journal: HandoffJournal) -> None:
        async def scenario(journal: Any) -> None:
            of_a_tree = replace(made("h", made_by="former"), settles=False)
            await do(journal, Step(change=Listen("node", ("-",)), now_ms=NOW))
            await offer(journal, of_a_tree)
            (taken,) = await take(journal)
            await offer(journal, replace(of_a_tree, made_by="node"))
            found = journal.handoffs.get("h")
            assert (found.made_by, found.state, found.holder, found.fence) == ("node", State.ACCEPTED, ME, taken.fence)
            assert journal.heard == []  # no other listener needs to know
            await change(journal, "h", Complete(Holder(ME, taken.fence), Reply.success(1)))
            await until(lambda: journal.heard)
            assert journal.heard == [{"!h"}]

        run(journal, scenario)
