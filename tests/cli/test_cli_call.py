"""`comity call` makes one governed call; its reply decides the exit code."""

import io
import json
import re
import signal
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.cli.commands.call import read_inputs
from comity.cli.ui.exits import CliError
from comity.core.call.limits import INPUTS_BYTES_MAX

FIELDS = {
    "request_id",
    "status",
    "data",
    "message",
    "confidence",
    "warnings",
    "degraded",
    "error",
    "usage",
    "duration_ms",
    "exit_code",
}


def test_a_call_shows_status_data_and_what_to_do_next(comity, app):
    ran = comity("call", "WORK", "GREET", "name=Ada", "times=2", "--request-id", "r1")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0].startswith("success")
    assert lines[1] == '"hello Ada hello Ada"'
    assert lines[-1] == "comity show r1"


def test_key_value_may_follow_an_option(comity, app):
    assert comity("call", "WORK", "GREET", "--user", "u", "name=Ada", "--json").document["data"] == "hello Ada"


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("a=1", 1),
        ("a=1.5", 1.5),
        ("a=true", True),
        ("a=null", None),
        ("a=[1, 2]", [1, 2]),
        ('a={"b": 1}', {"b": 1}),
        ('a="1"', "1"),
        ("a=Ada", "Ada"),
        ("a=", ""),
        ("a=b=c", "b=c"),
        ("a=NaN", "NaN"),
        ("a=01", "01"),
    ],
)
def test_a_value_is_json_where_it_can_be_and_text_otherwise(pair, value):
    assert read_inputs([pair], None) == {"a": value}


@given(st.dictionaries(st.text(min_size=1).filter(lambda key: "=" not in key), st.text()))
def test_text_in_quotes_always_arrives_as_that_text(inputs):
    assert read_inputs([f"{key}={json.dumps(value)}" for key, value in inputs.items()], None) == inputs


@given(st.text())
def test_any_document_is_an_object_or_an_error_of_usage(text):
    try:
        found = read_inputs([], text if text != "-" else "--")
    except CliError as error:
        found = error.code
    assert isinstance(found, dict) or found == 2


@pytest.mark.parametrize(
    ("pairs", "document", "told"),
    [
        (["x"], None, "'x' is not of the form key=value"),
        (["=1"], None, "'=1' is not of the form key=value"),
        (["a=1", "a=2"], None, "a is given twice"),
        (["a=1"], "{}", "not both"),
        ([], "[1]", "must be a JSON object"),
        ([], "{", "not JSON"),
        ([], '{"a": {"b": 1, "b": 2}}', r"a\.b: stands twice"),
        (['a={"b": 1, "b": 2}'], None, "b: stands twice"),
    ],
)
def test_inputs_that_cannot_be_read_are_exit_2(pairs, document, told):
    with pytest.raises(CliError, match=told) as caught:
        read_inputs(pairs, document)
    assert caught.value.code == 2
    assert caught.value.error_code == ("ENVELOPE_MALFORMED" if "stands twice" in told else "")


def test_inputs_as_a_document_come_back_as_a_document(comity, app):
    ran = comity("call", "WORK", "ECHO", "--json", '{"a": [1, {"b": null}]}')
    assert ran.code == 0
    assert ran.document["data"] == {"a": [1, {"b": None}]}
    assert set(ran.document) == FIELDS


def test_a_model_reads_the_message_and_the_call_belongs_to_the_session(comity, place):
    (place / "talk.py").write_text(
        "from comity import Agent\nfrom comity.testing import ScriptedModel\n"
        "agent = Agent('A', model=ScriptedModel(lambda prompt: 'heard' if 'good morning' in str(prompt) else 'nothing'))\n"
    )
    shown = comity("agents", "A", "--app", "talk:agent").out
    assert "comity call A message --message '…'" in shown
    ran = comity("call", "A", "message", "--message", "good morning", "--session", "s1", "--app", "talk:agent", "--json")
    assert ran.document["message"] == "heard"
    assert [one["id"] for one in comity("sessions", "list", "--json").document["sessions"]] == ["s1"]


def test_what_agents_print_is_no_part_of_the_result(comity, place):
    (place / "loud.py").write_text(
        "from comity import Agent\nprint('imported')\nagent = Agent('A')\n"
        "@agent.capability('GO')\nasync def go() -> int:\n    print('at work')\n    return 1\n"
    )
    ran = comity("call", "A", "GO", "--app", "loud:agent", "--json")
    assert ran.document["data"] == 1
    assert ran.err == "imported\nat work\n"


def test_inputs_may_come_from_stdin(comity, app, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"name": "Ada"}')))
    assert comity("call", "WORK", "GREET", "--json", "-").document["data"] == "hello Ada"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b" " * (INPUTS_BYTES_MAX + 1))))
    assert "larger than" in comity("call", "WORK", "GREET", "--inputs", "-").err


@pytest.mark.parametrize(
    ("arguments", "code", "status", "error"),
    [
        (["WORK", "GREET", "name=Ada"], 0, "success", None),
        (["WORK", "CRASH"], 1, "error", "TARGET_CRASHED"),
        (["WORK", "HANG", "--timeout-ms", "50"], 1, "timeout", "CALL_TIMEOUT"),
        (["WORK", "QUESTION"], 1, "needs_input", None),
        (["BOSS", "RELAY"], 1, "error", "ROUTING_UNKNOWN_AGENT"),  # BOSS is there and ran
        (["WORK", "GREET"], 2, "refused", "INPUT_VALIDATION_FAILED"),
        (["WORK", "GREET", "name=Ada", "--user", ""], 2, "refused", "IDENTITY_INVALID"),
        (["SHUT", "ANY"], 3, "refused", "ROUTING_AGENT_IN_MAINTENANCE"),
        (["OLD", "ANY"], 3, "refused", "ROUTING_AGENT_RETIRED"),
        (["WORX", "GREET"], 4, "refused", "ROUTING_UNKNOWN_AGENT"),
        (["WORK", "GREAT"], 4, "refused", "ROUTING_UNKNOWN_CAPABILITY"),
    ],
)
def test_how_a_call_ended_is_its_exit_code(comity, app, arguments, code, status, error):
    ran = comity("call", *arguments, "--json")
    document = ran.document
    assert (ran.code, document["status"]) == (code, status)
    assert document["exit_code"] == code
    assert (document["error"] or {"code": None})["code"] == error
    assert set(document) == FIELDS


def test_an_unknown_name_is_answered_with_the_nearest_and_where_to_look(comity, app):
    ran = comity("call", "WORK", "GREAT")
    assert "did you mean GREET" in ran.out
    assert "`comity agents` lists the agents" in ran.out


def test_every_bad_input_is_named_with_its_path(comity, app):
    ran = comity("call", "WORK", "GREET", "nme=Ada", "times=two")
    assert ran.code == 2
    for path in ("inputs.name: ", "inputs.times: ", "inputs.nme: "):
        assert path in ran.out
    assert "`comity agents WORK` shows what GREET takes" in ran.out


def test_an_agents_words_cannot_steer_the_terminal_and_its_traceback_stays_away(comity, app):
    ran = comity("call", "WORK", "CRASH")
    assert "it \ufffd[31m broke" in ran.out
    assert "Traceback" not in ran.out + ran.err


def test_the_same_request_id_returns_the_first_outcome(comity, app):
    first = comity("call", "WORK", "GREET", "name=Ada", "--request-id", "same", "--json").document
    again = comity("call", "WORK", "GREET", "name=Ada", "--request-id", "same", "--json").document
    other = comity("call", "WORK", "GREET", "name=Bob", "--request-id", "same", "--json")
    assert again == first
    assert (other.code, other.document["error"]["code"]) == (2, "IDENTITY_REQUEST_ID_REUSED")


def test_the_store_is_where_it_was_named_and_the_next_step_names_it(comity, app, place, monkeypatch):
    ran = comity("call", "WORK", "GREET", "name=Ada", "--store", "deep/my store.db")
    assert (place / "deep" / "my store.db").is_file()
    assert not (place / "comity.db").exists()
    assert ran.out.splitlines()[-1].endswith(" --store 'deep/my store.db'")
    monkeypatch.setenv("COMITY_STORE", "other.db")
    assert "--store" not in comity("call", "WORK", "GREET", "name=Ada").out.splitlines()[-1]
    assert (place / "other.db").is_file()


def test_a_store_that_cannot_be_used_is_exit_5(comity, app, place):
    (place / "text.db").write_text("no store" * 1000, encoding="utf-8")
    ran = comity("call", "WORK", "GREET", "name=Ada", "--store", "text.db")
    assert ran.code == 5
    assert "text.db" in ran.err
    assert "Traceback" not in ran.err
    assert (place / "text.db").read_text(encoding="utf-8") == "no store" * 1000


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_call_that_is_interrupted_or_told_to_end_is_cancelled_and_recorded(comity, hanging, number, code):
    process = hanging("hung")
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert process.returncode == code
    assert out == ""
    told, hint = err.splitlines()
    assert told == "error: interrupted; the call was cancelled"
    assert hint.endswith("comity show hung")
    (call,) = comity("show", "hung", "--json").document["calls"]
    assert call["status"] == "cancelled"
    assert "its caller cancelled it" in call["note"]


def test_a_short_call_does_not_take_over_the_work_of_a_node_that_died(comity, app, hanging):
    process = hanging("hung")
    process.kill()
    process.wait()
    assert comity("call", "WORK", "GREET", "name=Ada").code == 0
    calls = {call["request_id"]: call["status"] for call in comity("calls", "--json").document["calls"]}
    assert calls["hung"] == "open"


@pytest.mark.parametrize(
    ("document", "told"),
    [("[" * 100_000, "the inputs are nested too deeply"), (" ", "the inputs are empty; no inputs are {}"), ("{", "not JSON")],
    ids=["deep", "empty", "broken"],
)
def test_inputs_that_cannot_be_read_say_why_in_words(document, told):
    with pytest.raises(CliError, match=re.escape(told)):
        read_inputs([], document)
