"""`Context`: the `ctx` of a capability, through which an agent calls others, uses tools and reads its limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, Concatenate, Unpack, overload

from msgspec import Struct, json

from comity.core.call.limits import NAME_CHARS_MAX, TOKENS_CEILING, Limits
from comity.core.document.checks import take, take_text, take_whole
from comity.core.document.payload import unpack_long
from comity.core.envelope.envelope import Background, ExpectedOutput, Priority, Reply, Request
from comity.core.envelope.usage import Usage, priced
from comity.core.reading.page import ROWS_DEFAULT
from comity.core.tracing.span import Kind
from comity.errors import RefusedError
from comity.runtime.call.binding import UNSAID, AnyContext, Bound, Given, Result, aim
from comity.runtime.call.draft import Draft
from comity.runtime.call.options import CallOptions
from comity.runtime.call.text_stream import TextStream

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Guidance
    from comity.core.insight.given import LinkGiven
    from comity.core.insight.insight import Evidence, Insight
    from comity.core.session.conversation import Turn
    from comity.ports import Clock
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath
    from comity.runtime.session.view import MemoryView, SessionView
    from comity.runtime.tracing.recorder import OpenSpan


class _SpanFields(Struct, frozen=True):
    """The arguments of `Context.span`."""

    name: str
    kind: Kind


_decode_span = json.Decoder(_SpanFields).decode


class Context(Struct, eq=False, gc=False):
    """Handed to a capability whose first parameter is `ctx: Context`."""

    _path: CallPath
    _call: Call

    def __repr__(self) -> str:
        return f"Context({self._call.request.request_id})"

    @property
    def request(self) -> Request:
        """The request being served."""
        return self._call.request

    @property
    def session(self) -> SessionView:
        """The session of this call: what is known already; this agent can add what it finds."""
        return self._path.session_of(self._call)

    @property
    def memory(self) -> MemoryView:
        """What is remembered of the user across sessions; this agent can add what it finds out."""
        from comity.runtime.session.view import MemoryView  # noqa: PLC0415  most agents never ask

        return MemoryView(self._path.memories, self._call, partial(self._path.session_of, self._call))

    @property
    def limits(self) -> Limits:
        """What is left from here: hops below, further parallel calls, milliseconds, and the tree's calls and tokens."""
        return self._call.left(self._path.now_ms())

    @property
    def state(self) -> dict[str, Any]:
        """The agent's private state at this address. What it holds when the call settles is saved with the settlement."""
        call = self._call
        call.check_running()
        if not call.uses_state:
            call.seat.look_again()
            call.uses_state = True
        return call.seat.data

    @property
    def guidance(self) -> Guidance:
        """The node's current guidance for its agents; empty if it has none."""
        from comity.core.guidance.guidance import Guidance  # noqa: PLC0415  most agents never ask

        return Guidance() if self._path.guidance is None else self._path.guidance.current

    def guidance_text(self, *, spare_tokens: int = 0) -> str:
        """Return the node's current guidance as text for a prompt; empty if there is none.

        `spare_tokens` of guidance's token limit are left free for text around it.
        """
        if self._path.guidance is None:
            return ""
        from comity.core.guidance.prompt import GUIDANCE_TOKENS_MAX, guidance_prompt  # noqa: PLC0415  most nodes have no guidance

        current, now_ms = self._path.guidance.current, self._call.request.created_at
        return guidance_prompt(current, now_ms=now_ms, tokens_max=GUIDANCE_TOKENS_MAX - spare_tokens)

    @overload
    def call(
        self, target: str, capability: str, inputs: dict[str, Any] | None = None, **options: Unpack[CallOptions]
    ) -> Coroutine[Any, Any, Reply[Any]]: ...
    @overload
    def call(self, target: Bound[Result], /, **options: Unpack[CallOptions]) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[Given, Awaitable[Reply[Result]] | Reply[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self,
        target: Callable[Concatenate[AnyContext, Given], Awaitable[Reply[Result]] | Reply[Result]],
        /,
        *args: Given.args,
        **inputs: Given.kwargs,
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[Given, Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[Concatenate[AnyContext, Given], Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[Given, Result], /, *args: Given.args, **inputs: Given.kwargs
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    @overload
    def call(
        self, target: Callable[Concatenate[AnyContext, Given], Result], /, *args: Given.args, **inputs: Given.kwargs
    ) -> Coroutine[Any, Any, Reply[Result]]: ...
    def call(  # type: ignore[misc]
        self,
        target: Any,
        capability: Any = UNSAID,
        inputs: Any = None,
        *more: Any,
        objective: str = "",
        message: str = "",
        timeout_ms: int | None = None,
        priority: Priority | str | None = None,
        context: Background | None = None,
        limits: Limits | None = None,
        history: str | int = "none",
        tools: Collection[str] | None = None,
        correlation_id: str = "",
        **named: Any,
    ) -> Coroutine[Any, Any, Reply[Any]]:
        """Call another agent and wait for its reply. A refusal is a reply too; it says what to do instead.

        target: an agent's id, alias or `agent/key`, with `capability` and `inputs`; or the function that implements the
            capability, with its inputs by name; or a `bind(…)` of both, if options are to be given as well.
        objective: what the call is for. It is refused if this agent has a call to the same target with the same objective open.
        message: text for an agent with a model.
        timeout_ms: how long it may take, at most what is left to this call.
        priority: its place in the callee's queue; this call's own by default.
        context: what the callee should know about the work so far.
        limits: narrows what is left to this call.
        history: how much of the conversation the callee may see: none, summary, full, or a number of turns.
        tools: the callee and all calls below it may use only these, whatever their profiles allow.
        correlation_id: the id of its workflow; this call's own by default.
        """
        draft = Draft(
            target,
            capability,
            inputs,
            objective,
            message,
            timeout_ms,
            priority,
            context,
            limits,
            history,
            tools,
            correlation_id,
        )
        if type(target) is not str or capability is UNSAID or more or named:
            aimed = aim(self._path.registry, draft, more, named, Context.call.__kwdefaults__)
            return aimed.typed(self._path.call_child(self._call, aimed.draft))
        return self._path.call_child(self._call, draft)

    def hand_off(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        task: str = "",
        objective: str = "",
        timeout_ms: int | None = None,
        priority: Priority | str | None = None,
        context: Background | None = None,
        limits: Limits | None = None,
        expected_output: ExpectedOutput | None = None,
        correlation_id: str = "",
    ) -> Coroutine[Any, Any, Reply]:
        """Hand work to an agent outside this process, through the durable queue, and wait for its reply.

        It is a child call of this tree: this call's limits apply, and it is cancelled when this call ends. `capability`,
        `inputs`, `objective`, `timeout_ms`, `priority`, `context`, `limits` and `correlation_id` are as of `call`; `task` says
        in words what is to be done, `expected_output` what the result must have.
        """
        draft = Draft(
            target, capability, inputs, objective, task, timeout_ms, priority, context, limits, "none", None, correlation_id
        )
        return self._path.hand_off(self._call, draft, expected_output)

    async def gather(self, *calls: Awaitable[Reply[Result]]) -> list[Reply[Result]]:
        """Make calls in parallel and return their replies in order; a call that fails does not stop the others.

        Each is what `ctx.call(…)` or `ctx.hand_off(…)` returns, not awaited. Anything else is a `TypeError`; no call is made.
        """
        for place, one in enumerate(calls, 1):
            if not hasattr(one, "__await__"):
                for made in calls:
                    if isinstance(made, Coroutine):
                        made.close()  # avoids the warning "coroutine was never awaited"
                what = f"argument {place} is a {type(one).__name__}"
                raise TypeError(
                    f"ctx.gather takes calls, as in ctx.gather(ctx.call(…), ctx.call(…)) or ctx.gather(*calls); {what}"
                )
        return list(await asyncio.gather(*calls))

    @property
    def token(self) -> str:
        """A signed token with which an agent outside this process may call back on behalf of this call."""
        from comity.core.call.token import token_for  # noqa: PLC0415  few agents are outside

        return token_for(self._call.request, self._path.identity_key)

    def use_tool(self, /, name: str, **inputs: Any) -> Coroutine[Any, Any, Any]:
        """Use a tool and return its result. Raises `RefusedError` if this agent may not use it here."""
        return self._path.toolbox.use(self._path.refuse, self._call, name, inputs)

    def insight(
        self,
        insight_type: str,
        *,
        summary: str,
        confidence: float,
        audience: str = "both",
        rationale: str = "",
        evidence: Iterable[Evidence | Mapping[str, str]] = (),
        links: Iterable[LinkGiven] = (),
        supersedes: str = "",
        expires_at: int | str | None = None,
        applies_to: Iterable[str] = (),
        category: str = "",
        project_id: str = "",
        provider: str = "",
    ) -> Insight:
        """Publish a finding to other agents and people; it is stored and linked to this call.

        insight_type: such as analysis, recommendation, discovery, risk or blocker.
        summary, rationale, confidence: what was found, why, and how sure the agent is, from 0 to 1.
        audience: agent, human or both. `category` and `applies_to` say what it is about, such as paths.
        evidence: what it rests on: type, reference and description of each.
        links: OpenTelemetry `SpanContext`s or `Link`s, or mappings with `trace_id` and `span_id`.
        supersedes: the id of the insight it replaces. `expires_at`: until when it holds.
        project_id: the project, else the node's (`COMITY_PROJECT`), else the tenant. `provider`: of the model that found it.
        """
        from comity.runtime.tracing.insights import emit  # noqa: PLC0415  most agents find out nothing

        fields = {
            "summary": summary, "confidence": confidence, "audience": audience, "rationale": rationale, "evidence": evidence,
            "links": links, "supersedes": supersedes, "expires_at": expires_at, "applies_to": applies_to, "category": category,
        }  # fmt: skip
        return emit(self._path, self._call, insight_type, project_id, provider, fields)

    async def insights(
        self,
        *,
        insight_type: str | Iterable[str] | None = None,
        agent_id: str | None = None,
        audience: str | None = None,
        min_confidence: float | None = None,
        time_range: str | None = "24h",
        limit: int = ROWS_DEFAULT,
        applies_to: str | None = None,
        category: str | None = None,
        project_id: str = "",
    ) -> list[Insight]:
        """Return at most `limit` insights of this tenant's agents in a project, newest first; `project_id` is as of `insight`.

        `insight_type`, `agent_id`, `audience`, `min_confidence`, `applies_to` and `category` each narrow what is returned.
        `time_range` is a duration such as `24h`; None means all times. What was superseded or has expired is left out.
        """
        from comity.runtime.tracing.insights import find  # noqa: PLC0415  as above

        asked = {
            "insight_type": insight_type, "agent_id": agent_id, "audience": audience, "min_confidence": min_confidence,
            "time_range": time_range, "limit": limit, "applies_to": applies_to, "category": category,
        }  # fmt: skip
        return await find(self._path, self._call, project_id, asked)

    async def answer_question(
        self, question_id: str, *, answer: str, confidence: float, evidence: Iterable[Evidence | Mapping[str, str]] = ()
    ) -> Insight:
        """Answer a question that people asked in the node's guidance; the answer is an insight too.

        Raises `CallerError` for a question that no person asked, and where the guidance cannot be changed.
        """
        from comity.runtime.tracing.insights import answer_question  # noqa: PLC0415  as above

        return await answer_question(self._path, self._call, question_id, answer, confidence, evidence)

    def span(
        self, name: str, *, kind: str = "internal", attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[OpenSpan]:
        """Record the block as a child span of this call. Send its `headers` with outgoing requests.

        `name` and `kind` (internal, client, server, producer, consumer) are OpenTelemetry's; `attributes` may grow inside.
        """
        call = self._call
        fields = take({"name": name, "kind": kind}, "span", _decode_span)
        hide = None if self._path.answers is None else partial(self._path.answers.data, call)
        recorder = self._path.recorder
        return recorder.span(fields.name, call.request, kind=fields.kind, attributes=attributes, remote=call.remote, hide=hide)

    @property
    def traceparent(self) -> str:
        """This call's span as a W3C `traceparent` header; use `span` to give each outgoing request a span of its own."""
        return self._path.recorder.context(self._call.request, self._call.remote).traceparent

    @property
    def tracestate(self) -> str:
        """The W3C `tracestate` header that arrived with the call, to be passed on unchanged."""
        return "" if self._call.remote is None else self._call.remote.state

    async def once(self, target: str, capability: str, make: Callable[[], Awaitable[Reply[Result]]]) -> Reply[Result]:
        """Run `make` as a durable step: record its reply and return it.

        When the call is replayed after a crash or an approval, the recorded reply is returned and `make` is not called, unless
        the node died before the reply was on disk. Steps are numbered in the order in which they start.

        target, capability: names of the step in the audit and in traces, such as `"rates.example"`, `"fetch"`.
        make: returns the reply, for example `Reply.success(…)`. An exception is not recorded.
        """
        return await self._path.steps.once(self._call, target, capability, make)

    def _in_thread(self, function: Callable[[], Any]) -> Coroutine[Any, Any, Any]:
        """Run a plain function in a thread, which may use the `SyncContext` of this call."""
        return self._path.threads.run(self._call, function, {}, waits=True)

    def history(self, reference: str) -> tuple[Turn, ...]:
        """Return the turns that a history reference names, as far as this call's policy shows them.

        Raises `RefusedError` IDENTITY_MISMATCH, which is audited, if the session belongs to another user.
        """
        from comity.runtime.session.history import resolve_for  # noqa: PLC0415  few agents are given references

        return resolve_for(self._path, self._call, reference)

    def note(self, text: str) -> None:
        """Add a note on this call to the audit. It must not repeat content of users or agents."""
        taken, answers = take_text(text, "note"), self._path.answers
        self._path.steps.note(self._call, taken if answers is None else answers.trace(self._call, taken))

    def write(self) -> TextStream:
        """Begin a text that watchers of the call can follow; on a timeout the text so far is the reply's partial data."""
        return TextStream(self._call, self._path.answers, self._path.tell)

    def progress(self, data: Any) -> None:
        """Report progress to watchers. On a timeout the last report is the reply's partial data."""
        self._path.progress(self._call, unpack_long(self._hide(take(data, "progress", bytes))))

    @property
    def project_id(self) -> str:
        """The project this call works for: the node's (`COMITY_PROJECT`), else the tenant."""
        return self._path.recorder.settings.project_id or self._call.request.tenant_id

    @property
    def clock(self) -> Clock:
        """The node's clock; in a simulation its time is the simulation's."""
        return self._path.clock

    @property
    def left_ms(self) -> int:
        """Milliseconds until the deadline."""
        return max(self._call.request.deadline_at - self._path.now_ms(), 0)

    @property
    def tokens_left(self) -> int | None:
        """Tokens this call may still use; None if no limit is set."""
        return self._call.account.tokens_left()

    def report_usage(self, *, prompt_tokens: int = 0, completion_tokens: int = 0, model: str = "") -> None:
        """Charge `prompt_tokens` and `completion_tokens` to the tree's budget, with their cost by the node's `prices`.

        `model` is a name in those prices. Raises `RefusedError` if the budget had fewer tokens left; they count either way.

        The call's span records them: do not add them to a span of your own.
        """
        prompt = take_whole(prompt_tokens, "prompt_tokens", TOKENS_CEILING)
        completion = take_whole(completion_tokens, "completion_tokens", TOKENS_CEILING)
        model = take_text(model, "model", NAME_CHARS_MAX)
        before = self._call.reported or (0, 0)
        self._call.reported = (before[0] + prompt, before[1] + completion)
        self._charge(priced(Usage(prompt_tokens=prompt, completion_tokens=completion), model, self._path.prices))

    def _charge(self, usage: Usage) -> None:
        """Charge tokens. Raises as `report_usage` does."""
        if not self._path.charge(self._call, usage):
            self._call.hear("BUDGET_TOKENS_EXHAUSTED")
            raise RefusedError(
                f"{usage.total_tokens} tokens were more than the budget had left", code="BUDGET_TOKENS_EXHAUSTED"
            )

    def _hide(self, raw: bytes) -> bytes:
        """Return JSON without personal data, as it would be in a reply."""
        return raw if self._path.answers is None else self._path.answers.data(self._call, raw)
