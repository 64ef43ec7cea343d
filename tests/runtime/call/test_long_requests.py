"""Long requests and replies are looked through in slices: others have their turn, and nothing is known of them before."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from comity import Agent, AsyncHandoffManager, Context, Limits, Node, Reply, Status
from comity.core.document.slices import ONE_GO_BYTES
from comity.core.redaction import DEFAULT_SCANNER, Action, Category, Policy, Scanner, Vault
from comity.core.tracing.telemetry import Settings
from comity.runtime.call.slices import LONG_BYTES, TURNS
from comity.runtime.session.privacy import Privacy

SECRET = "ann@example.com"
LONG = f"{SECRET} " * 4_000  # 64 KB: hundreds of slices
BLOCKS = Privacy(policy=Policy({"EMAIL": Action.BLOCK}))


def reader() -> tuple[Agent, list[str]]:
    """An agent that notes what it sees."""
    agent, seen = Agent("reader"), []

    @agent.capability("READ")
    async def read(ctx: Context, text: str = "") -> dict:
        seen.append(text)
        return {"n": text.count("[[EMAIL_1_")}

    @agent.capability("ECHO")
    async def echo(ctx: Context, times: int) -> Reply:
        return Reply.success({"text": f"{SECRET} " * times, "list": [SECRET] * 99}, message=f"{SECRET} " * 999)

    @agent.capability("PING")
    async def ping(ctx: Context) -> dict:
        return {}

    return agent, seen


async def test_others_are_answered_while_a_long_request_is_looked_through(make_node):
    agent, seen = reader()
    async with make_node([agent]) as node:
        long = node.start_call("reader", "READ", {"text": LONG}, user_id="eve")
        for _ in range(9):
            assert (await node.call("reader", "PING", user_id="bob")).ok
        assert not seen, "nine short calls took longer than a long one: it held the loop"
        assert (await long.reply()).data == {"n": 4_000}
        assert SECRET not in seen[0]
        assert node._path.slices.count > 100
        assert not any(seat.coming for seat in node._path.activations._seats.values())


async def test_others_have_a_turn_between_the_steps_of_a_long_request_and_of_a_long_reply_without_personal_data(make_node):
    """Between reading it, checking it, and each test for personal data; a reply is packed, tested and read again."""
    agent, seen = reader()

    @agent.capability("COPY")
    async def copy(ctx: Context, n: int) -> str:
        return "so it is " * n

    async with make_node([agent]) as node:
        few, many, tests = LONG_BYTES // 8, ONE_GO_BYTES // 8, len(DEFAULT_SCANNER._families_for("so it is"))
        turns_of = {("READ", 1): 0, ("READ", few): 1, ("READ", many): 1 + tests}
        turns_of |= {("COPY", 1): 0, ("COPY", few): 2, ("COPY", many): 3 + tests}
        for (capability, n), turns in turns_of.items():
            before = node._path.slices.count
            inputs = {"text": "so it is " * n} if capability == "READ" else {"n": n}
            assert (await node.call("reader", capability, inputs, user_id="bob")).ok
            assert node._path.slices.count - before == turns, (capability, n)
        assert [len(text) for text in seen] == [9, 9 * few, 9 * many]
        assert not node._path.sessions._live, "a request without personal data needs no vault"


def test_a_long_request_whose_deadline_passes_meanwhile_times_out_and_did_nothing(tmp_path):
    agent, seen = reader()

    async def main() -> None:  # in real time: while there are slices to work on, virtual time stands still
        async with Node([agent], store=tmp_path / "s.db", lag_ms=None) as node:
            for _ in range(2):
                reply = await node.call("reader", "READ", {"text": LONG * 4}, user_id="eve", timeout_ms=1, request_id="r")
                assert reply.status is Status.TIMEOUT
            assert [row.kind for row in node.audit.rows()] == ["admitted", "settled"]
            assert not node._path.calls

    asyncio.run(main())
    assert not seen
    for file in tmp_path.rglob("*"):
        assert not file.is_file() or SECRET.encode() not in file.read_bytes()


async def test_a_long_request_can_be_cancelled_and_asked_for_twice(make_node):
    agent, seen = reader()
    async with make_node([agent]) as node:
        one = node.start_call("reader", "READ", {"text": LONG}, user_id="eve", request_id="a")
        two = node.start_call("reader", "READ", {"text": LONG}, user_id="eve", request_id="b")
        same = node.start_call("reader", "READ", {"text": LONG}, user_id="eve", request_id="b")
        other = node.start_call("reader", "READ", {"text": "other"}, user_id="eve", request_id="b")
        await asyncio.sleep(0)
        seat = node._path.calls["a"].seat
        assert one.cancel()
        assert (await one.reply()).status is Status.CANCELLED
        assert (await other.reply()).error.code == "IDENTITY_REQUEST_ID_REUSED"
        assert (await two.reply()).ok
        assert (await same.reply()).ok
        assert len(seen) == 1
        assert not node._path.calls
        assert seat.coming == 0  # else the agent would seem to have calls to come for good


async def test_a_long_request_that_policy_blocks_is_refused_and_costs_nothing():
    agent, seen = reader()
    top, spent = Agent("top"), []

    @top.capability("GO")
    async def go(ctx: Context) -> dict:
        reply = await ctx.call("reader", "READ", {"text": LONG}, objective="read it")
        spent.append(ctx.limits.calls_max)
        again = await ctx.call("reader", "READ", {"text": LONG}, objective="read it")  # the objective is free again
        return {"codes": [reply.error.code, again.error.code]}

    async with Node([agent, top], privacy=BLOCKS, limits=Limits(calls_max=9)) as node:
        reply = await node.call("top", "GO", user_id="eve")
        assert reply.data == {"codes": ["PRIVACY_BLOCKED", "PRIVACY_BLOCKED"]}
    assert spent == [8]
    assert not seen


async def test_a_caller_that_ends_takes_its_long_calls_with_it(make_node):
    agent, seen = reader()
    top, left = Agent("top"), []

    @top.capability("GO")
    async def go(ctx: Context) -> dict:
        left.append(asyncio.ensure_future(ctx.call("reader", "READ", {"text": LONG})))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return {}

    async with make_node([agent, top]) as node:
        assert (await node.call("top", "GO", user_id="eve")).ok
        assert (await left[0]).status is Status.CANCELLED
        assert node.audit.verify().ok
    assert not seen


async def test_a_long_request_waits_like_any_other_for_a_place_in_the_queue():
    agent = Agent("one", concurrency=1, pending_max=1)

    @agent.capability("READ")
    async def read(ctx: Context, text: str) -> int:
        return len(text)

    async with Node([agent]) as node:
        handles = [node.start_call("one", "READ", {"text": LONG}, user_id="eve") for _ in range(5)]
        statuses = [(await handle.reply()).status for handle in handles]
    assert statuses.count(Status.REFUSED) == 3, "two were admitted: one to run and one to wait"


async def test_long_replies_are_hidden_and_put_back_in_slices(make_node):
    agent, _ = reader()
    async with make_node([agent]) as node:
        await node.call("reader", "PING", user_id="eve")
        before = node._path.slices.count
        reply = await node.call("reader", "ECHO", {"times": 4_000}, user_id="eve")
        assert reply.data == {"text": f"{SECRET} " * 4_000, "list": [SECRET] * 99}
        assert reply.message == f"{SECRET} " * 999
        assert node._path.slices.count - before > 200


@pytest.mark.parametrize(
    "words",
    [
        {"summary": LONG[:20_000]},
        {"thought": LONG[:20_000]},
        {"warnings": (LONG[:1_000],) * 20},
        {"metadata": {f"k{n}": SECRET for n in range(1_000)}},
        {"new_facts": (SECRET,) * 1_000},
    ],
    ids=lambda words: next(iter(words)),
)
async def test_long_words_of_a_reply_are_hidden_in_slices_whichever_they_are(make_node, words):
    agent = Agent("talker")

    @agent.capability("TALK")
    async def talk(ctx: Context) -> Reply:
        return Reply.success({}, **words)

    async with make_node([agent]) as node:
        assert (await node.call("talker", "TALK", user_id="eve")).ok
        assert node._path.slices.count > 20


def test_a_long_handoff_is_looked_through_before_it_is_offered(tmp_path):
    async def main() -> None:
        async with Node(store=tmp_path / "s.db", lag_ms=None) as node:
            manager = AsyncHandoffManager(project_id="p", agent_id="boss", node=node)
            assert await manager.create_handoff(capability_id="work", task="t", inputs={"text": LONG})
            assert node._path.slices.count > 100

    asyncio.run(main())
    for file in tmp_path.rglob("*"):
        assert SECRET.encode() not in file.read_bytes()


@pytest.mark.parametrize("count", [1, 5])
async def test_several_long_requests_take_turns(count):
    agent, _ = reader()
    async with Node([agent]) as node:
        handles = [node.start_call("reader", "READ", {"text": LONG}, user_id=f"u{n}") for n in range(count)]
        turns = last = 0
        while not all(handle._path.calls.get(handle.request_id) is None for handle in handles):
            before = node._path.slices.count
            await asyncio.sleep(0)
            turns += 1
            if node._path.slices.count != before:
                assert node._path.slices.count - before == 1
                assert not last or turns - last >= TURNS - 1, "a short call needs several turns, and must not wait in each"
                last = turns
        assert turns > 100 * count * (TURNS - 1)


async def test_a_node_without_a_store_keeps_no_long_requests_and_a_bounded_number_of_long_replies(make_node, monkeypatch):
    monkeypatch.setattr("comity.engines.memory.journal.MEMORY_REPLIES_BYTES_MAX", 300_000)
    monkeypatch.setattr("comity.engines.memory.journal._UNSEALED_BYTES_MAX", 300_000)
    agent = Agent("A")

    @agent.capability("ECHO")
    async def echo(ctx: Context, text: str) -> dict:
        return {"text": text}

    async with make_node([agent]) as node:
        for n in range(20):
            reply = await node.call("A", "ECHO", {"text": f"{n} " + "word " * 10_000}, user_id="u", request_id=f"r{n}")
            assert reply.ok
        journal, kept = node._journal, node._path.recorder._kept
        assert all(len(end.request.body) < 9 and end.reply.data is None for end in kept)
        assert len(journal._settled) <= 6
        assert sum(len(one.request.body) for one in journal._unsealed) < 400_000
        assert not journal._open
        assert (await node.call("A", "ECHO", {"text": "call 2345678 " * 1_000}, user_id="u")).ok  # looked through in a session
        assert all(live.ended is None for live in node._path.sessions._live.values())
        assert (
            await node.call("A", "ECHO", {"text": "19 " + "word " * 10_000}, user_id="u", request_id="r19")
        ).data == reply.data
        assert node.audit.verify().ok
        assert len(node.audit.rows()) == 42


@pytest.mark.parametrize("captures", [True, False])
async def test_a_long_reply_is_in_its_span_where_spans_keep_content_and_nowhere_else(make_node, captures):
    agent = Agent("A")

    @agent.capability("TELL")
    async def tell() -> dict:
        return {"text": "canary " * 3_000}

    async with make_node([agent], telemetry=Settings(captures_content=captures), privacy=None) as node:
        assert (await node.call("A", "TELL", user_id="u")).ok
        (span,) = node.spans.find("{ }")
    assert ("canary canary" in repr(span)) is captures


class Broken:
    """A recogniser from outside that fails."""

    name, type, category, priority, hint = "broken", "NAME", Category.CONTACT, 1, None

    def spans(self, text: str, start: int = 0) -> Iterator[tuple[int, int]]:
        raise LookupError(f"no model for {text}")

    def fits(self, before: str, after: str) -> bool:
        return True

    def names(self, key: str) -> bool:
        return False


@pytest.mark.parametrize("text", [LONG, SECRET])
async def test_a_request_that_cannot_be_looked_through_is_refused_at_once(text, make_node, caplog):
    """A long one waited for its deadline, a short one raised out of `node.call`."""
    agent, seen = reader()
    async with make_node([agent], privacy=Privacy(scanner=Scanner([Broken()]))) as node:
        reply = await node.call("reader", "READ", {"text": text}, user_id="eve")
        assert (reply.status, reply.error.code) == (Status.REFUSED, "INPUT_VALIDATION_FAILED")
        assert not node._path.calls
        assert not any(seat.coming for seat in node._path.activations._seats.values())
    assert seen == []
    assert "could not be read: LookupError" in caplog.text
    assert SECRET not in caplog.text


class Torn(Vault):
    """A vault that can hide and not restore."""

    __slots__ = ()

    def value(self, token: str) -> str:
        raise LookupError(f"no value for {token}, which was {SECRET}")


@pytest.mark.parametrize("times", [1, 4_000])
async def test_a_reply_that_cannot_be_shown_ends_its_call_with_an_error(times, make_node, caplog):
    """The caller of a long one waited for ever."""
    agent, _ = reader()
    async with make_node([agent]) as node:
        assert (await node.call("reader", "READ", {"text": SECRET}, user_id="eve", session_id="s")).ok
        node._path.sessions.find("default", "s").vault.__class__ = Torn
        reply = await node.call("reader", "ECHO", {"times": times}, user_id="eve", session_id="s", request_id="once")
        assert (reply.status, reply.error.code, reply.request_id) == (Status.ERROR, "TARGET_CRASHED", "once")
        assert not node._path.calls
    assert "the reply to once could not be shown: LookupError" in caplog.text
    assert SECRET not in caplog.text
