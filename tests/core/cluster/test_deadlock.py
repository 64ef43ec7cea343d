"""Loops over several nodes, put together from what each of them knows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from comity.core.cluster.deadlock import Awaited, Fact, loop_among, unasked

# A runs a1, which is about to wait at B. B runs b1, which waits for b1.1 at A, behind a1.
B_WAITS_AT_A = {
    "b1": Fact("b1", "B", False, True, (), (Awaited("b1.1", "n1"),)),
    "b1.1": Fact("b1.1", "A", True, True, ("a1",)),
}


def test_two_roots_on_two_nodes_close_a_loop() -> None:
    assert loop_among(B_WAITS_AT_A, "a1", "A", "B", ["b1"]) == ("A", "B", "A")


def test_what_nobody_could_tell_about_is_taken_to_end() -> None:
    del_known = {"b1": B_WAITS_AT_A["b1"]}
    assert loop_among(del_known, "a1", "A", "B", ["b1"]) == ()


def test_a_place_that_one_of_its_holders_can_free_closes_no_loop() -> None:
    facts = {**B_WAITS_AT_A, "b2": Fact("b2", "B", False, True)}
    assert loop_among(facts, "a1", "A", "B", ["b1", "b2"]) == ()
    freed = {**B_WAITS_AT_A, "b1.1": Fact("b1.1", "A", True, False, ())}
    assert loop_among(freed, "a1", "A", "B", ["b1"]) == ()


def test_each_call_on_another_node_is_asked_about_once() -> None:
    facts = {
        "x": Fact("x", "X", False, True, (), (Awaited("x.1", "n2"), Awaited("x.2", "n2"), Awaited("x.3"), Awaited("y", "n3"))),
        "z": Fact("z", "Z", False, True, (), (Awaited("x.1", "n2"),)),
        "y": Fact("y", "Y", False, True),
    }
    assert unasked(facts, []) == {"n2": ["x.1", "x.2"]}
    assert unasked(facts, [Awaited("x.1", "n2")]) == {"n2": ["x.2"]}
    assert unasked(facts, [Awaited("x.1", "n3")]) == {"n2": ["x.1", "x.2"]}


@given(st.integers(1, 8), st.integers(0, 8))
def test_a_ring_of_serial_agents_is_a_loop_exactly_if_no_link_is_missing(length: int, missing: int) -> None:
    facts = {}
    for number in range(1, length + 1):
        behind = f"r{number + 1}" if number < length else "r0"
        facts[f"r{number}"] = Fact(f"r{number}", f"A{number}", False, True, (), (Awaited(f"r{number}.1", "elsewhere"),))
        facts[f"r{number}.1"] = Fact(f"r{number}.1", f"A{(number + 1) % (length + 1)}", True, True, (behind,))
    facts.pop(f"r{missing}.1", None)
    found = loop_among(facts, "r0", "A0", "A1", ["r1"])
    if 1 <= missing <= length:
        assert found == ()
    else:
        assert found == ("A0", *(f"A{number}" for number in range(1, length + 1)), "A0")
