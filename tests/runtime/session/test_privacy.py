"""Personal data: hidden on every hop, back in place for the session's user, in clear only where granted."""

from __future__ import annotations

import asyncio
import base64
import re
from typing import Annotated

import msgspec
import pytest
from pydantic import Field

from comity import Agent, Background, Context, Node, Reply, Status, Tool
from comity.core.agent.declaration import DeclarationError
from comity.core.agent.tool import Risk
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Artifact, Error, Reference
from comity.core.journal.records import Document
from comity.core.redaction import DETECTORS, Action, Policy, Scanner, hints
from comity.errors import UnavailableError
from comity.runtime.session.privacy import Privacy

Mail = Annotated[str, Field(pattern="^[^@]+@[^@]+$")]

CARD, EMAIL = "4111 1111 1111 1111", "ann.smith@example.com"


def relay() -> tuple[list[Agent], list[str]]:
    """ORC passes what it was told to LEAF; both note what they see."""
    seen: list[str] = []
    orc, leaf = Agent("ORC"), Agent("LEAF")

    @orc.capability("ASK")
    async def ask(ctx: Context, note: dict) -> dict:
        seen.append(f"{note} {ctx.request.message} {ctx.request.context}")
        reply = await ctx.call("LEAF", "READ", {"note": note}, message=ctx.request.message)
        seen.append(f"{reply.data}")
        return {"echo": reply.data, "mine": note}

    @leaf.capability("READ", clear=["EMAIL"])
    async def read(ctx: Context, note: dict) -> dict:
        seen.append(f"{note} {ctx.request.message}")
        return {"read": note, "found": "call +1 212 555 0147"}

    return [orc, leaf], seen


async def call(node: Node, **more):
    return await node.call(
        "ORC",
        "ASK",
        {"note": {"deep": [{"card": CARD}], "mail": EMAIL}},
        message=f"write to {EMAIL}",
        context=Background(facts=(f"card {CARD}",)),
        **{"user_id": "ann", "session_id": "s", **more},
    )


async def test_agents_see_tokens_on_every_hop_and_the_user_sees_their_own_data(make_node):
    agents, seen = relay()
    async with make_node(agents) as node:
        reply = await call(node)
        rows = node.audit.rows()
    told = "\n".join(seen)
    assert CARD not in told
    assert EMAIL not in told
    assert "212 555 0147" not in seen[2]  # what the leaf found is hidden from its caller too
    assert reply.data["mine"] == {"deep": [{"card": CARD}], "mail": EMAIL}
    assert reply.data["echo"] == {"read": {"deep": [{"card": CARD}], "mail": EMAIL}, "found": "call +1 212 555 0147"}
    assert {row.note for row in rows if row.kind == "admitted"} == {"hidden: CARD, EMAIL", ""}


async def test_the_same_value_has_the_same_token_everywhere_in_a_session(make_node):
    agents, seen = relay()
    async with make_node(agents) as node:
        await call(node)
    assert len(set(re.findall(r"\[\[EMAIL_\w+\]\]", "\n".join(seen)))) == 1


async def test_a_type_in_clear_needs_the_declaration_and_the_grant_and_the_audit_says_so(make_node):
    agents, seen = relay()
    async with make_node(agents, privacy=Privacy(grants={"LEAF/READ": frozenset({"EMAIL", "CARD"})})) as node:
        reply = await call(node)
        notes = [row.note for row in node.audit.rows() if row.kind == "admitted"]
    assert EMAIL in seen[1]  # declared and granted
    assert CARD not in seen[1]  # granted and not declared
    assert EMAIL not in seen[0]
    assert EMAIL not in seen[2]
    assert notes[1] == "in clear: EMAIL"
    assert reply.data["mine"]["mail"] == EMAIL


async def test_the_vault_of_a_session_that_is_read_again_begins_with_its_first_version(make_node):
    quiet = Agent("QUIET")

    @quiet.capability("HEAR")
    async def hear() -> None:
        return None

    async with make_node([*relay()[0], quiet]) as node:
        await node.call("QUIET", "HEAR", message="hello", user_id="ann", session_id="s")
        node._path.sessions.forget("default", "s")
        await call(node)
        key = node._path.sessions.find("default", "s").key
        assert node._journal.load(Document.VAULT, key)[0] == 2  # with what the request hid, then with what the reply did


async def test_two_users_never_see_each_others_values(make_node):
    agents, seen = relay()
    async with make_node(agents) as node:
        await call(node)
        token = re.search(r"\[\[EMAIL_\w+\]\]", seen[0]).group()
        other = await node.call("ORC", "ASK", {"note": {"mail": token}}, user_id="bob", session_id="t")
        mine = await node.call("ORC", "ASK", {"note": {"mail": token}}, user_id="ann", session_id="s")
    assert EMAIL not in repr(other)
    assert mine.data["mine"] == {"mail": EMAIL}


async def test_a_blocked_type_refuses_the_call(make_node):
    agents, seen = relay()
    async with make_node(agents, privacy=Privacy(policy=Policy({"CARD": Action.BLOCK}))) as node:
        reply = await call(node)
    assert (reply.status, reply.error.code) == (Status.REFUSED, "PRIVACY_BLOCKED")
    assert "CARD" in reply.error.message
    assert seen == []


async def test_inputs_that_no_longer_fit_once_hidden_are_refused_with_what_to_do(make_node):
    agent = Agent("A")

    @agent.capability("SEND", clear=["EMAIL"])
    async def send(to: Mail) -> str:
        return to

    async with make_node([agent]) as node:
        refused = await node.call("A", "SEND", {"to": EMAIL}, user_id="ann")
    async with make_node([agent], privacy=Privacy(grants={"SEND": frozenset({"EMAIL"})})) as node:
        passed = await node.call("A", "SEND", {"to": EMAIL}, user_id="ann")
    assert refused.error.code == "INPUT_VALIDATION_FAILED"
    assert "granted" in refused.error.message
    assert passed.data == EMAIL


@pytest.mark.parametrize("argument", ["grants", "approvers"])
@pytest.mark.parametrize("wrong", [["EMAIL"], "EMAIL", 5, {"A": "EMAIL"}, {"A": 5}, {"A": None}, {5: ["EMAIL"]}])
def test_what_may_be_seen_in_clear_is_a_mapping_of_names_to_types(argument, wrong):
    with pytest.raises(DeclarationError, match=f"{argument} must"):
        Privacy(**{argument: wrong})
    assert Privacy(grants={"A": ["EMAIL"]}, approvers={"ann": ()}).grants == {"A": frozenset({"EMAIL"})}
    assert Privacy().grants == Privacy().approvers == {}


def test_nothing_personal_stands_in_the_store_and_it_comes_back_after_a_restart(tmp_path):
    store = tmp_path / "s.db"

    async def life():
        agents, seen = relay()
        async with Node(agents, store=store) as node:
            return await call(node, request_id="r"), list(seen)

    first, seen = asyncio.run(life())
    assert seen
    again, seen_again = asyncio.run(life())
    assert seen_again == []  # answered from the store
    assert again.data == first.data == {**first.data, "mine": {"deep": [{"card": CARD}], "mail": EMAIL}}
    for path in tmp_path.iterdir():
        content = path.read_bytes()
        assert EMAIL.encode() not in content, path.name
        assert CARD.encode() not in content, path.name


def broken(how: str) -> tuple[Agent, Tool]:
    """An agent that fails, or whose tool fails or answers, with a card number nobody gave it."""
    agent = Agent("A", tools_allowed=["look"])

    def look() -> str:
        if how == "tool answers":
            return f"card {CARD}"
        raise ValueError(f"card {CARD}")

    @agent.capability("GO")
    async def go(ctx: Context):
        if how == "agent raises":
            raise ValueError(f"card {CARD}")
        if how == "agent replies":
            return Reply.failure(f"card {CARD}")
        seen = await ctx.use_tool("look")
        assert CARD not in seen
        return seen

    return agent, Tool(name="look", function=look)


@pytest.mark.parametrize("how", ["agent raises", "agent replies", "tool raises", "tool answers"])
def test_what_failing_code_and_tools_say_is_hidden_from_the_store_and_shown_to_the_user(tmp_path, how):
    async def life():
        agent, tool = broken(how)
        async with Node([agent], tools=[tool], store=tmp_path / "s.db") as node:
            return await node.call("A", "GO", user_id="ann")

    reply = asyncio.run(life())
    assert CARD in (reply.data if reply.ok else reply.error.message)
    for path in tmp_path.iterdir():
        assert CARD.encode() not in path.read_bytes(), path.name


async def test_an_error_that_cannot_be_hidden_any_more_is_withheld(make_node, monkeypatch):
    monkeypatch.setattr("comity.core.redaction.vault.VALUES_MAX", 0)
    agent, tool = broken("tool raises")
    async with make_node([agent], tools=[tool]) as node:
        reply = await node.call("A", "GO", user_id="ann")
    assert "cannot be shown" in reply.error.message


def test_a_store_opened_with_another_key_says_so(tmp_path, monkeypatch):
    store = tmp_path / "s.db"

    async def life():
        agents, _ = relay()
        async with Node(agents, store=store) as node:
            return await call(node)

    asyncio.run(life())
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(b"k" * 32).decode())
    with pytest.raises(UnavailableError, match="COMITY_VAULT_KEY cannot decrypt"):
        asyncio.run(life())


@pytest.mark.parametrize("is_paused", [False, True])
def test_who_asks_again_is_shown_what_they_were_shown_first_and_nobody_else(tmp_path, is_paused):
    agent = Agent("A", tools_allowed=["write"])

    @agent.capability("GO")
    async def go(ctx: Context, mail: str):
        return await ctx.use_tool("write", mail=mail)

    tool = Tool(name="write", function=lambda mail: f"written to {mail}", risk=Risk.HIGH if is_paused else Risk.LOW)

    async def life(user_id, **more):
        async with Node([agent], tools=[tool], store=tmp_path / "s.db") as node:
            reply = await node.call("A", "GO", {"mail": EMAIL}, user_id=user_id, request_id="r", **more)
            return reply if not is_paused or user_id != "ann" else await node.decide("r#1", granted=True, by="ann")

    shown = [asyncio.run(life("ann", **more)).data for more in ({"session_id": "s"}, {"session_id": "s"}, {})]
    assert shown == [f"written to {EMAIL}"] * 3
    assert asyncio.run(life("bob")).error.code == "IDENTITY_REQUEST_ID_REUSED"


def test_a_call_without_a_session_that_goes_on_in_another_life_shows_its_user_their_own_data(tmp_path):
    agent = Agent("A", tools_allowed=["write"])

    @agent.capability("GO")
    async def go(ctx: Context, mail: str):
        return await ctx.use_tool("write", mail=mail)

    tool = Tool(name="write", function=lambda mail: f"written to {mail}", risk=Risk.HIGH)

    async def life(act):
        async with Node([agent], tools=[tool], store=tmp_path / "s.db") as node:
            return await act(node)

    asyncio.run(life(lambda node: node.call("A", "GO", {"mail": EMAIL}, user_id="ann", request_id="r")))
    reply = asyncio.run(life(lambda node: node.decide("r#1", granted=True, by="ann")))
    assert reply.data == f"written to {EMAIL}"


@pytest.mark.parametrize("session", [{}, {"session_id": "s"}])
def test_what_an_agent_itself_asks_approval_for_is_hidden_in_the_question_and_reaches_the_tool(tmp_path, session):
    agent, written = Agent("A", tools_allowed=["write"]), []

    @agent.capability("GO")
    async def go(ctx: Context):
        return await ctx.use_tool("write", mail=EMAIL)

    tool = Tool(name="write", function=lambda mail: written.append(mail) or f"written to {mail}", risk=Risk.HIGH)

    async def life(act):
        async with Node([agent], tools=[tool], store=tmp_path / "s.db") as node:
            return await act(node), [one.inputs["mail"] for one in node.approvals()]

    asked, questions = asyncio.run(life(lambda node: node.call("A", "GO", user_id="ann", request_id="r", **session)))
    assert asked.data["inputs"] == {"mail": EMAIL}  # as the user sees it
    assert re.fullmatch(r"\[\[EMAIL_\w+\]\]", *questions)
    reply, _ = asyncio.run(life(lambda node: node.decide("r#1", granted=True, by="ann")))
    assert (reply.data, written) == (f"written to {EMAIL}", [EMAIL])
    for path in tmp_path.iterdir():
        assert EMAIL.encode() not in path.read_bytes(), path.name


async def test_progress_reaches_the_user_with_their_own_data(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context, mail: str):
        assert EMAIL not in mail
        ctx.progress({"writing to": mail})

    async with make_node([agent]) as node:
        handle = node.start_call("A", "GO", {"mail": EMAIL}, user_id="ann")
        told = [event.data async for event in handle.events() if event.kind == "progress"]
    assert told == [{"writing to": EMAIL}]


def test_what_an_agent_tells_on_its_way_is_hidden_where_it_becomes_the_reply(tmp_path):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context):
        ctx.progress({"found": EMAIL})
        await asyncio.sleep(3600)

    async def life():
        async with Node([agent], store=tmp_path / "s.db") as node:
            handle = node.start_call("A", "GO", user_id="ann")
            async for event in handle.events():
                if event.kind == "progress":
                    handle.cancel()
                    told = event.data
            return told, (await handle.reply()).data

    assert asyncio.run(life()) == ({"found": EMAIL}, {"found": EMAIL})
    for path in tmp_path.iterdir():
        assert EMAIL.encode() not in path.read_bytes(), path.name


def test_a_message_that_one_capability_sees_in_clear_stands_hidden_in_the_session(tmp_path):
    agent = Agent("A")

    @agent.capability("SEND", clear=["EMAIL"])
    async def send(ctx: Context) -> bool:
        return ctx.request.message == f"to {EMAIL}" and ctx.session.history()[-1].text == ctx.request.message

    @agent.capability("READ")
    async def read(ctx: Context) -> bool:
        return EMAIL in str(ctx.session.history())

    async def life():
        async with Node([agent], store=tmp_path / "s.db", privacy=Privacy(grants={"SEND": frozenset({"EMAIL"})})) as node:
            asked = {"user_id": "ann", "session_id": "s", "history": "full"}
            sees = await node.call("A", "SEND", message=f"to {EMAIL}", **asked)
            return sees.data, (await node.call("A", "READ", **asked)).data

    assert asyncio.run(life()) == (True, False)
    for path in tmp_path.iterdir():
        assert EMAIL.encode() not in path.read_bytes(), path.name


WRITES = {
    "say": lambda session: session.say(f"mail {EMAIL}", role=EMAIL),
    "learn": lambda session: session.learn(
        f"card of {EMAIL}", {"mails": [EMAIL], "card": int(CARD.replace(" ", ""))}, source=EMAIL
    ),
    "named fact": lambda session: session.learn("ssn", 219099999),
    "decide": lambda session: session.decide(f"write to {EMAIL}"),
    "assume": lambda session: session.assume(f"{EMAIL} is right"),
    "constrain": lambda session: session.constrain(f"not to {EMAIL}", [EMAIL]),
    "place": lambda session: session.place(f"writing to {EMAIL}"),
    "produce": lambda session: session.produce("letter", {"to": EMAIL}),
    "keep": lambda session: session.keep({"mine": EMAIL}),
    "summarise": lambda session: session.summarise(f"all about {EMAIL}"),
}


def all_seen(session) -> str:
    return f"{session.facts} {session.decisions} {session.constraints} {session.private} {session.history()} {session.background()}"


@pytest.mark.parametrize("how", WRITES)
def test_what_an_agent_itself_brings_into_a_session_is_hidden_as_inputs_are(tmp_path, how):
    agent = Agent("A")

    @agent.capability("NOTE")
    async def note(ctx: Context, mail: str) -> str:
        WRITES[how](ctx.session)
        return f"{mail} {all_seen(ctx.session)}"

    @agent.capability("READ", clear=["EMAIL", "SSN"])
    async def read(ctx: Context) -> None:
        seen.append(all_seen(ctx.session))

    seen: list[str] = []
    granted = Privacy(grants={"READ": frozenset({"EMAIL", "SSN"})})

    async def life():
        async with Node([agent], store=tmp_path / "s.db", privacy=granted) as node:
            await node.call("A", "NOTE", {"mail": EMAIL}, user_id="ann", session_id="s", history="full", request_id="r")
            seen.append(str(node._journal.call("r").reply.data))  # as it was seen and stored
            return node.session("s"), node.export_session("s")

    async def later():
        async with Node([agent], store=tmp_path / "s.db", privacy=granted) as node:
            await node.call("A", "READ", {}, user_id="ann", session_id="s", history="full")

    session, exported = asyncio.run(life())
    asyncio.run(later())
    for shown in (seen[0], str(session)):
        assert EMAIL not in shown
        assert "219099999" not in shown
    assert len(set(re.findall(r"\[\[EMAIL_\w+\]\]", f"{seen[0]} {session}"))) == 1  # that of the input
    expected = "219099999" if how == "named fact" else EMAIL
    assert expected in str(exported)
    assert expected in seen[1] or how == "summarise"  # which is told only to who asks for no more
    for path in tmp_path.iterdir():
        for value in (EMAIL, CARD.replace(" ", ""), "219099999"):
            assert value.encode() not in path.read_bytes(), path.name


async def test_without_privacy_a_session_keeps_what_it_is_told(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        for write in WRITES.values():
            write(ctx.session)

    async with make_node([agent], privacy=None) as node:
        await node.call("A", "GO", user_id="ann", session_id="s")
        session = node.session("s")
    assert session.facts["ssn"].value == 219099999
    assert session.turns[0].claimed_role == EMAIL
    assert "[[" not in str(session)


async def test_a_fact_known_under_a_hidden_key_is_not_missing(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> list:
        ctx.session.learn(EMAIL, "customer")
        return list(ctx.session.missing(EMAIL, "budget"))

    async with make_node([agent]) as node:
        assert (await node.call("A", "GO", user_id="ann", session_id="s")).data == ["budget"]


@pytest.mark.parametrize("is_full", [False, True])
async def test_what_cannot_be_hidden_in_a_session_is_refused_and_not_noted(make_node, monkeypatch, is_full):
    if is_full:
        monkeypatch.setattr("comity.core.redaction.vault.VALUES_MAX", 0)
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        ctx.session.decide(f"charge {CARD}")

    policy = Policy() if is_full else Policy({"CARD": Action.BLOCK})
    async with make_node([agent], privacy=Privacy(policy=policy)) as node:
        reply = await node.call("A", "GO", user_id="ann", session_id="s")
        assert node.session("s").decisions == ()
    assert reply.error.code == "PRIVACY_BLOCKED"
    assert ("as many values" if is_full else "no CARD") in reply.error.message


async def test_personal_data_in_artifacts_sources_and_metadata_is_hidden_from_the_calling_agent(make_node):
    top, leaf = Agent("TOP"), Agent("LEAF")
    mail = "ann@example.com"

    @leaf.capability("GO")
    async def go() -> Reply:
        artifact = Artifact(type="json", value={"to": mail}, label=f"for {mail}")
        return Reply.success(artifacts=(artifact,), sources=(Reference(source_id=f"mail {mail}"),), metadata={"x": [mail]})

    @top.capability("GO")
    async def ask(ctx: Context) -> dict:
        reply = await ctx.call("LEAF", "GO")
        return {"clear": mail in repr(reply), "kept": reply.artifacts[0].value["to"][:2]}

    async with make_node([top, leaf]) as node:
        assert (await node.call("TOP", "GO", user_id="u")).data == {"clear": False, "kept": "[["}
        shown = await node.call("LEAF", "GO", user_id="u")
    assert (shown.artifacts[0].value, shown.metadata) == ({"to": mail}, {"x": [mail]})


WORDS = {
    "message": f"write to {EMAIL}",
    "summary": f"write to {EMAIL}",
    "next_step_hint": f"write to {EMAIL}",
    "warnings": ("nothing", f"no answer from {EMAIL}"),
    "new_facts": (f"her mail is {EMAIL}",),
    "error": Error.of("TARGET_FAILED", f"no mailbox {EMAIL}"),
}


@pytest.mark.parametrize("field", WORDS)
async def test_every_text_of_a_reply_is_hidden_from_the_calling_agent_and_from_the_record(make_node, field):
    top, leaf, seen = Agent("TOP"), Agent("LEAF"), []
    status, sure = (Status.ERROR, None) if field == "error" else (Status.SUCCESS, 1.0)

    @leaf.capability("GO")
    async def go() -> Reply:
        return Reply(status=status, confidence=sure, **{field: WORDS[field]})

    @top.capability("GO")
    async def ask(ctx: Context) -> str:
        reply = await ctx.call("LEAF", "GO")
        seen.extend((getattr(reply, field), node.audit.reply(reply.request_id)))
        return "done"

    async with make_node([top, leaf]) as node:
        await node.call("TOP", "GO", user_id="u")
    assert "[[EMAIL_1_" in repr(seen[0])
    assert EMAIL not in repr(seen)
    assert EMAIL not in msgspec.json.encode(seen[1]).decode()


@pytest.mark.parametrize("field", ["objective", "message"])
async def test_what_a_request_says_in_words_is_hidden_from_its_callee(make_node, field):
    agent, seen = Agent("A"), []

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        seen.append(getattr(ctx.request, field))

    async with make_node([agent]) as node:
        await node.call("A", "GO", user_id="u", **{field: f"write to {EMAIL}"})
    assert seen[0].startswith("write to [[EMAIL_1_")


@pytest.mark.parametrize(
    ("grants", "shown"),
    [
        ({"SEND": {"EMAIL"}}, ["a", "b"]),
        ({"SEND": {"EMAIL"}, "b/SEND": set()}, ["a"]),  # what is said of one agent counts, not what is said of all
        ({"SEND": set(), "b/SEND": {"EMAIL"}}, ["b"]),
    ],
)
async def test_a_grant_to_one_agent_beats_the_grant_to_all(make_node, grants, shown):
    seen: dict[str, str] = {}

    def mailer(name: str) -> Agent:
        agent = Agent(name)

        @agent.capability("SEND", clear=["EMAIL"])
        async def send(to: str) -> None:
            seen[name] = to

        return agent

    async with make_node([mailer("a"), mailer("b")], privacy=Privacy(grants=grants)) as node:
        for name in "ab":
            await node.call(f"{name}/7", "SEND", {"to": EMAIL}, user_id="u")
    assert [name for name, to in seen.items() if to == EMAIL] == shown


async def test_the_audit_says_of_each_type_whether_it_was_shown_or_hidden(make_node):
    agent = Agent("A")

    @agent.capability("SEND", clear=["EMAIL"])
    async def send(to: str, card: str) -> None:
        assert (to, card[:2]) == (EMAIL, "[[")

    async with make_node([agent], privacy=Privacy(grants={"SEND": {"EMAIL"}})) as node:
        await node.call("A", "SEND", {"to": EMAIL, "card": CARD}, user_id="u")
        assert node.audit.rows()[0].note == "hidden: CARD; in clear: EMAIL"


async def test_what_a_request_hides_is_stored_before_its_callee_runs(make_node):
    agent, found = Agent("A"), []

    @agent.capability("GO")
    async def go(to: str) -> None:
        found.append(node._journal.load(Document.VAULT, "default\x1fs"))

    async with make_node([agent]) as node:
        await node.call("A", "GO", {"to": EMAIL}, user_id="u", session_id="s")
    assert found[0] is not None


async def test_a_reply_is_opened_with_the_vault_of_its_own_user_alone(make_node):
    """A session may be another's by now: its name is free again once it was erased or has gone with age."""
    agent, seen = Agent("A"), []

    @agent.capability("GO")
    async def go(ctx: Context, to: str) -> str:
        seen.append((ctx.request, to))
        return to

    async with make_node([agent]) as node:
        await node.call("A", "GO", {"to": EMAIL}, user_id="bob", session_id="s")
        request, token = seen[0]
        reply = Reply.success(token, session_id="s")
        shown = node._path.settlement.shown
        assert shown(reply, request).data == EMAIL
        assert shown(reply, msgspec.structs.replace(request, user_id="ann")).data == token
        assert shown(reply, msgspec.structs.replace(request, tenant_id="evil")).data == token


async def test_the_first_input_that_does_not_fit_once_hidden_is_named(make_node):
    agent = Agent("A")

    @agent.capability("SEND")
    async def send(to: Mail, copy_to: Mail) -> None: ...

    async with make_node([agent]) as node:
        reply = await node.call("A", "SEND", {"to": EMAIL, "copy_to": EMAIL}, user_id="u")
    assert reply.error.code == "INPUT_VALIDATION_FAILED"
    assert "inputs.to does not fit" in reply.error.message


@pytest.mark.parametrize(
    "made",
    [
        Reply.success(artifacts=(Artifact(type="json", value=EMAIL),)),
        Reply.success(sources=(Reference(source_id=EMAIL),)),
        Reply.success(metadata={"to": EMAIL}),
        Reply(status=Status.ERROR, error=Error(code="TARGET_FAILED", message="no", facts={"to": EMAIL})),
        Reply(status=Status.ERROR, error=Error(code="TARGET_FAILED", message="no", advice=f"ask {EMAIL}")),
        Reply(
            status=Status.ERROR,
            error=Error(code="TARGET_FAILED", message="no", problems=(Problem("inputs.to", f"is {EMAIL}"),)),
        ),
    ],
    ids=["artifacts", "sources", "metadata", "facts", "advice", "problems"],
)
async def test_each_part_of_a_reply_or_an_error_is_hidden_also_where_it_is_the_only_one(make_node, made):
    leaf, boss, seen = Agent("LEAF"), Agent("BOSS"), []

    @leaf.capability("GO")
    async def go() -> Reply:
        return made

    @boss.capability("GO")
    async def ask(ctx: Context) -> None:
        seen.append(msgspec.json.encode(await ctx.call("LEAF", "GO")).decode())

    async with make_node([leaf, boss]) as node:
        (await node.call("BOSS", "GO", user_id="u", session_id="s")).unwrap()
    assert EMAIL not in seen[0]
    assert "[[EMAIL_1_" in seen[0]


async def test_a_node_that_has_started_builds_no_patterns_while_calls_wait(make_node, monkeypatch):
    agents, seen = relay()
    async with make_node(agents, privacy=Privacy(scanner=Scanner(DETECTORS))) as node:
        monkeypatch.setattr(hints, "compile_test", None)  # a pattern that were built now would fail the call
        assert (await call(node)).ok
    assert CARD not in str(seen)


async def test_names_that_no_agent_has_are_recorded_without_personal_data(make_node):
    asked, agent = [], Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context):
        asked.append(await ctx.call("bob@example.com", "4111 1111 1111 1111"))
        return await ctx.call("A", "pay 4111 1111 1111 1111")

    async with make_node([agent]) as node:
        told = await node.call("A", "GO", user_id="u")
        mine = await node.call("ann@example.com", "GO", user_id="u")
        await node.flush_spans()
        recorded = repr((asked, told, node.audit.rows(), [node._journal.call(f"{told.request_id}.{one}") for one in (1, 2)]))
        spans = repr(node.spans.find("{}"))
    assert "ann@example.com" in mine.error.message  # a user's own words
    for hidden in ("bob@example.com", "ann@example.com", "4111 1111", "41111111"):
        assert hidden not in recorded + spans
