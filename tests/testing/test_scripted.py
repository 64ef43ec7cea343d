"""A scripted model does what its script says, and complains when the script says nothing."""

from __future__ import annotations

import asyncio

import pytest

from comity.core.envelope.usage import Usage
from comity.core.model.exchange import Completion, Fault, Finish, Prompt, User, model_error
from comity.errors import UnavailableError
from comity.testing import Answer, ScriptedModel, ScriptError, run_virtual, tool_call


def ask(text):
    return Prompt(messages=(User(text),))


async def answers(model, *texts):
    return [[piece async for piece in model.stream(ask(text))] for text in texts]


def test_a_list_is_taken_in_order_and_its_end_is_an_error():
    model = ScriptedModel(["one", {"n": 2}, tool_call("add", a=1)])
    [one], [two], [three] = asyncio.run(answers(model, "a", "b", "c"))
    assert (one.text, two.text, three.calls[0].name, three.calls[0].arguments) == ("one", '{"n": 2}', "add", '{"a": 1}')
    assert [prompt.messages[-1].text for prompt in model.prompts] == ["a", "b", "c"]
    with pytest.raises(ScriptError, match="asked 4 times"):
        asyncio.run(answers(model, "d"))


def test_every_tool_call_has_an_id_of_its_own():
    model = ScriptedModel([[tool_call("f"), tool_call("f")], tool_call("f")])
    (first,), (second,) = asyncio.run(answers(model, "a", "b"))
    assert len({call.id for call in (*first.calls, *second.calls)}) == 3
    assert first.finish is Finish.TOOL_CALLS


def test_a_rule_is_chosen_by_the_newest_message_and_a_missing_one_is_an_error():
    model = ScriptedModel({"weather": "rain", "": "else"})
    assert [one[0].text for one in asyncio.run(answers(model, "the weather?", "the time?"))] == ["rain", "else"]
    with pytest.raises(ScriptError, match="the time"):
        asyncio.run(answers(ScriptedModel({"weather": "rain"}), "the time?"))


def test_a_function_sees_the_prompt():
    model = ScriptedModel(lambda prompt: prompt.messages[0].text.upper())
    assert asyncio.run(answers(model, "loud"))[0][0].text == "LOUD"


def test_pieces_come_in_virtual_time_and_join_to_the_text():
    async def timed():
        model = ScriptedModel([Answer(text="abcdef", delay_ms=1_000, piece_chars=2, piece_delay_ms=500)])
        loop = asyncio.get_running_loop()
        return [(loop.time(), piece) async for piece in model.stream(ask("x"))]

    *pieces, (_, last) = run_virtual(timed())
    assert [(round(at, 3), piece) for at, piece in pieces] == [(1.5, "ab"), (2.0, "cd"), (2.5, "ef")]
    assert isinstance(last, Completion)
    assert last.text == "abcdef"


def test_an_error_is_raised_after_the_pieces_and_keeps_its_facts():
    model = ScriptedModel([Answer(text="ab", piece_chars=1, fails=model_error(Fault.RATE_LIMITED, "slow", retry_after_ms=7))])
    seen = []

    async def collect():
        async for piece in model.stream(ask("x")):
            seen.append(piece)  # noqa: PERF401  what came before the error counts

    with pytest.raises(UnavailableError) as raised:
        asyncio.run(collect())
    assert (seen, raised.value.code, raised.value.retry_after_ms) == (["a", "b"], "MODEL_RATE_LIMITED", 7)
    assert model.streams_open == 0


def test_a_stall_waits_until_it_is_cancelled_and_leaves_nothing_open():
    async def stalled():
        model = ScriptedModel([Answer(text="ab", piece_chars=1, stalls=True)])
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(answers(model, "x"), timeout=60)
        return model

    assert run_virtual(stalled()).streams_open == 0


def test_usage_is_estimated_unless_it_is_given():
    model = ScriptedModel(["12345678", Answer(text="x", usage=Usage(prompt_tokens=70, completion_tokens=3))])
    (first,), (second,) = asyncio.run(answers(model, "1234", "1234"))
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (5, 2)
    assert second.usage.total_tokens == 73
