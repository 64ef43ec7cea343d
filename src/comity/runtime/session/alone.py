"""Sessions that only one node writes: its copy in memory is current, and its appends need no terms of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from comity.core.journal.records import Accepted, Record, Saved, StoredSession
from comity.core.journal.terms import Terms
from comity.ports import Journal, Then
from comity.runtime.session.live import Live
from comity.runtime.session.standing import Apply


class Alone:
    """Reads and appends for a node whose sessions no other node writes; see `Merging`."""

    def __init__(self, journal: Journal, saved: Callable[[Live], tuple[Saved, ...]]) -> None:
        self._journal = journal
        self._saved = saved  # returns the records that save a session

    def load(self, key: str) -> StoredSession | None:
        """Return a session from the store."""
        return self._journal.load_session(key)

    def is_current(self, live: Live) -> bool:  # noqa: ARG002
        """Return that the copy in memory is current."""
        return True

    def reread(self, live: Live) -> bool:
        """Keep the copy in memory, as `is_current` says."""
        return self.is_current(live)

    def may_drop(self, live: Live) -> bool:  # noqa: ARG002
        """Return whether the implicit session of an ended call may leave memory: everything of it is appended."""
        return True

    def note(self, live: Live, change: Apply) -> None:
        """Keep nothing: the next append writes the session as it is in memory."""

    def note_ended(self, live: Live) -> None:
        """Keep nothing, as `note` does."""

    def append(self, records: Sequence[Record], then: Then | None, terms: Terms | None) -> None:
        """Append records."""
        self._journal.append(records, then, terms)

    def claim(self, accepted: Accepted, live: Live, then: Then, terms: Terms) -> None:
        """Append a call with the first version of the session it names."""
        self.append((accepted, *self._saved(live)), then, terms)
