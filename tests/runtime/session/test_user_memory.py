"""What agents find out about a user is kept across sessions, for that user of that tenant and nobody else."""

from __future__ import annotations

import asyncio
import base64
import itertools

import pytest
from death import die

from comity import Agent, Context, Node, Reply
from comity.core.journal.records import Document, Saved
from comity.core.session.memory import FACTS_MAX, REPORTED_MAX, Fact, learn
from comity.errors import CallerError, UnavailableError
from comity.runtime.session.memory import READ_MAX, key_of
from comity.runtime.session.privacy import Privacy

EMAIL = "ann@example.com"
CANADA = "the user files taxes in Canada"
byte, prime, reader = Agent("byte"), Agent("prime"), Agent("reader")


@byte.capability("message")
async def message(ctx: Context) -> Reply:
    return Reply.success(message="Done.", new_facts=(ctx.request.message,), confidence=0.9)


@byte.capability("LIST")
async def report(first: int, end: int) -> Reply:
    return Reply.success(message="Done.", new_facts=tuple(f"fact {number}" for number in range(first, end)))


@byte.capability("FAIL")
async def fail(ctx: Context) -> Reply:
    return Reply.failure("no", new_facts=("never so",))


@prime.capability("message")
async def relay(ctx: Context) -> Reply:
    return await ctx.call("byte", "message", message=ctx.request.message)  # whose reply becomes its own


@reader.capability("READ")
async def read(ctx: Context, keys: list[str] = []) -> dict:  # noqa: B006  a declaration
    return {
        "texts": [one.text for one in ctx.memory.facts],
        "missing": list(ctx.session.missing(*keys)),
        "facts": ctx.session.facts,
        "sources": [one.source for one in ctx.memory.facts],
    }


TEAM = [byte, prime, reader]


async def tell(node, text, to="byte", **more):
    return await node.call(to, "message", message=text, **{"user_id": "ann", "session_id": "s"} | more)


async def seen(node, keys=(), **more):
    return (await node.call("reader", "READ", {"keys": list(keys)}, **{"user_id": "ann", "session_id": "t"} | more)).data


async def test_new_facts_are_known_in_later_sessions_with_who_said_so_how_sure_and_when(make_node):
    async with make_node(TEAM) as node:
        reply = await tell(node, CANADA, to="prime")
        assert reply.new_facts == (CANADA,)
        (fact,) = node.memory("ann").facts
        assert (fact.id, fact.text, fact.source, fact.confidence, fact.session_id) == ("m1", CANADA, "byte", 0.9, "s")
        assert fact.at_ms == node._path.now_ms()
        assert (await seen(node))["texts"] == [CANADA]
        assert (await node.call("reader", "READ", user_id="ann")).data["texts"] == [CANADA]  # also without a session


async def test_nobody_sees_what_is_known_of_another_user_or_tenant(make_node):
    async with make_node(TEAM) as node:
        await tell(node, CANADA)
        for other in ({"user_id": "bob"}, {"user_id": "ann", "tenant_id": "other"}):
            assert (await seen(node, **other, session_id="x"))["texts"] == []
            assert node.memory(**other).facts == ()
            await tell(node, "something else", **other, session_id="y")
        assert [fact.text for fact in node.memory("ann").facts] == [CANADA]


async def test_a_failed_call_reports_nothing(make_node):
    async with make_node(TEAM) as node:
        await node.call("byte", "FAIL", user_id="ann")
        await tell(node, "   ")
        assert node.memory("ann").facts == ()


async def test_what_is_known_by_key_is_not_missing_in_a_later_session(make_node):
    async with make_node(TEAM) as node:
        await tell(node, "Tax year: 2024")
        found = await seen(node, ["tax_year", "budget"])
    assert (found["missing"], found["facts"]) == (["budget"], {"tax_year": "2024"})


async def test_a_fact_of_the_session_goes_before_one_that_is_remembered(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> list:
        ctx.memory.learn("year: 2023", confidence=0.7)
        first = ctx.session.fact("Year")
        ctx.session.learn("year", 2024)
        return [first.value, first.source, first.confidence, ctx.session.facts["year"], ctx.memory.get("year").value]

    async with make_node([agent]) as node:
        assert (await node.call("A", "GO", user_id="ann", session_id="s")).data == ["2023", "A", 0.7, 2024, "2023"]


async def test_an_agent_remembers_only_what_can_be_kept_and_only_while_its_call_runs(make_node):
    kept = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        kept.append(ctx.memory)
        for text, confidence in (("", 1.0), ("x", 2.0), ("x", "sure"), (7, 1.0), ("\ud800", 1.0)):
            with pytest.raises(CallerError):
                ctx.memory.learn(text, confidence=confidence)
        ctx.memory.learn("fine")

    async with make_node([agent]) as node:
        assert (await node.call("A", "GO", user_id="ann")).ok
        with pytest.raises(Exception, match="has ended"):
            kept[0].learn("late")
        assert [fact.text for fact in node.memory("ann").facts] == ["fine"]


async def test_people_correct_and_forget_what_is_known(make_node):
    async with make_node(TEAM) as node:
        await tell(node, "budget: 5")
        await tell(node, CANADA)
        memory = node.memory("ann")
        corrected = await memory.correct("m1", "budget: 7", by="ann")
        assert (corrected.text, corrected.source, corrected.confidence) == ("budget: 7", "ann", 1.0)
        assert await memory.correct("m9", "x", by="ann") is None
        await tell(node, "budget: 5")  # an agent that says so again
        assert (await seen(node))["facts"] == {"budget": "7"}
        assert [await memory.forget("m2"), await memory.forget("m2")] == [True, False]
        assert (await seen(node))["texts"] == ["budget: 7"]
        assert [await memory.erase(), await memory.erase()] == [True, False]
        assert memory.facts == ()
        assert (await seen(node))["texts"] == []


async def test_memory_is_bounded_and_says_what_it_lost(make_node):
    async with make_node(TEAM) as node:
        for first in range(0, FACTS_MAX + 3, 20):
            numbers = {"first": first, "end": min(first + 20, FACTS_MAX + 3)}
            await node.call("byte", "LIST", numbers, user_id="ann", session_id="s")
        memory = node.memory("ann")
        assert (len(memory.facts), memory.dropped, memory.facts[0].text) == (FACTS_MAX, 3, "fact 3")
        await node.call("byte", "LIST", {"first": 0, "end": REPORTED_MAX + 1}, user_id="bob")
        assert len(node.memory("bob").facts) == REPORTED_MAX


async def test_erasing_a_person_forgets_what_no_session_is_left_of_and_nothing_of_others(make_node):
    async with make_node(TEAM) as node:
        await tell(node, "Tax year: 2024", tenant_id="acme")  # whose session has the name of bob's
        await tell(node, "Tax year: 2025", user_id="bob")
        old = Fact("", "Tax year: 1999", "byte", 1.0, 1, "a session that was pruned")
        node._path.memories.change("default", "ann", lambda memory: learn(memory, (old,)))
        assert node.memory("ann").facts
        await node.erase_person("ann")
        assert not any("ann" in key and "acme" not in key for key in node._path.memories._read)  # in clear in this process
        assert node.memory("ann").facts == ()
        assert (len(node.memory("bob").facts), len(node.memory("ann", tenant_id="acme").facts)) == (1, 1)
        assert (node.session("s").user_id, node.session("s", tenant_id="acme").user_id) == ("bob", "ann")


async def test_personal_data_is_a_token_to_agents_in_clear_to_those_granted_it_and_to_the_user(make_node):
    looked = []
    agent = Agent("A")

    async def look(ctx: Context) -> str:
        looked.append(ctx.memory.facts[0].text)
        return looked[-1]

    agent.capability("HIDDEN")(look)
    agent.capability("GRANTED", clear=["EMAIL"])(look)
    privacy = Privacy(grants={"GRANTED": frozenset({"EMAIL"})})
    async with make_node([byte, agent], privacy=privacy) as node:
        told = await tell(node, f"mail: {EMAIL}")
        assert told.new_facts == (f"mail: {EMAIL}",)
        replies = [(await node.call("A", one, user_id="ann", session_id="t")).data for one in ("HIDDEN", "GRANTED")]
        assert node.memory("ann").facts[0].text == f"mail: {EMAIL}"
        stored = str(node._journal.list_documents(Document.MEMORY))
    assert looked[0].startswith("mail: [[EMAIL_1_")
    assert looked[1] == f"mail: {EMAIL}"
    assert replies == [f"mail: {EMAIL}"] * 2
    assert EMAIL not in stored


def test_memory_outlives_the_process_and_stands_in_no_file_in_clear(tmp_path):
    store = tmp_path / "s.db"

    async def first():
        async with Node(TEAM, store=store) as node:
            await tell(node, f"{CANADA} as {EMAIL}")
            return [path.name for path in tmp_path.iterdir() if path.is_file() and EMAIL.encode() in path.read_bytes()]

    async def second():
        async with Node(TEAM, store=store) as node:
            return [fact.text for fact in node.memory("ann").facts]

    assert asyncio.run(first()) == []
    assert asyncio.run(second()) == [f"{CANADA} as {EMAIL}"]


def test_what_a_reply_reported_is_remembered_though_its_process_is_killed(tmp_path):
    store = tmp_path / "s.db"

    async def first():
        node = Node(TEAM, store=store)
        await node.start()
        assert (await tell(node, CANADA)).ok
        await die(node)

    async def second():
        async with Node(TEAM, store=store) as node:
            return [fact.text for fact in node.memory("ann").facts]

    asyncio.run(first())
    assert asyncio.run(second()) == [CANADA]


def test_without_its_key_a_store_that_remembers_is_not_opened(tmp_path, monkeypatch):
    store = tmp_path / "s.db"

    async def life():
        async with Node([byte], store=store, privacy=None) as node:
            await tell(node, CANADA)

    asyncio.run(life())
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(b"k" * 32).decode())
    with pytest.raises(UnavailableError, match="cannot decrypt"):
        asyncio.run(life())
    monkeypatch.delenv("COMITY_VAULT_KEY")
    (tmp_path / "s.db.key").unlink()
    with pytest.raises(UnavailableError, match="key file"):
        asyncio.run(life())


def test_erasing_a_session_forgets_what_was_reported_in_it_and_erasing_a_person_everything(tmp_path):
    store, word = tmp_path / "s.db", "wintergreen-4711"

    async def main():
        async with Node(TEAM, store=store) as node, Node(TEAM, store=store) as other:
            await tell(node, f"first {word}")
            await tell(node, f"second {word}", session_id="t")
            await node.call("byte", "message", message=f"third {word}", user_id="ann")  # names no session
            await tell(other, "of bob", user_id="bob", session_id="b")
            assert len((await seen(other))["texts"]) == 3
            await node.erase_session("s")
            assert [text.split()[0] for text in (await seen(other))["texts"]] == ["second", "third"]
            assert await node.erase_person("ann") > 5
            assert [node.memory("ann").facts, other.memory("ann").facts, node.session("t")] == [(), (), None]
            assert node.audit.verify().ok
            assert [fact.text for fact in node.memory("bob").facts] == ["of bob"]
            assert (await seen(other))["texts"] == []
        return [path.name for path in tmp_path.iterdir() if word.encode() in path.read_bytes() or b"ann" in path.read_bytes()]

    left = asyncio.run(main())
    assert all(name.startswith("s.db") for name in left)  # the audit names a user; nothing says what they said
    assert not any(path.is_file() and word.encode() in path.read_bytes() for path in tmp_path.iterdir())


def test_two_processes_of_a_store_learn_in_turn(tmp_path):
    async def main():
        async with Node(TEAM, store=tmp_path / "s.db") as one, Node(TEAM, store=tmp_path / "s.db") as two:
            for number, node in zip(range(6), itertools.cycle((one, two)), strict=False):
                await tell(node, f"fact {number}")
            return [(await seen(node))["texts"] for node in (one, two)]

    assert asyncio.run(main()) == [[f"fact {number}" for number in range(6)]] * 2


async def test_a_fact_is_found_under_its_key_for_its_user_and_tenant_alone(make_node):
    async with make_node(TEAM) as node:
        await tell(node, "country: Canada")
        assert node.memory("ann").get("country").text == "country: Canada"
        assert node.memory("ann").get("city") is None
        assert node.memory("bob").get("country") is None
        assert node.memory("ann", tenant_id="other").get("country") is None


async def test_a_memory_that_cannot_be_read_is_named_and_keeps_no_call_from_its_end(make_node, caplog):
    async with make_node(TEAM) as node:
        await tell(node, "country: Canada")
        key = key_of("default", "ann")
        version, _ = node._journal.load(Document.MEMORY, key)
        node._journal.append((Saved(Document.MEMORY, key, version + 1, b"{"),))
        with pytest.raises(UnavailableError, match=r"what is remembered of user 'ann' cannot be read: .*; erase it") as caught:
            _ = node.memory("ann").facts
        assert (caught.value.code, caught.value.retryable) == ("STORE_UNAVAILABLE", False)
        assert (await tell(node, "city: Quebec")).ok
        assert "about its user is not remembered" in caplog.text
        assert await node.memory("ann").erase()
        await tell(node, "city: Quebec")
        assert [one.text for one in node.memory("ann").facts] == ["city: Quebec"]


async def test_the_memories_of_a_bounded_number_of_users_stay_decrypted(make_node):
    async with make_node(TEAM) as node:
        memories = node._path.memories
        memories._read = {str(number): (b"", None) for number in range(READ_MAX)}
        await tell(node, "country: Canada")
        assert len(memories._read) == READ_MAX
        assert (next(iter(memories._read)), list(memories._read)[-1]) == ("1", key_of("default", "ann"))
