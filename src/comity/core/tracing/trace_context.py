"""W3C Trace Context: which trace a call belongs to, read from and written as the headers `traceparent` and `tracestate`.

What cannot be read is treated as absent, as the recommendation asks: a broken header must never break a call. A state with
one bad member is dropped whole, and so is a state without a readable parent.
"""

from __future__ import annotations

import re
from typing import Any, Final

from msgspec import Struct

SAMPLED: Final = 0x01
RANDOM: Final = 0x02  # level 2: the last 7 bytes of the trace id are random
STATE_MEMBERS_MAX: Final = 32
TRACEPARENT, TRACESTATE = "traceparent", "tracestate"

_KNOWN_FLAGS: Final = SAMPLED | RANDOM
_PARENT: Final = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.DOTALL)
_MEMBER: Final = re.compile(r"([0-9a-z][0-9a-z_*/@-]{0,255})=([ -+\--<>-~]{0,255}[!-+\--<>-~])")
_BLANKS: Final = " \t"


class TraceContext(Struct, frozen=True):
    """One position in a trace: a span that further spans hang under."""

    trace_id: str
    span_id: str
    flags: int = SAMPLED
    state: str = ""
    is_local: bool = False  # it is a span of this process

    @property
    def is_sampled(self) -> bool:
        """Whether the process that began the trace records it."""
        return bool(self.flags & SAMPLED)

    @property
    def traceparent(self) -> str:
        """The header that says so."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags & _KNOWN_FLAGS:02x}"


def read(traceparent: Any, tracestate: Any = None) -> TraceContext | None:
    """Return what the headers say, each a text or several; None if they name no trace that can be joined."""
    parents = _texts(traceparent)
    found = _PARENT.fullmatch(parents[0].strip(_BLANKS)) if len(parents) == 1 else None
    if found is None:
        return None
    version, trace_id, span_id, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not trace_id.strip("0") or not span_id.strip("0"):
        return None
    return TraceContext(trace_id, span_id, int(flags, 16) & _KNOWN_FLAGS, read_state(tracestate))


def read_state(tracestate: Any) -> str:
    """Return a state as it is passed on, of a repeated key the first; nothing if a member is wrong or there are too many."""
    members: dict[str, str] = {}
    for member in (part.strip(_BLANKS) for text in _texts(tracestate) for part in text.split(",")):
        if not member:
            continue
        found = _MEMBER.fullmatch(member)
        if found is None:
            return ""
        members.setdefault(found[1], found[2])
    return ",".join(f"{key}={value}" for key, value in members.items()) if len(members) <= STATE_MEMBERS_MAX else ""


def _texts(given: Any) -> list[str]:
    if type(given) is str:
        return [given]
    return [one for one in given if type(one) is str] if type(given) in {list, tuple} else []
