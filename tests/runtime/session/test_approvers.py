"""Approvals: people who decide see what they may see, and an approval is for one use of one tool with one set of inputs."""

from __future__ import annotations

import json

import pytest
from msgspec.structs import replace

from comity import Agent, Context, Node, Policy, Privacy, Reply, Status
from comity.core.agent.agent import DeclarationError
from comity.core.agent.tool import Risk, Tool
from comity.core.envelope.envelope import encode
from comity.core.journal.records import Document, Saved
from comity.engines.memory.journal import MemoryJournal
from comity.errors import CallerError
from comity.runtime.call.tools import REASON_CHARS_MAX, Approval
from comity.runtime.session.approvers import Approver, outcome, question

EMAIL, PHONE = "ann@example.com", "+49 151 12345678"
ALICE = {"user_id": "alice", "tenant_id": "acme", "session_id": "s", "request_id": "r"}


def bank(uses: int = 1) -> Agent:
    agent = Agent("bank", tools_allowed=["pay"])

    @agent.capability("PAY")
    async def pay(ctx: Context, to: str, phone: str = "") -> dict:
        for _ in range(uses):
            receipt = await ctx.use_tool("pay", to=to)
        return {"for": to, "phone": phone, "receipt": receipt, "asked": ctx.request.message}

    return agent


def pay_tool(paid: list[str] | None = None) -> Tool:
    def pay(to) -> str:
        if paid is not None:
            paid.append(to)
        return f"paid {to}"

    return Tool(name="pay", function=pay, risk=Risk.HIGH)


def ask(node: Node, **more):
    return node.call("bank", "PAY", {"to": EMAIL, "phone": PHONE}, message=f"mail {EMAIL}", **ALICE | more)


@pytest.mark.parametrize(
    "person", [{"by": "eve"}, {"by": "alice"}, {"by": "eve", "tenant_id": "acme"}, {"by": "alice", "tenant_id": "default"}]
)
async def test_a_person_who_decides_gets_nothing_back_that_was_hidden_from_them(make_node, person):
    async with make_node([bank(uses=2)], tools=[pay_tool()]) as node:
        await ask(node)
        shown = [one.inputs for one in node.approvals(**person)]
        first = await node.decide("r#1", granted=True, **person)
        if person.get("tenant_id") == "default":  # for a person of another tenant there is no such question
            assert (shown, first, node.approvals()[0].granted) == ([], None, None)
            return
        last = await node.decide("r#2", granted=True, **person)
        again = await node.decide("r#2", granted=True, **person)
    told = [first, last, again]
    assert [one.status for one in told] == ["needs_input", "success", "success"]
    said = b"".join(map(encode, (*shown, *told))).decode()  # the repr of a reply does not say all of it
    assert (EMAIL in said, PHONE in said) == (False, False)
    assert "[[EMAIL_1_" in shown[0]["to"] == last.data["for"]


async def test_a_user_who_decides_their_own_question_sees_all_of_it(make_node):
    async with make_node([bank()], tools=[pay_tool()]) as node:
        await ask(node)
        own = {"by": "alice", "tenant_id": "acme"}
        assert [one.inputs for one in node.approvals(**own)] == [{"to": EMAIL}]
        reply = await node.decide("r#1", granted=True, **own)
    assert (reply.data["for"], reply.data["phone"], reply.thought) == (EMAIL, PHONE, "")


async def test_a_person_sees_the_types_that_their_role_allows_in_questions_and_replies(make_node):
    privacy = Privacy(approvers={"treasurer": {"EMAIL"}})
    async with make_node([bank()], tools=[pay_tool()], privacy=privacy) as node:
        await ask(node)
        assert [one.inputs for one in node.approvals(by="treasurer")] == [{"to": EMAIL}]
        assert "[[EMAIL_" in node.approvals(by="clerk")[0].inputs["to"]
        reply = await node.decide("r#1", granted=True, by="treasurer")
    assert (reply.data["for"], reply.data["receipt"]) == (EMAIL, f"paid {EMAIL}")
    assert "[[PHONE_" in reply.data["phone"]


async def test_what_an_approver_may_see_is_checked_when_a_node_starts(make_node):
    with pytest.raises(DeclarationError, match="treasurer names 'EMIAL'"):
        async with make_node([bank()], privacy=Privacy(approvers={"treasurer": {"EMIAL"}})):
            pass
    with pytest.raises(DeclarationError, match="approvers must map a person to a set of types"):
        Privacy(approvers={"treasurer": "EMAIL"})


async def test_a_reply_that_is_not_in_the_store_is_not_shown_to_another_person(make_node):
    agent = Agent("bank", tools_allowed=["pay"])

    @agent.capability("PAY")
    async def pay(ctx: Context, to: str) -> dict:
        await ctx.use_tool("pay", to=to)
        await node.erase_session("s", tenant_id="acme")
        return {"for": to}

    async with make_node([agent], tools=[pay_tool()]) as node:
        await node.call("bank", "PAY", {"to": EMAIL}, **ALICE)
        reply = await node.decide("r#1", granted=True, by="eve")
    assert EMAIL not in encode(reply).decode()


# --- what an approval is for ---

GRANTED = Approval(
    id="r#1",
    root_id="r",
    tool="pay",
    target="bank",
    user_id="alice",
    tenant_id="acme",
    session_id="s",
    inputs={"to": "5"},
    asked_at=1,
    granted=True,
    decided_by="boss",
    decided_at=2,
)


@pytest.mark.parametrize("other", ["tool", "target", "user_id", "tenant_id", "session_id", "inputs", ""])
@pytest.mark.parametrize("granted", [True, None])
async def test_an_approval_is_for_one_tool_agent_user_tenant_session_and_one_set_of_inputs(make_node, other, granted):
    changed = {other: {"to": "5000000"} if other == "inputs" else "other"} if other else {}
    asked, paid = replace(GRANTED, granted=granted, **changed), []
    journal = MemoryJournal("n")
    journal.open()
    journal.append(
        (Saved(Document.APPROVAL, "r#1", 2, json.dumps({f: getattr(asked, f) for f in asked.__struct_fields__}).encode()),)
    )
    async with make_node([bank()], tools=[pay_tool(paid)], journal=journal) as node:
        reply = await node.call("bank", "PAY", {"to": "5"}, **ALICE)
    if not other:
        assert (reply.status, paid) == (("success", ["5"]) if granted else ("needs_input", []))
    elif other == "inputs" and not granted:
        assert (reply.status, paid) == ("needs_input", [])  # still to be decided
    else:
        assert (reply.error.code, paid) == ("APPROVAL_DENIED", [])


@pytest.mark.parametrize("wanted", [["5", "5000000"], [1, True], [1, 1.0]], ids=str)
async def test_what_runs_is_what_was_approved_also_if_the_agent_changes_its_mind(make_node, wanted):
    agent, paid, wanted = Agent("bank", tools_allowed=["pay"]), [], [*wanted]

    @agent.capability("PAY")
    async def pay(ctx: Context) -> str:
        return await ctx.use_tool("pay", to=wanted.pop(0))

    async with make_node([agent], tools=[pay_tool(paid)]) as node:
        await node.call("bank", "PAY", **ALICE)
        reply = await node.decide("r#1", granted=True, by="boss")
    assert (reply.error.code, reply.error.message, paid) == ("APPROVAL_DENIED", "pay was approved with other inputs", [])


@pytest.mark.parametrize(("later", "code"), [("eve@example.com", "APPROVAL_DENIED"), (EMAIL, None)])
async def test_values_that_policy_masks_alike_are_not_approved_alike(make_node, later, code):
    agent, paid, wanted = Agent("bank", tools_allowed=["pay"]), [], [EMAIL, later]

    @agent.capability("PAY")
    async def pay(ctx: Context) -> str:
        return await ctx.use_tool("pay", to=wanted.pop(0))

    async with make_node([agent], tools=[pay_tool(paid)], privacy=Privacy(policy=Policy({"EMAIL": "mask"}))) as node:
        await node.call("bank", "PAY", **ALICE)
        assert node.approvals()[0].inputs == {"to": "****@example.com"}
        reply = await node.decide("r#1", granted=True, by="boss")
    assert (reply.error and reply.error.code, paid) == (code, [] if code else [EMAIL])


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("granted", value) for value in ("yes", 1, None)),
        *(("by", value) for value in ("", "a\nb", None, 5)),
        *(("reason", value) for value in ("x" * (REASON_CHARS_MAX + 1), None, 5, ["x"])),
    ],
)
async def test_an_answer_that_is_not_sound_names_its_field_and_changes_nothing(make_node, field, value):
    async with make_node([bank()], tools=[pay_tool()]) as node:
        await ask(node)
        with pytest.raises(CallerError, match=field):
            await node.decide("r#1", **{"granted": True, "by": "eve", "tenant_id": "acme", "reason": "ok"} | {field: value})
        assert [one.granted for one in node.approvals()] == [None]
        last = await node.decide("r#1", granted=False, by="eve", tenant_id="acme", reason="x" * REASON_CHARS_MAX)
    assert last.error is not None


async def test_a_node_answers_only_where_it_can_go_on_with_the_call_that_waits(make_node):
    async with make_node([bank()], tools=[pay_tool()]) as node:
        await ask(node)
        (question,) = node.approvals()
        check = node._path.toolbox.check_goes_on
        check(question)
        check(replace(question, root_id="gone", tool="none", target="none"))
        for missing, code in (({"tool": "none"}, "TOOL_UNKNOWN"), ({"target": "none"}, "ROUTING_UNKNOWN_AGENT")):
            with pytest.raises(CallerError) as caught:
                check(replace(question, **missing))
            assert caught.value.code == code
        await node.decide("r#1", granted=True, by="eve")
        check(replace(question, tool="none", target="none"))  # it has ended: there is nothing to go on with


@pytest.mark.parametrize(
    ("person", "sees", "is_own"),
    [
        (Approver("ann"), True, False),
        (Approver("ann", "acme"), True, True),
        (Approver("ann", "evil"), False, False),
        (Approver("bob", "acme"), True, False),
    ],
)
def test_a_question_is_a_persons_own_only_with_name_and_tenant(person, sees, is_own):
    asked = Approval(
        id="r#1", root_id="r", tool="pay", target="bank", user_id="ann", tenant_id="acme", session_id="s", inputs={}, asked_at=1
    )
    assert (person.sees(asked), person.is_own(asked)) == (sees, is_own)
    assert Approver("ann").is_own(replace(asked, tenant_id="default"))


async def test_a_question_in_a_session_that_is_another_users_now_shows_nothing_of_that_user(make_node):
    async with make_node([bank()], tools=[pay_tool()]) as node:
        await ask(node, user_id="bob")
        sessions, privacy = node._path.sessions, node._path._privacy
        (of_bob,) = node.approvals()
        of_alice = replace(of_bob, user_id="alice")
        alice, bob = (Approver(name, "acme") for name in ("alice", "bob"))
        assert question(of_bob, bob, privacy, sessions).inputs == {"to": EMAIL}
        assert question(of_alice, alice, privacy, sessions).inputs == of_bob.inputs != {"to": EMAIL}


@pytest.mark.parametrize("kept", [None, "without a reply", Reply(status=Status.NEEDS_INPUT, data={"to": EMAIL})], ids=str)
async def test_another_person_is_shown_no_reply_but_the_one_that_the_store_holds_of_the_same_end(make_node, kept):
    """Dies where a stored question is shown as the reply, or where the user's own reply, in clear, is shown instead."""
    async with make_node([bank()], tools=[pay_tool()]) as node:
        await ask(node)
        sessions, privacy, stored = node._path.sessions, node._path._privacy, node._journal.call("r")
    stored = None if kept is None else replace(stored, reply=None if isinstance(kept, str) else kept)
    failed = Reply.failure(f"to {EMAIL}", code="BANK_CLOSED", data={"to": EMAIL}, request_id="r")
    for clear in (Reply.success({"to": EMAIL}), Reply.partial({"to": EMAIL}, warnings=[EMAIL]), failed):
        told = outcome(GRANTED, clear, stored, Approver("eve", "acme"), privacy, sessions)
        assert (told.status, told.data, told.confidence, told.request_id) == (
            clear.status,
            None,
            clear.confidence,
            clear.request_id,
        )
        assert (told.error and told.error.code, EMAIL in encode(told).decode()) == (clear.error and "BANK_CLOSED", False)
        assert outcome(GRANTED, clear, stored, Approver("alice", "acme"), privacy, sessions) is clear
        assert outcome(GRANTED, clear, stored, Approver("eve", "acme"), None, sessions) is clear  # where nothing is hidden
