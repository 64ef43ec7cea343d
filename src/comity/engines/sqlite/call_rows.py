"""Decodes stored calls one by one: an unreadable call is skipped, and the others are returned."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from typing import Any, Final

import msgspec

from comity.core.journal.records import StoredCall

log = logging.getLogger("comity")

UNREADABLE: Final = (msgspec.DecodeError, ValueError)  # broken UTF-8 is a ValueError
_decode = msgspec.json.Decoder(StoredCall).decode
_ID, _TENANT, _SESSION = (StoredCall.__struct_fields__.index(name) for name in ("request_id", "tenant_id", "session_id"))


def revive(open_at: str | None, body: bytes) -> StoredCall:
    """Return a stored call; its current node is in the column `open_at`, its first node in the body."""
    call = _decode(body)
    return call if open_at is None or open_at == call.node_id else msgspec.structs.replace(call, node_id=open_at)


def readable(rows: Iterable[tuple[str | None, bytes]]) -> Iterator[StoredCall]:
    """Yield the readable calls; log the others."""
    for open_at, body in rows:
        try:
            call = revive(open_at, body)
        except UNREADABLE as error:
            log.error("the call %s cannot be read and is left out: %s", _fields(body)[_ID], error)  # noqa: TRY400
        else:
            yield call


def is_of_session(body: bytes, tenant_id: str, session_id: str) -> bool:
    """Return whether a call belongs to a session; also True for a call without readable fields."""
    fields = _fields(body)
    return fields == _NOTHING or (fields[_TENANT], fields[_SESSION]) == (tenant_id, session_id)


_NOTHING: Final[list[Any]] = ["?"] * len(StoredCall.__struct_fields__)


def _fields(body: bytes) -> list[Any]:
    try:
        found = msgspec.json.decode(body)
    except UNREADABLE:
        return _NOTHING
    return found if isinstance(found, list) and len(found) == len(_NOTHING) else _NOTHING
