"""Guardrails: checks on every hop, on the way in and on the way out, alike for a user's call and an agent's.

A guardrail sees a request before the callee does, or a reply before the caller does, and returns a verdict; anything else stops
the message. Several guardrails are asked in order; each sees what the one before it left.

A verdict that replaces a message leaves no copy of it: every other text that the callee wrote into its reply (warnings, the
message of its error, thought, artifacts, facts, sources, metadata) is left out as well. `data` stays for the agent that asked.
`FATE` says what happens to each field of a reply.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterable, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.agent.declaration import DeclarationError, shown
from comity.core.document.foreign_errors import ENDINGS
from comity.core.envelope.envelope import Background, Error, Reply, Request, Status
from comity.core.envelope.reserved import CYCLE_TARGET, TRANSFER_FROM
from comity.core.journal.records import fingerprint

WITHHELD: Final = "The message was withheld."


class Allow(Struct, frozen=True):
    """Let the message pass unchanged."""


class Rewrite(Struct, frozen=True):
    """Let it pass with another message; `keep` names the other fields of a reply that stay as the callee wrote them."""

    message: str
    keep: tuple[str, ...] = ()


class Redact(Struct, frozen=True):
    """Let it pass without its message; the data stays for the agent that asked. `keep` is as for `Rewrite`."""

    notice: str = WITHHELD
    keep: tuple[str, ...] = ()


class Fail(Struct, frozen=True):
    """Force the reply's status to error; message and data stay. On the way in, the same as `Stop`."""

    reason: str


class Stop(Struct, frozen=True):
    """Do not let it pass."""

    reason: str


Verdict = Allow | Rewrite | Redact | Fail | Stop
Inbound = Callable[[Request], Verdict]
Outbound = Callable[[Request, Reply], Verdict]


class Guardrail(Struct, frozen=True, kw_only=True):
    """One named check: `inbound(request)`, `outbound(request, reply)`, or both. Both are plain functions.

    With an `outbound` check, watchers see text and progress of a call once its reply has passed. `streams=True` shows them
    while the call runs: what was shown cannot be withheld any more.
    """

    name: str
    inbound: Inbound | None = None
    outbound: Outbound | None = None
    streams: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise DeclarationError(f"the name of a guardrail must be text that is not empty, not {shown(self.name)}")
        if self.inbound is None and self.outbound is None:
            raise DeclarationError(f"the guardrail {self.name} checks nothing: give it inbound=… or outbound=…")
        _check_side(self.name, "inbound", self.inbound, "request")
        _check_side(self.name, "outbound", self.outbound, "request", "reply")

    @classmethod
    def of(cls, function: Callable[..., Verdict]) -> Guardrail:
        """Return a plain function as a guardrail: `f(request)` is asked on the way in, `f(request, reply)` on the way out."""
        name = getattr(function, "__name__", type(function).__name__)
        if _takes(function, "request"):
            return cls(name=name, inbound=function)
        if _takes(function, "request", "reply"):
            return cls(name=name, outbound=function)
        raise DeclarationError(f"the guardrail {name} must take (request) or (request, reply)")


def checked_guardrails(given: Iterable[Guardrail | Callable[..., Verdict]]) -> tuple[Guardrail, ...]:
    """Return the guardrails that a node was given, plain functions among them. Raises `DeclarationError` for anything else."""
    found: list[Guardrail] = []
    for one in given if isinstance(given, Iterable) else (given,):
        if isinstance(one, Guardrail):
            found.append(one)
        elif callable(one) and not isinstance(one, type):
            found.append(Guardrail.of(one))
        else:
            hint = "make it with Guardrail(name=…, inbound=…) or give a function that takes (request) or (request, reply)"
            raise DeclarationError(f"guardrails must be a list of guardrails; {shown(one)} is none: {hint}")
    return tuple(found)


def redact_failures(*, sensitive: Callable[[Any], bool] | None = None, notice: str = WITHHELD) -> Guardrail:
    """Return a guardrail that withholds the texts of a failed reply, or only where `sensitive(reply.data)`; the data stays."""

    def check(request: Request, reply: Reply) -> Verdict:  # noqa: ARG001  every guardrail is given the request
        if reply.status is Status.ERROR and (sensitive is None or sensitive(reply.data)):
            return Redact(notice)
        return Allow()

    return Guardrail(name="redact_failures", outbound=check)


class Passed(Struct, frozen=True):
    """A request as its callee may see it, and an audit note on the guardrails that changed it."""

    request: Request
    note: str


def admit(request: Request, guardrails: Sequence[Guardrail]) -> Passed | Error:
    """Run the inbound guardrails; return the request for the callee, or the error of a guardrail that stopped it."""
    asked, notes = request, []
    for guardrail in guardrails:
        if guardrail.inbound is None:
            continue
        try:
            verdict = guardrail.inbound(request)
        except ENDINGS:
            raise
        except BaseException as raised:  # noqa: BLE001  foreign code can fail in any way; nothing may pass because of it
            verdict = _failed(raised)
        match verdict:
            case Allow():  # first: the usual verdict
                continue
            case Rewrite(str(message)) | Redact(str(message)):
                request = _replaced(request, message)
                notes.append(_told(guardrail, verdict, "request"))
            case Fail(reason) | Stop(reason):
                return _stopped(guardrail, reason)
            case _:
                return _stopped(guardrail, _no_verdict(verdict))
    # The fingerprint is that of the original request, so a retry is recognized.
    passed = request if request is asked else replace(request, fingerprint=fingerprint(asked))
    return Passed(passed, "; ".join(notes))


def unsaid(request: Request) -> Request:
    """Return a stopped request for the record, without its content."""
    return replace(
        request, message="", objective="", body=msgspec.Raw(b"{}"), context=None, metadata={}, fingerprint=fingerprint(request)
    )


class Released(Struct, frozen=True):
    """A reply as its caller may see it, whether a guardrail withheld content, and the audit note."""

    reply: Reply
    is_withheld: bool
    note: str


def release(request: Request, reply: Reply, guardrails: Sequence[Guardrail]) -> Released:
    """Run the outbound guardrails; return the reply for the caller. A stopped reply has neither data nor message."""
    is_withheld, notes = False, []
    for guardrail in guardrails:
        if guardrail.outbound is None:
            continue
        try:
            verdict = guardrail.outbound(request, reply)
        except ENDINGS:
            raise
        except BaseException as raised:  # noqa: BLE001  as on the way in
            verdict = _failed(raised)
        match verdict:
            case Allow():
                continue
            case Rewrite(str(message), keep) | Redact(str(message), keep):
                reply, is_withheld = _withheld(reply, message, keep), True
                notes.append(_told(guardrail, verdict, "reply"))
            case Fail(reason):
                reply = replace(reply, status=Status.ERROR, error=_stopped(guardrail, reason))
                notes.append(_told(guardrail, verdict, "reply"))
            case _:
                error = _stopped(guardrail, verdict.reason if isinstance(verdict, Stop) else _no_verdict(verdict))
                notes.append(_told(guardrail, Stop(""), "reply"))
                return Released(Reply(status=Status.ERROR, error=error, message=error.message), True, "; ".join(notes))
    return Released(reply, is_withheld, "; ".join(notes))


_DEEDS: Final[dict[type, str]] = {Rewrite: "rewrote", Redact: "withheld the message of", Fail: "failed", Stop: "stopped"}


def _told(guardrail: Guardrail, verdict: Verdict, what: str) -> str:
    """Return an audit note on a verdict, without the message's content."""
    return f"guardrail {guardrail.name} {_DEEDS[type(verdict)]} the {what}"


# --- what is left where a message is replaced -----------------------------------------------------------------------------

STAYS: Final = "stays"  # no words of the callee
REPLACED: Final = "replaced"  # by the guardrail's own message
EMPTIED: Final = "emptied"

# What happens to each field of a reply. A test compares this table with `Reply`, so that no new field is forgotten.
FATE: Final = {
    "status": STAYS,
    "data": STAYS,  # for the agent that asked, as SACP says
    "message": REPLACED,
    "confidence": STAYS,
    "warnings": REPLACED,  # a partial reply carries at least one
    "error": REPLACED,  # its texts; the code stays
    "usage": STAYS,
    "request_id": STAYS,
    "duration_ms": STAYS,
    "degraded": STAYS,
    "version": STAYS,
    "source": STAYS,
    "session_id": STAYS,
    "summary": EMPTIED,
    "thought": EMPTIED,
    "next_step_hint": EMPTIED,
    "requires_followup": STAYS,
    "artifacts": EMPTIED,
    "new_facts": EMPTIED,
    "sources": EMPTIED,
    "metadata": EMPTIED,  # but for the names of the platform itself
}
_OWN_METADATA: Final = frozenset({"sacp.status", CYCLE_TARGET, TRANSFER_FROM})


def _withheld(reply: Reply, message: str, keep: Sequence[str]) -> Reply:
    blank = Reply(status=Status.NEEDS_INPUT)
    changes: dict[str, Any] = {name: getattr(blank, name) for name, fate in FATE.items() if fate is EMPTIED}
    changes["metadata"] = {name: value for name, value in reply.metadata.items() if name in _OWN_METADATA}
    changes["message"] = message
    if reply.warnings:
        changes["warnings"] = (message or WITHHELD,)
    if reply.error is not None:
        changes["error"] = Error.of(
            reply.error.code,
            message or WITHHELD,
            retryable=reply.error.retryable,
            retry_after_ms=reply.error.retry_after_ms,
        )
    return replace(reply, **{name: value for name, value in changes.items() if name not in keep or name == "message"})


def _replaced(request: Request, message: str) -> Request:
    """Return a request with another message; copies of the original in objective and context are replaced too."""
    said = request.message
    changes: dict[str, Any] = {"message": message}
    if said and said in request.objective:
        changes["objective"] = request.objective.replace(said, message)
    if said and request.context is not None:
        changes["context"] = msgspec.convert(_without(msgspec.to_builtins(request.context), said, message), Background)
    return replace(request, **changes)


def _without(value: Any, said: str, message: str) -> Any:
    if isinstance(value, str):
        return value.replace(said, message)
    if isinstance(value, dict):
        return {key: _without(inner, said, message) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without(inner, said, message) for inner in value]
    return value


# --- what is wrong with a guardrail ---------------------------------------------------------------------------------------


def _check_side(name: str, side: str, function: Any, *arguments: str) -> None:
    if function is None:
        return
    if not callable(function):
        raise DeclarationError(f"{side} of the guardrail {name} must be a function, not {shown(function)}")
    if inspect.iscoroutinefunction(function):
        raise DeclarationError(f"{side} of the guardrail {name} is an async function; a guardrail must be a plain one")
    if not _takes(function, *arguments):
        raise DeclarationError(f"{side} of the guardrail {name} must take ({', '.join(arguments)})")


def _takes(function: Callable[..., Any], *arguments: str) -> bool:
    """Return whether a function takes these arguments; True for a function without a signature."""
    try:
        inspect.signature(function).bind(*arguments)
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def _failed(raised: BaseException) -> Stop:
    # Without the exception's text: it may quote the content that was to be withheld.
    return Stop(f"it failed with {type(raised).__name__}")


def _stopped(guardrail: Guardrail, reason: str) -> Error:
    return Error.of("GUARDRAIL_STOPPED", f"{guardrail.name}: {reason}")


def _no_verdict(returned: Any) -> str:
    """Return why a guardrail's return value is no verdict, without quoting it: it may hold content to be withheld."""
    if isinstance(returned, Coroutine):
        returned.close()  # avoids the warning "coroutine was never awaited"
        return "it is an async function; a guardrail must be a plain one"
    if isinstance(returned, (Rewrite, Redact)):
        return f"it returned a {type(returned).__name__} whose text is no text"
    what = repr(returned) if returned is None or isinstance(returned, bool) else f"a value of type {type(returned).__name__}"
    return f"it returned {what}, not Allow, Rewrite, Redact, Fail or Stop"
