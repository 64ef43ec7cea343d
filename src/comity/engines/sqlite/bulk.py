"""Many rows per statement: each execution of a statement, and each row read, releases and reacquires the GIL.

While the event loop is busy, a thread gets the GIL back only after milliseconds (`sys.getswitchinterval`), so code in other
threads must release it as seldom as possible.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import msgspec

_CHUNKS: Final = (128, 64, 32, 16, 8, 4, 2, 1)
_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[Any]).decode


def run(connection: sqlite3.Connection, head: str, marks: str, tail: str, values: Sequence[Any], *, between: str = ",") -> None:
    """Execute a statement for many rows, each with the same placeholders `marks`; `values` is the rows' flat list."""
    begin, width = 0, marks.count("?")
    for size in _CHUNKS:
        while len(values) - begin >= size * width:
            end = begin + size * width
            connection.execute(_statement(head, marks, tail, size, between), values[begin:end])
            begin = end


@cache
def _statement(head: str, marks: str, tail: str, size: int, between: str) -> str:
    return f"{head}{between.join((marks,) * size)}{tail}"


def read(connection: sqlite3.Connection, columns: str, source: str, values: Sequence[Any] = ()) -> list[Any]:
    """Return the rows of a query as lists, read in one step.

    A column that holds bytes, or may after damage, is read with `CAST(… AS TEXT)`; see `as_bytes`.
    """
    query = f"SELECT CAST(json_group_array(json_array({columns})) AS BLOB) FROM ({source})"  # noqa: S608
    found: bytes = connection.execute(query, values).fetchone()[0]
    try:
        return _decode(found)
    except (msgspec.DecodeError, ValueError):  # a damaged row
        rows: list[Any] = json.loads(found.decode(errors="surrogateescape"))
        return rows


def as_bytes(text: str) -> bytes:
    """Return the original bytes of a column that was read as text."""
    return text.encode(errors="surrogateescape")


def array(values: Sequence[Any]) -> str:
    """Return values as one JSON parameter, for `json_each(?)`."""
    return _encode(values).decode()
