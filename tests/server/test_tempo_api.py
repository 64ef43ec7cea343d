"""The Tempo API of a served node: recorded answers of a real Tempo, and the requests Grafana's data source makes."""

from __future__ import annotations

import base64
import gzip
import json
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from served import TOKEN
from tempo_recording import recorded_answers, recorded_spans
from threaded import served_in_thread

from comity import Agent, Context, Node
from comity.core.access import Role
from comity.core.tracing.otlp import encode_request
from comity.core.tracing.span import encode_spans
from comity.server.app import Door
from comity.server.tempo.routes import routes

DOOR = Door(routes)
MISC = recorded_answers()["misc"]
RANGE = {"start": str(recorded_answers()["start_s"]), "end": str(recorded_answers()["end_s"])}
TRACE = "90f5b5e6317542f5aa4beb51d0b9abca"


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    """Return the path of a store that holds the recorded spans."""
    from comity.engines.sqlite.spans.path import spans_path
    from comity.engines.sqlite.spans.store import SpanStore

    path = tmp_path_factory.mktemp("tempo") / "node.db"
    with SpanStore(spans_path(path)) as spans:
        spans.ingest(recorded_spans())
    return path


@pytest.fixture(scope="module")
def tempo(store):
    with served_in_thread(lambda: Node(store=store), doors=[DOOR]) as served:
        yield served


@pytest.fixture
def empty():
    """Return a served node in memory."""
    with served_in_thread(Node, doors=[DOOR]) as served:
        yield served


def unmeasured(answer):
    """Return an answer without how much work it was, which depends on the store."""
    return {key: value for key, value in answer.items() if key != "metrics"}


def sorted_trace(resource_spans):
    """Return a trace in an order that does not depend on the store."""
    found = []
    for batch in resource_spans:
        resource = sorted(map(json.dumps, batch["resource"]["attributes"]))
        for scope in batch["scopeSpans"]:
            found += [(resource, scope["scope"], span) for span in scope["spans"]]
    return sorted(found, key=lambda one: one[2]["spanId"])


def test_a_trace_is_what_tempo_answered(tempo):
    v1 = tempo.client.get(f"/api/traces/{TRACE}")
    recorded = MISC[f"/api/traces/{TRACE}"]["answer"]
    assert set(v1.json()) == set(recorded)
    assert sorted_trace(v1.json()["batches"]) == sorted_trace(recorded["batches"])
    v2 = tempo.client.get(f"/api/v2/traces/{TRACE.lstrip('9')}")
    assert v2.json() == {"trace": {}, "metrics": {}} == MISC["/api/v2/traces/00000000000000000000000000000001"]["answer"]
    v2 = tempo.client.get(f"/api/v2/traces/{TRACE}")
    recorded = MISC[f"/api/v2/traces/{TRACE}"]["answer"]
    assert sorted_trace(v2.json()["trace"]["resourceSpans"]) == sorted_trace(recorded["trace"]["resourceSpans"])


def test_a_trace_in_protobuf_is_the_official_message(tempo):
    accept = {"Accept": "application/protobuf"}
    v1 = tempo.client.get(f"/api/traces/{TRACE}", headers=accept)
    read = ExportTraceServiceRequest.FromString(v1.content)  # its one field has the number of Trace's
    spans = [span for batch in read.resource_spans for scope in batch.scope_spans for span in scope.spans]
    assert {span.trace_id.hex() for span in spans} == {TRACE}
    v2 = tempo.client.get(f"/api/v2/traces/{TRACE}", headers=accept)
    assert v2.headers["content-type"] == "application/protobuf"
    assert v2.content.startswith(b"\x0a")
    assert v1.content in v2.content
    unknown = tempo.client.get("/api/v2/traces/1", headers=accept)
    assert (unknown.status_code, unknown.content[:2]) == (200, b"\x0a\x00")  # without it Grafana's plugin crashes


def test_an_unknown_trace_and_no_trace_id_are_answered_as_tempo_does(tempo):
    for path in ("/api/traces/00000000000000000000000000000001", "/api/traces/zzz"):
        answer, recorded = tempo.client.get(path), MISC[path]
        assert (answer.status_code, answer.text) == (recorded["status"], recorded["answer"])
        assert answer.headers["content-type"].startswith("text/plain")


def test_leading_zeros_of_a_trace_id_may_be_missing(tempo):
    found = (tempo.client.get("/api/search", params=RANGE | {"q": "{}", "limit": "1000"})).json()["traces"]
    short = next(one["traceID"] for one in found if len(one["traceID"]) < 32)
    assert (tempo.client.get(f"/api/traces/{short}")).status_code == 200


def test_tags_are_those_tempo_listed(tempo):
    v1 = (tempo.client.get("/api/search/tags")).json()
    assert unmeasured(v1) == unmeasured(MISC["/api/search/tags"]["answer"])
    v2 = (tempo.client.get("/api/v2/search/tags", params={"limit": "5000"})).json()
    scopes = {one["name"]: one["tags"] for one in v2["scopes"]}
    assert scopes == {one["name"]: one["tags"] for one in MISC["/api/v2/search/tags"]["answer"]["scopes"]}
    one = (tempo.client.get("/api/v2/search/tags", params={"scope": "link"})).json()["scopes"]
    assert one == [{"name": "link", "tags": ["link.relationship"]}]
    assert (tempo.client.get("/api/v2/search/tags", params={"scope": "odd"})).status_code == 400


def test_values_are_those_tempo_listed(tempo):
    for path in ("/api/v2/search/tag/span.insight.type/values", "/api/v2/search/tag/resource.service.name/values"):
        answer = (tempo.client.get(path)).json()
        listed = [tuple(sorted(one.items())) for one in answer["tagValues"]]
        assert sorted(listed) == sorted(tuple(sorted(one.items())) for one in MISC[path]["answer"]["tagValues"])
    path = "/api/search/tag/insight.type/values"
    assert unmeasured((tempo.client.get(path)).json()) == unmeasured(MISC[path]["answer"])


def test_values_have_types_and_a_half_written_query_still_lists_them(tempo):
    def values(tag, **params):
        return (tempo.client.get(f"/api/v2/search/tag/{tag}/values", params=params)).json()["tagValues"]

    assert {"type": "keyword", "value": "error"} in values("status")
    assert {"type": "int", "value": "100"} in values("span.gen_ai.usage.input_tokens")
    assert {one["type"] for one in values("span.call.refused")} == {"bool"}
    assert values("duration") == []
    all_types = values("span.insight.type", q="{ span.insi")
    narrowed = values("span.insight.type", q='{ span.insight.type = "blocker" }')
    assert (len(all_types), narrowed) == (9, [{"type": "string", "value": "blocker"}])
    assert values("span.a/b") == []


def test_every_recorded_query_is_answered_as_tempo_did(tempo):
    for recorded in recorded_answers()["answers"]:
        check_recorded(tempo, recorded)


def check_recorded(tempo, recorded):
    if recorded["kind"] == "metrics":
        answer = tempo.client.get("/api/metrics/query_range", params=RANGE | {"q": recorded["q"], "step": "10s"})
        assert answer.status_code == recorded["status"]
        assert [one["labels"] for one in answer.json()["series"]] == [one["labels"] for one in recorded["answer"]]
        for ours, theirs in zip(answer.json()["series"], recorded["answer"], strict=True):
            assert {point["timestampMs"]: point.get("value", 0) for point in ours["samples"]} == pytest.approx(
                {point["timestampMs"]: point.get("value", 0) for point in theirs["samples"]}
            )
        assert set(answer.json()) == {"series", "metrics"}
        return
    answer = tempo.client.get("/api/search", params=RANGE | {"q": recorded["q"], "limit": "1000", "spss": "100"})
    assert answer.status_code == recorded["status"]
    if answer.status_code == 400:
        assert answer.text.startswith("invalid TraceQL query: ")
        assert answer.text.count("\n") == 0
    else:
        found = {one["traceID"].rjust(32, "0") for one in answer.json().get("traces", ())}
        assert found == {one["traceID"] for one in recorded["answer"]}


def test_a_raw_search_and_a_raw_metrics_answer_have_no_field_that_tempo_has_not(tempo):
    q = '{ span.insight.type = "blocker" }'
    answer = (tempo.client.get("/api/search", params=RANGE | {"q": q, "limit": "2", "spss": "1"})).json()
    recorded = MISC["raw search limit=2 spss=1 blocker"]["answer"]
    assert fields(answer["traces"]) <= fields(recorded["traces"]) | {".serviceStats.*.errorCount"}
    allowed = {
        "inspectedTraces",
        "inspectedBytes",
        "totalBlocks",
        "completedJobs",
        "totalJobs",
        "totalBlockBytes",
        "inspectedSpans",
    }
    assert set(answer["metrics"]) <= allowed
    text = tempo.client.get("/api/search", params={"q": "{ insight.type = 1 }"})
    assert text.text == MISC["raw search unscoped"]["answer"]


def fields(value, path=""):
    """Return every path of a document; names of services are data."""
    if isinstance(value, dict):
        is_data = path.endswith("serviceStats")
        return {path}.union(*(fields(one, f"{path}.{'*' if is_data else name}") for name, one in value.items()))
    if isinstance(value, list):
        return {path}.union(*(fields(one, path) for one in value))
    return {path}


def test_an_instant_query_is_one_value_over_the_whole_range(tempo):
    params = RANGE | {"q": "{ } | count_over_time() by (span.insight.type)"}
    answer = (tempo.client.get("/api/metrics/query", params=params)).json()
    assert set(answer) == {"series", "metrics"}
    assert {frozenset(one) for one in answer["series"]} == {frozenset({"labels", "value"})}
    assert sum(one["value"] for one in answer["series"]) == len(recorded_spans())
    rate = (tempo.client.get("/api/metrics/query", params=RANGE | {"q": "{ } | rate()"})).json()["series"]
    seconds = int(RANGE["end"]) - int(RANGE["start"])
    assert rate[0]["value"] == pytest.approx(len(recorded_spans()) / seconds)
    assert (tempo.client.get("/api/metrics/query", params=RANGE | {"q": "{ }"})).status_code == 400


@pytest.mark.parametrize(
    ("path", "params"),
    [
        ("/api/search", {"limit": "x"}),
        ("/api/search", {"start": "5", "end": "4"}),
        ("/api/search", {"q": "{"}),
        ("/api/search", {"q": "{}", "spss": "101"}),
        ("/api/metrics/query_range", {}),
        ("/api/metrics/query_range", {"q": "{} | rate()", "step": "0"}),
        ("/api/metrics/query_range", {"q": "{} | rate()", "step": "odd"}),
        ("/api/metrics/query", {"q": "{} | rate()", "start": "yesterday"}),
        ("/api/search", {"tags": '"=1'.replace('"', "(")}),
    ],
)
def test_a_bad_parameter_is_one_line_of_text(tempo, path, params):
    answer = tempo.client.get(path, params=params)
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (400, "text/plain")
    assert answer.text
    assert "\n" not in answer.text


def test_the_older_parameters_are_the_same_search(tempo):
    old = tempo.client.get("/api/search", params=RANGE | {"tags": "service.name=gateway", "minDuration": "100ms"})
    new = tempo.client.get("/api/search", params=RANGE | {"q": '{ .service.name = "gateway" && duration >= 100ms }'})
    assert old.json()["traces"] == new.json()["traces"] != []


def otlp(name: str, **attributes):
    """Return an export request of one span."""
    from comity.core.tracing.span import Span

    span = Span(
        trace_id="ab" * 16, span_id="cd" * 8, name=name, start_ns=10**18, end_ns=10**18 + 1, attributes=attributes,
        resource={"service.name": "outside"},
    )  # fmt: skip
    return [span]


@pytest.mark.parametrize("kind", ["protobuf", "json", "gzip"])
def test_spans_of_any_exporter_come_in_and_are_found(empty, kind):
    spans = otlp("hello")
    body = json.dumps(encode_spans(spans)).encode() if kind == "json" else encode_request(spans)
    headers = {"content-type": "application/json" if kind == "json" else "application/x-protobuf"}
    if kind == "gzip":
        body, headers["content-encoding"] = gzip.compress(body), "gzip"
    answer = empty.client.post("/v1/traces", content=body, headers=headers)
    assert answer.status_code == 200
    found = empty.client.get(f"/api/traces/{'ab' * 16}").json()
    (span,) = found["batches"][0]["scopeSpans"][0]["spans"]
    assert (span["name"], base64.b64decode(span["spanId"]).hex()) == ("hello", "cd" * 8)


def test_the_standard_exporter_sends_in(empty):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    exporter = OTLPSpanExporter(f"{empty.url}/v1/traces", headers={"authorization": f"Bearer {TOKEN}"})
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    with provider.get_tracer("test").start_as_current_span("from the SDK"):
        pass
    provider.shutdown()
    found = empty.client.get("/api/search", params={"q": '{ name = "from the SDK" }'}).json()
    assert len(found["traces"]) == 1


def test_a_tenant_writes_and_reads_its_own_spans_alone(empty):
    tokens = {tenant: bearer(empty, Role.OPERATOR, tenant) for tenant in ("default", "acme")}
    body = encode_request(otlp("secret", **{"comity.tenant.id": "default"}))
    headers = tokens["acme"] | {"content-type": "application/x-protobuf"}
    assert empty.client.post("/v1/traces", content=body, headers=headers).status_code == 200
    seen = {tenant: empty.client.get(f"/api/traces/{'ab' * 16}", headers=token).status_code for tenant, token in tokens.items()}
    assert seen == {"default": 404, "acme": 200}
    answer = empty.client.get("/api/echo", headers=tokens["acme"] | {"X-Scope-OrgID": "default"})
    assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (403, "text/plain")
    assert [row.error_code for row in empty.rows()] == ["IDENTITY_MISMATCH"]
    viewer = bearer(empty, Role.VIEWER, "acme") | {"content-type": "application/x-protobuf"}
    assert empty.client.post("/v1/traces", content=body, headers=viewer).status_code == 403


def bearer(served, role, tenant):
    state = served.state
    return {
        "authorization": f"Bearer {state.auth.signed.sign_in('ann', roles=(role,), tenant_id=tenant, now_ms=state.now_ms())}"
    }


DASHBOARD = Path(__file__).parents[2] / "deploy" / "grafana" / "dashboards" / "comity.json"


def test_every_query_of_the_dashboard_finds_what_a_node_did():
    agent, other = Agent("ANL"), Agent("DOC", can_call=[])

    @agent.capability("FIND")
    async def find(ctx: Context) -> None:
        ctx.report_usage(prompt_tokens=5)
        ctx.insight("blocker", summary="no data", confidence=0.9)

    @other.capability("ASK")
    async def ask(ctx: Context) -> None:
        await ctx.call("ANL", "FIND")

    with served_in_thread(lambda: Node([agent, other]), doors=[DOOR]) as served:
        for target, capability in (("ANL", "FIND"), ("DOC", "ASK")):
            served.client.post("/v1/calls", json={"target": target, "capability": capability, "user_id": "u"})
        empty = set()
        for panel in json.loads(DASHBOARD.read_text())["panels"]:
            (target,) = panel["targets"]
            is_metrics, is_instant = "metricsQueryType" in target, target.get("metricsQueryType") == "instant"
            path = "/api/search" if not is_metrics else "/api/metrics/query" if is_instant else "/api/metrics/query_range"
            answer = served.client.get(path, params={"q": target["query"]})
            assert answer.status_code == 200, (panel["title"], answer.text)
            empty |= set() if answer.json()["series" if is_metrics else "traces"] else {panel["title"]}
        assert empty == {"Slowest calls"}
