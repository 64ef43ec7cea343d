"""A cassette plays back what was recorded, and nothing else."""

from __future__ import annotations

import asyncio
import json

import pytest

from comity import Agent, Node
from comity.core.model.exchange import Fault, Prompt, ToolDefinition, User, model_error
from comity.errors import UnavailableError
from comity.testing import Answer, Cassette, CassetteError, ScriptedModel, run_virtual, tool_call


def ask(model, text, **more):
    async def main():
        return [part async for part in model.stream(Prompt(messages=(User(text),), **more))]

    return asyncio.run(main())


def test_what_was_recorded_is_played_back_piece_by_piece(tmp_path):
    scripted = ScriptedModel([Answer(text="Good day", piece_chars=3), tool_call("add", a=1)], name="openai:gpt-4o")
    recorder = Cassette(tmp_path / "sub" / "c.json", record=scripted)
    recorded = [ask(recorder, "one"), ask(recorder, "two")]
    player = Cassette(tmp_path / "sub" / "c.json")
    assert player.name == "openai:gpt-4o"
    assert player.unused() == 2
    assert [ask(player, "one"), ask(player, "two")] == recorded
    assert recorded[0][:3] == ["Goo", "d d", "ay"]
    assert player.unused() == 0


def test_the_same_prompt_gives_its_answers_in_order_and_then_none(tmp_path):
    recorder = Cassette(tmp_path / "c.json", record=ScriptedModel(["first", "second"]))
    for _ in range(2):
        ask(recorder, "same")
    player = Cassette(tmp_path / "c.json")
    assert [ask(player, "same")[0].text for _ in range(2)] == ["first", "second"]
    with pytest.raises(CassetteError, match="same"):
        ask(player, "same")


@pytest.mark.parametrize("more", [{}, {"tools": (ToolDefinition(name="t", description="", parameters={}),)}])
def test_a_prompt_that_differs_anywhere_is_a_miss(tmp_path, more):
    ask(Cassette(tmp_path / "c.json", record=ScriptedModel(["x"])), "one")
    with pytest.raises(CassetteError, match="record it again"):
        ask(Cassette(tmp_path / "c.json"), "one" if more else "other", **more)


def test_an_error_is_recorded_and_raised_again(tmp_path):
    recorder = Cassette(tmp_path / "c.json", record=ScriptedModel([model_error(Fault.RATE_LIMITED, "slow", retry_after_ms=9)]))
    for model in (recorder, None):
        with pytest.raises(UnavailableError) as raised:
            ask(model or Cassette(tmp_path / "c.json"), "one")
        assert (raised.value.code, raised.value.retry_after_ms) == ("MODEL_RATE_LIMITED", 9)


def test_a_miss_that_an_agents_reply_hid_is_raised_when_the_cassette_is_closed(tmp_path):
    ask(Cassette(tmp_path / "c.json", record=ScriptedModel(["x"])), "one")

    async def talk(model):
        async with Node([Agent("a", model=model, can_call=[])], lag_ms=None) as node:
            return await node.call("a", "message", message="something else", user_id="u1")

    with pytest.raises(CassetteError, match="1 prompts"), Cassette(tmp_path / "c.json") as model:
        assert run_virtual(talk(model)).error.code == "TARGET_CRASHED"


@pytest.mark.parametrize("text", [None, "not json", '{"version": 99, "model": "m", "takes": []}'])
def test_a_file_that_is_no_cassette_is_refused(tmp_path, text):
    if text is not None:
        (tmp_path / "c.json").write_text(text)
    with pytest.raises(CassetteError):
        Cassette(tmp_path / "c.json")


def test_a_directory_is_no_cassette(tmp_path):
    for record in (None, ScriptedModel([])):
        with pytest.raises(CassetteError, match="is a directory"):
            Cassette(tmp_path, record=record)


# --- personal data ---


def answer(prompt):
    """Repeat what was said, in small pieces, as a model that is told a token does."""
    return Answer(text=json.dumps({"status": "success", "message": f"wrote to {prompt.messages[-1].text}"}), piece_chars=3)


@pytest.mark.parametrize("privacy", ["default", None])
def test_what_was_recorded_with_personal_data_is_played_back_and_the_data_is_not_in_the_file(tmp_path, privacy):
    path = tmp_path / "c.json"

    async def talk(model, message):
        async with Node([Agent("a", model=model, can_call=[])], lag_ms=None, privacy=privacy) as node:
            return await node.call("a", "message", message=message, user_id="u1")

    recorded = run_virtual(talk(Cassette(path, record=ScriptedModel(answer)), "jane@example.com, jo@example.com"))
    assert "jane@example.com, jo@example.com" in recorded.message
    text = path.read_text()
    assert "example.com" not in text
    assert "[[EMAIL_1]], [[EMAIL_2]]" in text
    for said in ("jane@example.com, jo@example.com", "ann@example.org, bob@example.org"):
        with Cassette(path) as model:
            assert run_virtual(talk(model, said)).message == recorded.message.replace("jane@example.com, jo@example.com", said)


def test_the_same_value_has_one_name_and_what_the_model_brought_up_stays_as_it_was(tmp_path):
    path = tmp_path / "c.json"
    said = "from [[EMAIL_7_aaaabbbb]] to [[EMAIL_3_aaaabbbb]] and [[EMAIL_7_aaaabbbb]]"
    step = Answer(text="ask [[EMAIL_3_aaaabbbb]] or help@example.net", calls=(tool_call("send", to="[[EMAIL_7_aaaabbbb]]"),))
    ask(Cassette(path, record=ScriptedModel([step])), said)
    (take,) = json.loads(path.read_text())["takes"]
    assert take["prompt"]["messages"][0]["text"] == "from [[EMAIL_1]] to [[EMAIL_2]] and [[EMAIL_1]]"
    (played,) = ask(Cassette(path), said.replace("EMAIL_7_aaaabbbb", "EMAIL_1_ccccdddd").replace("aaaabbbb", "ccccdddd"))
    assert played.text == "ask [[EMAIL_3_ccccdddd]] or help@example.net"
    assert played.calls[0].arguments == '{"to": "[[EMAIL_1_ccccdddd]]"}'


def test_a_miss_does_not_show_personal_data(tmp_path):
    ask(Cassette(tmp_path / "c.json", record=ScriptedModel(["x"])), "one")
    with pytest.raises(CassetteError, match=r"ends with 'two \[\[EMAIL_1\]\]'"):
        ask(Cassette(tmp_path / "c.json"), "two jane@example.com")


def test_what_was_recorded_on_one_node_plays_back_on_another_whose_marks_are_others(tmp_path):
    codes = set()

    def life(record=None):
        def fetch() -> str:
            return "a page"

        model = Cassette(tmp_path / "c.json", record=record)
        boss = Agent("boss", model=model, tools=[fetch], can_call=["byte"])
        byte = Agent("byte", description="reads", can_call=[])
        byte.capability("READ")(lambda: {"total": 12})

        async def main():
            async with Node([boss, byte], lag_ms=None) as node:
                reply = await node.call("boss", "message", message="Go", user_id="u")
                codes.add(node._path.identity_key)
                return reply.message

        return run_virtual(main())

    steps = [tool_call("fetch"), tool_call("call_agent", agent_id="byte", capability="READ"), "done"]
    assert life(ScriptedModel(steps)) == life() == "done"
    assert len(codes) == 2
