"""Refused tokens and rights in the audit: each is a row, and where they come in floods one row stands for many."""

from __future__ import annotations

from typing import Final

from comity import Node
from comity.core.access import Principal
from comity.core.units import MS_PER_S
from comity.errors import ComityError, UnavailableError
from comity.server.web import Scope

PREFIXES: Final = ("IDENTITY_", "RIGHTS_")
ROWS_PER_S: Final = 20
ROWS_BURST: Final = 200
UNKNOWN_USER: Final = "(unknown)"
DOOR: Final = "(http)"


class Refusals:
    """Writes refusals into a node's audit, at a limited rate: a client without a token must not fill the store."""

    __slots__ = ("_at_ms", "_left", "_node", "_untold")

    def __init__(self, node: Node) -> None:
        self._node = node
        self._left = float(ROWS_BURST)
        self._at_ms = 0
        self._untold = 0  # since the last row

    def note(self, scope: Scope, error: ComityError, now_ms: int) -> None:
        """Write the refusal of a request into the audit, if it is about the caller's identity or rights."""
        if not error.code.startswith(PREFIXES) or "is_audited" in error.facts:
            return
        if error.code == "IDENTITY_REQUIRED" and not scope["comity.heads"].authorization:
            return  # nothing was claimed
        if not self._take(now_ms):
            self._untold += 1
            return
        message = f"{error.message}; {self._untold} more were refused since the last row" if self._untold else error.message
        self._untold = 0
        principal: Principal | None = scope.get("comity.principal")
        user_id = principal.user_id if principal is not None else str(error.facts.get("user_id", ""))
        tenant_id = principal.tenant_id if principal is not None else str(error.facts.get("tenant_id", ""))
        what = f"{scope['method']}:{scope.get('comity.route', '(unknown)')}"  # of routes alone: a path may hold anything
        try:
            self._node.record_refusal(
                error.code,
                message,
                user_id=user_id or UNKNOWN_USER,
                tenant_id=tenant_id or "default",
                target=DOOR,
                capability=what,
            )
        except (UnavailableError, RuntimeError):  # the node is closing
            return

    def _take(self, now_ms: int) -> bool:
        """Return whether a refusal gets a row of its own."""
        gained = max(now_ms - self._at_ms, 0) / MS_PER_S * ROWS_PER_S
        self._left = min(self._left + gained, float(ROWS_BURST))
        self._at_ms = now_ms
        if self._left < 1:
            return False
        self._left -= 1
        return True
