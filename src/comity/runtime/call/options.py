"""The options of a call, for type checkers: what `ctx.call` and `node.call` take beside a target and its inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypedDict

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Background, Priority


class CallOptions(TypedDict, total=False):
    """Options of a call that an agent makes."""

    objective: str
    message: str
    timeout_ms: int | None
    priority: Priority | str | None
    context: Background | None
    limits: Limits | None
    history: str | int
    tools: Collection[str] | None
    correlation_id: str


class RootOptions(CallOptions, total=False):
    """Options of a user's call, besides `user_id`."""

    session_id: str | None
    request_id: str | None
    tenant_id: str
    parent_session_id: str | None
    traceparent: str | Sequence[str] | None
    tracestate: str | Sequence[str] | None


# Options that only a user's call has; a function's input of the same name would be ambiguous in a call by function.
ROOT_ONLY: Final = frozenset({"user_id", *RootOptions.__annotations__}) - frozenset(CallOptions.__annotations__)
