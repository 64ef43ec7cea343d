"""A history reference is resolved for the session's own user; a session is changed from outside with its call's token."""

from __future__ import annotations

import asyncio

import pytest
from death import die

from comity import Agent, Context, Node, Reply
from comity.errors import CallerError, RefusedError

EMAIL = "ann@example.com"
desk = Agent("desk")
reader = Agent("reader")
boss = Agent("boss")


@desk.capability("message")
async def message(ctx: Context) -> Reply:
    return Reply.success(ctx.session.background().history_ref, message="noted")


@reader.capability("READ")
async def read(ctx: Context, reference: str) -> list[str]:
    return [turn.text for turn in ctx.history(reference)]


@boss.capability("ASK")
async def ask(ctx: Context, reference: str, history: str) -> list[str] | None:
    return (await ctx.call("reader", "READ", {"reference": reference}, history=history)).data


async def talk(node, *messages, session_id="s"):
    return [(await node.call("desk", "message", message=one, user_id="ann", session_id=session_id)).data for one in messages]


async def test_a_reference_names_the_conversation_as_it_was_for_its_user_alone(make_node):
    async with make_node([desk]) as node:
        references = await talk(node, "one", "two", "three")
        found = [[turn.text for turn in node.history(one, user_id="ann")] for one in references]
        assert found == [["one"], ["one", "noted", "two"], ["one", "noted", "two", "noted", "three"]]
        for user_id, tenant_id, reference in (
            ("bob", "default", references[0]),
            ("ann", "other", references[0]),
            ("ann", "default", "session:unknown@1?history=full"),
        ):
            with pytest.raises(RefusedError) as refused:
                node.history(reference, user_id=user_id, tenant_id=tenant_id)
            assert refused.value.code == "IDENTITY_MISMATCH"
        with pytest.raises(CallerError):
            node.history("conv-17", user_id="ann")


@pytest.mark.parametrize("more", [{}, {"privacy": None}], ids=str)
async def test_an_agent_cannot_read_another_users_conversation_and_the_attempt_is_in_the_audit(make_node, more):
    async with make_node([desk, reader], **more) as node:
        (reference,) = await talk(node, "my secret [[EMAIL_1_kqzmtwbf]]")  # which is a token of no session
        stolen = await node.call("reader", "READ", {"reference": reference}, user_id="bob", session_id="b")
        own = await node.call("reader", "READ", {"reference": reference}, user_id="ann", session_id="a")
        notes = [row.note for row in node.audit.rows() if row.kind == "noted"]
    assert (stolen.error.code, stolen.data) == ("IDENTITY_MISMATCH", None)
    assert own.data == ["my secret [[EMAIL_1_kqzmtwbf]]"]
    assert notes == ["a history reference that names no session of this user was refused"]


@pytest.mark.parametrize(("history", "seen"), [("none", []), ("full", ["one"]), ("summary", ["user: one"])])
async def test_a_reference_shows_a_callee_no_more_than_its_caller_lets_it_see(make_node, history, seen):
    async with make_node([desk, reader, boss]) as node:
        (reference,) = await talk(node, "one")
        inputs = {"reference": reference, "history": history}
        assert (await node.call("boss", "ASK", inputs, user_id="ann", session_id="s")).data == seen


async def test_what_another_session_hid_is_hidden_in_this_one_too_and_shown_to_its_user(make_node):
    seen = []

    async def look(ctx: Context, reference: str) -> str:
        seen.append(ctx.history(reference)[0].text)
        return seen[0]

    agent = Agent("look")
    agent.capability("LOOK")(look)
    async with make_node([desk, agent]) as node:
        (reference,) = await talk(node, f"I am {EMAIL}")
        reply = await node.call("look", "LOOK", {"reference": reference}, user_id="ann", session_id="t")
    assert "[[EMAIL_1_" in seen[0]
    assert reply.data == f"I am {EMAIL}"


async def test_an_agent_outside_reads_and_changes_the_session_of_its_call_and_of_no_other(make_node):
    agent, token, gate = Agent("outside"), asyncio.get_running_loop().create_future(), asyncio.Event()

    @agent.capability("GO")
    async def go(ctx: Context) -> dict:
        ctx.session.learn("year", 2024)
        token.set_result(ctx.token)
        await gate.wait()
        return ctx.session.facts

    async with make_node([agent]) as node:
        call = asyncio.create_task(node.call("outside", "GO", user_id="ann", session_id="s"))
        session = node.session_for(await token)
        assert (session.id, session.facts) == ("s", {"year": 2024})
        session.place("Step 3 of 5", step=3, steps=5, state={"left": ["report"]})
        session.learn("region", "EU")
        for wrong in ("", f"{token.result()}x"):
            with pytest.raises(RefusedError):
                node.session_for(wrong)
        gate.set()
        assert (await call).data == {"year": 2024, "region": "EU"}
        stored = node.session("s")
        assert (stored.workflow_position, stored.workflow.step, stored.workflow.state) == (
            "Step 3 of 5",
            3,
            {"left": ["report"]},
        )
        with pytest.raises(RefusedError):
            node.session_for(token.result())
        with pytest.raises(RefusedError):
            session.learn("late", 1)


def test_what_an_agent_said_to_a_user_who_said_nothing_is_a_turn_that_survives_a_crash(tmp_path):
    teller = Agent("teller")

    @teller.capability("TELL")
    async def tell(ctx: Context) -> Reply:
        return Reply.success(message="the books are closed")

    async def first():
        node = Node([teller], store=tmp_path / "s.db")
        await node.start()
        (await node.call("teller", "TELL", user_id="ann", session_id="s")).unwrap()
        await die(node)

    async def second():
        async with Node([desk], store=tmp_path / "s.db") as node:
            (reference,) = await talk(node, "thanks")
            return [turn.text for turn in node.history(reference, user_id="ann")]

    asyncio.run(first())
    assert asyncio.run(second()) == ["the books are closed", "thanks"]
