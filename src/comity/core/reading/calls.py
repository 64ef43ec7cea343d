"""Calls as they are listed: one row each, made from the audit, and what they can be asked by."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from comity.core.envelope.usage import Cost
from comity.core.journal.audit import Row

RUNNING: Final = "running"
PAUSED: Final = "needs_input"


class CallRow(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call. `seq` is the number of the audit row that began it; names are as the audit has them."""

    seq: int
    request_id: str
    root_id: str
    parent_id: str | None = None
    source: str | None = None
    target: str
    capability: str
    tenant_id: str
    user_id: str
    session_id: str
    status: str
    error_code: str | None = None
    created_at: int
    settled_at: int | None = None
    duration_ms: float | None = None
    tokens: int | None = None
    cost: Cost | None = None  # of the tokens; None with tokens: no price is known
    depth: int = 0
    is_late: bool = False  # a result came after it had ended
    note: str = ""


class CallFilter(Struct, frozen=True, kw_only=True):
    """Which calls are wanted; all that is given must hold. A code may end in `*`, `status` may name several with commas."""

    status: str | None = None
    agent: str | None = None
    capability: str | None = None
    user_id: str | None = None
    tenant_id: str | None = None
    session_id: str | None = None
    code: str | None = None
    since: int | None = None  # epoch milliseconds
    until: int | None = None
    duration_ms_min: float | None = None
    tokens_min: int | None = None
    cost_min: float | None = None  # in whichever currency its node has
    text: str | None = None  # in an id, a target or a capability
    roots_only: bool = True


class AuditFilter(Struct, frozen=True, kw_only=True):
    """Which audit rows are wanted; everything that is given must hold."""

    kind: str | None = None
    root_id: str | None = None
    request_id: str | None = None
    tenant_id: str | None = None
    user_id: str | None = None
    target: str | None = None
    since: int | None = None
    until: int | None = None

    def passes(self, row: Row) -> bool:
        """Return whether a row is wanted."""
        pairs = (
            (self.kind, row.kind),
            (self.root_id, row.root_id),
            (self.request_id, row.request_id),
            (self.tenant_id, row.tenant_id),
            (self.user_id, row.user_id),
            (self.target, row.target),
        )
        is_in_time = (self.since or 0) <= row.created_at <= (row.created_at if self.until is None else self.until)
        return is_in_time and all(wanted in {None, found} for wanted, found in pairs)


class Bucket(Struct, frozen=True):
    """How many calls of a time span had each status."""

    start: int
    end: int
    counts: dict[str, int]


class Edge(Struct, frozen=True):
    """How often one agent called another; `source` is None for users."""

    source: str | None
    target: str
    calls: int
    failed: int
    refused: int
    p95_ms: float


class Traffic(Struct, frozen=True):
    """Who called whom since a time, and why calls were refused: each code with its number of calls. Of the newest calls."""

    edges: list[Edge]
    refusals: dict[str, int]
