"""Guardrails: checks on every hop, on the way in and on the way out, alike for a user's call and an agent's.

A guardrail is a plain function. It sees a request before the callee does, or a reply before the caller does, and returns what
is to happen. Several are asked in order; each sees what the one before it left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from comity.core.envelope import Error, Reply, Request, Status
from comity.core.failure import ENDINGS, told


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
            case Rewrite(message):
                request = replace(request, message=message)
            case Redact(notice):
                request = replace(request, message=notice)
            case Fail(reason) | Stop(reason):
                return Error.of("GUARDRAIL_STOPPED", f"{guardrail.name}: {reason}")
    return request


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
            case Rewrite(message):
                reply = replace(reply, message=message)
            case Redact(notice):
                reply = replace(reply, message=notice, summary="", thought="")
            case Fail(reason):
                error = Error.of("GUARDRAIL_STOPPED", f"{guardrail.name}: {reason}")
                reply = replace(reply, status=Status.ERROR, error=error)
            case Stop(reason):
                error = Error.of("GUARDRAIL_STOPPED", f"{guardrail.name}: {reason}")
                return Reply(status=Status.ERROR, error=error, message=error.message)
    return reply
