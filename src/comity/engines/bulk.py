"""Many rows to a statement: each run of a statement hands the interpreter lock over and back."""

from __future__ import annotations

import sqlite3
from functools import cache
from typing import Any, Final

_CHUNKS: Final = (128, 64, 32, 16, 8, 4, 2, 1)


def insert(connection: sqlite3.Connection, head: str, marks: str, tail: str, values: list[Any]) -> None:
    """Insert rows, each by the same marks; the values of all rows stand one after the other."""
    begin, width = 0, marks.count("?")
    for size in _CHUNKS:
        while len(values) - begin >= size * width:
            end = begin + size * width
            connection.execute(_insertion(head, marks, tail, size), values[begin:end])
            begin = end


@cache
def _insertion(head: str, marks: str, tail: str, size: int) -> str:
    return f"{head}{','.join((marks,) * size)}{tail}"
