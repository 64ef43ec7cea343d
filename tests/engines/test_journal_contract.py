"""Both journals keep one contract, and no sequence of records tells them apart, nor the simulated one from them."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from simulated_journal import Unwatched

from comity.core.call.limits import MEMORY_AUDIT_ROWS_MAX, SETTLED_KEPT_MAX
from comity.core.journal.records import Document, Saved
from comity.engines.memory.journal import MemoryJournal
from comity.engines.sqlite.journal import SqliteJournal
from comity.ports import Journal
from comity.testing import World
from comity.testing.contracts.journal import JournalContract
from comity.testing.contracts.records import accepted, late, paused, play, refused, settled, written


class TestMemory(JournalContract):
    def make(self, folder: Path) -> Journal:
        return MemoryJournal("node")

    def test_only_the_newest_rows_are_kept_and_they_verify_whether_or_not_somebody_read_in_between(self) -> None:
        for reads in ((), (10,), (10, MEMORY_AUDIT_ROWS_MAX + 5)):
            journal = MemoryJournal("node")
            total = 2 * MEMORY_AUDIT_ROWS_MAX + 7
            one = refused("a")
            for number in range(total):
                journal.append((one,))
                if number in reads:
                    assert journal.rows()[-1].id == number + 1
            ids = [row.id for row in journal.rows()]
            assert ids == list(range(total - MEMORY_AUDIT_ROWS_MAX + 1, total + 1))
            assert journal.verify() == (True, MEMORY_AUDIT_ROWS_MAX, None, "")

    def test_only_the_newest_settled_calls_are_kept_and_every_open_one(self) -> None:
        journal = MemoryJournal("node")
        journal.append((accepted("open"),))
        for number in range(SETTLED_KEPT_MAX + 3):
            journal.append((settled(f"r{number}"),))
        assert [journal.call(f"r{number}") is None for number in range(5)] == [True, True, True, False, False]
        assert journal.call("open") is not None

    def test_a_settled_call_that_was_erased_and_came_again_is_as_new_as_it_looks(self) -> None:
        journal = MemoryJournal("node")
        journal.append((settled("again", session_id="erased"),))
        journal.erase("default", "erased")
        for number in range(SETTLED_KEPT_MAX):
            journal.append((settled(f"r{number}"),))
        assert journal.call("r0") is not None  # what was erased takes no place
        journal.append((settled("again"),))
        assert journal.call("r0") is None
        for number in range(SETTLED_KEPT_MAX - 1):
            journal.append((settled(f"s{number}"),))
        assert journal.call("again") is not None


class TestSqlite(JournalContract):
    def make(self, folder: Path) -> Journal:
        return SqliteJournal(folder / "deep" / "er" / "store.db", "node")

    def test_everything_is_there_again_after_reopening(self, tmp_path: Path) -> None:
        async def life(node_id: str) -> tuple:
            journal = SqliteJournal(tmp_path / "store.db", node_id)
            journal.open()
            await written(
                journal, accepted(f"{node_id}-a"), settled(f"{node_id}-a", 1), Saved(Document.STATE, "X", len(node_id), b"{}")
            )
            seen = (journal.rows(), journal.calls(limit=9), journal.load(Document.STATE, "X"), journal.verify())
            await journal.close()
            return seen

        rows, calls, _, _ = asyncio.run(life("n"))
        rows_later, calls_later, state_later, verdict = asyncio.run(life("nn"))
        assert rows_later[:2] == rows
        assert calls_later[1:] == calls
        assert state_later == (2, b"{}")
        assert verdict == (True, 4, None, "")


_NAMES = st.sampled_from(["a", "b", "a.1", "a.1.1", "b.1"])


def _record(kind: str, name: str, data: int):
    parent_id = name.rpartition(".")[0] or None
    created_at = {"a": 1, "b": 2}.get(name, 3)
    match kind:
        case "accepted":
            return accepted(name, parent_id=parent_id, created_at=created_at)
        case "settled":
            return settled(name, data, parent_id=parent_id, created_at=created_at)
        case "refused":
            return refused(name, parent_id=parent_id, created_at=created_at)
        case "paused":
            return paused(name, parent_id=parent_id, created_at=created_at)
        case "late":
            return late(name, data, parent_id=parent_id, created_at=created_at)
        case _:
            return Saved(Document.STATE, name, data // 2, b"%d" % data)


_RECORDS = st.builds(
    _record, st.sampled_from(["accepted", "settled", "refused", "late", "paused", "state"]), _NAMES, st.integers(0, 5)
)
_APPENDS = st.lists(st.tuples(st.lists(_RECORDS, max_size=6), st.booleans()), max_size=12)


@given(_APPENDS)
def test_no_sequence_of_records_tells_them_apart(appends) -> None:
    """Down to the hashes: the chain is a function of the records."""

    async def view(journal: Journal) -> tuple:
        journal.open()
        try:
            for records, is_awaited in appends:
                if is_awaited:
                    await written(journal, *records)
                else:
                    journal.append(tuple(records))
            await written(journal)
            return (
                journal.rows(),
                sorted(call.request_id for call in journal.take_paused("a")),
                [journal.call(name) for name in ("a", "b", "a.1", "a.1.1", "b.1")],
                sorted(call.request_id for call in journal.calls(limit=9)),
                [journal.load(Document.STATE, name) for name in ("a", "b", "a.1", "a.1.1", "b.1")],
                journal.verify(),
            )
        finally:
            await journal.close()

    with tempfile.TemporaryDirectory() as folder:
        durable = asyncio.run(view(SqliteJournal(Path(folder) / "store.db", "node")))
    assert durable == asyncio.run(view(MemoryJournal("node")))
    simulated = Unwatched(World(1))
    assert durable == play(simulated, view(simulated))
    simulated.bury()
