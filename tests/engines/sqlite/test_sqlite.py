"""The store fails loudly and for good, shares its file with other processes, and leaves nothing of a dead node behind."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import resource
import shutil
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from death import let_go

from comity import Agent, Context, Node, Status
from comity.core.journal.records import Settled
from comity.engines.sqlite.audit_rows import verify_chain
from comity.engines.sqlite.connecting import WAL_BYTES_KEPT, connect
from comity.engines.sqlite.engine import SqliteEngine
from comity.engines.sqlite.journal import SWITCH_S, SqliteJournal
from comity.engines.sqlite.tables import SCHEMA_VERSION
from comity.errors import UnavailableError
from comity.testing.contracts.records import PATIENCE_S, accepted, run, settled, told_by, written

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def reopened(store: Path) -> dict[str, bool]:
    """Open the store as the next node would, check that the chain is whole, and return which calls are settled."""
    found: dict[str, bool] = {}

    async def look(journal: SqliteJournal) -> None:
        verdict = journal.verify()
        assert verdict.ok, verdict
        for row in journal.rows():
            call = journal.call(row.request_id)
            found[row.request_id] = call is not None and call.reply is not None
        await written(journal, accepted("afterwards"))
        assert journal.verify() == (True, verdict.rows + 1, None, "")

    run(SqliteJournal(store, "next"), look)
    return found


# --- failing ---


@contextlib.contextmanager
def full_disk(largest_bytes: int) -> Iterator[None]:
    """Let no file of this process grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def wal_bytes(store: Path) -> int:
    return Path(f"{store}-wal").stat().st_size


@contextlib.contextmanager
def locked_by_another(store: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(store)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.rollback()


@contextlib.contextmanager
def removed(path: Path) -> Iterator[None]:
    """Take a file away, and put it back."""
    aside = path.with_name("aside")
    path.rename(aside)
    yield
    aside.rename(path)


FAULTS = {
    "the disk is full": lambda store, _: full_disk(wal_bytes(store) + 1_000),
    "another program holds the lock": lambda store, _: locked_by_another(store),
    "the file is gone": lambda store, _: removed(store),
    "the write-ahead log is gone": lambda store, _: removed(Path(f"{store}-wal")),
    "the shared memory is gone": lambda store, _: removed(Path(f"{store}-shm")),
    "the node's lock is gone": lambda _, lock: removed(lock),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_after_a_failed_write_nothing_is_acknowledged_until_the_store_is_opened_again(store, fault, caplog):
    big = b'{"text":"%s"}' % (b"x" * 50_000)

    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("before"), settled("before"))
        with fault(store, journal.members.path):
            told = told_by(journal, [(accepted(f"during{n}", inputs=big), settled(f"during{n}")) for n in range(3)])
            with pytest.raises(UnavailableError) as raised:
                await written(journal, accepted("last", inputs=big))
        assert raised.value.code == "STORE_UNAVAILABLE"
        assert str(store) in str(raised.value)
        assert told == [journal.failure] * 3 == [raised.value] * 3
        # The cause is over, but what was lost stays lost: nothing later may be acknowledged.
        assert told_by(journal, [(accepted("later"),)]) == [raised.value]
        assert [row.request_id for row in journal.rows()] == ["before", "before"]

    run(SqliteJournal(store, "node", busy_timeout_ms=40), scenario)
    assert reopened(store) == {"before": True}
    assert "nothing more is accepted" in caplog.text


def test_a_file_whose_folder_vanished_is_not_written_as_if_it_were_there(tmp_path):
    folder = tmp_path / "folder"

    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("before"))
        shutil.rmtree(folder)
        with pytest.raises(UnavailableError, match="was removed"):
            await written(journal, settled("before"))

    run(SqliteJournal(folder / "store.db", "node"), scenario)


def test_a_record_that_cannot_be_stored_stops_the_journal_instead_of_its_thread(store):
    impossible = msgspec.structs.replace(settled("a").reply, data={1, object()})

    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("a"))
        with pytest.raises(UnavailableError, match="could not be written"):
            await written(journal, Settled(settled("a").request, impossible, 1))
        with pytest.raises(UnavailableError):
            await written(journal, settled("a"))

    run(SqliteJournal(store, "node"), scenario)
    assert reopened(store) == {"a": False}


def test_the_caller_of_a_node_reads_that_the_store_failed_and_finds_the_rest_after_the_restart(store):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context, text: str) -> int:
        return len(text)

    async def scenario() -> None:
        async with Node([agent], engine=SqliteEngine(store, "node")) as node:
            first = await node.call("A", "GO", {"text": "x"}, user_id="u", request_id="first")
            assert first.ok
            assert node.failure is None
            with full_disk(wal_bytes(store) + 1_000):
                calls = [node.call("A", "GO", {"text": "word " * 700}, user_id="u", request_id=f"lost{n}") for n in range(5)]
                replies = await asyncio.wait_for(asyncio.gather(*calls), PATIENCE_S)
            for reply in replies:
                assert (reply.status, reply.error.code) == (Status.ERROR, "STORE_UNAVAILABLE")
                assert (reply.error.message, reply.error.retryable) == (node.failure.message, False)
            assert f"{store} could not be written" in node.failure.message
            assert "restart the node" in node.failure.message
            assert not node.failure.retryable
            later = await node.call("A", "GO", {"text": "x"}, user_id="u", request_id="later")
            assert (later.status, later.error.code) == (Status.REFUSED, "STORE_UNAVAILABLE")  # not even begun

        assert node.failure.code == "NODE_CLOSED"

    asyncio.run(scenario())
    assert reopened(store) == {"first": True}


# --- who waits ---


def test_a_listener_that_raises_keeps_nothing_from_the_others(store, caplog):
    async def scenario(journal: SqliteJournal) -> None:
        def bad(error: Exception | None) -> None:
            raise RuntimeError("listener")

        journal.append((accepted("a"),), bad)
        told = told_by(journal, [(accepted("b"),), ()])
        await written(journal)
        assert told == [None, None]

    with caplog.at_level(logging.ERROR):
        run(SqliteJournal(store, "node"), scenario)
    assert "listener" in caplog.text


def test_a_listener_may_write(store):
    async def scenario(journal: SqliteJournal) -> None:
        done = asyncio.Event()

        def again(left: int) -> None:
            if left:
                journal.append((accepted(f"r{left}"), settled(f"r{left}")), lambda _: again(left - 1))
            else:
                done.set()

        again(5)
        await asyncio.wait_for(done.wait(), PATIENCE_S)
        assert len(journal.rows()) == 10

    run(SqliteJournal(store, "node"), scenario)


def test_who_asks_for_nothing_but_to_be_told_while_a_batch_is_written_is_told(store):
    async def scenario(journal: SqliteJournal) -> None:
        told: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
        journal.append((settled("one"),), lambda _: None)  # handed over at once: nothing is open
        journal.append((), told.set_result)
        assert await asyncio.wait_for(told, PATIENCE_S) is None

    run(SqliteJournal(store, "n1"), scenario)


def test_closing_writes_what_is_waiting_and_tells_who_waits_for_it(store):
    told: list[Exception | None] = []

    async def scenario() -> None:
        journal = SqliteJournal(store, "node")
        journal.open()
        with locked_by_another(store):  # the writer is stuck with the first batch while the second is gathered
            told.extend(told_by(journal, [(accepted("a"), settled("a"))]))
            late = told_by(journal, [(accepted("b"), settled("b"))])
            journal.append((accepted("c"),))
            closing = asyncio.ensure_future(journal.close())
            await asyncio.sleep(0)
            refused = told_by(journal, [(accepted("too late"),)])
        await asyncio.wait_for(closing, PATIENCE_S)
        await journal.close()  # once is enough, twice does no harm
        assert late == [None]
        assert isinstance(refused[0], UnavailableError)
        with pytest.raises(UnavailableError, match="closed"):
            journal.rows()

    asyncio.run(scenario())
    assert reopened(store) == {"a": True, "b": True, "c": False}


def test_a_loop_that_was_closed_without_closing_the_journal_leaves_a_writer_that_ends_in_peace(store):
    journal = SqliteJournal(store, "node")

    async def scenario() -> sqlite3.Connection:
        journal.open()
        other = sqlite3.connect(store, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        journal.append((accepted("a"), settled("a")), lambda _: None)
        return other

    with contextlib.closing(asyncio.run(scenario())) as other:
        other.execute("ROLLBACK")  # only now, with nobody left to report to, can the writer go on
    journal._batches.put(None)
    journal._thread.join(PATIENCE_S)
    assert not journal._thread.is_alive()
    journal._reader.close()
    journal._writer.close()
    let_go(journal.members)
    assert reopened(store) == {"a": True}


def test_calls_settled_for_another_life_do_not_upset_the_count_of_open_ones(store):
    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, *(settled(f"theirs{n}") for n in range(5)))
        journal.append((accepted("mine"),))
        assert journal._open == 1
        await written(journal, settled("mine"))
        assert journal._open == 0

    run(SqliteJournal(store, "node"), scenario)


# --- opening ---


def _not_a_database(path: Path) -> None:
    path.write_bytes(b"These are notes, not a database. " * 200)


def _another_programs(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE customers (name TEXT)")
        connection.commit()


def _a_later_schema(path: Path) -> None:
    reopened(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("UPDATE meta SET value = ? WHERE key = 'schema_version'", (str(SCHEMA_VERSION + 1),))
        connection.commit()


def _no_schema_version(path: Path) -> None:
    reopened(path)
    with contextlib.closing(sqlite3.connect(path)) as connection:
        connection.execute("DELETE FROM meta")
        connection.commit()


UNUSABLE = {
    "not a database": (_not_a_database, "not a database"),
    "a database of another program": (_another_programs, "another program"),
    "a later schema": (_a_later_schema, f"version {SCHEMA_VERSION + 1}, this program knows up to version {SCHEMA_VERSION}"),
    "no schema version": (_no_schema_version, "has no version"),
    "a folder": (Path.mkdir, "is not a file, so it is no store"),
    "a pipe": (os.mkfifo, "is not a file, so it is no store"),
}


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.parametrize(("make", "why"), UNUSABLE.values(), ids=UNUSABLE)
def test_what_is_no_store_is_refused_by_name_left_as_it_is_and_let_go(store, make, why):
    make(store)
    before = store.read_bytes() if store.is_file() else b""
    threads, files = threading.active_count(), open_files()

    async def scenario() -> None:
        with pytest.raises(UnavailableError, match=why) as raised:
            SqliteJournal(store, "node").open()
        assert raised.value.code == "STORE_UNAVAILABLE"
        assert str(store) in str(raised.value)

    asyncio.run(scenario())
    assert (threading.active_count(), open_files()) == (threads, files)
    assert (store.read_bytes() if store.is_file() else b"") == before


def test_a_store_that_may_not_be_written_is_refused():
    with tempfile.TemporaryDirectory() as folder:
        store = Path(folder) / "store.db"
        reopened(store)
        store.chmod(0o444)
        Path(folder).chmod(0o555)
        is_root = os.geteuid() == 0
        try:
            if is_root:
                os.seteuid(65534)  # root may write anything
            with pytest.raises(UnavailableError, match=r"cannot open the store .*store\.db"):
                SqliteJournal(store, "node").open()
        finally:
            if is_root:
                os.seteuid(0)
            Path(folder).chmod(0o755)


def test_a_node_of_the_same_name_is_not_let_in_twice(store):
    async def scenario(journal: SqliteJournal) -> None:
        with pytest.raises(UnavailableError, match="alive"):
            SqliteJournal(store, "node").open()
        await written(journal, accepted("a"))  # and the first was not harmed

    run(SqliteJournal(store, "node"), scenario)


def test_what_users_wrote_is_for_the_owner_of_the_store_alone(tmp_path):
    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("a"))
        names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in journal.path.parent.iterdir()}
        assert names == dict.fromkeys(("store.db", "store.db-wal", "store.db-shm", "store.db.node.lock"), 0o600)

    before = os.umask(0o022)
    try:
        run(SqliteJournal(tmp_path / "store.db", "node"), scenario)
    finally:
        os.umask(before)


def test_a_closed_store_is_one_file(store):
    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("a"))

    run(SqliteJournal(store, "node"), scenario)
    assert [path.name for path in store.parent.iterdir()] == [store.name]
    assert reopened(store) == {"a": False}


# --- sharing ---


def test_the_calls_of_a_living_node_are_its_own_and_those_of_a_dead_one_go_to_exactly_one(store):
    async def scenario() -> None:
        first, second, third = (SqliteJournal(store, name) for name in ("first", "second", "third"))
        for journal in (first, second, third):
            journal.open()
        await written(first, accepted("a", node_id="first", created_at=2), accepted("b", node_id="first", created_at=1))
        await written(first, accepted("done", node_id="first"), settled("done"))
        await written(second, accepted("c", node_id="second"))
        assert second.abandoned() == third.abandoned() == []

        await first.close()
        taken = second.abandoned()
        assert [(call.request_id, call.node_id) for call in taken] == [("b", "second"), ("a", "second")]
        assert taken[0].request is not None
        assert third.abandoned() == second.abandoned() == []
        found = third.call("a")
        assert found is not None
        assert found.node_id == "second"  # who asks about it is told who has it now
        await written(second, settled("a"))
        await second.close()
        assert [call.request_id for call in third.abandoned()] == ["b", "c"]
        await third.close()

    asyncio.run(scenario())


def test_of_two_that_look_at_the_same_moment_one_gets_each_call(store):
    async def scenario() -> None:
        rivals = [SqliteJournal(store, f"rival{n}") for n in range(2)]
        for rival in rivals:
            rival.open()
        with ThreadPoolExecutor(len(rivals)) as pool:
            for round_number in range(15):
                gone = SqliteJournal(store, f"gone{round_number}")
                gone.open()
                names = [f"r{round_number}-{n}" for n in range(4)]
                await written(gone, *(accepted(name, node_id=gone.node_id) for name in names))
                await gone.close()
                barrier = threading.Barrier(len(rivals))

                def look(rival: SqliteJournal, barrier: threading.Barrier = barrier) -> list[str]:
                    barrier.wait(PATIENCE_S)
                    return [call.request_id for call in rival.abandoned()]

                taken = [pool.submit(look, rival) for rival in rivals]
                assert sorted(name for one in taken for name in one.result(PATIENCE_S)) == names
        for rival in rivals:
            await rival.close()

    asyncio.run(scenario())


def test_processes_that_create_and_write_one_store_together_make_one_whole_chain(store, start_process):
    appends = 60
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    writers = [
        start_process(
            [sys.executable, HERE / "store_writer.py", store, f"writer{n}", str(appends)],
            stdin=subprocess.PIPE,
            stderr=None,
            env=environment,
            bufsize=1,
        )
        for n in range(3)
    ]
    for word in ("ready", "done"):
        for writer in writers:
            assert writer.stdout.readline() == f"{word}\n"
        if word == "ready":
            for writer in writers:
                writer.stdin.write("go\n")
    with contextlib.closing(connect(store, read_only=True)) as connection:
        assert verify_chain(connection) == (True, 3 * (2 * appends + 1), None, "")
        (settled_calls,) = connection.execute("SELECT count(*) FROM calls WHERE open_at IS NULL").fetchone()
        assert settled_calls == 3 * appends
    for writer in writers:
        writer.kill()
        writer.communicate()

    async def scenario(journal: SqliteJournal) -> None:
        assert sorted(call.request_id for call in journal.abandoned()) == [f"writer{n}-open" for n in range(3)]
        assert [path.name for path in store.parent.glob("*.lock")] == [f"{store.name}.node.lock"]

    run(SqliteJournal(store, "node"), scenario)


def test_a_long_reader_holds_up_nobody_and_the_log_shrinks_when_it_has_gone(store):
    big = b'{"text":"%s"}' % (b"x" * 1_000_000)

    async def scenario(journal: SqliteJournal) -> None:
        await written(journal, accepted("first"))
        with contextlib.closing(connect(store, read_only=True)) as reader:
            reader.execute("BEGIN")
            (count,) = reader.execute("SELECT count(*) FROM audit").fetchone()
            for number in range(WAL_BYTES_KEPT // 1_000_000 + 8):
                await written(journal, accepted(f"r{number}", inputs=big))
            assert reader.execute("SELECT count(*) FROM audit").fetchone() == (count,)
        assert wal_bytes(store) > WAL_BYTES_KEPT
        await written(journal, accepted("copied"))  # its commit copies the log into the main file
        await written(journal, accepted("begun anew"))
        assert wal_bytes(store) <= WAL_BYTES_KEPT

    run(SqliteJournal(store, "node"), scenario)


def test_a_new_store_can_give_room_back_to_the_disk_while_it_is_used(store):
    run(SqliteJournal(store, "n"), lambda journal: written(journal, accepted("r")))
    with contextlib.closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,), "incremental"


def test_refusals_of_an_id_that_another_user_has_are_recorded_each_with_its_own_user(store):
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> None: ...

    async def main() -> list[tuple[str, str]]:
        async with Node([agent], store=store) as node:
            calls = [node.start_call("A", "GO", user_id=user_id, request_id="r") for user_id in ("ann", "bob", "eve")]
            await asyncio.gather(*(call.reply() for call in calls))
            return [(str(row.kind), row.user_id) for row in node.audit.rows()]

    assert sorted(asyncio.run(main())) == [("admitted", "ann"), ("refused", "bob"), ("refused", "eve"), ("settled", "ann")]


@pytest.mark.parametrize("before_s", [0.005, SWITCH_S / 2])
def test_an_open_store_lets_its_writer_have_the_interpreter_soon_while_the_loop_is_busy(store, before_s):
    was_s = sys.getswitchinterval()

    async def main() -> float:
        sys.setswitchinterval(before_s)
        journal = SqliteJournal(store, "n")
        journal.open()
        try:
            return sys.getswitchinterval()
        finally:
            await journal.close()

    try:
        assert asyncio.run(main()) == pytest.approx(min(before_s, SWITCH_S), abs=2e-6), (
            "a shorter interval of the program stays"
        )
    finally:
        sys.setswitchinterval(was_s)
