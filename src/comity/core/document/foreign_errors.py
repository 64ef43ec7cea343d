"""What foreign code raises: which exceptions are its own failure, and how an error describes them."""

from __future__ import annotations

from typing import Final

from comity.core.call.limits import WHOLE_MAX
from comity.core.document.checks import read
from comity.core.document.payload import PayloadError, Problem
from comity.core.envelope.envelope import Error, decode_error
from comity.errors import ComityError

# Not a failure of the code it passes through: the user ends the program. `SystemExit` is none: code that calls `sys.exit`
# in one agent must not take the others with it. Nor is `GeneratorExit`, which no caller can throw into a plain function.
ENDINGS: Final = (KeyboardInterrupt,)
# Facts of an error of ours that the caller gets when an agent lets it pass. Others may be anything, and stay with the agent.
_PASSED_ON: Final = (
    "depth", "depth_max", "caller", "target", "chain", "calls", "fan_out_max", "timeout_ms", "estimated", "tokens_max",
    "agent", "tool",
)  # fmt: skip


def told(raised: BaseException) -> str:
    """Return an exception in words: its type, and what it says."""
    name = type(raised).__name__
    try:
        if isinstance(raised, SystemExit):
            return f"SystemExit: its code called sys.exit({'' if raised.code is None else repr(raised.code)})"
        text = str(raised)
    except BaseException:  # noqa: BLE001  also what it says of itself is foreign code
        return f"{name}, which cannot be shown as text"
    return f"{name}: {text}" if text else name


def error_of(raised: ComityError) -> Error:
    """Return what an agent's error says. Raises `PayloadError` if it could not be written and read again."""
    problems, retry_after_ms = raised.facts.get("problems", ()), raised.retry_after_ms
    if retry_after_ms is not None and (type(retry_after_ms) is not int or not 0 <= retry_after_ms <= WHOLE_MAX):
        problem = Problem("error.retry_after_ms", f"must be a whole number from 0 to {WHOLE_MAX:,}")
        raise PayloadError("OUTPUT_VALIDATION_FAILED", (problem,))
    error = Error.of(
        raised.code,
        raised.message,
        retryable=raised.retryable,
        retry_after_ms=retry_after_ms,
        problems=problems if isinstance(problems, tuple) else (),
        facts={name: raised.facts[name] for name in _PASSED_ON if name in raised.facts},
    )
    return read(error, "error", decode_error)
