"""Which hidden values an approver sees: the types that the node grants them, and all values of their own session."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from comity.core.envelope.envelope import Reply, without_content
from comity.core.redaction import Vault, restore_value
from comity.runtime.session.privacy import Privacy, reveal

if TYPE_CHECKING:
    from comity.core.journal.records import StoredCall
    from comity.runtime.call.tools import Approval
    from comity.runtime.session.sessions import Sessions


class Approver(Struct, frozen=True):
    """A person who decides approvals, as given to `node.approvals` and `node.decide`; without a tenant, for all tenants."""

    name: str
    tenant_id: str | None = None

    def sees(self, approval: Approval) -> bool:
        """Return whether an approval belongs to this person's tenant."""
        return self.tenant_id is None or self.tenant_id == approval.tenant_id

    def is_own(self, approval: Approval) -> bool:
        """Return whether this person is the user of the call that needs the approval."""
        return (self.name, self.tenant_id or "default") == (approval.user_id, approval.tenant_id)


def question(approval: Approval, person: Approver, privacy: Privacy | None, sessions: Sessions) -> Approval:
    """Return the approval with the hidden values restored that this person may see."""
    types = _types(approval, person, privacy)
    vault = None if types == frozenset() else _vault(approval, approval.session_id, sessions)
    return approval if vault is None else replace(approval, inputs=restore_value(approval.inputs, vault, types))


def outcome(
    approval: Approval,
    reply: Reply,
    stored: StoredCall | None,
    person: Approver,
    privacy: Privacy | None,
    sessions: Sessions,
) -> Reply:
    """Return the reply of a resumed call for this person: as stored, with the hidden values restored that they may see.

    `reply` is the one for the call's own user.
    """
    types = _types(approval, person, privacy)
    if types is None:
        return reply
    if stored is None or stored.reply is None or stored.reply.status is not reply.status:
        return without_content(reply)
    vault = None if not types else _vault(approval, stored.session_id, sessions)
    told = stored.reply if vault is None else reveal(stored.reply, vault, types)
    return replace(told, thought="")


def _types(approval: Approval, person: Approver, privacy: Privacy | None) -> frozenset[str] | None:
    """Return the types of personal data that a person may see in clear; None for all."""
    if privacy is None or person.is_own(approval):
        return None
    return privacy.approvers.get(person.name, frozenset())


def _vault(approval: Approval, session_id: str, sessions: Sessions) -> Vault | None:
    live = sessions.find(approval.tenant_id, session_id)
    return None if live is None or live.session.user_id != approval.user_id else live.vault
