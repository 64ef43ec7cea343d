"""What the environment asks for, and how an ended call becomes a span."""

import json

import msgspec
import pytest

from comity.core.emission import Mode
from comity.core.envelope import Error, Reply, Request, Status, Usage
from comity.core.limits import Limits
from comity.core.span import INT64_MAX, Kind
from comity.core.span import Status as SpanStatus
from comity.core.telemetry import (
    EXPORT_BATCH_MAX,
    EXPORT_QUEUE_MAX,
    EXPORT_TIMEOUT_MS,
    CallEnd,
    Origin,
    Settings,
    call_span,
    is_of_session,
    settings_from,
    storable,
    summarize,
)
from comity.core.trace_context import TraceContext

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


def span_of(request=REQUEST, reply=REPLY, *, mode=Mode.OTEL, remote=None, captures_content=False):
    ended = summarize(CallEnd(request, reply, 10, 30, remote), captures_content=captures_content)
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
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 6,
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
    legacy, dual, otel = (span_of(mode=mode).attributes for mode in (Mode.LEGACY, Mode.DUAL, Mode.OTEL))
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


# --- settings ---


def test_without_variables_everything_is_kept_nothing_is_exported_and_no_content_is_recorded():
    settings = settings_from({})
    assert settings.samples("f" * 32, None)
    assert (settings.endpoint, settings.captures_content, settings.is_disabled, settings.problems) == ("", False, False, ())
    assert settings.origin.mode is Mode.DUAL
    assert settings.origin.resource["service.name"] == "comity"
    assert (settings.queue_max, settings.batch_max) == (EXPORT_QUEUE_MAX, EXPORT_BATCH_MAX)


def test_opentelemetrys_variables_are_obeyed():
    settings = settings_from(
        {
            "OTEL_SERVICE_NAME": "checkout",
            "OTEL_RESOURCE_ATTRIBUTES": "service.name=ignored,deployment.environment.name=a%20b, project.id=shop",
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://collector:4318/",
            "OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20x,tenant=1",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "2500",
            "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json",
            "OTEL_BSP_MAX_QUEUE_SIZE": "100",
            "OTEL_BSP_MAX_EXPORT_BATCH_SIZE": "10",
            "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "span_only",
        },
        version="1.2",
    )
    assert settings.origin.resource == {
        "service.name": "checkout",
        "deployment.environment.name": "a b",
        "project.id": "shop",
        "telemetry.sdk.name": "comity",
        "telemetry.sdk.language": "python",
        "telemetry.sdk.version": "1.2",
    }
    assert settings.project_id == "shop"
    assert settings.endpoint == "http://collector:4318/v1/traces"
    assert settings.headers == (("authorization", "Bearer x"), ("tenant", "1"))
    assert (settings.timeout_ms, settings.is_gzipped, settings.protocol) == (2500, True, "http/json")
    assert (settings.queue_max, settings.batch_max, settings.captures_content) == (100, 10, True)


def test_a_variable_for_traces_goes_before_the_one_for_everything():
    settings = settings_from(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a:4318",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "https://b/custom",
            "OTEL_EXPORTER_OTLP_HEADERS": "a=1",
            "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "b=2",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",
            "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "2",
        }
    )
    assert (settings.endpoint, settings.headers, settings.timeout_ms) == ("https://b/custom", (("b", "2"),), 2)


def test_export_and_recording_can_be_switched_off():
    assert settings_from({"OTEL_TRACES_EXPORTER": "none", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://a"}).endpoint == ""
    assert settings_from({"OTEL_SDK_DISABLED": "TRUE"}).is_disabled


@pytest.mark.parametrize(
    ("environ", "kept"),
    [
        ({"OTEL_TRACES_SAMPLER": "always_off"}, 0),
        ({"OTEL_TRACES_SAMPLER": "always_on"}, 256),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.25"}, 64),
        ({"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, 128),
        ({"OTEL_TRACES_SAMPLER": "parentbased_always_off"}, 0),
        ({"OTEL_TRACES_SAMPLER": "jaeger_remote"}, 256),
    ],
)
def test_the_sampler_keeps_its_share_of_traces(environ, kept):
    settings = settings_from(environ)
    # The last seven bytes decide: they are random in every kind of trace id.
    ids = [f"018f{'0' * 14}{byte:02x}{'8' * 12}" for byte in range(256)]
    assert sum(settings.samples(trace_id, None) for trace_id in ids) == kept


def test_a_sampler_that_follows_the_parent_does_what_it_did_and_another_does_not():
    sampled, unsampled = TraceContext("f" * 32, "1" * 16, 1), TraceContext("f" * 32, "1" * 16, 0)
    follows = settings_from({"OTEL_TRACES_SAMPLER": "parentbased_always_off"})
    assert follows.samples("f" * 32, sampled)
    assert not settings_from({}).samples("f" * 32, unsampled)
    assert settings_from({"OTEL_TRACES_SAMPLER": "always_on"}).samples("f" * 32, unsampled)


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({"OTEL_EXPORTER_OTLP_TIMEOUT": "soon"}, "OTEL_EXPORTER_OTLP_TIMEOUT"),
        ({"OTEL_BSP_MAX_QUEUE_SIZE": "0"}, "OTEL_BSP_MAX_QUEUE_SIZE"),
        ({"OTEL_TRACES_SAMPLER": "traceidratio", "OTEL_TRACES_SAMPLER_ARG": "7"}, "OTEL_TRACES_SAMPLER_ARG"),
        ({"OTEL_TRACES_SAMPLER": "magic"}, "magic"),
        ({"OTEL_RESOURCE_ATTRIBUTES": "broken"}, "OTEL_RESOURCE_ATTRIBUTES"),
        ({"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "grpc"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "collector:4317"}, "collector:4317"),
    ],
)
def test_a_value_that_cannot_be_used_is_named_and_the_default_stands(environ, name):
    settings = settings_from(environ)
    (problem,) = settings.problems
    assert name in problem
    defaults = Settings()
    assert (settings.timeout_ms, settings.queue_max) == (EXPORT_TIMEOUT_MS, defaults.queue_max)
    assert (settings.ratio, settings.protocol, settings.endpoint) == (1.0, defaults.protocol, "")


def test_a_header_in_the_environment_is_not_repeated_in_what_is_said_about_it():
    assert "s3cret" not in str(settings_from({"OTEL_EXPORTER_OTLP_HEADERS": "=s3cret"}).problems)


def test_what_is_no_attribute_value_becomes_its_text():
    assert storable({"a": [1, 2.5, None, True, b"x"], 7: Kind.CLIENT}) == {"a": (1, 2.5, None, True, b"x"), "7": "client"}
    assert storable(INT64_MAX + 1) == str(INT64_MAX + 1)
    assert storable("half \ud800") == "half ?"
    assert storable({1}) == "{1}"
