"""Tools: the callee's profile decides, explicit grants only shrink, high risk waits for a person, an effect happens once."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest
from death import die
from hypothesis import given
from hypothesis import strategies as st

from comity import Agent, Context, Node, Status
from comity.core.agent.agent import DeclarationError
from comity.core.agent.breaker import Policy
from comity.core.agent.tool import Risk, Tool
from comity.core.document.payload import PayloadError, Problem
from comity.core.document.schema import Checked
from comity.core.session.session import EXPIRED_MS
from comity.engines.memory.journal import MemoryJournal
from comity.errors import CallerError, RefusedError
from comity.runtime.call.tools import SHOWN_CHARS_MAX, Approval, _typed
from comity.testing import ScriptedModel, VirtualClock, run_virtual, tool_call


def chain(profiles: list[set[str]], tool: str = "pay", grants: list[set[str] | None] | None = None) -> list[Agent]:
    """A0 → A1 → …; the last one uses the tool. Each grants the next one what `grants` says for its place."""
    agents = []
    for index, allowed in enumerate(profiles):
        agent = Agent(f"A{index}", tools_allowed=allowed)

        @agent.capability("GO")
        async def go(ctx: Context, _index: int = index):
            if _index == len(profiles) - 1:
                return await ctx.use_tool(tool, amount=5)
            given = None if grants is None else grants[_index]
            return (await ctx.call(f"A{_index + 1}", "GO", tools=given)).unwrap()

        agents.append(agent)
    return agents


async def test_a_tool_runs_for_an_agent_that_may_use_it(make_node):
    paid: list[int] = []
    async with make_node(
        chain([{"pay"}]), tools=[Tool(name="pay", function=lambda amount: paid.append(amount) or "done")]
    ) as node:
        reply = await node.call("A0", "GO", user_id="ann")
    assert (reply.data, paid) == ("done", [5])


@pytest.mark.parametrize(
    ("raised", "logged"), [(KeyError("gone"), ["gone"]), (TimeoutError("slow"), []), (CallerError("no"), [])]
)
async def test_a_tools_crash_is_told_to_its_agent_and_its_traceback_is_logged_once(make_node, caplog, raised, logged):
    def pay(amount: int):
        raise raised

    async with make_node(chain([{"pay"}]), tools=[Tool(name="pay", function=pay)]) as node:
        reply = await node.call("A0", "GO", user_id="ann", request_id="r")
    assert reply.error.message == f"pay: {raised}"
    assert [one.exc_info[1].args[0] for one in caplog.records] == logged
    assert caplog.messages == ["the tool pay raised (request r#1)"] * len(logged)


profiles = st.lists(st.sets(st.sampled_from(["pay", "read", "*"])), min_size=1, max_size=4)
granted = st.none() | st.sets(st.sampled_from(["pay", "read", "*"]))


def holds(grant: set[str] | None, tool: str = "pay") -> bool:
    return grant is None or tool in grant or "*" in grant


@given(
    profiles=profiles,
    user=granted,
    by_callers=st.lists(granted, min_size=4, max_size=4),
    rights=st.sampled_from(["own", "chain"]),
)
def test_a_tool_is_used_if_the_callee_has_it_and_every_explicit_grant_above_names_it(profiles, user, by_callers, rights):
    paid: list[int] = []

    async def go():
        tool = Tool(name="pay", function=lambda amount: paid.append(amount) or "done")
        agents = chain(profiles, grants=by_callers)
        async with Node(agents, tools=[tool], clock=VirtualClock(), lag_ms=None, tool_rights=rights) as node:
            return await node.call("A0", "GO", user_id="ann", tools=user)

    reply = run_virtual(go())
    explicit = [user, *by_callers[: len(profiles) - 1]]
    needed = profiles if rights == "chain" else profiles[-1:]
    allowed = all(map(holds, explicit)) and all(map(holds, needed))
    assert bool(paid) == allowed == reply.ok
    if not allowed:
        assert reply.error.code == "TOOL_NOT_PERMITTED"


@pytest.mark.parametrize(
    ("rights", "profiles", "user", "told"),
    [
        ("own", [set()], None, "A0 may not use pay: add 'pay' to tools_allowed of A0"),
        ("own", [{"pay"}, set()], None, "A1 may not use pay: add 'pay' to tools_allowed of A1"),
        ("own", [{"pay"}], {"read"}, "A0 may not use pay here: a call above was made with tools= that does not name it"),
        ("own", [set(), {"pay"}], {"read"}, "A1 may not use pay here: a call above was made with tools= that does not name it"),
        ("chain", [set(), {"pay"}], None, "A1 may not use pay: add 'pay' to tools_allowed of A0"),
        ("chain", [set(), set()], None, "A1 may not use pay: add 'pay' to tools_allowed of A0 and A1"),
    ],
)
async def test_who_may_not_use_a_tool_is_told_what_to_add_where(make_node, rights, profiles, user, told):
    tool = Tool(name="pay", function=lambda amount: "done")
    async with make_node(chain(profiles), tools=[tool], tool_rights=rights) as node:
        reply = await node.call("A0", "GO", user_id="ann", tools=user)
    assert (reply.error.code, reply.error.message.removeprefix("A0 passed on: ")) == ("TOOL_NOT_PERMITTED", told)


async def test_what_a_call_was_granted_still_holds_after_it_waited_for_a_person(make_node):
    wiped: list[int] = []
    agent = Agent("A0", tools_allowed=["pay", "wipe"])

    @agent.capability("GO")
    async def go(ctx: Context):
        await ctx.use_tool("pay", amount=5)
        return await ctx.use_tool("wipe")

    wipe = Tool(name="wipe", function=lambda: wiped.append(1))
    async with make_node([agent], tools=[risky([]), wipe]) as node:
        asked = await node.call("A0", "GO", user_id="ann", tools=["pay"])
        reply = await node.decide(asked.data["approval_id"], granted=True, by="boss")
    assert (reply.error.code, wiped) == ("TOOL_NOT_PERMITTED", [])


def test_a_node_is_not_made_with_rights_it_does_not_know():
    with pytest.raises(ValueError, match="tool_rights must be one of own, chain, not 'caller'"):
        Node([], tool_rights="caller")


async def test_a_refused_or_unknown_tool_is_audited_and_names_the_nearest(make_node):
    async with make_node(chain([{"*"}], tool="pai"), tools=[Tool(name="pay", function=lambda amount: None)]) as node:
        unknown = await node.call("A0", "GO", user_id="ann")
        rows = [(row.kind, row.target, row.error_code) for row in node.audit.rows() if row.target.startswith("tool:")]
    assert (unknown.error.code, "did you mean pay?" in unknown.error.message) == ("TOOL_UNKNOWN", True)
    assert rows == [("refused", "tool:pai", "TOOL_UNKNOWN")]


def test_the_intent_of_an_effect_is_on_disk_before_the_effect(tmp_path):
    from comity.engines.sqlite.journal import connect, read_rows

    found: list[list[str]] = []

    def look(amount: int) -> str:
        connection = connect(tmp_path / "s.db", read_only=True)
        found.append([f"{row.kind} {row.target}" for row in read_rows(connection)])
        connection.close()
        return "done"

    async def go():
        async with Node(chain([{"pay"}]), store=tmp_path / "s.db", tools=[Tool(name="pay", function=look)]) as node:
            return await node.call("A0", "GO", user_id="ann")

    assert asyncio.run(go()).ok
    assert found == [["admitted A0", "admitted tool:pay"]]


def risky(paid: list[str]) -> Tool:
    return Tool(
        name="pay",
        function=lambda amount, idempotency_key: paid.append(idempotency_key) or "paid",
        risk=Risk.HIGH,
        takes_key=True,
    )


async def test_high_risk_pauses_the_whole_tree_and_goes_on_when_granted(make_node):
    paid: list[str] = []
    async with make_node(chain([{"pay"}] * 3), tools=[risky(paid)]) as node:
        asked = await node.call("A0", "GO", user_id="ann", request_id="r")
        assert (asked.status, paid) == (Status.NEEDS_INPUT, [])
        assert len(asyncio.all_tasks()) == 1
        again = await node.call("A0", "GO", user_id="ann", request_id="r")
        assert again.data == asked.data
        await asyncio.sleep(3600)  # people are slow; the work's own time does not run meanwhile
        reply = await node.decide(asked.data["approval_id"], granted=True, by="boss")
        once_more = await node.call("A0", "GO", user_id="ann", request_id="r")
    assert (reply.status, reply.data) == (Status.SUCCESS, "paid")
    assert once_more.data == "paid"
    assert paid == ["r.1.1#1"]


async def test_every_wait_for_a_person_gives_a_call_the_time_it_was_given_and_no_more(make_node):
    agent, left_ms = Agent("A", tools_allowed={"pay"}), []

    @agent.capability("GO")
    async def go(ctx: Context) -> None:
        left_ms.append(ctx.left_ms)
        for _ in range(2):
            await ctx.use_tool("pay", amount=5)

    async with make_node([agent], tools=[risky([])]) as node:
        await node.call("A", "GO", user_id="ann", request_id="r", timeout_ms=5_000)
        for approval_id in ("r#1", "r#2"):
            await asyncio.sleep(3600)
            reply = await node.decide(approval_id, granted=True, by="boss")
    assert (reply.status, left_ms) == (Status.SUCCESS, [5_000] * 3)


async def test_an_answer_that_comes_after_the_session_expired_still_lets_the_call_go_on(make_node):
    paid: list[str] = []
    async with make_node(chain([{"pay"}]), tools=[risky(paid)]) as node:
        asked = await node.call("A0", "GO", user_id="ann", session_id="s", message="Pay, please")
        await asyncio.sleep(EXPIRED_MS / 1000)
        reply = await node.decide(asked.data["approval_id"], granted=True, by="boss")
    assert (reply.status, len(paid)) == ("success", 1)


async def test_a_denied_tool_is_a_refusal_the_agent_can_read(make_node):
    paid: list[str] = []
    async with make_node(chain([{"pay"}]), tools=[risky(paid)]) as node:
        asked = await node.call("A0", "GO", user_id="ann", request_id="r")
        reply = await node.decide(asked.data["approval_id"], granted=False, by="boss")
    assert reply.error.code == "APPROVAL_DENIED"
    assert paid == []


@pytest.mark.parametrize(("granted", "word", "data"), [(True, "granted", "paid"), (False, "denied", None)])
async def test_the_first_answer_stands_and_every_later_one_is_told_so(make_node, granted, word, data):
    paid: list[str] = []
    async with make_node(chain([{"pay"}]), tools=[risky(paid)]) as node:
        asked = await node.call("A0", "GO", user_id="ann", request_id="r")
        first = await node.decide("r#1", granted=granted, by="boss")
        (answer,) = node.approvals()
        await asyncio.sleep(60)
        with pytest.raises(RefusedError, match=rf"r#1 was {word} by boss at 20.+Z; this answer changed nothing") as refused:
            await node.decide("r#1", granted=not granted, by="bob")
        again = await node.decide("r#1", granted=granted, by="bob")
        assert node.approvals() == [answer]
    assert (asked.data["approval_id"], first.data, first.warnings) == ("r#1", data, ())
    assert refused.value.code == "APPROVAL_ANSWERED"
    assert (again.data, again.warnings) == (data, (refused.value.message,))
    assert len(paid) == granted


async def test_a_probe_that_waits_for_a_person_leaves_its_place_to_another(make_node):
    agent, is_well = Agent("A", tools_allowed={"pay"}), False

    @agent.capability("GO", breaker_policy=Policy(failures_max=1, open_ms=1_000, probes=1))
    async def go(ctx: Context, asks: bool) -> str:
        if not is_well:
            raise ConnectionError
        return await ctx.use_tool("pay", amount=5) if asks else "well"

    async with make_node([agent], tools=[risky([])]) as node:
        assert not (await node.call("A", "GO", {"asks": False}, user_id="ann")).ok
        is_well = True
        await asyncio.sleep(1)
        probe = await node.call("A", "GO", {"asks": True}, user_id="ann")
        assert probe.status is Status.NEEDS_INPUT
        assert (await node.call("A", "GO", {"asks": False}, user_id="ann")).data == "well"


async def test_two_who_answer_at_once_get_one_reply_if_they_agree_and_one_of_them_is_told_if_not(make_node):
    async with make_node(chain([{"pay"}]), tools=[risky([])]) as node:
        await node.call("A0", "GO", user_id="ann", request_id="r")
        answers = (node.decide("r#1", granted=granted, by=str(granted)) for granted in (True, False, True))
        first, other, same = await asyncio.gather(*answers, return_exceptions=True)
    assert (first.data, first.warnings, same.data, len(same.warnings)) == ("paid", (), "paid", 1)
    assert other.code == "APPROVAL_ANSWERED"


def slow_to_unwind() -> tuple[list[Agent], asyncio.Event]:
    """TOP calls LEAF, whose code waits for the event while its question to a person unwinds it."""
    top, leaf, done = Agent("TOP", tools_allowed=["pay"]), Agent("LEAF", tools_allowed=["pay"]), asyncio.Event()

    @top.capability("GO")
    async def go(ctx: Context):
        return (await ctx.call("LEAF", "GO")).unwrap()

    @leaf.capability("GO")
    async def go_leaf(ctx: Context):
        try:
            return await ctx.use_tool("pay", amount=5)
        finally:
            await done.wait()

    return [top, leaf], done


async def until_asked(node: Node) -> None:
    while not node.approvals():
        await asyncio.sleep(0)


@pytest.mark.parametrize(("is_waited_for", "granted"), [(True, True), (False, True), (False, False)])
async def test_an_answer_that_comes_while_the_tree_unwinds_lets_it_go_on_by_itself(make_node, is_waited_for, granted):
    paid: list[str] = []
    agents, done = slow_to_unwind()
    async with make_node(agents, tools=[risky(paid)]) as node:
        handle = node.start_call("TOP", "GO", user_id="ann", request_id="r")
        await until_asked(node)
        answer = asyncio.create_task(node.decide("r.1#1", granted=granted, by="boss"))
        await asyncio.sleep(1)
        assert paid == []
        if not is_waited_for:
            answer.cancel()  # the handle keeps the call
            await asyncio.sleep(1)
        done.set()
        asked = await handle.reply()
        final = await answer if is_waited_for else await node.call("TOP", "GO", user_id="ann", request_id="r")
    assert (asked.status, final.warnings) == (Status.NEEDS_INPUT, ())
    assert (final.data, paid) == (("paid", ["r.1#1"]) if granted else (None, []))
    assert granted or final.error.code == "APPROVAL_DENIED"


def test_an_answer_in_another_process_while_the_tree_unwinds_lets_it_go_on_by_itself(tmp_path):
    paid: list[str] = []

    async def go():
        agents, done = slow_to_unwind()
        settings = {"store": tmp_path / "s.db", "tools": [risky(paid)]}
        async with Node(agents, **settings) as one, Node(agents, **settings) as two:
            handle = one.start_call("TOP", "GO", user_id="ann", request_id="r")
            await until_asked(two)
            await two.decide("r.1#1", granted=True, by="boss")
            done.set()
            asked = await handle.reply()
            return asked, await one.call("TOP", "GO", user_id="ann", request_id="r")

    asked, final = asyncio.run(go())
    assert (asked.status, final.data, paid) == (Status.NEEDS_INPUT, "paid", ["r.1#1"])


def test_an_answer_that_another_process_overtook_is_told_so(tmp_path):
    store = tmp_path / "s.db"

    async def go():
        agents, tools = chain([{"pay"}]), [risky([])]
        async with Node(agents, store=store, tools=tools) as one, Node(agents, store=store, tools=tools) as two:
            await one.call("A0", "GO", user_id="ann", request_id="r")
            return await asyncio.gather(
                one.decide("r#1", granted=True, by="ann"),
                two.decide("r#1", granted=False, by="bob"),
                return_exceptions=True,
            )

    yes, no = asyncio.run(go())
    told, standing = (no, yes) if isinstance(no, Exception) else (yes, no)
    assert told.code == "APPROVAL_ANSWERED"
    assert standing.status in {Status.SUCCESS, Status.ERROR}


async def test_a_question_nobody_asked_cannot_be_answered(make_node):
    async with make_node([]) as node:
        assert await node.decide("nothing", granted=True, by="boss") is None


@pytest.mark.parametrize(
    ("agents", "has_tool", "code"),
    [
        (chain([{"pay"}] * 2)[1:], True, "ROUTING_UNKNOWN_AGENT"),
        (chain([{"pay"}])[:1], True, "ROUTING_UNKNOWN_AGENT"),
        (chain([{"pay"}] * 2), False, "TOOL_UNKNOWN"),
    ],
    ids=["the root's agent is missing", "the asking agent is missing", "the tool is missing"],
)
def test_a_node_that_cannot_go_on_notes_no_answer_and_the_call_waits_for_one_that_can(tmp_path, agents, has_tool, code):
    store, paid = tmp_path / "s.db", []

    async def run():
        async with Node(chain([{"pay"}] * 2), store=store, tools=[risky(paid)]) as node:
            asked = await node.call("A0", "GO", user_id="ann")
        async with Node(agents, store=store, tools=[risky(paid)] * has_tool) as node:
            with pytest.raises(CallerError) as refused:
                await node.decide(asked.data["approval_id"], granted=True, by="boss")
            assert (refused.value.code, node.approvals()[0].granted) == (code, None)
        async with Node(chain([{"pay"}] * 2), store=store, tools=[risky(paid)]) as node:
            return await node.decide(asked.data["approval_id"], granted=True, by="boss")

    assert asyncio.run(run()).data == "paid"
    assert len(paid) == 1


def test_an_approval_three_levels_deep_is_granted_after_a_restart_and_the_tool_runs_once(tmp_path):
    store, paid = tmp_path / "s.db", []

    async def ask():
        async with Node(chain([{"pay"}] * 3), store=store, tools=[risky(paid)]) as node:
            return await node.call("A0", "GO", user_id="ann", request_id="r", session_id="s")

    async def grant():
        async with Node(chain([{"pay"}] * 3), store=store, tools=[risky(paid)]) as node:
            (approval,) = node.approvals()
            reply = await node.decide(approval.id, granted=True, by="boss")
            await node._path.durable()
            return reply, node.audit.verify(), [(r.request_id, r.kind) for r in node.audit.rows()]

    assert asyncio.run(ask()).status is Status.NEEDS_INPUT
    reply, verdict, rows = asyncio.run(grant())
    assert reply.data == "paid"
    assert paid == ["r.1.1#1"]
    assert verdict.ok
    assert len(rows) == len(set(rows))


def test_an_effect_whose_outcome_is_unknown_is_not_risked_again(tmp_path):
    """The node died between the intent and the end of the effect."""
    store, began = tmp_path / "s.db", []

    def agents() -> tuple[list[Agent], list[Tool]]:
        async def hang(amount: int) -> str:
            began.append(amount)
            await asyncio.sleep(3600)
            return "never"

        return chain([{"pay"}]), [Tool(name="pay", function=hang)]

    async def first():
        team, tools = agents()
        node = Node(team, store=store, tools=tools)
        await node.start()
        node.start_call("A0", "GO", user_id="ann", request_id="r", timeout_ms=300_000)
        while not began:
            await asyncio.sleep(0)
        await die(node)

    async def second():
        team, tools = agents()
        async with Node(team, store=store, tools=tools) as node:
            return await node.call("A0", "GO", user_id="ann", request_id="r")

    asyncio.run(first())
    assert asyncio.run(second()).error.code == "TOOL_OUTCOME_UNKNOWN"
    assert began == [5]


@pytest.mark.parametrize("inputs", [{"amount": float("nan")}, {"amount": "\x00"}, {"amount": "five"}, {}])
async def test_bad_input_to_a_tool_is_the_agents_error(make_node, inputs):
    agent = Agent("A", tools_allowed=["pay"])

    @agent.capability("GO")
    async def go(ctx: Context):
        return await ctx.use_tool("pay", **inputs)

    def pay(amount: int) -> None:
        raise AssertionError("the tool ran")

    async with make_node([agent], tools=[Tool.of(pay)]) as node:
        error = (await node.call("A", "GO", user_id="ann")).error
    assert (error.code, "amount" in error.message) == ("INPUT_VALIDATION_FAILED", True)


@pytest.mark.parametrize("tools", [[1], [print], 5, "pay"])
def test_what_is_no_tool_is_refused_when_the_node_is_made(tools):
    with pytest.raises(DeclarationError, match=r"tools must be a list of tools; .* is none: make it with Tool"):
        Node(tools=tools)


async def test_an_agent_holds_no_right_that_its_callers_do_not_hold_themselves(make_node):
    """A1 has the tool in its profile and does not hold it, since A0 has not: A2 gets from A1 what A1 holds, not its profile."""
    paid: list[int] = []
    tool = Tool(name="pay", function=lambda amount: paid.append(amount) or "done")
    async with make_node(chain([set(), {"pay"}, {"pay"}]), tools=[tool], tool_rights="chain") as node:
        reply = await node.call("A0", "GO", user_id="ann")
    async with make_node(chain([{"pay"}] * 3, grants=[{"read"}, {"pay"}, None]), tools=[tool]) as node:
        granted = await node.call("A0", "GO", user_id="ann")
    assert ([reply.error.code, granted.error.code], paid) == (["TOOL_NOT_PERMITTED"] * 2, [])


async def test_an_effect_does_not_happen_once_its_call_has_ended_while_the_intent_was_being_written(make_node):
    class Slow(MemoryJournal):
        """Takes a second to say that something is written."""

        def append(self, records, then=None, terms=None):
            later = None if then is None else lambda error: asyncio.get_running_loop().call_later(1, then, error)
            super().append(records, later, terms)

    agent, paid, left = Agent("A", tools_allowed=["pay"]), [], []

    @agent.capability("GO")
    async def go(ctx: Context) -> str:
        left.append(asyncio.ensure_future(ctx.use_tool("pay", amount=5)))  # and does not wait for it
        await asyncio.sleep(0.1)
        return "gone on"

    async with make_node(
        [agent], tools=[Tool(name="pay", function=lambda amount: paid.append(amount) or "done")], journal=Slow("n")
    ) as node:
        assert (await node.call("A", "GO", user_id="ann", request_id="r")).ok
        await asyncio.sleep(5)
        kinds = [(row.kind, row.status) for row in node.audit.rows() if row.request_id == "r#1"]
    assert (paid, left[0].exception().code) == ([], "CALL_CANCELLED")
    assert kinds == [("admitted", None), ("settled", "cancelled")]


async def test_a_model_that_was_offered_nothing_uses_nothing(make_node):
    paid: list[int] = []
    model = ScriptedModel([tool_call("pay", amount=5), "done"])
    agent = Agent("A", model=model, tools_allowed=["pay"], can_call=[])
    async with make_node([agent], tools=[Tool(name="pay", function=lambda amount: paid.append(amount) or "done")]) as node:
        await node.call("A", "message", user_id="ann", message="pay, please")
        refused = [row.error_code for row in node.audit.rows() if row.kind == "refused"]
    assert (model.prompts[0].tools, refused, paid) == ((), ["TOOL_NOT_PERMITTED"], [])


def test_an_idempotent_tool_begun_again_after_a_crash_ends_once(tmp_path):
    store, began = tmp_path / "s.db", []

    async def pay(amount: int) -> str:
        began.append(amount)
        if len(began) == 1:
            await asyncio.sleep(3600)
        return "paid"

    def node() -> Node:
        return Node(chain([{"pay"}]), store=store, tools=[Tool(name="pay", function=pay, idempotent=True)])

    async def first():
        dying = node()
        await dying.start()
        dying.start_call("A0", "GO", user_id="ann", request_id="r", timeout_ms=300_000)
        while not began:
            await asyncio.sleep(0)
        await die(dying)

    async def second():
        async with node() as again:
            reply = await again.call("A0", "GO", user_id="ann", request_id="r")
            return reply, [(row.kind, row.status) for row in again.audit.rows() if row.request_id == "r#1"]

    asyncio.run(first())
    reply, rows = asyncio.run(second())
    assert (reply.data, began) == ("paid", [5, 5])
    assert [row for row in rows if row[0] != "admitted"] == [("settled", "success")]


async def test_a_tool_gets_in_clear_the_personal_data_it_declares_and_no_other(make_node):
    seen: list[tuple[str, str]] = []
    agent = Agent("A", tools_allowed={"mail"})

    @agent.capability("GO")
    async def go(ctx: Context, to: str, card: str):
        await ctx.use_tool("mail", to=to, card=card)

    mail = Tool(name="mail", function=lambda to, card: seen.append((to, card)), clear={"EMAIL"}, run_in="loop")
    async with make_node([agent], tools=[mail]) as node:
        inputs = {"to": "ann@example.com", "card": "4111 1111 1111 1111"}
        (await node.call("A", "GO", inputs, user_id="ann", session_id="s")).unwrap()
    assert seen[0][0] == "ann@example.com"
    assert seen[0][1].startswith("[[CARD_1_")


@pytest.mark.parametrize(
    ("inputs", "shown"),
    [
        ({"amount": 5, "to": "ann"}, 'pay(amount=5, to="ann")'),
        ([5], "pay()"),
        ({"a": 10 ** (SHOWN_CHARS_MAX - 3)}, f"pay(a=1{'0' * (SHOWN_CHARS_MAX - 3)})"),
        ({"a": 10 ** (SHOWN_CHARS_MAX - 2)}, f"pay(a=1{'0' * (SHOWN_CHARS_MAX - 4)}…)"),
    ],
)
def test_a_person_is_asked_with_the_inputs_as_in_a_function_call_up_to_the_limit(inputs, shown):
    who = {"target": "A", "user_id": "u", "tenant_id": "t", "session_id": "s"}
    assert Approval(id="r#1", root_id="r", tool="pay", inputs=inputs, asked_at=1, **who).use == shown


async def test_of_a_long_name_that_is_no_tool_so_many_characters_are_told(make_node):
    async with make_node(chain([{"*"}], tool="p" * 70)) as node:
        reply = await node.call("A0", "GO", user_id="ann")
    assert reply.error.message == f"no tool {'p' * 64!r}"


@pytest.mark.parametrize("problems", [(), (Problem("inputs.n", "is no number"),)])
def test_inputs_that_fit_no_more_with_personal_data_in_clear_do_not_reach_the_tool(problems):
    checker = SimpleNamespace(check=lambda raw: Checked({"read": raw}, problems))
    if problems:
        with pytest.raises(PayloadError) as raised:
            _typed(checker, {"n": "x"})
        assert (raised.value.code, raised.value.problems) == ("INPUT_VALIDATION_FAILED", problems)
    else:
        assert _typed(checker, {"n": "x"}) == {"read": b'{"n":"x"}'}
