"""Sessions that several nodes write, with optimistic concurrency: each write names the version it is based on.

A node sees its own changes at once and keeps them until the store has taken them. If another node wrote first, the store
refuses the whole append; the node reads the session again, applies its pending changes in order, and repeats the append. Vaults
are merged: no two nodes issue the same token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from comity.core.journal.records import Accepted, Document, Record, Saved, StoredSession
from comity.core.journal.terms import Terms, Version, checksum
from comity.core.redaction import Vault
from comity.core.session.parts import Parts
from comity.errors import DocumentChangedError, UnavailableError
from comity.ports import Cipher, Journal, Then
from comity.runtime.session.live import Live, read_stored
from comity.runtime.session.sealing import open_vault
from comity.runtime.session.standing import NEVER, Apply, Standing

_MERGED: Final = frozenset({Document.SESSION, Document.VAULT})
_REPLACED: Final = _MERGED | {Document.PART}  # rebuilt after a conflict; a row is rebuilt with its head


class Mark(NamedTuple):
    """One session in an append."""

    live: Live
    kind: Document
    changes: tuple[int, ...]  # the numbers of the changes that this append writes
    epoch: int


class Sessions(Protocol):
    """The sessions in memory."""

    cipher: Cipher

    def at(self, key: str) -> Live | None:
        """Return the session that is stored under a key."""
        ...

    def put_parts(self, live: Live, parts: Parts) -> None:
        """Set the stored parts of a session."""
        ...

    def unsaved_ends(self, live: Live) -> Apply | None:
        """Return the change that adds the ended calls of a session that are not saved yet."""
        ...

    def saved(self, live: Live) -> tuple[Saved, ...]:
        """Return the records that save a session."""
        ...

    def saved_again(self, live: Live, changes: tuple[int, ...]) -> tuple[Saved, ...]:
        """Return the records of a session that was read again, with the changes of a repeated append."""
        ...

    def sealed_vault(self, live: Live, vault: Vault) -> Saved:
        """Return the record of the session's current vault."""
        ...


class Merging:
    """Reads and appends for a node whose sessions other nodes write too; `Alone` does it for a node that is alone."""

    def __init__(self, sessions: Sessions, journal: Journal) -> None:
        self._sessions = sessions
        self._journal = journal

    # --- reading ---

    def load(self, key: str) -> StoredSession | None:
        """Return a session from the store, as other nodes see it if they can."""
        return self._journal.load_session(key, is_written=True) or self._journal.load_session(key)

    def is_current(self, live: Live) -> bool:
        """Load changes that another node has saved; return whether the session still exists and has the same user."""
        stored = self._journal.load(Document.SESSION, live.key)
        if stored is None:
            return self.reread(live)
        vault = self._journal.load(Document.VAULT, live.key)
        is_known = (stored[0], checksum(stored[1])) == live.standing.base
        if is_known and (vault is None or (vault[0], checksum(vault[1])) == live.standing.vault_base):
            return True
        return self.reread(live)

    def reread(self, live: Live) -> bool:
        """Read a session from the store and apply pending changes to it; return as `is_current` does."""
        stored, standing = self._journal.load_session(live.key, is_written=True), live.standing
        standing.begin_anew()
        if stored is None:
            standing.base = NEVER
            return not standing.is_written  # else it was erased
        session, parts = read_stored(stored, live.session.id)
        if session.user_id != live.session.user_id:
            return False  # it was erased, or another user created it at the same moment on another node
        live.is_stored = standing.is_written = True
        live.session = standing.rebase(session, (stored.version, checksum(stored.head)))
        self._sessions.put_parts(live, parts)
        hidden = self._journal.load_written(Document.VAULT, live.key)
        if hidden is not None:
            standing.vault_base = hidden[0], checksum(hidden[1])
            vault = open_vault(self._sessions.cipher, live.key, hidden[1], self._journal.node_id)
            live.vault_saved, live.vault_version = len(vault), max(hidden[0], live.vault_version)
            if live.vault is None:
                live.vault = vault
            else:
                live.vault.learn(vault)  # values hidden here since stay too
        return True

    def may_drop(self, live: Live) -> bool:  # noqa: ARG002
        """Return whether the implicit session of an ended call may leave memory: here an append may be unconfirmed."""
        return False

    # --- writing ---

    def note(self, live: Live, change: Apply) -> None:
        """Keep a change until the store has taken it."""
        live.standing.note(change)

    def note_ended(self, live: Live) -> None:
        """Keep the changes of ended calls until the store has taken them."""
        if (ended := self._sessions.unsaved_ends(live)) is not None:
            live.standing.note(ended)

    def append(
        self,
        records: Sequence[Record],
        then: Then | None,
        terms: Terms | None,
        after: Sequence[tuple[Live, Version]] = (),
        changes: Mapping[str, tuple[int, ...]] = MappingProxyType({}),
    ) -> None:
        """Append records; the store takes sessions among them only if they are based on its current version.

        `after` are documents that must have been written before: they hold changes that belong with these records. `changes`
        are those of a repeated append, by session key.
        """
        if not after and not any(type(one) is Saved for one in records):  # as most are
            self._journal.append(records, then, terms)
            return
        versions = {(one.kind, one.key): one for _, one in after}
        has_terms = terms is not None
        marks = [self._mark(live, one.kind, changes, has_terms=has_terms) for live, one in after]
        for one in records:
            live = self._sessions.at(one.key) if type(one) is Saved and one.kind in _MERGED else None
            if live is not None:
                assert type(one) is Saved
                # Of several versions in one append the last is written, based on the version of the first.
                versions.setdefault((one.kind, one.key), live.standing.made_from(one.kind, one.key))
                live.standing.wrote(one)
                marks.append(self._mark(live, one.kind, changes, has_terms=has_terms))
        if not versions:
            self._journal.append(records, then, terms)
            return
        for standing in _standings(marks):
            standing.unanswered += 1
        terms = terms or Terms()
        on = replace(terms, documents=(*terms.documents, *versions.values()))
        self._journal.append(records, partial(self._appended, records, then, terms, marks), on)

    def claim(self, accepted: Accepted, live: Live, then: Then, terms: Terms) -> None:
        """Append a call with the first version of the session it names, whose user `terms` check.

        If another node has stored that session first, it stays as it is, and the call is accepted anyway: the call's next steps
        need its acceptance, so a conflict must not delay it.
        """
        (saved,) = self._sessions.saved(live)  # only the head: it has no turns yet
        live.standing.wrote(saved)
        live.standing.unanswered += 1
        self._journal.append((accepted, saved), partial(self._claimed, live, saved, then), terms)

    def _claimed(self, live: Live, saved: Saved, then: Then, error: Exception | None) -> None:
        live.standing.unanswered -= 1
        live.standing.arrived(saved)
        if error is None:
            live.standing.is_written = True
        else:
            with contextlib.suppress(UnavailableError):
                self.reread(live)
        then(error)

    @staticmethod
    def _mark(live: Live, kind: Document, changes: Mapping[str, tuple[int, ...]], *, has_terms: bool) -> Mark:
        taken = changes.get(live.key)
        taken = live.standing.take(has_terms=has_terms) if taken is None else taken
        return Mark(live, kind, taken, live.standing.epoch)

    def _appended(
        self, records: Sequence[Record], then: Then | None, terms: Terms | None, marks: list[Mark], error: Exception | None
    ) -> None:
        merged = [one for one in records if type(one) is Saved and one.kind in _MERGED]
        for standing in _standings(marks):
            standing.unanswered -= 1
        is_outdated = isinstance(error, DocumentChangedError) and error.facts["kind"] in _MERGED
        if is_outdated:
            try:
                rest = [one for one in records if type(one) is not Saved or one.kind not in _REPLACED]
                self._repeat(rest, then, terms, marks)
            except UnavailableError as unreadable:
                error, is_outdated = unreadable, False
        if not is_outdated:
            for one in marks:
                standing = one.live.standing
                one.live.session = standing.forget(one.changes, one.live.session)
                if error is None:
                    standing.is_written |= one.kind is Document.SESSION
                else:  # the append failed, so drop its changes
                    with contextlib.suppress(UnavailableError):
                        self.reread(one.live)
            if then is not None:
                then(error)
        for saved in merged:
            if (live := self._sessions.at(saved.key)) is not None:
                live.standing.arrived(saved)

    def _repeat(self, records: list[Record], then: Then | None, terms: Terms | None, marks: list[Mark]) -> None:
        """Repeat an append after a conflict, with its sessions rebuilt on the other node's version."""
        after: list[tuple[Live, Version]] = []
        again: list[Saved] = []
        erased: set[str] = set()
        changes: dict[str, tuple[int, ...]] = {}
        for one in marks:
            # Without duplicates: a repeated append marks every document of the session with all of its changes.
            changes[one.live.key] = tuple(dict.fromkeys((*changes.get(one.live.key, ()), *one.changes)))
        for live, kind, epoch in dict.fromkeys((one.live, one.kind, one.epoch) for one in marks):
            standing = live.standing
            if live.is_gone or live.key in erased:
                continue
            # Another append, or a call that used the session, may have read it again since; the latter appends nothing.
            if standing.epoch == epoch and not self.reread(live):
                erased.add(live.key)
            elif kind in standing.since_read and not (kind is Document.SESSION and standing.is_aside(changes[live.key])):
                after.append((live, standing.made_from(kind, live.key)))
            elif kind is Document.SESSION:
                again += self._sessions.saved_again(live, changes[live.key])
            elif live.vault is not None:
                again.append(self._sessions.sealed_vault(live, live.vault))
        self.append([*records, *again], then, terms, after, changes)


def _standings(marks: Sequence[Mark]) -> list[Standing]:
    """Return the standings of an append's sessions, without duplicates."""
    return list({id(one.live): one.live.standing for one in marks}.values())
