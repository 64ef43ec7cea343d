"""A chain that is walked in parts is as whole as one that is walked at once."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest

from comity.core.journal.audit import GENESIS, link
from comity.engines.sqlite.audit_parts import PART_ROWS_LEAST, parts_of, walk_parts
from comity.engines.sqlite.audit_rows import verify_chain
from comity.engines.sqlite.journal import SqliteJournal
from comity.testing.contracts.records import accepted, settled, written

ROWS = 12


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("parts") / "store.db"

    async def fill() -> None:
        journal = SqliteJournal(path, "node")
        journal.open()
        for number in range(ROWS // 2):
            await written(journal, accepted(f"r{number}"), settled(f"r{number}"))
        await journal.close()

    asyncio.run(fill())
    return path


def test_few_rows_are_walked_at_once():
    assert [parts_of(rows) for rows in (0, 1, PART_ROWS_LEAST)] == [1, 1, 1]
    assert 1 <= parts_of(10**9) <= 8


@pytest.mark.parametrize("parts", [1, 3])
def test_parts_that_are_whole_and_meet_are_a_whole_chain(store, parts):
    with closing(sqlite3.connect(store)) as connection:
        (last,) = connection.execute("SELECT CAST(hash AS BLOB) FROM head").fetchone()
        assert walk_parts(store, parts, 0, GENESIS.encode(), ROWS) == (ROWS + 1, last)
        assert verify_chain(connection, walker=partial(walk_parts, store, parts)) == (True, ROWS, None, "")


@pytest.mark.parametrize("row_id", [1, 4, 5, 8, 9, 12])  # the first and the last of each part
def test_a_changed_row_in_any_part_is_named(store, tmp_path, row_id):
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        change = "UPDATE audit SET body = CAST(replace(CAST(body AS TEXT), 'user-1', 'user-2') AS BLOB) WHERE id = ?"
        connection.execute(change, (row_id,))
        connection.commit()
        verdict = verify_chain(connection, walker=partial(walk_parts, copy, 3))
    assert (verdict.ok, verdict.row_id) == (False, row_id)


def test_parts_that_claim_to_meet_over_rows_that_were_removed_do_not(store, tmp_path):
    copy = tmp_path / "copy.db"
    copy.write_bytes(store.read_bytes())
    with closing(sqlite3.connect(copy)) as connection:
        rows = connection.execute("SELECT id, body, hash FROM audit ORDER BY id").fetchall()
        sealed = rows[3][2]  # of row 4; row 5 goes, row 6 says that it is row 4, and the rest of the chain follows from that
        connection.execute("DELETE FROM audit WHERE id = 5")
        connection.execute("UPDATE audit SET hash = ? WHERE id = 6", (sealed,))
        for row_id, body, _ in rows[6:]:
            sealed = link(row_id, body, sealed)
            connection.execute("UPDATE audit SET hash = ? WHERE id = ?", (sealed, row_id))
        connection.execute("UPDATE head SET hash = ?", (sealed,))
        connection.commit()
        assert walk_parts(copy, 2, 0, GENESIS.encode(), ROWS) == (1, b"")  # as if the first row were not valid
        assert not verify_chain(connection, walker=partial(walk_parts, copy, 2)).ok
