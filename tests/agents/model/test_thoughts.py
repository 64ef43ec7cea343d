"""What a model thinks reaches developers and auditors, and neither users nor other agents."""

from __future__ import annotations

import asyncio
import json
import sqlite3

import pytest
from team import ask, prompts, said, talk, thinker

from comity import Agent, Node, Status
from comity.core.model.exchange import Finish
from comity.dialects import sacp
from comity.testing import Answer, ScriptedModel

DRAFT = json.dumps({"thought": "draft", "status": "success", "data": {"paid": True}, "message": "Paid."})
MARKS = [
    ("<think>", "</think>"),
    ("[THINK]", "[/THINK]"),
    ("◁think▷", "◁/think▷"),
    ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
]


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_a_reply_that_a_model_only_thought_of_is_sent_back_and_never_taken(opens, closes):
    agent = thinker(
        "a", f"{opens}Say {DRAFT}? No.{closes}Card declined.", said("declined", "failure"), use_standard_protocol=True
    )
    reply = talk([agent])
    assert (reply.status, reply.message, reply.degraded) == (Status.ERROR, "declined", False)
    assert len(prompts(agent)) == 2


def test_a_model_that_repeats_its_prompt_has_not_replied():
    agent = thinker("a", lambda prompt: prompt.messages[0].text, use_standard_protocol=True)
    assert talk([agent]).error.code == "OUTPUT_VALIDATION_FAILED"


def test_an_answer_that_ended_for_length_after_other_words_is_in_doubt():
    cut = Answer(text=f"Sure: {DRAFT} Or rather", finish=Finish.LENGTH)
    agent = thinker("a", cut, cut, use_standard_protocol=True)
    assert (talk([agent]).status, len(prompts(agent))) == (Status.PARTIAL, 2)


@pytest.mark.parametrize(("opens", "closes"), MARKS)
def test_thinking_in_plain_text_is_neither_in_the_message_nor_shown_while_it_is_written(opens, closes):
    async def main():
        text = f"{opens}The user is rude.{closes}Good day, and welcome."
        agent = Agent("a", model=ScriptedModel([Answer(text=text, piece_chars=4)]), can_call=[])
        async with Node([agent]) as node:
            handle = node.start_call("a", "message", message="hi", user_id="u")
            shown = "".join([event.data["text"] async for event in handle.events() if event.kind == "text"])
            return shown, await handle.reply(), node.audit.explain(handle.request_id)

    shown, reply, explained = asyncio.run(main())
    assert (shown, reply.message, reply.thought) == (*["Good day, and welcome."] * 2, "")
    assert [one.thought for one in explained] == ["The user is rude."]


def test_a_draft_in_thinking_is_not_shown_while_it_is_written():
    async def main():
        text = f"<think>{DRAFT}</think>{said('Declined.', 'failure')}"
        agent = Agent("a", model=ScriptedModel([Answer(text=text, piece_chars=5)]), use_standard_protocol=True, can_call=[])
        async with Node([agent]) as node:
            handle = node.start_call("a", "message", message="hi", user_id="u")
            return "".join([event.data["text"] async for event in handle.events() if event.kind == "text"])

    assert asyncio.run(main()) == "Declined."


def test_a_model_that_thinks_and_says_nothing_has_failed():
    reply = talk([thinker("a", "<think>What now?</think>")])
    assert (reply.status, reply.message) == (Status.ERROR, "the model thought and said nothing")


def test_the_audit_explains_each_reply_of_a_tree_and_its_caller_sees_no_thought():
    boss = thinker("boss", ask("clerk"), said("fine"), can_call=["clerk"], use_standard_protocol=True)
    clerk = thinker("clerk", said("found it", total=1), use_standard_protocol=True)

    def look(node):
        return node.audit.explain("r"), node.audit.reply("r.1"), node.audit.verify()

    reply, (explained, stored, verdict) = talk([boss, clerk], look=look, request_id="r")
    assert [(one.request_id, one.target, one.thought, one.is_authentic) for one in explained] == [
        ("r.1", "clerk", "because", True),
        ("r", "boss", "because", True),
    ]
    assert (reply.thought, verdict.ok) == ("", True)
    assert sacp.encode_reply(stored)["thought"] == "because"  # the orchestrator's own copy
    assert "because" not in json.dumps([one.text for one in prompts(boss)[-1].messages if hasattr(one, "text")])


def test_a_thought_that_was_changed_in_the_store_is_not_authentic(tmp_path):
    async def run(look):
        agent = thinker("a", said("fine"), use_standard_protocol=True)
        async with Node([agent], store=tmp_path / "s.db") as node:
            return await look(node)

    async def ask_it(node):
        return await node.call("a", "message", message="hi", user_id="u", request_id="r")

    async def explain(node):
        return node.audit.explain("r"), node.audit.verify().ok

    asyncio.run(run(ask_it))
    with sqlite3.connect(tmp_path / "s.db") as store:
        (body,) = store.execute("SELECT body FROM calls WHERE request_id = 'r'").fetchone()
        store.execute("UPDATE calls SET body = ? WHERE request_id = 'r'", (body.replace(b"because", b"chance!"),))
    store.close()
    ((explained,), is_whole) = asyncio.run(run(explain))
    assert (explained.thought, explained.is_authentic, is_whole) == ("chance!", False, True)


def test_a_thought_holds_no_personal_data():
    agent = thinker("a", said("fine").replace("because", "ann@example.com is rude"), use_standard_protocol=True)
    _, (explained,) = talk([agent], look=lambda node: node.audit.explain("r"), request_id="r")
    assert "ann@example.com" not in explained.thought
    assert "is rude" in explained.thought
