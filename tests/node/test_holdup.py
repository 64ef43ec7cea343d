"""A store that cannot be written for the moment."""

from __future__ import annotations

import asyncio
import fcntl
import logging

from comity import Agent, Node
from comity.node import tending


async def test_a_holdup_by_another_process_is_logged_once_and_ends(tmp_path, monkeypatch, caplog):
    agent = Agent("A")

    @agent.capability("GO")
    async def go() -> int:
        return 1

    store = tmp_path / "work.db"
    async with Node([agent], store=store) as one, Node([], store=store):
        with store.with_name("work.db-wal").open() as log, caplog.at_level(logging.WARNING):
            fcntl.flock(log, fcntl.LOCK_EX)  # as a process does that is stopped within a commit
            asked = asyncio.ensure_future(one.call("A", "GO", user_id="u"))
            journal = one._runtime.journal
            while journal.is_idle:
                await asyncio.sleep(0)
            one._runtime.tending.sweep()
            assert caplog.messages == []
            monkeypatch.setattr(tending, "HOLDUP_S", 0)
            for _ in range(2):
                one._runtime.tending.sweep()
            monkeypatch.undo()
            fcntl.flock(log, fcntl.LOCK_UN)
        assert (await asked).data == 1
    (told,) = caplog.messages
    assert told.startswith(f"the store {store} has not been written for")
    assert "if it is stopped within a commit" in told
