"""Every field that leaves an agent or enters a store, span, event, log or handoff is hidden, or argued: a new field fails here."""

from __future__ import annotations

import asyncio
import inspect
import logging
from typing import Any

import msgspec
import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Background, Context, Error, Node, Reply, Status, Tool
from comity.core.agent.tool import Risk
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Artifact, Reference, Request
from comity.core.insight.insight import Evidence
from comity.core.redaction import Vault
from comity.core.session.conversation import Turn
from comity.core.session.session import Fact, Session, Workflow
from comity.runtime.session.clear import seen

EMAIL = "ann.smith@example.com"
WORDS = f"write to {EMAIL}"

# What an agent may put into each field of a reply; None for what is no text, or the node's own.
REPLY_FIELDS: dict[str, Any] = {
    "status": None,
    "data": {"data": {"to": [EMAIL]}},
    "message": {"message": WORDS},
    "confidence": None,
    "warnings": {"warnings": (WORDS,)},
    "error": {
        "status": Status.ERROR,
        "error": Error(
            code="MAIL_FAILED",
            message=WORDS,
            advice=WORDS,
            problems=(Problem("inputs.to", WORDS), Problem(EMAIL, "is wrong")),
            facts={"to": EMAIL},
        ),
    },
    "usage": None,
    "request_id": None,
    "duration_ms": None,
    "degraded": None,
    "version": None,
    "source": None,
    "session_id": None,
    "summary": {"summary": WORDS},
    "thought": {"thought": WORDS},
    "next_step_hint": {"next_step_hint": WORDS},
    "requires_followup": None,
    "artifacts": {"artifacts": (Artifact(type="json", value={"to": EMAIL}, label=WORDS),)},
    "new_facts": {"new_facts": (WORDS,)},
    "sources": {"sources": (Reference(source_id=WORDS),)},
    "metadata": {"metadata": {"note": WORDS, EMAIL: 1}},
}
# How a caller fills each field of a request; None for what names somebody or something, or is the node's own.
REQUEST_FIELDS: dict[str, Any] = dict.fromkeys(Request.__struct_fields__) | {
    "body": {"inputs": {"note": {"to": EMAIL}}},
    "objective": {"objective": WORDS},
    "message": {"message": WORDS},
    "context": {"context": Background(facts=(WORDS,), decisions=(WORDS,), constraints={"not": EMAIL})},
}
ASKED = ("body", "objective", "message", "context")


def clear_places(folder, *texts: Any) -> list[str]:
    """Return where the value stands in clear: files of the store, and texts."""
    found = [path.name for path in folder.iterdir() if EMAIL.encode() in path.read_bytes()]
    return found + [f"text {number}" for number, text in enumerate(texts) if EMAIL in str(text)]


def test_every_field_of_a_reply_and_of_a_request_is_decided_upon():
    assert REPLY_FIELDS.keys() == set(Reply.__struct_fields__)
    assert REQUEST_FIELDS.keys() == set(Request.__struct_fields__)


@pytest.mark.parametrize("field", [name for name, given in REPLY_FIELDS.items() if given is not None])
def test_a_field_of_a_reply_is_hidden_from_the_caller_the_store_and_the_spans(tmp_path, monkeypatch, caplog, field):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    top, leaf = Agent("TOP"), Agent("LEAF")
    seen: list[str] = []

    @leaf.capability("GO")
    async def go() -> Reply:
        return Reply(**{"status": Status.SUCCESS, "confidence": 1.0} | REPLY_FIELDS[field])

    @top.capability("GO")
    async def ask(ctx: Context) -> Reply:
        reply = await ctx.call("LEAF", "GO")
        seen.append(repr(reply) + str([getattr(reply, name) for name in reply.__struct_fields__]))
        return reply

    async def life() -> None:
        async with Node([top, leaf], store=tmp_path / "s.db") as node:
            await node.call("TOP", "GO", user_id="ann", session_id="s")

    with caplog.at_level(logging.DEBUG):
        asyncio.run(life())
    assert clear_places(tmp_path, *seen, caplog.text) == []


@pytest.mark.parametrize("field", ASKED)
def test_a_field_of_a_request_is_hidden_from_the_callee_the_store_and_the_spans(tmp_path, monkeypatch, caplog, field):
    monkeypatch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true")
    agent = Agent("A")
    seen: list[str] = []

    @agent.capability("GO")
    async def go(ctx: Context, note: dict | None = None) -> None:
        seen.append(str([getattr(ctx.request, name) for name in Request.__struct_fields__]) + str(ctx.request.inputs))

    async def life() -> None:
        async with Node([agent], store=tmp_path / "s.db") as node:
            assert (await node.call("A", "GO", user_id="ann", session_id="s", **REQUEST_FIELDS[field])).ok

    with caplog.at_level(logging.DEBUG):
        asyncio.run(life())
    assert clear_places(tmp_path, *seen, caplog.text) == []


async def _found() -> Reply:
    return Reply.success({"to": EMAIL}, message=WORDS)


def look_up() -> str:
    """Look up."""
    return WORDS


def _written(ctx: Context) -> None:
    text = ctx.write()
    text.feed(WORDS, WORDS)
    text.finish()


def _in_a_span(ctx: Context) -> None:
    with ctx.span(WORDS, attributes={"to": EMAIL}) as span:
        span.attributes["again"] = WORDS


# What an agent does on its way that is written down.
DEEDS: dict[str, Any] = {
    "note": lambda ctx: ctx.note(WORDS),
    "progress": lambda ctx: ctx.progress({"to": EMAIL}),
    "span": _in_a_span,
    "insight": lambda ctx: ctx.insight(
        "risk",
        summary=WORDS,
        rationale=WORDS,
        confidence=0.5,
        category=WORDS,
        applies_to=[EMAIL],
        evidence=[Evidence(type="mail", ref=EMAIL, description=WORDS)],
    ),
    "state": lambda ctx: ctx.state.update(to=EMAIL),
    "memory": lambda ctx: ctx.memory.learn(WORDS),
    "once": lambda ctx: ctx.once("mail", "fetch", _found),
    "tool": lambda ctx: ctx.use_tool("look_up"),
    "text": _written,
}


@pytest.mark.parametrize("deed", DEEDS)
def test_what_an_agent_writes_down_on_its_way_is_hidden(tmp_path, caplog, deed):
    agent = Agent("A", tools_allowed=["look_up"])

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        deed_done = DEEDS[deed](ctx)
        if inspect.isawaitable(deed_done):
            await deed_done

    async def life() -> None:
        async with Node([agent], store=tmp_path / "s.db", tools=[Tool.of(look_up)]) as node:
            reply = await node.call("A", "GO", user_id="ann", session_id="s")
            assert reply.ok, reply

    with caplog.at_level(logging.DEBUG):
        asyncio.run(life())
    assert clear_places(tmp_path, caplog.text) == []


# What a receiver, or whoever handed the work off, says of a handoff.
async def _complete(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await receiver.accept(handoff_id)
    await receiver.progress(handoff_id, {"to": EMAIL})
    await receiver.complete(handoff_id, {"to": EMAIL})


async def _fail(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await receiver.accept(handoff_id)
    await receiver.fail(handoff_id, WORDS)


async def _reject(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await receiver.reject(handoff_id, WORDS)


async def _release(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await receiver.accept(handoff_id)
    await receiver.release(handoff_id, WORDS)


async def _cancel(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await manager.cancel(handoff_id, WORDS)


async def _ask(receiver: AsyncHandoffReceiver, manager: AsyncHandoffManager, handoff_id: str) -> None:
    await receiver.accept(handoff_id)
    asking = asyncio.ensure_future(receiver.request_input(handoff_id, f"Is {EMAIL} right?"))
    while (await manager.get_handoff_status(handoff_id)).question is None:
        await asyncio.sleep(0)
    await manager.provide_input(handoff_id, {"answer": f"no, {EMAIL}"})
    await asking


@pytest.mark.parametrize("do", [_complete, _fail, _reject, _release, _cancel, _ask])
def test_what_is_said_of_a_handoff_is_hidden_in_the_store(tmp_path, caplog, do):
    async def life() -> None:
        async with Node(store=tmp_path / "s.db") as node:
            manager = AsyncHandoffManager(project_id="p", agent_id="boss", node=node)
            receiver = AsyncHandoffReceiver(agent_id="worker", capabilities=["work"], node=node)
            handoff_id = await manager.create_handoff(
                capability_id="work",
                task=WORDS,
                inputs={"to": EMAIL},
                objective=WORDS,
                context=Background(facts=(WORDS,)),
            )
            await do(receiver, manager, handoff_id)
            await receiver.close()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(life())
    assert clear_places(tmp_path, caplog.text) == []


def test_an_agent_gets_its_state_and_its_steps_back_as_they_were(tmp_path):
    agent = Agent("A", tools_allowed=["pay"])
    seen: list[Any] = []
    made: list[int] = []

    async def find() -> Reply:
        made.append(1)
        return await _found()

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        ctx.state.setdefault("to", EMAIL)
        seen.extend((ctx.state["to"], (await ctx.once("mail", "fetch", find)).data))
        await ctx.use_tool("pay")

    async def life(decides: str = "") -> Reply:
        pay = Tool(name="pay", function=lambda: None, risk=Risk.HIGH)
        async with Node([agent], store=tmp_path / "s.db", tools=[pay]) as node:
            if decides:
                return await node.decide(decides, granted=True, by="boss")
            return await node.call("A", "GO", user_id="ann", session_id="s", request_id="r")

    asked = asyncio.run(life())
    assert asyncio.run(life(asked.data["approval_id"])).ok
    assert seen == [EMAIL, {"to": EMAIL}] * 2
    assert made == [1]
    assert clear_places(tmp_path) == []


def test_who_is_granted_a_type_sees_it_in_clear_in_every_field_of_a_session_that_can_hold_it():
    vault = Vault("kqzmtwbf")
    token = vault.token("EMAIL", EMAIL)
    given = {
        "original_request": token,
        "turns": (Turn(token, token, 1, task=token, claimed_role=token),),
        "summary": token,
        "facts": {token: Fact([token], "A", 1.0, 1, claimed_source=token)},
        "decisions": (token,),
        "constraints": {token: token},
        "assumptions": (token,),
        "workflow_position": token,
        "workflow": Workflow(state={token: [token]}),
        "prior_outputs": {token: {"to": token}},
        "private": {"A": {token: token}},
    }
    names = {"id", "tenant_id", "user_id", "created_at", "used_at", "parent_id", "version"}
    counts = {"turns_dropped", "turns_chars", "prior_agents", "written"}
    assert given.keys() | names | counts == set(Session.__struct_fields__)
    session = Session(id="s", tenant_id="t", user_id="u", created_at=1, used_at=1, **given)
    clear = msgspec.json.encode(seen(session, vault, frozenset({"EMAIL"})))
    assert clear == msgspec.json.encode(session).replace(token.encode(), EMAIL.encode())
    assert seen(session, vault, frozenset({"PHONE"})) == session
