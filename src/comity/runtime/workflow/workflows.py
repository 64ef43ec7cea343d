"""`node.workflows`: runs are started, found, answered, cancelled, watched, replayed, forked and moved to a new version here.

A run is one tree of calls. Its root is a call of a private agent, driven by the planner; its deadline is the planner's, since
it may wait for weeks. A run that only waits leaves memory: its row and its events are all there is of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Raw
from msgspec.structs import replace

from comity.core.agent.agent import Agent
from comity.core.call.limits import CHAIN_MAX, INPUTS_BYTES_MAX, Limits
from comity.core.document.payload import PayloadError, pack, unpack_long
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import Error, Reply, Request
from comity.core.envelope.envelope import Status as ReplyStatus
from comity.core.envelope.request_id import chosen_id_problem
from comity.core.journal.records import Document, Settled, StoredCall, fingerprint
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.tracing import trace_context
from comity.core.tracing.trace_context import TraceContext
from comity.core.units import NS_PER_MS
from comity.core.workflow import history
from comity.core.workflow.graph import Program
from comity.core.workflow.history import Event, encode_event
from comity.core.workflow.model import Definition
from comity.errors import CallerError, ComityError, UnavailableError
from comity.ports import Journal
from comity.runtime.call.call import NEVER_MS
from comity.runtime.call.context import Context
from comity.runtime.call.draft import Arrival, check_names
from comity.runtime.call.replay import WORKFLOW as AGENT
from comity.runtime.tracing.standing import placed
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.run import Run
from comity.runtime.workflow.schedules import TIMER, Schedules
from comity.runtime.workflow.store import Pages, RunRecord, Status
from comity.runtime.workflow.telling import Telling
from comity.runtime.workflow.timers import Timers
from comity.runtime.workflow.waiter import Waiter

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

log = logging.getLogger("comity")
LATER_MS: Final = 1_000
PARKED: Final = -1  # the number of the one timer of a run that is not in memory
# Its address stays held while all its runs wait: another node that took it would take them.
_MOST: Final = {"concurrency": 1_000_000, "pending_max": 1_000_000, "idle_ms": 1_000_000_000_000_000}


class Workflows(Telling):
    """The workflows a node knows and their runs."""

    def __init__(self, path: CallPath, journal: Journal) -> None:
        super().__init__(path, journal)
        self.timers = Timers(path.clock, path.loop, self._fired)
        limits = path.limits
        deeper = min(limits.depth_max + 1, CHAIN_MAX)  # a run is no agent: its steps may go as deep as a user's calls
        self.step_limits = replace(limits, depth_max=deeper)
        self._leftovers: dict[str, dict[str, Request]] = {}  # of runs that were put off: calls below them that are open
        self._waiters: dict[str, list[asyncio.Future[Reply]]] = {}
        agent = Agent(AGENT, **_MOST, takes_handoffs=False)  # type: ignore[arg-type]
        agent.capability("run", input_schema={"type": "object"})(self._drive)  # of what `_begin` packed
        self._agent = agent
        self._address = f"{AGENT}/{journal.node_id}"  # of the runs that begin here
        self._capability = agent.capabilities["run"]
        self._capability.prepare()  # which the check of the first inputs would do
        self.schedules = Schedules(self, path.seal)

    # --- starting ---

    async def start(
        self,
        workflow: str | Definition,
        input: Any = None,  # noqa: A002  the word of the file
        *,
        user_id: str,
        tenant_id: str = "default",
        session_id: str | None = None,
        run_id: str | None = None,
        traceparent: str | Sequence[str] | None = None,
        tracestate: str | Sequence[str] | None = None,
    ) -> RunHandle:
        """Start a run and return it once it is durable. Under a `run_id` that is known, return that run and start nothing.

        A `run_id` that is known with another user, tenant, workflow or input is refused: IDENTITY_REQUEST_ID_REUSED.

        `traceparent` and `tracestate` are the W3C headers it came with: what cannot be read begins a trace of its own.
        Raises `DefinitionError` for a workflow with mistakes, and `ComityError` for a run that is refused.
        """
        remote = None if traceparent is None else trace_context.read(traceparent, tracestate)
        await self._hold_address()
        try:
            return self._start(workflow, input, user_id, tenant_id, session_id, run_id, remote)
        finally:
            await self.path.durable()  # also where it was refused: then nothing of it is left

    def _start(
        self,
        workflow: str | Definition,
        data: Any,
        user_id: str,
        tenant_id: str = "default",
        session_id: str | None = None,
        run_id: str | None = None,
        remote: TraceContext | None = None,
        chain: tuple[str, ...] = (),
        *,
        is_own: bool = False,
    ) -> RunHandle:
        """Start a run, or find it, without waiting until it is durable; `is_own` if this node chose its id."""
        check_names(user_id=user_id, tenant_id=tenant_id, **({} if session_id is None else {"session_id": session_id}))
        definition = self._found(workflow)
        data = {} if data is None else data
        if run_id is not None:
            if not is_own and (problem := chosen_id_problem(run_id)):
                raise CallerError(f"run_id {problem}", code="IDENTITY_INVALID")
            if (known := self._known(run_id)) is not None:
                if (known.user_id, known.tenant_id) != (user_id, tenant_id) or known.workflow != definition.name:
                    raise CallerError(f"run_id {run_id} belongs to another run", code="IDENTITY_REQUEST_ID_REUSED")
                run, stored = self._runs.get(run_id), self._root(run_id)
                # A node that died between the two wrote the record and not the root: then nothing has begun.
                if run is not None or known.status.has_ended or stored is not None:
                    root = stored if run is None else run.call.request
                    if not is_own and root is not None and not _has_input(root, definition, data):
                        what = f"run_id {run_id} belongs to a run with another input"
                        raise CallerError(what, code="IDENTITY_REQUEST_ID_REUSED")
                    return RunHandle(self, run_id)
        self._check_input(definition, data)
        return self._begin(definition, data, user_id, tenant_id, session_id, run_id, remote=remote, chain=chain)

    async def start_below(self, above: Request, workflow: str | Definition, input: Any, run_id: str) -> RunHandle:  # noqa: A002
        """Start a run for a call under way, and return it once it is durable; under a `run_id` that is known, that run.

        The run is a tree of its own, of the same user, session and trace. The called agent and those above it stay above it, so
        that none of them can be called again below it.
        """
        await self._hold_address()
        remote = trace_context.read(f"00-{above.trace_id}-{above.span_id}-01", None)
        handle = self._start(
            workflow,
            input,
            above.user_id,
            above.tenant_id,
            above.session_id,
            run_id,
            remote,
            chain=(*above.chain, above.target),
            is_own=True,
        )
        await self.path.durable()
        return handle

    async def run(self, workflow: str | Definition, input: Any = None, **options: Any) -> Reply:  # noqa: A002
        """Start a run and wait for its reply; `options` are as of `start`."""
        if not self.path.placement.is_held(self._address):
            await self._hold_address()
        return await self.result(self._start(workflow, input, **options).run_id)  # durable after its start

    async def _hold_address(self) -> None:
        """Take the address of the runs that begin here. Raises `UnavailableError` where leases cannot be had."""
        placement = self.path.placement
        if not placement.is_held(self._address) and not await placement.hold(self._address):
            raise UnavailableError(f"{self._address} is held by another node, or the leases cannot be read", code="LEASE_STALE")

    def _begin(
        self,
        definition: Definition,
        data: Any,
        user_id: str,
        tenant_id: str,
        session_id: str | None,
        run_id: str | None,
        events: Iterable[Event] = (),
        forked_from: str = "",
        remote: TraceContext | None = None,
        chain: tuple[str, ...] = (),
        *,
        program: Program | None = None,
    ) -> RunHandle:
        path, now_ns = self.path, self.path.clock.now_ns()
        now_ms = now_ns // NS_PER_MS
        new_id, trace_id = path.ids.new_request(now_ms)
        run_id = run_id or new_id
        program = program or self.store.pin(definition, self._library)
        body = _packed(data)
        request = Request(
            request_id=run_id,
            target=self._address,
            capability=definition.name,
            user_id=user_id,
            tenant_id=tenant_id,
            limits=self.step_limits,
            deadline_at=NEVER_MS,
            created_at=now_ms,
            body=Raw(body),
            chain=chain,
            root_id=run_id,
            correlation_id=run_id,
            session_id=session_id or run_id,
            trace_id=trace_id,
            span_id=trace_id[16:],
        )
        history_ = list(events)
        record = RunRecord(
            run_id=run_id,
            workflow=definition.name,
            version=definition.version,
            definition=program.hash,
            status=Status.RUNNING,
            user_id=user_id,
            tenant_id=tenant_id,
            session_id=request.session_id,
            created_at=now_ms,
            updated_at=now_ms,
            events=len(history_),
            forked_from=forked_from,
        )
        is_named = run_id is not new_id
        if is_named and (found := path.seen(request)) is not None:  # a call has this id
            if isinstance(found, Reply):
                found.unwrap()
            raise CallerError(f"run_id {run_id} belongs to another call", code="IDENTITY_REQUEST_ID_REUSED")
        pages = Pages(run_id)
        written = [pages.add(encode_event(one)) for one in history_]
        self.journal.append((*self.store.save(record, *self.store.kept(program)), *written))
        try:
            self._enter(request, now_ns, None, record, is_named=is_named, remote=remote)
        except ComityError:
            self.journal.append((), partial(self._forget, run_id))  # what was refused did nothing
            raise
        return RunHandle(self, run_id)

    def _forget(self, run_id: str, error: Exception | None) -> None:
        """Remove a run that was not let in, now that its records have reached the store."""
        if error is None and run_id not in self._runs and self._root(run_id) is None:
            for key, _ in self.journal.documents_below(Document.RUN_EVENT, run_id):
                self.journal.remove(Document.RUN_EVENT, key)
            self.journal.remove(Document.RUN, run_id)

    def _enter(
        self,
        request: Request,
        now_ns: int,
        leftovers: dict[str, Request] | None,
        record: RunRecord,
        *,
        is_named: bool = False,
        remote: TraceContext | None = None,
    ) -> Run:
        """Let the root of a run in by the one call path. Raises `ComityError` if it is refused, or held by another node."""
        body = bytes(request.body)  # that `_begin` packed: there is nothing to check
        arrival = Arrival(request, body, self._agent, self._capability, (), "", checked=Checked(unpack_long(body)))
        if remote is not None:
            arrival = placed(arrival, remote, self.path.ids)
        placement = self.path.placement
        if not placement.is_held(request.target):
            raise UnavailableError(f"{request.target} is not held here", code="LEASE_STALE")
        way = placement.way_at(request.target)
        opened = self.path.enter(arrival, None, now_ns, None, leftovers, remote=remote, way=way, is_named=is_named)
        if isinstance(opened, Reply):
            opened.unwrap()
            raise AssertionError("a root that did not begin was refused")  # noqa: TRY004  a bug, no matter of types
        opened.is_detached = True
        run = Run(self, opened, record, self.park)
        self._runs[record.run_id] = run
        self._parked.pop(record.run_id, None)
        Waiter(partial(self._delivered, run)).wait_for(opened)
        return run

    async def _drive(self, ctx: Context, given: Any = None) -> Any:
        """Drive a run: what the root call of every run does."""
        run = self._runs.get(ctx.request.request_id)
        if run is None:
            return Reply.failure("a run is started with node.workflows", code="TARGET_FAILED")
        return await run.drive(given)

    def _delivered(self, run: Run) -> None:
        if run.call.has_moved:  # its waiters get the reply that the store will have
            run.leave()
            self._runs.pop(run.run_id, None)
            self.timers.forget(run.run_id)
            return
        reply = run.call.reply
        if not run.record.status.has_ended and reply is not None and reply.error is not None:  # not by its planner
            code, why, now_ms = reply.error.code, reply.error.message, self.now_ms()
            status = Status.CANCELLED if reply.status is ReplyStatus.CANCELLED else Status.FAILED
            ended = replace(run.view(), status=status, ended_at=now_ms, error_code=code, error_message=why)
            self.journal.append(self.store.save(ended))
        self._runs.pop(run.run_id, None)
        self._woken.discard(run.run_id)
        run.release()
        self.timers.forget(run.run_id)
        for waiter in self._waiters.pop(run.run_id, ()):
            if not waiter.done() and reply is not None:
                waiter.set_result(reply)

    # --- finding ---

    def get(self, run_id: str) -> RunRecord:
        """Return a run as it stands. Raises `CallerError` WORKFLOW_UNKNOWN."""
        record = self._known(run_id)
        if record is None:
            raise unknown_run(run_id)
        return record

    def handle(self, run_id: str) -> RunHandle:
        """Return a run to wait for, watch or cancel. Raises `CallerError` WORKFLOW_UNKNOWN."""
        self.get(run_id)
        return RunHandle(self, run_id)

    def list(
        self,
        *,
        status: Status | str | None = None,
        workflow: str | None = None,
        tenant_id: str | None = None,
        limit: int = ROWS_DEFAULT,
    ) -> list[RunRecord]:
        """Return runs, newest first, at most `limit`."""
        found = (self._runs[one.run_id].view() if one.run_id in self._runs else one for one in self.store.records())
        chosen = (
            one
            for one in found
            if status in {None, one.status} and workflow in {None, one.workflow} and tenant_id in {None, one.tenant_id}
        )
        return [one for one, _ in zip(chosen, range(limit), strict=False)]

    async def result(self, run_id: str) -> Reply:
        """Wait for the end of a run and return its reply, as its user may see it."""
        run = self._runs.get(run_id)
        if run is None:
            stored = self._root(run_id)
            if stored is not None and stored.settled_at is not None and stored.reply is not None:
                return self.path.settlement.shown(stored.reply, stored)
            self.get(run_id)
        waiter: asyncio.Future[Reply] = self.loop.create_future()
        self._waiters.setdefault(run_id, []).append(waiter)
        return await waiter

    def _root(self, run_id: str) -> StoredCall | None:
        """Return the root call of a run as it is stored; None for any other call that has this id."""
        stored = self.journal.call(run_id)
        return stored if stored is not None and stored.target.partition("/")[0] == AGENT else None

    def _known(self, run_id: str) -> RunRecord | None:
        run = self._runs.get(run_id)
        return self.store.record(run_id) if run is None else run.view()

    # --- leaving memory and coming back ---

    def park(self, run: Run) -> None:
        """Let a run that only waits leave memory."""
        record = run.view()
        record = replace(record, status=Status.WAITING)
        self.journal.append(self.store.save(record), None, run.call.terms)
        self.path.settlement.put_aside(run.call)
        self.path.calls.pop(run.run_id, None)
        run.call.waiters = None  # which hold the run, and the garbage collector does not look into a call
        del self._runs[run.run_id]
        self._woken.discard(run.run_id)
        self._hold(record)

    def _hold(self, record: RunRecord) -> None:
        """Wait for a run that is not in memory."""
        self._parked[record.run_id] = record.events
        self.timers.forget(record.run_id)
        if record.due_at is not None:
            self.timers.add(record.run_id, PARKED, record.due_at)

    def _unpark(self, run_id: str) -> Run | None:
        """Go on with a run that is not in memory; None if it cannot go on now, or not here."""
        record = self.store.record(run_id)
        stored = self._root(run_id)
        if record is None or stored is None or stored.request is None or not self._is_held(stored.request):
            self._parked.pop(run_id, None)
            return None
        return self._resume(stored.request, self._leftovers.pop(run_id, {}), record)

    def _is_held(self, request: Request) -> bool:
        return self.path.placement.is_held(request.target)

    def has(self, run_id: str) -> bool:
        """Return whether this node drives a run, or waits for what it waits for."""
        return run_id in self._runs or run_id in self._parked

    def forget_waiting(self) -> None:
        """Wait for no run that is not in memory: another node may hold it. Those held here still are adopted again."""
        for run_id in self._parked:
            self.timers.forget(run_id)
        self._parked.clear()
        self._leftovers.clear()

    def _resume(self, request: Request, leftovers: dict[str, Request], record: RunRecord) -> Run | None:
        now_ms = self.now_ms()
        if (live := self.path.sessions.find(request.tenant_id, request.session_id)) is not None:
            self.path.sessions.use(live, request, now_ms)  # however long the run has waited
        try:
            run = self._enter(request, self.path.clock.now_ns(), leftovers, replace(record, status=Status.RUNNING))
        except ComityError as error:
            self.postpone(request, leftovers, record, error)
            return None
        if record.status is Status.WAITING:
            self._woken.add(record.run_id)
        return run

    def postpone(self, request: Request, leftovers: dict[str, Request], record: RunRecord, why: Exception) -> None:
        """Go on with a run a little later: it was refused, or the store could not be read."""
        run_id = request.request_id
        log.warning("run %s goes on later: %s", run_id, why)
        self.path.calls.pop(run_id, None)
        self._runs.pop(run_id, None)
        self._parked[run_id] = record.events
        self._leftovers[run_id] = leftovers
        self.timers.add(run_id, PARKED, self.now_ms() + LATER_MS)

    def adopt(self, request: Request, leftovers: dict[str, Request]) -> None:
        """Take up a run that a node which is gone left open."""
        record = self.store.record(request.request_id)
        if record is None:
            error = Error.of("CALL_INTERRUPTED", "the store has no record of this run")
            gone = Reply(status=ReplyStatus.ERROR, error=error, request_id=request.request_id, source=request.target)
            self.journal.append((Settled(request, gone, self.now_ms()),))
        elif record.status is Status.WAITING and not leftovers and (record.due_at is None or record.due_at > self.now_ms()):
            if self.store.count(record.run_id) > record.events:
                self._resume(request, {}, record)  # it got an event just before its node went
            else:
                self.path.activations.seat(self._agent, request, self.path.placement.way_at(request.target))
                self._hold(record)
        else:
            self._resume(request, leftovers, record)

    def sweep(self) -> None:
        """See to what other processes sent, and to timers that the loop may have missed."""
        self.timers.look()
        placement = self.path.placement
        if not placement.is_held(self._address):
            placement.spawn(placement.hold(self._address))  # schedules begin runs without waiting for it
        self.hear()
        self._look_for_ends()
        self.schedules.look()

    def _look_for_ends(self) -> None:
        """Answer those who wait here for a run that another process has ended."""
        for run_id in [one for one in self._waiters if one not in self._runs]:
            stored = self._root(run_id)
            if stored is not None and (stored.settled_at is None or stored.reply is None):
                continue
            self._parked.pop(run_id, None)
            self.timers.forget(run_id)
            for waiter in self._waiters.pop(run_id):
                if waiter.done():
                    continue
                if stored is None or stored.reply is None:
                    gone = CallerError(f"there is no run {run_id}: it was erased", code="WORKFLOW_UNKNOWN")
                    waiter.set_exception(gone)
                else:
                    waiter.set_result(self.path.settlement.shown(stored.reply, stored))

    def _fired(self, run_id: str, number: int) -> None:
        if number == TIMER:
            self.schedules.fired(run_id)
            return
        run = self._runs.get(run_id)
        if run is not None:
            self._wake(run, history.Fired(self.now_ms(), number))
        elif run_id in self._parked:
            try:
                self._unpark(run_id)
            except UnavailableError as error:
                log.warning("run %s goes on later: %s", run_id, error)
                self.timers.add(run_id, PARKED, self.now_ms() + LATER_MS)

    def close(self) -> None:
        """Leave every run as it is; the next node that opens the store goes on."""
        self.timers.close()
        self.watchers.close()
        self.stop_hearing()
        for run in list(self._runs.values()):
            run.leave()
            self.path.calls.pop(run.run_id, None)
        self._runs.clear()
        gone = UnavailableError("the node is closing; the run goes on when a node opens the store", code="NODE_CLOSED")
        for waiters in self._waiters.values():
            for waiter in waiters:
                if not waiter.done():
                    waiter.set_exception(gone)
        self._waiters.clear()

    # --- for schedules ---

    @property
    def has_agents(self) -> bool:
        """Whether the node can run anything."""
        return len(self.path.registry) > 0 and not self.path.is_closed and self.journal.failure is None

    async def durable(self) -> None:
        """Wait until everything recorded so far is durable."""
        await self.path.durable()

    def begin_run(self, workflow: Definition, data: Any, user_id: str, tenant_id: str, run_id: str) -> None:
        """Start a run under an id, or do nothing if it is known."""
        self._start(workflow, data, user_id, tenant_id, None, run_id, is_own=True)

    def is_open(self, run_id: str) -> bool:
        """Return whether a run has not ended."""
        record = self._known(run_id)
        return record is not None and not record.status.has_ended


def _packed(data: Any) -> bytes:
    """Return the body of the root call of a run with this input. Raises `CallerError` for an input that cannot be sent."""
    try:
        return pack({"given": data}, "input", INPUTS_BYTES_MAX)
    except PayloadError as error:
        raise CallerError(str(error), problems=error.problems, code=error.code) from None


def _has_input(root: Request | StoredCall, definition: Definition, data: Any) -> bool:
    """Return whether a run began with this input, as it was before personal data in it was hidden."""
    body = Raw(_packed(data))
    asked = Request("", root.target, definition.name, "", Limits(), NEVER_MS, body=body)
    return fingerprint(asked) == (fingerprint(root) if isinstance(root, Request) else root.fingerprint)


def unknown_run(run_id: str) -> CallerError:
    """Return the error for a run that does not exist, or not for the person who asks."""
    return CallerError(f"there is no run {run_id}", code="WORKFLOW_UNKNOWN")
