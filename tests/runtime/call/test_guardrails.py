"""Guardrails run on every hop, both ways; thoughts reach nobody; users are told the work, not the architecture."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from comity import Agent, Context, Error, Node, Reply, Status
from comity.core.agent.agent import DeclarationError
from comity.core.call.guardrail import FATE, REPLACED, Allow, Fail, Guardrail, Redact, Rewrite, Stop, redact_failures, release
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Artifact, Background, Reference, encode
from comity.core.tracing.telemetry import Settings
from comity.testing import Answer, ScriptedModel, tool_call


def team(answer=None) -> list[Agent]:
    top, leaf = Agent("TOP"), Agent("LEAF")

    @top.capability("GO", doing="Weighing the options…")
    async def go(ctx: Context):
        reply = await ctx.call("LEAF", "GO", message="from top")
        return {"status": reply.status, "message": reply.message, "data": reply.data, "thought": reply.thought}

    @leaf.capability("GO", doing="Analysing the financial implications…")
    async def go_leaf(ctx: Context):
        return answer or Reply.success({"heard": ctx.request.message}, message="fine", thought="I wonder")

    return [top, leaf]


async def test_every_hop_is_seen_in_and_out_first_entry_and_delegated_call_alike(make_node):
    seen: list[str] = []
    watcher = Guardrail(
        name="watch",
        inbound=lambda request: seen.append(f"in {request.target}") or Allow(),
        outbound=lambda request, reply: seen.append(f"out {request.target}") or Allow(),
    )
    async with make_node(team(), guardrails=[watcher]) as node:
        await node.call("TOP", "GO", user_id="ann")
    assert seen == ["in TOP", "in LEAF", "out LEAF", "out TOP"]


async def test_a_guardrail_may_rewrite_a_message_before_the_callee_sees_it(make_node):
    rewriter = Guardrail(name="r", inbound=lambda request: Rewrite("be polite") if request.source else Allow())
    async with make_node(team(), guardrails=[rewriter]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["data"] == {"heard": "be polite"}


async def test_the_audit_says_which_guardrail_changed_a_request_or_a_reply_and_not_a_word_of_it(make_node):
    asking = Guardrail(name="politeness", inbound=lambda request: Rewrite("be polite") if request.source else Allow())
    telling = Guardrail(name="secrets", outbound=lambda request, reply: Redact() if request.source else Allow())
    failing = Guardrail(name="quality", outbound=lambda request, reply: Fail("too short") if request.source else Allow())
    async with make_node(team(), guardrails=[asking, telling, failing]) as node:
        await node.call("TOP", "GO", user_id="ann")
        rows = [(row.kind, row.note) for row in node.audit.rows() if row.target == "LEAF"]
    assert rows[:2] == [
        ("admitted", "guardrail politeness rewrote the request"),
        ("noted", "guardrail secrets withheld the message of the reply; guardrail quality failed the reply"),
    ]
    assert not any(word in str(rows) for word in ("from top", "fine", "be polite"))


async def test_a_message_that_was_rewritten_or_hidden_is_the_same_request_when_it_comes_again(make_node):
    rewriter = Guardrail(name="r", inbound=lambda request: Rewrite("write to ann@example.com"))
    async with make_node(team(), guardrails=[rewriter]) as node:
        asked = {"target": "LEAF", "capability": "GO", "user_id": "ann", "request_id": "r"}
        first, again, other = [await node.call(message=text, **asked) for text in ("a@example.com", "a@example.com", "b")]
    assert first.data == again.data == {"heard": "write to ann@example.com"}
    assert other.error.code == "IDENTITY_REQUEST_ID_REUSED"


@pytest.mark.parametrize("verdict", [Stop("no politics"), Fail("no politics")])
async def test_a_stopped_request_reaches_nobody_and_is_audited(make_node, verdict):
    ran: list[str] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        ran.append("ran")

    async with make_node([agent], guardrails=[Guardrail(name="g", inbound=lambda request: verdict)]) as node:
        reply = await node.call("A", "GO", user_id="ann")
        assert [row.error_code for row in node.audit.rows()] == ["GUARDRAIL_STOPPED"]
    assert (reply.status, reply.error.code, ran) == (Status.REFUSED, "GUARDRAIL_STOPPED", [])


async def test_a_failing_reply_keeps_its_data_for_the_caller_while_its_message_is_withheld(make_node):
    failing = Reply.failure("account 42 of Ann is overdrawn", code="DATA_OVERDRAWN", data={"account": 42})
    redactor = Guardrail(name="g", outbound=lambda request, reply: Redact() if not reply.ok else Allow())
    async with make_node(team(failing), guardrails=[redactor]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["message"] == "The message was withheld."
    assert reply.data["data"] == {"account": 42}


async def test_a_guardrail_can_force_a_reply_to_error_before_the_caller_acts_on_it(make_node):
    forcer = Guardrail(name="g", outbound=lambda request, reply: Fail("off topic") if request.target == "LEAF" else Allow())
    async with make_node(team(), guardrails=[forcer]) as node:
        reply = await node.call("TOP", "GO", user_id="ann")
    assert reply.data["status"] == "error"


async def forgets_await(*_) -> Allow:
    return Allow()


def ignores_async(*_):
    return forgets_await()


@pytest.mark.parametrize(
    ("check", "told"),
    [
        (lambda *_: None, "it returned None"),
        (lambda *_: True, "it returned True"),
        (lambda *_: Allow, "a value of type"),
        (lambda request, *_: f"bad: {request.message}", "a value of type str"),
        (lambda *_: Rewrite(None), "a Rewrite whose text is no text"),
        (lambda *_: Redact(7), "a Redact whose text is no text"),
        (ignores_async, "it is an async function"),
    ],
)
@pytest.mark.parametrize("side", ["inbound", "outbound"])
async def test_a_guardrail_that_returns_no_verdict_lets_nothing_pass_and_is_named(make_node, side, check, told):
    ran: list[str] = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go():
        ran.append("ran")
        return Reply.success({"secret": 1}, message="the secret")

    async with make_node([agent], guardrails=[Guardrail(name="careless", **{side: check})]) as node:
        reply = await node.call("A", "GO", user_id="ann", message="my words")
    assert (reply.error.code, reply.data, ran) == ("GUARDRAIL_STOPPED", None, ["ran"] * (side == "outbound"))
    assert reply.error.message.startswith("careless: ")
    assert told in reply.error.message
    assert "secret" not in encode(reply).decode()
    assert "my words" not in encode(reply).decode()


async def test_thoughts_reach_neither_peer_nor_user_and_stay_in_the_record(make_node):
    async with make_node(team()) as node:
        reply = await node.call("TOP", "GO", user_id="ann", request_id="r")
        direct = await node.call("LEAF", "GO", user_id="ann", request_id="d")
        again = await node.call("LEAF", "GO", user_id="ann", request_id="d")
        kept = node._journal.call("r.1").reply.thought
    assert (reply.data["thought"], direct.thought, again.thought) == ("", "", "")
    assert kept == "I wonder"


async def test_a_user_is_told_about_the_work_in_the_capabilities_own_words(make_node):
    async with make_node(team()) as node:
        handle = node.start_call("TOP", "GO", user_id="ann")
        told = [text async for text in handle.updates()]
    assert told == ["Weighing the options…", "Analysing the financial implications…"]


@pytest.mark.parametrize("text", ["Routing to ANL agent…", "anl_npv is running", "ANL_NPV invoked", "Asking tag-ai."])
async def test_words_for_users_that_name_agents_or_capabilities_are_refused_at_the_start(make_node, text):
    agent, other = Agent("ANL"), Agent("tag-ai")

    @agent.capability("ANL_NPV", doing=text)
    async def npv():
        return 1

    with pytest.raises(DeclarationError, match="describe the work"):
        async with make_node([agent, other]):
            raise AssertionError("never reached")


# --- nothing of what was withheld is left ---------------------------------------------------------------------------------

SECRET = "Ann's PIN ninety-one-37 was wrong"
FULL = {  # a secret in every field of a reply that can hold a text of the callee
    "message": SECRET,
    "warnings": (SECRET,),
    "error": Error(code="TARGET_FAILED", message=SECRET, advice=SECRET, problems=(Problem("pin", SECRET),)),
    "summary": SECRET,
    "thought": SECRET,
    "next_step_hint": SECRET,
    "artifacts": (Artifact(type="json", value={"said": SECRET}, label=SECRET),),
    "new_facts": (SECRET,),
    "sources": (Reference(source_id=SECRET, owner_scope=SECRET),),
    "metadata": {"said": SECRET, "sacp.status": "completed"},
}


@pytest.mark.parametrize("verdict", [Redact(), Rewrite("Something was wrong."), Redact(""), Stop("not said")])
@pytest.mark.parametrize("status", [Status.ERROR, Status.PARTIAL, Status.NEEDS_INPUT])
def test_no_field_of_a_reply_keeps_a_copy_of_what_was_withheld(status, verdict):
    reply = Reply(status=status, confidence=0.5, data={"account": 42}, **FULL)
    judged = release(None, reply, [Guardrail(name="g", outbound=lambda *_: verdict)])
    released, is_withheld = judged.reply, judged.is_withheld
    assert is_withheld
    assert "ninety-one-37" not in msgspec.json.encode(released).decode()
    assert released.data == (None if isinstance(verdict, Stop) else {"account": 42})


def test_what_happens_to_each_field_of_a_withheld_reply_is_decided_and_tried():
    assert FATE.keys() == set(Reply.__struct_fields__)  # a new field of a reply must be decided upon
    assert {name for name, fate in FATE.items() if fate != "stays"} == FULL.keys()
    assert FATE["error"] == REPLACED


def test_a_guardrail_may_keep_fields_that_it_has_looked_at():
    reply = Reply.success(message="rude", new_facts=("a fact",), warnings=("old rates",))
    verdict = Rewrite("polite", keep=("new_facts", "warnings", "message"))  # which it replaces all the same
    released = release(None, reply, [Guardrail(name="g", outbound=lambda *_: verdict)]).reply
    assert (released.message, released.new_facts, released.warnings) == ("polite", ("a fact",), ("old rates",))


def withhold(request, reply):
    return Redact() if "ninety-one-37" in msgspec.json.encode(reply).decode() else Allow()


def careful(request, reply):
    raise ValueError(f"cannot judge {reply.message}")


@pytest.mark.parametrize("rail", [withhold, careful])
@pytest.mark.parametrize("stored", [False, True])
def test_a_withheld_failure_is_in_no_event_span_audit_row_or_stored_reply(tmp_path, rail, stored):
    asyncio.run(_look_for_a_withheld_failure(tmp_path, rail, stored))  # in real time: a store works in a thread
    for path in tmp_path.iterdir():
        assert b"ninety-one-37" not in path.read_bytes(), path.name


async def _look_for_a_withheld_failure(tmp_path, rail, stored):
    agent = Agent("A")

    @agent.capability("PAY")
    async def pay(ctx: Context):
        ctx.progress({"so far": SECRET})
        return Reply.failure(SECRET)

    store = tmp_path / "w.db" if stored else None
    telemetry = Settings(captures_content=True)
    async with Node([agent], guardrails=[rail], store=store, telemetry=telemetry, privacy=None) as node:
        handle = node.start_call("A", "PAY", user_id="u")
        seen = [event async for event in handle.events()]
        reply = await handle.reply()
        await node.flush_spans()
        left = [seen, encode(reply), node.audit.rows(), node._journal.call(handle.request_id), node.spans.find("{ }")]
    assert reply.status is Status.ERROR
    assert "ninety-one-37" not in repr(left)


@pytest.mark.parametrize("protocol", [False, True])
def test_withheld_words_of_a_model_are_in_no_text_event_span_or_recorded_answer(tmp_path, protocol):
    asyncio.run(_look_for_withheld_words(tmp_path, protocol))
    for path in tmp_path.iterdir():
        assert b"ninety-one-37" not in path.read_bytes(), path.name


async def _look_for_withheld_words(tmp_path, protocol):
    said = {"thought": SECRET, "status": "failure", "data": {}, "message": SECRET} if protocol else SECRET
    text = msgspec.json.encode(said).decode() if protocol else SECRET
    model = ScriptedModel([Answer(text=text, piece_chars=3)])
    agent = Agent("A", model=model, use_standard_protocol=protocol, can_call=[])
    telemetry = Settings(captures_content=True)
    async with Node([agent], guardrails=[withhold], store=tmp_path / "w.db", telemetry=telemetry) as node:
        handle = node.start_call("A", "message", message="pay", user_id="u")
        seen = [event async for event in handle.events()]
        await node.flush_spans()
        kinds = [row.target for row in node.audit.rows()]
        (asked,) = (one for one in node.spans.find('{ span.gen_ai.request.model = "scripted" }') if one.name == "chat scripted")
        left = [seen, encode(await handle.reply()), node.spans.find("{ }")]
    assert kinds == ["A", "model:scripted", "model:scripted", "A", "A"]  # asked, its model asked, its words withheld, ended
    assert asked.attributes["gen_ai.output.type"] == ("json" if protocol else "text")
    assert "ninety-one-37" not in repr(left)


async def test_words_of_a_model_are_withheld_on_a_node_that_keeps_no_spans(make_node):
    agent = Agent("A", model=ScriptedModel([SECRET]), can_call=[])
    async with make_node([agent], guardrails=[withhold], telemetry=Settings(is_disabled=True)) as node:
        handle = node.start_call("A", "message", message="pay", user_id="u")
        assert (await handle.reply()).message == "The message was withheld."
        assert node._journal.call(f"{handle.request_id}#1").reply.data is None


@pytest.mark.parametrize("streams", [False, True])
async def test_progress_is_shown_once_the_reply_has_passed_and_at_once_where_a_guardrail_streams(make_node, streams):
    agents = team()

    @agents[0].capability("TELL")
    async def tell(ctx: Context):
        ctx.progress("half way")
        await ctx.call("LEAF", "GO")

    rail = Guardrail(name="g", outbound=lambda *_: Allow(), streams=streams)
    async with make_node(agents, guardrails=[rail]) as node:
        handle = node.start_call("TOP", "TELL", user_id="u")
        kinds = [event.kind async for event in handle.events()]
    assert kinds.index("progress") == (2 if streams else len(kinds) - 2)


async def test_a_message_that_is_rewritten_on_the_way_in_is_not_repeated_by_objective_or_context(make_node):
    seen = []
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context):
        seen.append((ctx.request.message, ctx.request.objective, ctx.request.context))

    rail = Guardrail(name="g", inbound=lambda request: Redact("(withheld)"))
    context = Background(original_request=SECRET, facts=(f"she said: {SECRET}",), prior_outputs={"x": [SECRET]})
    async with make_node([agent], guardrails=[rail], privacy=None) as node:
        await node.call("A", "GO", message=SECRET, objective=f"answer {SECRET}", context=context, user_id="u")
    assert "ninety-one-37" not in repr(seen)
    assert seen[0][1] == "answer (withheld)"
    assert seen[0][2].facts == ("she said: (withheld)",)


async def test_a_stopped_request_is_in_no_span():
    agent = Agent("A")
    agent.capability("GO")(lambda: None)
    rail = Guardrail(name="g", inbound=lambda request: Stop("no"))
    async with Node([agent], guardrails=[rail], telemetry=Settings(captures_content=True), privacy=None) as node:
        await node.call("A", "GO", message=SECRET, objective=SECRET, user_id="u")
        assert "ninety-one-37" not in repr(node.spans.find("{ }"))


# --- what is no guardrail -------------------------------------------------------------------------------------------------


async def test_a_plain_function_is_a_guardrail_for_the_side_that_its_parameters_say(make_node):
    def polite(request):
        return Rewrite("be polite")

    def terse(request, reply):
        return Rewrite("done")

    async with make_node(team(), guardrails=[polite, terse]) as node:
        reply = await node.call("LEAF", "GO", user_id="ann", message="now!")
    assert (reply.data, reply.message) == ({"heard": "be polite"}, "done")


def three(a, b, c):
    return Allow()


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (7, "7 (int) is none"),
        ("text", "is none"),
        (Allow, "is none"),
        (three, "three must take (request) or (request, reply)"),
        (forgets_await, "async function"),
    ],
)
def test_what_is_no_guardrail_is_refused_when_the_node_is_made(wrong, told):
    with pytest.raises(DeclarationError) as caught:
        Node(guardrails=[wrong])
    assert told in str(caught.value)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"name": ""}, "name"),
        ({"name": 7, "inbound": lambda r: Allow()}, "name"),
        ({"name": "g"}, "checks nothing"),
        ({"name": "g", "inbound": 7}, "inbound of the guardrail g must be a function, not 7 (int)"),
        ({"name": "g", "outbound": lambda request: Allow()}, "outbound of the guardrail g must take (request, reply)"),
        ({"name": "g", "inbound": lambda a, b: Allow()}, "inbound of the guardrail g must take (request)"),
        ({"name": "g", "outbound": forgets_await}, "async function"),
    ],
)
def test_a_guardrail_that_is_declared_wrongly_is_refused_at_once(given, told):
    with pytest.raises(DeclarationError) as caught:
        Guardrail(**given)
    assert told in str(caught.value)


def test_a_check_without_a_signature_is_tried_when_a_call_comes():
    class Native:
        """Is called as a function of a compiled module that says nothing of its parameters."""

        @property
        def __signature__(self):
            raise ValueError("no signature found")

        def __call__(self, *arguments):
            return Allow()

    check = Native()
    assert Guardrail(name="g", inbound=check).inbound is check


async def test_the_built_in_guardrail_withholds_the_texts_of_failures_with_sensitive_data_and_keeps_the_data(make_node):
    agent = Agent("A")

    @agent.capability("GO")
    async def go(account: int):
        if account < 0:
            return Reply.success({"account": account}, message="fine")
        return Reply.failure(f"account {account} is overdrawn", code="DATA_OVERDRAWN", data={"account": account})

    rail = redact_failures(sensitive=lambda data: data["account"] > 9)
    async with make_node([agent], guardrails=[rail]) as node:
        replies = [await node.call("A", "GO", {"account": number}, user_id="u") for number in (-1, 7, 42)]
    assert [reply.message for reply in replies] == ["fine", "account 7 is overdrawn", "The message was withheld."]
    assert (replies[2].data, replies[2].error.code) == ({"account": 42}, "DATA_OVERDRAWN")
    assert replies[2].error.message == "The message was withheld."


EMAIL = "ann@example.com"
SAYS = [
    Guardrail(name="g", outbound=lambda request, reply: Rewrite(f"write to {EMAIL}")),
    Guardrail(name="g", outbound=lambda request, reply: Fail(f"not to {EMAIL}")),
    Guardrail(name="g", outbound=lambda request, reply: Stop(f"not to {EMAIL}")),
    Guardrail(name="g", inbound=lambda request: Stop(f"not to {EMAIL}") if request.source else Allow()),
    Guardrail(name="g", inbound=lambda request: Rewrite(f"write to {EMAIL}") if request.source else Allow()),
]


@pytest.mark.parametrize("says", SAYS)
async def test_what_a_guardrail_itself_says_is_hidden_from_agents_and_from_the_store(make_node, says):
    seen: list[object] = []
    top, leaf = Agent("TOP"), Agent("LEAF")

    @top.capability("GO")
    async def go(ctx: Context) -> str:
        reply = await ctx.call("LEAF", "GO")
        seen.extend((reply.message, reply.error, reply.warnings, node.audit.reply(reply.request_id)))
        return "done"

    @leaf.capability("GO")
    async def go_leaf(ctx: Context) -> str:
        seen.append(ctx.request.message)
        return "done"

    async with make_node([top, leaf], guardrails=[says]) as node:
        await node.call("TOP", "GO", user_id="ann")
        rows = node.audit.rows()
    assert EMAIL not in repr((seen, rows))
    assert "[[EMAIL_1_" in repr(seen)


async def test_a_session_that_can_hide_no_more_withholds_what_a_guardrail_says(make_node, monkeypatch):
    monkeypatch.setattr("comity.core.redaction.vault.VALUES_MAX", 0)
    async with make_node(team(), guardrails=[SAYS[0]]) as node:
        reply = await node.call("LEAF", "GO", user_id="ann")
    assert (reply.error.code, EMAIL in repr(reply)) == ("PRIVACY_BLOCKED", False)


@pytest.mark.parametrize(
    ("then", "kept"),
    [('{"status": "success", "message": "done"}', 2), (tool_call("add"), 1), (Answer(stalls=True), 0)],
    ids=["passed", "with a tool", "cancelled"],
)
async def test_words_of_a_model_are_kept_once_their_reply_has_passed_and_no_prompt_repeats_them_before(make_node, then, kept):
    """Dies where words of a cancelled call are kept, words that passed are lost, or the span of a later step repeats them."""
    model = ScriptedModel([SECRET, then])
    agent = Agent("A", model=model, use_standard_protocol=True, can_call=[])
    rail = Guardrail(name="allows", outbound=lambda *_: Allow())
    async with make_node([agent], guardrails=[rail], telemetry=Settings(captures_content=True), privacy=None) as node:
        handle = node.start_call("A", "message", message="pay", user_id="u")
        await asyncio.sleep(1)
        assert handle.cancel() is (not kept)
        await asyncio.sleep(1)
        first = node._journal.call(f"{handle.request_id}#1").reply
        chats = [repr(span) for span in node.spans.find("{ }") if span.name == "chat scripted"]
    assert len(chats) == 2
    assert ["ninety-one-37" in repr(first.data), sum("ninety-one-37" in told for told in chats)] == [bool(kept), kept]
