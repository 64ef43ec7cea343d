"""Reading the audit trail of a node."""

from __future__ import annotations

from comity.core.audit import Row, Verdict
from comity.ports import Journal


class Audit:
    """The audit rows of a node, in order, and whether their chain is whole."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return rows in order: all, or those after an id, or those of one call tree. A store shows what is committed."""
        return self._journal.rows(after_id=after_id, limit=limit, root_id=root_id)

    def verify(self) -> Verdict:
        """Check the chain; the verdict names the first row that does not fit."""
        return self._journal.verify()
