"""Both handoff queues keep one contract; the one in a store is shared by processes and outlives them."""

from __future__ import annotations

import asyncio
import contextlib

from comity.core.envelope.envelope import Reply
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import Cancel, Complete, State
from comity.core.handoff.queue import Listen, Step, Sweep
from comity.core.journal.retention import Keep
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite import handoff_rows as handoff_tables
from comity.engines.sqlite import handoffs
from comity.engines.sqlite.connecting import connect
from comity.engines.sqlite.journal import SqliteJournal
from comity.testing.contracts.handoffs import LANE, ME, NOW, HandoffContract, change, do, made, offer, run, take, taking, until


class TestMemoryHandoffs(HandoffContract):
    def make(self, folder):
        return MemoryJournal("node")

    def test_only_the_newest_that_ended_are_kept_and_every_open_one(self, journal, monkeypatch):
        async def scenario(journal):
            await offer(journal, made("open"), *(made(f"h{number}") for number in range(5)))
            for number in range(5):
                await change(journal, f"h{number}", Cancel("no"))
            assert [one.id for one in journal.handoffs.find()] == ["h4", "h3", "open"]

        monkeypatch.setattr(handoffs, "SETTLED_KEPT_MAX", 2)
        run(journal, scenario)

    def test_what_has_ended_is_kept_past_its_retention_while_its_tree_is_under_way(self, journal):
        async def scenario(journal):
            await offer(journal, made("h"))
            await change(journal, "h", Cancel("no"))
            kept = journal.handoffs.prune(Keep(count=0), {"h"}, NOW)
            assert (kept, [one.id for one in journal.handoffs.find()]) == ([], ["h"])
            assert journal.handoffs.prune(Keep(count=0), (), NOW) == [("default", "h")]

        run(journal, scenario)


class TestSqliteHandoffs(HandoffContract):
    def make(self, folder):
        return SqliteJournal(folder / "store.db", "node")

    def test_another_node_takes_up_what_a_dead_one_had(self, tmp_path):
        async def first(journal):
            await do(journal, Step(change=Listen("gone", (LANE,)), now_ms=NOW))
            await offer(journal, made("h"))
            await take(journal)

        async def second(journal):
            assert journal.handoffs.knows_of_the_dead
            (again,) = await take(journal, now_ms=NOW + 6)  # long before its lease ends
            assert (again.id, again.fence) == ("h", 2)
            assert not journal.handoffs.knows_of_the_dead

        holder = SqliteJournal(tmp_path / "store.db", "gone")
        run(holder, first)
        with contextlib.closing(connect(tmp_path / "store.db")) as connection:
            connection.execute("UPDATE handoffs SET holder = 'gone#1'")
        run(SqliteJournal(tmp_path / "store.db", "node"), second)

    def test_the_dead_are_not_forgotten_before_somebody_sweeps(self, journal):
        async def scenario(journal):
            await do(journal, Step(change=Listen("dead", (LANE,)), now_ms=NOW))
            await offer(journal, made("h", made_by="x"))
            await until(lambda: journal.heard)
            await do(journal, taking())
            assert journal.handoffs.knows_of_the_dead

        run(journal, scenario)

    def test_whoever_rings_at_the_door_of_the_dead_notices(self, journal, tmp_path):
        async def scenario(journal):
            await do(journal, Step(change=Listen("dead", (LANE,)), now_ms=NOW))
            await offer(journal, made("h", made_by="x"))
            await until(lambda: journal.heard)
            assert journal.heard == [None]
            assert journal.handoffs.knows_of_the_dead
            await do(journal, Step(change=Sweep(), now_ms=NOW))
            assert not journal.handoffs.knows_of_the_dead

        run(journal, scenario)

    def test_two_processes_hear_each_other(self, tmp_path):
        async def scenario():
            one, two = (SqliteJournal(tmp_path / "store.db", name) for name in ("one", "two"))
            heard = {"one": [], "two": []}
            for journal in (one, two):
                journal.open()
                journal.handoffs.open(heard[journal.node_id].append)
            await do(one, Step(change=Listen("one", ("-",)), now_ms=NOW))
            await do(two, Step(change=Listen("two", (LANE,)), now_ms=NOW))
            await offer(one, made("h", made_by="one"), made("i", made_by="one"))
            await until(lambda: heard["two"])
            assert heard["two"] == [{f"+{LANE}"}]
            (taken,) = await take(two)
            await change(two, "h", Complete(Holder(ME, taken.fence), Reply.success(1)))
            await until(lambda: heard["one"])
            assert heard["one"] == [
                {"!h"}
            ]  # what it made has ended; that it was taken is for those who want to hear everything
            await do(one, Step(change=Listen("one", ("*",)), now_ms=NOW))
            await take(two)
            await until(lambda: len(heard["one"]) > 1)
            assert heard["one"] == [{"!h"}, {"=i"}]
            assert one.handoffs.get("h").state is State.COMPLETED
            for journal in (one, two):
                journal.handoffs.close()
                await journal.close()
            assert not list(tmp_path.glob("*.bell"))

        asyncio.run(scenario())

    def test_a_store_without_handoffs_has_no_tables_for_them(self, tmp_path):
        async def scenario():
            journal = SqliteJournal(tmp_path / "store.db", "node")
            journal.open()
            await journal.close()

        asyncio.run(scenario())
        with contextlib.closing(connect(tmp_path / "store.db")) as connection:
            assert not handoff_tables.exists(connection)
            handoff_tables.prepare(connection)
            handoff_tables.prepare(connection)
            assert handoff_tables.exists(connection)
