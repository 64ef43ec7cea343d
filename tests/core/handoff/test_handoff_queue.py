"""The queue of handoffs: who may do what, who is next, and what a sweep ends."""

from __future__ import annotations

import pytest
from handoff_world import CHANGES, DEADLINE, ME, MINE, NOW, accept, done, held, made, offered
from msgspec.structs import replace

from comity.core.agent.mailbox import TURNS
from comity.core.envelope.envelope import Priority
from comity.core.handoff.holder import desk_name, holder_name, is_process, node_of, result_session
from comity.core.handoff.machine import Cancel, Handoff, Offer, Renew, State
from comity.core.handoff.queue import Listen, Step, Sweep, Take, Want, perform, perform_all
from comity.core.journal.records import Noted

OWN, SKILL = "default\x1fo11y", "default\x1finvestigate"


class Kept:
    """A shelf in a dict."""

    def __init__(self, *handoffs: Handoff) -> None:
        self.kept = {one.id: one for one in handoffs}
        self.puts = 0
        self.heard: dict[str, tuple[str, ...]] = {}

    def get(self, handoff_id: str) -> Handoff | None:
        return self.kept.get(handoff_id)

    def put(self, before: Handoff | None, after: Handoff) -> None:
        assert self.kept.get(after.id) is before
        self.kept[after.id] = after
        self.puts += 1

    def due(self, now_ms: int) -> list[Handoff]:
        return [one for one in self.kept.values() if one.due_at is not None and one.due_at <= now_ms]

    def free(self, want: Want, limit: int) -> list[Handoff]:
        return [one for one in self.kept.values() if one.is_free and want.matches(one)]

    def listen(self, node_id: str, lanes: tuple[str, ...]) -> None:
        self.heard[node_id] = lanes


def take(most: int, turns: dict[Priority, int] | None = None, now_ms: int = NOW) -> Step:
    return Step(change=Take(Want(OWN, (), ()), accept(), most, turns or {}), now_ms=now_ms)


@pytest.mark.parametrize(
    ("lane", "capabilities", "lanes", "matches"),
    [
        (OWN, (), (), True),  # whatever comes
        (OWN, ("investigate", "fix"), (), True),
        (OWN, ("fix",), (), False),
        (SKILL, (), (), False),
        (SKILL, ("investigate",), (SKILL,), True),
        (SKILL, ("fix",), (SKILL,), True),  # the lane says which capability it is
        ("other\x1fo11y", (), (SKILL,), False),
    ],
)
def test_a_receiver_takes_what_is_in_its_lanes_and_one_of_its_capabilities(lane, capabilities, lanes, matches):
    assert Want(OWN, capabilities, lanes).matches(made(lane=lane)) is matches


def test_a_change_is_put_on_the_shelf_once_and_a_refused_one_never():
    shelf = Kept()
    offer = Step(change=Offer(made()), now_ms=NOW, handoff_id="h-1")
    assert len(perform(shelf, offer)) == 1
    assert offer.touched == ((None, shelf.kept["h-1"]),)
    again = Step(change=Offer(made()), now_ms=NOW, handoff_id="h-1")
    missing = Step(change=Cancel("no"), now_ms=NOW, handoff_id="other")
    assert (perform(shelf, again), perform(shelf, missing)) == ((), ())
    assert (shelf.puts, again.touched, missing.touched) == (1, (), ())
    assert missing.outcome.refusal.code == "HANDOFF_UNKNOWN"


def test_the_next_are_taken_by_priority_until_their_turns_are_used_up():
    def waiting() -> Kept:
        each = [(priority, number) for priority in reversed(Priority) for number in range(9)]
        return Kept(*(replace(offered(), request=made(f"{one}-{n}", priority=one).request) for one, n in each))

    def taken(step: Step) -> list[str]:
        perform(waiting(), step)
        return [one.handoff.request.priority for one in step.outcomes]

    round_ = [str(priority) for priority, turns in TURNS.items() for _ in range(turns)]
    step = take(sum(TURNS.values()) + 1)
    assert taken(step) == [*round_, str(Priority.CRITICAL)]
    assert step.turns == TURNS | {Priority.CRITICAL: TURNS[Priority.CRITICAL] - 1}
    assert taken(take(2, dict.fromkeys(TURNS, 0) | {Priority.LOW: 1})) == [str(Priority.LOW), str(Priority.CRITICAL)]
    assert taken(take(0)) == []


def test_what_is_taken_is_held_and_what_is_over_is_left_to_a_sweep():
    shelf = Kept(offered())
    over = take(1, now_ms=DEADLINE)
    perform(shelf, over)
    assert over.outcomes == []
    last = take(1, now_ms=DEADLINE - 1)
    perform(shelf, last)
    assert (shelf.kept["h-1"].state, shelf.kept["h-1"].holder) == (State.ACCEPTED, ME)
    assert [after for _, after in last.touched] == [shelf.kept["h-1"]]


def test_a_sweep_ends_what_is_over_and_frees_what_its_holder_left():
    shelf = Kept(done(offered(), accept()))
    (lease_until,) = {one.lease_until for one in shelf.kept.values()}
    perform(shelf, Step(change=Sweep(), now_ms=lease_until - 1))
    assert shelf.puts == 0
    perform(shelf, Step(change=Sweep(), now_ms=lease_until))
    freed = shelf.kept["h-1"]
    assert (freed.state, freed.history[-1].data["reason"]) == (State.PENDING, f"o11y ({ME}) was not heard of any more")
    records = perform(shelf, Step(change=Sweep(), now_ms=DEADLINE))
    assert (shelf.kept["h-1"].state, len(records)) == (State.TIMEOUT, 1)


def test_a_node_hears_of_the_lanes_it_listens_to():
    shelf = Kept()
    assert perform(shelf, Step(change=Listen("n1", ("*",)), now_ms=NOW)) == ()
    assert shelf.heard == {"n1": ("*",)}


def test_what_steps_write_stands_in_their_place():
    noted = Noted(made().request, "before", NOW)
    shelf = Kept()
    written, touched = perform_all(shelf, [noted, Step(change=Offer(made()), now_ms=NOW, handoff_id="h-1"), noted])
    assert [type(one).__name__ for one in written] == ["Noted", "Accepted", "Noted"]
    assert touched == [(None, shelf.kept["h-1"])]


def test_only_who_holds_what_may_be_lost_with_the_power():
    unsynced = [take(1).change, Renew(MINE, 1), Listen("n", ())]
    assert not any(Step(change=change, now_ms=NOW).needs_sync for change in unsynced)
    assert all(Step(change=change, now_ms=NOW).needs_sync for change in (*CHANGES.values(), Offer(held(offered())), Sweep()))


def test_a_holder_is_named_by_its_node_and_a_desk_by_its_agent():
    assert (node_of(holder_name("node-a", 3)), is_process(node_of(holder_name("node-a", 3)))) == ("node-a", True)
    assert is_process(node_of(desk_name("o11y"))) is False
    assert desk_name("o11y") != desk_name("other")
    assert result_session("h-1").isprintable() is False
