"""Logs exceptions of agents and tools: traceback without personal data, of bounded length."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable
from typing import Final

log = logging.getLogger("comity")

TRACE_CHARS_MAX: Final = 20_000  # traceback length: redaction blocks the event loop
_WORD_CHARS_MAX: Final = 500  # dropped at each side of a cut, so that no value is cut in two and escapes redaction
HideText = Callable[[str], str]


def log_raised(raised: BaseException, hide: HideText | None, what: str, *names: object) -> None:
    """Log an exception of an agent or a tool, with personal data removed from its traceback.

    `hide` removes personal data from a text; if it is None the exception is logged unchanged.
    """
    if hide is None:
        log.error(what, *names, exc_info=raised)
        return
    try:
        trace = "".join(traceback.format_exception(raised))
        hidden = hide(_clipped(trace))
    except Exception:  # noqa: BLE001  what an exception says of itself is foreign code
        log.error(f"{what}; its traceback cannot be shown", *names)  # noqa: TRY400  a constant of the caller
        return
    if hidden == trace:
        log.error(what, *names, exc_info=raised)
    else:
        log_trace(hidden, None, what, *names)


def log_trace(trace: str, hide: HideText | None, what: str, *names: object) -> None:
    """Log a traceback that came as text."""
    log.error(f"{what}\n%s", *names, trace if hide is None else hide(_clipped(trace)))


def log_place(raised: BaseException, what: str, *names: object) -> None:
    """Log the type of an exception and where it was raised, without its message, which may quote personal data."""
    log.error(f"{what}: %s\n%s", *names, type(raised).__name__, "".join(traceback.format_tb(raised.__traceback__)))


def _clipped(trace: str) -> str:
    if len(trace) <= TRACE_CHARS_MAX:
        return trace
    head, tail = trace[: TRACE_CHARS_MAX // 2], trace[-TRACE_CHARS_MAX // 2 :]
    before = max(head.rfind(" "), head.rfind("\n"), len(head) - _WORD_CHARS_MAX)
    after = min(at for at in (tail.find(" "), tail.find("\n"), _WORD_CHARS_MAX) if at >= 0)
    return f"{head[:before]} […] {tail[after:]}"
