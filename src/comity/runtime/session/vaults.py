"""The vaults of sessions: the values that each session hides, encrypted in the store."""

from __future__ import annotations

from typing import Final

from comity.core.document.slices import Sliced, whole
from comity.core.journal.records import Document, Saved
from comity.core.redaction import Vault
from comity.ports import Cipher, Ids, Journal
from comity.runtime.call.call import Call
from comity.runtime.session.live import UNSEALED, Live
from comity.runtime.session.sealing import open_vault, seal

SEALED_AT_ONCE: Final = 2_000  # values; a larger vault is encrypted in slices


class Vaults:
    """Loads, makes and encrypts the vaults of a node's sessions."""

    def __init__(self, journal: Journal, ids: Ids, cipher: Cipher) -> None:
        self._journal = journal
        self._ids = ids
        self.cipher = cipher

    def vault_of(self, call: Call) -> Vault | None:
        """Return the vault of a call's session; None if nothing was hidden in it."""
        live = call.session_head.live
        return None if live is None else live.vault

    def vault(self, live: Live) -> Vault:
        """Return the vault of a session, new if nothing was hidden in it yet."""
        if live.vault is None:
            live.vault = Vault.from_entropy(self._ids.entropy())
        return live.vault

    def sealed_vault(self, live: Live, vault: Vault) -> Saved:
        """Return the record of a session's current vault."""
        live.vault_saved = len(vault)
        live.vault_version += 1
        count, data = live.sealed
        if count != len(vault):
            data = whole(seal(self.cipher, live.key, vault))
        live.sealed = UNSEALED
        return Saved(Document.VAULT, live.key, live.vault_version, data)

    def seal_vault(self, live: Live) -> Sliced[None]:
        """Encrypt a large vault in slices, so that `saved_vault` need not."""
        vault = live.vault
        if vault is not None and len(vault) > SEALED_AT_ONCE and len(vault) != live.vault_saved:
            count = len(vault)
            live.sealed = count, (yield from seal(self.cipher, live.key, vault))

    def load_vault(self, key: str) -> tuple[Vault | None, int]:
        """Return the vault that is stored under a session's key, with its version; None if nothing was hidden."""
        stored = self._journal.load(Document.VAULT, key)
        if stored is None:
            return None, 0
        return open_vault(self.cipher, key, stored[1], self._journal.node_id), stored[0]
