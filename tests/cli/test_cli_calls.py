"""`comity calls` lists what users asked, newest first, from a store that may be in use."""

import asyncio
import contextlib
import importlib
import os
import shutil
import sqlite3
import tempfile
from pathlib import Path

import pytest

from comity import Node
from comity.cli import reader as store_module
from comity.engines.sqlite.spans.inbox import overview
from comity.engines.sqlite.spans.path import spans_path
from comity.errors import UnavailableError
from comity.server.missing import NEEDED

READERS = [["calls"], ["show", "last"], ["audit", "list"], ["audit", "verify"]]


def fold_log(place):
    """Have everything in the one file, as when it is archived."""
    connection = sqlite3.connect(place / "comity.db")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    assert not (place / "comity.db-wal").exists()


def test_the_newest_calls_come_first_with_their_outcome(comity, used):
    comity("call", "SHUT", "ANY", "--request-id", "job-2")
    ran = comity("calls")
    assert ran.code == 0
    lines = [line for line in ran.out.splitlines() if "job-" in line]
    assert "job-2" in lines[0]
    assert "refused" in lines[0]
    assert "ROUTING_AGENT_IN_MAINTENANCE" in lines[0]
    assert "job-1" in lines[1]
    assert "success" in lines[1]
    assert len(lines) == 2


def test_calls_as_json_have_times_user_and_status(comity, used):
    document = comity("calls", "--json").document
    (call,) = document["calls"]
    assert document["store"] == "comity.db"
    assert (call["request_id"], call["target"], call["capability"]) == ("job-1", "BOSS", "ASK")
    assert (call["user_id"], call["status"], call["error_code"]) == ("local", "success", None)
    assert call["duration_ms"] == used["duration_ms"]
    assert call["started_at"] > 0


def test_the_limit_keeps_the_newest(comity, app):
    for number in range(4):
        comity("call", "WORK", "GREET", "name=Ada", "--request-id", f"r{number}")
    found = comity("calls", "--limit", "2", "--json").document["calls"]
    assert [call["request_id"] for call in found] == ["r3", "r2"]


def test_calls_far_back_are_found_page_by_page(comity, app, monkeypatch):
    monkeypatch.setattr(store_module, "_PAGE_ROWS", 3)
    for number in range(5):
        comity("call", "BOSS", "ASK", "--request-id", f"r{number}")
    found = comity("calls", "--limit", "5", "--json").document["calls"]
    assert [call["request_id"] for call in found] == ["r4", "r3", "r2", "r1", "r0"]
    assert {call["status"] for call in found} == {"success"}


def test_a_refusal_under_a_used_id_does_not_hide_the_call(comity, app):
    comity("call", "WORK", "GREET", "name=Ada", "--request-id", "same")
    comity("call", "WORK", "GREET", "name=Bob", "--request-id", "same")
    found = comity("calls", "--json").document["calls"]
    assert [(call["request_id"], call["status"]) for call in found] == [("same", "refused"), ("same", "success")]


@pytest.mark.parametrize("reader", READERS)
def test_a_store_that_is_not_there_is_exit_4_and_is_not_made(comity, place, reader):
    ran = comity(*reader)
    assert ran.code == 4
    assert "the store comity.db does not exist" in ran.err
    assert "`comity demo` and `comity call` make one" in ran.err
    assert not (place / "comity.db").exists()
    assert comity(*reader, "--json").document["exit_code"] == 4


@pytest.mark.parametrize("reader", [["calls"], ["audit", "list"]])
def test_an_empty_store_says_how_to_fill_it(comity, place, reader):
    async def open_and_close():
        async with Node(store="comity.db"):
            pass

    asyncio.run(open_and_close())
    ran = comity(*reader)
    assert ran.code == 0
    assert "has no calls yet. `comity demo` makes some" in ran.out


@pytest.mark.parametrize("reader", READERS)
@pytest.mark.parametrize(
    ("name", "told"), [("text", "is not a Comity store"), ("foreign", "not a Comity store"), ("cut", "cannot be read")]
)
def test_a_file_that_is_no_sound_store_is_exit_5_and_stays_as_it_was(comity, used, place, reader, name, told):
    path = place / f"{name}.db"
    if name == "text":
        path.write_text("plain text, no store. " * 400, encoding="utf-8")
    elif name == "foreign":
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE recipes (name)")
        connection.commit()
        connection.close()
    else:
        fold_log(place)
        shutil.copy(place / "comity.db", path)
        os.truncate(path, 6000)
    before = path.read_bytes()
    ran = comity(*reader, "--store", str(path))
    assert ran.code == 5
    assert told in ran.err
    assert "Traceback" not in ran.err
    assert path.read_bytes() == before


def test_a_store_of_another_version_is_exit_5(comity, used, place):
    connection = sqlite3.connect(place / "comity.db")
    connection.execute("UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    connection.commit()
    connection.close()
    ran = comity("calls")
    assert ran.code == 5
    assert "a later program wrote it: its schema is version 99" in ran.err


def test_a_store_is_read_while_a_node_works_on_it(comity, hanging):
    process = hanging("now")
    (call,) = comity("show", "now", "--json").document["calls"]
    assert (call["status"], call["abandoned"]) == ("open", False)
    assert not comity("calls", "--json").document["calls"][0]["abandoned"]
    assert "open call" not in comity("doctor").out
    assert comity("audit", "verify").code == 0
    assert process.poll() is None


def test_an_open_call_whose_node_was_killed_is_marked_and_nothing_is_changed(comity, hanging, place):
    process = hanging("left")
    process.kill()
    process.wait()
    before = sorted(path.name for path in place.iterdir() if path.suffix == ".lock")
    assert before
    assert "open (its node is gone)" in comity("calls").out
    assert comity("calls", "--json").document["calls"][0]["abandoned"]
    assert "its node is gone" in comity("show", "left").out
    assert comity("show", "left", "--json").document["calls"][0]["abandoned"]
    told = [check for check in comity("doctor", "--json").document["checks"] if check["name"] == "calls"]
    assert [(one["level"], one["detail"].partition(";")[0]) for one in told] == [
        ("warning", "1 open call without a living node"),
    ]
    assert sorted(path.name for path in place.iterdir() if path.suffix == ".lock") == before


@contextlib.contextmanager
def unprivileged(comity):
    """Be somebody whom file permissions bind; what is imported late must be there already."""
    comity("calls", "--json")
    comity("calls", "--store", "none.db")
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def archive(comity, used, place):
    """A store and its spans where nothing can be written."""
    fold_log(place)
    folder = Path(tempfile.mkdtemp(prefix="comity-archive-"))
    names = ["comity.db", "comity.db.spans"]
    for name in names:
        shutil.copy(place / name, folder / name)
        (folder / name).chmod(0o444)
    folder.chmod(0o555)
    for command in (["query", "{}"], ["trace", "last"]):  # loads what only root may read
        comity(*command)
    try:
        with unprivileged(comity):
            yield folder / "comity.db"
        assert sorted(path.name for path in folder.iterdir()) == names
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


def test_an_archived_store_beside_which_nothing_can_be_made_is_read(comity, archive):
    """Readers of a live store share a file beside it, which SQLite wants to make."""
    ran = comity("calls", "--json", "--store", str(archive))
    assert ran.code == 0, ran.out
    assert ran.document["calls"][0]["request_id"] == "job-1"


@pytest.mark.parametrize("waiting", [True, False])
def test_the_spans_of_an_archived_store_are_read_whether_or_not_they_wait_in_the_inbox(comity, used, place, waiting, request):
    if not waiting:
        assert comity("query", "{}").code == 0  # sorts them in
    with contextlib.closing(sqlite3.connect("comity.db.spans")) as connection:
        assert bool(connection.execute("SELECT count(*) FROM span_inbox").fetchone()[0]) is waiting
    store = str(request.getfixturevalue("archive"))
    asked = comity("query", "{}", "--json", "--store", store)
    assert asked.code == 0, asked.err
    assert len(asked.document["traces"]) == 1
    assert "invoke_agent BOSS" in comity("trace", "last", "--store", store).out
    assert bool(overview(spans_path(store))[1]) is waiting


def test_a_store_that_may_not_be_read_says_so(comity, used, place):
    archive = Path(tempfile.mkdtemp(prefix="comity-archive-"))
    try:
        shutil.copy(place / "comity.db", archive / "comity.db")
        (archive / "comity.db").chmod(0o000)
        with unprivileged(comity):
            ran = comity("calls", "--store", str(archive / "comity.db"))
        assert ran.code == 5
        assert "Check the permissions of the file and its directory." in ran.err
    finally:
        shutil.rmtree(archive)


def test_a_directory_is_no_store(comity, place):
    ran = comity("calls", "--store", str(place))
    assert ran.code == 5
    assert "is not a file, so it is no store" in ran.err


def test_a_store_that_may_not_be_written_is_found_before_any_call_is_made(comity, used, place, monkeypatch):
    folder = Path(tempfile.mkdtemp(prefix="comity-kept-"))
    store = folder / "comity.db"
    try:
        shutil.copy(place / "comity.db", store)
        folder.chmod(0o777)
        store.chmod(0o444)
        comity("doctor")
        comity("serve", "--check", "--store", "none.db")
        for name in NEEDED:  # looked for on disk otherwise, where only root may read
            importlib.import_module(name)
        monkeypatch.chdir(folder)
        with unprivileged(comity):
            for command in (["doctor"], ["serve", "--check"]):
                ran = comity(*command, "--store", str(store))
                assert ran.code == 5, ran.out
                assert "cannot be written by this user" in ran.out + ran.err
            with pytest.raises(UnavailableError, match="readonly database"):
                asyncio.run(opened(Node([], store=store)))
    finally:
        shutil.rmtree(folder)


async def opened(node: Node) -> None:
    async with node:
        pass
