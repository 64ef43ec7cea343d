"""What a capability is given: the only way out of an agent, and what is left to spend."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Coroutine, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from comity.core.envelope import Background, Priority, Reply, Request
from comity.core.limits import INPUTS_BYTES_MAX, Limits
from comity.core.payload import pack, unpack
from comity.core.span import Kind
from comity.errors import RefusedError
from comity.runtime.arrival import Draft

if TYPE_CHECKING:
    from comity.core.guidance import Guidance
    from comity.core.insight import Evidence, Insight, Support
    from comity.runtime.call import Call
    from comity.runtime.path import CallPath
    from comity.runtime.recorder import OpenSpan
    from comity.runtime.sessions import SessionView


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
        """The session this call belongs to: what is known already, and where to note what this agent finds."""
        return self._path.session_of(self._call)

    @property
    def limits(self) -> Limits:
        """What is left from here: hops below, further parallel calls, milliseconds, and the tree's calls and tokens."""
        return self._path.left(self._call)

    @property
    def state(self) -> dict[str, Any]:
        """The agent's private state at this address. What it holds when the call settles is saved with the settlement."""
        self._call.uses_state = True
        return self._call.seat.data

    @property
    def guidance(self) -> Guidance:
        """What people want of this node's agents now; empty if the node has no guidance."""
        from comity.core.guidance import Guidance  # noqa: PLC0415  most agents never ask

        return Guidance() if self._path.guidance is None else self._path.guidance.current

    def call(
        self,
        target: str,
        capability: str,
        inputs: dict[str, Any] | None = None,
        *,
        objective: str = "",
        message: str = "",
        timeout_ms: int | None = None,
        priority: Priority | str | None = None,
        context: Background | None = None,
        limits: Limits | None = None,
        history: str | int = "none",
    ) -> Coroutine[Any, Any, Reply]:
        """Call another agent and wait for its reply. A refusal is a reply too; it says what to do instead."""
        draft = Draft(target, capability, inputs, objective, message, timeout_ms, priority, context, limits, history)
        return self._path.call_child(self._call, draft)

    async def gather(self, *calls: Awaitable[Reply]) -> list[Reply]:
        """Make calls in parallel and return their replies in order; one that fails does not stop the others."""
        return list(await asyncio.gather(*calls))

    @property
    def token(self) -> str:
        """A signed token with which an agent outside this process may call back on behalf of this call."""
        from comity.runtime.doors import token_for  # noqa: PLC0415  doors stand above the path, which makes contexts

        return token_for(self._call, self._path.identity_key)

    def use_tool(self, name: str, **inputs: Any) -> Coroutine[Any, Any, Any]:
        """Use a tool and return its result. Raises `RefusedError` if this agent or one above it may not use it."""
        return self._path.toolbox.use(self._path, self._call, name, inputs)

    def insight(
        self,
        insight_type: str,
        *,
        summary: str,
        confidence: float,
        audience: str = "both",
        rationale: str = "",
        evidence: Iterable[Evidence | Mapping[str, str]] = (),
        links: Iterable[Support] = (),
        supersedes: str = "",
        expires_at: int | str | None = None,
        applies_to: Iterable[str] = (),
        category: str = "",
        project_id: str = "",
    ) -> Insight:
        """Tell other agents and people what was found out; it stays in the store, linked to this call.

        The project is the one named here, else the node's (`COMITY_PROJECT`), else the tenant.
        """
        from comity.runtime.insights import emit  # noqa: PLC0415  most agents find out nothing

        fields = {
            "summary": summary, "confidence": confidence, "audience": audience, "rationale": rationale, "evidence": evidence,
            "links": links, "supersedes": supersedes, "expires_at": expires_at, "applies_to": applies_to, "category": category,
        }  # fmt: skip
        return emit(self._path, self._call, insight_type, project_id, fields)

    def span(
        self, name: str, *, kind: str = "internal", attributes: Mapping[str, Any] | None = None
    ) -> AbstractContextManager[OpenSpan]:
        """Record what happens inside as a span of its own under this call's. Its `headers` go with requests elsewhere."""
        call = self._call
        return self._path.recorder.span(name, call.request, kind=Kind(kind), attributes=attributes, remote=call.remote)

    @property
    def traceparent(self) -> str:
        """Where this call stands in its trace, as the W3C header; `span` gives each request elsewhere a place of its own."""
        return self._path.recorder.context(self._call.request, self._call.remote).traceparent

    @property
    def tracestate(self) -> str:
        """What other tracing systems sent along, to be passed on unchanged."""
        return "" if self._call.remote is None else self._call.remote.state

    def progress(self, data: Any) -> None:
        """Tell whoever watches how far this call is. The last thing told is kept as partial data if time runs out."""
        self._path.progress(self._call, unpack(pack(data, path="progress", bytes_max=INPUTS_BYTES_MAX)))

    def report_usage(self, *, prompt_tokens: int = 0, completion_tokens: int = 0) -> None:
        """Charge tokens to the tree's budget. Raises `RefusedError` if they were more than was left; they count either way."""
        if prompt_tokens < 0 or completion_tokens < 0:
            raise ValueError("tokens cannot be given back")
        if not self._path.charge(self._call, prompt_tokens, completion_tokens):
            used = prompt_tokens + completion_tokens
            raise RefusedError(f"{used} tokens were more than the budget had left", code="BUDGET_TOKENS_EXHAUSTED")
