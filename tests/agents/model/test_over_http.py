"""Model agents on a real provider's library over a real socket: delegation, limits, ledger, and a provider that misbehaves."""

import asyncio
import importlib
import json
from pathlib import Path

import pytest

from comity import Agent, Limits, Node, Status
from comity.agents.model.providers import openai_compatible
from comity.core.agent.retry import Retry
from comity.core.envelope.usage import Usage
from comity.core.model.bounds import Thinking
from comity.testing import Answer, Broken, Cut, Failure, ModelServer
from comity.testing.scripted import answer_of

EXAMPLES = Path(__file__).parents[3] / "examples"


@pytest.fixture
def receipts(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    return importlib.import_module("receipts")


def by_agent(scripts):
    """Return a rule that follows the script of the agent whose name the model has, each answer with a usage of its own."""
    steps = {name: iter(script) for name, script in scripts.items()}
    sent: list[Usage] = []

    def rule(received):
        usage = Usage(prompt_tokens=100 + len(sent), completion_tokens=10 + len(sent))
        sent.append(usage)
        answer = answer_of(next(steps[received.model]))
        return Answer(text=answer.text, calls=answer.calls, usage=usage)

    return rule, sent


def offered(received):
    return [tool["function"]["name"] for tool in received.body.get("tools", [])]


def test_prime_byte_and_tag_over_http_keep_depth_spans_audit_and_ledger(receipts):
    async def main():
        rule, sent = by_agent(receipts.SCRIPTS)
        async with ModelServer(rule) as server:
            agents = receipts.team(lambda _script, name: openai_compatible(server.base_url, name, name=name))
            async with Node(agents, limits=receipts.LIMITS) as node:
                reply = await receipts.run(node)
                await node.flush_spans()
                return reply, sent, server.requests, node.audit.rows(), node.audit.verify(), node.spans.find("{}")

    reply, sent, requests, rows, verdict, spans = asyncio.run(main())
    assert reply.status is Status.SUCCESS
    assert "office supplies" in reply.message
    # depth: Byte was not even offered a colleague, tried nevertheless, and was refused where the seed refuses
    assert [request.model for request in requests] == ["prime", "byte", "byte", "byte", "prime", "tag", "prime"]
    assert "call_agent" in offered(requests[0])
    assert offered(requests[1]) == ["read_document"]
    [refused] = [row for row in rows if row.status == "refused"]
    assert (refused.origin, refused.target, refused.error_code) == ("byte", "tag", "LIMIT_DEPTH_EXCEEDED")
    assert "LIMIT_DEPTH_EXCEEDED" in str(requests[3].body["messages"])  # and it could read why
    # audit: whole, and every call, tool and question to a model began and ended in it
    assert verdict.ok
    begun = [row.request_id for row in rows if row.kind == "admitted"]
    ended = [row.request_id for row in rows if row.kind == "settled"]
    assert sorted(begun) == sorted(ended)
    assert len(begun) == len(set(begun)) == 3 + 1 + len(requests)  # calls, tools, questions
    # spans: one for each of them, in one trace, each below its parent
    assert sorted(span.attributes["comity.request.id"] for span in spans) == sorted([*begun, refused.request_id])
    assert len({span.trace_id for span in spans}) == 1
    by_id = {span.span_id: span for span in spans}
    assert [span.name for span in spans if span.parent_id not in by_id] == ["invoke_agent prime"]
    above = {span.name: by_id[span.parent_id].name for span in spans if span.name in {"execute_tool read_document", "chat tag"}}
    assert above == {"execute_tool read_document": "invoke_agent byte", "chat tag": "invoke_agent tag"}
    chats = [span for span in spans if span.name.startswith("chat ")]
    assert sum(span.attributes["gen_ai.usage.input_tokens"] for span in chats) == reply.usage.prompt_tokens
    # ledger: the total is the sum of its parts, at every level
    assert reply.usage.total_tokens == sum(usage.total_tokens for usage in sent)
    by_row = {row.request_id: row.tokens for row in rows if row.kind == "settled"}
    questions = {row.request_id: row for row in rows if row.kind == "settled" and row.target.startswith("model:")}
    assert sum(row.tokens for row in questions.values()) == reply.usage.total_tokens
    for agent_id, models in (
        ("byte", {"model:byte"}),
        ("tag", {"model:tag"}),
        ("prime", {row.target for row in questions.values()}),
    ):
        [call] = [row for row in rows if row.kind == "settled" and row.target == agent_id]
        assert by_row[call.request_id] == sum(row.tokens for row in questions.values() if row.target in models)


def test_a_provider_that_stalls_mid_stream_costs_the_deadline_and_nothing_else():
    async def main():
        stall = Broken(Cut.STALL, Answer(text="The first half of the answer", piece_chars=8), after_events=3)
        async with ModelServer(["warm", stall]) as server:
            model = openai_compatible(server.base_url, "slow")
            async with Node([Agent("prime", model=model, can_call=[])]) as node:
                await node.call("prime", "message", message="go", user_id="u1")  # so that nothing is imported on the way
                before = asyncio.all_tasks()
                began = asyncio.get_running_loop().time()
                reply = await node.call("prime", "message", message="go", user_id="u1", timeout_ms=500)
                took = asyncio.get_running_loop().time() - began
                await asyncio.wait_for(server.all_closed(), 60)
                return reply, took, asyncio.all_tasks() - before

    reply, took, left = asyncio.run(main())
    assert reply.status is Status.TIMEOUT
    assert reply.error.code == "CALL_TIMEOUT"
    assert 0.49 <= took < 1.5  # the deadline and the second within which a call is settled
    assert reply.data == {"raw_output": "The first half o"}
    assert not left


def test_overload_and_rate_limits_are_waited_out_within_the_deadline():
    async def main():
        turns = [Failure(429, retry_after="0"), Failure(503), Broken(Cut.RESET), "at last"]
        async with ModelServer(turns) as server:
            thinking = Thinking(retry=Retry(attempts=5, delay_ms=1, delay_ms_max=2))
            model = openai_compatible(server.base_url, "busy")
            async with Node([Agent("prime", model=model, thinking=thinking, can_call=[])]) as node:
                return await node.call("prime", "message", message="go", user_id="u1"), len(server.requests)

    reply, asked = asyncio.run(main())
    assert (reply.message, asked) == ("at last", 4)


def test_a_provider_that_asks_for_more_patience_than_there_is_time_is_not_waited_for():
    async def main():
        async with ModelServer([Failure(429, retry_after="60"), "too late"]) as server:
            agent = Agent("prime", model=openai_compatible(server.base_url, "busy"), can_call=[])
            async with Node([agent]) as node:
                reply = await node.call("prime", "message", message="go", user_id="u1", timeout_ms=20_000)
                return reply, len(server.requests)

    reply, asked = asyncio.run(main())
    assert (reply.error.code, reply.error.retry_after_ms, asked) == ("MODEL_RATE_LIMITED", 60_000, 1)


def test_tokens_that_nobody_counted_are_estimated():
    async def main():
        async with ModelServer([Answer(text="twenty characters..", usage=Usage())]) as server:
            agent = Agent("prime", model=openai_compatible(server.base_url, "local"), can_call=[])
            async with Node([agent]) as node:
                return await node.call("prime", "message", message="go", user_id="u1", limits=Limits(tokens_max=500))

    reply = asyncio.run(main())
    assert reply.ok
    assert reply.usage.completion_tokens > 0
    assert reply.usage.prompt_tokens > 0


def test_a_schema_goes_to_the_provider_and_a_reply_that_breaks_it_is_corrected_once():
    wrong = {"thought": "t", "status": "success", "data": {"total": "much"}, "message": "m"}
    right = wrong | {"data": {"total": 12}}
    schema = {"type": "object", "properties": {"total": {"type": "integer"}}, "required": ["total"]}

    async def main():
        async with ModelServer([wrong, right]) as server:
            agent = Agent("tag", model=openai_compatible(server.base_url, "m"), output_type=schema, can_call=[])
            async with Node([agent]) as node:
                return await node.call("tag", "message", message="go", user_id="u1"), server.requests

    reply, requests = asyncio.run(main())
    assert reply.data == {"total": 12}
    assert len(requests) == 2
    assert "data.total" in json.dumps(requests[1].body["messages"][-1])


def test_a_node_that_closes_lets_go_of_connections_and_leaves_another_nodes_answer_alone():
    async def main():
        going_on = asyncio.Event()

        def rule(received):
            going_on.set()
            return Answer(text="quick") if "quick" in str(received.body) else Answer(text="slow one", piece_delay_ms=40)

        async with ModelServer(rule) as server:
            agent = Agent("prime", model=openai_compatible(server.base_url, "m"), can_call=[])
            async with Node([agent]) as one:
                async with Node([agent]) as other:
                    assert (await other.call("prime", "message", message="quick", user_id="u1")).ok
                    going_on.clear()
                    slow = asyncio.create_task(one.call("prime", "message", message="slowly", user_id="u1"))
                    await going_on.wait()
                reply = await slow
            await asyncio.wait_for(server.all_closed(), 60)
            return reply

    assert asyncio.run(main()).message == "slow one"


def test_a_missing_key_is_told_to_who_calls_and_stops_no_node(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)

    async def main():
        async with Node([Agent("prime", model="openai:gpt-4o", can_call=[])]) as node:
            return await node.call("prime", "message", message="go", user_id="u1")

    error = asyncio.run(main()).error
    assert error.code == "MODEL_MISCONFIGURED"
    assert "OPENAI_API_KEY" in error.message
