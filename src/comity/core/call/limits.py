"""Every bound of the system, each with a name and a unit, and the `Limits` that travel with a call.

`Limits` belong to the root call and only shrink on the way down: `narrow` is the one operation, and there is none that widens.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct

# One message, as UTF-8.
MESSAGE_BYTES_MAX: Final = 100 * 1024
# The inputs of a request and the data of a reply, as JSON.
INPUTS_BYTES_MAX: Final = 1024 * 1024
REPLY_BYTES_MAX: Final = 1024 * 1024
# A whole encoded request: inputs, message, context and the envelope around them.
REQUEST_BYTES_MAX: Final = 3 * 1024 * 1024
# An agent's persisted private state, as JSON.
STATE_BYTES_MAX: Final = 10 * 1024 * 1024
# Objects and arrays inside each other, and values in one document.
NESTING_MAX: Final = 32
ITEMS_MAX: Final = 100_000
# Short texts and names.
ID_CHARS_MAX: Final = 256
NAME_CHARS_MAX: Final = 128
OBJECTIVE_CHARS_MAX: Final = 2_000
ERROR_CHARS_MAX: Final = 10_000
CITED_CHARS_MAX: Final = 64  # of a name or text of another that a message repeats
# Lists in the envelope.
HINTS_MAX: Final = 64
WARNINGS_MAX: Final = 100
CHAIN_MAX: Final = 32
# What is wrong with one document, as told to its sender.
PROBLEMS_MAX: Final = 100
# Plain functions that a node runs in threads at a time, unless it is given another number.
THREADS_MAX: Final = 64
# What a user may set at most.
TIMEOUT_MS_CEILING: Final = 24 * 60 * 60 * 1000
FAN_OUT_CEILING: Final = 1_000
CALLS_CEILING: Final = 1_000_000
# What an agent may report at once, so that the sum over a tree is still a number every store can hold.
TOKENS_CEILING: Final = 10**12
# The greatest whole number that every reader of JSON keeps as it is.
WHOLE_MAX: Final = 2**53 - 1
# Kept in memory for joining repeated request ids when there is no store, and in front of it when there is.
SETTLED_KEPT_MAX: Final = 10_000
# Events kept for one root call that a reader watches.
EVENTS_KEPT_MAX: Final = 10_000
# What is kept of one handoff's history, newest; what waits in one of the queue's lanes; one report of progress, as JSON.
HANDOFF_HISTORY_MAX: Final = 100
HANDOFF_PENDING_MAX: Final = 100_000
PROGRESS_BYTES_MAX: Final = 16 * 1024
# Rows, sessions and spans a node without a store keeps; older ones are dropped, newest stay.
MEMORY_AUDIT_ROWS_MAX: Final = 20_000
MEMORY_REPLIES_BYTES_MAX: Final = 64 * 1024 * 1024
MEMORY_SESSIONS_MAX: Final = 50_000
MEMORY_SESSIONS_BYTES_MAX: Final = 128 * 1024 * 1024
SPANS_KEPT_MAX: Final = 10_000


# How long a refusal is kept back, at most, from a caller that repeats a refused call.
REFUSAL_PAUSE_MS_MAX: Final = 1_000


class Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call and everything below it may use.

    `depth_max` is the greatest depth allowed, where user → agent is depth 0. `timeout_ms` is used when a call names none;
    `timeout_ms_max` clamps what it names. `calls_max` and `tokens_max` count the whole tree.
    """

    depth_max: int = 5
    fan_out_max: int = 10
    timeout_ms: int = 30_000
    timeout_ms_max: int = 300_000
    calls_max: int = 100
    tokens_max: int | None = None

    def __post_init__(self) -> None:
        for name, value, least, most in (
            ("depth_max", self.depth_max, 0, CHAIN_MAX),
            ("fan_out_max", self.fan_out_max, 0, FAN_OUT_CEILING),
            ("timeout_ms", self.timeout_ms, 0, TIMEOUT_MS_CEILING),
            ("timeout_ms_max", self.timeout_ms_max, 0, TIMEOUT_MS_CEILING),
            ("calls_max", self.calls_max, 0, CALLS_CEILING),
            ("tokens_max", self.tokens_max, 0, None),
        ):
            if value is None and name == "tokens_max":
                continue
            if type(value) is not int or value < least or (most is not None and value > most):
                bounds = f"from {least} to {most}" if most is not None else f"of at least {least}"
                raise ValueError(f"limits.{name} must be a whole number {bounds}, not {value!r}")

    def narrow(self, other: Limits | None) -> Limits:
        """Return the tighter of both, field by field."""
        if other is None or other is self:
            return self
        tokens = [limit for limit in (self.tokens_max, other.tokens_max) if limit is not None]
        return Limits(
            depth_max=min(self.depth_max, other.depth_max),
            fan_out_max=min(self.fan_out_max, other.fan_out_max),
            timeout_ms=min(self.timeout_ms, other.timeout_ms),
            timeout_ms_max=min(self.timeout_ms_max, other.timeout_ms_max),
            calls_max=min(self.calls_max, other.calls_max),
            tokens_max=min(tokens) if tokens else None,
        )

    def allows(self, other: Limits) -> bool:
        """Return whether `other` is no wider than this in any field: what `narrow` guarantees."""
        return self.narrow(other) == other

    def pause_ms(self, asked: int) -> int:
        """Return how many ms to delay a refusal of a call that has asked `asked` times.

        A caller that has asked more often than a whole tree may call is in a loop: the delay doubles each time, so that a loop
        which only its deadline ends leaves tens of audit rows, not hundreds of thousands.
        """
        return 0 if asked <= self.calls_max else min(1 << min(asked - self.calls_max, 10), REFUSAL_PAUSE_MS_MAX)
