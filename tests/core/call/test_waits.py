"""Deadlock: a call is refused exactly if it would wait for ever, whatever the graph of waiting calls looks like."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import combinations, pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comity.core.call.waits import loop_closed_by


@dataclass(eq=False)
class Seat:
    address: str
    places: int = 1
    running: list[Call] = field(default_factory=list)
    reads_left: int = 1_000_000

    @property
    def holders(self) -> list[Call]:
        self.reads_left -= 1
        assert self.reads_left, "the same seat is looked at over and over"
        return self.running

    @property
    def is_full(self) -> bool:
        return len(self.running) >= self.places


@dataclass(eq=False)
class Call:
    seat: Seat
    is_queued: bool = False
    waits_for: list[Call] = field(default_factory=list)


def run(seat: Seat, parent: Call | None = None) -> Call:
    """Start a call at a seat that has a place, on behalf of its parent."""
    assert not seat.is_full
    call = Call(seat)
    seat.running.append(call)
    if parent is not None:
        parent.waits_for.append(call)
    return call


def queue(seat: Seat, parent: Call) -> Call:
    """Let a call wait for a place."""
    call = Call(seat, is_queued=True)
    parent.waits_for.append(call)
    return call


def seats(count: int) -> list[Seat]:
    return [Seat(chr(ord("A") + index)) for index in range(count)]


# --- what the design names ----------------------------------------------------------------------------------------------


def test_two_roots_that_call_each_other_are_a_loop():
    a, b = seats(2)
    left, right = run(a), run(b)
    assert loop_closed_by(left, b) == ()
    queue(b, left)
    assert loop_closed_by(right, a) == ("B", "A", "B")


@pytest.mark.parametrize("count", [3, 4, 10])
def test_a_loop_of_any_number_of_roots_is_closed_by_its_last_call(count):
    ring = seats(count)
    roots = [run(seat) for seat in ring]
    for root, following in zip(roots[:-1], ring[1:], strict=True):
        assert loop_closed_by(root, following) == ()
        queue(following, root)
    addresses = [seat.address for seat in ring]
    assert loop_closed_by(roots[-1], ring[0]) == (addresses[-1], *addresses)


def test_a_loop_through_calls_that_run_below_is_found():
    a, b, c = seats(3)
    root = run(a)
    leaf = run(c, parent=run(b, parent=root))
    assert loop_closed_by(leaf, a) == ("C", "A", "B", "C")


def test_a_busy_agent_is_no_loop():
    a, b = seats(2)
    run(b)
    assert loop_closed_by(run(a), b) == ()


def test_an_agent_that_waits_for_one_that_works_is_no_loop():
    a, b, c = seats(3)
    caller, middle = run(a), run(b)
    run(c)
    queue(c, middle)
    assert loop_closed_by(caller, b) == ()


def test_a_place_that_is_free_is_no_loop():
    a, b = seats(2)
    b.places = 2
    caller, holder = run(a), run(b)
    queue(a, holder)
    assert loop_closed_by(caller, b) == ()


def test_one_holder_that_can_go_on_frees_its_seat_for_all():
    a, b = seats(2)
    b.places = 3
    caller = run(a)
    for _ in range(2):
        queue(a, run(b))
    worker = run(b)
    assert loop_closed_by(caller, b) == ()
    queue(a, worker)
    assert loop_closed_by(caller, b) == ("A", "B", "A")


def test_a_call_that_waits_for_several_is_stuck_if_one_of_them_is():
    a, b, c = seats(3)
    caller, holder = run(a), run(b)
    run(c, parent=holder)
    queue(a, holder)
    assert loop_closed_by(caller, b) == ("A", "B", "A")


def test_agents_of_several_places_are_stuck_only_when_all_their_calls_are():
    a, b = Seat("A", places=2), Seat("B", places=2)
    lefts, rights = [run(a), run(a)], [run(b), run(b)]
    queue(b, lefts[0])
    queue(b, lefts[1])
    assert loop_closed_by(rights[0], a) == ()  # the other call of B still runs, and ends
    queue(a, rights[0])
    assert loop_closed_by(rights[1], a) == ("B", "A", "B")


def test_a_call_of_an_agent_to_itself_is_a_loop_when_it_has_no_other_place():
    (a,) = seats(1)
    assert loop_closed_by(run(a), a) == ("A", "A")


def test_what_is_stuck_already_makes_whoever_asks_it_stuck():
    a, b, c = seats(3)
    left, right = run(a), run(b)
    queue(b, left)
    queue(a, right)
    assert loop_closed_by(run(c), a) == ("C", "A")


@pytest.mark.parametrize("is_late", [True, False])
def test_work_that_several_wait_for_in_different_ways_frees_them_all(is_late):
    a, b, c, d = seats(4)
    caller, target, middle = run(a), run(b), run(c)
    run(d)
    for seat in (c, d) if is_late else (d, c):
        queue(seat, target)
    queue(d, middle)
    assert loop_closed_by(caller, b) == ()


def test_a_user_waits_for_nobody():
    (a,) = seats(1)
    run(a)
    assert loop_closed_by(None, a) == ()


def test_a_call_that_waits_for_an_agent_being_activated_is_not_stuck():
    a, b, c = seats(3)
    caller, holder = run(a), run(b)
    queue(c, holder)  # nobody holds C yet
    assert loop_closed_by(caller, b) == ()


# --- size ---------------------------------------------------------------------------------------------------------------


def test_a_chain_of_thousands_of_waiting_roots_is_followed_to_its_end():
    line = [Seat(str(number)) for number in range(5_000)]
    roots = [run(seat) for seat in line]
    for root, following in zip(roots[:-1], line[1:], strict=True):
        queue(following, root)
    assert loop_closed_by(run(Seat("outside")), line[0]) == ()
    loop = loop_closed_by(roots[-1], line[0])
    assert (loop[0], loop[1], loop[-1], len(loop)) == ("4999", "0", "4999", 5_001)


@pytest.mark.parametrize("is_loop", [True, False])
def test_full_agents_on_many_levels_are_looked_at_once_not_once_for_every_way_to_them(is_loop):
    levels = [Seat(str(number), places=20, reads_left=10_000) for number in range(6)]
    caller = run(Seat("caller"))
    for level, following in zip(levels, [*levels[1:], caller.seat], strict=True):
        for _ in range(level.places):
            queue(following, run(level))
    if not is_loop:
        levels[-1].running[-1].waits_for.clear()
    assert bool(loop_closed_by(caller, levels[0])) == is_loop


# --- against the definition ---------------------------------------------------------------------------------------------


@dataclass
class World:
    seats: list[Seat]
    calls: list[Call]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Calls of several roots that run and wait at a few agents, at most one per place."""
    places = draw(st.lists(st.integers(1, 2), min_size=1, max_size=4))
    every = [Seat(chr(ord("A") + index), places=count) for index, count in enumerate(places)]
    running: list[Call] = []
    calls: list[Call] = []
    for _ in range(draw(st.integers(1, 7))):
        seat = draw(st.sampled_from(every))
        parent = draw(st.sampled_from([None, *running]))
        if seat.is_full or draw(st.sampled_from([False, False, False, True])):
            if parent is not None:
                calls.append(queue(seat, parent))
        else:
            running.append(run(seat, parent))
            calls.append(running[-1])
    return World(every, calls)


def stuck_calls(calls: list[Call]) -> set[Call]:
    """The definition, tried on every set of calls: the largest one in which each member waits for other members."""

    def waits_within(call: Call, some: set[Call]) -> bool:
        if call.is_queued:
            return call.seat.is_full and all(holder in some for holder in call.seat.running)
        return any(child in some for child in call.waits_for)

    for size in range(len(calls), 0, -1):
        for members in combinations(calls, size):
            some = set(members)
            if all(waits_within(call, some) for call in some):
                return some  # the union of two such sets is one as well, so the first of the largest is all of it
    return set()


def two_roots_crossed() -> World:
    a, b = seats(2)
    left, right = run(a), run(b)
    return World([a, b], [left, right, queue(b, left)])


@given(worlds(), st.data())
@example(two_roots_crossed(), None)
def test_a_call_is_refused_exactly_if_by_definition_it_would_wait_for_ever(world, data):
    callers = [call for call in world.calls if not call.is_queued]
    pairs = [(caller, target) for caller in callers for target in world.seats]
    if not pairs:
        return
    caller, target = data.draw(st.sampled_from(pairs)) if data else (world.calls[1], world.seats[0])
    loop = loop_closed_by(caller, target)
    stuck_before = stuck_calls(world.calls)
    new = queue(target, caller)
    stuck_after = stuck_calls([*world.calls, new]) if target.is_full else set()
    assert bool(loop) == (new in stuck_after)
    if loop:
        assert loop[:2] == (caller.seat.address, target.address)
        # It leads back to who asks, over agents that do wait for each other, unless the target was stuck before.
        waiting = {(one.seat.address, child.seat.address) for one in stuck_after for child in one.waits_for}
        assert set(pairwise(loop)) <= waiting
        assert loop[-1] == caller.seat.address or set(target.running) <= stuck_before


@given(worlds(), st.data())
def test_asking_changes_nothing(world, data):
    callers = [call for call in world.calls if not call.is_queued]
    if not callers:
        return

    def picture() -> list[object]:
        return [(list(one.running), one.places) for one in world.seats] + [list(call.waits_for) for call in world.calls]

    before = picture()
    caller, target = data.draw(st.sampled_from(callers)), data.draw(st.sampled_from(world.seats))
    assert loop_closed_by(caller, target) == loop_closed_by(caller, target)
    assert picture() == before
