"""Time and ids of the real world: that they are what they claim to be."""

import time
from uuid import RFC_4122, UUID

from hypothesis import given
from hypothesis import strategies as st

from comity.engines.clock import SystemClock, SystemIds

NOW_MS = 1_700_000_000_123
MANY = 1_000  # several pools of random tails


def test_a_request_id_is_a_uuid_of_version_7_that_begins_with_the_time():
    ids = SystemIds()
    for _ in range(MANY):
        request_id, trace_id = ids.new_request(NOW_MS)
        found = UUID(request_id)
        assert request_id == trace_id == found.hex
        assert (found.version, found.variant) == (7, RFC_4122)
        assert found.int >> 80 == NOW_MS


def test_the_rest_of_a_request_id_is_random_in_every_digit_but_version_and_variant():
    ids = SystemIds()
    made = [ids.new_request(NOW_MS)[0] for _ in range(MANY)]
    assert len(set(made)) == MANY
    digits = [set(place) for place in zip(*made, strict=True)]
    assert [len(found) for found in digits] == [1] * 13 + [16] * 3 + [1] + [16] * 15


def test_ids_made_later_sort_after_those_made_earlier():
    ids = SystemIds()
    assert ids.new_request(NOW_MS)[0] < ids.new_request(NOW_MS + 1)[0]


HOUR_NS = 3600 * 10**9


class Machine:
    """A machine whose time can be set, and which can sleep."""

    def __init__(self):
        self.wall_ns, self.steady_ns = 10 * HOUR_NS, 5 * HOUR_NS

    def run(self, ns):
        self.wall_ns += ns
        self.steady_ns += ns

    def clock(self):
        return SystemClock(lambda: self.wall_ns, lambda: self.steady_ns)


def test_the_clock_shows_the_systems_time():
    before_ns = time.time_ns()
    assert before_ns <= SystemClock().now_ns() <= time.time_ns()


def test_a_process_that_slept_or_was_stepped_forward_agrees_with_one_that_started_later():
    machine = Machine()
    old = machine.clock()
    old.now_ns()
    machine.wall_ns += HOUR_NS  # the steady clock stands still while the machine sleeps
    assert old.now_ns() == machine.clock().now_ns() == machine.wall_ns


def test_time_set_back_is_caught_up_with_at_half_speed():
    machine = Machine()
    clock = machine.clock()
    first_ns = clock.now_ns()
    machine.wall_ns -= HOUR_NS
    assert clock.now_ns() == first_ns
    machine.run(HOUR_NS)
    assert clock.now_ns() == first_ns + HOUR_NS // 2
    machine.run(HOUR_NS)
    assert clock.now_ns() == machine.wall_ns == first_ns + HOUR_NS
    machine.run(HOUR_NS)
    assert clock.now_ns() == machine.wall_ns


@given(st.lists(st.tuples(st.integers(0, HOUR_NS), st.integers(-HOUR_NS, HOUR_NS))))
def test_time_never_goes_backwards_and_stops_being_ahead(steps):
    machine = Machine()
    clock = machine.clock()
    last_ns = clock.now_ns()
    for passed_ns, step_ns in steps:
        machine.run(passed_ns)
        machine.wall_ns += step_ns
        now_ns = clock.now_ns()
        assert now_ns >= max(last_ns, machine.wall_ns)
        last_ns = now_ns
    machine.run(3 * max(last_ns - machine.wall_ns, 0))
    assert clock.now_ns() == machine.wall_ns
