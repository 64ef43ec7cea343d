"""How an ended call, tool use or request to a model becomes a span."""

import json

import msgspec
import pytest

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.envelope.usage import Usage
from comity.core.model.exchange import Assistant, Completion, Finish, Prompt, System, ToolCall, User
from comity.core.model.exchange import Settings as ModelSettings
from comity.core.tracing.call_spans import call_span, summarize
from comity.core.tracing.gen_ai import AgentFacts, Asked, ModelFacts
from comity.core.tracing.naming import Mode
from comity.core.tracing.span import Kind
from comity.core.tracing.span import Status as SpanStatus
from comity.core.tracing.telemetry import CallEnd, Origin, is_of_session
from comity.core.tracing.trace_context import TraceContext

REQUEST = Request(
    request_id="r1.1",
    target="ANL/cart-7",
    capability="NPV",
    user_id="ada@example.org",
    limits=Limits(),
    deadline_at=1,
    source="ORC",
    chain=("ORC",),
    root_id="r1",
    parent_id="r1",
    session_id="s1",
    message="secret words",
    body=msgspec.Raw(b'{"card": "4111"}'),
    trace_id="1" * 32,
    span_id="2" * 16,
    parent_span_id="3" * 16,
)
REPLY = Reply.success({"npv": 1}, message="secret answer", usage=Usage(prompt_tokens=5, completion_tokens=6, calls=2))
FAILED = Reply(status=Status.ERROR, error=Error.of("TARGET_CRASHED", "it choked on 4111"))


def span_of(request=REQUEST, reply=REPLY, *, mode=Mode.OTEL, remote=None, captures_content=False, **more):
    ended = summarize(CallEnd(request, reply, 10, 30, remote, **more), captures_content=captures_content)
    return call_span(ended, Origin(mode=mode))


def test_a_call_is_an_invoke_agent_span_under_the_span_that_made_it():
    span = span_of()
    assert (span.name, span.kind, span.status) == ("invoke_agent ANL", Kind.INTERNAL, SpanStatus.UNSET)
    assert (span.trace_id, span.span_id, span.parent_id, span.start_ns, span.end_ns) == ("1" * 32, "2" * 16, "3" * 16, 10, 30)
    assert span.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "comity",
        "gen_ai.agent.id": "ANL/cart-7",
        "gen_ai.agent.name": "ANL",
        "gen_ai.conversation.id": "s1",
        "comity.usage.input_tokens": 5,
        "comity.usage.output_tokens": 6,
        "comity.capability": "NPV",
        "comity.source": "ORC",
        "comity.depth": 1,
        "comity.confidence": 1.0,
        "comity.calls": 2,
        "comity.status": "success",
        "comity.request.id": "r1.1",
        "comity.root.id": "r1",
    }


def test_a_failed_call_says_its_code_as_the_error_type():
    span = span_of(reply=FAILED)
    assert span.status is SpanStatus.ERROR
    assert span.attributes["error.type"] == "TARGET_CRASHED"
    assert span.attributes["comity.status"] == "error"


def test_nothing_that_was_said_is_in_a_span_unless_content_was_asked_for():
    for reply in (REPLY, FAILED):
        text = repr(span_of(reply=reply, mode=Mode.DUAL))
        for secret in ("secret", "4111", "npv", "ada@"):
            assert secret not in text


def test_content_that_was_asked_for_is_written_as_the_conventions_write_messages():
    attributes = span_of(captures_content=True).attributes
    (asked,) = json.loads(attributes["gen_ai.input.messages"])
    assert asked == {
        "role": "user",
        "parts": [{"type": "text", "content": "secret words"}, {"type": "text", "content": '{"card": "4111"}'}],
    }
    (answered,) = json.loads(attributes["gen_ai.output.messages"])
    assert (answered["role"], answered["finish_reason"]) == ("assistant", "stop")
    assert [part["content"] for part in answered["parts"]] == ["secret answer", '{"npv":1}']
    assert span_of(reply=FAILED, captures_content=True).status_message == "it choked on 4111"


def test_a_refused_call_shows_no_content_since_nothing_was_hidden_in_it():
    refused = Reply(status=Status.REFUSED, error=Error.of("INPUT_VALIDATION_FAILED", "inputs.ann@example.com: is unknown"))
    span = span_of(reply=refused, captures_content=True)
    assert "ann@example.com" not in f"{span.status_message} {span.attributes}"
    assert span.attributes.keys() == span_of(reply=refused).attributes.keys()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("agent.id", "gen_ai.agent.id"),
        ("agent.session_id", "gen_ai.conversation.id"),
        ("gen_ai.system", "gen_ai.provider.name"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.input_tokens"),
        ("gen_ai.usage.completion_tokens", "gen_ai.usage.output_tokens"),
    ],
)
def test_the_mode_decides_under_which_names_renamed_things_appear(old, new):
    legacy, dual, otel = (span_of(mode=mode, reported=(5, 6)).attributes for mode in (Mode.LEGACY, Mode.DUAL, Mode.OTEL))
    assert (old in legacy, new in legacy) == (True, False)
    assert (old in otel, new in otel) == (False, True)
    assert dual[old] == dual[new] == otel[new] == legacy[old]
    assert dual.keys() == legacy.keys() | otel.keys()


def test_a_tool_use_is_an_execute_tool_span_of_the_agent_that_used_it():
    request = msgspec.structs.replace(REQUEST, target="tool:pay", capability="pay", source="ANL", request_id="r1#1")
    span = span_of(request, captures_content=True)
    assert span.name == "execute_tool pay"
    assert span.attributes["gen_ai.operation.name"] == "execute_tool"
    assert span.attributes["gen_ai.agent.id"] == "ANL"
    assert span.attributes["gen_ai.tool.name"] == "pay"
    assert span.attributes["gen_ai.tool.call.id"] == "r1#1"
    assert span.attributes["gen_ai.tool.call.arguments"] == '{"card": "4111"}'
    assert span.attributes["gen_ai.tool.call.result"] == '{"npv":1}'


@pytest.mark.parametrize(
    ("target", "provider", "model"), [("model:openai:gpt-x", "openai", "gpt-x"), ("model:scripted", "comity", "scripted")]
)
def test_a_models_answer_is_a_chat_span_to_elsewhere_with_provider_model_and_tokens(target, provider, model):
    request = msgspec.structs.replace(REQUEST, target=target, capability="complete", source="ANL", request_id="r1#2")
    span = span_of(request)
    assert (span.name, span.kind) == (f"chat {model}", Kind.CLIENT)
    told = {
        name: span.attributes[f"gen_ai.{name}"] for name in ("operation.name", "provider.name", "request.model", "agent.id")
    }
    assert told == {"operation.name": "chat", "provider.name": provider, "request.model": model, "agent.id": "ANL"}
    assert (span.attributes["gen_ai.usage.input_tokens"], span.attributes["gen_ai.usage.output_tokens"]) == (5, 6)


def test_only_the_root_of_what_came_from_outside_is_a_server_span_and_all_carry_the_state():
    remote = TraceContext("1" * 32, "4" * 16, state="a=1")
    root = msgspec.structs.replace(REQUEST, parent_id=None)
    assert span_of(root, remote=remote).kind is Kind.SERVER
    below = span_of(remote=remote)
    assert (below.kind, below.trace_state) == (Kind.INTERNAL, "a=1")


def test_a_call_without_a_session_has_no_conversation():
    alone = msgspec.structs.replace(REQUEST, session_id="r1", tenant_id="t2")
    assert "gen_ai.conversation.id" not in span_of(alone).attributes
    assert is_of_session(span_of().attributes, "s1", "default")
    assert is_of_session(span_of(mode=Mode.LEGACY).attributes, "s1", "default")
    assert not is_of_session(span_of().attributes, "s2", "default")
    assert not is_of_session(span_of(msgspec.structs.replace(REQUEST, tenant_id="t2")).attributes, "s1", "default")


def test_the_root_of_what_came_from_this_process_is_no_server_span():
    here = TraceContext("1" * 32, "4" * 16, is_local=True)
    assert span_of(msgspec.structs.replace(REQUEST, parent_id=None), remote=here).kind is Kind.INTERNAL


def test_the_tokens_of_a_tree_stand_apart_from_those_that_no_other_span_has():
    attributes = span_of(reported=(2, 1)).attributes
    assert (attributes["gen_ai.usage.input_tokens"], attributes["gen_ai.usage.output_tokens"]) == (2, 1)
    assert (attributes["comity.usage.input_tokens"], attributes["comity.usage.output_tokens"]) == (5, 6)


def test_what_an_agent_is_declared_with_is_on_its_spans():
    attributes = span_of(agent=AgentFacts("Counts", "anthropic", "claude-x")).attributes
    told = [attributes[f"gen_ai.{name}"] for name in ("agent.description", "provider.name", "request.model")]
    assert told == ["Counts", "anthropic", "claude-x"]


def test_a_tool_use_has_the_id_that_the_model_gave_it():
    request = msgspec.structs.replace(REQUEST, target="tool:pay", capability="pay", source="ANL", request_id="r1#1")
    assert span_of(request, call_id="call_7").attributes["gen_ai.tool.call.id"] == "call_7"


# --- requests to a model ---

PROMPT = Prompt(
    messages=(System("Be kind."), User("secret words"), Assistant("", (ToolCall(id="c1", name="rate", arguments="{}"),))),
    settings=ModelSettings(max_tokens=50, temperature=0.5, stop=("END",)),
)
CHAT = msgspec.structs.replace(REQUEST, target="model:openai:gpt-x", capability="complete", source="ANL", request_id="r1#2")
ANSWER = Reply.success(
    Completion(text="secret answer", finish=Finish.LENGTH, model="gpt-x-2026", id="resp_1"),
    usage=Usage(prompt_tokens=5, completion_tokens=6),
)


def asked(**more):
    return Asked(facts=ModelFacts("openai", "gpt-x", "api.example", 443), settings=PROMPT.settings, prompt=PROMPT, **more)


def test_a_request_to_a_model_says_what_was_asked_for_and_what_answered():
    attributes = span_of(CHAT, ANSWER, asked=asked(wants_json=True)).attributes
    assert attributes == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-x",
        "gen_ai.request.stream": True,
        "gen_ai.request.max_tokens": 50,
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.stop_sequences": ("END",),
        "gen_ai.output.type": "json",
        "gen_ai.response.model": "gpt-x-2026",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.finish_reasons": ("length",),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 6,
        "gen_ai.agent.id": "ANL",
        "gen_ai.conversation.id": "s1",
        "server.address": "api.example",
        "server.port": 443,
        "comity.status": "success",
        "comity.request.id": "r1#2",
        "comity.root.id": "r1",
    }


def test_a_request_that_failed_says_why_and_how_often_it_was_tried():
    failed = Reply(status=Status.ERROR, error=Error.of("MODEL_RATE_LIMITED", "slow down, secret"))
    span = span_of(CHAT, failed, asked=asked(failures=("MODEL_OVERLOADED", "MODEL_RATE_LIMITED"), status_code=429))
    assert (span.name, span.status) == ("chat gpt-x", SpanStatus.ERROR)
    assert span.attributes["error.type"] == "MODEL_RATE_LIMITED"
    assert span.attributes["http.response.status_code"] == 429
    assert span.attributes["comity.model.failed_attempts"] == 2
    assert span.attributes["comity.model.attempt_errors"] == ("MODEL_OVERLOADED", "MODEL_RATE_LIMITED")
    assert "secret" not in repr(span)


def test_a_request_that_was_answered_in_the_end_has_no_status_of_an_error():
    span = span_of(CHAT, ANSWER, asked=asked(failures=("MODEL_RATE_LIMITED",), status_code=429))
    assert (span.status, span.attributes["comity.model.failed_attempts"]) == (SpanStatus.UNSET, 1)
    assert "http.response.status_code" not in span.attributes


def test_what_was_said_to_and_by_a_model_is_recorded_as_messages_and_only_where_it_is_asked_for():
    assert "secret" not in repr(span_of(CHAT, ANSWER, asked=asked(), mode=Mode.DUAL))
    attributes = span_of(CHAT, ANSWER, asked=asked(), captures_content=True).attributes
    assert json.loads(attributes["gen_ai.system_instructions"]) == [{"type": "text", "content": "Be kind."}]
    assert json.loads(attributes["gen_ai.input.messages"]) == [
        {"role": "user", "parts": [{"type": "text", "content": "secret words"}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "rate", "arguments": {}}]},
    ]
    assert json.loads(attributes["gen_ai.output.messages"]) == [
        {"role": "assistant", "parts": [{"type": "text", "content": "secret answer"}], "finish_reason": "length"}
    ]
