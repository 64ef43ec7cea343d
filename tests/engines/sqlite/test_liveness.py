"""A lock that can be had belongs to a node that is gone."""

from __future__ import annotations

import os
import signal
import sys
import time

import pytest

from comity.core.cluster.lease import LEASE_MS
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


def test_a_process_counts_as_alive_for_one_lease_from_its_last_beat(store):
    """A lock file has the time of day when it is written: read as a beat, it let a dead process hold its leases for years."""
    first, second = presence.Members(store, "n1"), presence.Members(store, "n2")
    first.enter()
    second.enter()
    first.share()
    for one in ("n1", "n2"):
        assert 0 < first.left_ms(one) <= LEASE_MS
    first.leave()
    second.leave()


def test_a_process_that_stands_still_right_after_it_entered_or_shared_loses_what_it_held(store):
    first, second = (presence.Members(store, one, lease_ms=1) for one in ("n1", "n2"))
    first.enter()
    second.enter()
    first.share()
    shared_at = time.monotonic_ns()
    while time.monotonic_ns() < shared_at + 3_000_000:
        pass
    assert [first.left_ms("n2"), second.left_ms("n1")] == [0, 0]
    assert [first.beat(), second.beat()] == [None, None]
    first.leave()
    second.leave()


def test_the_first_beat_of_a_process_that_was_alone_comes_in_time(store):
    alone = presence.Members(store, "n1", lease_ms=1)
    alone.enter()
    assert alone.beat() == 1
    alone.leave()


def test_the_number_of_a_process_is_read_from_its_lock_as_far_as_that_says(tmp_path):
    store = tmp_path / "s.db"
    members = presence.Members(store, "n1")
    assert members.process_of("n2") == "unknown"
    presence.lock_path(store, "n2").write_text("      4711 shares")
    assert members.process_of("n2") == "4711"
    presence.lock_path(store, "n2").write_text("  ")
    assert members.process_of("n2") == "unknown"


def test_the_name_of_a_node_is_read_from_its_lock_file(store):
    for name in ("n1", "a.b/c d", "ü"):
        assert presence.node_of(store, presence.lock_path(store, name)) == name


def test_whether_a_lock_looks_held_is_seen_without_changing_it(store):
    path = presence.lock_path(store, "n1")
    assert not presence.looks_held(path)
    assert not path.exists()
    file = presence.enter(path)
    assert presence.looks_held(path)
    presence.leave(path, file)
    path.touch()
    assert not presence.looks_held(path)
    assert path.exists()
