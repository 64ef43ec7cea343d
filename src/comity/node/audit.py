"""Reading the audit trail of a node."""

from __future__ import annotations

from typing import NamedTuple

from comity.core.envelope.envelope import Reply
from comity.core.journal.audit import Row, Tell, Verdict, names_thought, thought_note
from comity.ports import Journal
from comity.runtime.call.tasks import aside


class Explanation(NamedTuple):
    """An agent's thought before a reply, for developers and auditors, without personal data that a detector finds.

    `is_authentic` is whether the audit holds the digest of this thought. It is False for an erased, and so empty, thought.
    """

    request_id: str
    target: str
    capability: str
    status: str
    thought: str
    is_authentic: bool


class Audit:
    """The audit rows of a node, in order, and whether their chain is whole."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return rows in order: all, or those after an id, or those of one call tree. A store shows what is committed."""
        return self._journal.rows(after_id=after_id, limit=limit, root_id=root_id)

    def reply(self, request_id: str) -> Reply | None:
        """Return the stored reply of a call, with its thought and with personal data hidden, or None."""
        stored = self._journal.call(request_id)
        return None if stored is None or stored.settled_at is None else stored.reply

    def explain(self, root_id: str) -> list[Explanation]:
        """Return the thoughts of the agents of a call tree, in the order of their replies."""
        found = []
        for row in self._journal.rows(root_id=root_id):
            if names_thought(row.note):
                reply = self.reply(row.request_id)
                thought = "" if reply is None else reply.thought
                is_authentic = thought_note(thought) == row.note
                who = (row.request_id, row.target, row.capability, row.status or "")
                found.append(Explanation(*who, thought, is_authentic))
        return found

    def verify(self) -> Verdict:
        """Check the chain; the verdict names the first invalid row. It blocks the event loop: see `verified`."""
        return self._journal.verify()

    async def verified(self, tell: Tell | None = None) -> Verdict:
        """Return what `verify` returns, without blocking: with a store, the chain is checked in another thread.

        `tell(checked, of)` is called during the check, in that thread.
        """
        return await aside(lambda: self._journal.verify(tell)) if self._journal.prunes_aside else self._journal.verify(tell)
