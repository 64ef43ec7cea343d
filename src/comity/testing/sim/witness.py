"""Sees every event of a simulation from outside the nodes, keeps what can be known of it, and asks the invariants."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from comity.core.agent.tool import Tool
from comity.core.call.limits import TIMEOUT_MS_CEILING
from comity.core.call.machine import Event, State
from comity.core.envelope.envelope import Reply, Request
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import DEAD, TRANSITIONS, Handoff
from comity.core.handoff.machine import Event as HandoffEvent
from comity.core.handoff.machine import State as Standing
from comity.core.handoff.queue import Step
from comity.core.journal.records import Accepted, Document, Late, Noted, Paused, Record, Refused, Resumed, Saved, Settled
from comity.testing.sim import invariants
from comity.testing.sim.handoffs import DiskHandoffs
from comity.testing.sim.invariants import Checks, Ended, Handed, Told, Used, ViolationError
from comity.testing.sim.loop import Life
from comity.testing.sim.observed import Observed, Running, Written
from comity.testing.sim.scene import Scene

if TYPE_CHECKING:
    from comity.ports.observer import Call

# Errors a client gets that do not end its call: the node can write nothing, or no node can tell how far the call is.
UNWRITABLE = frozenset({"STORE_UNAVAILABLE", "NODE_CLOSED", "NODE_UNREACHABLE"})


class Witness:
    """Stands beside the nodes. Whatever it finds wrong stops the run."""

    def __init__(self, world: Scene, queue: DiskHandoffs) -> None:
        self.observed = Observed()
        self.calls = 0  # accepted or refused
        self.refusals: dict[str, int] = {}  # by code
        self.transitions: dict[tuple[str, str, str], int] = {}  # machine, state and event
        self.appends: list[tuple[Record, ...]] = []  # as they were written, for the check against the specification
        self.handed_off: list[tuple[str, str, Handed | None]] = []  # changes of the handoff queue, for the same: what, of which
        self._world = world
        self._queue = queue

    # --- what is written ---

    def committed(self, life: Life, records: Sequence[Record]) -> None:
        """An append has reached the disk."""
        self.appends.append(tuple(records))
        ended: list[Written] = []
        for record in records:
            kind = type(record)
            if kind is Accepted:
                self._accepted(life, record, is_begun=not _ends(record, records))  # type: ignore[arg-type]
            elif kind is Settled:
                self._settled(life, record, ended)  # type: ignore[arg-type]
            elif kind is Refused:
                self._refused(life, record)  # type: ignore[arg-type]
            elif kind is Late:
                self._late(life, record)  # type: ignore[arg-type]
            elif kind is Resumed:
                self._resumed(life, record)  # type: ignore[arg-type]
            elif kind is Paused:
                self._paused(life, record)  # type: ignore[arg-type]
            else:
                assert kind is Saved or kind is Noted, f"a record nobody knows: {record}"
                if kind is Saved:
                    self._saved(life, record)  # type: ignore[arg-type]
        for call in ended:
            self._ask(invariants.ON_APPENDED, call, call.request.request_id)

    def _accepted(self, life: Life, record: Accepted, *, is_begun: bool) -> None:
        observed, request = self.observed, record.request
        known = observed.written.get(request.request_id)
        self._ask(invariants.ON_REPEATED, (record, known), request.request_id)
        if known is not None:
            return
        call = Written(request, observed.written.get(request.parent_id or ""), life)
        observed.written[request.request_id] = call
        if call.is_tool:
            self._note(life, "intends", f"{request.request_id} {request.target}")
            self._ask(invariants.ON_TOOL_ACCEPTED, call, request.request_id)
        else:
            self.calls += 1
            for one in call.callers() if is_begun else ():
                one.calls += 1
            source = request.source or request.user_id
            self._note(life, "accepts", f"{request.request_id} {source} → {request.target} {request.capability}")
            self._ask(invariants.ON_ACCEPTED if is_begun else invariants.ON_GIVEN_UP, call, request.request_id)
        if call.above is not None:
            call.above.below[request.request_id] = call
        else:
            observed.open_roots[request.request_id] = call

    def _settled(self, life: Life, record: Settled, ended: list[Written]) -> None:
        request, reply = record.request, record.reply
        call = self.observed.written.get(request.request_id)
        code = "" if reply.error is None else f" {reply.error.code}"
        self._note(life, "settles", f"{request.request_id} {reply.status}{code}")
        self._ask(invariants.ON_ENDED, Ended(record, call, self._world.skew_ms), request.request_id)
        if call is None:
            return
        if reply.status in invariants.ENDED_WELL and not call.is_tool:
            # What was handed off is waited for, and ended, by the agent that handed it off.
            is_handed = request.request_id in self.observed.handoffs and request.source is not None
            address = str(request.source) if is_handed else request.target
            self._ask(invariants.ON_RESULT, (address, str(life)), request.request_id)
        used = reply.usage.total_tokens
        if call.above is not None and (call.above.life is call.life or reply.status in invariants.ENDED_WELL):
            call.above.tokens += used  # what a call used that was given up elsewhere, its caller never learns
            is_stopped = reply.error is not None and reply.error.code == "BUDGET_TOKENS_EXHAUSTED"
            call.above.overdrawn += used if is_stopped else call.overdrawn
        call.tokens = max(used, call.tokens)
        call.is_open, call.reply = False, reply
        if call.above is not None:
            call.above.below.pop(request.request_id, None)
        else:
            self.observed.open_roots.pop(request.request_id, None)
        ended.append(call)

    def _saved(self, life: Life, record: Saved) -> None:
        if record.kind is Document.FENCE:
            self.observed.claims[record.key] = str(life)
            self._note(life, "claims", f"{record.key} under {record.version}")
        elif record.kind is Document.STATE and not record.token:  # the store leaves out what was saved under an old token
            self._ask(invariants.ON_RESULT, (record.address, str(life)), record.key)

    def _paused(self, life: Life, record: Paused) -> None:
        request_id = record.request.request_id
        self._world.reached("tree waited for a person")
        self._note(life, "pauses", request_id)
        call = self.observed.written.get(request_id)
        if call is not None:
            call.is_paused = True
            call.deadline_at = TIMEOUT_MS_CEILING * 10**6  # waiting uses up no time, and when it goes on is not on record

    def _resumed(self, life: Life, record: Resumed) -> None:
        request = record.request
        self._note(life, "takes up", request.request_id)
        call = self.observed.written.get(request.request_id)
        if call is not None:
            call.request, call.deadline_at = request, request.deadline_at
            self._ask((("LimitsOnlyShrink", invariants.limits_only_shrink),), call, request.request_id)

    def _refused(self, life: Life, record: Refused) -> None:
        error = record.reply.error
        code = "" if error is None else error.code
        self.calls += 1
        self.refusals[code] = self.refusals.get(code, 0) + 1
        if code == "ROUTING_DEADLOCK_PREVENTED":
            self._world.reached("wait-for cycle refused")
        self._note(life, "refuses", f"{record.request.request_id} {record.request.target} {code}")

    def _late(self, life: Life, record: Late) -> None:
        request_id = record.request.request_id
        self._world.reached("late reply")
        self._note(life, "late", request_id)
        call = self.observed.written.get(request_id)
        if request_id in self.observed.handoffs:
            return  # by a receiver that had lost it; whether another receiver goes on does not matter
        if call is None or call.is_open:
            self.violate("NoLateSuccess", f"{request_id} has not ended, so nothing of it can be late")

    # --- what is handed off ---

    def handed(self, life: Life, steps: Sequence[Step]) -> None:
        """Steps of the handoff queue have reached the disk."""
        for step in steps:
            for outcome in step.outcomes:
                if outcome.refusal is not None and outcome.refusal.code == "HANDOFF_LEASE_LOST":
                    self._world.reached("former receiver refused")
            for before, after in step.touched:
                self._changed(life, type(step.change).__name__, before, after, getattr(step.change, "by", None))
        if any(step.touched for step in steps):
            self._ask(invariants.ON_QUEUE_WRITTEN, self._queue.get, "the queue")

    def _changed(self, life: Life, change: str, before: Handoff | None, after: Handoff, by: Holder | None) -> None:
        handoffs = self.observed.handoffs
        known, handoffs[after.id] = handoffs.get(after.id), after
        if known is None or known.history is not after.history:  # more than a lease that was renewed
            self._note(life, "hands off", f"{after.id} {after.state} {after.holder}".rstrip())
        for state, event in () if before is None else _events_between(before.state, after.state):
            self.moved("handoff", state, event)
        handed = Handed(known, before, after, by)
        self.handed_off.append((change, after.id, handed))
        self._ask(invariants.ON_HANDED, handed, after.id)
        if after.state is Standing.PENDING and before is not None and before.state is not Standing.PENDING:
            self._world.reached("handoff re-delivered")
        elif after.state in DEAD:
            self._world.reached("handoff dead-lettered")

    def acknowledged(self, handoff_id: str) -> None:
        """The maker of a handoff is notified that it is durable."""
        self.observed.acknowledged[handoff_id] = None
        self.handed_off.append(("Acknowledge", handoff_id, None))
        self._ask(invariants.ON_ACKNOWLEDGED, handoff_id, handoff_id)

    def erased(self, tenant_id: str, session_id: str) -> None:
        """A session is erased: what was said in it, and what was handed off in it."""
        observed = self.observed
        for handoff_id, handoff in list(observed.handoffs.items()):
            if (handoff.request.tenant_id, handoff.request.session_id) == (tenant_id, session_id):
                del observed.handoffs[handoff_id]
                observed.acknowledged.pop(handoff_id, None)
                observed.open_roots.pop(handoff_id, None)

    def shown(self, handoff: Handoff) -> None:
        """A caller reads how a handoff stands."""
        self._ask(invariants.ON_SHOWN, handoff, handoff.id)

    # --- what runs ---

    def queued(self, life: Life, call: Call) -> None:
        """A call has come to a process and has its place, or waits for one."""
        request = call.request
        if call.state is State.SETTLED:
            return
        one = self.observed.running.get((life, request.request_id)) or self._enter(life, call)
        self._ask(invariants.ON_QUEUED, one, request.request_id)
        if not one.has_place:
            self._world.reached("call had to wait")
            self._note(life, "queues", f"{request.request_id} {request.target}")

    def started(self, life: Life, call: Call) -> None:
        """A call has taken its place."""
        self.moved("call", State.QUEUED, Event.START)
        request = call.request
        one = self.observed.running.get((life, request.request_id)) or self._enter(life, call)
        one.has_place = True
        self._note(life, "starts", f"{request.request_id} {request.target}")
        self._ask(invariants.ON_STARTED, one, request.request_id)

    def closing(self, life: Life, call: Call, event: Event) -> None:
        """A call is about to end in the memory of a process."""
        self.moved("call", call.state, event)
        self.observed.end(life, call.request.request_id)

    def _enter(self, life: Life, call: Call) -> Running:
        request = call.request
        written = self.observed.written.get(request.request_id)
        is_paused = written is not None and written.is_paused
        self.moved("call", State.PAUSED if is_paused else State.ADMITTED, Event.QUEUE)
        if written is not None:
            written.is_paused = False
        parent = self.observed.running_of(life, request.parent_id)
        one = Running(call, life, parent)
        self.observed.enter(one)
        return one

    def left(self, life: Life, call: Call) -> None:
        """A call's code has stopped and its place is free."""
        observed = self.observed
        one = next((one for one in observed.at.get((life, call.request.target), ()) if one.call is call), None)
        if one is not None:
            one.has_place = False
            if observed.running.get((life, call.request.request_id)) is one:
                observed.end(life, call.request.request_id)
            observed.leave(one)

    def moved_away(self, life: Life, call: Call) -> None:
        """A process has let go of a call: another node holds its agent now."""
        self._world.reached("call went on elsewhere")
        self._note(life, "lets go", call.request.request_id)
        self.observed.end(life, call.request.request_id)

    def died(self, life: Life) -> None:
        """A process is gone."""
        self.observed.forget(life)

    # --- what leaves ---

    def used(self, life: Life, tool: Tool, request: Request, *, is_written: bool) -> None:
        """A tool is about to do what it does."""
        effects = self.observed.effects
        effects[request.request_id] = effects.get(request.request_id, 0) + 1
        self._note(life, "does", f"{request.request_id} {tool.name}")
        self._ask(invariants.ON_USED, Used(request.request_id, tool, is_written), request.request_id)

    def told(self, request_id: str, reply: Reply, *, is_written: bool) -> None:
        """A client has its reply."""
        code = "" if reply.error is None else reply.error.code
        self._world.trace.add(self._world.loop.time(), "client", "is told", f"{request_id} {reply.status} {code}".rstrip())
        if code in UNWRITABLE:
            self.refusals[code] = self.refusals.get(code, 0) + (reply.status == "refused")
            return
        self._ask(invariants.ON_TOLD, Told(request_id, reply, is_written), request_id)
        if reply.status not in {"refused", "needs_input"}:  # a client that was refused may ask again
            self.observed.told.setdefault(request_id, reply)

    # --- inside ---

    def moved(self, machine: str, state: str, event: str) -> None:
        """A state machine has taken a step."""
        key = (machine, str(state), str(event))
        self.transitions[key] = self.transitions.get(key, 0) + 1

    def _note(self, life: Life, what: str, about: str) -> None:
        self._world.trace.add(self._world.loop.time(), str(life), what, about)

    def _ask(self, checks: Checks, about: Any, request_id: str) -> None:
        observed = self.observed
        for name, check in checks:
            if why := check(observed, about):
                self.violate(name, f"{request_id}: {why}")

    def violate(self, name: str, why: str) -> None:
        """Stop the run: something that must hold does not."""
        world = self._world
        if world.violation is None:
            world.violation = ViolationError(name, why)
            world.trace.add(world.loop.time(), "witness", "VIOLATION", f"{name}: {why}")
            world.loop.stop()


def _events_between(before: Standing, after: Standing) -> Sequence[tuple[Standing, HandoffEvent]]:
    """Return the events, each with the state it leaves, that lead from one state of a handoff to another: the fewest."""
    ways: list[tuple[Standing, tuple[tuple[Standing, HandoffEvent], ...]]] = [(before, ())]
    for state, way in ways:
        if state is after:
            return way
        ways += [(following, (*way, (state, event))) for event, following in TRANSITIONS[state].items()]
    raise AssertionError(f"nothing leads from {before} to {after}")


def _ends(accepted: Accepted, records: Sequence[Record]) -> bool:
    """Whether a call was accepted and ended in one append: it was given up on its way, and no node ran it."""
    request_id = accepted.request.request_id
    return len(records) > 1 and any(type(one) is Settled and one.request.request_id == request_id for one in records)
