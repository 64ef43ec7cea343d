"""One run while it is driven: each event is journaled before the commands that follow from it are carried out.

A step is an ordinary call below the run's root, under an id that every replay gives again. So a step that had ended answers
from the store, a step that was open is taken up, and none runs twice.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import lru_cache, partial
from typing import Any, Final

from msgspec.structs import replace

from comity.core.agent.disclosure import spoken
from comity.core.call.limits import CALLS_CEILING, WARNINGS_MAX, Limits
from comity.core.call.machine import CANCEL, PAUSED, RUNNING, SETTLED
from comity.core.document.slices import T
from comity.core.envelope.envelope import Background, Error, Reply, encode
from comity.core.envelope.envelope import Status as ReplyStatus
from comity.core.envelope.usage import NO_USAGE
from comity.core.journal.records import Saved
from comity.core.units import NS_PER_MS
from comity.core.workflow import history
from comity.core.workflow.activities import RECEIVED_MAX
from comity.core.workflow.history import Command, Event, encode_event
from comity.core.workflow.planner import Planner
from comity.core.workflow.replay import SLICE_EVENTS, fold
from comity.core.workflow.response import failure, is_failure, response_of
from comity.errors import CallerError, UnavailableError
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft
from comity.runtime.call.pace import user_of
from comity.runtime.call.replay import count_begun
from comity.runtime.call.run import Handed
from comity.runtime.call.tasks import after_a_turn
from comity.runtime.workflow.host import Host
from comity.runtime.workflow.planning import Planning
from comity.runtime.workflow.store import OUTLINE_BYTES, Pages, Question, RunRecord, Status
from comity.runtime.workflow.waiter import Waiter

LINGER_MS: Final = 60_000  # a run that goes on sooner than this stays in memory while it waits
READS_MAX: Final = 20  # how often a store that cannot be read is asked for the outcome of a step, and how long after each time
READ_PAUSE_S: Final = 0.5
ALONG_MAX: Final = 16  # steps whose code a run runs in its own task, one after the other, before others get a turn of the loop
ALONG_MS: Final = 1
_NOTHING: Final[dict[str, Any]] = {}
_LEFT: Final = frozenset({PAUSED, SETTLED})  # of a root that has moved to another node, or whose end is on its way to the store
_ENDS: Final = {one.value: one for one in Status}


class Run:
    """A run in memory."""

    __slots__ = (
        "_acks",
        "_along",
        "_answered",
        "_flows",
        "_inbox",
        "_inline",
        "_leave_memory",
        "_pages",
        "_planning",
        "_queued",
        "_since_ms",
        "_steps",
        "_undoing",
        "_waiter",
        "call",
        "is_left",
        "planner",
        "record",
        "run_id",
    )

    def __init__(self, flows: Host, call: Call, record: RunRecord, park: Callable[[Run], None]) -> None:
        self.call = call
        self.run_id = call.request.request_id  # that of its root call
        self.record = record
        self.planner: Planner | None = None
        self.is_left = False  # it was put aside: nothing more is done here
        self._flows = flows
        self._leave_memory = park
        self._pages = Pages(self.run_id)
        self._inbox: deque[Event] = deque()
        self._acks: dict[int, asyncio.Future[None]] = {}  # of events from outside, by identity: they are in the history
        self._waiter: asyncio.Future[None] | None = None
        self._steps: dict[int, asyncio.Future[None] | Waiter] = {}  # tasks, and waiters of calls
        self._queued: dict[int, Callable[[], None]] = {}  # start calls beyond what one call may have under way
        self._answered: dict[int, str] = {}  # by step: the id of the call whose reply it is, until its event is written
        self._along = self._since_ms = 0  # steps run in its own task since others had a turn, and when that was
        self._planning = Planning(flows.path.slices)
        self._inline: int | None = None  # the step that the run itself waits for
        self._undoing: set[int] = set()  # steps that take something back, for which the account has more

    # --- the loop ---

    async def drive(self, given: Any) -> Any:
        """Carry the run on until it has ended or only waits; return its reply, or its data if that is all there is."""
        try:
            planner, commands = await self._begin(given)
        except UnavailableError as error:  # the history cannot be read now: nothing was done, and it is tried again
            self._flows.postpone(self.call.request, self.call.leftovers or {}, self.record, error)
            self.leave()
            return Reply.needs_input("the run waits")
        self._since_ms = planner.now_ms
        while True:
            alone = self._carry_out(planner, commands)
            if planner.finish is not None:
                return self._ended(planner.finish)
            if alone is not None:
                self._inline = alone.step
                opened, handed = self._open_alone(planner, alone)
                if handed is not None:
                    await handed
                if isinstance(opened, Call) and opened.is_delivered:
                    settled = self._settled(alone.step, self.call.given(opened.delivered))
                else:
                    settled = self._settled(alone.step, await self._reply_to(opened))
                self._inline = None
                if not self._inbox:
                    commands = await self._take(planner, settled)
                    continue
                self._inbox.append(settled)
            if not self._inbox:
                if not self._steps and not self._queued and self._may_park():
                    return self._park()
                self._waiter = self._flows.loop.create_future()
                await self._waiter
            if self._queued:
                self._start_queued()
            commands = await self._take_next(planner)

    def _open_alone(self, planner: Planner, command: history.Call) -> tuple[Call | Coroutine[Any, Any, Reply], Handed | None]:
        """Make a call; its code is handed over to be run in the task of the run, unless others have to have a turn."""
        path = self._flows.path
        self._along += 1
        if planner.now_ms > self._since_ms + ALONG_MS or self._along > ALONG_MAX:
            self._along, self._since_ms = 0, planner.now_ms
        else:
            path.batches.hold()
        opened: Call | Coroutine[Any, Any, Reply] | None = None
        try:
            opened = self._call(planner, command)
        finally:
            handed = path.batches.handed(opened)
        return opened, handed

    async def _reply_to(self, opened: Call | Coroutine[Any, Any, Reply]) -> Reply:
        """Wait for the reply of a call that does not end in the task of the run."""
        if not isinstance(opened, Call):
            return await opened
        await self._flows.path.reply_of(opened)
        return self.call.given(opened.delivered)

    async def _begin(self, given: Any) -> tuple[Planner, list[Command]]:
        """Return the planner and what is to be done next: from the history, or from the start."""
        flows, record = self._flows, self.record
        program = flows.store.program(record.began_as or record.definition)
        if self.call.is_resumed or record.events:
            events = await self._planning.read(flows.store.walk(self.run_id), user_of(self.call.request))
            moved = {one.definition for one in events if isinstance(one, history.Migrated)}
            programs = {key: flows.store.program(key) for key in moved}
            work = partial(fold, program, events, programs.__getitem__)
            planner, commands = await self._plan(work, is_long=len(events) > SLICE_EVENTS)
            self.planner = planner
            self._pages = Pages(self.run_id, len(events))
            if events:
                self._limit(planner, commands)
                return planner, self._without_cancelled(commands)
        self.planner = planner = Planner(program)
        self._set_limits(planner)
        return planner, await self._take(planner, history.Started(flows.now_ms(), self.run_id, given))

    async def _plan(self, work: Callable[[], T], *, is_long: bool = False) -> T:
        """Return the result of pure work of the planner: done in a thread if the data that expressions read are long."""
        if not (is_long or self._planning.is_long):
            return work()
        self.record = replace(self.view(), status=Status.RUNNING)
        return await self._planning.in_thread(work)

    def _limit(self, planner: Planner, open_: Sequence[Command]) -> None:
        """Give the account of the run, from which every call below it is charged, the limits of the run and what it has used.

        Of the open steps, which the planner has counted, those that no process has begun are charged when they begin; for the
        others the calls that were begun below them are charged now.
        """
        account, journal, used = self.call.account, self._flows.journal, 1 + planner.calls
        for step in [one.step for one in open_ if isinstance(one, history.Call)]:
            stored = journal.call(f"{self.run_id}.{step}")
            used += -1 if stored is None or stored.request is None else count_begun(journal, stored.request)
        account.calls_used, account.tokens_used = used, planner.used.total_tokens
        self._set_limits(planner)

    def _set_limits(self, planner: Planner) -> None:
        """Set what the account of the run may spend: the limits of the run, or more while something is taken back."""
        most, limits = planner.limits, self._flows.step_limits
        if self._undoing:
            left = _limits(limits, CALLS_CEILING, None)
        else:  # the root is one of the calls of its account
            left = _limits(limits, min(most.calls_max + 1, CALLS_CEILING), most.tokens_max)
        self.call.account.widen(left)

    def _over(self, reply: Reply) -> str:
        """Return of what the run itself had too little for a step, or for a call below it."""
        code = "" if reply.error is None else reply.error.code
        if code == "BUDGET_CALLS_EXHAUSTED" and self.call.account.calls_left() < 1:
            return "calls"
        return "tokens" if code == "BUDGET_TOKENS_EXHAUSTED" and self.call.account.tokens_left() == 0 else ""

    def _without_cancelled(self, commands: list[Command]) -> list[Command]:
        """Leave out steps that were being stopped when the run was left: what is not known of them ended with it."""
        stopped = {one.step for one in commands if isinstance(one, history.Cancel)}
        for step in stopped:
            stored = self._flows.journal.call(f"{self.run_id}.{step}")
            if stored is not None and stored.reply is not None and stored.settled_at is not None:
                self._inbox.append(self._settled(step, stored.reply))
            else:
                gone = failure("CALL_CANCELLED", "the run stopped this step")
                self._inbox.append(history.Settled(self._flows.now_ms(), step, gone))
        return [one for one in commands if getattr(one, "step", None) not in stopped]

    async def _take_next(self, planner: Planner) -> list[Command]:
        """Take the oldest event of the inbox; an event that the run has no room for fails its waiter and changes nothing."""
        event = self._inbox.popleft()
        if type(event) is not history.Received or planner.has_room_for(event.event):
            return await self._take(planner, event)
        if (ack := self._acks.pop(id(event), None)) is not None and not ack.done():
            what = f"run {self.run_id} keeps {RECEIVED_MAX:,} events that no node has waited for, and no more"
            ack.set_exception(CallerError(what, code="WORKFLOW_STATE_CONFLICT"))
        return []

    async def _take(self, planner: Planner, event: Event) -> list[Command]:
        """Plan what follows from an event, and journal the event; the last one together with the record of the run's end."""
        flows = self._flows
        line = encode_event(event)
        size = len(line)
        if type(event) is history.Settled:
            answered = self._answered.pop(event.step, "")
            if size > OUTLINE_BYTES and self._has_call(event, answered):
                line = flows.store.outline(self.run_id, event, size)
        number = self._pages.number
        page = self._pages.add(line)
        self._planning.note(size)
        commands = await self._plan(partial(planner.apply, event))  # nothing of it is done before the event is journaled
        if planner.finish is None:
            flows.journal.append((page,), None, None if self.call.way.fence is None else self.call.terms)
        else:
            self._write_end(page)
        if self._acks and (ack := self._acks.pop(id(event), None)) is not None and not ack.done():
            ack.set_result(None)
        if flows.watchers.readers:
            flows.watchers.tell(self.run_id, number, event, commands)
        return commands

    def _write_end(self, *events: Saved) -> None:
        """Journal the record of a run that has ended, after the events that are not journaled yet."""
        self.record = self.view()
        self._flows.journal.append(self._flows.store.save(self.record, *events), None, self.call.terms)

    def _has_call(self, event: history.Settled, answered: str) -> bool:
        """Return whether the journal has the reply of a step in the end of its call, which comes before the event of the step.

        What runs on another node may not be there yet, and a strategy of an aggregate may return the reply of any call.
        """
        is_own = answered == f"{self.run_id}.{event.step}" and not is_failure(event.reply)
        return is_own and self._flows.path.placement.ends_come_first

    @property
    def takes_at_once(self) -> bool:
        """Whether an event from outside is journaled now, not after the step that the run itself waits for."""
        return self._inline is None

    def push(self, event: Event, ack: asyncio.Future[None] | None = None) -> None:
        """Give the run an event from outside; `ack` is resolved once the event is in the history."""
        self._inbox.append(event)
        if ack is not None:
            self._acks[id(event)] = ack
        self._wake()
        if self._inline is not None and (isinstance(event, history.Cancelled) or self._is_deadline(event)):
            self._stop(self._inline)

    def release(self) -> None:
        """Resolve the waiters of events that came after the end."""
        for ack in self._acks.values():
            if not ack.done():
                ack.set_result(None)
        self._acks.clear()

    def _is_deadline(self, event: Event) -> bool:
        return isinstance(event, history.Fired) and self.planner is not None and event.timer == self.planner.deadline

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- commands ---

    def _carry_out(self, planner: Planner, commands: Sequence[Command]) -> history.Call | None:
        """Do what the planner wants; return a call that is the only thing under way, for the run to wait for itself."""
        alone: history.Call | None = None
        for command in commands:
            if type(command) is history.Call:  # as most are
                if len(planner.waits) == 1 and not self._steps and not self._inbox:
                    alone = command
                elif len(self._steps) >= self._flows.step_limits.fan_out_max:
                    self._queued[command.step] = partial(self._start_call, planner, command)
                else:
                    self._start_call(planner, command)
                continue
            match command:
                case history.Timer():
                    self._flows.timers.add(self.run_id, command.timer, command.due_at)
                case history.Drop():
                    self._flows.timers.discard(self.run_id, command.number)
                case history.Cancel():
                    self._stop(command.step)
                case history.Aggregate():
                    self._start(command.step, self._aggregate(command))
                case _:
                    pass  # the record of the run shows questions, events and the end
        return alone

    def _start_queued(self) -> None:
        """Start calls that wait for others to end, as many as may be under way."""
        while self._queued and len(self._steps) < self._flows.step_limits.fan_out_max:
            self._queued.pop(next(iter(self._queued)))()

    def _start_call(self, planner: Planner, command: history.Call) -> None:
        """Make a call beside others: one that runs on this node needs no task to wait for it."""
        step, opened = command.step, self._call(planner, command)
        if not isinstance(opened, Call):
            self._start(step, opened)
            return
        self._steps[step] = waiter = Waiter(partial(self._call_ended, step, opened))
        waiter.wait_for(opened)

    def _call_ended(self, step: int, ended: Call) -> None:
        self._step_ended(step, self.call.given(ended.delivered))

    def _start(self, step: int, work: Coroutine[Any, Any, Reply]) -> None:
        task = self._flows.loop.create_task(self._finish(step, work), name=f"{self.run_id}.{step} of a workflow")
        task.add_done_callback(partial(self._finished, step, work))
        self._steps[step] = task

    def _finished(self, step: int, work: Coroutine[Any, Any, Reply], task: asyncio.Task[None]) -> None:
        """End a step whose task was cancelled before it began."""
        work.close()
        if task.cancelled() and not self.is_left:
            self._step_ended(step, _stopped())

    async def _finish(self, step: int, work: Coroutine[Any, Any, Reply]) -> None:
        try:
            reply = await work
        except asyncio.CancelledError:
            if self.is_left:
                raise
            reply = _stopped()
        self._step_ended(step, reply)

    def _step_ended(self, step: int, reply: Reply) -> None:
        self._steps.pop(step, None)
        self._inbox.append(self._settled(step, reply))
        self._wake()

    def _settled(self, step: int, reply: Reply) -> history.Settled:
        usage, now_ms = reply.usage, self._flows.path.clock.now_ns() // NS_PER_MS
        self._answered[step] = reply.request_id
        over = "" if reply.error is None else self._over(reply)
        if self._undoing and step in self._undoing and self.planner is not None:
            self._undoing.discard(step)
            self._set_limits(self.planner)
        if usage is NO_USAGE and not over:
            return history.Settled(now_ms, step, response_of(reply))
        used = (usage.prompt_tokens, usage.completion_tokens, usage.calls, usage.cost)
        return history.Settled(now_ms, step, response_of(reply), *used, over)

    def _call(self, planner: Planner, command: history.Call) -> Call | Coroutine[Any, Any, Reply]:
        """Make the governed call of a step: return the call, or its reply to be awaited."""
        flows = self._flows
        inputs, message, context = command.inputs, command.message, None
        if command.instruction or command.question:
            inputs, message, context = _with_words(command, flows.takes(command.agent, command.capability))
        if command.is_undo:
            self._undoing.add(command.step)
            self._set_limits(planner)
        draft = Draft(
            command.agent,
            command.capability,
            inputs,
            command.objective,
            message,
            command.timeout_ms,
            None,
            context,
            None,
            "none",
        )
        if (bind := flows.binder(command.agent, command.capability)) is not None:
            found = bind(flows.path.registry, inputs)
            if isinstance(found, Reply):
                return after_a_turn(found)
            draft = replace(found, timeout_ms=command.timeout_ms)
        request_id = f"{self.run_id}.{command.step}"
        if self.call.is_resumed:
            return self._call_again(draft, request_id)
        return flows.path.begin_under(self.call, draft, request_id)

    async def _call_again(self, draft: Draft, request_id: str) -> Reply:
        """Make a call that may have been made before; while the store cannot be read, which says so, wait and ask again."""
        for _ in range(READS_MAX):
            reply = await self._flows.path.call_under(self.call, draft, request_id, 0)
            if reply.error is None or reply.error.code != "STORE_UNAVAILABLE" or self._flows.journal.failure is not None:
                break
            await asyncio.sleep(READ_PAUSE_S)
        return reply

    async def _aggregate(self, command: history.Aggregate) -> Reply:
        """Make one reply of several, by a strategy of the node."""
        strategy = self._flows.strategies.get(command.strategy)
        if strategy is None:
            return Reply.failure(f"the node has no strategy {command.strategy}", code="WORKFLOW_INVALID")
        asked = 0

        def ask(
            target: str, capability: str, inputs: Any = None, *, message: str = "", objective: str = ""
        ) -> Awaitable[Reply]:
            nonlocal asked
            asked += 1
            draft = Draft(target, capability, inputs, objective, message, command.timeout_ms, None, None, None, "none")
            return self._flows.path.call_under(self.call, draft, f"{self.run_id}.{command.step}.{asked}", 0)

        found = strategy(command.parts, command.options, ask)
        return await found if inspect.isawaitable(found) else found

    def _stop(self, step: int) -> None:
        """Cancel a step that runs, down to the leaf."""
        child = self._flows.path.calls.get(f"{self.run_id}.{step}")
        if child is not None and child.parent is self.call:
            self._flows.path.settlement.cancel(child, "its run does not need it any more")
        elif step in self._steps:
            self._steps[step].cancel()
        elif self._queued.pop(step, None) is not None:  # it was never begun
            self._inbox.append(self._settled(step, _stopped()))

    # --- waiting and ending ---

    def _may_park(self) -> bool:
        """Return whether the run may leave memory: nothing is under way, and it does not go on by itself soon."""
        due_at = self._flows.timers.next_of(self.run_id)
        return due_at is None or due_at - self._flows.now_ms() > LINGER_MS

    def _park(self) -> Reply:
        """Leave memory until something happens; the store has everything."""
        self._leave_memory(self)
        return Reply.needs_input("the run waits")

    def leave(self) -> None:
        """Stop what runs here without ending it: another node, or this one once it is started again, goes on."""
        self.is_left = True
        for child in list(self.call.waits_for):
            child.is_detached = True  # its waiter goes, and the call must not be withdrawn for that
        if self.call.state not in _LEFT:
            self._flows.path.settlement.put_aside(self.call)
        for one in self._steps.values():
            one.cancel()
        gone = UnavailableError("the node does not hold the run any more; tell it again", code="NODE_CLOSED")
        for ack in self._acks.values():
            if not ack.done():
                ack.set_exception(gone)
        self._acks.clear()
        self.call.waiters = None  # which hold the run, and the garbage collector does not look into a call

    def view(self) -> RunRecord:
        """Return the run as it stands now."""
        planner = self.planner
        if planner is None or self._planning.is_in_thread:
            return self.record
        finish, error, ended_at, due_at = planner.finish, _NOTHING, None, None
        cost = planner.cost
        if finish is None:
            now_ms, due_at = self._flows.now_ms(), self._flows.timers.next_of(self.run_id)
            waits = not self._steps and self._inline is None and not self._inbox
            status = Status.WAITING if waits else Status.RUNNING
        else:
            now_ms = ended_at = planner.now_ms
            status, error = _ENDS[finish.status], finish.reply.get("error") or _NOTHING
        return replace(
            self.record,
            status=status,
            updated_at=now_ms,
            ended_at=ended_at,
            due_at=due_at,
            events=self._pages.number,
            steps=planner.steps,
            calls=planner.calls,
            tokens=planner.used.total_tokens,
            cost=0.0 if cost is None else cost.amount,
            currency="" if cost is None else cost.currency,
            unpriced_tokens=0 if cost is None else cost.unpriced_tokens,
            questions=_shown_questions(planner.questions, self.record.questions, now_ms) if planner.questions else (),
            waits_for=tuple(one.event for one in planner.listens.values()) if planner.listens else (),
            active=tuple(dict.fromkeys(one.place for one in planner.waits.values())) if planner.waits else (),
            error_code=error.get("code", ""),
            error_message=str(error.get("message", "")),
        )

    def _ended(self, finish: history.Finish) -> Any:
        """Return the reply of the run; a plain success is its data."""
        flows, call = self._flows, self.call
        if not self.record.status.has_ended:  # earlier versions journaled the last event and the record apart
            self._write_end()
        found = finish.reply
        is_plain = finish.status == "completed" and found["status"] == "success" and found.get("confidence", 1.0) == 1.0
        if is_plain and isinstance(found.get("data"), dict) and not found.get("message"):
            return found["data"]
        reply = reply_of(finish)
        if (error := reply.error) is not None:
            call.hear(error.code)
        if finish.status == "cancelled" and call.state is RUNNING and error is not None:
            cancelled = Reply(status=ReplyStatus.CANCELLED, error=error, message=error.message)
            flows.path.settlement.settle(call, CANCEL, cancelled)
            raise asyncio.CancelledError
        return reply


@lru_cache(256)
def _limits(steps: Limits, calls_max: int, tokens_max: int | None) -> Limits:
    """Return the limits of steps with these budgets. The same ones hold for every run of a workflow."""
    return replace(steps, calls_max=calls_max, tokens_max=tokens_max)


def _stopped() -> Reply:
    """Return the reply of a step that the run stopped."""
    return Reply(status=ReplyStatus.CANCELLED, error=Error.of("CALL_CANCELLED", "the run stopped this step"))


def _shown_questions(open_: Mapping[int, history.Ask], before: Sequence[Question], now_ms: int) -> tuple[Question, ...]:
    """Return the open questions as a record shows them; a question shown before keeps the time at which it was asked."""
    known = {one.question_id: one.asked_at for one in before}
    return tuple(
        Question(
            question_id=str(one.question),
            place=one.place,
            node=one.node,
            text=one.text,
            options=one.options,
            schema=one.schema,
            due_at=one.due_at,
            asked_at=known.get(str(one.question), now_ms),
            is_clarification=one.is_clarification,
        )
        for one in open_.values()
    )


def reply_of(finish: history.Finish) -> Reply:
    """Return the reply of a run that has ended."""
    found = finish.reply
    if finish.status != "completed":
        error = found.get("error") or {"code": "TARGET_FAILED", "message": "the run failed"}
        facts = {name: value for name, value in error.items() if name not in {"code", "message", "retryable"}}
        made = Error.of(error["code"], str(error.get("message", "")), retryable=bool(error.get("retryable")), facts=facts)
        told = spoken(made, str(found.get("message") or made.message), is_below=True)  # the error is for programs
        return Reply(status=ReplyStatus.ERROR, error=made, message=told, data=found.get("data"))
    confidence = found.get("confidence", 1.0)
    message = found.get("message", "")
    if found["status"] == "partial":
        warnings = found.get("warnings") or ["a part of the result is missing"]
        return Reply.partial(found.get("data"), warnings=warnings[:WARNINGS_MAX], confidence=confidence, message=message)
    return Reply.success(found.get("data"), message=message, confidence=confidence)


def _with_words(command: history.Call, takes: frozenset[str]) -> tuple[Any, str, Background]:
    """Return inputs, message and context of a call that is made again: with what was asked and answered, or what to change.

    A capability that has an input `answer` or `instruction` gets it there as well.
    """
    inputs = dict(command.inputs or {})
    words = [command.message] if command.message else []
    extra: dict[str, Any] = {}
    if command.instruction:
        extra["instruction"] = command.instruction
        words.append(command.instruction)
    if command.question:
        extra |= {"question": command.question, "answer": command.answer}
        words.append(command.answer if isinstance(command.answer, str) else _json(command.answer))
    inputs |= {name: extra[name] for name in ("answer", "instruction") if name in takes and name in extra}
    return inputs, "\n\n".join(words), Background(workflow_position=command.place, extra=extra)


def _json(value: Any) -> str:
    return encode(value).decode()
