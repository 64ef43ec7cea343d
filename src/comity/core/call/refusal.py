"""Why a call is refused, as a value."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Error

# How much of why a call was refused is kept in the audit.
REASON_CHARS_MAX: Final = 1_000


class Refused(Struct, frozen=True, gc=False):
    """Why not: the code of the rule, a sentence with the facts, and what the caller needs to act on it."""

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
        """It as the error that its caller reads."""
        return Error.of(
            self.code,
            self.message,
            retryable=self.retryable,
            retry_after_ms=self.retry_after_ms,
            problems=self.problems,
            facts=self.facts,
        )
