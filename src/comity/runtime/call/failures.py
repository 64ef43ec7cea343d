"""Turns exceptions of an agent's code into typed errors without personal data, for the caller and the user."""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING

from comity.core.agent.disclosure import spoken, spoken_of_code
from comity.core.document.foreign_errors import error_of, told
from comity.core.document.payload import PayloadError
from comity.core.envelope.envelope import Error
from comity.core.envelope.reserved import is_raised_by_platform, is_reserved, passed_on, reserved_error
from comity.errors import Breaker as Effect
from comity.errors import ComityError, breaker_effect
from comity.runtime.agent.failure_log import log_raised

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.session.privacy import Answers

log = logging.getLogger("comity")


def classify(raised: BaseException, call: Call, hide: Answers | None) -> Error:
    """Return the error that the caller gets for an exception of an agent's code."""
    try:
        return _meaning(raised, call, hide)
    except Exception:  # noqa: BLE001  `str()` or `repr()` of a foreign exception may itself raise, also inside `logging`
        return Error.of("TARGET_CRASHED", f"{call.request.target} raised {type(raised).__name__}, which cannot be looked at")


def _meaning(raised: BaseException, call: Call, hide: Answers | None) -> Error:
    where = f"{call.request.target} {call.request.capability}"
    call.gave_up = isinstance(raised, TimeoutError)
    if isinstance(raised, ComityError):
        try:
            return _raised_error(raised, call)
        except PayloadError as error:
            what = f"{where} raised {type(raised).__name__} with what cannot be recorded: {error}"
            return Error.of("OUTPUT_VALIDATION_FAILED", what, problems=error.problems)
    if isinstance(raised, PayloadError):
        return Error.of(raised.code, f"{where} answered badly: {raised}", problems=raised.problems)
    if isinstance(raised, (TimeoutError, ConnectionError)):
        return Error.of("TARGET_TEMPORARY_FAILURE", f"{where}: {told(raised)}")
    hide_text = None if hide is None else partial(hide.trace, call)
    log_raised(raised, hide_text, "%s raised (request %s)", where, call.request.request_id)
    return Error.of("TARGET_CRASHED", f"{where} raised {told(raised)}")


def _raised_error(raised: ComityError, call: Call) -> Error:
    error = error_of(raised)
    if not is_reserved(error.code) or is_raised_by_platform(raised):
        return error
    if call.told is not None and error.code in call.told:
        return passed_on(error, call.request.target)
    return reserved_error(f"{call.request.target} raised the code {error.code}", error.message)


def is_fault(error: Error) -> bool:
    """Return whether an error that an implementation returned is a failure of it (so a fallback may run), not an answer."""
    return breaker_effect(error.code, retryable=error.retryable) is not Effect.IGNORES


def hidden(hide: Answers, call: Call, error: Error) -> Error:
    """Return an error without personal data; without its text if the session's vault cannot be read."""
    try:
        return hide.error(call, error)
    except ComityError as unread:  # without the vault nothing can be hidden reliably, so the text is dropped
        log.error("why %s failed is not told: %s", call.request.request_id, unread)  # noqa: TRY400  no fault of the agent
        return Error.of(error.code, "why it failed cannot be told now", retryable=error.retryable)


def message_of(error: Error, *, is_told: bool) -> str:
    """Return the message for the user: the text of an error that an agent raised on purpose, never the text of an exception."""
    return spoken(error, error.message) if is_told else spoken_of_code(error)
