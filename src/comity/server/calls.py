"""Calls over HTTP: made and waited for, made and left to run, looked at, followed and cancelled."""

from __future__ import annotations

import hashlib
from typing import Any, Final, NamedTuple

from msgspec import Struct

from comity import CallHandle
from comity.core.access import Principal, Right
from comity.core.call.limits import Limits
from comity.core.document.slices import ONE_GO_BYTES
from comity.core.envelope.envelope import Background, Error, Priority, Status
from comity.errors import CallerError, UnavailableError
from comity.runtime.call.events import Event
from comity.server.auth import Operator, tenant_of, user_of
from comity.server.connection import write_at_once
from comity.server.problem import unknown
from comity.server.routes import Ask, read_query
from comity.server.sight import event_without_content, reply_as_stored, sees_clear
from comity.server.state import State
from comity.server.status import status_of_reply
from comity.server.stream import frame
from comity.server.web import (
    JSON_TYPE,
    Heads,
    Reader,
    Receive,
    Scope,
    Send,
    check_json_type,
    encode,
    read_body,
    respond,
    retry_after,
)

_NORMAL: Final = Priority.NORMAL


class CallBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call to be made. `user_id` and `tenant_id` are the token's own where it is bound to a user or tenant."""

    target: str
    capability: str
    inputs: dict[str, Any] = {}
    user_id: str | None = None
    tenant_id: str | None = None
    session_id: str | None = None
    request_id: str | None = None
    timeout_ms: int | None = None
    objective: str = ""
    message: str = ""
    priority: Priority = _NORMAL
    limits: Limits | None = None
    correlation_id: str = ""
    parent_session_id: str | None = None
    context: Background | None = None
    tools: list[str] | None = None
    history: str | int = "full"


class CallQuery(Struct, frozen=True):
    """How a call is made."""

    wait: bool = True  # false: answer 202 at once and leave the call to run


class Started(Struct, frozen=True):
    """A call that was accepted and runs."""

    request_id: str
    status: str
    call: str
    events: str


_DEFAULT: Final = CallQuery()


class Sender(NamedTuple):
    """Who sends a request: its headers, whose token it has, and until when that holds."""

    heads: Heads
    principal: Principal
    who: str  # for the rate
    until: float


class CallDoor:
    """`POST /v1/calls` as bare ASGI: the hot route."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._reader = Reader(CallBody, lambda body: body.limits is None)  # whose defaults are written
        self._bytes_max = state.settings.body_bytes_max

    async def answer(self, scope: Scope, receive: Receive, send: Send, sender: Sender) -> int:
        """Make a call and answer with its reply, or with where to find it; return the status."""
        state, heads, principal = self._state, sender.heads, sender.principal
        if type(principal) is not Operator:
            principal.check(Right.CALLS_CREATE)
            principal.check_user()
        query = read_query(scope["query_string"], CallQuery) if scope["query_string"] else _DEFAULT
        raw = await read_body(receive, heads, self._bytes_max)
        check_json_type(heads)
        is_long = len(raw) >= ONE_GO_BYTES
        body: CallBody = await self._reader.read_long(raw) if is_long else self._reader.read(raw)
        if principal.scope.words:
            principal.check_call(body.target, body.capability)
        if state.is_draining:
            raise UnavailableError("the server is about to stop", code="NODE_CLOSED")
        options = options_of(principal, body, heads)
        headers: tuple[tuple[bytes, bytes], ...] = ()
        if (request_id := options["request_id"]) is not None:
            scope["comity.request_id"] = request_id
            is_known = state.node.find_call(request_id, tenant_id=options["tenant_id"], user_id=options["user_id"])
            headers = ((b"comity-replayed", b"true"),) if is_known is not None else ()
        if not query.wait or b"respond-async" in heads.prefer:
            handle = state.node.start_call(body.target, body.capability, body.inputs, **options)
            if (refusal := handle.refusal) is None:
                state.keep(handle)
                place = _location(handle.request_id)
                await respond(send, 202, encode(started(handle.request_id)), JSON_TYPE, (place, *headers))
                return 202
            reply = refusal  # nothing runs that could be followed
        else:
            reply = await state.node.call_written(body.target, body.capability, body.inputs, **options)
        request_id = reply.request_id
        if request_id.isascii() and request_id.isprintable():
            headers = ((b"comity-request-id", request_id.encode()), *headers)
        if reply.status is Status.SUCCESS:
            status = 200
        else:
            status = status_of_reply(reply)
            if status in {429, 503}:
                after_ms = reply.error.retry_after_ms if reply.error is not None else None
                headers = (retry_after(after_ms), *headers)
        written = encode(reply)
        if not write_at_once(send, status, written, headers):
            await respond(send, status, written, JSON_TYPE, headers)
        return status


def options_of(principal: Principal, body: CallBody, heads: Heads) -> dict[str, Any]:
    """Return the options of `Node.call` for a body: as the token allows, in the trace of the request's headers."""
    user_id, tenant_id = user_of(principal, body.user_id), tenant_of(principal, body.tenant_id)
    options: dict[str, Any] = {
        "user_id": user_id,
        "tenant_id": tenant_id,
        "session_id": body.session_id,
        "request_id": body.request_id if heads.idempotency_key is None else _request_id(body, heads, tenant_id, user_id),
    }
    if body.timeout_ms is not None:
        options["timeout_ms"] = body.timeout_ms
    if body.priority is not _NORMAL:
        options["priority"] = body.priority
    for name in ("objective", "message", "correlation_id"):
        if value := getattr(body, name):
            options[name] = value
    for name in ("limits", "parent_session_id", "context", "tools"):
        if (value := getattr(body, name)) is not None:
            options[name] = value
    if body.history != "full":
        options["history"] = body.history
    if heads.traceparent:
        options["traceparent"] = [one.decode("latin-1") for one in heads.traceparent]
        options["tracestate"] = [one.decode("latin-1") for one in heads.tracestate]
    return options


def _request_id(body: CallBody, heads: Heads, tenant_id: str, user_id: str) -> str:
    """Return the request id that an `Idempotency-Key` stands for, within the name space of its user."""
    key = (heads.idempotency_key or b"").decode("latin-1").strip().strip('"')
    if not key or len(key) > 255 or not key.isprintable():
        raise CallerError("Idempotency-Key must be a text of 1 to 255 characters", code="ENVELOPE_MALFORMED")
    if body.request_id is not None:
        if body.request_id != key:
            raise CallerError("Idempotency-Key and request_id differ: give one of them", code="ENVELOPE_MALFORMED")
        return key
    digest = hashlib.sha256("\x1f".join((tenant_id, user_id, key)).encode(errors="replace")).hexdigest()
    return f"key-{digest[:40]}"


def started(request_id: str) -> Started:
    """Return where a call that runs can be looked at and followed."""
    return Started(request_id, "running", f"/v1/calls/{request_id}", f"/v1/calls/{request_id}/events")


def _location(request_id: str) -> tuple[bytes, bytes]:
    return b"location", f"/v1/calls/{request_id}".encode(errors="replace")


# --- a dry run ---


class DryRun(Struct, frozen=True):
    """Whether a call would be admitted: the rules that pass, in order, then the rule that refuses it, and its error."""

    admitted: bool
    passed: tuple[str, ...]
    rule: str
    error: Error | None


async def rehearse(ask: Ask) -> DryRun:
    """Ask the admission rules about a call that is not made."""
    body: CallBody = ask.body
    ask.principal.check_user()
    ask.principal.check_call(body.target, body.capability)
    options = options_of(ask.principal, body, ask.heads)
    for name in ("request_id", "traceparent", "tracestate"):
        options.pop(name, None)
    found = ask.state.node.rehearse(body.target, body.capability, body.inputs, **options)
    return DryRun(found.error is None, found.passed, found.rule, found.error)


# --- one call ---


class Cancelled(Struct, frozen=True):
    """Whether a call was still under way when it was cancelled."""

    request_id: str
    cancelled: bool


class AfterQuery(Struct, frozen=True):
    """From where events are wanted; `Last-Event-ID` says the same."""

    after: int = 0


def handle_of(ask: Ask) -> CallHandle[Any] | None:
    """Return the handle of the call that a path names, if the sender may see it."""
    request_id = ask.params["request_id"]
    found = ask.state.node.find_call(request_id, tenant_id=ask.tenant())
    if found is None:
        return None
    return ask.state.kept(found)


async def cancel(ask: Ask) -> Cancelled:
    """Cancel a call and everything below it."""
    handle = handle_of(ask)
    if handle is None:
        raise unknown("call", ask.params["request_id"])
    return Cancelled(handle.request_id, handle.cancel())


async def follow(ask: Ask) -> None:
    """Stream what happens in a call and below it, then its reply."""
    handle = handle_of(ask)
    if handle is None:
        raise unknown("call", ask.params["request_id"])
    after, log = after_of(ask), handle.log
    events = log.since(0)
    if after and log.is_closed and (not events or events[-1].seq < after):
        message = f"the events of {handle.request_id} are gone; GET /v1/calls/{handle.request_id} has its end"
        raise CallerError(message, code="HTTP_EVENTS_GONE")

    is_clear = handle.asked is not None and sees_clear(ask.principal, handle.asked)

    def show(event: Event) -> bytes:
        return frame(event.kind, event if is_clear else event_without_content(event), event.seq)

    async def end() -> bytes:
        reply = await handle.reply()
        return frame("reply", reply if is_clear else await reply_as_stored(ask.state, handle.request_id, reply))

    await ask.state.streams.serve(ask.scope, ask.send, log, after, show, end)


def after_of(ask: Ask) -> int:
    """Return the number of the last event that a client has seen."""
    told = ask.heads.last_event_id
    if told is None:
        return max(0, int(ask.query.after))
    if not told.isdigit() or len(told) > 18:
        raise CallerError("Last-Event-ID must be a number that this stream gave", code="HTTP_QUERY_INVALID")
    return int(told)


async def unrouted(_ask: Ask) -> None:
    """Stand for `POST /v1/calls` in the table of routes; `CallDoor` answers it."""
    raise AssertionError("the call door answers before the table is asked")
