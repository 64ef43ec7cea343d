"""Deadlocks across nodes: the facts of several nodes about waiting calls, judged as one wait-for graph.

A request carries its chain, so a loop within one root is seen at once. No single node sees a loop of roots on two nodes: before
a node queues a call at a busy agent, it asks the other nodes about the calls that occupy the agent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from comity.core.call.waits import Seat, Waiter, loop_closed_by


class Awaited(Struct, frozen=True, array_like=True, gc=False):
    """A call that another call waits for, and the node to ask about it; empty for the reporting node itself."""

    call_id: str
    node_id: str = ""


class Fact(Struct, frozen=True, array_like=True, gc=False):
    """What one node knows of a call: it runs and waits for other calls, or it is queued behind the running ones."""

    call_id: str
    address: str
    is_queued: bool
    is_full: bool
    holders: tuple[str, ...] = ()
    waits_for: tuple[Awaited, ...] = ()


def unasked(facts: Mapping[str, Fact], asked: Collection[Awaited]) -> dict[str, list[str]]:
    """Return, by node, the calls that a fact names, of which there is no fact yet and about which no node was asked."""
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
    """Return the addresses of the loop that a call would close by queueing at an address; empty if none.

    A call without a fact counts as one that will end: refusing on a guess would be worse than waiting.
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
