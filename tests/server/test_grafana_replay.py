"""Grafana's requests in its own order, each read as strictly as its Tempo plugin reads it: a field too many is a failure.

The plugin decodes a search and an instant query by generated types that refuse what they do not know; a trace by protobuf.
"""

from __future__ import annotations

import itertools
import re

import pytest
from opentelemetry.proto.trace.v1.trace_pb2 import TracesData
from tempo_recording import recorded_answers, recorded_spans
from threaded import served_in_thread

from comity import Node
from comity.server.app import Door
from comity.server.tempo.routes import routes

RANGE = {"end": str(recorded_answers()["end_s"]), "start": str(recorded_answers()["start_s"])}
SENT = {
    "User-Agent": "Grafana/13.1.5", "Accept-Encoding": "gzip", "X-Grafana-Org-Id": "1", "X-Datasource-Uid": "comity",
    "X-Panel-Id": "2", "X-Query-Group-Id": "g-1", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}  # fmt: skip
BROWSER, JSON, PROTOBUF = "application/json, text/plain, */*", "application/json", "application/protobuf"
LONG = re.compile(r"-?\d+").fullmatch  # a number of 64 bits is text in the JSON form of protobuf


def long(value):
    return isinstance(value, str) and LONG(value) is not None


def number(value):
    return isinstance(value, int | float) and not isinstance(value, bool)


def text(value):
    return isinstance(value, str)


VALUE = {"stringValue": text, "intValue": long, "doubleValue": number, "boolValue": lambda value: isinstance(value, bool)}
LABEL = {"key": text, "value": VALUE}
SPAN = {"spanID": text, "name": text, "startTimeUnixNano": long, "durationNanos": long, "attributes": [LABEL]}
SPAN_SET = {"spans": [SPAN], "matched": number, "attributes": [LABEL]}
COUNTED = {
    "inspectedTraces": number, "inspectedBytes": long, "totalBlocks": number, "completedJobs": number, "totalJobs": number,
    "totalBlockBytes": long, "inspectedSpans": long,
}  # fmt: skip
FOUND = {
    "traceID": text, "rootServiceName": text, "rootTraceName": text, "startTimeUnixNano": long, "durationMs": number,
    "spanSet": SPAN_SET, "spanSets": [SPAN_SET], "serviceStats": {"*": {"spanCount": number, "errorCount": number}},
}  # fmt: skip
SEARCH = {"traces": [FOUND], "metrics": COUNTED}
EXEMPLAR = {"labels": [LABEL], "value": number, "timestampMs": long}
SERIES = {"labels": [LABEL], "samples": [{"timestampMs": long, "value": number}], "exemplars": [EXEMPLAR]}
QUERY_RANGE = {"series": [SERIES], "metrics": COUNTED}
INSTANT = {"series": [{"labels": [LABEL], "value": number}], "metrics": COUNTED, "status": text, "message": text}
TAGS = {"scopes": [{"name": text, "tags": [text]}], "metrics": COUNTED}
VALUES = {"tagValues": [{"type": text, "value": text}], "metrics": COUNTED}


def strays(value, kind, path=""):
    """Return every place of an answer that a decoder of `kind` would refuse."""
    if callable(kind):
        return [] if kind(value) else [f"{path} is {value!r}"]
    if isinstance(kind, list):
        if not isinstance(value, list):
            return [f"{path} is no list"]
        return [one for index, item in enumerate(value) for one in strays(item, kind[0], f"{path}[{index}]")]
    if not isinstance(value, dict):
        return [f"{path} is no object"]
    found = []
    for name, item in value.items():
        inner = kind.get(name, kind.get("*"))
        found += [f"{path}.{name} is unknown"] if inner is None else strays(item, inner, f"{path}.{name}")
    return found


@pytest.fixture(scope="module")
def grafana(tmp_path_factory):
    """Return how Grafana asks: a path, its parameters in its order, and what it accepts."""
    from comity.engines.sqlite.spans.path import spans_path
    from comity.engines.sqlite.spans.store import SpanStore

    store = tmp_path_factory.mktemp("grafana") / "node.db"
    with SpanStore(spans_path(store)) as spans:
        spans.ingest(recorded_spans())
    with served_in_thread(lambda: Node(store=store), doors=[Door(routes)]) as served:

        def ask(path, accept=JSON, **params):
            return served.client.get(path, params=params, headers=SENT | {"Accept": accept})

        yield ask


def read(answer, kind):
    """Return an answer that the decoder of `kind` accepts whole."""
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("application/json")
    told = answer.json()
    assert strays(told, kind) == []
    return told


def test_saving_the_data_source_is_answered(grafana):
    echo = grafana("/api/echo", "*/*")
    assert (echo.status_code, echo.text) == (200, "echo")
    assert "version" in grafana("/api/status/buildinfo", "*/*").json()


def test_the_editor_completes_names_and_values(grafana):
    tags = read(grafana("/api/v2/search/tags", BROWSER, limit="5000"), TAGS)
    assert {"intrinsic", "resource", "span"} <= {one["name"] for one in tags["scopes"]}
    assert read(grafana("/api/v2/search/tags", BROWSER, limit="5000", **RANGE), TAGS)["scopes"]
    for q in ("{}", "{ resource.service.name=", '{ span.insight.type = "blocker" && resource.'):  # as it is typed
        found = read(
            grafana("/api/v2/search/tag/resource.service.name/values", BROWSER, limit="5000", q=q, tag="resource.service.name"),
            VALUES,
        )
        assert {one["type"] for one in found["tagValues"]} == {"string"}
    assert read(grafana("/api/v2/search/tag/span.http/route/values", BROWSER, limit="5000", q="{}"), VALUES)["tagValues"] == []


SEARCHES = {
    "the builder": ('{resource.service.name="agent-anl"}', {}),
    "everything": ("{}", {"spss": "3"}),
    "errors": ("{status=error}", {"spss": "3"}),
    "the structure of Traces Drilldown": (
        (
            "({nestedSetParent<0} &>> {status = error}) || ({nestedSetParent<0}) "
            "| select(status, resource.service.name, name, nestedSetParent, nestedSetLeft, nestedSetRight)"
        ),
        {"spss": "20"},
    ),
    "the newest of Traces Drilldown": ("{nestedSetParent<0} with(most_recent=true)", {"spss": "10"}),
}


@pytest.mark.parametrize("name", SEARCHES)
def test_a_search_has_traces_and_no_field_that_the_plugin_does_not_know(grafana, name):
    q, more = SEARCHES[name]
    told = read(grafana("/api/search", end=RANGE["end"], limit="20", q=q, start=RANGE["start"], **more), SEARCH)
    assert 0 < len(told["traces"]) <= 20
    for one in told["traces"]:
        assert all(len(found["spans"]) <= int(more.get("spss", "3")) <= 20 for found in one["spanSets"])
        assert all(found["matched"] >= len(found["spans"]) > 0 for found in one["spanSets"])


def test_a_found_trace_opens_by_its_shortened_id_in_both_versions(grafana):
    found = read(grafana("/api/search", q="{}", limit="1000", **RANGE), SEARCH)["traces"]
    for trace_id in (min(found, key=lambda one: len(one["traceID"]))["traceID"], found[0]["traceID"]):
        v2 = grafana(f"/api/v2/traces/{trace_id}", PROTOBUF)
        assert (v2.status_code, v2.headers["content-type"]) == (200, "application/protobuf")
        v1 = grafana(f"/api/traces/{trace_id}", PROTOBUF)
        trace = TracesData.FromString(v1.content)
        assert trace.resource_spans
        for batch in trace.resource_spans:  # a resource without an attribute is dropped from the view
            assert "service.name" in {one.key for one in batch.resource.attributes}
        assert v2.content == b"\x0a" + _varint(len(v1.content)) + v1.content + v2.content[-2:]
        assert v2.content[-2:] == b"\x12\x00"  # metrics; no status and no message


def _varint(value):
    parts = []
    while value > 127:
        parts.append(value & 127 | 128)
        value >>= 7
    return bytes([*parts, value])


def test_an_unknown_trace_is_empty_but_there_and_then_not_found(grafana):
    v2 = grafana("/api/v2/traces/1", PROTOBUF)
    assert (v2.status_code, v2.content[:2]) == (200, b"\x0a\x00")
    v1 = grafana("/api/traces/1", PROTOBUF)
    assert (v1.status_code, v1.headers["content-type"].split(";")[0]) == (404, "text/plain")


METRICS = [
    "{} | rate()",
    "{} | rate() by (resource.service.name)",
    "{nestedSetParent<0 && true} | rate() by (resource.service.name) with(sample=true)",
    "{nestedSetParent<0} | histogram_over_time(duration) with(sample=true)",
    "{nestedSetParent<0} | quantile_over_time(duration, .9)",
    "{nestedSetParent<0} | compare({status = error})",
    "{nestedSetParent<0 && status=error} | rate() with(sample=true)",
]


@pytest.mark.parametrize("q", METRICS)
def test_a_metric_is_drawn(grafana, q):
    told = read(grafana("/api/metrics/query_range", end=RANGE["end"], exemplars="100", q=q, start=RANGE["start"]), QUERY_RANGE)
    assert told["series"]
    stepped = read(grafana("/api/metrics/query_range", q=q, step="30s", **RANGE), QUERY_RANGE)
    times = [int(point["timestampMs"]) for point in stepped["series"][0]["samples"]]
    assert {later - earlier for earlier, later in itertools.pairwise(times)} == {30_000}


def test_a_table_gets_one_value_a_series(grafana):
    told = read(grafana("/api/metrics/query", end=RANGE["end"], q="{} | count_over_time()", start=RANGE["start"]), INSTANT)
    assert [one["value"] for one in told["series"]] == [len(recorded_spans())]


def test_an_error_is_one_short_line_of_text(grafana):
    for path, params in (
        ("/api/search", {"q": "{ oops"}),
        ("/api/metrics/query_range", {"q": "{}"}),
        ("/api/metrics/query", {"q": "{ resource. } | rate()"}),
    ):
        answer = grafana(path, **params, **RANGE)
        assert (answer.status_code, answer.headers["content-type"].split(";")[0]) == (400, "text/plain")
        assert 0 < len(answer.text) < 300
        assert "\n" not in answer.text
        assert "<" not in answer.text
