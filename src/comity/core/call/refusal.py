"""Why a call is refused, as a value."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Error, Request
from comity.core.journal.records import fingerprint

# How much of why a call was refused is kept in the audit.
REASON_CHARS_MAX: Final = 1_000
# The names in the request are its caller's words, and not those of a registered agent or capability.
UNKNOWN_NAMES: Final = frozenset({"ROUTING_UNKNOWN_AGENT", "ROUTING_UNKNOWN_CAPABILITY"})


class Refused(Struct, frozen=True, gc=False):
    """The refusal of a call: the rule's code, a sentence with the facts, and what the caller needs to act on it."""

    code: str
    message: str
    retry_after_ms: int | None = None
    problems: tuple[Problem, ...] = ()
    note: str = ""  # for the audit
    retryable: bool | None = None  # None: as the code says
    facts: dict[str, Any] | None = None  # what the message says, for programs

    @property
    def reason(self) -> str:
        """Why, for the audit: the message with every problem, without personal data, at most `REASON_CHARS_MAX` long."""
        from comity.core.redaction import scrub  # noqa: PLC0415  slow to import, and most calls are not refused

        told = "; ".join(f"{one.path}: {one.message}" for one in self.problems) or self.message
        whole = "; ".join(filter(None, (self.note, scrub(told))))
        return whole if len(whole) <= REASON_CHARS_MAX else f"{whole[: REASON_CHARS_MAX - 1]}…"

    @property
    def error(self) -> Error:
        """The refusal as the caller's error."""
        return Error.of(
            self.code,
            self.message,
            retryable=self.retryable,
            retry_after_ms=self.retry_after_ms,
            problems=self.problems,
            facts=self.facts,
        )


def as_recorded(request: Request, refused: Refused) -> tuple[Request, Refused]:
    """Return a refused request and its refusal as the store and spans may hold them: no personal data in unknown names."""
    if refused.code not in UNKNOWN_NAMES:
        return request, refused
    from comity.core.redaction import scrub  # noqa: PLC0415  as above

    target, capability = scrub(request.target), scrub(request.capability)
    if (target, capability) == (request.target, request.capability):
        return request, refused
    hidden = replace(request, target=target, capability=capability, fingerprint=fingerprint(request))
    return hidden, replace(refused, message=scrub(refused.message))
