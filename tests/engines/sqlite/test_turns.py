"""Writers of several processes come by turns, and a process that is alone waits for no lock of a file."""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from pathlib import Path

import pytest

from comity.engines.sqlite.turns import Turns


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "work.db-wal"
    path.touch()
    return path


def turns(log: Path, *, is_shared: bool = True) -> Turns:
    found = Turns(lambda: is_shared)
    found.open(log)
    return found


def is_taken(log: Path) -> bool:
    file = os.open(log, os.O_RDONLY)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def test_a_turn_begins_when_that_of_another_process_has_ended(log: Path) -> None:
    one, other, order = turns(log), turns(log), list[str]()

    def write() -> None:
        with other:
            order.append("second")

    with one:
        waiting = threading.Thread(target=write)
        waiting.start()
        order.append("first")
    waiting.join(10)
    assert order == ["first", "second"]
    assert not is_taken(log)


def test_a_turn_ends_with_an_error_too(log: Path) -> None:
    one = turns(log)
    with contextlib.suppress(OSError), one:
        assert is_taken(log)
        raise OSError("the disk is full")
    assert not is_taken(log)


def test_a_process_that_is_alone_takes_no_lock_of_a_file(log: Path) -> None:
    with turns(log, is_shared=False):
        assert not is_taken(log)


def test_a_forked_child_does_not_keep_the_turn_of_a_parent_that_dies(log: Path) -> None:
    one, (ended, end), (told, tell) = turns(log), os.pipe(), os.pipe()
    with one:
        child = os.fork()
        if not child:
            os.write(tell, b"!")
            os.read(ended, 1)
            os._exit(0)
        os.read(told, 1)
        os.close(one._file)  # as a death would, without giving the turn back
        try:
            assert not is_taken(log)
        finally:
            os.write(end, b"!")
            os.waitpid(child, 0)
            one._has_file = False
            one._file = -1
