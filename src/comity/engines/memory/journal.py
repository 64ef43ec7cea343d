"""The journal of a node without a store: everything but durability. Passes the same contract suite as the SQLite one."""

from __future__ import annotations

import sys
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

import msgspec
from msgspec.structs import replace

from comity.core.call.limits import (
    MEMORY_AUDIT_ROWS_MAX,
    MEMORY_REPLIES_BYTES_MAX,
    MEMORY_SESSIONS_BYTES_MAX,
    MEMORY_SESSIONS_MAX,
    SETTLED_KEPT_MAX,
)
from comity.core.envelope.envelope import Request
from comity.core.handoff.holder import result_session
from comity.core.handoff.queue import Step
from comity.core.journal.audit import GENESIS, Row, Stored, Tell, Verdict, row, seal, verify
from comity.core.journal.records import (
    Accepted,
    CallRecord,
    Document,
    Paused,
    Record,
    Refused,
    Resumed,
    Saved,
    Settled,
    StoredCall,
    StoredSession,
    entry,
    held_at,
    part_of,
    stored,
)
from comity.core.journal.retention import Keep, Pruned, Retention, Sweep, is_doomed, without_content
from comity.core.journal.terms import Bound, Terms, breach, counts_below, is_below, taken
from comity.engines.cipher import FRESH_NAMES
from comity.engines.sqlite.handoffs import MemoryHandoffs
from comity.errors import UnavailableError
from comity.ports import Then

_UNAUDITED: Final = frozenset({Step, Resumed})
_RUN: Final = Document.RUN  # looking an enum's member up takes four times as long
_RUN_EVENT: Final = Document.RUN_EVENT

# Kinds that a node looks through every few seconds, of which there are few among many documents.
_LOOKED_FOR: Final = frozenset({Document.RUN_SIGNAL, Document.SCHEDULE})
_LONG_BYTES: Final = 4_096
_UNSEALED_BYTES_MAX: Final = 8 * 1024 * 1024


class MemoryJournal:
    """Keeps open calls, the newest settled ones, agents' states and the newest audit rows."""

    def __init__(self, node_id: str = "memory") -> None:
        self.node_id = node_id
        self.failure: UnavailableError | None = None  # memory does not fail
        self.names = FRESH_NAMES
        self.handoffs = MemoryHandoffs()
        self._unsealed: deque[CallRecord] = deque(maxlen=MEMORY_AUDIT_ROWS_MAX)  # rows are sealed when a reader asks for them
        self._appended = 0
        self._rows: deque[Stored] = deque()
        self._head = GENESIS
        self._floor = (1, GENESIS)  # where the kept part of the chain begins
        self._open: dict[str, Accepted | Paused | Resumed] = {}
        self._nested: dict[str, None] = {}  # ids of those that another call made
        self._settled: dict[str, Settled] = {}
        self._long_bytes = 0  # of long requests and replies in rows that are not sealed yet
        self._reply_bytes = 0  # of long replies that are kept
        self._settled_ids: deque[str] = deque()  # in the same order; the first entry of a dict is slow to find
        self._documents: dict[tuple[Document, str], tuple[int, bytes]] = {}
        self._looked_for: dict[Document, set[str]] = {}  # keys of kinds in `_LOOKED_FOR`; some may be gone
        self._belonging: dict[tuple[Document, str], dict[str, None]] = {}  # keys of documents by the one they belong to
        self._used: dict[str, int] = {}  # when each session was last used, by its key
        self._session_bytes = 0  # of all sessions, as they are stored
        self.forgot: Callable[[Sequence[str]], None] | None = None
        self._asked: dict[str, list[str]] = {}  # the keys of the questions asked in a tree, by its root

    is_idle = True  # what is appended is there at once
    is_awaited = False

    def open(self) -> None:
        """Nothing to make ready."""

    async def close(self) -> None:
        """Nothing to let go."""

    def append(self, records: Sequence[Record | Step], then: Then | None = None, terms: Terms | None = None) -> None:
        """Store the records at once."""
        if terms is not None:
            refusal = breach(terms, self._is_open, self.begun, self.load)
            if refusal is not None:
                if then is not None:
                    then(refusal)
                return
            records = taken(records, terms, self._is_open, self._below(terms.ends))  # type: ignore[arg-type]  # no steps
        for record in records:
            kind = type(record)
            if kind is Saved:
                if record.kind is _RUN_EVENT:  # type: ignore[union-attr]  # as most are
                    self._save_page(record)  # type: ignore[arg-type]
                else:
                    self._save(record)  # type: ignore[arg-type]
                continue
            if kind is not Settled and kind is not Accepted and kind in _UNAUDITED:
                self._take(record)  # type: ignore[arg-type]
                continue
            self._unsealed.append(record)  # type: ignore[arg-type]
            self._appended += 1
            if kind is Settled:
                self._settle(record)  # type: ignore[arg-type]
            elif kind is Accepted or kind is Paused:
                request_id = record.request.request_id  # type: ignore[union-attr]
                if request_id not in self._settled:  # what has settled never changes
                    self._open[request_id] = record  # type: ignore[assignment]
                    if "." in request_id or "#" in request_id:
                        self._nested[request_id] = None
                if len(record.request.body) > _LONG_BYTES:  # type: ignore[union-attr]
                    self._count_long(len(record.request.body))  # type: ignore[union-attr]
            elif kind is Refused and record.request.parent_id is not None:  # type: ignore[union-attr]
                self._settle(Settled(record.request, record.reply, record.at_ms))  # type: ignore[union-attr]
        if then is not None:
            then(None)

    def call(self, request_id: str) -> StoredCall | None:
        """Return a call that is open or among the newest settled."""
        record = self._settled.get(request_id) or self._open.get(request_id)
        return None if record is None else self._stored(record)

    def calls(self, *, limit: int) -> list[StoredCall]:
        """Return calls by users, newest first."""
        every: tuple[Accepted | Settled | Paused | Resumed, ...] = (*self._settled.values(), *self._open.values())
        roots = [one for one in every if one.request.parent_id is None]
        roots.sort(key=lambda one: one.request.created_at, reverse=True)
        return [self._stored(one) for one in roots[:limit]]

    def abandoned(self) -> list[StoredCall]:
        """Return no calls: none outlives the process."""
        return []

    def open_roots(self) -> list[StoredCall]:
        """Return users' open calls that are not paused, oldest first."""
        open_ = (one for one in self._open.values() if one.request.parent_id is None and held_at(one, "") == "")
        return sorted(map(self._stored, open_), key=lambda call: (call.created_at, call.request_id))

    def begun(self, above: Request | Bound) -> int:
        """Return how many calls below this one were accepted."""
        every = (*self._settled.values(), *self._open.values())
        return sum(counts_below(self._stored(one), above) for one in every if one.request.root_id == above.root_id)

    def take_paused(self, root_id: str, node_id: str = "") -> list[StoredCall]:
        """Return the open calls of a paused tree and assign them to this node."""
        if type(self._open.get(root_id)) is not Paused:  # it is still being paused, from its leaves to its root
            return []
        paused = [one for one in self._open.values() if type(one) is Paused and one.request.root_id == root_id]
        for one in paused:
            self._open[one.request.request_id] = Accepted(one.request, one.at_ms, node_id or self.node_id)
        return [stored(one, self.node_id) for one in paused]

    def load(self, kind: Document, key: str) -> tuple[int, bytes] | None:
        """Return version and data of a document."""
        return self._documents.get((kind, key))

    load_written = load  # no write is ever pending

    def load_session(self, key: str, *, is_written: bool = False) -> StoredSession | None:  # noqa: ARG002  all of it is
        """Return a session."""
        found = self._documents.get((Document.SESSION, key))
        if found is None:
            return None
        rows = sorted(self._belonging.get((Document.PART, key), ()))
        return StoredSession(*found, [(part_of(one)[1], self._documents[Document.PART, one][1]) for one in rows])

    def list_documents(self, kind: Document, limit: int | None = None) -> list[tuple[str, bytes]]:
        """Return the documents of a kind with their keys, in order of keys, at most `limit`."""
        if kind in _LOOKED_FOR:
            there = sorted(key for key in self._looked_for.get(kind, ()) if (kind, key) in self._documents)
            self._looked_for[kind] = set(there)  # what was removed, or erased with its session or run, is gone
            return [(key, self._documents[kind, key][1]) for key in there[:limit]]
        return sorted((key, data) for (one, key), (_, data) in self._documents.items() if one is kind)[:limit]

    def documents_below(self, kind: Document, key: str) -> list[tuple[str, bytes]]:
        """Return the documents of a kind that belong to the one under a key, in order of keys."""
        return [(one, self._documents[kind, one][1]) for one in sorted(self._belonging.get((kind, key), ()))]

    def _forget_runs(self, run_ids: Iterable[str]) -> int:
        """Remove workflow runs with their events and signals."""
        gone = 0
        for run_id in run_ids:
            gone += self._documents.pop((Document.RUN, run_id), None) is not None
            for kind in (Document.RUN_EVENT, Document.RUN_SIGNAL):
                for key in self._belonging.pop((kind, run_id), ()):
                    gone += self._documents.pop((kind, key), None) is not None
        return gone

    def erase(self, tenant_id: str, session_id: str) -> int:
        """Forget a session's documents, calls and replies."""
        handed_off = self.handoffs.erase(tenant_id, session_id)  # what came back has a vault of its own
        erased = 0
        for place, (_, data) in list(self._documents.items()):
            if any(_is_of_session(*place, data, tenant_id, one) for one in (session_id, *map(result_session, handed_off))):
                erased += 1
                if place[0] is Document.SESSION:
                    self._forget_session(place[1])
                else:
                    del self._documents[place]
        self._asked = {root: left for root, keys in self._asked.items() if (left := self._still_asked(keys))}
        gone = set(handed_off)  # a handoff and its call are one
        for calls in (self._settled, self._open):
            for request_id, record in list(calls.items()):
                if (record.request.tenant_id, record.request.session_id) == (tenant_id, session_id):
                    del calls[request_id]
                    self._nested.pop(request_id, None)
                    gone.add(request_id)
        self._count_settled()
        return erased + len(gone) + self._forget_runs(gone)

    def remove(self, kind: Document, key: str) -> bool:
        """Remove a document for good; return whether there was one."""
        if kind is Document.RUN_EVENT or kind is Document.RUN_SIGNAL:
            self._belonging.get((kind, key.partition("\x1f")[0]), {}).pop(key, None)
        return self._documents.pop((kind, key), None) is not None

    def sessions_of(self, tenant_id: str, user_id: str) -> set[str]:
        """Return the ids of the sessions in which a user called or handed work off."""
        calls = (one.request for one in (*self._settled.values(), *self._open.values()))
        requests = (*calls, *self.handoffs.requests())
        return {one.session_id for one in requests if (one.tenant_id, one.user_id) == (tenant_id, user_id)}

    prunes_aside = keeps_json = False

    def prune(self, retention: Retention, now_ms: int) -> Sweep:
        """Remove what is past its retention, one kind per step."""
        needed, sessions_needed = self._needed()
        if retention.calls.is_bounded:
            yield Pruned(calls=self._forget_trees(self._doomed_trees(retention.calls, needed, now_ms)))
        if retention.replies.is_bounded:
            yield Pruned(replies=self._prune_replies(retention.replies, needed, now_ms))
        if retention.handoffs.is_bounded:
            ended = self.handoffs.prune(retention.handoffs, needed, now_ms)
            self._forget_trees({one: _session_key(tenant_id, result_session(one)) for tenant_id, one in ended})
            yield Pruned(handoffs=len(ended))
        if retention.sessions.is_bounded:
            keys = self._doomed_sessions(retention.sessions, sessions_needed, now_ms)
            self._forget_sessions(keys)
            yield Pruned(sessions=len(keys), session_keys=tuple(keys))
        if retention.audit.is_bounded:
            yield Pruned(audit=self._prune_rows(retention.audit, now_ms))

    def rows(self, *, after_id: int = 0, limit: int | None = None, root_id: str | None = None) -> list[Row]:
        """Return the kept audit rows in order."""
        self._seal()
        later = islice(self._rows, max(0, after_id - self._floor[0] + 1), None)  # ids have no gaps
        wanted = (one for one in map(row, later) if root_id in {None, one.root_id})
        return list(islice(wanted, limit))

    @property
    def first_id(self) -> int:
        """The id of the oldest audit row that is kept, or of the next one."""
        self._seal()
        return self._floor[0]

    @property
    def head_id(self) -> int:
        """The id of the newest audit row. It is read often while calls run, so it seals no rows."""
        return self._appended

    def verify(self, tell: Tell | None = None) -> Verdict:
        """Check the kept part of the chain."""
        self._seal()
        first_id, previous_hash = self._floor
        verdict = verify(self._rows, first_id=first_id, previous_hash=previous_hash, head=self._head)
        if tell is not None:
            tell(verdict.rows, len(self._rows))
        return verdict

    def _stored(self, record: Accepted | Settled | Paused | Resumed) -> StoredCall:
        return stored(record, record.node_id if type(record) is Accepted or type(record) is Resumed else self.node_id)

    def _is_open(self, request_id: str) -> bool | None:
        return False if request_id in self._settled else True if request_id in self._open else None

    def _below(self, above: str) -> list[Request]:
        if not above or not self._nested:
            return []
        return [self._open[name].request for name in self._nested if is_below(name, above)]

    def _take(self, record: Step | Resumed) -> None:
        if type(record) is Step:
            self.append(self.handoffs.perform(record))
        elif type(record) is Resumed:
            self._open[record.request.request_id] = record
            self._nested[record.request.request_id] = None

    def _save_part(self, record: Saved) -> None:
        """Keep a row of a session, or forget it."""
        session_key, _ = part_of(record.key)
        rows = self._belonging.setdefault((Document.PART, session_key), {})
        _, held = self._documents.pop((Document.PART, record.key), (0, b""))
        self._session_bytes += len(record.data) - len(held)
        if record.data:
            self._documents[Document.PART, record.key] = (record.version, record.data)
            rows[record.key] = None
        else:
            rows.pop(record.key, None)

    def _save(self, record: Saved) -> None:
        if record.kind is Document.PART:
            self._save_part(record)
            return
        if record.token and self._documents.get((Document.FENCE, record.address), (0, b""))[0] > record.token:
            return
        place = (record.kind, record.key)
        held = self._documents.get(place)
        if held is None or record.version > held[0]:
            self._documents[place] = (record.version, record.data)
            if record.kind is _RUN:
                return
            if record.kind in _LOOKED_FOR:
                self._looked_for.setdefault(record.kind, set()).add(record.key)
            if record.kind is Document.RUN_SIGNAL:
                self._belong(record)
                return
            if record.kind is Document.SESSION or (record.kind is Document.USE and record.key in self._used):
                used_at = record.version if record.kind is Document.USE else record.used_at or 0
                self._used[record.key] = max(self._used.pop(record.key, 0), used_at)  # the latest used stand last
                self._session_bytes += len(record.data) - len(held[1] if held is not None else b"")
                if len(self._used) > MEMORY_SESSIONS_MAX or self._session_bytes > MEMORY_SESSIONS_BYTES_MAX:
                    self._make_room(record.key)
            elif record.kind is Document.APPROVAL and held is None:
                self._asked.setdefault(msgspec.json.decode(record.data).get("root_id", ""), []).append(record.key)

    def _save_page(self, record: Saved) -> None:
        """Keep a page of a run's events, which grows with each event."""
        place = (_RUN_EVENT, record.key)
        held = self._documents.get(place)
        if held is None:
            self._belong(record)
        elif record.version <= held[0]:
            return
        self._documents[place] = (record.version, record.data)

    def _belong(self, record: Saved) -> None:
        self._belonging.setdefault((record.kind, record.key.partition("\x1f")[0]), {})[record.key] = None

    def _make_room(self, newest: str) -> None:
        """Forget the sessions that were not used for longest: some at once, since finding those in use takes a while."""
        _, needed = self._needed()
        gone: list[str] = []
        surplus_bytes = self._session_bytes - MEMORY_SESSIONS_BYTES_MAX * 9 // 10
        most = MEMORY_SESSIONS_MAX // 100 if len(self._used) > MEMORY_SESSIONS_MAX else 0
        for key in self._used:
            if len(gone) >= most and surplus_bytes <= 0:
                break
            if key not in needed and key != newest:
                gone.append(key)
                surplus_bytes -= self._bytes_of(key)
        self._forget_sessions(gone)
        if self.forgot is not None and gone:
            self.forgot(gone)

    def _bytes_of(self, key: str) -> int:
        """Return how many bytes a session has, with its rows."""
        rows = self._belonging.get((Document.PART, key), ())
        held = self._documents.get((Document.SESSION, key), (0, b""))
        return len(held[1]) + sum(len(self._documents[Document.PART, one][1]) for one in rows)

    def _settle(self, record: Settled) -> None:
        request_id = record.request.request_id
        self._open.pop(request_id, None)
        if self._nested:
            self._nested.pop(request_id, None)
        if request_id in self._settled:  # what has settled never changes
            return
        self._settled[request_id] = record
        self._settled_ids.append(request_id)
        if record.reply_bytes:
            self._reply_bytes += record.reply_bytes
            self._count_long(record.reply_bytes)
        while len(self._settled_ids) > SETTLED_KEPT_MAX or self._reply_bytes > MEMORY_REPLIES_BYTES_MAX:
            oldest = self._settled_ids.popleft()
            self._reply_bytes -= self._settled.pop(oldest).reply_bytes
            if (_RUN, oldest) in self._documents:
                self._forget_runs((oldest,))
            if oldest in self._asked:
                for key in self._asked.pop(oldest):
                    del self._documents[Document.APPROVAL, key]

    def _count_settled(self) -> None:
        """Count the settled calls that are left, and their long replies, after some of them were removed."""
        self._settled_ids = deque(self._settled)
        self._reply_bytes = sum(one.reply_bytes for one in self._settled.values())

    def _count_long(self, size: int) -> None:
        """Seal the rows, which hold nothing long, before those that wait for it hold too much."""
        self._long_bytes += size
        if self._long_bytes > _UNSEALED_BYTES_MAX:
            self._seal()

    # --- what is kept no longer ---

    def _still_asked(self, keys: list[str]) -> list[str]:
        return [key for key in keys if (Document.APPROVAL, key) in self._documents]

    def _needed(self) -> tuple[set[str], set[str]]:
        """Return the roots of trees under way and the keys of the sessions in use."""
        requests = [one.request for one in self._open.values()]
        requests += [one.request for one in self.handoffs.find(limit=sys.maxsize) if not one.has_ended]
        return {one.root_id for one in requests}, {_session_key(one.tenant_id, one.session_id) for one in requests}

    def _prune_replies(self, keep: Keep, needed: set[str], now_ms: int) -> int:
        surplus = 0 if keep.count is None else len(self._settled) - keep.count
        gone = 0
        for number, (request_id, one) in enumerate(self._settled.items()):
            if one.request.root_id in needed or not is_doomed(keep, one.at_ms, number < surplus, now_ms):
                continue
            if (left := without_content(one.reply)) is not None:
                self._settled[request_id] = replace(one, reply=left, reply_bytes=0)
                gone += 1
        self._count_settled()
        return gone

    def _doomed_trees(self, keep: Keep, needed: set[str], now_ms: int) -> dict[str, str]:
        """Return the roots of trees that go, each with the key of the session that would be its own."""
        surplus = 0 if keep.count is None else len(self._settled) - keep.count
        sizes = Counter(one.request.root_id for one in self._settled.values())
        found: dict[str, str] = {}
        for one in self._settled.values():
            request = one.request
            is_root = request.parent_id is None and request.root_id not in needed
            if is_root and is_doomed(keep, one.at_ms, surplus > 0, now_ms):
                surplus -= sizes[request.root_id]
                found[request.root_id] = _session_key(request.tenant_id, request.root_id)
        return found

    def _forget_trees(self, roots: Mapping[str, str]) -> int:
        """Forget calls, what is below them, the questions asked in them, and the sessions that only they had, by these keys."""
        below = [one.request.request_id for one in self._settled.values() if one.request.root_id in roots]
        for request_id in below:
            del self._settled[request_id]
        self._count_settled()
        for root_id in roots:
            for key in self._asked.pop(root_id, ()):
                del self._documents[Document.APPROVAL, key]
        self._forget_sessions(roots.values())
        self._forget_runs(roots)
        return len(below)

    def _doomed_sessions(self, keep: Keep, needed: set[str], now_ms: int) -> list[str]:
        mine = [key for key in self._used if key.partition("\x1f")[2].isprintable()]  # those of handoffs go with these
        surplus = 0 if keep.count is None else len(mine) - keep.count
        return [
            key
            for number, key in enumerate(mine)
            if key not in needed and is_doomed(keep, self._used[key], number < surplus, now_ms)
        ]

    def _forget_sessions(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._forget_session(key)
            for kind in (Document.USE, Document.VAULT):
                self._documents.pop((kind, key), None)

    def _forget_session(self, key: str) -> None:
        self._session_bytes -= self._bytes_of(key)
        self._used.pop(key, None)
        self._documents.pop((Document.SESSION, key), None)
        for one in self._belonging.pop((Document.PART, key), ()):
            del self._documents[Document.PART, one]

    def _prune_rows(self, keep: Keep, now_ms: int) -> int:
        self._seal()
        surplus = 0 if keep.count is None else len(self._rows) - keep.count
        gone = 0
        while self._rows and is_doomed(keep, row(self._rows[0]).created_at, gone < surplus, now_ms):
            self._drop_row()
            gone += 1
        return gone

    def _drop_row(self) -> None:
        dropped = self._rows.popleft()
        self._floor = (dropped[0] + 1, dropped[3])

    def _seal(self) -> None:
        next_id = self._appended - len(self._unsealed) + 1
        if next_id > self._floor[0] + len(self._rows):  # unread rows were dropped: the kept chain begins anew after them
            self._rows.clear()
            self._floor = (next_id, self._head)
        for row_id, record in enumerate(self._unsealed, next_id):
            sealed = seal(row_id, entry(record, self.names), self._head)
            self._rows.append(sealed)
            self._head = sealed[3]
        self._unsealed.clear()
        self._long_bytes = 0
        while len(self._rows) > MEMORY_AUDIT_ROWS_MAX:
            self._drop_row()


def _session_key(tenant_id: str, session_id: str) -> str:
    return f"{tenant_id}\x1f{session_id}"


def _is_of_session(kind: Document, key: str, data: bytes, tenant_id: str, session_id: str) -> bool:
    match kind:
        case Document.STATE | Document.FENCE | Document.MEMORY | Document.WORKFLOW | Document.SCHEDULE:
            return False
        case Document.RUN | Document.RUN_EVENT | Document.RUN_SIGNAL | Document.PART:
            return False  # they go with the call that is the run's root, and rows with the head of their session
        case Document.SESSION | Document.USE | Document.VAULT:
            return key == f"{tenant_id}\x1f{session_id}"
        case Document.APPROVAL:
            asked = msgspec.json.decode(data)
            return (asked["tenant_id"], asked["session_id"]) == (tenant_id, session_id)
