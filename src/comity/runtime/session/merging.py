"""Sessions that several nodes write, with optimistic concurrency: each write names the version it is based on.

A node sees its own changes at once and keeps them until the store has taken them. If another node wrote first, the store
refuses the whole append; the node reads the session again, applies its pending changes in order, and repeats the append. Vaults
are merged: no two nodes issue the same token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, Final, NamedTuple, Protocol

from msgspec.structs import replace

from comity.core.journal.records import Document, Record, Saved
from comity.core.journal.terms import Terms, Version, checksum
from comity.core.session.session import Session
from comity.errors import DocumentChangedError, UnavailableError
from comity.ports import Journal, Then

Apply = Callable[[Session], Session]
NEVER: Final = (0, 0)  # based on no version
_MERGED: Final = frozenset({Document.SESSION, Document.VAULT})
_REPLACED: Final = _MERGED | {Document.PART}  # rebuilt after a conflict; a row is rebuilt with its head


class Standing:
    """The pending changes of a session in memory, relative to the store.

    A change on terms (such as the end of a call) is written only by its own append, so the session has it if and only if the
    call has ended. A refused append is repeated with its own changes. Until then memory shows these changes, and the documents
    of other appends omit them. A change without terms goes into the next document.
    """

    __slots__ = (
        "_aside", "_bound", "_changes", "_document", "_fresh", "_numbered", "_on_its_way", "base", "epoch", "is_written",
        "since_read", "unanswered", "vault_base",
    )  # fmt: skip

    def __init__(self) -> None:
        self.base = NEVER  # version and checksum of the document last written or read
        self.vault_base = NEVER
        self.is_written = False  # the store has had it: if it is missing there now, it was erased
        self.epoch = 0  # grows with each reread: pending appends of earlier epochs will be refused
        self.since_read: set[Document] = set()  # kinds of documents appended since the last reread
        self.unanswered = 0  # its appends that the store has neither taken nor refused yet
        self._numbered = 0
        self._changes: dict[int, Apply] = {}  # pending changes by number, in order
        self._fresh: list[int] = []  # changes that are in no append yet
        self._bound: set[int] = set()  # changes on terms
        self._aside: list[int] = []  # changes on terms of refused appends: shown, but in no document
        self._document: Session | None = None  # the session without `_aside`; None if that is empty
        self._on_its_way: dict[tuple[int, int], frozenset[int]] = {}  # pending documents, with the changes in each

    @property
    def is_settled(self) -> bool:
        """Whether no change is pending."""
        return not self._changes and not self.unanswered

    def note(self, change: Apply) -> None:
        """Keep a change until the store has taken it; the next append carries it."""
        self._numbered += 1
        self._changes[self._numbered] = change
        self._fresh.append(self._numbered)
        if self._document is not None:
            self._document = change(self._document)

    def take(self, *, has_terms: bool) -> tuple[int, ...]:
        """Return the numbers of the changes that the current append writes."""
        taken, self._fresh = tuple(self._fresh), []
        if has_terms:
            self._bound.update(taken)
        return taken

    def document(self, shown: Session) -> Session:
        """Return the session as the next append writes it: without the changes that only other appends may write."""
        return shown if self._document is None else self._document

    def shown(self, document: Session) -> Session:
        """Return a session with the changes whose own append waits to be repeated."""
        for number in self._aside:
            document = self._changes[number](document)
        return document

    def forget(self, numbers: Sequence[int], shown: Session) -> Session:
        """Drop changes that the store has taken or never will; return the session to show."""
        for number in numbers:
            self._changes.pop(number, None)
        self._bound.difference_update(numbers)
        return self._move(numbers, (), shown)

    def is_aside(self, numbers: Sequence[int]) -> bool:
        """Return whether documents omit some of these changes."""
        return not set(numbers).isdisjoint(self._aside)

    def include(self, numbers: Sequence[int], shown: Session) -> Session:
        """Put the changes of a repeated append into its document, and return the session to show."""
        return self._move(numbers, [one for one in numbers if one in self._aside], shown)

    def _move(self, numbers: Sequence[int], applied: Sequence[int], shown: Session) -> Session:
        if self._document is None or not self.is_aside(numbers):
            return shown
        document = self._document
        for number in applied:
            document = self._changes[number](document)
        self._aside = [one for one in self._aside if one not in numbers]
        self._document = document if self._aside else None
        return self.shown(document)

    def begin_anew(self) -> None:
        """Start a new epoch: the session is being read from the store, and pending appends will be refused."""
        self.epoch += 1
        self.since_read.clear()

    def rebase(self, session: Session, stored: tuple[int, int]) -> Session:
        """Apply the pending changes to a session read from the store, and return the session to show."""
        self.base = stored
        known = self._on_its_way.get(stored, frozenset())
        missing = [one for one in self._changes if one not in known]
        self._aside = [one for one in missing if one in self._bound]
        for number in missing:
            if number not in self._bound:
                session = self._changes[number](session)
        self._document = session if self._aside else None
        return self.shown(session)

    def made_from(self, kind: Document, key: str) -> Version:
        """Return the version that the next document is based on."""
        return Version(kind, key, *(self.base if kind is Document.SESSION else self.vault_base))

    def wrote(self, saved: Saved) -> None:
        """Note a document as the version that the next one is based on."""
        self.since_read.add(saved.kind)
        now = saved.version, checksum(saved.data)
        if saved.kind is Document.SESSION:
            self.base = now
            self._on_its_way[now] = frozenset(self._changes).difference(self._aside)
        else:
            self.vault_base = now

    def arrived(self, saved: Saved) -> None:
        """Note that a document was written or refused."""
        self._on_its_way.pop((saved.version, checksum(saved.data)), None)


class Mark(NamedTuple):
    """One session in an append."""

    live: Live
    kind: Document
    changes: tuple[int, ...]  # the numbers of the changes that this append writes
    epoch: int


class Live(Protocol):
    """A session in memory."""

    session: Session
    standing: Standing
    is_gone: bool
    vault: Any

    @property
    def key(self) -> str:
        """The name it is stored under."""
        ...


class Sessions(Protocol):
    """The sessions in memory."""

    def at(self, key: str) -> Live | None:
        """Return the session that is stored under a key."""
        ...

    def reread(self, live: Any) -> bool:
        """Read a session from the store; return whether it still exists."""
        ...

    def saved_again(self, live: Any, changes: tuple[int, ...]) -> tuple[Saved, ...]:
        """Return the records of a session that was read again, with the changes of a repeated append."""
        ...

    def sealed_vault(self, live: Any, vault: Any) -> Saved:
        """Return the record of the session's current vault."""
        ...


class Merging:
    """Appends of a node whose sessions other nodes write too."""

    def __init__(self, sessions: Sessions, journal: Journal) -> None:
        self._sessions = sessions
        self._journal = journal

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

    def claim(self, accepted: Record, saved: Saved, live: Live, then: Then, terms: Terms) -> None:
        """Append a call with the first version of the session it names, whose user `terms` check.

        If another node has stored that session first, it stays as it is, and the call is accepted anyway: the call's next steps
        need its acceptance, so a conflict must not delay it.
        """
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
                self._sessions.reread(live)
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
                        self._sessions.reread(one.live)
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
            if standing.epoch == epoch and not self._sessions.reread(live):
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
