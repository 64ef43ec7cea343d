"""Documents from outside: what they claim about themselves changes nothing, and what is not true is refused and audited."""

from __future__ import annotations

import asyncio
import base64

import pytest
from msgspec.structs import replace

from comity import Agent, Context
from comity.dialects.convert import DIALECTS
from comity.doors.documents import receive_document
from comity.errors import RefusedError
from comity.runtime.call.draft import Identity


def team(hold=None) -> list[Agent]:
    orc, anl = Agent("ORC"), Agent("ANL", aliases=["byte-docs"])

    @orc.capability("WORK")
    async def work(ctx: Context):
        return await hold(ctx)

    @anl.capability("ANL_NPV")
    async def npv(ctx: Context, cash_flows: list[float] = (), discount_rate: float = 0, periods: str = ""):
        return {"chain": list(ctx.request.chain), "of": ctx.request.user_id, "depth": ctx.request.depth}

    @anl.capability("message")
    async def message(ctx: Context):
        return {"chain": list(ctx.request.chain), "of": ctx.request.user_id}

    return [orc, anl]


KDAP = {
    "source_agent": "ORC",
    "target_agent": "ANL",
    "capability_code": "ANL_NPV",
    "request_id": "kdap-1",
    "inputs_json": {"cash_flows": [-100000, 25000], "discount_rate": 0.12, "periods": "annual"},
    "context": {"session_id": "sess-789", "user_id": "ann"},
}
DELEGATION = {
    "request_id": "550e8400-e29b-41d4-a716-446655440000",
    "origin_employee": "ORC",
    "target_employee": "byte-docs",
    "user_id": "ann",
    "parent_session_id": "p",
    "objective": "Extract",
    "input": "Read it",
    "constraints": {"max_tokens": 1200, "max_depth": 2, "deadline_ms": 15000},
    "context_hints": [],
    "handoff_data": {},
    "current_depth": 1,
}


async def refused_code(node, document, **more) -> str:
    reply = await node.receive(document, **{"user_id": "ann", **more})
    assert "ERROR" in str(reply) or "failed" in str(reply)
    row = node.audit.rows()[-1]
    assert (row.kind, row.origin, row.chain) == ("refused", None, "")
    return row.error_code


async def test_without_a_token_nobody_is_an_agent(make_node):
    async with make_node(team()) as node:
        assert await refused_code(node, KDAP, dialect="kdap") == "IDENTITY_MISMATCH"
        assert await refused_code(node, DELEGATION, dialect="delegation") == "IDENTITY_MISMATCH"


async def test_a_document_of_another_user_is_refused_under_the_true_one(make_node):
    async with make_node(team()) as node:
        assert await refused_code(node, KDAP, dialect="kdap", user_id="mallory") == "IDENTITY_MISMATCH"
        assert node.audit.rows()[-1].user_id == "mallory"


async def test_with_a_token_the_chain_and_user_come_from_the_call_under_way(make_node):
    seen: list[dict] = []

    async def hold(ctx: Context):
        seen.append(await node.receive(KDAP, dialect="kdap", user_id="ann", token=ctx.token))
        return seen[-1]["result_json"]

    async with make_node(team(hold)) as node:
        reply = await node.call("ORC", "WORK", user_id="ann", session_id="sess-789")
        rows = [(row.request_id, row.origin, row.target) for row in node.audit.rows() if row.kind == "admitted"]
    assert reply.data == {"chain": ["ORC"], "of": "ann", "depth": 1}
    assert (seen[0]["status"], seen[0]["request_id"]) == ("SUCCESS", "kdap-1")
    assert rows[1][1:] == ("ORC", "ANL")
    assert rows[1][0].startswith(rows[0][0])  # it is part of the tree that ORC works in


@pytest.mark.parametrize(
    "forgery",
    [
        {"source_agent": "CST"},
        {"context": {"session_id": "sess-789", "user_id": "mallory"}},
    ],
)
async def test_a_token_does_not_cover_other_claims(make_node, forgery):
    codes: list[str] = []

    async def hold(ctx: Context):
        codes.append(await refused_code(node, {**KDAP, **forgery}, dialect="kdap", token=ctx.token))

    async with make_node(team(hold)) as node:
        await node.call("ORC", "WORK", user_id="ann", session_id="sess-789")
    assert codes == ["IDENTITY_MISMATCH"]


@pytest.mark.parametrize("depth", [0, 2, 5])
async def test_a_forged_depth_changes_nothing(make_node, depth):
    codes: list[str] = []

    async def hold(ctx: Context):
        document = {**DELEGATION, "current_depth": depth}
        if depth == 0:  # claims to come straight from the user, to win a level
            reply = await node.receive(document, dialect="delegation", user_id="ann", token=ctx.token)
            codes.append(reply["status"])
        else:
            codes.append(await refused_code(node, document, dialect="delegation", token=ctx.token))

    async with make_node(team(hold)) as node:
        await node.call("ORC", "WORK", user_id="ann")
        chains = [row.chain for row in node.audit.rows() if row.target == "ANL" and row.kind == "admitted"]
    assert codes == (["success"] if depth == 0 else ["IDENTITY_MISMATCH"])
    assert chains == (["ORC"] if depth == 0 else [])  # where it really stands


async def test_a_dialect_that_knows_only_the_last_agent_is_believed_at_any_depth(make_node):
    seen: list[dict] = []

    async def hold(ctx: Context):
        seen.append(await node.receive(KDAP, dialect="kdap", user_id="ann", token=ctx.token))

    top = Agent("TOP")

    @top.capability("GO")
    async def go(ctx: Context):
        return (await ctx.call("ORC", "WORK")).status

    async with make_node([top, *team(hold)]) as node:
        await node.call("TOP", "GO", user_id="ann", session_id="sess-789")
    assert seen[0]["result_json"] == {"chain": ["TOP", "ORC"], "of": "ann", "depth": 2}


async def test_what_the_code_of_an_agent_raised_is_told_to_agents_alone(make_node):
    async def hold(ctx: Context):
        told.append(await node.receive(asked, dialect="kdap", user_id="ann", token=ctx.token))

    broken, told = Agent("BROKEN"), []

    @broken.capability("GO")
    async def go():
        raise RuntimeError("port 4711 is closed")

    asked = {**KDAP, "target_agent": "BROKEN", "capability_code": "GO", "inputs_json": {}}
    async with make_node([*team(hold), broken]) as node:
        await node.call("ORC", "WORK", user_id="ann", session_id="sess-789")
        users = {name: value for name, value in asked.items() if name != "source_agent"}
        told.append(await node.receive(users, dialect="kdap", user_id="ann"))
    assert ["4711" in str(one) for one in told] == [True, False]


async def test_a_stolen_old_or_changed_token_is_refused(make_node):
    tokens: list[str] = []

    async def hold(ctx: Context):
        tokens.append(ctx.token)

    async with make_node(team(hold)) as node:
        await node.call("ORC", "WORK", user_id="ann")
        assert await refused_code(node, KDAP, dialect="kdap", token=tokens[0]) == "CALL_CANCELLED"  # its call has ended
        assert await refused_code(node, KDAP, dialect="kdap", token=tokens[0][:-2] + "AA") == "IDENTITY_FORGED"
        assert await refused_code(node, KDAP, dialect="kdap", token="") == "IDENTITY_FORGED"


@pytest.mark.parametrize("said", ["ANL/7", "ANL", "byte-docs", "byte-docs/7"])
async def test_an_agent_may_name_itself_by_its_address_its_id_or_an_alias(make_node, said):
    answers: list[dict] = []
    anl = Agent("ANL", aliases=["byte-docs"])
    doc = Agent("DOC")

    @anl.capability("WORK")
    async def work(ctx: Context) -> None:
        asked = {"source_agent": said, "target_agent": "DOC", "capability_code": "GO", "request_id": "r", "inputs_json": {}}
        answers.append(await node.receive(asked, dialect="kdap", user_id="ann", token=ctx.token))
        chained = {"agent_id": "DOC", "message": "m"}
        assert "text" in await node.receive(chained, dialect="call_agent", user_id="ann", capability="GO", token=ctx.token)

    @doc.capability("GO")
    async def go(ctx: Context) -> dict:
        return {"chain": list(ctx.request.chain)}

    async with make_node([anl, doc]) as node:
        await node.call("ANL/7", "WORK", user_id="ann")
    assert answers[0]["result_json"] == {"chain": ["ANL/7"]}  # where it really stands


@pytest.mark.parametrize("said", ["ANL/8", "byte-docs/8", "DOC", "ANL/", "anl", "?"])
async def test_another_key_or_another_agent_is_a_false_claim(make_node, said):
    codes: list[str] = []
    anl = Agent("ANL", aliases=["byte-docs"])

    @anl.capability("WORK")
    async def work(ctx: Context) -> None:
        codes.append(await refused_code(node, KDAP | {"source_agent": said}, dialect="kdap", token=ctx.token))

    async with make_node([anl, Agent("DOC")]) as node:
        await node.call("ANL/7", "WORK", user_id="ann", session_id="sess-789")
    assert codes == ["IDENTITY_MISMATCH"]


async def test_the_origin_that_a_delegation_at_depth_0_claims_is_checked(make_node):
    async with make_node(team()) as node:
        forged = {**DELEGATION, "origin_employee": "prime-boss", "current_depth": 0}
        assert await refused_code(node, forged, dialect="delegation") == "IDENTITY_MISMATCH"
        answer = await node.receive(forged | {"origin_employee": "user"}, dialect="delegation", user_id="ann")
    assert answer["status"] == "success"


@pytest.mark.parametrize("who", [{"tenant_id": 5}, {"session_id": "\ud800"}, {"session_id": 5}, {"tenant_id": ""}], ids=ascii)
async def test_a_document_from_nobody_that_could_be_named_is_refused_and_recorded_readably(make_node, who):
    async with make_node(team()) as node:
        answer = await node.receive(KDAP | {"source_agent": "zz"}, dialect="kdap", user_id="ann", **who)
        assert (answer["error_code"], next(iter(who)) in answer["error_message"]) == ("IDENTITY_INVALID", True)
        assert [row.kind for row in node.audit.rows()] == ["refused"]
        assert len(node.spans.find("{ }")) == 1


STRANGERS = [{"user_id": "eve"}, {"tenant_id": "evil"}, {"session_id": "other"}]


@pytest.mark.parametrize("stranger", STRANGERS, ids=str)
@pytest.mark.parametrize("claims", [{"user_id": "ann"}, {}], ids=str)
async def test_a_token_works_for_the_user_tenant_and_session_it_was_made_for_alone(make_node, stranger, claims):
    async def hold(ctx: Context):
        code = await refused_code(node, KDAP | {"context": claims}, dialect="kdap", token=ctx.token, **sender)
        with pytest.raises(RefusedError, match="another user"):
            node.session_for(ctx.token, user_id="ann", tenant_id="evil")
        assert node.session_for(ctx.token, user_id="ann", tenant_id="acme").id == "s"
        return code

    sender = {"user_id": "ann", "tenant_id": "acme", "session_id": "s"} | stranger
    async with make_node(team(hold)) as node:
        reply = await node.call("ORC", "WORK", user_id="ann", tenant_id="acme", session_id="s")
        [row] = [row for row in node.audit.rows() if row.kind == "refused"]
    assert reply.data == "IDENTITY_MISMATCH"
    assert (row.user_id, row.tenant_id, row.session_id) == (sender["user_id"], sender["tenant_id"], sender["session_id"])


async def test_a_token_of_an_ended_call_tells_a_stranger_nothing_of_that_call(make_node):
    tokens: list[str] = []

    async def hold(ctx: Context):
        tokens.append(ctx.token)

    async with make_node(team(hold)) as node:
        await node.call("ORC", "WORK", user_id="ann")
        assert await refused_code(node, KDAP, dialect="kdap", user_id="eve", token=tokens[0]) == "IDENTITY_MISMATCH"


@pytest.mark.parametrize("again", [{}, {"session_id": "s2"}, {"tenant_id": "evil"}], ids=str)
async def test_a_token_of_an_erased_call_fits_no_other_call_of_that_id_and_user(make_node, again):
    tokens: list[str] = []

    async def hold(ctx: Context):
        tokens.append(ctx.token)
        await asyncio.sleep(5)

    async with make_node(team(hold)) as node:
        for more in ({}, again):
            node.start_call("ORC", "WORK", **{"user_id": "ann", "request_id": "job", "session_id": "s"} | more)
            await asyncio.sleep(1)
            if len(tokens) == 1:
                await node.erase_session("s")
        code = await refused_code(node, KDAP | {"context": {}}, dialect="kdap", token=tokens[0])
        assert (len(tokens), code) == (2, "CALL_CANCELLED")


async def test_a_token_of_one_node_is_no_token_of_another_that_has_its_key(make_node, monkeypatch):
    monkeypatch.setenv("COMITY_VAULT_KEY", base64.b64encode(b"k" * 32).decode())
    tokens: list[str] = []

    async def hold(ctx: Context):
        tokens.append(ctx.token)
        await asyncio.sleep(5)

    async with make_node(team(hold)) as one, make_node(team(hold)) as other:
        for node in (one, other):
            node.start_call("ORC", "WORK", user_id="ann", request_id="job", session_id="sess-789")
        await asyncio.sleep(1)
        assert await refused_code(other, KDAP, dialect="kdap", token=tokens[0]) == "CALL_CANCELLED"
        assert (await other.receive(KDAP, dialect="kdap", user_id="ann", token=tokens[1]))["status"] == "SUCCESS"


async def test_a_token_is_for_the_one_call_it_was_made_in_also_if_its_id_is_chosen_again(make_node):
    tokens: list[str] = []

    async def hold(ctx: Context):
        tokens.append(ctx.token)
        await asyncio.sleep(5)

    async with make_node(team(hold)) as node:
        for user in ("ann", "bob"):
            node.start_call("ORC", "WORK", user_id=user, request_id="job")
            await asyncio.sleep(1)
            if user == "ann":
                await node.erase_session("job")  # after which nobody knows of its id any more
        document = {**KDAP, "context": {"session_id": "job", "user_id": "ann"}}
        assert await refused_code(node, document, dialect="kdap", token=tokens[0]) == "CALL_CANCELLED"
        assert await refused_code(node, KDAP, dialect="kdap", user_id="bob", token=tokens[0]) == "IDENTITY_MISMATCH"
        taken = await node.receive(KDAP | {"context": {}}, dialect="kdap", user_id="bob", token=tokens[1])
    assert taken["result_json"]["of"] == "bob"


@pytest.mark.parametrize(("claims", "code"), [("other", "IDENTITY_MISMATCH"), ("job", None)])
async def test_a_document_with_a_token_belongs_to_the_call_of_the_token(make_node, monkeypatch, claims, code):
    """No dialect of today names the call above; one that does is not believed either."""
    kdap = DIALECTS["kdap"]
    naming = replace(kdap, decode_request=lambda *given, **more: replace(kdap.decode_request(*given, **more), parent_id=claims))
    monkeypatch.setitem(DIALECTS, "kdap", naming)

    async def hold(ctx: Context):
        return await node.receive(KDAP, dialect="kdap", user_id="ann", token=ctx.token)

    async with make_node(team(hold)) as node:
        reply = await node.call("ORC", "WORK", user_id="ann", session_id="sess-789", request_id="job")
    assert reply.data.get("error_code") == code


@pytest.mark.parametrize("token", ["", "forged"])
async def test_no_check_of_what_a_document_claims_lets_a_forged_token_in(make_node, token):
    """Dies where the outcome of a check takes the place of the refusal of the sender."""
    asked: list[object] = []
    async with make_node(team(lambda ctx: None)) as node:
        reply, _ = await receive_document(
            node._path,
            KDAP,
            "kdap",
            Identity("ann", "default", None),
            {},
            token=token,
            now_ms=node._path.now_ms(),
            check=asked.append,
        )
    assert (reply.status, reply.error.code, asked) == ("refused", "IDENTITY_FORGED", [])


async def test_a_document_that_names_no_session_stays_in_that_of_its_sender(make_node):
    """Dies where a dialect without sessions of its own opens one: the callee would not see what its caller knows."""
    said = {**KDAP, "context": {"user_id": "ann"}}

    async def hold(ctx: Context):
        await node.receive(said, dialect="kdap", user_id="ann", token=ctx.token)

    async with make_node(team(hold)) as node:
        await node.call("ORC", "WORK", user_id="ann", session_id="sess-789")
        rows = [(row.target, row.session_id) for row in node.audit.rows() if row.kind == "settled"]
    assert rows == [("ANL", "sess-789"), ("ORC", "sess-789")]
