"""A model agent's turn: tools, then one reply that fits, within every bound."""

from __future__ import annotations

import asyncio
import json
from datetime import date

import pytest
from team import inside, offered, prompts, results, said, talk, thinker

from comity import Agent, Cost, Limits, Node, Prices, Risk, Status, Tool, Usage
from comity.core.document.slices import ONE_GO_BYTES
from comity.core.model.bounds import Thinking
from comity.core.model.exchange import Fault, Finish, Settings, System, User, model_error
from comity.core.model.sacp_prompt import SYNTHESIS, WRAP_UP
from comity.core.redaction import Scanner
from comity.runtime.session.privacy import Privacy
from comity.testing import Answer, ScriptedModel, VirtualClock, run_virtual, tool_call

SCHEMA = {"type": "object", "properties": {"total": {"type": "number"}}, "required": ["total"]}


def add(a: int, b: int = 1) -> int:
    """Add two numbers.

    Not more.
    """
    return a + b


# --- replies ---


def test_without_a_protocol_the_text_is_the_message():
    reply = talk([thinker("a", "Good day.", instructions="Be polite.")])
    assert (reply.status, reply.message, reply.data) == (Status.SUCCESS, "Good day.", None)


def test_the_protocol_stands_after_the_authors_words_and_the_reply_is_read():
    agent = thinker("a", said("36 pieces", pieces=36), instructions="Count.", use_standard_protocol=True)
    reply = talk([agent])
    assert (reply.status, reply.message, reply.data, reply.thought) == (Status.SUCCESS, "36 pieces", {"pieces": 36}, "")
    system, user = prompts(agent)[0].messages
    assert isinstance(system, System)
    assert system.text.startswith("Count.\n\n## How to reply")
    assert user == User("hello")
    assert prompts(agent)[0].response_schema["required"] == ["thought", "status", "data", "message"]


def test_a_model_that_always_answers_garbage_is_corrected_once_and_ends_as_the_fallback():
    agent = thinker("a", lambda prompt: "no JSON here", use_standard_protocol=True)
    reply = talk([agent])
    assert len(prompts(agent)) == 2
    assert (reply.status, reply.error.code, reply.degraded) == (Status.ERROR, "OUTPUT_VALIDATION_FAILED", True)
    assert reply.data == {"raw_output": "no JSON here"}
    assert reply.message == "The LLM returned an invalid response format."
    assert "holds no JSON object" in prompts(agent)[1].messages[-1].text


@pytest.mark.parametrize(("size", "parsed"), [(100, 0), (ONE_GO_BYTES, 1)])
@pytest.mark.parametrize("more", [{}, {"use_standard_protocol": True}])
def test_a_long_answer_is_read_beside_the_loop(size, parsed, more):
    agent = thinker("a", said("</" * (size // 2)), **more)
    reply, count = talk([agent], look=lambda node: node._runtime.path.slices.aside.count)
    assert (reply.ok, count) == (True, parsed)


def test_others_have_their_turn_between_the_steps_in_which_a_long_answer_is_recorded():
    agent, nothing = thinker("a", "word " * 8_000), Privacy(scanner=Scanner(()))  # whose search takes no slice
    reply, count = talk([agent], node={"privacy": nothing}, look=lambda node: node._runtime.path.slices.count)
    assert (reply.ok, count) == (True, 4)


def test_a_long_piece_of_an_answer_is_taken_in_slices():
    agent = thinker("a", Answer(text="word " * 2_000, piece_chars=10_000))
    reply, count = talk([agent], look=lambda node: node._runtime.path.slices.count)
    assert (reply.message.strip(), count >= 9) == (("word " * 2_000).strip(), True)


def test_data_that_does_not_fit_is_corrected_with_the_exact_errors():
    agent = thinker("a", said(total="12"), said(total=12), output_type=SCHEMA)
    reply = talk([agent])
    assert (reply.status, reply.data) == (Status.SUCCESS, {"total": 12})
    assert "`data.total`" in prompts(agent)[1].messages[-1].text
    assert '"total"' in prompts(agent)[0].messages[0].text


def test_a_python_type_is_enforced_like_a_schema():
    agent = thinker("a", said(when="soon"), said(when="2026-05-03"), output_type=dict[str, date])
    assert talk([agent]).data == {"when": "2026-05-03"}


def test_a_type_that_is_no_object_is_told_to_its_author():
    reply = talk([thinker("a", said(), output_type=int)])
    assert (reply.error.code, "must describe an object" in reply.error.message) == ("TARGET_CRASHED", True)


def test_a_reply_that_could_only_be_mended_with_loss_is_partial():
    cut = '{"thought": "t", "status": "success", "data": {"a": 1}, "message": "it is do'
    agent = thinker("a", cut, "nothing better", use_standard_protocol=True)
    reply = talk([agent])
    assert (reply.status, reply.degraded, reply.data) == (Status.PARTIAL, True, {"a": 1})
    assert len(prompts(agent)) == 2


@pytest.mark.parametrize(
    ("second", "tokens_max", "code"),
    [(model_error(Fault.FAILED, "down"), None, "MODEL_FAILED"), ("never asked", 700, "BUDGET_TOKENS_EXHAUSTED")],
)
def test_a_correction_that_cannot_be_had_leaves_the_fallback(second, tokens_max, code):
    first = Answer(text="garbage", usage=Usage(prompt_tokens=400))
    agent = thinker("a", first, second, use_standard_protocol=True)
    reply = talk([agent], limits=Limits(tokens_max=tokens_max))
    assert (reply.error.code, reply.data) == ("OUTPUT_VALIDATION_FAILED", {"raw_output": "garbage"})
    assert code in reply.warnings[0]


@pytest.mark.parametrize(
    ("word", "status", "code"),
    [
        ("failure", Status.ERROR, "TARGET_FAILED"),
        ("clarification_needed", Status.NEEDS_INPUT, None),
        ("completed", Status.SUCCESS, None),
        ("retry_with_instruction", Status.ERROR, "TARGET_SENT_BACK"),
    ],
)
def test_every_status_word_ends_the_call_as_it_says(word, status, code):
    reply = talk([thinker("a", said("m", word), use_standard_protocol=True)])
    assert (reply.status, reply.error and reply.error.code) == (status, code)


def test_nothing_said_is_no_success():
    assert talk([thinker("a", "  ")]).error.code == "OUTPUT_VALIDATION_FAILED"


def test_a_text_cut_at_the_token_limit_is_partial():
    reply = talk([thinker("a", Answer(text="half a", finish=Finish.LENGTH))])
    assert (reply.status, reply.degraded) == (Status.PARTIAL, True)


def test_a_model_that_declines_is_a_typed_error():
    reply = talk([thinker("a", Answer(text="I will not.", finish=Finish.REFUSED))])
    assert (reply.error.code, reply.error.message) == ("MODEL_REFUSED", "I will not.")


# --- tools ---


def test_a_function_is_a_tool_described_by_its_hints_and_docstring():
    agent = thinker("a", tool_call("add", a=2, b=3), "five", tools=[add])
    assert talk([agent]).message == "five"
    (tool,) = prompts(agent)[0].tools
    assert (tool.name, tool.description) == ("add", "Add two numbers.")
    assert (tool.parameters["properties"]["a"]["type"], tool.parameters["required"]) == ("integer", ["a"])
    assert [(inside(one), one.is_error) for one in results(agent)] == [("5", False)]


def test_a_tool_is_given_values_of_the_types_it_asks_for():
    def later(day: date) -> str:
        return day.replace(year=2030).isoformat()

    agent = thinker("a", tool_call("later", day="2026-05-03"), "ok", tools=[later])
    talk([agent])
    assert inside(results(agent)[0]) == "2030-05-03"


@pytest.mark.parametrize(
    ("arguments", "told"), [('{"a": "x"}', "inputs.a"), ("{}", "inputs.a"), ("not json", "JSON object"), ("[1]", "JSON object")]
)
def test_wrong_arguments_are_told_to_the_model_which_may_try_again(arguments, told):
    wrong = Answer(calls=(tool_call("add").__class__(id="x", name="add", arguments=arguments),))
    agent = thinker("a", wrong, tool_call("add", a=1), "ok", tools=[add])
    assert talk([agent]).ok
    first, second = results(agent)
    assert first.is_error
    assert told in first.text
    assert (inside(second), second.is_error) == ("2", False)


def test_what_a_tool_raises_is_told_to_the_model():
    def broken():
        raise RuntimeError("the printer is on fire")

    agent = thinker("a", tool_call("broken"), "sorry", tools=[broken])
    assert talk([agent]).message == "sorry"
    assert "the printer is on fire" in results(agent)[0].text


def test_a_long_result_is_cut_and_that_is_said():
    def shout() -> str:
        return "a" * 50

    agent = thinker("a", tool_call("shout"), "ok", tools=[shout], thinking=Thinking(result_chars_max=20))
    talk([agent])
    assert inside(results(agent)[0]) == "a" * 20 + "\n(cut here: 30 more characters)"


def test_rounds_are_bounded_and_then_a_reply_must_be_given_without_tools():
    agent = thinker(
        "a", lambda prompt: tool_call("add", a=1) if prompt.tools else "enough", tools=[add], thinking=Thinking(rounds_max=3)
    )
    assert talk([agent]).message == "enough"
    assert [bool(prompt.tools) for prompt in prompts(agent)] == [True, True, True, False]
    assert prompts(agent)[-1].messages[-1] == User(SYNTHESIS)


@pytest.mark.parametrize(("granted", "rights"), [(["other"], "own"), (None, "chain")])
def test_a_tool_the_call_may_not_use_is_not_offered_and_that_is_said(granted, rights):
    leader = Agent("leader", can_call=["a"])

    @leader.capability("message")
    async def message(ctx):
        return await ctx.call("a", "message", message="go", tools=granted)

    agent = thinker("a", "no tools", tools=[add])
    reply = talk([leader, agent], node={"tool_rights": rights})
    assert offered(agent) == []
    assert "add" in reply.warnings[0]


def test_a_model_is_offered_its_own_tools_though_its_caller_has_none():
    leader = Agent("leader", can_call=["a"])

    @leader.capability("message")
    async def message(ctx):
        return await ctx.call("a", "message", message="go")

    agent = thinker("a", "three", tools=[add])
    assert not talk([leader, agent]).warnings
    assert offered(agent) == ["add"]


def test_a_tool_of_high_risk_waits_for_a_person_and_the_model_is_not_asked_twice_for_the_same():
    paid = []
    pay = Tool(name="pay", function=lambda amount: paid.append(amount) or "paid", risk=Risk.HIGH, description="Pay.")
    agent = thinker("a", tool_call("pay", amount=5), "It is paid.", tools=["pay"])

    async def main():
        async with Node([agent], tools=[pay], clock=VirtualClock(), lag_ms=None) as node:
            asked = await node.call("a", "message", message="pay 5", user_id="u1")
            return asked, await node.decide(asked.data["approval_id"], granted=True, by="ann")

    asked, done = run_virtual(main())
    assert (asked.status, done.message, paid) == (Status.NEEDS_INPUT, "It is paid.", [5])
    assert len(prompts(agent)) == 2  # the first answer came from the record


def test_tools_run_side_by_side():
    running, most = set(), []

    async def wait(n: int) -> int:
        running.add(n)
        await asyncio.sleep(1)
        most.append(len(running))
        running.discard(n)
        return n

    agent = thinker("a", [tool_call("wait", n=1), tool_call("wait", n=2), tool_call("wait", n=3)], "ok", tools=[wait])
    assert talk([agent]).duration_ms < 1_100
    assert most[0] == 3
    assert [inside(one) for one in results(agent)] == ["1", "2", "3"]


# --- cost, time and failure of the model ---


def test_what_a_turn_used_is_charged_to_the_tree():
    steps = (
        Answer(calls=(tool_call("add", a=1),), usage=Usage(prompt_tokens=100, completion_tokens=10)),
        Answer(text="ok", usage=Usage(prompt_tokens=120, completion_tokens=5)),
    )
    reply, rows = talk([thinker("a", *steps, tools=[add])], look=lambda node: node.audit.rows())
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (220, 15)
    models = [row for row in rows if row.target.startswith("model:") and row.kind == "settled"]
    assert [row.tokens for row in models] == [110, 125]
    assert sum(row.tokens for row in models) == reply.usage.total_tokens


def test_what_a_turn_cost_is_known_by_the_prices_of_the_node_and_in_its_audit_rows():
    steps = (
        Answer(calls=(tool_call("add", a=1),), usage=Usage(prompt_tokens=100_000, completion_tokens=10_000)),
        Answer(text="ok", usage=Usage(prompt_tokens=100_000)),
    )
    agent = thinker("a", *steps, tools=[add])
    name = agent.mind.model_name
    reply, rows = talk([agent], node={"prices": Prices("USD", {name: (2.0, 10.0)})}, look=lambda node: node.audit.rows())
    assert reply.usage.cost == Cost(amount=0.5, currency="USD")
    models = [row for row in rows if row.target.startswith("model:") and row.kind == "settled"]
    assert [row.cost for row in models] == [{"amount": 0.3, "currency": "USD"}, {"amount": 0.2, "currency": "USD"}]
    other = talk([thinker("a", steps[1])], node={"prices": Prices("USD", {"another:model": (2.0, 10.0)})})
    assert (other.usage.cost, other.usage.total_tokens) == (None, 100_000)


def test_what_the_calls_below_cost_is_summed_up_the_tree():
    below, above = thinker("b", Answer(text="ok", usage=Usage(prompt_tokens=100_000))), Agent("a")

    @above.capability("message")
    async def ask(ctx):
        ctx.report_usage(prompt_tokens=50_000, model="own:model")
        ctx.report_usage(completion_tokens=700)
        return await ctx.call("b", "message", message="go")

    prices = Prices("USD", {below.mind.model_name: (2.0, 10.0), "own:model": (4.0, 0.0)})
    assert talk([above, below], node={"prices": prices}).usage.cost == Cost(amount=0.4, currency="USD", unpriced_tokens=700)


def test_a_prompt_that_would_cost_more_than_is_left_is_not_sent():
    agent = thinker("a", "never", instructions="x" * 4_000)
    reply = talk([agent], limits=Limits(tokens_max=500))
    assert reply.error.code == "BUDGET_TOKENS_EXHAUSTED"
    assert not prompts(agent)


def test_the_model_is_given_room_for_what_is_left_and_no_more():
    agent = thinker("a", "ok", settings=Settings(max_tokens=10_000))
    talk([agent], limits=Limits(tokens_max=500))
    assert 0 < prompts(agent)[0].settings.max_tokens < 500


def test_a_model_that_used_more_than_was_left_is_no_success_and_does_not_go_on():
    spent = Usage(prompt_tokens=900)
    reply = talk([thinker("a", Answer(text="long", usage=spent))], limits=Limits(tokens_max=500))
    assert (reply.status, reply.message) == (Status.PARTIAL, "long")
    assert "900 tokens" in reply.warnings[0]
    agent = thinker("a", Answer(calls=(tool_call("add", a=1),), usage=spent), "never", tools=[add])
    reply = talk([agent], limits=Limits(tokens_max=500))
    assert (reply.error.code, len(prompts(agent))) == ("BUDGET_TOKENS_EXHAUSTED", 1)


def test_near_the_end_of_its_tokens_the_model_is_told_to_wrap_up():
    used = Usage(prompt_tokens=400)
    steps = [Answer(calls=(tool_call("add", a=1),), usage=used) for _ in range(2)]
    agent = thinker("a", *steps, Answer(text="ok", usage=used), tools=[add])
    talk([agent], limits=Limits(tokens_max=1_000))
    hinted = [User(WRAP_UP) in prompt.messages for prompt in prompts(agent)]
    assert hinted == [False, False, True]


def test_rate_limits_and_overload_are_waited_out_within_the_deadline():
    agent = thinker(
        "a", model_error(Fault.RATE_LIMITED, "slow down", retry_after_ms=4_000), model_error(Fault.OVERLOADED, "busy"), "ok"
    )
    reply = talk([agent])
    assert (reply.message, len(prompts(agent))) == ("ok", 3)
    assert 4_000 <= reply.duration_ms < 10_000


def test_a_wait_longer_than_the_deadline_is_not_begun():
    agent = thinker("a", lambda prompt: model_error(Fault.RATE_LIMITED, "slow down", retry_after_ms=60_000))
    reply = talk([agent], timeout_ms=5_000)
    assert (reply.status, reply.error.code, reply.error.retry_after_ms) == (Status.ERROR, "MODEL_RATE_LIMITED", 60_000)
    assert reply.duration_ms < 100


@pytest.mark.parametrize("fault", [Fault.FAILED, Fault.CONTEXT_TOO_LONG, Fault.MISCONFIGURED])
def test_other_failures_are_typed_and_not_tried_again(fault):
    agent = thinker("a", model_error(fault, "why"))
    reply = talk([agent])
    assert (reply.error.code, reply.error.message, len(prompts(agent))) == (fault, "why", 1)


def test_a_provider_that_stalls_ends_at_the_deadline_with_the_text_so_far_and_nothing_left_open():
    text = '{"thought": "so far so good", "status": "succ'
    agent = thinker("a", Answer(text=text, piece_chars=5, stalls=True), use_standard_protocol=True)

    async def main():
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            before = asyncio.all_tasks()
            reply = await node.call("a", "message", message="x", user_id="u1", timeout_ms=2_000)
            await asyncio.sleep(0)
            return reply, asyncio.all_tasks() - before, agent.mind.model.streams_open

    reply, tasks, streams = run_virtual(main())
    assert (reply.status, reply.data) == (Status.TIMEOUT, {"raw_output": text})
    assert 2_000 <= reply.duration_ms < 2_100
    assert (tasks, streams) == (set(), 0)


def test_partial_text_is_kept_without_personal_data_where_it_is_stored():
    agent = thinker("a", Answer(text="Write to jane.roe@example.com today", piece_chars=4, stalls=True))

    async def main():
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            reply = await node.call("a", "message", message="x", user_id="u1", timeout_ms=100, request_id="r1")
            return reply, node._journal.call("r1").reply

    shown, stored = run_virtual(main())
    assert shown.data == {"raw_output": "Write to jane.roe@example.com today"}
    assert "jane.roe" not in stored.data["raw_output"]


# --- who watches ---


def watched(agents):
    async def main():
        async with Node(agents, clock=VirtualClock(), lag_ms=None) as node:
            handle = node.start_call(agents[0].id, "message", message="hello", user_id="u1")
            seen = [event async for event in handle.events()]
            return seen, await handle.reply()

    return run_virtual(main())


def test_tokens_are_streamed_as_they_come():
    seen, reply = watched([thinker("a", Answer(text="one two three", piece_chars=4), can_call=[])])
    pieces = [event.data["text"] for event in seen if event.kind == "text"]
    assert "".join(pieces) == reply.message == "one two three"


def test_of_a_structured_reply_only_the_message_is_streamed():
    text = json.dumps(
        {
            "thought": "secret plan",
            "status": "success",
            "data": {"k": "v"},
            "message": "the work is going on as it should and " * 20,
        }
    )
    seen, reply = watched([thinker("a", Answer(text=text, piece_chars=9), use_standard_protocol=True)])
    pieces = [event.data["text"] for event in seen if event.kind == "text"]
    assert "".join(pieces) == reply.message
    assert len(pieces) > 1


def test_a_scripted_model_can_be_shared_and_a_turn_leaves_it_closed():
    model = ScriptedModel(["one", "two"])
    agents = [Agent(name, model=model, can_call=[]) for name in "ab"]
    assert [talk([agent]).message for agent in agents] == ["one", "two"]
    assert model.streams_open == 0


def test_asking_a_model_is_a_span_of_its_own_under_the_agents():
    async def main():
        agent = thinker("a", Answer(text="ok", usage=Usage(prompt_tokens=7, completion_tokens=2)))
        async with Node([agent], clock=VirtualClock(), lag_ms=None) as node:
            handle = node.start_call("a", "message", message="x", user_id="u1")
            await handle.reply()
            (found,) = node.spans.search("{}").traces
            return node.spans.trace(found.trace_id)

    model, agent = run_virtual(main())
    assert (model.name, agent.name) == ("chat scripted-a", "invoke_agent a")
    assert model.parent_id == agent.span_id
    assert (model.attributes["gen_ai.usage.input_tokens"], model.attributes["gen_ai.operation.name"]) == (7, "chat")
