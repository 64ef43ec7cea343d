"""Fair commits: while several users write, a commit takes a share of each, so no user waits for the burst of another.

A user's records depend only on that user's own calls and sessions. So they may wait while records of others are written, as
long as each user's records stay in order. Other documents, such as an agent's state, are shared by users; a batch with one is
written whole and in order.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeAlias

from comity.core.journal.records import Accepted, Document, Late, Noted, Refused, Resumed, Saved, Settled, below, part_of
from comity.ports import Then

SHARE: Final = 16  # records of one user per commit: they add a fraction of the commit's fixed cost
SHARED_S: Final = 1.0  # how long after records of two different users a journal counts as shared
_OF_CALLS: Final = frozenset({Accepted, Refused, Settled, Resumed, Late, Noted})
_OF_SESSIONS: Final = frozenset({Document.SESSION, Document.PART, Document.USE, Document.VAULT})

# The records of one append, which stay together, and their callback.
Group: TypeAlias = tuple[Sequence[Any], Then | None]


class Sharing:
    """Tells from the batches whether several users write to a journal."""

    __slots__ = ("_latest", "_shared_at")

    def __init__(self) -> None:
        self._latest: Hashable = None  # the user of the latest record
        self._shared_at = -SHARED_S

    def note(self, groups: Sequence[Group], now_s: float) -> None:
        """Note the users of a batch at the loop's time."""
        for some in (groups, reversed(groups)):
            user = next((user for records, _ in some if records and (user := _user_of(records[0]))), None)
            if user is not None and user != self._latest:
                if self._latest is not None:
                    self._shared_at = now_s
                self._latest = user

    def is_shared(self, now_s: float) -> bool:
        """Return whether several users wrote within the last `SHARED_S`."""
        return now_s - self._shared_at < SHARED_S


def divide(groups: list[Group]) -> tuple[list[Group], list[Group]]:
    """Return the groups for the next commit and those for a later one, each in order."""
    lanes = _lanes(groups) if len(groups) > SHARE // 2 else None
    if lanes is None:
        return groups, []
    taken: dict[Hashable, int] = {}
    now: list[Group] = []
    later: list[Group] = []
    for group, lane in zip(groups, lanes, strict=True):
        count = taken.get(lane, 0)
        waits = count >= SHARE if group[0] else bool(later)  # without records it waits for all that came before it
        (later if waits else now).append(group)
        taken[lane] = count + len(group[0])
    return now, later


def thens_of(groups: Iterable[Group]) -> list[Then]:
    """Return the callbacks that run once groups are written."""
    return [then for _, then in groups if then is not None]


def documents_of(groups: Iterable[Group]) -> Iterator[Saved]:
    """Yield the documents among the records of groups."""
    return (one for records, _ in groups for one in records if type(one) is Saved)


def _lanes(groups: Sequence[Group]) -> list[Hashable] | None:
    """Return the owner of each group (tenant and user, or a session of unknown user); None if a group is shared."""
    owners: dict[str, Hashable] = {}  # by the key of a session
    named: list[tuple[Hashable, list[str]]] = []
    for records, _ in groups:
        user: Hashable = None
        keys: list[str] = []
        for one in records:
            if type(one) is Saved:
                if one.kind not in _OF_SESSIONS:
                    return None
                keys.append(part_of(one.key)[0] if one.kind is Document.PART else one.key)
                continue
            found = _user_of(one)
            if found is None or found != (user or found):
                return None
            user = found
            if type(one) is not Refused:  # which may name a session of another user
                keys.append(below(one.request.tenant_id, one.request.session_id))
        if user is not None:
            owners.update(dict.fromkeys(keys, user))
        named.append((user, keys))
    lanes: list[Hashable] = []
    for user, keys in named:
        of = {user} if user is not None else {owners.get(key, key) for key in keys}
        if len(of) > 1:
            return None
        lanes.append(of.pop() if of else None)  # None has no records
    return lanes


def _user_of(record: Any) -> Hashable:
    """Return the tenant and the user of a record about a call; None for any other."""
    return (record.request.tenant_id, record.request.user_id) if type(record) in _OF_CALLS else None
