"""What is written to a store file and read from it, seen from the file."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

import pytest

from comity.core.journal.records import Document, Saved, part_key
from comity.engines.sqlite.audit_rows import add_trees, check_cut, cut, root_of, verify_chain
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.erasing import erase_session
from comity.engines.sqlite.file import make_file
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.tables import calls_of_session, prepare, write_batch
from comity.errors import UnavailableError
from comity.testing.contracts.records import accepted, refused, run, settled, written

SECRET = "a word between us"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def tell_secrets(number: int) -> list:
    """Records of two sessions, of which only one is to be erased: short ones, and some that fill pages of their own."""
    name, text = f"r{number}", SECRET * (1 if number % 3 else 2_000)
    return [
        accepted(name, inputs=b'{"text":"%s"}' % text.encode()),
        settled(name, text),
        accepted(f"{name}-open", inputs=b'{"text":"%s"}' % text.encode()),
        settled(f"{name}-theirs", "harmless" * 50, session_id="s-2"),
        Saved(Document.SESSION, "default\x1fs-1", number, text.encode()),
    ]


def files_that_know(store: Path) -> list[str]:
    return [path.name for path in store.parent.iterdir() if SECRET.encode() in path.read_bytes()]


def test_what_was_erased_stands_in_no_file_any_more(store):
    async def scenario(journal: SqliteJournal) -> None:
        for number in range(12):
            accepted_first, *others = tell_secrets(number)
            await written(journal, accepted_first)  # what it asked is written, and then replaced by what it was told
            await written(journal, *others)
        assert files_that_know(store)
        assert journal.erase("default", "s-1") == 25
        assert files_that_know(store) == []
        assert journal.verify() == (True, 48, None, "")
        await written(journal, accepted("afterwards"))

    run(SqliteJournal(store, "node"), scenario)


def test_each_refusal_below_a_call_is_stored_under_its_own_id(store):
    """A batch on terms is built twice; the second time no refusal may be stored as another whose memory it got."""
    ids = [f"r.{number}" for number in range(1, 9)]
    on_terms = Saved(Document.STATE, "A", 1, b"{}", token=1)

    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, *(refused(one, parent_id="r") for one in ids), on_terms)
        assert [journal.call(one).request_id for one in ids] == ids

    run(SqliteJournal(store, "node"), scenario)


def test_the_index_of_trees_is_filled_from_an_old_audit_of_many_rows(store):
    """It is filled by the thousand: a tree whose rows lie in two of these parts has an entry for each."""
    spread = [accepted("r"), *(one for n in range(1_000) for one in (accepted(f"s{n}"), settled(f"s{n}"))), settled("r")]
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, spread, "node")
        connection.execute("DROP TABLE audit_trees")
        add_trees(connection)
        places = "SELECT first_id, last_id FROM audit_trees WHERE root_id = ? ORDER BY first_id"
        assert connection.execute(places, ("r",)).fetchall() == [(1, 1), (2_002, 2_002)]
        assert connection.execute(places, ("s499",)).fetchall() == [(1_000, 1_000), (1_001, 1_001)]
        assert connection.execute("SELECT count(*) FROM audit_trees").fetchone() == (2 + 1_000 + 2,)


def test_erasing_a_session_takes_every_document_of_it_and_none_of_another(store):
    def documents(tenant_id: str, session_id: str) -> list[Saved]:
        key, asked = (
            f"{tenant_id}\x1f{session_id}",
            b'{"tenant_id":"%s","session_id":"%s"}' % (tenant_id.encode(), session_id.encode()),
        )
        return [
            *(Saved(kind, key, 1, b"{}") for kind in (Document.SESSION, Document.USE, Document.VAULT)),
            *(Saved(Document.PART, part_key(key, number), 1, b"{}") for number in (0, 7)),
            Saved(Document.APPROVAL, f"{tenant_id}-{session_id}", 1, asked),
        ]

    mine, others = (
        documents("acme", "s"),
        [*documents("acme", "s2"), *documents("evil", "s"), Saved(Document.STATE, "A", 1, b"{}")],
    )
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, [*mine, *others], "node")
        assert erase_session(connection, "acme", "s") == len(mine) - 2  # its rows count with it
        left = set(connection.execute("SELECT kind, key FROM documents"))
    assert left == {(one.kind.value, one.key) for one in others}


def test_the_calls_of_a_session_are_those_of_its_tenant_and_name(store):
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        records = [accepted("mine"), accepted("far", tenant_id="other"), settled("says s-1", "s-1", session_id="s-2")]
        write_batch(connection, records, "node")
        assert [call.request_id for call in calls_of_session(connection, "default", "s-1")] == ["mine"]


def test_the_root_of_a_call_is_found_in_the_audit_by_the_call_alone(store):
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        asked = [accepted("r"), accepted("r.1", parent_id="r"), accepted("r.1#2", parent_id="r.1"), accepted("of.user")]
        write_batch(connection, asked, "node")
        found = [root_of(connection, one) for one in ("r", "r.1", "r.1#2", "of.user", "r.2", "of", "s")]
    assert found == ["r", "r", "r", "of.user", None, None, None]


def test_an_erasure_says_when_a_reader_still_keeps_what_was_erased(store):
    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, *tell_secrets(1))
        with contextlib.closing(connect(store, read_only=True)) as reader:
            reader.execute("BEGIN")
            reader.execute("SELECT count(*) FROM calls").fetchone()
            with pytest.raises(UnavailableError, match="once more"):
                journal.erase("default", "s-1")
            assert journal.call("r1") is None
        assert journal.erase("default", "s-1") == 0
        assert files_that_know(store) == []
        await written(journal, accepted("afterwards"))  # and nobody else was harmed

    run(SqliteJournal(store, "node"), scenario)


def test_what_is_called_off_before_the_commit_is_not_there(store):
    def call_off() -> None:
        raise OSError("called off")

    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, [accepted("a")], "node")
        with pytest.raises(OSError, match="called off"):
            write_batch(connection, [accepted("b"), Saved(Document.STATE, "X", 1, b"")], "node", call_off)
        connection.execute("ROLLBACK")
        assert verify_chain(connection) == (True, 1, None, "")
        assert connection.execute("SELECT count(*) FROM documents").fetchone() == (0,)


def test_rows_of_a_tree_are_found_once_its_calls_are_gone(store):
    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("a"), accepted("b"), settled("a", session_id="s-1"))
        await written(journal, settled("b", session_id="s-1"), accepted("a.1", parent_id="a"))
        before = {root: [row.id for row in journal.rows(root_id=root)] for root in ("a", "b")}
        assert before == {"a": [1, 3, 5], "b": [2, 4]}
        assert journal.erase("default", "s-1") == 3
        assert {root: [row.id for row in journal.rows(root_id=root)] for root in before} == before

    run(SqliteJournal(store, "node"), scenario)


def test_a_call_that_goes_after_its_rows_leaves_nothing(store):
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, [accepted("a"), settled("a", "done")], "node")
        connection.execute("BEGIN IMMEDIATE")
        cut(connection, check_cut(connection, 2, b"key"), b"key", 7_000)
        connection.execute("DELETE FROM calls")
        assert connection.execute("SELECT count(*) FROM audit_trees").fetchone() == (0,)
        connection.execute("COMMIT")


def test_a_plain_batch_makes_no_entry_of_trees_beside_its_calls(store):
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, [accepted("a"), accepted("b"), settled("b", "done"), settled("a", "done")], "node")
        assert connection.execute("SELECT count(*) FROM audit_trees").fetchone() == (0,)
        places = "SELECT request_id, first_id, last_id FROM calls ORDER BY request_id"
        assert connection.execute(places).fetchall() == [("a", 1, 4), ("b", 2, 3)]
        write_batch(connection, [accepted("c")], "node")
        write_batch(connection, [settled("c", "done")], "node")
        assert connection.execute("SELECT * FROM audit_trees").fetchall() == [("c", 6, 6)]


def test_a_reader_cannot_write(store):
    make_file(store)
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
    with (
        contextlib.closing(connect(store, read_only=True)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute("DELETE FROM audit")


@pytest.mark.parametrize("records", [1, 2, 3, 127, 128, 129, 200])
def test_a_batch_of_any_size_is_written_whole(store, records):
    with contextlib.closing(connect(store)) as connection:
        prepare(connection)
        write_batch(connection, [accepted(f"r{n}") for n in range(records)], "node")
        assert verify_chain(connection) == (True, records, None, "")
        assert connection.execute("SELECT count(*), count(DISTINCT request_id) FROM calls").fetchone() == (records, records)


def test_erased_bytes_are_overwritten_also_where_sqlite_is_not_built_so(tmp_path, monkeypatch):
    def not_by_default(*given, **more):
        connection = sqlite3_connect(*given, **more)
        connection.execute("PRAGMA secure_delete = OFF")
        return connection

    sqlite3_connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", not_by_default)
    with contextlib.closing(connect(tmp_path / "s.db")) as connection:
        assert connection.execute("PRAGMA secure_delete").fetchone() == (1,)
