"""Agreement with Tempo: its own list of queries, and what a real one answered about 900 spans."""

import json
import math
from pathlib import Path

import pytest
import yaml

from comity.core.query import QueryError, encode_search, encode_series, parse, query_range, search, validate
from comity.core.query.errors import Fault
from comity.core.span import decode_spans, group_by_trace

SECOND_NS = 10**9
EXPECTED = {
    "valid": None,
    "parse_fails": Fault.SYNTAX,
    "validate_fails": Fault.INVALID,
    "unsupported": Fault.UNSUPPORTED,
}


def fault_of(text):
    try:
        validate(parse(text), text)
    except QueryError as error:
        return error.fault
    return None


@pytest.mark.parametrize("section", EXPECTED)
def test_every_query_of_tempos_corpus_is_judged_as_its_section_says(section, tempo_dir, report_agreement):
    corpus = yaml.safe_load((tempo_dir / "test_examples.yaml").read_text())
    verdicts = {text: fault_of(text) for text in corpus[section]}
    wrong = [text for text, verdict in verdicts.items() if verdict != EXPECTED[section]]
    report_agreement(section, len(verdicts) - len(wrong), len(verdicts))
    assert wrong == []
    assert len(verdicts) > 20


def test_every_valid_query_of_tempos_corpus_survives_printing(tempo_dir):
    corpus = yaml.safe_load((tempo_dir / "test_examples.yaml").read_text())
    for text in (*corpus["valid"], *corpus["validate_fails"], *corpus["unsupported"]):
        assert parse(str(parse(text))) == parse(text), text


@pytest.fixture(scope="module")
def recorded(tempo_dir):
    """The answers, with those to further queries over the same spans, and the traces they are about."""
    answers = json.loads((tempo_dir / "answers.json").read_text())
    for more in (Path(__file__).with_name("tempo_answers.json"), *sorted(tempo_dir.glob("answers_*.json"))):
        answers["answers"] += json.loads(more.read_text())["answers"]
    spans = decode_spans(json.loads((tempo_dir / "spans.json").read_text())["otlp"])
    return answers, group_by_trace(spans)


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
        wanted = [trace | {"spanSets": in_order(trace["spanSets"])} for trace in entry["answer"]]
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


def test_syntax_errors_point_where_tempos_do(tempo_dir):
    answers = json.loads((tempo_dir / "answers.json").read_text())
    checked = 0
    for entry in answers["answers"]:
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
