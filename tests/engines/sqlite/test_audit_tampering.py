"""Whatever plain SQL does to the audit of a closed store, `verify` finds it and names the row."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from comity.core.journal.audit import ENTRY_FIELDS, GENESIS, Verdict, checkpoint_seal, cut_entry
from comity.engines.sqlite.audit_rows import check_cut, cut, read_rows, verify_chain
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.journal import SqliteJournal
from comity.errors import UnavailableError
from comity.testing.contracts.records import accepted, refused, settled, written

ROWS = 12


@pytest.fixture(scope="module")
def sound(tmp_path_factory) -> Path:
    """A closed store of twelve rows."""
    path = tmp_path_factory.mktemp("sound") / "store.db"

    async def fill() -> None:
        journal = SqliteJournal(path, "node")
        journal.open()
        for number in range(4):
            await written(
                journal, accepted(f"r{number}"), refused(f"r{number}.1", parent_id=f"r{number}"), settled(f"r{number}")
            )
        await journal.close()

    asyncio.run(fill())
    return path


@pytest.fixture
def store(sound: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(sound, tmp_path / "store.db"))


def change(store: Path, *statements: str) -> None:
    with closing(sqlite3.connect(store)) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount != 0, "the tampering did nothing"
        connection.commit()


def sealed(row_id: int, body: bytes, previous_hash: str) -> str:
    """The hash of a row, by somebody who read the source."""
    return hashlib.sha256(f"{row_id}:{previous_hash}:".encode() + body).hexdigest()


def test_a_store_nobody_touched_verifies(store):
    with closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection) == (True, ROWS, None, "")


EDITED_BODY = "CAST(replace(CAST(body AS TEXT), 'user-1', 'user-2') AS BLOB)"
OTHER_HASH = "'" + "ab" * 32 + "'"

TAMPERINGS = {
    "edit the first body": ([f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 1"], 1),
    "edit a body": ([f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 5"], 5),
    "edit the last body": ([f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 12"], 12),
    "edit two bodies": ([f"UPDATE audit SET body = {EDITED_BODY} WHERE id IN (9, 4)"], 4),
    "empty a body": (["UPDATE audit SET body = x'' WHERE id = 5"], 5),
    "make a body unreadable": (["UPDATE audit SET body = x'ff00' WHERE id = 5"], 5),
    "store a body as text": (["UPDATE audit SET body = CAST(body AS TEXT) WHERE id = 5"], 5),
    "store a body as a number": (["UPDATE audit SET body = 7 WHERE id = 5"], 5),
    "edit a hash": ([f"UPDATE audit SET hash = {OTHER_HASH} WHERE id = 5"], 5),
    "edit the last hash": ([f"UPDATE audit SET hash = {OTHER_HASH} WHERE id = 12"], 12),
    "make a hash unreadable": (["UPDATE audit SET hash = CAST(x'ff' AS TEXT) WHERE id = 5"], 5),
    "write a hash in capitals": (["UPDATE audit SET hash = upper(hash) WHERE id = 5"], 5),
    "delete the first row": (["DELETE FROM audit WHERE id = 1"], 1),
    "delete a middle row": (["DELETE FROM audit WHERE id = 5"], 5),
    "delete the last row": (["DELETE FROM audit WHERE id = 12"], 12),
    "delete the last three rows": (["DELETE FROM audit WHERE id >= 10"], 10),
    "delete all rows": (["DELETE FROM audit"], 1),
    "delete a row and close the gap": (
        [
            "DELETE FROM audit WHERE id = 5",
            "UPDATE audit SET id = -id WHERE id > 5",
            "UPDATE audit SET id = -id - 1 WHERE id < 0",
        ],
        5,
    ),
    "swap two neighbours": (
        [
            "UPDATE audit SET id = -1 WHERE id = 5",
            "UPDATE audit SET id = 5 WHERE id = 6",
            "UPDATE audit SET id = 6 WHERE id = -1",
        ],
        5,
    ),
    "swap two rows far apart": (
        [
            "UPDATE audit SET id = -1 WHERE id = 2",
            "UPDATE audit SET id = 2 WHERE id = 11",
            "UPDATE audit SET id = 11 WHERE id = -1",
        ],
        2,
    ),
    "swap two bodies": (
        [
            "UPDATE audit SET body = (SELECT body FROM audit AS o WHERE o.id = CASE audit.id WHEN 5 THEN 8 ELSE 5 END) WHERE id = 5"
        ],
        5,
    ),
    "insert a row at the end": ([f"INSERT INTO audit SELECT 13, body, {OTHER_HASH} FROM audit WHERE id = 12"], 13),
    "insert a row after a gap": (["INSERT INTO audit SELECT 20, body, hash FROM audit WHERE id = 12"], 13),
    "insert a row before the first": (["INSERT INTO audit SELECT 0, body, hash FROM audit WHERE id = 1"], 0),
    "change the last id": (["UPDATE audit SET id = 99 WHERE id = 12"], 12),
    "change a middle id": (["UPDATE audit SET id = 99 WHERE id = 5"], 5),
    "change the first id": (["UPDATE audit SET id = 0 WHERE id = 1"], 0),
    "edit the head's hash": ([f"UPDATE head SET hash = {OTHER_HASH}"], 13),
    "make the head's hash unreadable": (["UPDATE head SET hash = CAST(x'ff' AS TEXT)"], 13),
    "set the head back": (["UPDATE head SET id = 10, hash = (SELECT hash FROM audit WHERE id = 10)"], 11),
    "set the head's id back": (["UPDATE head SET id = 10"], 12),
    "set the head to the beginning": ([f"UPDATE head SET id = 0, hash = '{GENESIS}'"], 1),
    "delete the head": (["DELETE FROM head"], 12),
}


@pytest.mark.parametrize(("statements", "row_id"), TAMPERINGS.values(), ids=TAMPERINGS)
def test_tampering_is_found_and_the_row_named(store, statements, row_id):
    change(store, *statements)
    with closing(connect(store, read_only=True)) as connection:
        verdict = verify_chain(connection)
    assert (verdict.ok, verdict.row_id) == (False, row_id)
    assert verdict.reason


@pytest.mark.parametrize("row_id", range(1, ROWS + 1))
def test_a_row_that_was_changed_and_sealed_again_is_betrayed_by_the_next(store, row_id):
    with closing(sqlite3.connect(store)) as connection:
        (body,) = connection.execute("SELECT body FROM audit WHERE id = ?", (row_id,)).fetchone()
        (previous,) = connection.execute("SELECT hash FROM audit WHERE id = ?", (row_id - 1,)).fetchone() or (GENESIS,)
        forged = body.replace(b"user-1", b"user-2")
        query = "UPDATE audit SET body = ?, hash = ? WHERE id = ?"
        connection.execute(query, (forged, sealed(row_id, forged, previous), row_id))
        connection.commit()
        verdict = verify_chain(connection)
    assert (verdict.ok, verdict.row_id) == (False, row_id + 1)


def test_a_row_well_sealed_onto_the_end_is_found(store):
    with closing(sqlite3.connect(store)) as connection:
        body, previous = connection.execute("SELECT body, hash FROM audit WHERE id = 12").fetchone()
        connection.execute("INSERT INTO audit VALUES (13, ?, ?)", (body, sealed(13, body, previous)))
        connection.commit()
        verdict = verify_chain(connection)
    assert (verdict.ok, verdict.row_id) == (False, 13)


def test_a_store_that_was_tampered_with_is_not_written_on_as_if_nothing_had_happened(store):
    """A row that stands where the next one belongs stops the journal; it is not overwritten."""
    change(store, "INSERT INTO audit SELECT 13, body, hash FROM audit WHERE id = 12")

    async def write() -> None:
        journal = SqliteJournal(store, "other")
        journal.open()
        try:
            await written(journal, accepted("new"))
        finally:
            await journal.close()

    with pytest.raises(UnavailableError) as raised:
        asyncio.run(write())
    assert raised.value.code == "STORE_UNAVAILABLE"
    with closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection).row_id == ROWS + 1


def test_a_row_that_cannot_be_read_is_an_error_that_names_the_store(store):
    change(store, "UPDATE audit SET body = x'00' WHERE id = 5")

    async def read() -> None:
        journal = SqliteJournal(store, "other")
        journal.open()
        try:
            assert len(journal.rows(limit=4)) == 4
            journal.rows()
        finally:
            await journal.close()

    with pytest.raises(UnavailableError, match=r"store\.db") as raised:
        asyncio.run(read())
    assert raised.value.code == "STORE_UNAVAILABLE"


def test_the_view_shows_each_row_field_by_field_as_the_reader_does(store):
    with closing(connect(store, read_only=True)) as connection:
        names = ", ".join(("id", *ENTRY_FIELDS, "previous_hash", "hash"))
        shown = connection.execute(f"SELECT {names} FROM audit_rows ORDER BY id").fetchall()
        assert shown == [tuple(row) for row in read_rows(connection)]


# --- a chain whose beginning was cut off ---

KEY = b"k" * 32
CUT_AT = 5
LEFT = ROWS - CUT_AT + 1  # and the row that notes the cut


@pytest.fixture
def cut_store(store: Path) -> Path:
    with closing(connect(store)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        cut(connection, check_cut(connection, CUT_AT, KEY), KEY, 7_000)
        connection.execute("COMMIT")
    return store


def verdict_of(store: Path, key: bytes | None = KEY) -> Verdict:
    with closing(connect(store, read_only=True)) as connection:
        return verify_chain(connection, key)


def test_a_cut_chain_verifies_with_its_key_and_says_so_without(cut_store):
    assert verdict_of(cut_store) == (True, LEFT, None, "")
    without = verdict_of(cut_store, None)
    assert (without.ok, without.rows) == (True, LEFT)
    assert "the seal of that was not checked" in without.reason
    with closing(connect(cut_store, read_only=True)) as connection:
        rows = read_rows(connection)
    assert [row.id for row in rows] == list(range(CUT_AT + 1, ROWS + 2))
    assert (rows[-1].kind, rows[-1].created_at) == ("cut", 7_000)
    assert rows[0].previous_hash in rows[-1].note


CHECKPOINT_TAMPERINGS = {
    "remove the checkpoint": ["DELETE FROM checkpoint"],
    "move it forward and remove a row": [
        "UPDATE checkpoint SET body = CAST(json_array(6, (SELECT hash FROM audit WHERE id = 6), 13, 7000) AS BLOB)",
        "DELETE FROM audit WHERE id = 6",
    ],
    "move it back": ["UPDATE checkpoint SET body = CAST(replace(CAST(body AS TEXT), '[5,', '[4,') AS BLOB)"],
    "give it another hash": [f"UPDATE checkpoint SET body = CAST(json_array(5, {OTHER_HASH}, 13, 7000) AS BLOB)"],
    "give it another time": ["UPDATE checkpoint SET body = CAST(replace(CAST(body AS TEXT), '7000', '7001') AS BLOB)"],
    "take its seal away": ["UPDATE checkpoint SET seal = ''"],
    "make it unreadable": ["UPDATE checkpoint SET body = x'00'"],
    "remove the first row that is left": ["DELETE FROM audit WHERE id = 6"],
    "edit a row that is left": [f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 9"],
    "put a row back before it": ["INSERT INTO audit SELECT 5, body, hash FROM audit WHERE id = 6"],
    "remove the row that notes the cut": ["DELETE FROM audit WHERE id = 13"],
    "remove that row and set the head back": [
        "DELETE FROM audit WHERE id = 13",
        "UPDATE head SET id = 12, hash = (SELECT hash FROM audit WHERE id = 12)",
    ],
}


@pytest.mark.parametrize("statements", CHECKPOINT_TAMPERINGS.values(), ids=CHECKPOINT_TAMPERINGS)
def test_tampering_with_a_cut_chain_is_found(cut_store, statements):
    change(cut_store, *statements)
    verdict = verdict_of(cut_store)
    assert not verdict.ok
    assert verdict.reason


def test_a_cut_that_no_row_notes_is_told_with_the_first_row_that_is_left(cut_store):
    change(cut_store, *CHECKPOINT_TAMPERINGS["remove that row and set the head back"])
    verdict = verdict_of(cut_store)
    assert (verdict.ok, verdict.row_id) == (False, CUT_AT + 1)
    assert verdict.reason == f"no row says that the rows up to {CUT_AT} were removed"


@pytest.mark.parametrize("key", [b"", b"x" * 32], ids=["without a key", "with another"])
def test_a_cut_forged_by_the_book_but_without_the_key_is_found(cut_store, key):
    """A further row is removed, the cut is noted in a well-sealed row and the head is moved: only the seal tells."""
    with closing(sqlite3.connect(cut_store)) as connection:
        hashes = dict(connection.execute("SELECT id, hash FROM audit"))
        noted = cut_entry(6, hashes[6], 7_000)
        connection.execute("INSERT INTO audit VALUES (14, ?, ?)", (noted, sealed(14, noted, hashes[13])))
        connection.execute("UPDATE head SET id = 14, hash = ?", (sealed(14, noted, hashes[13]),))
        connection.execute("DELETE FROM audit WHERE id = 6")
        body = f'[6,"{hashes[6]}",14,7000]'.encode()
        connection.execute("UPDATE checkpoint SET body = ?, seal = ?", (body, checkpoint_seal(body, key)))
        connection.commit()
        assert verify_chain(connection).ok
        verdict = verify_chain(connection, KEY)
    assert (verdict.ok, verdict.row_id) == (False, 7)
    assert "sealed under another key" in verdict.reason


def test_a_chain_that_does_not_verify_is_not_cut(store):
    change(store, f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 4")
    with closing(connect(store)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        with pytest.raises(ValueError, match="row 4 does not fit"):
            check_cut(connection, CUT_AT, KEY)
        connection.execute("ROLLBACK")
        assert connection.execute("SELECT count(*) FROM audit").fetchone() == (ROWS,)


def test_a_chain_is_cut_again_and_again_and_written_on(cut_store):
    with closing(connect(cut_store)) as connection:
        for last_id in (7, 13):
            connection.execute("BEGIN IMMEDIATE")
            cut(connection, check_cut(connection, last_id, KEY), KEY, 8_000)
            connection.execute("COMMIT")
        assert verify_chain(connection, KEY) == (True, 2, None, "")
        assert connection.execute("SELECT count(*) FROM audit_trees").fetchone() == (0,)

    async def write() -> None:
        journal = SqliteJournal(cut_store, "other")
        journal.open()
        await written(journal, accepted("new"), settled("new"))
        assert [row.id for row in journal.rows(root_id="new")] == [16, 17]
        await journal.close()

    asyncio.run(write())
    assert verdict_of(cut_store) == (True, 4, None, "")


@pytest.mark.parametrize("newest", [1, 3, ROWS - 1, ROWS, ROWS + 1])
def test_of_the_newest_rows_alone_that_many_are_verified(store, newest):
    with closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection, newest=newest) == (True, min(newest, ROWS), None, "")


@pytest.mark.parametrize(("newest", "is_ok"), [(ROWS - 5, True), (ROWS - 4, False), (ROWS, False)])
def test_a_row_that_was_edited_is_found_where_it_is_among_the_newest(store, newest, is_ok):
    change(store, f"UPDATE audit SET body = {EDITED_BODY} WHERE id = 5")
    with closing(connect(store, read_only=True)) as connection:
        verdict = verify_chain(connection, newest=newest)
    assert (verdict.ok, verdict.row_id) == (is_ok, None if is_ok else 5)


def test_the_newest_rows_end_where_the_chain_does_and_a_row_whose_hash_is_no_text_begins_none(store):
    change(store, "UPDATE audit SET hash = 7 WHERE id = 9")
    with closing(connect(store, read_only=True)) as connection:
        assert not verify_chain(connection, newest=ROWS - 9).ok
    change(store, f"DELETE FROM audit WHERE id = {ROWS}")
    with closing(connect(store, read_only=True)) as connection:
        assert not verify_chain(connection, newest=1).ok
