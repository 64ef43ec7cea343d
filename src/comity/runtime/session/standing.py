"""The pending changes of a session that several nodes write."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from comity.core.journal.records import Document, Saved
from comity.core.journal.terms import Version, checksum
from comity.core.session.session import Session

Apply = Callable[[Session], Session]
NEVER: Final = (0, 0)  # based on no version


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
