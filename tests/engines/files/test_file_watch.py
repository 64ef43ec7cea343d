"""A change of a file is told at once by the kernel, and by looking where the kernel does not."""

import contextlib
import queue
import shutil
import threading
from pathlib import Path

import pytest

from comity.engines.files import watch as file_watch
from comity.engines.files.watch import FileWatch, stamp
from comity.errors import UnavailableError

WAIT_S = 10


@pytest.fixture
def watched(tmp_path):
    path = tmp_path / "folder" / "guidance.yaml"
    path.parent.mkdir()
    path.write_text("old")
    return path


@pytest.fixture
def told():
    return queue.Queue()


@pytest.fixture(params=["pushed", "looked at"])
def watch(request, watched, told, monkeypatch):
    if request.param == "looked at":
        monkeypatch.setattr(file_watch, "_inotify", lambda folders: None)
        monkeypatch.setattr(file_watch, "POLL_S", 0.01)
    watch = FileWatch(watched, lambda: told.put(watched.read_text() if watched.exists() else None))
    assert watch.is_push is (request.param == "pushed")
    yield watch
    watch.close()


def replace(path, text):
    new = path.with_suffix(".new")
    new.write_text(text)
    new.replace(path)


def test_every_way_of_changing_a_file_is_told(watch, watched, told):
    watched.write_text("written")
    assert told.get(timeout=WAIT_S) == "written"
    replace(watched, "replaced")
    assert told.get(timeout=WAIT_S) == "replaced"
    watched.unlink()
    assert told.get(timeout=WAIT_S) is None
    watched.write_text("made again")
    while told.get(timeout=WAIT_S) != "made again":
        pass


def test_a_change_beside_the_file_is_not_told(watch, watched, told):
    watched.with_name("other.yaml").write_text("x")
    replace(watched, "mine")
    assert told.get(timeout=WAIT_S) == "mine"
    assert told.empty()


def test_a_folder_that_is_made_again_is_still_watched(watch, watched, told, monkeypatch):
    monkeypatch.setattr(file_watch, "POLL_S", 0.01)  # how it is watched from then on
    shutil.rmtree(watched.parent)
    assert told.get(timeout=WAIT_S) is None
    watched.parent.mkdir()
    watched.write_text("made again")
    while told.get(timeout=WAIT_S) != "made again":
        pass
    assert not watch.is_push


def test_a_swapped_link_is_told_as_kubernetes_swaps_it(tmp_path, told):
    for version in ("one", "two"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "g.yaml").write_text(version)
    (tmp_path / "data").symlink_to("one")
    (tmp_path / "g.yaml").symlink_to("data/g.yaml")
    watch = FileWatch(tmp_path / "g.yaml", lambda: told.put((tmp_path / "g.yaml").read_text()))
    (tmp_path / "data.new").symlink_to("two")
    (tmp_path / "data.new").replace(tmp_path / "data")
    assert told.get(timeout=WAIT_S) == "two"
    watch.close()


def test_an_idle_watch_does_not_run(watched, monkeypatch):
    monkeypatch.setattr(file_watch, "POLL_S", 0.01)  # a watch that looked would be seen to
    with contextlib.closing(FileWatch(watched, lambda: None)):
        (thread,) = threads()
        for _ in range(5):  # it may take a while to begin
            before = switches(thread)
            with pytest.raises(queue.Empty):
                queue.Queue().get(timeout=0.2)
            if switches(thread) == before:
                return
    pytest.fail("the thread ran though nothing changed")


def test_what_could_not_be_taken_up_is_told_again(watched, told, monkeypatch):
    monkeypatch.setattr(file_watch, "POLL_S", 0.01)
    calls = []

    def fails_once():
        told.put("again" if calls else "first")
        calls.append(1)
        if len(calls) == 1:
            raise UnavailableError("no disk")

    watch = FileWatch(watched, fails_once)
    watched.write_text("new")
    assert [told.get(timeout=WAIT_S), told.get(timeout=WAIT_S)] == ["first", "again"]
    watch.close()
    assert told.empty()


def threads():
    return [one.native_id for one in threading.enumerate() if one.name.startswith("watch ")]


def switches(thread_id):
    status = Path(f"/proc/self/task/{thread_id}/status").read_text()
    return [line for line in status.splitlines() if line.startswith("voluntary")]


def test_closing_ends_the_thread_and_gives_the_descriptors_back(watched):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        FileWatch(watched, lambda: None).close()
    assert not threads()
    assert len(list(Path("/proc/self/fd").iterdir())) <= before


def test_a_file_nobody_may_see_is_not_taken_for_none(monkeypatch, watched):
    def denied(_):
        raise PermissionError

    monkeypatch.setattr("pathlib.Path.stat", denied)
    with pytest.raises(PermissionError):
        stamp(watched)
