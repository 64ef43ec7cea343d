"""A change of a file is told at once by the kernel, and by looking where the kernel does not."""

import queue
import shutil
import threading
from pathlib import Path

import pytest

from comity.engines import file_watch
from comity.engines.file_watch import FileWatch, stamp

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


def test_a_folder_that_is_made_again_is_still_watched(watch, watched, told):
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


def test_an_idle_watch_does_not_run(watched):
    watch = FileWatch(watched, lambda: None)
    before = [switches(one) for one in threads()]
    assert before
    with pytest.raises(queue.Empty):
        queue.Queue().get(timeout=0.3)
    assert [switches(one) for one in threads()] == before
    watch.close()


def threads():
    return [one.native_id for one in threading.enumerate() if one.name.startswith("watch ")]


def switches(thread_id):
    status = Path(f"/proc/self/task/{thread_id}/status").read_text()
    return [line for line in status.splitlines() if "ctxt_switches" in line]


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
