"""The live feed: numbered rows after a number, which of them are still there, and when the audit is read."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from comity.core.access.principal import Kind, Principal
from comity.errors import CallerError, UnavailableError
from comity.server import live
from comity.server.auth import OPERATOR
from comity.server.live import KEPT_MAX, TICK_S, LiveFeed


class Reading:
    """The audit of a node, as the feed reads it; `fails` reads fail first."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.asked: list[int] = []
        self.fails = 0

    async def ask(self, read: Any) -> Any:
        if self.fails:
            self.fails -= 1
            raise UnavailableError("not now")
        return read(self)

    def head_id(self) -> int:
        return self.rows[-1].id if self.rows else 0

    def rows_after(self, after: int, most: int) -> list[Any]:
        self.asked.append(after)
        return [row for row in self.rows if row.id > after][:most]

    def call_rows(self, ids: Any) -> list[Any]:
        return [SimpleNamespace(tenant_id="t", request_id=one) for one in ids]

    def add(self, kind: str, request_id: str = "r") -> None:
        self.rows.append(
            SimpleNamespace(id=len(self.rows) + 1, kind=kind, tenant_id="t", request_id=request_id, root_id="root")
        )


def test_rows_after_a_number_are_told_in_order_and_a_number_that_was_passed_is_known_to_be_lost():
    feed = LiveFeed(Reading())
    assert (list(feed.since(0)), feed.seq, feed.has(0), feed.has(1)) == ([], 0, True, False)
    for number in range(3):
        feed.tell("call", "t", number)
    assert [[one.seq for one in feed.since(after)] for after in range(4)] == [[1, 2, 3], [2, 3], [3], []]
    assert [(one.topic, one.tenant_id, one.data) for one in feed.since(1)] == [("call", "t", 1), ("call", "t", 2)]
    assert [feed.has(after) for after in (0, 3, 4)] == [True, True, False]
    for number in range(KEPT_MAX):
        feed.tell("call", "t", number)
    assert [feed.has(after) for after in (2, 3, KEPT_MAX + 3, KEPT_MAX + 4)] == [False, True, True, False]
    assert len(list(feed.since(0))) == KEPT_MAX


async def test_a_stream_is_woken_by_the_next_row_once_and_by_the_end():
    feed, loop = LiveFeed(Reading()), asyncio.get_running_loop()
    first, gone, second = (loop.create_future() for _ in range(3))
    feed.notify(first)
    feed.notify(gone)
    gone.cancel()
    feed.tell("call", "t", 1)
    assert (first.done(), feed._waiters) == (True, [])
    feed.notify(second)
    feed.close()
    assert (second.done(), feed.is_closed) == (True, True)
    async with feed.followed():
        assert feed._task is None, "a feed that is closed reads nothing"


async def test_the_audit_is_read_from_where_it_stands_while_a_stream_is_open_and_not_otherwise(monkeypatch):
    monkeypatch.setattr(live, "ROWS_A_TIME", 2)
    reading = Reading()
    feed = LiveFeed(reading)
    reading.add("admitted", "old")
    async with feed.followed():
        async with feed.followed():
            await asyncio.sleep(TICK_S / 2)
            assert (reading.asked, list(feed.since(0))) == ([1], [])
            for kind in ("admitted", "paused", "settled"):
                reading.add(kind)
            reading.fails = 1
            await asyncio.sleep(TICK_S)
            assert list(feed.since(0)) == []
        await asyncio.sleep(TICK_S)
        assert [one.topic for one in feed.since(0)] == ["approval", "call", "call"], (
            "each call once for what was read at a time"
        )
        assert reading.asked[1:] == [1, 3]
        assert next(iter(feed.since(0))).data == {"request_id": "r", "root_id": "root"}
    asked = len(reading.asked)
    await asyncio.sleep(TICK_S * 3)
    assert (len(reading.asked), feed._task) == (asked, None)


@pytest.mark.parametrize("request_id", ["", "r"])
async def test_rows_that_belong_to_no_call_tell_of_none(request_id):
    reading = Reading()
    reading.add("noted", request_id)
    _, calls = live._news(reading, 0)
    assert len(calls) == bool(request_id)


class Streams:
    """Notes from where a stream is served, and what it would show of a row."""

    async def serve(self, scope, send, feed, after, show):
        self.after, self.shown = after, [row.seq for row in feed.since(0) if show(row)]


async def served_after(after: int, told: str | None, principal: Principal = OPERATOR) -> Streams:
    feed, streams = LiveFeed(Reading()), Streams()
    for tenant_id in ("t", "other", "t"):
        feed.tell("call", tenant_id, {})
    state = SimpleNamespace(live=feed, streams=streams)
    heads, query = SimpleNamespace(last_event_id=told), SimpleNamespace(after=after)
    await live.follow(SimpleNamespace(state=state, principal=principal, heads=heads, query=query, scope={}, send=None))
    return streams


@pytest.mark.parametrize(
    ("after", "told", "begins"), [(0, None, 3), (1, None, 1), (3, None, 3), (1, "2", 2), (1, "0", 3), (0, "0" * 17 + "1", 1)]
)
async def test_a_stream_begins_after_the_number_its_client_saw_last_or_with_what_comes_next(after, told, begins):
    assert (await served_after(after, told)).after == begins


async def test_a_stream_that_names_no_number_begins_with_what_comes_next_though_older_rows_are_gone(monkeypatch):
    monkeypatch.setattr(live, "KEPT_MAX", 2)
    assert (await served_after(0, None)).after == 3


@pytest.mark.parametrize(("after", "told"), [(4, None), (1, "4"), (1, "x"), (1, "-1"), (1, ""), (1, "0" * 18 + "1")])
async def test_a_number_that_the_feed_did_not_give_or_has_no_more_is_gone(after, told):
    with pytest.raises(CallerError) as caught:
        await served_after(after, told)
    assert caught.value.code == "HTTP_EVENTS_GONE"


@pytest.mark.parametrize(("tenant_id", "shown"), [("t", [1, 3]), ("other", [2]), ("none", [])])
async def test_a_user_is_shown_the_rows_of_the_own_tenant_alone(tenant_id, shown):
    assert (await served_after(0, None, Principal(Kind.USER, "ann", "ann", tenant_id))).shown == shown
    assert (await served_after(0, None)).shown == [1, 2, 3]
