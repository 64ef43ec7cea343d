"""The options of a call, for type checkers: what `ctx.call` and `node.call` take beside a target and its inputs."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, TypedDict

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Background, Priority


class CallOptions(TypedDict, total=False):
    """Of a call that an agent makes."""

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
    """Of a call for a user, who is named beside them."""

    session_id: str | None
    request_id: str | None
    tenant_id: str
    parent_session_id: str | None
    traceparent: str | Sequence[str] | None
    tracestate: str | Sequence[str] | None


# What an input of a function cannot be told from, where a call for a user names the function.
ROOT_ONLY: Final = frozenset({"user_id", *RootOptions.__annotations__}) - frozenset(CallOptions.__annotations__)
