"""For every invariant a broken twin of production code, and how many seeds it takes to catch it.

`make sim-defects` prints the table: defect, invariant, seeds needed.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

import msgspec
from workloads.scenarios import SCENARIOS

import comity.core.call.limits
import comity.runtime.call.path
import comity.runtime.call.placement
import comity.runtime.call.replies
import comity.runtime.call.settle
import comity.runtime.call.snapshot
import comity.runtime.session.live
import comity.runtime.session.sessions
from comity.core.agent.activation import State
from comity.core.agent.breaker import Breaker
from comity.core.call import admission
from comity.core.call import machine as call
from comity.core.call.ledger import Account
from comity.core.handoff import machine as handoff
from comity.core.handoff import queue as handoff_queue
from comity.core.journal import terms as fencing
from comity.runtime.agent.activations import Activation
from comity.runtime.call.call import Deadlines
from comity.runtime.call.environment import Environment
from comity.runtime.call.settle import Settlement
from comity.runtime.call.tools import Toolbox
from comity.runtime.handoff.desk import Handoffs
from comity.testing.sim import journal


class Defect(NamedTuple):
    """A mistake somebody could make, the invariant that must catch it, and within how many seeds of which scenario."""

    what: str
    invariant: str
    patches: Callable[[], list[Any]]
    seeds_max: int = 60
    scenario: str = "mesh"
    known: int = 0  # a seed that caught it when somebody last looked

    def seeds_needed(self) -> int | None:
        """Return how many seeds it took until its own invariant caught it; None if none did."""
        return next((number for number, seed in enumerate(range(self.seeds_max), 1) if self.is_caught_by(seed)), None)

    def is_caught_by(self, seed: int) -> bool:
        """Return whether a seed shows the defect, as a violation of its own invariant."""
        with contextlib.ExitStack() as broken:
            for patch in self.patches():
                broken.enter_context(patch)
            return SCENARIOS[self.scenario].run(seed).invariant == self.invariant


def without(*rules: str) -> list[Any]:
    """Leave rules of admission out."""
    return [
        mock.patch.object(admission, name, tuple(rule for rule in getattr(admission, name) if rule.__name__ not in rules))
        for name in ("RULES", "RULES_WITHOUT_FAULTS", "RULES_FOR_USERS")
    ]


class ForgetfulJournal:
    """Does not remember which tools were begun."""

    def __init__(self, journal):
        self._journal = journal

    def __getattr__(self, name):
        return getattr(self._journal, name)

    def call(self, request_id):
        return None


def forgetful_toolbox() -> list[Any]:
    make = Toolbox.__init__

    def broken(self, tools, env):
        make(self, tools, msgspec.structs.replace(env, journal=ForgetfulJournal(env.journal)))

    return [mock.patch.object(Toolbox, "__init__", broken)]


def close_children_apart() -> list[Any]:
    """End a call and what is below it in two appends."""
    settle = Settlement.settle

    def broken(self, one, event, reply):
        children, one.children = one.children, None
        has_ended = settle(self, one, event, reply)
        one.children = children
        for child in tuple(children or ()):
            asyncio.get_running_loop().call_later(0.01, self.cancel, child, "its caller has ended")
        return has_ended

    return [mock.patch.object(Settlement, "settle", broken)]


def without_terms(**left_out: Any) -> list[Any]:
    """Let the store not look at some of the terms of an append."""
    breach = fencing.breach
    return [
        mock.patch.object(journal, "breach", lambda terms, *reads: breach(msgspec.structs.replace(terms, **left_out), *reads))
    ]


async def at_once(self, records=(), terms=None) -> None:
    """Do not wait for the disk."""
    self.journal.append(records, None, terms)


def forget_the_queue(one, reason, now_ms):
    """Take a handoff from a receiver that died, and put it nowhere."""
    return handoff.Outcome(msgspec.structs.replace(one, holder="", lease_until=0))


def take_from_anybody() -> list[Any]:
    """Accept what was free when the receiver looked, whoever has it since."""
    accept = handoff._accept

    def broken(one, change, now_ms):
        return accept(msgspec.structs.replace(one, state=handoff.State.PENDING, holder=""), change, now_ms)

    return [mock.patch.object(handoff, "_accept", broken)]


def acknowledge_at_once() -> list[Any]:
    """Say that a handoff is durable before the disk does."""
    perform = Handoffs.perform

    async def broken(self, step):
        if not isinstance(step.change, handoff.Offer):
            return await perform(self, step)
        self.journal.append((step,))
        step.outcomes = [handoff.Outcome(step.change.handoff)]
        self._path.observer.performed(step)
        return step

    return [mock.patch.object(Handoffs, "perform", broken)]


def end_handoffs_twice() -> list[Any]:
    """Let whoever comes last decide how a handoff ended."""
    moves = {state: dict(events) for state, events in handoff.TRANSITIONS.items()}
    return [
        mock.patch.object(handoff, "ENDED", frozenset()),
        mock.patch.object(handoff, "TRANSITIONS", {state: moves[state] or moves[handoff.State.IN_PROGRESS] for state in moves}),
    ]


def nothing(*_, **__) -> None:
    return None


DEFECTS = (
    Defect(
        "nobody asks who waits for whom",
        "NoDeadlock",
        lambda: [mock.patch.object(comity.runtime.call.snapshot, "loop_closed_by", return_value=())],
    ),
    Defect("the cycle rule is left out", "NoCycle", lambda: without("cycle")),
    Defect("the depth rule is left out", "DepthBounded", lambda: without("depth")),
    Defect("the fan-out rule is left out", "FanOutBounded", lambda: without("fan_out"), known=6),
    Defect("the pending rule is left out", "BoundedPendingCalls", lambda: without("pending")),
    Defect(
        "an agent starts calls without counting them",
        "SingleActivation",
        lambda: [mock.patch.object(Activation, "can_start", lambda seat: seat.state is State.ACTIVE)],
    ),
    Defect(
        "the store takes what a former holder writes",
        "SingleActivation",
        lambda: without_terms(fences=()),
        seeds_max=600,
        scenario="nodes",
        known=218,
    ),
    Defect(
        "what a callee asks for replaces what its caller had",
        "LimitsOnlyShrink",
        lambda: [mock.patch.object(comity.core.call.limits.Limits, "narrow", lambda limits, other: other or limits)],
    ),
    Defect(
        "a callee gets an account of its own",
        "BudgetConserved",
        lambda: [mock.patch.object(Account, "narrowed", lambda account, limits: Account(limits))],
    ),
    Defect(
        "a second life begins with a fresh budget",
        "BudgetConserved",
        lambda: [
            mock.patch.object(module, "count_begun", return_value=0)
            for module in (comity.runtime.call.path, comity.runtime.call.placement)
        ],
        seeds_max=400,
        known=4,
    ),
    Defect(
        "the store forgets what the earlier lives of a tree began",
        "BudgetConserved",
        lambda: without_terms(within=()),
        seeds_max=1_000,
        scenario="nodes",
        known=70,
    ),
    Defect(
        "a settled call can be settled again",
        "SettledOnce",
        lambda: [mock.patch.dict(call.TRANSITIONS[call.State.SETTLED], dict.fromkeys(call.Event, call.State.SETTLED))],
        known=2,
    ),
    Defect(
        "a repeated request is begun again",
        "SettledOnce",
        lambda: [mock.patch.object(comity.runtime.call.replies, "known", return_value=None)],
        known=1,
    ),
    Defect(
        "nobody looks at the clock when a result comes",
        "NoLateSuccess",
        lambda: [
            mock.patch.object(comity.runtime.call.settle, "_is_overdue", return_value=False),
            mock.patch.object(Deadlines, "add", nothing),
        ],
        known=2,
    ),
    Defect(
        "a process that stood still delivers what it finds",
        "NoLateSuccess",
        lambda: [mock.patch.object(comity.runtime.call.settle, "_is_overdue", return_value=False)],
        scenario="standstill",
    ),
    Defect("nobody remembers which tools were begun", "EffectAtMostOnce", forgetful_toolbox, seeds_max=200, known=3),
    Defect(
        "a tool does not wait for the disk",
        "AuditPrecedesEffect",
        lambda: [mock.patch.object(Environment, "durable", at_once)],
        known=1,
    ),
    Defect(
        "what an earlier life left open is forgotten",
        "AuditComplete",
        lambda: [mock.patch.object(comity.runtime.call.settle, "end_leftovers", return_value=())],
        known=18,
    ),
    Defect("a call and those below it end in two records", "AuditComplete", close_children_apart, known=2),
    Defect(
        "sessions are found by tenant alone, and nobody checks whose they are",
        "IsolationHolds",
        lambda: [
            *without("isolation"),
            *(
                mock.patch.object(one, "key_of", lambda tenant_id, _: tenant_id)
                for one in (comity.runtime.session.live, comity.runtime.session.sessions)
            ),
        ],
        known=1,
    ),
    Defect(
        "no timer watches deadlines",
        "EveryCallEnds",
        lambda: [
            mock.patch.object(comity.runtime.call.settle, "_is_overdue", return_value=False),
            mock.patch.object(Deadlines, "add", nothing),
        ],
        scenario="hanging",
    ),
    Defect(
        "a probe that says nothing keeps its place",
        "BreakerEventuallyProbes",
        lambda: [mock.patch.object(Breaker, "released", nothing)],
        seeds_max=600,
        known=42,
    ),
    Defect(
        "a handoff whose receiver died is put nowhere",
        "NoLostHandoff",
        lambda: [mock.patch.object(handoff, "_release", forget_the_queue)],
        scenario="handoffs",
    ),
    Defect("accepting a handoff is no compare-and-set", "NoLostHandoff", take_from_anybody, scenario="handoffs", known=2),
    Defect(
        "a former receiver's result counts",
        "NoLostHandoff",
        lambda: [mock.patch.object(handoff, "_is_lost", return_value=False)],
        scenario="handoffs",
        known=2,
    ),
    Defect("a handoff is acknowledged before it is durable", "NoLostHandoff", acknowledge_at_once, scenario="handoffs"),
    Defect("a handoff that ended can end again", "NoLostHandoff", end_handoffs_twice, scenario="handoffs"),
    Defect(
        "nobody looks for leases and deadlines that have passed",
        "EveryHandoffEnds",
        lambda: [mock.patch.object(handoff_queue, "_overdue", return_value=())],
        scenario="handoffs",
        known=14,
    ),
)


def main() -> int:
    """Print the table and return whether something was missed."""
    missed = 0
    print(f"{'defect':<72} {'invariant':<26} seeds needed")
    for defect in DEFECTS:
        needed = defect.seeds_needed()
        missed += needed is None
        told = f"none in {defect.seeds_max}" if needed is None else f"{needed} (of at most {defect.seeds_max})"
        print(f"{defect.what:<72} {defect.invariant:<26} {told}", flush=True)
    return int(bool(missed))


if __name__ == "__main__":
    raise SystemExit(main())
