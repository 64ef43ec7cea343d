"""Long sessions: a call costs as much in one as in a new one, and all of it is there after a restart, and gone once erased."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from comity import Agent, Context, Limits, Node, Reply
from comity.cli.reader import Store
from comity.core.envelope.envelope import Request
from comity.core.journal.records import Document, Saved
from comity.core.session.parts import HEAD_BYTES_MAX
from comity.core.session.session import RESULT_CHARS_MAX, Session
from comity.engines.memory import journal as memory
from comity.engines.memory.journal import MemoryJournal
from comity.runtime.session import in_memory
from comity.runtime.session.live import ENDED_BYTES_MAX, Live, drop_older

SECRET = "wintergreen-4711"


def talker() -> Agent:
    agent = Agent("A")

    @agent.capability("SAY")
    async def say(ctx: Context, n: int) -> Reply:
        ctx.session.learn(f"k{n}", f"{SECRET} " + "v" * 200)
        ctx.session.decide(f"d{n} " + "y" * 100)
        ctx.session.produce(f"o{n % 7}", n)
        return Reply.success({"n": n}, message=f"answer {n} " + "w" * 100)

    @agent.capability("LONG")
    async def long(ctx: Context, n: int) -> dict:
        return {"n": n, "text": "word " * 40_000}

    return agent


async def talk(node: Node, first: int, last: int, session_id: str = "s") -> None:
    for n in range(first, last):
        message = f"question {n} " + "q" * 100
        assert (await node.call("A", "SAY", {"n": n}, user_id="u", session_id=session_id, message=message)).ok


def test_a_long_session_is_the_same_after_a_restart_and_nothing_of_it_is_left_once_it_is_erased(tmp_path: Path) -> None:
    store = tmp_path / "s.db"

    async def main() -> None:
        async with Node([talker()], store=store, lag_ms=None) as node:
            await talk(node, 0, 40)
            before = node.export_session("s")
        with Store(store) as reader:
            kept, (listed,) = reader.session("default", "s"), reader.sessions(5)
            assert kept == listed
            assert msgspec.to_builtins(kept) | {"used_at": 0} == before | {"used_at": 0}
        async with Node([talker()], store=store, lag_ms=None) as node:
            assert len(node._journal.list_documents(Document.PART)) > 40
            assert node.export_session("s") == before
            await talk(node, 40, 45)
            session = node.session("s")
            assert [turn.text.split()[1] for turn in session.turns] == [str(n // 2) for n in range(90)]
            assert list(session.facts) == [f"k{n}" for n in range(45)]
            assert session.prior_outputs["o2"] == 44
            await node.erase_session("s")

    asyncio.run(main())
    assert [one.name for one in tmp_path.iterdir() if SECRET.encode() in one.read_bytes()] == []


async def test_a_call_writes_as_much_in_a_long_session_as_in_a_new_one(make_node, monkeypatch):
    written: list[int] = []
    append = MemoryJournal.append

    def counting(self: MemoryJournal, records: Sequence, *more) -> None:
        written.append(sum(len(one.data) for one in records if type(one) is Saved))
        append(self, records, *more)

    monkeypatch.setattr(MemoryJournal, "append", counting)
    async with make_node([talker()]) as node:
        costs = []
        for n in range(0, 320, 20):
            written.clear()
            await talk(node, n, n + 20)
            costs.append(sum(written))
    assert costs[-1] < 1.2 * costs[1]
    assert costs[-1] < 20 * 5 * HEAD_BYTES_MAX


async def test_a_session_that_was_removed_as_too_old_while_it_was_used_is_saved_anew_and_whole(make_node):
    async with make_node([talker()]) as node:
        await talk(node, 0, 30)
        sessions, journal = node._path.sessions, node._journal
        live = sessions.find("default", "s")
        before = live.session
        journal._forget_sessions([live.key])
        journal.append(sessions.saved(live))  # a call that ended between the removal and the news of it
        sessions.pruned([live.key])
        sessions.forget("default", "s")
        again = sessions.find("default", "s").session
    assert (again.turns, again.facts, again.decisions) == (before.turns, before.facts, before.decisions)


async def test_sessions_of_a_node_without_a_store_are_bounded_in_bytes(make_node, monkeypatch):
    monkeypatch.setattr(memory, "MEMORY_SESSIONS_BYTES_MAX", 60_000)
    async with make_node([talker()]) as node:
        for number in range(12):
            await talk(node, 0, 20, f"s{number}")
        kept = [f"s{number}" for number in range(12) if node.session(f"s{number}") is not None]
        assert node._journal._session_bytes <= 60_000
        assert kept
        assert kept == [f"s{number}" for number in range(12)][-len(kept) :]
        await talk(node, 20, 22, "s0")  # it begins anew
        assert len(node.session("s0").turns) == 4


async def test_sessions_in_memory_are_bounded_in_bytes_and_read_again(make_node, monkeypatch):
    monkeypatch.setattr(in_memory, "LIVE_BYTES_MAX", 60_000)
    async with make_node([talker()]) as node:
        sessions = node._path.sessions
        sessions._room_bytes = 60_000
        for number in range(12):
            await talk(node, 0, 20, f"s{number}")
        assert sum(one.parts.size for one in sessions._live.values()) == sessions._live_bytes <= 80_000
        assert [len(node.session(f"s{number}").turns) for number in range(12)] == [40] * 12


@pytest.mark.parametrize("below", [False, True])
async def test_long_replies_of_calls_without_words_are_not_kept_until_they_are_written(make_node, below):
    front = Agent("FRONT")

    @front.capability("ASK")
    async def ask(ctx: Context, n: int) -> int:
        return (await ctx.call("A", "LONG", {"n": n})).data["n"]

    async with make_node([talker(), front]) as node:
        for n in range(30):
            target = ("FRONT", "ASK") if below else ("A", "LONG")
            assert (await node.call(*target, {"n": n}, user_id="u", session_id="s")).ok
        live = node._path.sessions.find("default", "s")
        held = msgspec.json.encode([list(live.ended), list((live.answers or {}).values())])
        session = node.session("s")
        answers = msgspec.json.encode(list((live.answers or {}).values()))
    assert len(held) < ENDED_BYTES_MAX
    assert len(answers) < 10 * RESULT_CHARS_MAX
    assert "cut here" in session.prior_outputs["A.LONG"]
    assert session.turns[-1].text.startswith("29" if below else '{"n":29,')


async def test_of_long_requests_that_are_dropped_before_they_are_written_the_newest_answer_stays(make_node):
    echo = Agent("ECHO")

    @echo.capability("ONCE")
    async def once(ctx: Context, n: int, text: str) -> dict:
        return {"n": n}

    @echo.capability("MORE")
    async def more(ctx: Context, text: str) -> dict:
        return {"n": -1}

    text = "word " * 200
    async with make_node([echo]) as node:
        for n in range(3):
            assert (await node.call("ECHO", "ONCE", {"n": n, "text": text}, user_id="u", session_id="s")).ok
        for _ in range(ENDED_BYTES_MAX // len(text)):
            assert (await node.call("ECHO", "MORE", {"text": text}, user_id="u", session_id="s")).ok
        live = node._path.sessions.find("default", "s")
        assert all(request.capability == "MORE" for request, *_ in live.ended)
        assert ENDED_BYTES_MAX // 4 - 2 * len(text) < sum(len(request.body) for request, *_ in live.ended) <= ENDED_BYTES_MAX
        assert node.session("s").prior_outputs["ECHO.ONCE"] == {"n": 2}


async def test_requests_that_are_not_written_yet_are_all_kept_up_to_half_of_the_bytes(make_node):
    echo = Agent("ECHO")

    @echo.capability("MORE")
    async def more(ctx: Context, text: str) -> None:
        return None

    text = "word " * 1_800
    async with make_node([echo]) as node:
        for calls in range(1, ENDED_BYTES_MAX):
            assert (await node.call("ECHO", "MORE", {"text": text}, user_id="u", session_id="s")).ok
            live = node._path.sessions.find("default", "s")
            if len(live.ended) < calls:
                break
    assert (calls - 1) * len(text) <= ENDED_BYTES_MAX // 2 < calls * len(text)


@pytest.mark.parametrize(
    ("sizes", "left"),
    [
        ([ENDED_BYTES_MAX // 4 - 9, 5, 5], 2),
        ([ENDED_BYTES_MAX // 4 - 10, 5, 5], 3),
        ([1, ENDED_BYTES_MAX], 1),  # the newest stays, however long it is
    ],
)
def test_of_calls_that_are_not_saved_yet_the_newest_stay_up_to_a_quarter_of_the_bytes(sizes, left):
    live = Live(Session(id="s", tenant_id="t", user_id="u", created_at=0, used_at=0))
    live.ended_bytes = 9 * ENDED_BYTES_MAX
    ended = deque(
        (Request(f"r{n}", "A", "GO", "u", Limits(), 0, body=b"x" * size), Reply.success(n), 0) for n, size in enumerate(sizes)
    )
    drop_older(live, ended)
    assert [reply.data for _, reply, _ in ended] == list(range(len(sizes)))[-left:]
    assert live.ended_bytes == sum(sizes[-left:])
