"""Handing work off and hearing what becomes of it, with ContextCore's calls. `comity.HandoffManager` is the sync twin."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Concatenate, Final, ParamSpec

from comity.contextcore.handoffs.host import HandoffHost
from comity.core.agent.agent import Agent
from comity.core.call.limits import ID_CHARS_MAX, INPUTS_BYTES_MAX, TIMEOUT_MS_CEILING, Limits
from comity.core.call.outside import Outside
from comity.core.document.expected_output import read_expected
from comity.core.document.payload import Problem, text_problem, unpack_long
from comity.core.envelope.envelope import Background, ExpectedOutput, Priority
from comity.core.handoff.checks import LISTED_MAX, name_problem, number_problem, packed, reason_problem, refuse
from comity.core.handoff.machine import (
    ATTEMPTS_MAX,
    DEAD,
    ENDED,
    Answer,
    Cancel,
    Entry,
    Expire,
    Handoff,
    State,
)
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.units import MS_PER_S
from comity.engines.sqlite.wakeups import EVERY
from comity.engines.tempo import TempoStore
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.node.node import Node
from comity.ports import SpanSource
from comity.runtime.call.draft import Draft, Identity
from comity.runtime.handoff.desk import TIMEOUT_MS, Handoffs, lane_of
from comity.runtime.handoff.spans import results_in
from comity.runtime.tracing.standing import joined

Given = ParamSpec("Given")

_ANY_STATE: Final = tuple(State)
_ATTEMPTS_CEILING: Final = 1_000


class Fields(dict[str, Any]):
    """An object of a result; its fields can be read as attributes, as ContextCore shows."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the result has no field {name!r}; it has {', '.join(self) or 'none'}") from None


def _awaited(
    create: Callable[Concatenate[AsyncHandoffManager, Given], Coroutine[Any, Any, str]],
) -> Callable[Concatenate[AsyncHandoffManager, Given], Coroutine[Any, Any, Handoff]]:
    """Return `create_handoff` as a method that waits for the end of what it handed off."""

    @functools.wraps(create)
    async def create_and_await(self: AsyncHandoffManager, /, *given: Given.args, **more: Given.kwargs) -> Handoff:
        return await self.await_result(await create(self, *given, **more))

    create_and_await.__doc__ = "Hand work off, wait for its end and return it; takes what `create_handoff` takes."
    create_and_await.__name__ = "create_and_await"
    return create_and_await


class AsyncHandoffManager(HandoffHost):
    """Hands work off on behalf of an agent and one user.

    manager = AsyncHandoffManager(project_id="checkout-service", agent_id="orchestrator", store="work.db")
    handoff_id = await manager.create_handoff(to_agent="o11y", capability_id="investigate_error", task="Find the cause")
    result = await manager.await_result(handoff_id)

    project_id: under which the handoffs are kept together in traces. `agent_id`: the agent that hands off; None for a user.
    node: the running node to use; without one the manager runs one of its own on `store`.
    user_id, tenant_id, session_id: for whom; the user is the agent itself if none is named.
    traces, tempo_url: where results of other stores are looked for.
    agents: whose inputs are checked as they declare them, and who are not run here; on a `node`, its agents are.
    """

    def __init__(
        self,
        project_id: str = "",
        agent_id: str | None = None,
        *,
        node: Node | None = None,
        store: str | Path | None = None,
        user_id: str | None = None,
        tenant_id: str = "default",
        session_id: str | None = None,
        traces: SpanSource | None = None,
        tempo_url: str | None = None,
        agents: Iterable[Agent] = (),
    ) -> None:
        super().__init__(node, store, agents)
        self._traces = TempoStore(tempo_url) if traces is None and tempo_url is not None else traces
        self.project_id = project_id
        self.agent_id = agent_id
        self.user_id = user_id or agent_id or "local"
        self.tenant_id = tenant_id
        self.session_id = session_id

    async def create_handoff(
        self,
        to_agent: str | None = None,
        capability_id: str = "",
        task: str = "",
        inputs: Mapping[str, Any] | None = None,
        expected_output: Mapping[str, Any] | ExpectedOutput | None = None,
        priority: Priority | str = "normal",
        timeout_ms: int = TIMEOUT_MS,
        *,
        handoff_id: str | None = None,
        objective: str = "",
        context: Background | None = None,
        limits: Limits | None = None,
        correlation_id: str = "",
        attempts_max: int = ATTEMPTS_MAX,
        outside: Outside | None = None,
        traceparent: str | Sequence[str] | None = None,
        tracestate: str | Sequence[str] | None = None,
    ) -> str:
        """Hand work off, to an agent or to any that has the capability, and return its id once it is durable.

        Raises the error class of a refusal. A repeated `handoff_id` hands nothing off twice.

        to_agent: who is to do it; None for any agent that has `capability_id`.
        task, inputs, context: what is to be done, in words and as data. `objective` is what for.
        expected_output: what the result must have; one without it is refused.
        priority: critical, high, normal (or medium) or low.
        timeout_ms: after which it has failed if it is not done; within `limits`.
        attempts_max: after this many receivers have died of it, it is a dead letter.
        correlation_id: that of the workflow it is part of.
        outside: where the agent of another process stands that hands off: its chain, and what is left of its limits.
        traceparent, tracestate: the trace it belongs to, else that of the current span.
        """
        names = {"to_agent": to_agent, "capability_id": capability_id, "handoff_id": handoff_id}
        if any(type(name) is str and not name for name in names.values()):  # never what stands in its place: most are variables
            raise _empty(names)  # that were not set
        expected = self._checked_rest(attempts_max, expected_output)
        draft = Draft(
            capability_id if to_agent is None else to_agent, capability_id, _plain(inputs), objective, task, timeout_ms,
            # What the origin's storage calls `normal`.
            "normal" if type(priority) is str and priority == "medium" else priority, context, limits, "none",
            correlation_id=correlation_id, outside=outside,
        )  # fmt: skip
        desk = self._desk
        if desk is None or desk.is_closed:
            desk = await self.desk()
        handoff = await desk.create(
            draft,
            Identity(self.user_id, self.tenant_id, self.session_id),
            source=self.agent_id,
            expected=expected,
            request_id=handoff_id,
            attempts_max=attempts_max,
            metadata={"project_id": self.project_id} if self.project_id else None,
            remote=joined(traceparent, tracestate),
        )
        return handoff.id

    def _checked_rest(self, attempts_max: Any, expected_output: Any) -> ExpectedOutput | None:
        """Check what no rule of a call looks at; return what is expected of the result."""
        expected, problems = read_expected(expected_output)
        refuse(
            None if self.agent_id is None else name_problem(self.agent_id, "agent_id"),
            text_problem(self.project_id, path="project_id", bytes_max=ID_CHARS_MAX),
            number_problem(attempts_max, "attempts_max", 1, _ATTEMPTS_CEILING),
            *problems,
        )
        return expected

    async def receive(self, document: Any) -> str:
        """Hand off what a contextcore message says, and return its id."""
        from comity.dialects import contextcore  # noqa: PLC0415  dialects are slow to import and rarely spoken

        now_ms = (await self.desk()).now_ms
        asked = contextcore.decode_request(document, now_ms=now_ms, user_id=self.user_id)
        if asked.source not in {None, self.agent_id}:
            raise RefusedError(f"the message says it is from {asked.source}, not {self.agent_id}", code="IDENTITY_MISMATCH")
        return await self.create_handoff(
            asked.target,
            asked.capability,
            asked.message,
            asked.inputs,
            asked.expected_output,
            asked.priority,
            max(asked.deadline_at - now_ms, 0),
            handoff_id=asked.request_id,
        )

    async def get_handoff_status(self, handoff_id: str) -> Handoff:
        """Return a handoff as it stands. If its deadline has passed, that is written down."""
        desk = await self.desk()
        handoff = self._mine(desk, handoff_id)
        if not handoff.has_ended and handoff.request.deadline_at <= desk.now_ms:
            with contextlib.suppress(CallerError):  # another process or task has just done it
                await desk.change(handoff_id, Expire())
            handoff = self._mine(desk, handoff_id)
        return desk.content.shown(handoff)

    async def await_result(self, handoff_id: str, timeout_ms: int | None = None) -> Handoff:
        """Wait until the handoff `handoff_id` has ended, or for `timeout_ms`, and return it as it stands then."""
        if timeout_ms is not None:
            refuse(number_problem(timeout_ms, "timeout_ms", 0, TIMEOUT_MS_CEILING))
        desk = self._desk
        if desk is None or desk.is_closed:
            desk = await self.desk()
        handoff = self._checked(desk.find(handoff_id), handoff_id)
        is_own = handoff.made_by == desk.node_id
        if is_own and timeout_ms is None:
            return await self._ended(desk, handoff)
        hearing = contextlib.nullcontext() if is_own else self._hearing(desk)  # of the end of its own, a node always hears
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / MS_PER_S), hearing:
                return await self._ended(desk, self._checked(desk.find(handoff_id), handoff_id))
        except TimeoutError:
            return await self.get_handoff_status(handoff_id)

    async def _ended(self, desk: Handoffs, handoff: Handoff) -> Handoff:
        handoff_id = handoff.request.request_id
        with desk.ear(self._ears, f"!{handoff_id}") as ear:
            while handoff.state not in ENDED:
                await ear.wait(handoff.request.deadline_at)
                handoff = self._checked(desk.find(handoff_id), handoff_id)
        desk.forget(handoff_id)
        return desk.content.shown(handoff)

    @contextlib.asynccontextmanager
    async def _hearing(self, desk: Handoffs) -> AsyncIterator[None]:
        """Hear of everything that happens to any handoff."""
        await desk.listen((EVERY,))
        try:
            yield
        finally:
            with contextlib.suppress(UnavailableError):  # the caller gets the error of its wait, not this one
                await desk.listen((EVERY,), -1)

    create_and_await = _awaited(create_handoff)

    async def get_result(self, handoff_id: str) -> Any:
        """Return the result of a completed handoff; raise the error class that says why there is none."""
        handoff = await self.get_handoff_status(handoff_id)
        if handoff.reply is None:
            raise CallerError(f"{handoff_id} is {handoff.state}; it has no result yet", code="HANDOFF_STATE_CONFLICT")
        return _fields(handoff.reply.unwrap())

    async def get_result_from_trace(self, trace_id: str) -> Any:
        """Return the result that is in a trace: of the newest completed handoff of this store whose result is there.

        For a handoff of another store its span says the result, where the spans of `traces` or the Tempo have content.
        """
        refuse(name_problem(trace_id, "trace_id"))
        desk = await self.desk()
        found = [one for one in desk.queue.by_trace(trace_id) if self._is_mine(one) and one.state is State.COMPLETED]
        if found:
            return _fields(desk.content.shown(found[-1]).result)
        if self._traces is not None:
            for handoff_id, result in results_in(await asyncio.to_thread(self._traces.trace, trace_id)):
                if desk.get(handoff_id) is None:  # one of this store would have been found, if it is this user's
                    return _fields(result)
        raise CallerError(f"no result in trace {trace_id!r}", code="HANDOFF_UNKNOWN")

    async def events(self, handoff_id: str, after: int = 0, *, in_clear: bool = True) -> AsyncIterator[Entry]:
        """Yield what happens to a handoff, beginning after number `after`, until it has ended.

        `in_clear` is false for a reader who is not its user: tokens stand in place of personal data.
        """
        refuse(number_problem(after, "after", 0, LISTED_MAX))
        desk = await self.desk()
        async with self._hearing(desk):
            with desk.ear(self._ears, f"={handoff_id}", f"!{handoff_id}") as ear:
                while True:
                    handoff = self._mine(desk, handoff_id)
                    if in_clear:
                        handoff = desk.content.shown(handoff)
                    for entry in handoff.history:
                        if entry.n > after:
                            after = entry.n
                            yield entry
                    if handoff.has_ended:
                        return
                    await ear.wait(handoff.due_at)

    async def provide_input(self, handoff_id: str, answer: Any) -> Handoff:
        """Answer what the receiver asked."""
        desk = await self.desk()
        handoff = self._mine(desk, handoff_id)
        raw, saved = desk.content.hidden_answer(handoff.request, packed(answer, "answer", INPUTS_BYTES_MAX))
        return desk.content.shown(await desk.change(handoff_id, Answer(unpack_long(raw), saved)))

    async def cancel(self, handoff_id: str, reason: str = "it is no longer needed") -> Handoff:
        """Withdraw a handoff, whichever receiver has it."""
        refuse(reason_problem(reason))
        desk = await self.desk()
        self._mine(desk, handoff_id)
        return desk.content.shown(await desk.change(handoff_id, Cancel(desk.masked(reason))))

    async def list_handoffs(
        self, *, states: Collection[State | str] = _ANY_STATE, to_agent: str | None = None, limit: int = ROWS_DEFAULT
    ) -> list[Handoff]:
        """Return at most `limit` of this user's handoffs, newest first: those in `states`, and to `to_agent` if it is named."""
        is_known = not isinstance(states, str) and all(isinstance(one, str) and one in _ANY_STATE for one in states)
        refuse(
            None if is_known else Problem("states", f"must be a list of some of {', '.join(State)}"),
            None if to_agent is None else name_problem(to_agent, "to_agent"),
            number_problem(limit, "limit", 0, LISTED_MAX),
        )
        desk = await self.desk()
        lane = None if to_agent is None else lane_of(self.tenant_id, to_agent)
        found = desk.queue.find(states=[State(one) for one in states], lane=lane, limit=limit)
        return [desk.content.shown(one) for one in found if self._is_mine(one)]

    async def dead_letters(self, *, limit: int = ROWS_DEFAULT) -> list[Handoff]:
        """Return the handoffs that ended without a result though no caller withdrew them; each says why."""
        return await self.list_handoffs(states=sorted(DEAD), limit=limit)

    def _mine(self, desk: Handoffs, handoff_id: str) -> Handoff:
        return self._checked(desk.get(handoff_id), handoff_id)

    def _checked(self, handoff: Handoff | None, handoff_id: str) -> Handoff:
        """Return a handoff of this user. Whether another user has one of that id is not theirs to know."""
        if handoff is None or not self._is_mine(handoff):
            raise CallerError(f"no handoff {handoff_id!r}", code="HANDOFF_UNKNOWN")
        return handoff

    def _is_mine(self, handoff: Handoff) -> bool:
        request = handoff.request
        return request.user_id == self.user_id and request.tenant_id == self.tenant_id


def _plain(inputs: Any) -> Any:
    """Return inputs that are another kind of mapping as a dict; what cannot be read as one is refused as it is."""
    try:
        return dict(inputs) if type(inputs) is not dict and isinstance(inputs, Mapping) else inputs
    except (Exception, SystemExit):  # noqa: BLE001  looking at a value runs its code
        return inputs


def _empty(names: Mapping[str, str | None]) -> CallerError:
    problems = tuple(Problem(name, "must not be empty") for name, value in names.items() if type(value) is str and not value)
    return CallerError("; ".join(f"{one.path} {one.message}" for one in problems), problems=problems)


def _fields(data: Any) -> Any:
    return Fields(data) if isinstance(data, dict) else data
