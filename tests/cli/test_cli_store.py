"""`comity store`: stats, prune, compact, backup, upgrade."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import sqlite3
import tarfile
from pathlib import Path

import pytest

from comity import Agent, Context, Node
from comity.cli.reader import Store
from comity.engines.sqlite.tables import SCHEMA

OLD = Path(__file__).parents[1] / "engines" / "sqlite" / "stores" / "v1.tar.gz"
KINDS = ("calls", "replies", "sessions", "handoffs", "spans", "audit")


def worker() -> Agent:
    agent = Agent("W")

    @agent.capability("ECHO")
    async def echo(ctx: Context, text: str) -> str:
        return text

    return agent


@pytest.fixture(scope="module")
def forty(tmp_path_factory) -> Path:
    """The folder of a store with forty calls in four sessions."""
    folder = tmp_path_factory.mktemp("forty")

    async def fill() -> None:
        async with Node([worker()], store=folder / "comity.db") as node:
            for n in range(40):
                await node.call(
                    "W", "ECHO", {"text": f"ann@example.com {n} {'x' * 3_000}"}, user_id="u", session_id=f"s{n % 4}"
                )
            await node.flush_spans()

    asyncio.run(fill())
    return folder


@pytest.fixture
def filled(place, forty) -> Path:
    """A copy of that store in the working directory."""
    shutil.copytree(forty, place, dirs_exist_ok=True)
    return place / "comity.db"


def test_stats_say_how_much_there_is_of_each_kind(comity, filled):
    found = comity("store", "stats", "--json").document
    kinds = {kind["name"]: kind for kind in found["kinds"]}
    assert {name: kind["rows"] for name, kind in kinds.items()} == {
        "calls": 40,
        "sessions": 4,
        "handoffs": 0,
        "audit": 80,
        "spans": 40,
    }
    assert kinds.pop("handoffs")["oldest_at"] is None
    assert all(kind["last_day"] == kind["rows"] and kind["bytes"] > 0 and kind["oldest_at"] for kind in kinds.values())
    assert kinds["calls"]["bytes"] > 40 * 3_000
    assert [Path(file["path"]).name for file in found["files"]] == ["comity.db", "comity.db.spans"]
    shown = comity("store", "stats").out
    assert "calls" in shown
    assert "+40" in shown


def test_stats_of_a_store_that_is_empty_or_missing(comity, place):
    assert comity("store", "stats").code == 4
    asyncio.run(_opened(place / "comity.db"))
    shown = comity("store", "stats").out
    assert "The store holds nothing yet." in shown


async def _opened(path: Path) -> None:
    async with Node(store=path):
        pass


def test_what_would_go_is_told_first_and_then_goes(comity, filled):
    options = ("--calls", "10", "--replies", "5", "--sessions", "2", "--spans", "10", "--audit", "20")
    told = comity("store", "prune", *options, "--dry-run", "--json").document
    assert told["removed"] == {"calls": 30, "replies": 5, "sessions": 2, "handoffs": 0, "spans": 30, "audit": 60}
    assert comity("store", "stats", "--json").document["kinds"][0]["rows"] == 40
    assert "Would go: 30 calls" in comity("store", "prune", *options, "--dry-run").out
    done = comity("store", "prune", *options, "--yes", "--json").document
    assert (done["removed"], done["problem"]) == (told["removed"], None)
    with Store(filled) as store:
        assert store.verify().ok
        assert len(store.calls(100)) == 10
    assert comity("audit", "verify").code == 0
    again = comity("store", "prune", *options, "--yes")
    assert "Nothing is older or more than is to be kept." in again.out or "1 audit row" in again.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "nothing is said to go"),
        (["--calls", "30d"], "removing cannot be undone"),
        (["--calls", "30d", "--yes", "--dry-run"], "removing cannot be undone"),
        (["--calls", "soon", "--yes"], "must be 30d"),
        (["--calls", "1d,2d", "--yes"], "must be 30d"),
        (["--sessions", "1d", "--dry-run"], "give --calls an age of at most 1 day"),
    ],
)
def test_prune_is_told_what_to_keep_in_words_that_mean_something(comity, filled, arguments, told):
    ran = comity("store", "prune", *arguments)
    assert ran.code == 2
    assert told in ran.err
    assert comity("store", "stats", "--json").document["kinds"][0]["rows"] == 40


def test_a_damaged_audit_is_not_cut(comity, filled):
    with contextlib.closing(sqlite3.connect(filled)) as connection:
        connection.execute("UPDATE audit SET body = x'00' WHERE id = 3")
        connection.commit()
    ran = comity("store", "prune", "--audit", "5", "--yes")
    assert ran.code == 5
    assert "row 3 does not fit" in ran.out
    assert comity("audit", "verify").code == 5


def test_compact_gives_the_room_back_while_a_node_has_the_store_open(comity, filled):
    comity("store", "prune", "--calls", "0", "--spans", "0", "--yes")

    async def main() -> dict:
        async with Node([worker()], store=filled) as node:
            found = (await asyncio.to_thread(comity, "store", "compact", "--json")).document
            assert (await node.call("W", "ECHO", {"text": "still there"}, user_id="u")).ok
            return found

    store, spans = asyncio.run(main())["files"]
    assert store["bytes"] < store["bytes_before"]
    assert spans["bytes"] <= spans["bytes_before"]
    assert "nothing to give back" in comity("store", "compact").out
    assert comity("audit", "verify").code == 0


def test_a_store_that_cannot_be_compacted_in_pieces_is_written_anew_once_it_is_alone(comity, place):
    _unpack(place)
    comity("store", "upgrade")

    async def main() -> None:
        async with Node(store=place / "comity.db"):
            ran = await asyncio.to_thread(comity, "store", "compact")
            assert ran.code == 5
            assert "stop the node first" in ran.err

    asyncio.run(main())
    assert comity("store", "compact").code == 0
    with contextlib.closing(sqlite3.connect(place / "comity.db")) as connection:
        assert connection.execute("PRAGMA auto_vacuum").fetchone() == (2,)


def test_a_backup_is_made_while_a_node_works_and_is_a_whole_store(comity, filled, place):
    async def main() -> None:
        async with Node([worker()], store=filled) as node:
            ran = await asyncio.to_thread(comity, "store", "backup", "copy.db")
            assert ran.code == 0, ran.err
            assert "80 audit rows, chain whole, and 40 spans" in ran.out
            assert "the key file" in ran.out
            await node.call("W", "ECHO", {"text": "after"}, user_id="u")

    asyncio.run(main())
    copy = place / "copy.db"
    assert {path.name for path in place.glob("copy.db*")} == {"copy.db", "copy.db.spans"}
    assert all(path.stat().st_mode & 0o077 == 0 for path in place.glob("copy.db*"))
    shutil.copy(place / "comity.db.key", place / "copy.db.key")

    async def use() -> None:
        async with Node([worker()], store=copy) as node:
            assert node.audit.verify() == (True, 80, None, "")
            assert node.export_session("s0")["user_id"] == "u"
            assert node.spans.count() == 40

    asyncio.run(use())
    again = comity("store", "backup", "copy.db")
    assert again.code == 2
    assert "exists already" in again.err


def test_the_backup_of_a_cut_audit_verifies_too(comity, filled):
    comity("store", "prune", "--audit", "10", "--yes")
    told = comity("store", "backup", "copy.db", "--json").document
    assert (told["audit"]["ok"], told["audit"]["rows"], told["audit"]["reason"]) == (True, 11, "")
    without = comity("audit", "verify", "--store", "copy.db", "--json").document
    assert without["ok"]
    assert "the seal of that was not checked" in without["reason"]


def test_a_backup_that_cannot_be_written_leaves_nothing(comity, filled, place):
    ran = comity("store", "backup", "missing/copy.db")
    assert ran.code == 1
    assert "no backup was made" in ran.err
    assert not (place / "missing").exists()


def _unpack(place: Path) -> None:
    with tarfile.open(OLD) as packed:
        packed.extractall(place, filter="data")
    for path in sorted(place.glob("store.db*")):
        path.rename(path.with_name(path.name.replace("store.db", "comity.db")))


def test_an_old_store_is_brought_forward_once_and_its_copy_named(comity, place):
    _unpack(place)
    told = comity("store", "upgrade", "--json").document
    assert (told["version_before"], told["version"]) == (1, SCHEMA.version)
    assert (place / "comity.db.v1.bak").exists()
    assert "already" in comity("store", "upgrade").out
    assert comity("audit", "verify").code == 0
