"""A lock that can be had belongs to a node that is gone."""

from __future__ import annotations

import os
import signal
import sys

import pytest

from comity.engines.sqlite import liveness as presence


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


def test_a_lock_is_held_until_it_is_given_up(store):
    path = presence.lock_path(store, "n1")
    assert not presence.is_held(path)
    file = presence.enter(path)
    assert presence.is_held(path)
    assert path.exists()
    presence.leave(path, file)
    assert not presence.is_held(path)
    assert list(store.parent.iterdir()) == []


def test_a_lock_that_is_held_is_not_given_twice(store):
    path = presence.lock_path(store, "n1")
    file = presence.enter(path)
    with pytest.raises(FileExistsError, match="alive"):
        presence.enter(path)
    assert presence.is_held(path)
    presence.leave(path, file)


def test_only_locks_of_the_dead_are_cleared_away_and_only_those_of_this_store(store):
    alive, dead = presence.lock_path(store, "alive"), presence.lock_path(store, "dead")
    elsewhere = store.with_name("other.db.dead.lock")
    file = presence.enter(alive)
    for path in (dead, elsewhere):
        path.touch()
    presence.clear(store)
    assert sorted(store.parent.iterdir()) == sorted([alive, elsewhere])
    presence.leave(alive, file)


def test_a_name_cannot_lead_out_of_the_folder_of_the_store(store):
    assert presence.lock_path(store, "../../etc/passwd").parent == store.parent


FORKS = """
import os, signal, sys
from pathlib import Path
from comity.engines.sqlite import liveness as presence

presence.enter(Path(sys.argv[1]))
if not os.fork():
    print(os.getpid(), flush=True)
signal.pause()
"""


def test_a_forked_child_does_not_keep_the_lock_of_a_parent_that_was_killed(store, start_process):
    """Pools of worker processes outlive their parent for a while; the calls it left must not wait for them."""
    path = presence.lock_path(store, "n1")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    parent = start_process([sys.executable, "-c", FORKS, path], stderr=None, env=environment)
    child = int(parent.stdout.readline())
    try:
        assert presence.is_held(path)
        parent.kill()
        parent.wait()
        os.kill(child, 0)  # it lives
        assert not presence.is_held(path)
    finally:
        os.kill(child, signal.SIGKILL)
