"""Verifies a long audit chain in several processes: each checks a part, and adjacent parts must have matching hashes.

Each row holds the hash of the row before it, so a part can be checked by itself. As a program,
`python -m comity.engines.sqlite.audit_parts STORE AFTER_ID LAST_ID` checks one part and prints how far it is valid.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Final

from comity.core.journal.audit import walk
from comity.engines.sqlite.audit_rows import READ_LINKS

# A smaller part is not worth a process.
PART_ROWS_LEAST: Final = 200_000
PARTS_MAX: Final = 8
_WORDS: Final = 3  # output of a process: the hash before its part, the id after the last valid row, and that row's hash


def parts_of(rows: int) -> int:
    """Return the number of parts for this number of rows."""
    return max(min(rows // PART_ROWS_LEAST, len(os.sched_getaffinity(0)), PARTS_MAX), 1)


def walk_parts(store: Path, parts: int, after_id: int, sealed: bytes, last_id: int) -> tuple[int, bytes]:
    """Return the id after the last valid row and its hash, as `walk` does; if hashes of parts differ, no row is valid."""
    bounds = [after_id + (last_id - after_id) * part // parts for part in range(parts)] + [last_id]
    command = [sys.executable, "-m", "comity.engines.sqlite.audit_parts", str(store)]
    others = [
        subprocess.Popen([*command, str(begin), str(end)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)  # noqa: S603  this program
        for begin, end in pairwise(bounds[1:])
    ]
    next_id, found = _walk_part(store, after_id, sealed, bounds[1])
    for begin, process in zip(bounds[1:], others, strict=False):
        said = process.communicate()[0].split()
        is_met = len(said) == _WORDS and (next_id - 1, found) == (begin, said[0])
        next_id, found = (int(said[1]), said[2]) if is_met else (after_id + 1, b"")
    return next_id, found


def _walk_part(store: Path, after_id: int, sealed: bytes, last_id: int) -> tuple[int, bytes]:
    with contextlib.closing(_connect(store)) as connection:
        rows = connection.execute(f"SELECT * FROM ({READ_LINKS}) WHERE id <= ?", (after_id, last_id))  # noqa: S608
        return walk(rows, after_id + 1, sealed)


def _connect(store: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"{store.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)


def main(store: str, after_id: str, last_id: str) -> None:
    """Check one part; print the hash before it, the id after its last valid row, and that row's hash."""
    path = Path(store)
    with contextlib.closing(_connect(path)) as connection:
        (before,) = connection.execute("SELECT CAST(hash AS BLOB) FROM audit WHERE id = ?", (int(after_id),)).fetchone()
    next_id, sealed = _walk_part(path, int(after_id), before, int(last_id))
    print(before.decode(), next_id, sealed.decode())  # noqa: T201


if __name__ == "__main__":
    main(*sys.argv[1:])
