"""A commit is synced inside its transaction, after it, or later; nothing is acknowledged before its sync."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sqlite3
from pathlib import Path

import pytest

from comity.core.handoff.machine import Offer
from comity.core.handoff.queue import Step
from comity.core.journal.records import Document, Saved
from comity.core.journal.terms import Terms
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.journal import SqliteJournal
from comity.engines.sqlite.judging import Conditional
from comity.engines.sqlite.reader import StoreReader
from comity.engines.sqlite.syncing import Sync, Syncing, sync_of
from comity.engines.sqlite.turns import Turns
from comity.errors import UnavailableError
from comity.testing.contracts.handoffs import NOW, made, taking
from comity.testing.contracts.records import accepted, settled

OFFER = Step(handoff_id="h", change=Offer(made("h")), now_ms=NOW)
CALL = (accepted("a"), settled("a", {}), Saved(Document.STATE, "A", 1, b"{}"))
SHOWN = Saved(Document.APPROVAL, "1", 1, b"{}")  # another process shows it without writing anything


@pytest.mark.parametrize(
    ("records", "alone", "shared"),
    [
        (CALL, Sync.WITHIN, Sync.AFTER),
        ([Conditional(CALL, Terms())], Sync.WITHIN, Sync.AFTER),
        ([], Sync.WITHIN, Sync.AFTER),
        ([*CALL, SHOWN], Sync.WITHIN, Sync.WITHIN),
        ([Conditional((SHOWN,), Terms())], Sync.WITHIN, Sync.WITHIN),
        ([taking()], Sync.LATER, Sync.LATER),
        ([taking(), OFFER], Sync.WITHIN, Sync.WITHIN),
        ([taking(), *CALL], Sync.WITHIN, Sync.WITHIN),
    ],
)
def test_what_others_answer_from_is_synced_before_they_see_it(records, alone, shared):
    assert (sync_of(records, is_shared=False), sync_of(records, is_shared=True)) == (alone, shared)


def test_the_level_of_a_connection_follows_its_batches_also_after_a_failure(tmp_path):
    with contextlib.closing(connect(tmp_path / "work.db")) as connection:
        syncing = Syncing(Turns(lambda: False))
        with contextlib.suppress(sqlite3.OperationalError), syncing.commit(connection, [taking()]):
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("SELECT 1 FROM nowhere")
        connection.rollback()
        assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
        with syncing.commit(connection, [OFFER]):
            assert connection.execute("PRAGMA synchronous").fetchone() == (2,)


def on_a_loop(test):
    """Run a test on an event loop of real time: the writer is a thread."""

    def run(tmp_path, monkeypatch):
        asyncio.run(test(tmp_path, monkeypatch))

    return run


@contextlib.asynccontextmanager
async def sharing(path: Path):
    """Open a journal that shares its store."""
    journal = SqliteJournal(path, "n1")
    journal.open()
    journal.members.share()
    try:
        yield journal
    finally:
        await journal.close()


async def told(journal: SqliteJournal, *records) -> Exception | None:
    done = asyncio.get_running_loop().create_future()
    journal.append(records, done.set_result)
    return await done


def refuse(file: int) -> None:
    raise OSError("the disk is gone")


@on_a_loop
async def test_a_commit_whose_sync_fails_is_not_acknowledged(tmp_path, monkeypatch):
    async with sharing(tmp_path / "work.db") as journal:
        assert await told(journal, accepted("a")) is None
        monkeypatch.setattr(os, "fdatasync", refuse)
        error = await told(journal, settled("a", {}))
        assert isinstance(error, UnavailableError)
        assert journal.failure is error


@on_a_loop
async def test_the_turn_is_over_before_the_sync_begins(tmp_path, monkeypatch):
    async with sharing(tmp_path / "work.db") as journal:
        waiting = []
        monkeypatch.setattr(os, "fdatasync", lambda file: waiting.append(journal._turns._thread.locked()))
        assert await told(journal, accepted("a")) is None
        assert waiting == [False]


@on_a_loop
async def test_an_answer_of_another_process_is_synced_before_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "work.db"
    async with sharing(path) as journal:
        assert await told(journal, accepted("open"), accepted("done"), settled("done", {})) is None
        synced: list[str] = []
        monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
        assert journal.call("open") is not None
        assert synced == []
        assert journal.call("done") is not None
        assert synced == ["work.db-wal"]
        with StoreReader(path) as reader:
            assert reader.call("open") is not None
            assert synced == ["work.db-wal"]
            assert reader.call("done") is not None
        assert synced == ["work.db-wal"] * 2


@on_a_loop
async def test_what_a_killed_process_left_unsynced_is_synced_when_the_store_is_opened(tmp_path, monkeypatch):
    synced: list[str] = []
    monkeypatch.setattr(os, "fdatasync", lambda file: synced.append(Path(f"/proc/self/fd/{file}").readlink().name))
    journal = SqliteJournal(tmp_path / "work.db", "n1")
    journal.open()
    await journal.close()
    assert synced == ["work.db-wal"]
