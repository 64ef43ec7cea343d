"""Deadlock detection across nodes: asks them which call waits for which, before a call is queued at a busy agent.

During the probe the call counts as waiting already, so of two calls that would close a loop at the same moment at least one
sees the other. A node that does not answer is asked again, since it may know of a loop: until it answers, or the agent is
free, the call is not queued, and its deadline ends it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Final

from comity.core.cluster.deadlock import Awaited, Fact, loop_among, unasked
from comity.core.cluster.messages import Look, Message, Seen
from comity.core.envelope.envelope import Request
from comity.runtime.agent.activations import Activation
from comity.runtime.call.call import Call
from comity.runtime.cluster.peers import Peers

# How long other nodes have to answer before they are asked again, and over how many nodes a loop is followed.
ANSWER_S: Final = 0.25
ROUNDS_MAX: Final = 32


class Probes:
    """The deadlock probes of this node, and its answers to those of other nodes."""

    def __init__(self, peers: Peers, calls: dict[str, Call]) -> None:
        self._peers = peers
        self._calls = calls
        self._about_to_wait: dict[str, tuple[str | None, Activation[Call]]] = {}  # by request id: its caller, and its seat
        self._number = 0
        self._answers: dict[int, tuple[set[str], dict[str, Fact], asyncio.Future[None]]] = {}

    async def loop(
        self, request: Request, parent_id: str, seat: Activation[Call], is_wanted: Callable[[], bool]
    ) -> tuple[str, ...]:
        """Return the loop that a child call would close by queueing at a busy activation; empty if none."""
        self._about_to_wait[request.request_id] = parent_id, seat
        while seat.is_full and is_wanted() and self._peers.now_ms() < request.deadline_at:
            facts, is_all_known = await self._look(seat)
            loop = loop_among(facts, parent_id, request.source or "", seat.address, _ids(seat.holders))
            if seat.is_full and (loop or is_all_known):
                return loop
        return ()

    async def _look(self, seat: Activation[Call]) -> tuple[dict[str, Fact], bool]:
        """Return facts of all nodes about the calls that occupy the activation, and whether every node answered."""
        facts = {fact.call_id: fact for fact in self._facts(_ids(seat.holders))}
        asked: list[Awaited] = []
        is_all_known = True
        for _ in range(ROUNDS_MAX):
            ahead = unasked(facts, asked)
            if not ahead:
                break
            asked += (Awaited(call_id, node_id) for node_id, call_ids in ahead.items() for call_id in call_ids)
            found, is_answered = await self._ask(ahead)
            facts.update(found)
            is_all_known = is_all_known and is_answered
        return facts, is_all_known

    def done(self, request: Request) -> None:
        """Forget a probed request: by now it is queued, runs or was refused."""
        self._about_to_wait.pop(request.request_id, None)

    def received(self, sender: str, message: Message) -> None:
        """Handle a probe or an answer."""
        match message:
            case Look(probe_id=probe_id, call_ids=call_ids):
                self._peers.send(sender, Seen(probe_id, tuple(self._facts(call_ids))))
            case Seen(probe_id=probe_id, facts=facts) if (waiting := self._answers.get(probe_id)) is not None:
                nodes, found, done = waiting
                nodes.discard(sender)
                found.update((fact.call_id, fact) for fact in facts)
                if not nodes and not done.done():
                    done.set_result(None)

    async def _ask(self, ahead: dict[str, list[str]]) -> tuple[dict[str, Fact], bool]:
        self._number += 1
        number = self._number
        found: dict[str, Fact] = {}
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        silent = set(ahead)
        self._answers[number] = silent, found, done
        for node_id, call_ids in ahead.items():
            self._peers.send(node_id, Look(number, tuple(call_ids)))
        try:
            async with asyncio.timeout(ANSWER_S):
                await done
        except TimeoutError:
            pass
        finally:
            del self._answers[number]
        return found, not silent

    def _facts(self, call_ids: Iterable[str]) -> list[Fact]:
        """Return this node's facts about calls, and about all calls that they wait for."""
        facts: dict[str, Fact] = {}
        ahead = list(call_ids)
        while ahead:
            call_id = ahead.pop()
            if call_id in facts:
                continue
            call = self._calls.get(call_id)
            if call is None or self._is_sent(call):
                about = self._about_to_wait.get(call_id)
                if about is not None:
                    ahead += self._wait(facts, call_id, about[1])
            elif call.is_queued:
                ahead += self._wait(facts, call_id, call.seat)
            else:
                waits_for = [self._awaited(child) for child in call.waits_for]
                waits_for += (Awaited(one) for one, (caller, _) in self._about_to_wait.items() if caller == call_id)
                facts[call_id] = Fact(call_id, call.seat.address, False, call.seat.is_full, (), tuple(waits_for))
                ahead += (one.call_id for one in waits_for if not one.node_id)
        return list(facts.values())

    @staticmethod
    def _wait(facts: dict[str, Fact], call_id: str, seat: Activation[Call]) -> tuple[str, ...]:
        holders = _ids(seat.holders)
        facts[call_id] = Fact(call_id, seat.address, True, seat.is_full, holders)
        return holders

    @staticmethod
    def _is_sent(call: Call) -> bool:
        return bool(call.way.node_id)

    @staticmethod
    def _awaited(call: Call) -> Awaited:
        return Awaited(call.request.request_id, call.way.node_id)


def _ids(calls: Iterable[Call]) -> tuple[str, ...]:
    return tuple(call.request.request_id for call in calls)
