"""Processes that share a store wake each other through named pipes."""

from __future__ import annotations

import asyncio
import os
import select

import pytest
from msgspec.structs import replace

from comity.core.handoff.machine import State
from comity.engines.sqlite import wakeups as bells
from comity.engines.sqlite.wakeups import Bell, Ringer, rings_of
from comity.testing.contracts.handoffs import LANE, ME, made, until


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store.db"


def test_what_is_rung_is_heard_once_and_together(store):
    async def scenario():
        heard = []
        bell = Bell(bells.bell_path(store, "a"), heard.append)
        ringer = Ringer(store)
        assert ringer.ring({"a": {"+lane", "=id"}}) == []
        assert ringer.ring({"a": {"=other"}}) == []
        await until(lambda: heard)
        assert set.union(*heard) == {"+lane", "=id", "=other"}
        ringer.close()
        bell.close()
        assert not list(store.parent.glob("*.bell"))

    asyncio.run(scenario())


def test_what_becomes_free_rings_its_lane_unless_it_is_taken_in_the_same_transaction():
    free, other = made("h"), made("i")
    taken = replace(free, state=State.ACCEPTED, holder=ME, fence=1)
    listeners = {"node": (LANE,), "elsewhere": ("another lane",)}
    assert rings_of([(None, free), (None, other), (free, taken)], listeners) == {"node": {f"+{LANE}"}}
    assert rings_of([(None, free), (free, taken)], listeners) == {}
    reserved = replace(free, holder=ME, fence=1)  # for a receiver that watches, and has not accepted it yet
    assert rings_of([(None, free), (free, reserved)], listeners) == {}
    assert rings_of([(reserved, replace(free, fence=1))], listeners)["node"] >= {f"+{LANE}"}
    assert rings_of([(free, replace(free, lease_until=9))], listeners) == {}  # it was free before


def test_a_pipe_without_a_reader_is_a_dead_node_and_is_removed(store):
    path = bells.bell_path(store, "dead")
    os.mkfifo(path)
    assert Ringer(store).ring({"dead": {"=x"}, "never": {"=x"}}) == ["dead", "never"]
    assert not path.exists()


def test_a_node_that_dies_after_it_was_rung_is_noticed_the_next_time(store):
    async def scenario():
        bell = Bell(bells.bell_path(store, "a"), lambda _: None)
        ringer = Ringer(store)
        assert ringer.ring({"a": {"=x"}}) == []
        bell.close()
        assert ringer.ring({"a": {"=x"}}) == ["a"]

    asyncio.run(scenario())


def test_a_full_pipe_is_no_death_and_its_reader_looks_at_everything(store):
    async def scenario():
        heard = []
        bell = Bell(bells.bell_path(store, "a"), heard.append)
        ringer = Ringer(store)
        topics = {f"={number:0200d}" for number in range(600)}  # more than a pipe holds
        assert ringer.ring({"a": topics}) == []
        assert ringer.ring({"a": {"=lost"}}) == []
        await until(lambda: heard)
        assert None in heard
        ringer.close()
        bell.close()

    asyncio.run(scenario())


def test_an_idle_listener_is_not_woken_though_the_last_writer_has_left(store):
    async def scenario():
        heard = []
        path = bells.bell_path(store, "a")
        bell = Bell(path, heard.append)
        ringer = Ringer(store)
        ringer.ring({"a": {"=x"}})
        ringer.close()
        await until(lambda: heard)
        poll = select.poll()
        poll.register(bell._file, select.POLLIN)
        assert poll.poll(0) == []
        bell.close()

    asyncio.run(scenario())


def test_clearing_removes_the_pipes_of_the_dead_only(store):
    async def scenario():
        bell = Bell(bells.bell_path(store, "alive"), lambda _: None)
        os.mkfifo(bells.bell_path(store, "dead"))
        for name, made_at in (("making", 2_000_000_000), ("died", 1_000_000_000)):
            os.mkfifo(store.with_name(f"store.db.{name}.bell-new"))
            os.utime(store.with_name(f"store.db.{name}.bell-new"), (made_at, made_at))
        bells.clear(store)
        assert sorted(path.name for path in store.parent.glob("*.bell*")) == ["store.db.alive.bell", "store.db.making.bell-new"]
        bell.close()

    asyncio.run(scenario())
