"""`comity query`, `trace`, `insights` and `spans`: what was recorded, asked for from the shell."""

import http.client
import os
import signal
import sys
import time

import pytest

from comity.cli.commands.trace import flat, rows_of
from comity.contextcore.insights import InsightEmitter
from comity.core.tracing.otlp import CONTENT_TYPE, encode_request
from comity.core.tracing.span import Span
from comity.engines.sqlite.spans.path import spans_path
from comity.engines.sqlite.spans.store import SpanStore


def traces_of(ran):
    return [trace["trace_id"] for trace in ran.document["traces"]]


@pytest.fixture
def found_out(used, place):
    """Insights beside the calls of `used`."""
    with SpanStore(spans_path("comity.db")) as store:
        emitter = InsightEmitter(store, project_id="shop", agent_id="BOSS", session_id="s1")
        stuck = emitter.emit_blocker(summary="the \x1b[31mbuild is red", evidence=[{"type": "file", "ref": "Makefile"}])
        emitter.emit_risk(summary="it may stay so", confidence=0.4, audience="human")
        return emitter.emit_decision(summary="rebuilt", confidence=0.9, supersedes=stuck.id)


# --- query ---


def test_a_query_is_answered_as_a_table_with_what_it_selected(comity, used):
    ran = comity("query", '{ span.gen_ai.agent.id = "WORK" } | select(span.comity.capability)')
    assert ran.code == 0
    assert "as Tempo reads it" not in ran.out
    lines = [line.split() for line in ran.out.splitlines()]
    assert lines[0] == ["when", "trace", "span", "duration", "comity.capability", "gen_ai.agent.id"]
    assert sorted(line[-2] for line in lines if line and line[-1] == "WORK") == ["CRASH", "GREET"]


def test_a_lenient_query_is_shown_in_the_form_tempo_takes_and_a_strict_one_is_refused(comity, used):
    ran = comity("query", '{ comity.status = "refused" }')
    assert ran.out.startswith('as Tempo reads it: { span.comity.status = "refused" }\n')
    assert "invoke_agent SHUT" in ran.out
    document = comity("query", '{ comity.status = "refused" }', "--json").document
    assert document["tempo_query"] == '{ span.comity.status = "refused" }'
    assert document["rewritten"]
    assert comity("query", '{ comity.status = "refused" }', "--strict").code == 2


def test_the_json_of_a_query_has_every_field_and_may_stand_before_it(comity, used):
    document = comity("query", "--json", '{ span.error.type = "TARGET_CRASHED" }').document
    (trace,) = document["traces"]
    (spanset,) = trace["spansets"]
    (span,) = spanset["spans"]
    assert trace["root_name"] == "invoke_agent BOSS"
    assert spanset["matched"] == 1
    assert span["attributes"] == {"error.type": "TARGET_CRASHED"}


def test_an_error_points_at_the_column(comity, used):
    query = "{ span.a = 1 } |\n{ span.b = }"
    ran = comity("query", query)
    assert ran.code == 2
    message, line, mark = ran.err.splitlines()
    assert "line 2, column 12" in message
    assert line == "  { span.b = }"
    assert mark.index("^") == line.index("}")
    long = comity("query", f"{{ span.a = {'1 && span.a = ' * 40}}} }}").err.splitlines()
    assert max(map(len, long)) < 150
    assert long[1][long[2].index("^")] == "}", "the mark is under its place in a part of a long query too"
    error = comity("query", query, "--json").document["error"]
    assert error["problems"][0]["path"] == "line 2, column 12"


def test_a_query_that_finds_nothing_says_so_and_one_on_an_empty_store_says_how_to_fill_it(comity, used, place):
    assert "No trace of the store comity.db matches" in comity("query", "{ span.x = 1 }").out
    with SpanStore(spans_path("empty.db")):
        pass
    assert "has no spans yet" in comity("query", "{ span.x = 1 }", "--store", "empty.db").out
    ran = comity("query", "{}", "--store", "none.db")
    assert ran.code == 4
    assert not (place / "none.db.spans").exists()


def test_metrics_are_shown_as_lines_and_as_json(comity, used):
    ran = comity("query", "{} | count_over_time() by (name)", "--step", "30m")
    assert "name invoke_agent WORK" in ran.out
    assert "█" in ran.out
    document = comity("query", "{} | count_over_time()", "--json").document
    (series,) = document["series"]
    assert max(value for _, value in series["samples"]) == 4
    assert "--range looks further back" in comity("query", "{ span.x = 1 } | rate()").out


def test_a_range_looks_only_so_far_back(comity, used):
    with SpanStore(spans_path("comity.db")) as store:
        store.ingest([Span(trace_id="a" * 32, span_id="b" * 16, name="old", start_ns=1, end_ns=2)])
    assert len(traces_of(comity("query", "{}", "--json"))) == 2
    assert len(traces_of(comity("query", "{}", "--range", "1h", "--json"))) == 1
    ran = comity("query", "{}", "--range", "soon")
    assert (ran.code, "time range" in ran.err) == (2, True)


def test_a_tree_draws_every_span_of_the_traces_found(comity, used):
    ran = comity("query", '{ name = "invoke_agent WORK" }', "--tree")
    assert ran.out.count("invoke_agent WORK") == 2
    assert "  invoke_agent SHUT" in ran.out


# --- trace ---


@pytest.mark.parametrize("given", ["last", "job-1", "job-1.1"])
def test_a_trace_is_drawn_as_a_waterfall_by_any_id_of_it(comity, used, given):
    ran = comity("trace", given)
    assert ran.code == 0
    head, root, *below = ran.out.splitlines()
    assert "4 spans" in head
    assert root.startswith("invoke_agent BOSS")
    assert root.count("━") >= 12
    assert all(line.startswith("  invoke_agent ") for line in below)
    assert any("TARGET_CRASHED" in line for line in below)


def test_the_json_of_a_trace_nests_as_the_calls_did(comity, used):
    document = comity("trace", "job-1", "--json").document
    (root,) = document["spans"]
    assert root["attributes"]["comity.request.id"] == "job-1"
    assert {child["parent_id"] for child in root["children"]} == {root["span_id"]}
    assert len(root["children"]) == 3
    same = comity("trace", document["trace_id"].upper(), "--json").document
    assert same == document


def test_a_trace_that_is_not_there_is_not_found(comity, used):
    ran = comity("trace", "f" * 32)
    assert (ran.code, "has no trace" in ran.err) == (4, True)
    with SpanStore(spans_path("empty.db")):
        pass
    assert "has no spans yet" in comity("trace", "last", "--store", "empty.db").err


def test_spans_whose_parents_are_missing_or_each_other_are_drawn_once():
    def span(number, parent):
        return Span(
            trace_id="1" * 32, span_id=f"{number:016x}", parent_id=f"{parent:016x}" if parent else None, start_ns=number
        )

    spans = [span(1, None), span(2, 1), span(3, 99), span(4, 5), span(5, 4), span(6, 6)]
    rows = list(flat(rows_of(spans)))
    assert sorted(row.span.start_ns for row in rows) == [1, 2, 3, 4, 5, 6]
    assert {row.span.start_ns: row.depth for row in rows} == {1: 0, 2: 1, 3: 0, 4: 0, 5: 0, 6: 0}


# --- insights ---


def test_insights_that_still_hold_are_listed_with_their_evidence(comity, found_out):
    ran = comity("insights", "--project", "shop")
    assert ran.code == 0
    assert "rebuilt" in ran.out
    assert "build is red" not in ran.out
    everything = comity("insights", "--all").out
    assert "file Makefile" in everything
    assert "\x1b[31m" not in everything


def test_insights_are_filtered_as_asked(comity, found_out):
    def summaries(*options):
        return [one["summary"] for one in comity("insights", "--json", *options).document["insights"]]

    assert summaries("--type", "decision") == ["rebuilt"]
    assert sorted(summaries("--type", "decision", "--type", "risk")) == ["it may stay so", "rebuilt"]
    assert summaries("--audience", "agent") == ["rebuilt"]
    assert summaries("--min-confidence", "0.5") == ["rebuilt"]
    assert summaries("--limit", "1") == [summaries()[0]]
    assert summaries("--agent", "NOBODY") == summaries("--session", "s2") == summaries("--project", "x") == []
    assert len(summaries("--all")) == 3


def test_no_insights_say_how_to_look_further(comity, used):
    assert "--range looks further back" in comity("insights").out


# --- spans ---


def test_an_exporter_can_send_to_the_store(comity, place, start_process):
    command = [sys.executable, "-m", "comity", "spans", "serve", "--port", "0"]
    process = start_process(command)
    line = process.stdout.readline()
    address = line.split("=")[1].split()[0].removeprefix("http://")
    connection = http.client.HTTPConnection(address, timeout=60)
    body = encode_request([Span(trace_id="1" * 32, span_id="2" * 16, name="from elsewhere")])
    connection.request("POST", "/v1/traces", body, {"Content-Type": CONTENT_TYPE})
    assert connection.getresponse().status == 200
    connection.close()
    os.kill(process.pid, signal.SIGTERM)
    assert process.communicate(timeout=60) == ("", "")
    assert process.returncode == 143
    assert "from elsewhere" in comity("trace", "1" * 32).out


def test_a_port_that_cannot_be_had_is_an_error(comity, place):
    ran = comity("spans", "serve", "--port", "99999")
    assert (ran.code, "cannot listen" in ran.err) == (2, True)


# --- doctor ---


def test_the_doctor_shows_lost_spans_and_what_the_environment_gets_wrong(comity, used, monkeypatch):
    with SpanStore(spans_path("comity.db")) as store:
        store.note_loss("the collector could not be reached in time", 7, at_ms=1_700_000_000_000)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", "many")
    checks = comity("doctor", "--json").document["checks"]
    told = {(check["name"], check["level"]): check["detail"] for check in checks}
    assert "4 spans" in told["spans", "ok"]
    assert told["spans", "warning"].startswith("7 were lost")
    assert "http://collector:4318/v1/traces" in told["tracing", "ok"]
    assert "OTEL_BSP_MAX_QUEUE_SIZE" in told["tracing", "warning"]
    monkeypatch.setenv("COMITY_OTEL_MODE", "loud")
    ran = comity("doctor", "--json")
    assert (ran.code, "loud" in str(ran.document)) == (2, True)


def test_insights_that_cannot_be_read_are_counted(comity, found_out):
    bad = {"insight.type": "risk", "insight.summary": "s", "project.id": "shop"}
    at_ns = time.time_ns()
    with SpanStore(spans_path("comity.db")) as store:
        store.ingest([Span(trace_id="1" * 32, span_id="2" * 16, attributes=bad, start_ns=at_ns, end_ns=at_ns)])
    ran = comity("insights", "--project", "shop")
    assert "1 could not be read" in ran.out
    assert "insight.confidence" in ran.out
    assert len(comity("insights", "--project", "shop", "--json").document["unread"]) == 1
