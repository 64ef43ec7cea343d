"""The stored form of a session: a small head, and rows with the rest of its content.

A change is written into the head. Once the head has grown to `HEAD_BYTES_MAX`, each of its values becomes a row and the entries
of each list become a few rows, so that a change costs as much in a long session as in a new one. A row is a fragment of a
session, as JSON. Rows are numbered in order of creation; a replaced value keeps its row, and dropped content is removed from
its row. A whole session of an earlier store version reads as a head without rows.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, takewhile
from typing import Any, Final

from msgspec import UNSET, Struct, UnsetType, json

from comity.core.session.conversation import Turn, size_of
from comity.core.session.session import MAPS, TRIMMED, Entry, Fact, Session, Workflow, label

HEAD_BYTES_MAX: Final = 4_096
ROW_CHARS: Final = HEAD_BYTES_MAX  # of the entries of a list that share a row; a longer entry has a row of its own
ROW_ENTRIES_MAX: Final = 32
SINGLES: Final = ("original_request", "summary", "workflow_position", "workflow", "prior_agents")
LISTS: Final = ("turns", "decisions", "assumptions")

Part = tuple[str, str | int]  # the field of a session, and which of its entries: a key, a number, or "" where there is but one


class Fragment(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A part of a session's content, as stored."""

    original_request: str | UnsetType = UNSET
    turns: tuple[Turn, ...] = ()
    summary: str | UnsetType = UNSET
    facts: dict[str, Fact] = {}
    decisions: tuple[str, ...] = ()
    constraints: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()
    workflow_position: str | UnsetType = UNSET
    workflow: Workflow | UnsetType = UNSET
    prior_agents: tuple[str, ...] | UnsetType = UNSET
    prior_outputs: dict[str, Any] = {}
    private: dict[str, dict[str, Any]] = {}
    written: dict[str, int] = {}


class Head(Fragment, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The owner of a session, its latest content, and a summary of its rows."""

    id: str
    tenant_id: str
    user_id: str
    created_at: int
    used_at: int
    parent_id: str = ""
    version: int = 0
    turns_dropped: int = 0
    rows: int = 0  # how many there are
    made: int = 0  # the highest number a row was given
    digest: int = 0  # of all rows as they were written, in order: tells two heads of one version apart


class Row(Struct, frozen=True, gc=False):
    """A row as it is kept: its number, and how many bytes it has.

    A node keeps many of these in memory; each full garbage collection would walk through them if they were tuples.
    """

    number: int
    size: int


_encode = json.Encoder().encode
_decode_head = json.Decoder(Head).decode
_decode_row = json.Decoder(Fragment).decode


_BLANK: Final = Session(id="", tenant_id="", user_id="", created_at=0, used_at=0)


class Parts:
    """Maps each part of a session to its row in the store. Made by `read`, or empty for a session that is not stored."""

    __slots__ = ("_changed", "_digest", "_first", "_made", "_rows", "_saved", "head_bytes", "row_bytes")

    def __init__(self) -> None:
        self.head_bytes = 0
        self.row_bytes = 0
        # By field and key; of a list by the number of the first entry that is in the row.
        self._rows: dict[str, dict[str | int, Row]] = {name: {} for name in (*SINGLES, *LISTS, *MAPS)}
        self._changed: dict[Part, None] = {}  # singles and entries of maps that no row has as they are
        self._first = dict.fromkeys(LISTS, 0)  # the number of the first entry of each list that has no row
        self._made = 0
        self._digest = 0
        self._saved = _BLANK  # as it was saved last, or read

    @property
    def size(self) -> int:
        """The stored size of the session, in bytes."""
        return self.head_bytes + self.row_bytes

    def size_of(self, entry: Entry | None) -> int:
        """Return how many bytes the row of a value has; 0 without one."""
        row = None if entry is None else self._rows[entry[0]].get(entry[1])
        return 0 if row is None else row.size

    def touch(self, entries: Iterable[Entry]) -> None:
        """Mark entries of maps that a change has replaced or added."""
        self._changed |= dict.fromkeys(entries)

    def compare(self, session: Session) -> None:
        """Mark every value that differs from the session last read or saved."""
        for name in MAPS:
            now, then = getattr(session, name), getattr(self._saved, name)
            if now is not then:
                self.touch((name, key) for key, value in now.items() if then.get(key, UNSET) is not value)
        labels = set(session.written.items()) - set(self._saved.written.items())
        names = {name for name, _ in labels}
        self.touch((name, key) for name in MAPS for key in getattr(session, name) if label(name, key) in names)
        self.touch((name, "") for name in SINGLES if label(name, "") in names)

    def save(self, session: Session) -> tuple[bytes, list[tuple[int, bytes]]]:
        """Return the head to write and the changed rows by number; a row without data is to be removed."""
        rows = self._drop(session)
        saved = self._saved
        for name in SINGLES:
            if getattr(session, name) is not getattr(saved, name):
                self._changed[name, ""] = None
        self._saved = session
        head = b""
        # What is long by itself need not be encoded to see that it is.
        if sum(map(size_of, self._later_turns(session))) <= HEAD_BYTES_MAX:
            head = self._head(session, self._latest(session))
        if not head or len(head) > HEAD_BYTES_MAX:
            rows += self._spill(session)
            head = self._head(session, {})
        self.head_bytes = len(head)
        return head, rows

    def _head(self, session: Session, latest: dict[str, Any]) -> bytes:
        return _encode(
            Head(
                id=session.id,
                tenant_id=session.tenant_id,
                user_id=session.user_id,
                created_at=session.created_at,
                used_at=session.used_at,
                parent_id=session.parent_id,
                version=session.version,
                turns_dropped=session.turns_dropped,
                rows=sum(map(len, self._rows.values())),
                made=self._made,
                digest=self._digest,
                **latest,
            )
        )

    def _later_turns(self, session: Session) -> tuple[Turn, ...]:
        return session.turns[max(self._first["turns"] - session.turns_dropped, 0) :]

    def _latest(self, session: Session) -> dict[str, Any]:
        """Return the fields whose current values are in no row."""
        latest: dict[str, Any] = {
            "turns": self._later_turns(session),
            "decisions": session.decisions[self._first["decisions"] :],
            "assumptions": session.assumptions[self._first["assumptions"] :],
        }
        written: dict[str, int] = {}
        for name, key in self._changed:
            if name in SINGLES:
                latest[name] = getattr(session, name)
            else:
                latest.setdefault(name, {})[key] = getattr(session, name)[key]
            if at := session.written.get(label(name, str(key))):
                written[label(name, str(key))] = at
        return latest | {"written": written}

    def _spill(self, session: Session) -> list[tuple[int, bytes]]:
        """Move each part whose current value is in no row into a row, and return these rows."""
        rows = [self._row((name, key), self._fragment(session, name, key)) for name, key in self._changed]
        for name in LISTS:
            entries, dropped = getattr(session, name), session.turns_dropped if name == "turns" else 0
            number = max(self._first[name], dropped)
            for some in _shared(entries[number - dropped :]):
                fields: dict[str, Any] = {name: some}
                rows.append(self._row((name, number), Fragment(**fields)))
                number += len(some)
            self._first[name] = number
        self._changed.clear()
        return rows

    def _fragment(self, session: Session, name: str, key: str | int) -> Fragment:
        value, at = getattr(session, name), session.written.get(label(name, str(key)))
        fields: dict[str, Any] = {name: value if name in SINGLES else {key: value[key]}}
        return Fragment(**fields, written={} if at is None else {label(name, str(key)): at})

    def _row(self, part: Part, fragment: Fragment) -> tuple[int, bytes]:
        name, key = part
        data, known = _encode(fragment), self._rows[name].get(key)
        if known is None:
            self._made += 1
        else:
            self.row_bytes -= known.size
        number = self._made if known is None else known.number
        self._rows[name][key] = Row(number, len(data))
        self.row_bytes += len(data)
        self._digest = zlib.crc32(data, self._digest)
        return number, data

    def _drop(self, session: Session) -> list[tuple[int, bytes]]:
        """Drop the rows of dropped content and return them as removed; shorten a row that still has some."""
        rest = self._shorten(session)
        gone: list[Part] = [
            ("turns", number) for number in takewhile(lambda one: int(one) < session.turns_dropped, self._rows["turns"])
        ]
        for name in TRIMMED:
            kept, rows = getattr(session, name), self._rows[name]
            touched = [key for field, key in self._changed if field == name]
            new = sum(key not in rows and key in kept for key in touched)
            gone += [(name, key) for key in _surplus(rows, kept, len(rows) + new - len(kept))]
            for key in touched:
                if key not in kept:
                    del self._changed[name, key]
        removed = [self._rows[name].pop(key) for name, key in gone]
        self.row_bytes -= sum(row.size for row in removed)
        return [*rest, *((row.number, b"") for row in removed)]

    def _shorten(self, session: Session) -> list[tuple[int, bytes]]:
        """Remove dropped turns from the first row of turns; return that row if it changed."""
        rows, dropped = self._rows["turns"], session.turns_dropped
        earlier = list(takewhile(lambda one: int(one) < dropped, rows))
        end = int(next(islice(rows, len(earlier), None), self._first["turns"]))
        if not earlier or end <= dropped:
            return []
        number = earlier[-1]
        shortened = self._row(("turns", number), Fragment(turns=session.turns[: end - dropped]))
        self._rows["turns"] = {dropped if one == number else one: row for one, row in rows.items()}
        return [shortened]


def _shared(entries: Sequence[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield the entries of a list, grouped into rows."""
    some: list[Any] = []
    chars = 0
    for entry in entries:
        size = len(entry) if isinstance(entry, str) else size_of(entry)
        if some and (len(some) == ROW_ENTRIES_MAX or chars + size > ROW_CHARS):
            yield tuple(some)
            some, chars = [], 0
        some.append(entry)
        chars += size
    if some:
        yield tuple(some)


def _surplus(rows: Mapping[str | int, Row], kept: Mapping[str, Any], count: int) -> Iterator[str | int]:
    """Yield at most `count` keys of rows whose values are no longer kept; usually the oldest."""
    for key in rows:
        if count <= 0:
            return
        if key not in kept:
            count -= 1
            yield key


def read(head: bytes, rows: Sequence[tuple[int, bytes]]) -> tuple[Session, Parts]:
    """Return a session from its head and its rows, sorted by number, and the `Parts` that map it to the rows.

    Raises `msgspec.MsgspecError` for invalid data, and `ValueError` if a row is missing.
    """
    top, parts = _decode_head(head), Parts()
    if top.rows != len(rows):
        raise ValueError(f"it has {len(rows)} of its {top.rows} rows")
    fields: dict[str, Any] = {"turns": [], "decisions": [], "assumptions": [], "written": {}} | {name: {} for name in MAPS}
    turns_from = top.turns_dropped
    for number, data in rows:
        row = _decode_row(data)
        for name, key in _parts_of(row):
            place = turns_from + len(fields["turns"]) if name == "turns" else len(fields[name]) if name in LISTS else key
            parts._rows[name][place] = Row(number, len(data))  # noqa: SLF001
        _add(fields, row)
        parts.row_bytes += len(data)
    parts._first = {name: len(fields[name]) + (turns_from if name == "turns" else 0) for name in LISTS}  # noqa: SLF001
    parts.touch((name, str(key)) for name, key in _parts_of(top) if name not in LISTS)
    _add(fields, top)
    parts._made, parts._digest, parts.head_bytes = top.made, top.digest, len(head)  # noqa: SLF001
    session = Session(
        id=top.id,
        tenant_id=top.tenant_id,
        user_id=top.user_id,
        created_at=top.created_at,
        used_at=top.used_at,
        parent_id=top.parent_id,
        version=top.version,
        turns_dropped=top.turns_dropped,
        turns_chars=sum(map(size_of, fields["turns"])),
        **fields | {name: tuple(fields[name]) for name in LISTS},
    )
    parts._saved = session  # noqa: SLF001
    return session, parts


def _parts_of(fragment: Fragment) -> Iterator[Part]:
    for name in SINGLES:
        if getattr(fragment, name) is not UNSET:
            yield name, ""
    for name in LISTS:
        for number in range(len(getattr(fragment, name))):
            yield name, number
    for name in MAPS:
        for key in getattr(fragment, name):
            yield name, key


def _add(fields: dict[str, Any], fragment: Fragment) -> None:
    for name in SINGLES:
        if (value := getattr(fragment, name)) is not UNSET:
            fields[name] = value
    for name in LISTS:
        fields[name] += getattr(fragment, name)
    for name in (*MAPS, "written"):
        fields[name] |= getattr(fragment, name)
