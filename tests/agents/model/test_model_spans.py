"""Every request to a model is a span, whether it was answered or not, and says what the conventions ask for."""

import asyncio
import json
import socket

import pytest

from comity import Agent, Context, Node, Status
from comity.agents.model.providers import openai_compatible, resolve
from comity.core.agent.retry import Retry
from comity.core.model.bounds import Thinking
from comity.core.tracing.naming import Mode
from comity.core.tracing.telemetry import Origin, Settings
from comity.testing import Answer, Broken, Cut, Failure, ModelServer, ScriptedModel, tool_call

ONCE, TWICE = Thinking(retry=Retry(attempts=1)), Thinking(retry=Retry(attempts=3, delay_ms=1))
CHATS = '{ span.gen_ai.operation.name = "chat" }'


def asked(script, *, thinking=ONCE, timeout_ms=None, provider="openai", model="gpt-4o"):
    """Return the reply of an agent on a scripted provider, and the spans of its requests."""

    async def main():
        async with ModelServer(script) as server:
            url = server.base_url if provider == "openai" else server.root_url
            agent = Agent("a", model=resolve(f"{provider}:{model}", base_url=url, api_key="k"), can_call=[], thinking=thinking)
            async with Node([agent]) as node:
                reply = await node.call("a", "message", message="hi", user_id="u", timeout_ms=timeout_ms)
                await node.flush_spans()
                return reply, node.spans.find(CHATS)

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (Failure(500), "MODEL_FAILED"),
        (Failure(401), "MODEL_MISCONFIGURED"),
        (Failure(429), "MODEL_RATE_LIMITED"),
        (Failure(503), "MODEL_OVERLOADED"),
        (Failure(400), "MODEL_FAILED"),
    ],
)
def test_a_request_that_a_provider_refuses_is_a_chat_span_with_its_error(failure, code):
    reply, (span,) = asked([failure])
    assert reply.status is Status.ERROR
    assert (span.name, span.status) == ("chat gpt-4o", "error")
    assert span.attributes["error.type"] == reply.error.code == code
    assert span.attributes["http.response.status_code"] == failure.status
    assert (span.attributes["gen_ai.provider.name"], span.attributes["server.address"]) == ("openai", "127.0.0.1")


def test_attempts_that_were_made_again_are_counted_on_the_one_span_of_the_request():
    reply, (span,) = asked([Failure(429), Failure(503), "fine"], thinking=TWICE)
    assert (reply.status, span.status) == (Status.SUCCESS, "unset")
    assert span.attributes["comity.model.failed_attempts"] == 2
    assert span.attributes["comity.model.attempt_errors"] == ("MODEL_RATE_LIMITED", "MODEL_OVERLOADED")


def test_a_connection_that_breaks_is_a_chat_span_with_its_error():
    _, (span,) = asked([Broken(Cut.RESET)])
    assert span.attributes["error.type"].startswith("MODEL_")


def test_a_provider_that_nobody_runs_is_a_chat_span_with_its_error():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]

    async def main():
        model = openai_compatible(f"http://127.0.0.1:{port}/v1", "m")
        async with Node([Agent("a", model=model, can_call=[], thinking=ONCE)]) as node:
            await node.call("a", "message", message="hi", user_id="u")
            await node.flush_spans()
            return node.spans.find(CHATS)

    (span,) = asyncio.run(main())
    assert span.attributes["error.type"] == "MODEL_UNREACHABLE"
    assert (span.attributes["gen_ai.provider.name"], span.attributes["server.port"]) == ("openai", port)


def test_a_request_that_outlives_its_call_is_a_chat_span_with_the_timeout():
    async def main():
        agent = Agent("a", model=ScriptedModel([Answer(text="never", stalls=True, piece_chars=2)]), can_call=[])
        async with Node([agent]) as node:
            reply = await node.call("a", "message", message="hi", user_id="u", timeout_ms=30)
            await asyncio.sleep(0)
            await node.flush_spans()
            return reply, node.spans.find(CHATS)

    reply, (span,) = asyncio.run(main())
    assert (reply.status, span.attributes["error.type"]) == (Status.TIMEOUT, "CALL_TIMEOUT")


@pytest.mark.parametrize(
    ("provider", "model", "named"),
    [("openai", "gpt-4o", "openai"), ("anthropic", "claude-x", "anthropic"), ("google", "gemini-2.0-flash", "gcp.gemini")],
)
def test_an_answer_says_which_model_of_which_provider_gave_it(provider, model, named):
    _, (span,) = asked(["fine"], provider=provider, model=model)
    told = {name: span.attributes[f"gen_ai.{name}"] for name in ("provider.name", "request.model", "response.finish_reasons")}
    assert told == {"provider.name": named, "request.model": model, "response.finish_reasons": ("stop",)}
    assert span.attributes["gen_ai.response.model"]
    assert span.attributes["gen_ai.response.id"]


def rate(c: str) -> float:
    return 0.5


def told(agents, *, content=False):
    async def main():
        settings = Settings(origin=Origin(mode=Mode.OTEL), captures_content=content)
        async with Node(agents, telemetry=settings) as node:
            reply = await node.call(agents[0].id, "message", message="What is it?", user_id="u")
            await node.flush_spans()
            return reply, node.spans.find("{ }")

    return asyncio.run(main())


def test_a_sum_over_all_spans_counts_every_token_once():
    helper = Agent("helper", can_call=[])

    @helper.capability("COUNT")
    async def count(ctx: Context) -> int:
        ctx.report_usage(prompt_tokens=7, completion_tokens=3)
        return 1

    script = [tool_call("call_agent", agent_id="helper", capability="COUNT"), "Done."]
    reply, spans = told([Agent("a", model=ScriptedModel(script), can_call=["helper"]), helper])
    for name, total in (("input", reply.usage.prompt_tokens), ("output", reply.usage.completion_tokens)):
        assert sum(span.attributes.get(f"gen_ai.usage.{name}_tokens", 0) for span in spans) == total > 10
    (root,) = [span for span in spans if span.parent_id is None]
    assert root.attributes["comity.usage.input_tokens"] == reply.usage.prompt_tokens
    assert (root.attributes["gen_ai.request.model"], root.attributes["gen_ai.provider.name"]) == ("scripted", "comity")


def test_the_words_of_a_turn_are_messages_and_a_tool_has_the_models_own_id():
    agent = Agent(
        "a", description="Knows rates", model=ScriptedModel([tool_call("rate", c="CAD"), "It is 1."]), tools=[rate], can_call=[]
    )
    _, spans = told([agent], content=True)
    first, second = sorted((span for span in spans if span.name == "chat scripted"), key=lambda span: span.start_ns)
    (wants,) = json.loads(first.attributes["gen_ai.output.messages"])
    assert wants["finish_reason"] == "tool_call"
    assert wants["parts"] == [{"type": "tool_call", "id": "call_1", "name": "rate", "arguments": {"c": "CAD"}}]
    assert first.attributes["gen_ai.response.finish_reasons"] == ("tool_call",)
    said = json.loads(second.attributes["gen_ai.input.messages"])
    assert [message["role"] for message in said[-2:]] == ["assistant", "tool"]
    (part,) = said[-1]["parts"]
    assert (part["type"], part["id"], part["response"].split("\n")[1]) == ("tool_call_response", "call_1", "0.5")
    (tool,) = [span for span in spans if span.name == "execute_tool rate"]
    assert tool.attributes["gen_ai.tool.call.id"] == "call_1"
    (call,) = [span for span in spans if span.name == "invoke_agent a"]
    assert call.attributes["gen_ai.agent.description"] == "Knows rates"


def test_an_insight_of_a_model_agent_names_the_provider_of_its_model():
    agent = Agent("a", model=ScriptedModel(["x"], name="anthropic:claude-x"), can_call=[])

    @agent.capability("FIND")
    async def find(ctx: Context, provider: str = "") -> str:
        return ctx.insight("risk", summary="s", confidence=0.5, provider=provider).provider

    async def main():
        async with Node([agent]) as node:
            found = [await node.call("a", "FIND", inputs, user_id="u") for inputs in ({}, {"provider": "openai"})]
            await node.flush_spans()
            return [reply.data for reply in found], node.spans.find('{ span.gen_ai.system = "anthropic" }')

    data, spans = asyncio.run(main())
    assert data == ["anthropic", "openai"]
    assert [span.name for span in spans if span.name.startswith("insight")] == ["insight.risk"]
