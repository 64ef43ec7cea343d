"""Screens an admitted request before its callee sees it: guardrails, personal data, constraints of the guidance."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comity.core.call import guardrail
from comity.core.call.admission import Refused, told
from comity.core.document.slices import Sliced, whole
from comity.core.envelope.envelope import Error, Request, encode
from comity.errors import UnavailableError
from comity.runtime.agent.failure_log import log_place
from comity.runtime.call.slices import LONG_BYTES
from comity.runtime.session.privacy import Privacy, conceal
from comity.runtime.session.sessions import Sessions
from comity.runtime.session.vaults import SEALED_AT_ONCE

if TYPE_CHECKING:
    from comity.core.call.guardrail import Guardrail
    from comity.core.guidance.guidance import Finding
    from comity.runtime.call.call import Call


def screen(
    sessions: Sessions,
    call: Call,
    body: bytes,
    findings: tuple[Finding, ...],
    guardrails: tuple[Guardrail, ...],
    privacy: Privacy | None,
    *,
    is_concerned: bool | None,
) -> str | Refused | Sliced[str | Refused]:
    """Replace the call's request by what its callee may see; return a note for the audit, or the refusal of a guardrail.

    `is_concerned` says whether the request may hold personal data; None if its inputs are too long to test at once. For a long
    request that may hold some, return the sliced work that finds out; see `long_request`.
    """
    request, note = call.request, ""
    if guardrails:
        passed = guardrail.admit(request, guardrails)
        if isinstance(passed, Error):
            call.request = guardrail.unsaid(request)
            return Refused(passed.code, passed.message if privacy is None else privacy.hide_trace(passed.message))
        call.request, note = passed.request, passed.note
    if privacy is not None and (is_concerned is not False or call.request is not request):
        work = conceal(sessions, call, call.request, body, privacy)
        if is_concerned is None and call.request is request:
            work = _if_concerned(work, body, privacy)
        is_long = _is_long(call.request, body) or len(sessions.vault_of(call) or ()) > SEALED_AT_ONCE
        if is_long and not call.is_again:  # a replayed call must resume or end at once
            return _screened(call, work, note, findings)
        try:
            outcome = whole(work)
        except UnavailableError:
            raise
        except Exception as error:  # noqa: BLE001  a recogniser may be foreign code
            call.request = guardrail.unsaid(call.request)
            return unreadable(call, error)
        if isinstance(outcome, Refused):
            return outcome
        note = _joined(note, outcome)
    return _warned(call, note, findings) if findings else note


def unreadable(call: Call, error: Exception) -> Refused:
    """Return the refusal of a request whose search for personal data failed."""
    log_place(error, "the request %s could not be read", call.request.request_id)
    return Refused("INPUT_VALIDATION_FAILED", "the request could not be searched for personal data; the log has why")


def _is_long(request: Request, body: bytes) -> bool:
    said = len(body) + len(request.message)
    return said > LONG_BYTES or (request.context is not None and said + len(encode(request.context)) > LONG_BYTES)


def _if_concerned(work: Sliced[str | Refused], body: bytes, privacy: Privacy) -> Sliced[str | Refused]:
    """Do the work only if the inputs, the only content of the request, may hold personal data."""
    return (yield from work) if (yield from privacy.may_hold_sliced(body)) else ""


def _screened(call: Call, work: Sliced[str | Refused], note: str, findings: tuple[Finding, ...]) -> Sliced[str | Refused]:
    outcome = yield from work
    if isinstance(outcome, Refused):
        return outcome
    note = _joined(note, outcome)
    return _warned(call, note, findings) if findings else note


def _joined(*notes: str) -> str:
    return "; ".join(filter(None, notes))


def _warned(call: Call, note: str, findings: tuple[Finding, ...]) -> str:
    call.warnings = tuple(map(str, findings))
    return _joined(note, told(findings))
