"""Sessions that several nodes write: each write names the version it was made from, and is made anew where that was replaced.

What a node changes in a session it shows at once, and keeps until the store has taken it. Where another node was first, the
store refuses the append as a whole; the session is read again, the changes that were not taken are applied to it in order, and
the append is repeated. Hidden values are merged: no two nodes give out the same token.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, Protocol

from msgspec.structs import replace

from comity.core.journal.records import Document, Record, Saved
from comity.core.journal.terms import Terms, Version, checksum
from comity.core.session.session import Session
from comity.errors import DocumentChangedError, UnavailableError
from comity.ports import Journal, Then

Apply = Callable[[Session], Session]
NEVER: Final = (0, 0)  # made from nothing
_MERGED: Final = frozenset({Document.SESSION, Document.VAULT})


class Standing:
    """Where a session in memory stands against the store."""

    __slots__ = ("_numbered", "base", "changes", "epoch", "is_written", "vault_base")

    def __init__(self) -> None:
        self.base = NEVER  # version and checksum of the document that it was last written as, or read from
        self.vault_base = NEVER
        self.is_written = False  # the store has had it: where it has it no longer, it was erased
        self.epoch = 0  # grows when it was read anew: what was written before and not taken yet is refused
        self.changes: list[tuple[int, Apply]] = []  # that the store has not taken yet, with their numbers
        self._numbered = 0

    def note(self, change: Apply) -> None:
        """Keep a change until the store has taken it."""
        self._numbered += 1
        self.changes.append((self._numbered, change))

    @property
    def mark(self) -> tuple[int, int]:
        """The number of the last change, and the epoch."""
        return self._numbered, self.epoch

    def forget(self, number: int) -> None:
        """Forget the changes up to a number: the store has taken them, or never will."""
        self.changes = [one for one in self.changes if one[0] > number]

    def made_from(self, kind: Document, key: str) -> Version:
        """Return the version of a document that the next one is made from."""
        return Version(kind, key, *(self.base if kind is Document.SESSION else self.vault_base))

    def wrote(self, saved: Saved) -> None:
        """Take a document for the one that the next is made from."""
        now = saved.version, checksum(saved.data)
        if saved.kind is Document.SESSION:
            self.base = now
        else:
            self.vault_base = now


class Live(Protocol):
    """A session in memory."""

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
        """Return the one that is stored under a key."""
        ...

    def reread(self, live: Any) -> bool:
        """Read one from the store; return whether it is still there."""
        ...

    def saved(self, live: Any) -> Saved:
        """Return the record of one as it is now."""
        ...

    def sealed_vault(self, live: Any) -> Saved:
        """Return the record of its vault as it is now."""
        ...


class Merging:
    """Appends of a node that shares its sessions with others."""

    def __init__(self, sessions: Sessions, journal: Journal) -> None:
        self._sessions = sessions
        self._journal = journal

    def append(
        self, records: Sequence[Record], then: Then | None, terms: Terms | None, after: Sequence[tuple[Live, Version]] = ()
    ) -> None:
        """Append records; sessions among them only as what comes next after what the store has.

        `after` are documents that must have been written before: they hold what was to be written with these records.
        """
        versions = {(one.kind, one.key): one for _, one in after}
        marks: list[tuple[Live, Document, int, int]] = [(live, one.kind, *live.standing.mark) for live, one in after]
        for one in records:
            live = self._sessions.at(one.key) if type(one) is Saved and one.kind in _MERGED else None
            if live is not None:
                assert type(one) is Saved
                # Of several versions in one append the last is written, after what the first was made from.
                versions.setdefault((one.kind, one.key), live.standing.made_from(one.kind, one.key))
                live.standing.wrote(one)
                marks.append((live, one.kind, *live.standing.mark))
        if not versions:
            self._journal.append(records, then, terms)
            return
        on = replace(terms or Terms(), documents=tuple(versions.values()))
        self._journal.append(records, partial(self._appended, records, then, terms, marks), on)

    def _appended(
        self,
        records: Sequence[Record],
        then: Then | None,
        terms: Terms | None,
        marks: list[tuple[Live, Document, int, int]],
        error: Exception | None,
    ) -> None:
        if isinstance(error, DocumentChangedError):
            try:
                self._repeat([one for one in records if type(one) is not Saved or one.kind not in _MERGED], then, terms, marks)
            except UnavailableError as unreadable:
                error = unreadable
            else:
                return
        for live, kind, number, _ in marks:
            live.standing.forget(number)
            if error is None:
                live.standing.is_written |= kind is Document.SESSION
            else:  # what it changed never happened
                with contextlib.suppress(UnavailableError):
                    self._sessions.reread(live)
        if then is not None:
            then(error)

    def _repeat(
        self,
        records: list[Record],
        then: Then | None,
        terms: Terms | None,
        marks: list[tuple[Live, Document, int, int]],
    ) -> None:
        """Append the rest of some records again, with their sessions as they are after another node's change."""
        after: list[tuple[Live, Version]] = []
        again: list[Record] = []
        fresh: dict[Live, bool] = {}  # whether this is the first to learn of the other node's change
        for live, kind, epoch in dict.fromkeys((live, kind, epoch) for live, kind, _, epoch in marks):
            if live.is_gone:
                continue
            if live not in fresh:
                fresh[live] = live.standing.epoch == epoch
                if fresh[live] and not self._sessions.reread(live):
                    fresh.pop(live)
                    continue  # it was erased
            if not fresh[live]:  # the one that was first has written all of it
                after.append((live, live.standing.made_from(kind, live.key)))
            elif kind is Document.SESSION:
                again.append(self._sessions.saved(live))
            elif live.vault is not None:
                again.append(self._sessions.sealed_vault(live))
        self.append([*records, *again], then, terms, after)
