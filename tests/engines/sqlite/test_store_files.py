"""A store is used only while every file of it is where it was when it was opened."""

import asyncio
import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from comity import Agent, Context, Node
from comity.core.tracing.span import Span
from comity.core.tracing.telemetry import Settings
from comity.engines.sqlite.files import StoreFiles, database_files
from comity.engines.sqlite.spans.store import SpanStore
from comity.errors import UnavailableError

FILES = ["", "-wal", "-shm", ".key", ".spans", ".spans-wal", ".spans-shm", "lock"]
HOW = {
    "removed": Path.unlink,
    "moved": lambda path: path.rename(path.with_name("aside")),
    "replaced": lambda path: Path(shutil.copy(path, path.with_name("copy"))).replace(path),
}


@pytest.fixture
def agent():
    found = Agent("A")

    @found.capability("GO")
    async def go(ctx: Context, n: int = 0) -> int:
        return n

    return found


def file_of(store, name):
    return next(store.parent.glob("*.lock")) if name == "lock" else Path(f"{store}{name}")


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("name", FILES)
def test_a_node_stops_accepting_once_a_file_of_its_store_is_gone_or_another(tmp_path, agent, name, how):
    store = tmp_path / "work.db"

    async def main() -> None:
        async with Node([agent], store=store, lag_ms=None) as node:
            assert (await node.call("A", "GO", user_id="u", request_id="before")).ok
            await node.flush_spans()
            path = file_of(store, name)
            HOW[how](path)
            reply = await node.call("A", "GO", user_id="u")
            assert (reply.status, reply.error.code, reply.error.retryable) == ("error", "STORE_UNAVAILABLE", False)
            assert str(path) in node.failure.message
            assert "restart the node" in node.failure.message
            refused = await node.call("A", "GO", user_id="u", session_id="s", message="mail ann@example.com")
            assert (refused.status, refused.error.code) == ("refused", "STORE_UNAVAILABLE")
            if ".spans" in name:
                with pytest.raises(UnavailableError, match=r"work\.db\.spans"):
                    await node.flush_spans()

    asyncio.run(main())


@pytest.mark.parametrize("name", FILES[4:7])
def test_flushing_says_that_what_was_recorded_cannot_be_found_any_more(tmp_path, agent, name):
    store = tmp_path / "work.db"

    async def main() -> None:
        async with Node([agent], store=store, lag_ms=None) as node:
            await node.call("A", "GO", user_id="u")
            await node.flush_spans()
            file_of(store, name).unlink()
            for _ in range(2):  # and not only to the first who asks
                with pytest.raises(UnavailableError, match="was removed") as raised:
                    await node.flush_spans()
                assert raised.value.code == "STORE_UNAVAILABLE"

    asyncio.run(main())


SECOND = """
import asyncio, sys
from comity import Agent, Context, Node
agent = Agent("A")
@agent.capability("GO")
async def go(ctx: Context, n: int = 0) -> int: return n
async def main():
    async with Node([agent], store=sys.argv[1], lag_ms=None, privacy=None) as node:
        for n in range(30):
            reply = await node.call("A", "GO", user_id="v", request_id=f"second{n}")
            if reply.ok:
                print(reply.request_id, flush=True)
asyncio.run(main())
"""


def test_a_second_process_after_the_shared_memory_was_removed_destroys_nothing(tmp_path, agent):
    store = tmp_path / "work.db"

    async def main() -> list[str]:
        acknowledged = []
        async with Node([agent], store=store, lag_ms=None) as node:

            async def ask(request_id):
                reply = await node.call("A", "GO", user_id="u", request_id=request_id)
                acknowledged.extend([request_id] if reply.ok else [])
                return reply.ok

            for n in range(20):
                assert await ask(f"first{n}")
            file_of(store, "-shm").unlink()
            second = await asyncio.create_subprocess_exec(sys.executable, "-c", SECOND, str(store), stdout=subprocess.PIPE)
            n = 20
            while line := await second.stdout.readline():
                acknowledged.append(line.decode().strip())
                await ask(f"first{(n := n + 1)}")
            assert await second.wait() == 0
            assert node.failure is not None
        return acknowledged

    acknowledged = asyncio.run(main())
    assert len(acknowledged) >= 50
    with contextlib.closing(sqlite3.connect(store)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        known = {one for (one,) in connection.execute("SELECT request_id FROM calls")}
    assert {*acknowledged} <= known


def test_what_was_read_before_the_files_were_exchanged_is_not_read_from_others(tmp_path, agent):
    store = tmp_path / "work.db"

    async def main() -> None:
        async with Node([agent], store=store, lag_ms=None) as node:
            await node.call("A", "GO", user_id="u", request_id="r")
            assert node._journal.call("r") is not None
            file_of(store, "-shm").unlink()
            with pytest.raises(UnavailableError, match="was removed"):
                node._journal.call("r")
            assert node.failure is not None  # also where nothing was to be written

    asyncio.run(main())


def test_closing_writes_what_is_left_though_the_spans_are_closed_first(tmp_path, agent, caplog):
    store = tmp_path / "work.db"

    @agent.capability("CLEANS")
    async def cleans(ctx: Context) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        node = Node([agent], store=store, lag_ms=None)
        await node.start()
        node.start_call("A", "CLEANS", user_id="u", request_id="r")
        await asyncio.sleep(0.05)
        close = node._path.recorder.close

        async def close_spans() -> None:
            await close()
            assert not file_of(store, ".spans-wal").exists()
            assert (await written(node._journal)) is None

        node._path.recorder.close = close_spans
        await node.close()

    asyncio.run(main())
    assert "nothing more is accepted" not in caplog.text


async def written(journal):
    """Wait for a commit and return why there was none."""
    told = asyncio.get_running_loop().create_future()
    journal.append((), told.set_result)
    return await told


def test_a_store_behind_a_link_is_opened_and_watched_where_it_is(tmp_path, agent):
    (tmp_path / "real").mkdir()
    (tmp_path / "work.db").symlink_to(tmp_path / "real" / "work.db")
    (tmp_path / "real" / "work.db").touch(0o600)

    async def main() -> None:
        async with Node([agent], store=tmp_path / "work.db", lag_ms=None) as node:
            assert (await node.call("A", "GO", user_id="u")).ok
            (tmp_path / "real" / "work.db-shm").unlink()
            assert (await node.call("A", "GO", user_id="u")).error.code == "STORE_UNAVAILABLE"

    asyncio.run(main())


def test_a_key_from_the_environment_needs_no_file(tmp_path, agent, monkeypatch):
    monkeypatch.setenv("COMITY_VAULT_KEY", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")

    async def main() -> None:
        async with Node([agent], store=tmp_path / "work.db", lag_ms=None, telemetry=Settings()) as node:
            assert (await node.call("A", "GO", user_id="u")).ok

    asyncio.run(main())
    assert not (tmp_path / "work.db.key").exists()


def test_a_span_store_writes_and_reads_only_the_file_it_opened(tmp_path):
    span = Span(trace_id="1" * 32, span_id="2" * 16)
    with SpanStore(tmp_path / "s.db") as spans:
        spans.ingest([span])
        (tmp_path / "s.db-wal").unlink()
        with pytest.raises(UnavailableError, match=r"s\.db-wal was removed"):
            spans.ingest([span])
        with pytest.raises(UnavailableError, match=r"s\.db-wal was removed"):
            spans.count()


def test_a_forked_child_cannot_use_the_files_its_parent_opened(tmp_path):
    path = tmp_path / "s.db"
    with SpanStore(path) as spans:
        files = StoreFiles(*database_files(path))
        child = os.fork()
        if not child:
            status = 1
            try:
                files.check()
            except OSError:
                status = 2
            try:
                spans.ingest([Span(trace_id="1" * 32, span_id="2" * 16)])
            except UnavailableError:
                status += 1
            os._exit(status)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
        files.check()
        assert spans.count() == 0


@pytest.mark.parametrize("how", HOW)
def test_a_change_is_seen_in_a_folder_in_which_nothing_had_changed_for_long(tmp_path, how):
    """The time of the folder alone is looked at then, and is another one after the change."""
    folder, link = tmp_path / "folder", tmp_path / "link"
    folder.mkdir()
    (folder / "s.db").write_bytes(b"x")
    link.symlink_to(folder)
    os.utime(folder, (1, 1))
    for path in (folder / "s.db", link / "s.db"):
        files = StoreFiles(path)
        files.check()
        files.check()
        HOW[how](path)
        with pytest.raises(OSError, match=f"{path} was {'replaced' if how == 'replaced' else 'removed'}"):
            files.check()
        (folder / "s.db").write_bytes(b"x")
        os.utime(folder, (1, 1))


def test_a_change_is_seen_behind_a_link_and_in_a_folder_that_took_the_place_of_another(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "used").mkdir()
    (tmp_path / "real" / "s.db").write_bytes(b"x")
    (tmp_path / "used" / "s.db").symlink_to(tmp_path / "real" / "s.db")
    (tmp_path / "used" / "key").write_bytes(b"x")
    for folder in ("real", "used"):
        os.utime(tmp_path / folder, (1, 1))
    linked, key = StoreFiles(tmp_path / "used" / "s.db"), StoreFiles(tmp_path / "used" / "key")
    linked.check()
    key.check()
    HOW["replaced"](tmp_path / "real" / "s.db")
    with pytest.raises(OSError, match=r"s\.db was replaced"):
        linked.check()
    (tmp_path / "used").rename(tmp_path / "aside")
    shutil.copytree(tmp_path / "aside", tmp_path / "used")
    os.utime(tmp_path / "used", (1, 1))
    with pytest.raises(OSError, match="key was replaced"):
        key.check()


def test_a_folder_that_has_just_changed_is_looked_at_whole(tmp_path):
    """The clock of a file system is coarse: a second change may leave the folder's time as it was."""
    path = tmp_path / "s.db"
    path.write_bytes(b"x")
    files = StoreFiles(path)
    files.check()
    before = tmp_path.stat()
    HOW["replaced"](path)
    os.utime(tmp_path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(OSError, match="was replaced"):
        files.check()
