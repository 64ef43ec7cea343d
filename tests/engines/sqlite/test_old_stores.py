"""Stores as every release wrote them, killed in the middle of their work: the code of today opens them and reads all of it.

`stores/vN.tar.gz` was written by `stores/record.py` with the release whose store had version N, and ended by `os._exit`: one call
is open, one waits for a person, one handoff lies in the queue, and the write-ahead log was not copied into the file.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import sqlite3
import sys
import tarfile
from pathlib import Path

import pytest

from comity import AsyncHandoffManager, Node, Tool
from comity.cli.main import main
from comity.cli.reader import Store
from comity.engines.sqlite import liveness as presence
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.spans.rows import SCHEMA as SPANS
from comity.engines.sqlite.spans.store import SpanStore
from comity.engines.sqlite.tables import SCHEMA
from comity.errors import UnavailableError

STORES = Path(__file__).parent / "stores"
RELEASED = sorted(STORES.glob("v*.tar.gz"))
ROWS = 23

sys.path.insert(0, str(STORES))
from record import analyst, writer  # noqa: E402


@pytest.fixture(params=RELEASED, ids=lambda path: path.name.partition(".")[0])
def old(request, tmp_path) -> Path:
    with tarfile.open(request.param) as packed:
        packed.extractall(tmp_path, filter="data")
    return tmp_path / "store.db"


def version_of(path: Path) -> int:
    with contextlib.closing(connect(path, read_only=True)) as connection:
        return SCHEMA.version_of(connection)


def node_on(store: Path) -> Node:
    return Node([analyst, writer], store=store, tools=[Tool(name="pay", function=lambda amount: f"paid {amount}")])


def test_every_released_version_is_recorded():
    """A release whose store has a new version adds a recording; what is not released yet has none."""
    assert [path.name for path in RELEASED] == [f"v{number}.tar.gz" for number in range(1, len(RELEASED) + 1)]
    assert 1 <= len(RELEASED) <= SCHEMA.version


def test_a_node_opens_an_old_store_and_everything_in_it_is_still_there(old):
    async def scenario() -> None:
        async with node_on(old) as node:
            assert node.audit.verify() == (True, ROWS, None, "")
            assert [(row.request_id, row.kind) for row in node.audit.rows(root_id="npv")] == [
                ("npv", "admitted"),
                ("npv.1", "admitted"),
                ("npv.1", "settled"),
                ("npv.2", "refused"),
                ("npv", "settled"),
            ]
            again = await node.call(
                "ANL",
                "ANL_NPV",
                {"cash_flows": [-100, 60, 70], "discount_rate": 0.1},
                user_id="ann",
                request_id="npv",
                session_id="work",
                message="What is it worth?",
            )
            assert again.data["by"] == "npv is written"
            exported = node.export_session("work")
            assert exported is not None and exported["user_id"] == "ann"  # noqa: PT018
            told = await node.call(
                "DOC", "DOC_WRITE", {"title": "for ann@example.com"}, user_id="ann", request_id="told", session_id="work"
            )
            assert told.data == "for ann@example.com is written"  # the vault opens under the old key
            asked = {one.root_id: one for one in node.approvals()}
            assert (asked["granted"].granted, asked["asked"].granted) == (True, None)
            paid = await node.decide(asked["asked"].id, granted=True, by="cat")
            assert paid is not None and paid.data == "paid 5"  # noqa: PT018
            manager = AsyncHandoffManager("checkout", "orchestrator", node=node)
            assert await manager.get_result("done") == {"found": "nothing"}
            assert (await manager.get_handoff_status("left")).state == "timeout"  # it lay in the queue, and its time is over
            assert node.spans.count() == 11
            assert [one.name for one in node.spans.find('{ span.insight.type = "decision" }')]
            ended = await node.call("DOC", "DOC_WAIT", user_id="ann", request_id="running")
            assert ended.status == "timeout"  # taken up again, long after its deadline
            assert node.audit.verify().ok

    asyncio.run(scenario())


def test_an_old_store_is_copied_before_it_is_changed_and_the_copy_named(old, caplog):
    before = version_of(old)

    async def scenario() -> None:
        with caplog.at_level(logging.WARNING, "comity.store"):
            journal = SqliteJournal(old, "node")
            journal.open()
            await journal.close()

    asyncio.run(scenario())
    copy = old.with_name(f"store.db.v{before}.bak")
    assert caplog.messages == [
        f"{old} is brought from version {before} to version {SCHEMA.version}; as it was it is kept in {copy}"
    ]
    assert (version_of(old), version_of(copy)) == (SCHEMA.version, before)
    assert copy.stat().st_mode & 0o077 == 0
    with Store(copy) as kept:
        assert kept.verify() == (True, ROWS, None, "")
    assert not list(old.parent.glob("*.part"))


def test_old_spans_are_read_and_brought_forward(old):
    with SpanStore(old.with_name("store.db.spans")) as spans:
        assert spans.count() == 11
    with contextlib.closing(sqlite3.connect(old.with_name("store.db.spans"))) as connection:
        assert SPANS.version_of(connection) == SPANS.version


def test_who_only_reads_an_old_store_leaves_it_as_it_is(old, capsys):
    before = {path.name: path.read_bytes() for path in old.parent.iterdir()}
    with Store(old) as store:
        assert store.verify() == (True, ROWS, None, "")
        assert {one.id for one in store.sessions()} == {"work"}
        assert store.call("npv") is not None
        assert store.vault("default", "work") is not None
        assert {one.id for one in store.handoffs_of("default", store.handoff("done").request.session_id)} >= {"done"}
    assert main(["calls", "--json", "--store", str(old)]) == 0
    assert '"request_id": "last"' in capsys.readouterr().out
    after = {path.name: path.read_bytes() for path in old.parent.iterdir() if path.suffix not in {".db-shm", ".spans-shm"}}
    assert after == before


def test_an_old_store_is_not_changed_while_an_older_node_has_it_open(old):
    lock = presence.lock_path(old, "older")
    held = presence.enter(lock)
    try:
        with pytest.raises(UnavailableError, match="stop that node first"):
            SqliteJournal(old, "node").open()
    finally:
        presence.leave(lock, held)
    assert version_of(old) < SCHEMA.version or version_of(old) == len(RELEASED)
    assert not list(old.parent.glob("*.bak"))


def test_a_step_that_fails_leaves_the_old_store_as_it_was(old, monkeypatch):
    def broken(connection: sqlite3.Connection) -> None:
        connection.execute("DROP TABLE calls")
        raise sqlite3.OperationalError("no room")

    before = version_of(old)
    monkeypatch.setattr("comity.engines.sqlite.tables.SCHEMA", SCHEMA._replace(steps=(*SCHEMA.steps, broken)))
    with pytest.raises(UnavailableError, match="no room"):
        SqliteJournal(old, "node").open()
    monkeypatch.undo()
    assert version_of(old) == before
    with contextlib.closing(connect(old, read_only=True)) as connection:
        assert connection.execute("SELECT count(*) FROM calls").fetchone()[0]
    with Store(old) as store:
        assert store.verify().ok


def test_a_new_store_and_an_old_one_brought_forward_have_the_same_tables(old, tmp_path):
    def layout(path: Path) -> set[tuple[str, str]]:
        with contextlib.closing(sqlite3.connect(path)) as connection:
            return set(connection.execute("SELECT name, sql FROM sqlite_master WHERE name NOT LIKE 'handoff%'"))

    async def scenario() -> None:
        for path in (old, tmp_path / "new.db"):
            journal = SqliteJournal(path, "node")
            journal.open()
            await journal.close()

    asyncio.run(scenario())
    assert layout(old) == layout(tmp_path / "new.db")
    assert os.access(old, os.W_OK)
