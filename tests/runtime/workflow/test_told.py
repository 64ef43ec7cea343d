"""What people tell a run is hidden in its session's vault before it is written, and bounded as inputs are."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from comity import Agent, Node, Privacy
from comity.core.redaction import Action, Policy
from comity.errors import CallerError, RefusedError
from comity.workflow import load

TALK = """
workflow: talk
nodes:
  x: {call: A/SAY, input: {text: "{{input.text}}"}}
  q: {ask: "Is {{x.data.text}} right?", after: [x]}
  y: {call: A/SEE, after: [q], input: {text: "{{q.data.answer}}"}}
  z: {wait: {event: paid}, after: [y]}
  d: {decide: z.data.who, after: [z]}
edges:
  - {from: d, to: end, when: 'z.data.who == "x"'}
  - {from: d, to: end, else: true}
output: {said: "{{q.data.answer}}", who: "{{z.data.who}}"}
"""
MAILS = ("start@acme.com", "answer@acme.com", "signal@acme.com", "fork@acme.com", "reply@acme.com", "cancel@acme.com")


def team(seen: list[str] | None = None) -> list[Agent]:
    agent = Agent("A")

    @agent.capability("SAY")
    async def say(text: str) -> dict:
        return {"text": text}

    @agent.capability("SEE", clear=["EMAIL"])
    async def see(text: str) -> dict:
        if seen is not None:
            seen.append(text)
        return {}

    return [agent]


def node_at(store: Path, seen: list[str] | None = None) -> Node:
    return Node(team(seen), store=store, privacy=Privacy(grants={"SEE": {"EMAIL"}}))


async def until(node: Node, run_id: str, status: str, waits_for: tuple[str, ...] | None = None):
    for _ in range(2_000):
        record = node.workflows.get(run_id)
        if record.status == status and waits_for in {None, record.waits_for}:
            return record
        await asyncio.sleep(0.001)
    raise AssertionError(f"{record}")


def in_clear(folder: Path) -> set[str]:
    """Return the addresses that stand in any file of a store."""
    kept = b"".join(one.read_bytes() for one in folder.iterdir() if one.is_file())
    return {mail for mail in MAILS if mail.encode() in kept}


def test_what_people_tell_a_run_is_tokens_wherever_it_is_kept_and_comes_back_for_its_user(tmp_path):
    seen: list[str] = []

    async def main():
        async with node_at(tmp_path / "s.db", seen) as node:
            flows = node.workflows
            flows.add(TALK)
            first = await flows.start("talk", {"text": "start@acme.com"}, user_id="u")  # in a session of its own
            record = await until(node, first.run_id, "waiting")
            await flows.answer(first.run_id, record.questions[0].question_id, "answer@acme.com", by="v")
            await until(node, first.run_id, "waiting", ("paid",))
            await flows.signal(first.run_id, "paid", {"who": "signal@acme.com"})
            assert (await first.result()).data == {"said": "answer@acme.com", "who": "signal@acme.com"}
            assert seen == ["answer@acme.com"]  # its capability is granted addresses
            other = await flows.fork(first.run_id, at=1, input={"text": "fork@acme.com"})
            asked = (await until(node, other.run_id, "waiting")).questions[0].text
            assert "[[EMAIL_" in asked
            third = await flows.fork(first.run_id, at=2, replies={"x": {"data": {"text": "reply@acme.com"}}})
            assert "[[EMAIL_" in (await until(node, third.run_id, "waiting")).questions[0].text
            await flows.cancel(third.run_id, reason="cancel@acme.com said so")
            assert (await third.result()).error.message.endswith(": cancel@acme.com said so")
            for run in (first, other, third):
                shown = f"{flows.get(run.run_id)} {flows.replay(run.run_id)} {flows.why(run.run_id)}"
                assert not [mail for mail in MAILS if mail in shown]
            await node.flush_spans()
        assert in_clear(tmp_path) == set()

    asyncio.run(main())


def test_an_answer_that_was_hidden_comes_back_after_the_node_was_opened_again(tmp_path):
    async def main():
        async with node_at(tmp_path / "s.db") as node:
            node.workflows.add(TALK)
            run = await node.workflows.start("talk", {"text": "-"}, user_id="u")
            record = await until(node, run.run_id, "waiting")
            await node.workflows.answer(run.run_id, record.questions[0].question_id, "answer@acme.com")
            await until(node, run.run_id, "waiting", ("paid",))
        async with node_at(tmp_path / "s.db") as node:
            await node.workflows.signal(run.run_id, "paid", {"who": "signal@acme.com"})
            assert (await node.workflows.result(run.run_id)).data == {"said": "answer@acme.com", "who": "signal@acme.com"}

    asyncio.run(main())


def test_what_another_process_tells_a_run_is_encrypted_on_its_way_and_hidden_by_the_process_that_holds_it(tmp_path):
    async def main():
        async with node_at(tmp_path / "s.db") as node:
            node.workflows.add(TALK)
            run = await node.workflows.start("talk", {"text": "start@acme.com"}, user_id="u")
            record = await until(node, run.run_id, "waiting")
            async with node_at(tmp_path / "s.db") as other:
                await other.workflows.answer(run.run_id, record.questions[0].question_id, "answer@acme.com")
            assert in_clear(tmp_path) == set()
            node.workflows.sweep()
            await until(node, run.run_id, "waiting", ("paid",))
            await node.workflows.signal(run.run_id, "paid", {"who": "start@acme.com"})
            assert (await node.workflows.result(run.run_id)).data == {"said": "answer@acme.com", "who": "start@acme.com"}
        assert in_clear(tmp_path) == set()

    asyncio.run(main())


def test_what_policy_blocks_or_is_too_long_is_refused_as_in_inputs(tmp_path):
    async def main():
        blocks = Privacy(policy=Policy({"EMAIL": Action.BLOCK}))
        async with Node(team(), privacy=blocks) as node:
            node.workflows.add(TALK)
            run = await node.workflows.start("talk", {"text": "-"}, user_id="u")
            question = (await until(node, run.run_id, "waiting")).questions[0].question_id
            with pytest.raises(RefusedError, match="policy lets no EMAIL pass"):
                await node.workflows.answer(run.run_id, question, "answer@acme.com")
            with pytest.raises(CallerError, match="bytes"):
                await node.workflows.signal(run.run_id, "paid", "x" * 2_000_000)
            assert len(node.workflows.replay(run.run_id)) == 2  # the start and the end of `x`

    asyncio.run(main())


def test_the_input_of_a_schedule_is_encrypted_in_the_store(tmp_path):
    async def main():
        async with node_at(tmp_path / "s.db") as node:
            schedules = node.workflows.schedules
            await schedules.add("often", load(TALK), {"text": "start@acme.com"}, user_id="u", every="1s")
            await schedules.pause("often")
            assert in_clear(tmp_path) == set()
            assert schedules.list()[0].input == {"text": "start@acme.com"}
            assert schedules.get("often").is_paused

    asyncio.run(main())
