"""Agreement with what a real Tempo answered about 900 spans. `tempo_corpus.py` compares with its own list of queries."""

import json
import math
from copy import deepcopy
from pathlib import Path

import pytest
from tempo_recording import recorded_answers, recorded_spans

from comity.core.tracing.query import QueryError, encode_search, encode_series, parse, query_range, search
from comity.core.tracing.span import group_by_trace

SECOND_NS = 10**9


@pytest.fixture(scope="module")
def recorded():
    """The answers, with those to further queries over the same spans, and the traces they are about."""
    further = json.loads(Path(__file__).with_name("tempo_answers.json").read_text())["answers"]
    answers = recorded_answers()
    return answers | {"answers": answers["answers"] + further}, group_by_trace(recorded_spans())


def outcome(entry, answers, traces):
    """Our answer in the shortened form in which Tempo's was recorded."""
    start_ns, end_ns = answers["start_s"] * SECOND_NS, answers["end_s"] * SECOND_NS
    try:
        if entry["kind"] == "metrics":
            return encode_series(query_range(entry["q"], traces, start_ns=start_ns, end_ns=end_ns, step_ns=10 * SECOND_NS))
        return encode_search(search(entry["q"], traces, start_ns=start_ns, end_ns=end_ns, limit=1000, spans_per_spanset=100))
    except QueryError:
        return None


def shortened(found, query):
    keeps_attributes = "select(" in query
    traces = []
    for trace in found["traces"]:
        spansets = []
        for spanset in trace["spanSets"]:
            spans = sorted(spanset["spans"], key=lambda span: span["spanID"])
            spansets.append(
                {
                    "matched": spanset["matched"],
                    "attributes": spanset.get("attributes"),
                    "spans": [{"spanID": s["spanID"], "attributes": s.get("attributes", [])} for s in spans]
                    if keeps_attributes
                    else [s["spanID"] for s in spans],
                }
            )
        traces.append(
            {
                "traceID": trace["traceID"].rjust(32, "0"),
                "rootServiceName": trace.get("rootServiceName", ""),
                "rootTraceName": trace.get("rootTraceName", ""),
                "durationMs": trace.get("durationMs", 0),
                "spanSets": in_order(spansets),
            }
        )
    return sorted(traces, key=lambda trace: trace["traceID"])


def in_order(spansets):
    """Spansets, and the attributes of their spans, have no order of their own."""
    for one in (span for spanset in spansets for span in spanset["spans"] if isinstance(span, dict)):
        one["attributes"].sort(key=json.dumps)
    return sorted(spansets, key=json.dumps)


def samples(series):
    return {json.dumps(one["labels"]): [(s["timestampMs"], s.get("value", 0)) for s in one["samples"]] for one in series}


def agrees(entry, answers, traces):
    found = outcome(entry, answers, traces)
    if entry["status"] == 400 or found is None:
        return entry["status"] == 400 and found is None
    if entry["kind"] == "search":
        wanted = [trace | {"spanSets": in_order(deepcopy(trace["spanSets"]))} for trace in entry["answer"]]
        return shortened(found, entry["q"]) == wanted
    ours, theirs = samples(found["series"]), samples(entry["answer"])
    return list(ours) == list(theirs) and all(
        len(ours[key]) == len(theirs[key])
        and all(
            a == b and math.isclose(x, y, rel_tol=1e-12, abs_tol=1e-15)
            for (a, x), (b, y) in zip(ours[key], theirs[key], strict=True)
        )
        for key in ours
    )


def test_every_recorded_answer_of_a_real_tempo_is_reproduced_from_the_same_spans(recorded, report_agreement):
    answers, traces = recorded
    wrong = [entry["q"] for entry in answers["answers"] if not agrees(entry, answers, traces)]
    report_agreement("answers", len(answers["answers"]) - len(wrong), len(answers["answers"]))
    assert wrong == []
    assert len(answers["answers"]) >= 490


def test_syntax_errors_point_where_tempos_do():
    checked = 0
    for entry in recorded_answers()["answers"]:
        if entry["status"] == 400 and "parse error at line" in entry["answer"]:
            with pytest.raises(QueryError) as caught:
                parse(entry["q"])
            assert f"line {caught.value.line}, col {caught.value.column}:" in entry["answer"]
            checked += 1
    assert checked >= 3


def test_a_raw_search_answer_has_the_shape_and_content_tempo_gives_it(recorded):
    answers, traces = recorded
    raw = answers["misc"]["raw search limit=2 spss=1 blocker"]["answer"]
    ours = encode_search(
        search('{ span.insight.type = "blocker" }', sorted(traces, key=lambda t: t[0].trace_id), limit=2, spans_per_spanset=1)
    )
    assert ours["traces"] == raw["traces"]
