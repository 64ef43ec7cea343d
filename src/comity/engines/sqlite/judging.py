"""Checks the terms of a batch's records inside the transaction, against the file and the batch itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import Final

from comity.core.envelope.envelope import Request
from comity.core.handoff.queue import Step
from comity.core.journal.records import Accepted, Document, Paused, Record, Refused, Resumed, Saved, Settled, StoredCall, stored
from comity.core.journal.terms import Bound, Terms, breach, counts_below, is_below, taken
from comity.engines.sqlite import bulk
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite.call_rows import UNREADABLE, readable, revive
from comity.ports import Then

STANDINGS: Final = frozenset({Accepted, Settled, Paused, Resumed})  # records that change the state of a call
_FIND_CALLS = "SELECT request_id FROM calls WHERE request_id IN (SELECT value FROM json_each(?))"
_READ_DOCUMENT = "SELECT version, data FROM documents WHERE kind = ? AND key = ?"


class Conditional:
    """Records that are written only if their terms hold."""

    __slots__ = ("_refusal", "records", "terms")

    def __init__(self, records: Sequence[Record], terms: Terms) -> None:
        self.records = records
        self.terms = terms
        self._refusal: Exception | None = None

    def refuse(self, why: Exception) -> None:
        """Note the error with which they were refused."""
        self._refusal = why

    def tell(self, then: Then) -> Then:
        """Return a callback that passes a refusal on as the error."""
        return lambda error: then(error or self._refusal)


Written = Record | Conditional | Step
Standing = Accepted | Settled | Paused | Resumed


def each(records: Sequence[Written]) -> Iterator[Record]:
    """Yield the records of a batch, with and without terms; steps of the queue have no records yet."""
    for one in records:
        if type(one) is Conditional:
            yield from one.records
        elif type(one) is not Step:
            yield one  # type: ignore[misc]


class Plain:
    """Fast check whether all terms of a batch hold: most batches hold only root calls that begin and end in them.

    The constructor checks what needs no file, before the transaction in which other processes wait.
    """

    def __init__(self, records: Sequence[Written]) -> None:
        self._begun: dict[str, bool] = {}  # calls of this batch, and whether each has ended in it
        self._tokens: dict[str, int] = {}  # by address: the smallest fencing token in the batch
        self._is_plain = all(map(self._take, records))

    def holds(self, connection: sqlite3.Connection) -> bool:
        """Return whether all records may be written. False may also mean that each must be checked by itself."""
        if not self._is_plain or _known(connection, self._begun):
            return False
        tokens = (
            (connection.execute(_READ_DOCUMENT, (Document.FENCE.value, one)).fetchone(), of) for one, of in self._tokens.items()
        )
        return all(found is None or found[0] <= token for found, token in tokens)

    def _take(self, record: Written) -> bool:
        kind = type(record)
        if kind is Conditional:
            return self._take_call(record)  # type: ignore[arg-type]
        if kind is Saved:
            return self._take_saved(record)  # type: ignore[arg-type]
        return kind is not Step and kind not in STANDINGS and (kind is not Refused or record.request.parent_id is None)  # type: ignore[union-attr]

    def _take_call(self, conditional: Conditional) -> bool:
        request_id = _plain_id(conditional)
        record = conditional.records[0] if request_id else None
        if record is None or record.request.parent_id is not None:  # type: ignore[union-attr]
            return False
        has_ended = self._begun.get(request_id)
        if has_ended is not (None if type(record) is Accepted else False):
            return False
        self._begun[request_id] = type(record) is Settled
        tokens = self._tokens
        for fence in conditional.terms.fences:
            tokens[fence.address] = min(tokens.get(fence.address, fence.token), fence.token)
        return len(conditional.records) == 1 or all(one.kind is not Document.FENCE for one in conditional.records[1:])  # type: ignore[union-attr]

    def _take_saved(self, saved: Saved) -> bool:
        if saved.token:
            self._tokens[saved.address] = min(self._tokens.get(saved.address, saved.token), saved.token)
        return saved.kind is not Document.FENCE


def _plain_id(conditional: Conditional) -> str:
    """Return the id of the call that an append begins or ends, if its terms name only that call and fences; else empty."""
    records, terms = conditional.records, conditional.terms
    one, request_id = records[0] if records else None, terms.unsettled or terms.ends
    if type(one) is Accepted:
        is_plain = not terms.open and not terms.ends
    elif type(one) is Settled:
        is_plain = terms.open == (request_id,)
    else:
        return ""
    is_plain = (
        is_plain
        and one.request.request_id == request_id
        and not (terms.unknown or terms.ended or terms.session or terms.documents or terms.within)
        and (len(records) == 1 or all(type(other) is Saved for other in records[1:]))
    )
    return request_id if is_plain else ""


def on_terms(
    connection: sqlite3.Connection,
    records: Sequence[Written],
    calls: dict[str, Standing],
    documents: dict[tuple[Document, str], Saved],
) -> Iterator[Record]:
    """Yield the records whose terms hold. `calls` and `documents` are those of this batch so far; the rest is in the file."""

    fences: dict[str, tuple[int, bytes] | None] = {}  # from the file, cached: many calls of a batch name the same address

    def document(kind: Document, key: str) -> tuple[int, bytes] | None:
        here = documents.get((kind, key))
        if kind is Document.FENCE and key in fences:
            found = fences[key]
        else:
            found = connection.execute(_READ_DOCUMENT, (kind.value, key)).fetchone()
            if kind is Document.FENCE:
                fences[key] = found
        if here is not None and (found is None or here.version > found[0]):
            return here.version, here.data
        return found

    def token_of(address: str) -> int:
        return (document(Document.FENCE, address) or (0, b""))[0]

    nested: list[str] = []  # ids in this batch that say that they are below another, of its first `nested_of[0]` calls
    nested_of = [0]
    # From the file, cached: each call is checked several times, and most are not there.
    standings: dict[str, bool | None] = _unknown(connection, records)

    def is_open(request_id: str) -> bool | None:
        here = calls.get(request_id)
        if here is not None:
            return type(here) is not Settled
        if request_id in standings:
            return standings[request_id]
        try:
            found = read_call(connection, request_id)
            standing = None if found is None else found.settled_at is None
        except UNREADABLE:  # an unreadable call accepts no records, and must not fail the writer
            standing = False
        standings[request_id] = standing
        return standing

    def below(above: str) -> Iterator[Request]:
        if not above:
            return
        if standings.get(above, True) is not None:  # else it was accepted in this batch, as were all calls below it
            query = "SELECT open_at, body FROM calls WHERE open_at IS NOT NULL AND request_id > ? AND request_id < ?"
            for found in readable(connection.execute(query, (f"{above}#", f"{above}/")).fetchall()):  # `/` follows `.`
                if found.request is not None and is_below(found.request_id, above) and found.request_id not in calls:
                    yield found.request
        nested.extend(one for one in islice(calls, nested_of[0], None) if "." in one or "#" in one)
        nested_of[0] = len(calls)
        for request_id in nested:
            one = calls[request_id]
            if type(one) is not Settled and is_below(request_id, above):
                yield one.request

    def begun(above: Bound) -> int:
        here = [one for one in calls.values() if is_below(one.request.request_id, above.request_id)]
        count = "SELECT count(*) FROM calls WHERE request_id > ? AND request_id < ?"
        (most,) = connection.execute(count, _range_below(above)).fetchone()
        if most + len(here) + 2 <= above.calls_max:  # an upper bound is within the limit: no need to check each
            return int(most) + len(here)
        written = (one for one in _below(connection, above) if one.request_id not in calls)
        return sum(counts_below(one, above) for one in (*written, *(stored(one, "") for one in here)))

    for record in records:
        if type(record) is Conditional:
            if refusal := breach(record.terms, is_open, begun, document):
                record.refuse(refusal)
            else:
                yield from taken(record.records, record.terms, is_open, list(below(record.terms.ends)))
        elif type(record) is not Saved or not record.token or token_of(record.address) <= record.token:
            yield record  # type: ignore[misc]


def _unknown(connection: sqlite3.Connection, records: Sequence[Written]) -> dict[str, bool | None]:
    """Return the calls that terms of the batch name and that are not in the file, each mapped to None."""
    named: dict[str, bool | None] = {}
    for one in records:
        if type(one) is Conditional:
            terms = one.terms
            named |= dict.fromkeys((terms.unknown, terms.unsettled, *terms.open, terms.ended, terms.ends))
    named.pop("", None)
    for request_id in _known(connection, named):
        named.pop(request_id, None)  # a call that was handed off is in both tables
    return named


def _known(connection: sqlite3.Connection, request_ids: Collection[str]) -> list[str]:
    """Return which of these calls the file has."""
    ids = tuple(request_ids)
    return [one for (one,) in connection.execute(_FIND_CALLS, (bulk.array(ids),))] + handoff_tables.known(connection, ids)


def read_call(connection: sqlite3.Connection, request_id: str) -> StoredCall | None:
    """Return a call by id, including handoffs."""
    found = connection.execute("SELECT open_at, body FROM calls WHERE request_id = ?", (request_id,)).fetchone()
    return revive(*found) if found else handoff_tables.read_call(connection, request_id)


def count_begun(connection: sqlite3.Connection, request: Request) -> int:
    """Return how many calls below one were accepted."""
    return sum(counts_below(one, request) for one in _below(connection, request))


def _below(connection: sqlite3.Connection, above: Request | Bound) -> Iterator[StoredCall]:
    query = "SELECT open_at, body FROM calls WHERE request_id > ? AND request_id < ?"
    return readable(connection.execute(query, _range_below(above)))


def _range_below(above: Request | Bound) -> tuple[str, str]:
    """Return the id range of the calls below a call, for the index: their ids begin with its id and `.`."""
    return f"{above.request_id}.", f"{above.request_id}/"  # `/` follows `.`
