"""What can go wrong in a simulation, how often, where and when; and what did.

Every simulated part that could fail asks `strikes` each time. The answer comes from the seed, or from a schedule of firings
that an earlier run left: so a schedule can be replayed, and made smaller one firing at a time without moving the others.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from msgspec import Struct
from msgspec.structs import force_setattr

from comity.core.agent.registry import nearest
from comity.core.units import MS_PER_S
from comity.testing.sim.chance import stream


class Kind(StrEnum):
    """Every fault there is."""

    # of agents
    AGENT_CALL_TIMEOUT = "AgentCallTimeout"  # the called agent does not answer, or answers too late
    AGENT_CALL_REJECTED = "AgentCallRejected"  # the called agent will not do it
    AGENT_NOT_FOUND = "AgentNotFound"  # the registry does not know it
    AGENT_BUSY = "AgentBusy"  # it takes no more calls
    AGENT_CALL_NETWORK_DELAY = "AgentCallNetworkDelay"  # the call takes its time to arrive
    AGENT_CRASH = "AgentCrash"  # its code raises
    # of messages between nodes
    MESSAGE_LOST = "MessageLost"
    MESSAGE_DUPLICATED = "MessageDuplicated"
    MESSAGE_REORDERED = "MessageReordered"
    MESSAGE_DELAYED = "MessageDelayed"
    MESSAGE_CORRUPTED = "MessageCorrupted"
    PARTITION = "Partition"  # two halves do not hear each other
    PARTITION_ONE_WAY = "PartitionOneWay"  # one does not hear the other
    PARTITION_GROUP = "PartitionGroup"  # one node is cut off from all others
    # of processes
    NODE_CRASH = "NodeCrash"  # between any two steps
    NODE_CRASH_IN_WRITE = "NodeCrashInWrite"  # in the middle of one
    NODE_PAUSE = "NodePause"  # stands still and comes back as if nothing had been
    CLOCK_SKEW = "ClockSkew"  # a process begins with a clock that is ahead or behind
    CLOCK_JUMP = "ClockJump"  # its clock leaps forward
    # of the store
    STORE_WRITE_FAILED = "StoreWriteFailed"
    STORE_READ_FAILED = "StoreReadFailed"
    STORE_SLOW = "StoreSlow"
    STORE_FULL = "StoreFull"
    STORE_PARTIAL_WRITE = "StorePartialWrite"  # a crash keeps only the first part of what was being written
    STORE_UNFLUSHED_LOST = "StoreUnflushedLost"  # a crash loses what was not handed over yet
    STORE_TORN_TAIL = "StoreTornTail"  # a crash leaves half an append at the end
    # of models
    MODEL_TIMEOUT = "ModelTimeout"
    MODEL_RATE_LIMITED = "ModelRateLimited"
    MODEL_GARBAGE = "ModelGarbage"
    # of bells, with which processes wake each other about handoffs
    RING_LOST = "RingLost"  # it is not heard, or only that something happened


class Pace(StrEnum):
    """What brings the occasions of a fault that hits a whole process or network."""

    TIME = "time"  # virtual time that passes
    STEP = "step"  # what agents do: a call begins, starts or ends, a tool is used, something is written


BETWEEN_NODES: Final = frozenset(kind for kind in Kind if kind.startswith(("Message", "Partition")))
EVERYWHERE: Final = "*"
_PLACES_SHOWN: Final = 5


def kind_of(name: str) -> Kind:
    """Return the kind of this name."""
    try:
        return Kind(name)
    except ValueError:
        close = nearest(str(name), Kind)
        hint = f"; did you mean {' or '.join(close)}?" if close else ""
        raise ValueError(f"no fault {str(name)!r}{hint}") from None


class Fault(Struct, frozen=True, kw_only=True):
    """A kind of fault and when it strikes: with which probability, where, how often at most, and in which span of time.

    `by` narrows a fault of processes or networks to occasions of one pace. A fault that `must_strike` and never does under any
    seed fails its test.
    """

    kind: Kind
    probability: float = 0.02  # of each occasion
    where: str = EVERYWHERE  # a pattern: of an agent's address, a node's or model's name, or `from>to` for messages
    count: int | None = None
    from_ms: float = 0.0
    until_ms: float = float("inf")
    by: Pace | None = None  # both
    must_strike: bool = True

    @classmethod
    def each(cls, *kinds: Kind | str, **more: Any) -> tuple[Fault, ...]:
        """Return a fault of each of these kinds; of every kind, none of which must strike, if none is named.

        `more` goes to each.
        """
        more.setdefault("must_strike", bool(kinds))
        return tuple(cls(kind=kind_of(kind), **more) for kind in kinds or Kind)

    def __post_init__(self) -> None:
        force_setattr(self, "kind", kind_of(self.kind))
        if self.by is not None and self.by not in set(Pace):
            raise ValueError(f"{self.kind}: by is {' or '.join(map(repr, map(str, Pace)))}, not {self.by!r}")
        force_setattr(self, "by", self.by and Pace(self.by))
        if self.count is not None and self.count < 1:
            raise ValueError(f"{self.kind}: a count is at least 1, not {self.count}")
        if not self.from_ms < self.until_ms:
            raise ValueError(f"{self.kind}: from_ms {self.from_ms:g} is not before until_ms {self.until_ms:g}")
        if not 0 <= self.probability <= 1:
            raise ValueError(f"{self.kind}: a probability lies between 0 and 1, not at {self.probability}")


class Firing(NamedTuple):
    """One time a fault struck: the `number`-th occasion of its kind."""

    kind: Kind
    number: int

    def __str__(self) -> str:
        return f"{self.kind}:{self.number}"


def parse_schedule(text: str) -> tuple[Firing, ...]:
    """Read what `schedule` wrote."""
    firings = []
    for one in text.split(",") if text not in {"", "none"} else ():
        kind, _, number = one.strip().partition(":")
        if not number.isdecimal():
            raise ValueError(f"{one!r} is not a firing such as {Firing(Kind.NODE_CRASH, 3)}")
        firings.append(Firing(kind_of(kind), int(number)))
    return tuple(firings)


def schedule(firings: Iterable[Firing]) -> str:
    """Write firings as one word for a command line."""
    return ",".join(map(str, firings)) or "none"


# Swarm testing: a seed that has all faults at once hides what only a few together would show.
SWARM_SHARE: Final = 0.5


class Faults:
    """The faults of one run."""

    def __init__(
        self, seed: int, plan: Sequence[Fault], only: Iterable[Firing] | None = None, *, is_swarm: bool = False
    ) -> None:
        self.fired: list[Firing] = []
        self.is_healed = False
        self.places: dict[Kind, set[str]] = {fault.kind: set() for fault in plan}  # where it could have struck
        self.struck_at: dict[Kind, set[str]] = {fault.kind: set() for fault in plan}
        self.occasions: dict[Kind, int] = {}
        self._seed = seed
        self._only = None if only is None else frozenset(only)
        swarm = stream(seed, "swarm")
        self._plan: dict[Kind, list[Fault]] = {}
        self._left: dict[Fault, int] = {}
        chosen = {kind for kind in Kind if swarm.random() < SWARM_SHARE or not is_swarm}  # whatever else is planned
        for fault in plan:
            if fault.kind in chosen:
                self._plan.setdefault(fault.kind, []).append(fault)
                if fault.count is not None:
                    self._left[fault] = fault.count
        self._paced = {
            pace: {kind for kind, faults in self._plan.items() if any(fault.by in {None, pace} for fault in faults)}
            for pace in Pace
        }
        self._probable = {kind: max(fault.probability for fault in faults) for kind, faults in self._plan.items()}
        self._chances = {kind: stream(seed, f"fault {kind}").random for kind in self._plan}

    def has(self, kind: Kind) -> bool:
        """Whether this run has faults of a kind at all."""
        return kind in self._plan and not self.is_healed

    def strikes(self, kind: Kind, where: str, now_s: float, pace: Pace | None = None) -> random.Random | None:
        """Return None if nothing happens here; else the chance from which the details of what happens are drawn."""
        if kind not in (self._plan if pace is None else self._paced[pace]) or self.is_healed:
            return None
        number = self.occasions[kind] = self.occasions.get(kind, 0) + 1
        draw = self._chances[kind]()
        self.places[kind].add(where)
        if self._only is None and draw >= self._probable[kind]:  # as nearly always
            return None
        firing = Firing(kind, number)
        if self._only is not None:
            is_hit = firing in self._only
        else:
            is_hit = any(self._hits(fault, draw, where, now_s * MS_PER_S, pace) for fault in self._plan[kind])
        if not is_hit:
            return None
        self.struck_at[kind].add(where)
        self.fired.append(firing)
        return stream(self._seed, f"strike {firing}")

    def _hits(self, fault: Fault, draw: float, where: str, now_ms: float, pace: Pace | None) -> bool:
        if draw >= fault.probability or not fault.from_ms <= now_ms < fault.until_ms or not fnmatchcase(where, fault.where):
            return False
        if pace is not None and fault.by not in {None, pace}:
            return False
        left = self._left.get(fault)
        if left is None:
            return True
        if left:
            self._left[fault] = left - 1
        return left > 0

    def counts(self) -> dict[Kind, int]:
        """Return how often each kind struck."""
        found: dict[Kind, int] = {}
        for firing in self.fired:
            found[firing.kind] = found.get(firing.kind, 0) + 1
        return found


class Tally:
    """What a plan of faults came to over many runs: where each kind could have struck, how often, and where it did."""

    def __init__(self, plan: Sequence[Fault]) -> None:
        self._plan = plan
        self._runs = 0
        self._occasions: Counter[Kind] = Counter()
        self._places: dict[Kind, set[str]] = {fault.kind: set() for fault in plan}
        self._struck_at: dict[Kind, set[str]] = {fault.kind: set() for fault in plan}

    def add(self, faults: Faults) -> None:
        """Add one run."""
        self._runs += 1
        self._occasions.update(faults.occasions)
        for kind in self._places:
            self._places[kind] |= faults.places[kind]
            self._struck_at[kind] |= faults.struck_at[kind]

    def unmet(self) -> list[str]:
        """Return why a fault that must strike never did, and what to do about it; one sentence for each such fault."""
        return [
            self._why(fault) for fault in self._plan if fault.must_strike and fault.probability and not self._has_met(fault)
        ]

    def _has_met(self, fault: Fault) -> bool:
        return any(fnmatchcase(place, fault.where) for place in self._struck_at[fault.kind])

    def _why(self, fault: Fault) -> str:
        kind, occasions = fault.kind, self._occasions[fault.kind]
        never = f"{kind} never struck under {self._runs} seeds"
        if not occasions and fault.by is Pace.TIME:
            return f"{never}: hardly any virtual time passes in this test. Without by='time' it also strikes as agents work."
        if not occasions:
            return f"{never}: nothing happened that it could strike. {_NEEDS[kind]}"
        if not any(fnmatchcase(place, fault.where) for place in self._places[kind]):
            there = ", ".join(sorted(self._places[kind])[:_PLACES_SHOWN])
            return f"{kind} could never strike at {fault.where!r}; it could have struck at: {there}"
        window = "" if (fault.from_ms, fault.until_ms) == (0.0, float("inf")) else ", its window of time fits the test"
        return (
            f"{never}: it had {occasions} occasions, with probability {fault.probability:g} each. "
            f"Raise the probability or the number of seeds{window}; must_strike=False says that it need not strike."
        )


_OF_A_CRASH: Final = "It strikes when a node crashes before all is written: add NodeCrash or NodeCrashInWrite."
_NEEDS: Final[dict[Kind, str]] = {
    **dict.fromkeys(Kind, "It strikes where agents are called: start a node and call an agent in the test."),
    **dict.fromkeys(BETWEEN_NODES, "It strikes between nodes that share a network: start them with world.cluster(…)."),
    **dict.fromkeys((Kind.STORE_PARTIAL_WRITE, Kind.STORE_UNFLUSHED_LOST, Kind.STORE_TORN_TAIL), _OF_A_CRASH),
    **dict.fromkeys(
        (Kind.MODEL_TIMEOUT, Kind.MODEL_RATE_LIMITED, Kind.MODEL_GARBAGE),
        "It strikes at a model: put the agent's model behind world.model(…).",
    ),
    Kind.RING_LOST: "It strikes where a process waits for handoffs: let a receiver wait in node.within(…).",
}
