"""Guardrails: checks on every hop, on the way in and on the way out, alike for a user's call and an agent's.

A guardrail is a plain function. It sees a request before the callee does, or a reply before the caller does, and returns what
is to happen: a verdict, and nothing passes for want of one. Several are asked in order; each sees what the one before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from comity.core.envelope import Error, Reply, Request, Status
from comity.core.failure import ENDINGS, told
from comity.core.journal import fingerprint


class Allow(Struct, frozen=True):
    """Nothing to object to."""


class Rewrite(Struct, frozen=True):
    """Let it pass with another message."""

    message: str


class Redact(Struct, frozen=True):
    """Let it pass without its message; the data stays for the agent that asked."""

    notice: str = "The message was withheld."


class Fail(Struct, frozen=True):
    """Force the reply's status to error; on the way in, the same as `Stop`."""

    reason: str


class Stop(Struct, frozen=True):
    """Do not let it pass."""

    reason: str


Verdict = Allow | Rewrite | Redact | Fail | Stop
Inbound = Callable[[Request], Verdict]
Outbound = Callable[[Request, Reply], Verdict]


class Guardrail(Struct, frozen=True, kw_only=True):
    """One named check; either side may be missing."""

    name: str
    inbound: Inbound | None = None
    outbound: Outbound | None = None


def admit(request: Request, guardrails: Sequence[Guardrail]) -> Request | Error:
    """Return the request as the callee may see it, or why it may not."""
    asked = request
    for guardrail in guardrails:
        if guardrail.inbound is None:
            continue
        try:
            verdict = guardrail.inbound(request)
        except ENDINGS:
            raise
        except BaseException as raised:  # noqa: BLE001  foreign code can fail in any way; nothing may pass because of it
            verdict = Stop(f"it failed with {told(raised)}")
        match verdict:
            case Allow():  # first, since most do
                continue
            case Rewrite(str(message)):
                request = replace(request, message=message)
            case Redact(str(notice)):
                request = replace(request, message=notice)
            case Fail(reason) | Stop(reason):
                return _stopped(guardrail, reason)
            case _:
                return _stopped(guardrail, _no_verdict(verdict))
    # Asked again it is still the same, whatever was made of it.
    return request if request is asked else replace(request, fingerprint=fingerprint(asked))


def release(request: Request, reply: Reply, guardrails: Sequence[Guardrail]) -> Reply:
    """Return the reply as the caller may see it. What a guardrail stops keeps neither data nor message."""
    for guardrail in guardrails:
        if guardrail.outbound is None:
            continue
        try:
            verdict = guardrail.outbound(request, reply)
        except ENDINGS:
            raise
        except BaseException as raised:  # noqa: BLE001  as on the way in
            verdict = Stop(f"it failed with {told(raised)}")
        match verdict:
            case Allow():
                continue
            case Rewrite(str(message)):
                reply = replace(reply, message=message)
            case Redact(str(notice)):
                reply = replace(reply, message=notice, summary="", thought="")
            case Fail(reason):
                reply = replace(reply, status=Status.ERROR, error=_stopped(guardrail, reason))
            case _:
                error = _stopped(guardrail, verdict.reason if isinstance(verdict, Stop) else _no_verdict(verdict))
                return Reply(status=Status.ERROR, error=error, message=error.message)
    return reply


def _stopped(guardrail: Guardrail, reason: str) -> Error:
    return Error.of("GUARDRAIL_STOPPED", f"{guardrail.name}: {reason}")


def _no_verdict(returned: Any) -> str:
    """Return what is wrong with what a guardrail returned; not its content, which may repeat what it was to hold back."""
    if isinstance(returned, Coroutine):
        returned.close()  # nobody will await it, which Python would complain of besides
        return "it is an async function; a guardrail must be a plain one"
    if isinstance(returned, (Rewrite, Redact)):
        return f"it returned a {type(returned).__name__} whose text is no text"
    what = repr(returned) if returned is None or isinstance(returned, bool) else f"a value of type {type(returned).__name__}"
    return f"it returned {what}, not Allow, Rewrite, Redact, Fail or Stop"
