"""Loops of waiting calls over several nodes: what each node knows of its waiting calls, put together and judged as one graph.

A chain travels with its request, so a loop within one root is seen at once. No node alone sees a loop of roots on two nodes:
the node at which a call would have to wait asks the others, along the calls that hold the places, before it lets the call wait.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from comity.core.call.waits import Seat, Waiter, loop_closed_by


class Awaited(Struct, frozen=True, array_like=True, gc=False):
    """A call that another call waits for, and the node to ask about it; empty for the node that says so."""

    call_id: str
    node_id: str = ""


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """What one node knows of a call: that it runs and for whom it waits, or that it waits itself behind the holders."""

    call_id: str
    address: str
    is_queued: bool
    is_full: bool
    holders: tuple[str, ...] = ()
    waits_for: tuple[Awaited, ...] = ()


def unasked(facts: Mapping[str, Fact], asked: Collection[Awaited]) -> dict[str, list[str]]:
    """Return the calls that some fact depends on, that nothing is known of, and that no node was asked about, by node."""
    ahead: dict[str, list[str]] = {}
    for fact in facts.values():
        for one in fact.waits_for:
            if one.node_id and one.call_id not in facts and one not in asked:
                calls = ahead.setdefault(one.node_id, [])
                if one.call_id not in calls:
                    calls.append(one.call_id)
    return ahead


def loop_among(
    facts: Mapping[str, Fact], caller_id: str, caller_address: str, address: str, holders: Sequence[str]
) -> tuple[str, ...]:
    """Return the addresses of the loop that a call would close by waiting at an address behind its holders, or nothing.

    A call that no node could tell about counts as a call that will end: to refuse on a guess would be worse than to wait.
    """
    graph = _Graph(facts)
    caller = graph.waiter(caller_id)
    caller.seat = _Place(caller_address, (), graph, is_full=True)
    return loop_closed_by(caller, _Place(address, holders, graph, is_full=True))


class _Graph:
    def __init__(self, facts: Mapping[str, Fact]) -> None:
        self._facts = facts
        self._waiters: dict[str, _Call] = {}

    def waiter(self, call_id: str) -> _Call:
        known = self._waiters.get(call_id)
        if known is None:
            known = self._waiters[call_id] = _Call(self._facts.get(call_id) or Fact(call_id, "", False, False), self)
        return known


class _Place:
    def __init__(self, address: str, holders: Sequence[str], graph: _Graph, *, is_full: bool) -> None:
        self.address = address
        self.is_full = is_full
        self._holders = holders
        self._graph = graph

    @property
    def holders(self) -> Collection[Waiter]:
        return [self._graph.waiter(one) for one in self._holders]


class _Call:
    def __init__(self, fact: Fact, graph: _Graph) -> None:
        self.seat: Seat = _Place(fact.address, fact.holders, graph, is_full=fact.is_full)
        self.is_queued = fact.is_queued
        self._waits_for = fact.waits_for
        self._graph = graph

    @property
    def waits_for(self) -> Collection[Waiter]:
        return [self._graph.waiter(one.call_id) for one in self._waits_for]
