"""What can be known from outside: calls as the disk has them, and calls as they run in the memory of simulated processes.

The two differ on purpose. What is written is the truth that survives; what runs is where places are taken and where agents wait
for each other. Both are kept up to date one event at a time, so that looking after every event stays cheap.
"""

from __future__ import annotations

from collections.abc import Iterator

from comity.core.envelope.envelope import Reply, Request
from comity.core.handoff.machine import Handoff
from comity.ports.observer import Call
from comity.testing.sim.loop import Life


class Written:
    """One call as the records so far tell it. A tool that was used is one too."""

    __slots__ = (
        "above", "below", "calls", "deadline_at", "is_late", "is_open", "is_paused", "is_tool", "life", "overdrawn", "reply",
        "request", "tokens",
    )  # fmt: skip

    def __init__(self, request: Request, above: Written | None, life: Life) -> None:
        self.request = request
        self.above = above
        self.life = life
        self.below: dict[str, Written] = {}  # open calls directly below
        self.calls = 1  # of its tree, itself included
        self.tokens = 0  # that ended calls below it are known to have used
        self.overdrawn = 0  # of these, by calls that were stopped for it
        self.deadline_at = request.deadline_at
        self.is_open = True
        self.is_late = False
        self.is_paused = False  # it waits for a person
        self.is_tool = request.target.startswith("tool:")
        self.reply: Reply | None = None

    def callers(self) -> Iterator[Written]:
        """Yield every call above, nearest first."""
        above = self.above
        while above is not None:
            yield above
            above = above.above


class Running:
    """One call in the memory of a process: it holds a place, or waits for one."""

    __slots__ = ("address", "below", "call", "has_place", "life", "limit", "parent", "places", "queue_max", "request", "token")

    def __init__(self, call: Call, life: Life, parent: Running | None) -> None:
        request = call.request
        self.call = call
        self.request = request
        self.address = request.target
        # Under this token its agent is held: a call begun under an older token is fenced off, and takes no place.
        self.token = call.token
        self.life = life
        self.parent = parent
        self.places = call.agent.concurrency
        self.queue_max = call.agent.pending_max
        self.below: dict[Running, None] = {}
        self.has_place = False
        self.limit = request.limits.fan_out_max


class Observed:
    """Everything that has been seen."""

    def __init__(self) -> None:
        self.written: dict[str, Written] = {}
        self.open_roots: dict[str, Written] = {}
        self.running: dict[tuple[Life, str], Running] = {}
        self.at: dict[tuple[Life, str], dict[Running, None]] = {}  # by process and address
        self.claims: dict[str, str] = {}  # the node that claimed an address last
        self.effects: dict[str, int] = {}  # by request id of the tool's use
        self.told: dict[str, Reply] = {}  # the replies that clients have, by request id
        self.handoffs: dict[str, Handoff] = {}  # as they were last written
        self.acknowledged: dict[str, None] = {}  # handoffs whose maker was notified that they are durable

    def running_of(self, life: Life, request_id: str | None) -> Running | None:
        """Return a call that runs somewhere, here before elsewhere."""
        if request_id is None:
            return None
        here = self.running.get((life, request_id))
        if here is not None:
            return here
        elsewhere = (one for (where, known), one in self.running.items() if known == request_id and not where.is_paused)
        return next(elsewhere, None)

    def has_ended(self, request_id: str) -> bool:
        """Whether the end of a call is on record."""
        written = self.written.get(request_id)
        return written is not None and not written.is_open

    def beside(self, call: Running) -> list[Running]:
        """Return the calls that run or wait in the same activation, itself included."""
        return [one for one in self.at.get((call.life, call.address), ()) if one.token == call.token]

    def enter(self, call: Running) -> None:
        """A call has come to a process."""
        self.running[call.life, call.request.request_id] = call
        self.at.setdefault((call.life, call.address), {})[call] = None
        if call.parent is not None:
            call.parent.below[call] = None

    def end(self, life: Life, request_id: str) -> None:
        """A call has ended; it keeps its place until its code has really stopped."""
        call = self.running.pop((life, request_id), None)
        if call is None:
            return
        if call.parent is not None:
            call.parent.below.pop(call, None)
        if not call.has_place:
            self.leave(call)

    def leave(self, call: Running) -> None:
        """A call has given up its place."""
        here = self.at.get((call.life, call.address))
        if here is not None:
            here.pop(call, None)
            if not here:
                del self.at[call.life, call.address]

    def forget(self, life: Life) -> None:
        """A process is gone, and all its memory."""
        for key in [key for key in self.running if key[0] is life]:
            call = self.running.pop(key)
            if call.parent is not None:
                call.parent.below.pop(call, None)
        for where in [where for where in self.at if where[0] is life]:
            del self.at[where]
