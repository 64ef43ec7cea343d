"""What people look at: the same on every engine, whatever the size of a page."""

from __future__ import annotations

import asyncio
import contextlib
import random
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity import Agent, Context, Node
from comity.core.handoff.machine import State
from comity.core.journal.audit import Row
from comity.core.reading import AuditFilter, CallFilter, Traffic, write_cursor
from comity.core.reading.page import read_cursor
from comity.engines.sqlite import call_index, call_parts
from comity.engines.sqlite.call_index import CallIndex
from comity.engines.sqlite.reader import StoreReader, index_path
from comity.errors import CallerError, UnavailableError
from comity.ports import Reader


def team() -> list[Agent]:
    worker, boss = Agent("WRK"), Agent("BOSS")

    @worker.capability("DO")
    async def do(number: int) -> dict[str, int]:
        if number == 3:
            raise ValueError("three")
        return {"number": number}

    @boss.capability("ASK")
    async def ask(ctx: Context, number: int) -> dict[str, int]:
        await ctx.call("WRK", "DO", {"number": number})
        return {"number": number}

    return [worker, boss]


async def _work(node: Node) -> None:
    for number in range(6):
        await node.call("BOSS", "ASK", {"number": number}, user_id=f"u{number % 2}", session_id=f"s{number}")
    await node.call("WRK", "MISSING", {}, user_id="u1", request_id="a-refused-one")


def _with_reader(store: Path | None, look) -> None:
    async def go() -> None:
        async with Node(team(), store=store) as node:
            await _work(node)
            await node.audit.verified()
            reader = node.open_reader()
            try:
                look(reader)
            finally:
                reader.close()

    asyncio.run(go())


@pytest.fixture(params=["memory", "sqlite"])
def store(request, tmp_path) -> Path | None:
    return None if request.param == "memory" else tmp_path / "work.db"


def test_calls_are_listed_newest_first_and_filtered(store):
    def look(reader: Reader) -> None:
        roots = reader.calls_page(CallFilter()).items
        assert [one.capability for one in roots] == ["MISSING", *["ASK"] * 6]
        assert [one.created_at for one in roots] == sorted((one.created_at for one in roots), reverse=True)
        assert roots[0].status == "refused"
        assert roots[0].error_code == "ROUTING_UNKNOWN_CAPABILITY"
        everything = reader.calls_page(CallFilter(roots_only=False)).items
        assert len(everything) == 13
        assert {one.depth for one in everything if one.target == "WRK" and one.parent_id} == {1}
        failed = reader.calls_page(CallFilter(status="error", roots_only=False)).items
        assert [one.error_code for one in failed] == ["TARGET_CRASHED"]
        mine = reader.calls_page(CallFilter(user_id="u1", agent="BOSS")).items
        assert [one.session_id for one in mine] == ["s5", "s3", "s1"]
        assert len(reader.calls_page(CallFilter(code="ROUTING_*", roots_only=False)).items) == 1
        assert [one.request_id for one in reader.calls_page(CallFilter(text="a-refused")).items] == ["a-refused-one"]
        assert reader.calls_page(CallFilter(tenant_id="other")).items == []
        assert reader.calls_page(CallFilter(since=2**70)).items == []
        assert len(reader.calls_page(CallFilter(until=2**70, tokens_min=-(2**70))).items) == 7

    _with_reader(store, look)


def test_pages_of_any_size_hold_every_call_once(store):
    def look(reader: Reader) -> None:
        whole = [one.seq for one in reader.calls_page(CallFilter(roots_only=False), limit=1000).items]
        rows = [one.id for one in reader.audit_page(AuditFilter(), limit=1000).items]
        for limit in (1, 2, 5):
            seen, cursor = [], None
            while True:
                page = reader.calls_page(CallFilter(roots_only=False), cursor, limit)
                seen += [one.seq for one in page.items]
                if (cursor := page.next) is None:
                    break
            assert seen == whole
            seen, cursor = [], None
            while True:
                found = reader.audit_page(AuditFilter(), cursor, limit)
                seen += [one.id for one in found.items]
                if (cursor := found.next) is None:
                    break
            assert seen == rows

    _with_reader(store, look)


def test_a_tree_holds_a_call_and_those_below_it(store):
    def look(reader: Reader) -> None:
        newest = reader.calls_page(CallFilter(agent="BOSS"), limit=1).items[0]
        tree = reader.tree(newest.root_id, 100)
        assert [(one.target, one.parent_id) for one in tree] == [("BOSS", None), ("WRK", newest.request_id)]
        assert reader.call_row(newest.request_id) == newest

    _with_reader(store, look)


def test_counts_and_edges_say_who_called_whom(store):
    def look(reader: Reader) -> None:
        rows = reader.calls_page(CallFilter()).items
        since, until = rows[-1].created_at, rows[0].created_at + 1
        buckets = reader.histogram(CallFilter(), since, until, 3)
        assert sum(sum(one.counts.values()) for one in buckets) == len(rows)
        assert reader.histogram(CallFilter(), None, until, 3) == buckets  # since the oldest of the newest thousand
        assert [one.counts for one in reader.histogram(CallFilter(tenant_id="other"), None, until, 1)] == [{}]
        traffic = reader.traffic(since, None)
        edges = {(one.source, one.target): one for one in traffic.edges}
        assert edges[("BOSS", "WRK")].calls == 6
        assert edges[("BOSS", "WRK")].failed == 1
        assert edges[(None, "WRK")].refused == 1
        assert traffic.refusals == {"ROUTING_UNKNOWN_CAPABILITY": 1}
        took = sorted(one.duration_ms for one in reader.calls_page(CallFilter(agent="BOSS")).items)
        assert edges[(None, "BOSS")].p95_ms == pytest.approx(took[5])
        assert reader.traffic(rows[0].created_at + 1, None) == Traffic([], {})
        assert reader.traffic(since, "other") == Traffic([], {})

    _with_reader(store, look)


def test_sessions_and_handoffs_are_paged(store):
    def look(reader: Reader) -> None:
        page = reader.sessions_page(limit=4)
        rest = reader.sessions_page(cursor=page.next, limit=4)
        assert sorted(one.id for one in [*page.items, *rest.items]) == [f"s{n}" for n in range(6)]
        assert rest.next is None
        assert {one.user_id for one in reader.sessions_page(user_id="u0").items} == {"u0"}
        assert reader.handoffs_page(states=tuple(State)).items == []

    _with_reader(store, look)


def test_the_rows_of_one_call_or_kind_are_those_that_a_filter_over_its_tree_lets_pass(store):
    def look(reader) -> None:
        calls = reader.calls_page(CallFilter(roots_only=False)).items
        assert len({one.root_id for one in calls}) < len(calls)
        for root_id in {one.root_id for one in calls}:
            of_tree = reader.audit_page(AuditFilter(root_id=root_id), None, 1_000).items
            for wanted in (
                *(AuditFilter(root_id=root_id, request_id=one.request_id) for one in calls if one.root_id == root_id),
                *(AuditFilter(root_id=root_id, kind=kind) for kind in ("admitted", "settled", "refused", "paused")),
            ):
                assert reader.audit_page(wanted, None, 1_000).items == [one for one in of_tree if wanted.passes(one)]

    _with_reader(store, look)


def test_an_index_that_is_damaged_or_of_another_audit_is_made_anew(tmp_path):
    store = tmp_path / "work.db"

    async def go() -> None:
        async with Node(team(), store=store) as node:
            await _work(node)
            for spoil in (lambda path: path.write_bytes(b"not a database" * 1000), lambda path: path.write_bytes(other)):
                reader = node.open_reader()
                assert len(reader.calls_page(CallFilter()).items) == 7
                reader.close()
                spoil(index_path(store))
            reader = node.open_reader()
            assert len(reader.calls_page(CallFilter()).items) == 7
            reader.close()

    foreign = CallIndex(tmp_path / "other.index")
    foreign.catch_up(lambda after, limit: [_row(after + 1, "admitted", 1)] if after < 5 else [])
    foreign.close()
    other = (tmp_path / "other.index").read_bytes()
    asyncio.run(go())


def _row(number: int, kind: str, call: int) -> Row:
    status = {"admitted": None, "settled": "success", "refused": "refused", "paused": "needs_input"}.get(kind)
    request_id = f"c{call}"
    return Row(
        number, kind, number, request_id, request_id, None, None, f"A{call % 3}", "CAP", "default", f"u{call % 2}", request_id,
        "", "", None, status, None, 1.0 if status else None, 0, "", request_id, None, "",
        f"h{number}",
    )  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(["admitted", "settled", "refused", "paused"]), st.integers(0, 8)), max_size=60))
def test_the_index_says_of_each_call_what_the_audit_says_last(told):
    rows = [_row(number, kind, call) for number, (kind, call) in enumerate(told, 1)]
    expected: dict[str, str] = {}
    refusals = 0
    for row in rows:
        if row.kind == "refused":
            refusals += 1
        elif row.kind == "admitted":
            expected.setdefault(row.request_id, "running")
        elif row.request_id in expected:
            expected[row.request_id] = row.status or ""
    steps = random.Random(len(rows))
    index, shown = CallIndex(None), 0
    while shown < len(rows):
        shown = min(len(rows), shown + steps.randint(1, 9))
        index.catch_up(lambda after, limit: rows[:shown][after : after + limit])  # noqa: B023
    found = index.calls(CallFilter(roots_only=False), None, 1000).items
    assert {one.request_id: one.status for one in found if one.status != "refused"} == expected
    assert sum(one.status == "refused" for one in found) == refusals
    for user in ("u0", "u1"):
        page = index.calls(CallFilter(user_id=user), None, 1000).items
        assert [one.seq for one in page] == [one.seq for one in found if one.user_id == user]
    index.close()


@given(st.text(max_size=40))
def test_a_cursor_that_no_page_gave_is_refused(text):
    try:
        place = read_cursor(text, int)
    except CallerError as error:
        assert error.code == "HTTP_QUERY_INVALID"
    else:
        assert read_cursor(write_cursor(*place), int) == place


@pytest.mark.parametrize("damage", ["body = X'ff00'", "body = ''", "hash = X'ff'"])
def test_a_damaged_row_is_named_or_shown_and_never_an_unknown_error(tmp_path, damage):
    store = tmp_path / "work.db"

    async def go() -> None:
        async with Node(team(), store=store) as node:
            await _work(node)

    asyncio.run(go())
    with closing(sqlite3.connect(store)) as connection, connection:
        connection.execute(f"UPDATE audit SET {damage} WHERE id = 5")
    with closing(StoreReader(store)) as reader, contextlib.suppress(UnavailableError):
        assert [row.id for row in reader.rows_after(3, 3)] == [4, 5, 6]
        assert reader.calls_page(CallFilter()).items


def test_an_index_is_opened_while_another_connection_takes_rows_in(tmp_path):
    path = tmp_path / "work.db.index"
    with closing(CallIndex(path)) as index:
        index.take_part([Row(**dict.fromkeys(Row._fields, "") | {"id": 7, "kind": "refused", "created_at": 1, "cost": None})])
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with closing(CallIndex(path)) as index:  # it would wait for the lock, then make the file anew
            assert index.last_id == 7
        other.execute("COMMIT")


def test_lists_are_the_same_while_the_index_of_a_long_audit_is_made(tmp_path, monkeypatch):
    store = tmp_path / "work.db"

    async def go() -> None:
        async with Node(team(), store=store) as node:
            await _work(node)
            whole = node.open_reader()
            wanted = CallFilter(roots_only=False)
            rows = whole.calls_page(wanted, limit=1000).items
            trees = {one.root_id: whole.tree(one.root_id, 100) for one in rows}
            assert whole.is_whole
            whole.close()
            index_path(store).unlink()
            monkeypatch.setattr(call_index, "NEAR_ROWS", 0)
            monkeypatch.setattr(call_index, "CHUNK_ROWS", 3)
            monkeypatch.setattr(call_parts, "PART_ROWS", 4)
            behind = node.open_reader()
            assert not behind.is_whole
            for wanted in (CallFilter(), CallFilter(roots_only=False)):
                seen, cursor = [], None
                while True:
                    page = behind.calls_page(wanted, cursor, 2)
                    seen += page.items
                    if (cursor := page.next) is None:
                        break
                listed = [one for one in rows if one.parent_id is None or not wanted.roots_only]
                assert [(one.seq, one.status, one.error_code) for one in seen] == [
                    (one.seq, one.status, one.error_code) for one in listed
                ]
            assert {one: behind.tree(one, 100) for one in trees} == trees
            ids = [one.request_id for one in rows]
            assert [one.request_id for one in behind.call_rows(["unknown", *ids])] == ids
            assert len(behind.calls_page(CallFilter(status="error", roots_only=False)).items) == 1
            read = []
            rows_after = behind.rows_after
            monkeypatch.setattr(behind, "rows_after", lambda *place: read.extend(found := rows_after(*place)) or found)
            assert behind.call_rows([]) == []
            assert read == []
            assert behind.traffic(0, None).refusals == {"ROUTING_UNKNOWN_CAPABILITY": 1}
            newest = [behind.head_id() - 3 + one for one in range(4)]
            assert [one.id for one in read] == newest  # one part for edges and refusals
            behind.histogram(CallFilter(status="unknown"), None, 2**40, 3)
            assert [one.id for one in read] == newest * 2  # and one part for counts, of however rare calls
            parts = 1
            while not behind.catch_up():
                parts += 1
            assert parts > 3
            monkeypatch.setattr(call_index, "NEAR_ROWS", 10_000)
            assert behind.calls_page(wanted, limit=1000).items == rows
            behind.close()

    asyncio.run(go())
