"""What the environment asks for, and what an attribute can hold."""

import pytest

from comity.core.tracing.naming import Mode
from comity.core.tracing.span import INT64_MAX, Kind
from comity.core.tracing.telemetry import (
    EXPORT_BATCH_MAX,
    EXPORT_QUEUE_MAX,
    EXPORT_TIMEOUT_MS,
    Settings,
    settings_from,
    storable,
)
from comity.core.tracing.trace_context import TraceContext


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
