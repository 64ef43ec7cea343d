"""Agreement with Tempo's own list of queries, and with recordings that are not in this repository: `make tempo`.

The list is `pkg/traceql/test_examples.yaml` of Tempo's source, written by its authors, so `make test` does without it.
"""

import json
import os
from pathlib import Path

import pytest
import yaml
from tempo_recording import recorded_answers, recorded_spans
from test_query_tempo import agrees

from comity.core.tracing.query import QueryError, parse, validate
from comity.core.tracing.query.errors import Fault
from comity.core.tracing.span import group_by_trace

EXPECTED = {
    "valid": None,
    "parse_fails": Fault.SYNTAX,
    "validate_fails": Fault.INVALID,
    "unsupported": Fault.UNSUPPORTED,
}


@pytest.fixture(scope="module")
def folder():
    """The folder with Tempo's list."""
    found = Path(os.environ.get("COMITY_TEMPO_DIR", ""))
    if not (found / "test_examples.yaml").is_file():
        pytest.fail("COMITY_TEMPO_DIR names no folder with pkg/traceql/test_examples.yaml of Tempo's source")
    return found


@pytest.fixture(scope="module")
def corpus(folder):
    return yaml.safe_load((folder / "test_examples.yaml").read_text())


def fault_of(text):
    try:
        validate(parse(text), text)
    except QueryError as error:
        return error.fault
    return None


@pytest.mark.parametrize("section", EXPECTED)
def test_every_query_of_tempos_corpus_is_judged_as_its_section_says(section, corpus, report_agreement):
    verdicts = {text: fault_of(text) for text in corpus[section]}
    wrong = [text for text, verdict in verdicts.items() if verdict != EXPECTED[section]]
    report_agreement(section, len(verdicts) - len(wrong), len(verdicts))
    assert wrong == []
    assert len(verdicts) > 20


def test_every_valid_query_of_tempos_corpus_survives_printing(corpus):
    for text in (*corpus["valid"], *corpus["validate_fails"], *corpus["unsupported"]):
        assert parse(str(parse(text))) == parse(text), text


def test_every_further_recorded_answer_is_reproduced(folder, report_agreement):
    further = [entry for path in sorted(folder.glob("answers_*.json")) for entry in json.loads(path.read_text())["answers"]]
    traces = group_by_trace(recorded_spans())
    wrong = [entry["q"] for entry in further if not agrees(entry, recorded_answers(), traces)]
    report_agreement("further answers", len(further) - len(wrong), len(further))
    assert wrong == []
