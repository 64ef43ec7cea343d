"""What a request passes between its admission and its callee: guardrails, the hiding of personal data, people's constraints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comity.core import guardrail
from comity.core.admission import Refused, told
from comity.core.envelope import Error
from comity.runtime.privacy import Privacy, conceal

if TYPE_CHECKING:
    from comity.core.guardrail import Guardrail
    from comity.core.guidance import Finding
    from comity.runtime.call import Call
    from comity.runtime.path import CallPath


def screen(
    path: CallPath,
    call: Call,
    body: bytes,
    findings: tuple[Finding, ...],
    guardrails: tuple[Guardrail, ...],
    privacy: Privacy | None,
) -> str | Refused:
    """Change the call into what its callee may see; return a note for the audit, or why it may not see it."""
    request, note = call.request, ""
    if guardrails:
        passed = guardrail.admit(request, guardrails)
        if isinstance(passed, Error):
            call.request = guardrail.unsaid(request)
            return Refused(passed.code, passed.message if privacy is None else privacy.hide_trace(passed.message))
        call.request = passed
    if privacy is not None and privacy.concerns(call.request, body, call.capability.clear):
        outcome = conceal(path, call, body, privacy)
        if isinstance(outcome, Refused):
            return outcome
        note = outcome
    if findings:
        call.warnings = tuple(map(str, findings))
        note = "; ".join(filter(None, (note, told(findings))))
    return note
