"""`comity handoff`: from creating to ending, each step a command of its own."""

from __future__ import annotations

import json
import signal
import sys
import threading

import pytest

from comity import HandoffReceiver


@pytest.fixture
def made(comity):
    """A handoff that waits."""
    ran = comity(
        "handoff",
        "create",
        "investigate",
        "app=checkout",
        "--to",
        "o11y",
        "--task",
        "Find it",
        "--expect",
        "cause",
        "--id",
        "h-1",
    )
    assert ran.code == 0, ran.err
    return "h-1"


def test_work_goes_from_create_to_complete_command_by_command(comity, made):
    listed = comity("handoff", "list", "--json").document["handoffs"]
    assert [(one["id"], one["state"], one["task"]) for one in listed] == [(made, "pending", "Find it")]
    accepted = comity("handoff", "accept", made)
    assert accepted.code == 0
    assert '"app": "checkout"' in accepted.out
    assert comity("handoff", "show", made, "--json").document["state"] == "accepted"  # though its process has ended
    wrong = comity("handoff", "complete", made, "effect=1", "--json")
    assert (wrong.code, wrong.document["error"]["problems"]) == (2, [{"path": "result.cause", "message": "is required"}])
    ended = comity("handoff", "complete", made, "cause=N+1", "--trace-id", "t-9", "--json").document
    assert (ended["state"], ended["result"], ended["result_trace_id"]) == ("completed", {"cause": "N+1"}, "t-9")
    shown = comity("handoff", "show", made)
    assert "completed" in shown.out
    assert '"cause": "N+1"' in shown.out
    assert [one["kind"] for one in comity("handoff", "show", made, "--json").document["history"]] == [
        "created", "accepted", "completed",
    ]  # fmt: skip
    assert comity("audit", "verify").code == 0


def test_what_failed_or_timed_out_is_among_the_dead_letters_with_its_reason(comity, made):
    comity("handoff", "accept", made)
    assert comity("handoff", "fail", made, "no data").code == 0
    late = comity("handoff", "create", "investigate", "--timeout-ms", "1", "--id", "late", "--wait", "--json")
    assert (late.code, late.document["state"]) == (1, "timeout")
    comity("handoff", "create", "investigate", "--id", "open")
    dead = comity("handoff", "list", "--dead", "--json").document["handoffs"]
    assert {one["id"]: one["error_code"] for one in dead} == {made: "TARGET_FAILED", "late": "CALL_TIMEOUT"}
    told = comity("handoff", "list", "--dead").out
    assert "no data" in told
    assert "open" not in told
    assert [one["id"] for one in comity("handoff", "list", "--to", "o11y", "--json").document["handoffs"]] == [made]
    assert [one["id"] for one in comity("handoff", "list", "--state", "pending", "--json").document["handoffs"]] == ["open"]


def test_what_is_for_any_agent_says_so_and_names_its_capability_once(comity, place):
    told = [comity("handoff", "create", "investigate", "--task", "Find it", "--id", "h-2").out]
    told += [comity(*words).out for words in (("handoff", "list"), ("handoff", "show", "h-2"))]
    assert all("any agent" in one for one in told)
    told += [comity(*words).out for words in (("calls",), ("audit", "list"), ("show", "h-2"))]
    for one in told:
        assert "investigate" in one
        assert "investigate investigate" not in " ".join(one.split())


def test_only_its_user_withdraws_a_handoff(comity, made):
    assert comity("handoff", "cancel", made, "--user", "eve").code == 4
    assert comity("handoff", "cancel", made, "--reason", "done by hand", "--json").document["reason"] == "done by hand"
    again = comity("handoff", "cancel", made)
    assert again.code == 3
    assert "HANDOFF_ENDED" in again.err


def test_an_id_of_another_handoff_is_bad_input_and_no_second_handoff(comity, made):
    reused = comity("handoff", "create", "something_else", "--id", made, "--json")
    assert (reused.code, reused.document["error"]["code"]) == (2, "IDENTITY_REQUEST_ID_REUSED")


def test_what_is_turned_down_ends_with_the_reason(comity, made):
    ran = comity("handoff", "reject", made, "not my service", "--json")
    assert (ran.code, ran.document["state"]) == (0, "rejected")
    (dead,) = comity("handoff", "list", "--dead", "--json").document["handoffs"]
    assert (dead["id"], dead["reason"]) == (made, "not my service")
    assert comity("handoff", "reject", made, "again").code == 3


def test_a_question_of_the_receiver_is_answered_from_a_terminal(comity, made):
    asked, answers = threading.Event(), []

    def work():
        with HandoffReceiver("o11y", store="comity.db") as receiver:
            receiver.accept(made)
            asked.set()
            answers.append(receiver.request_input(made, "Which region?", input_type="choice", options=["eu", "us"]))
            receiver.complete(made, {"cause": answers[0]})

    worker = threading.Thread(target=work)
    worker.start()
    assert asked.wait(10)
    ran = comity("handoff", "answer", made, "eu")
    while ran.code == 3 and worker.is_alive():  # it has not asked yet
        ran = comity("handoff", "answer", made, "eu")
    worker.join(60)
    assert (ran.code, answers) == (0, ["eu"])
    assert comity("handoff", "show", made, "--json").document["result"] == {"cause": "eu"}


def test_what_cannot_be_done_says_why_and_what_to_do(comity, made):
    assert comity("handoff", "show", "nothing").code == 4
    not_taken = comity("handoff", "complete", made, "cause=x")
    assert (not_taken.code, "HANDOFF_LEASE_LOST" in not_taken.err, "handoff accept" in not_taken.err) == (3, True, True)
    comity("handoff", "accept", made)
    taken = comity("handoff", "accept", made)
    assert (taken.code, "HANDOFF_TAKEN" in taken.err) == (3, True)
    assert comity("handoff", "accept", made, "--agent", "somebody").code == 4
    comity("handoff", "complete", made, "cause=x")
    ended = comity("handoff", "fail", made, "too late")
    assert (ended.code, "has ended: completed" in ended.err) == (3, True)
    assert comity("handoff", "create", "x", "broken").code == 2
    for empty in (["", "--to", "zed"], ["x", "--to", ""], ["x", "--id", ""]):
        assert "is empty" in (ran := comity("handoff", "create", *empty)).err
        assert ran.code == 2
    assert comity("handoff", "create", "x", "--to", "bad name!").code == 4
    assert comity("handoff", "list", "--state", "lost").code == 2


def test_commands_that_look_make_no_store(comity, place):
    for words in (("list",), ("show", "x"), ("accept", "x"), ("cancel", "x")):
        assert comity("handoff", *words).code == 4
    assert not (place / "comity.db").exists()


def test_a_store_without_handoffs_says_how_to_make_one(comity, used):
    assert "comity handoff create" in comity("handoff", "list").out


def test_what_the_agents_of_the_application_declare_holds(comity, app):
    assert comity("handoff", "create", "GREET", "--to", "WORK", "times=x").code == 2
    assert comity("handoff", "create", "DANCE", "--to", "WORK").code == 4
    assert comity("handoff", "create", "GREET", "--to", "hands", "name=Ada").code == 0


def test_watching_shows_what_comes_and_takes_nothing(comity, made, start_process):
    command = [
        sys.executable,
        "-m",
        "comity",
        "handoff",
        "watch",
        "o11y",
        "--capability",
        "investigate",
        "--json",
    ]
    process = start_process(command)
    assert json.loads(process.stdout.readline())["id"] == made
    comity("handoff", "create", "investigate", "--id", "anybody's")
    assert json.loads(process.stdout.readline())["id"] == "anybody's"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=30) == ("", "")  # that is how it ends: no error, and no document more
    assert process.returncode == 130
    assert {one["state"] for one in comity("handoff", "list", "--json").document["handoffs"]} == {"pending"}


def test_watching_ends_after_so_many(comity, made):
    ran = comity("handoff", "watch", "o11y", "--limit", "1", "--json")
    assert (ran.code, ran.document["id"], ran.out.count("\n")) == (0, made, 1)


def test_nobody_can_be_watched(comity, place):
    assert comity("handoff", "watch", "").code == 2


def test_watching_makes_no_store(comity, place):
    ran = comity("handoff", "watch", "o11y", "--store", "absent/new.db")
    assert (ran.code, "does not exist" in ran.err) == (4, True)
    assert not (place / "absent").exists()
    assert comity("handoff", "watch", "o11y", "--json").out.count("\n") == 1, "an error stands on one line too"


def test_a_receiver_the_application_does_not_have_is_answered_with_the_one_that_was_meant(comity, app):
    ran = comity("handoff", "create", "GREET", "--to", "WORKK", "--id", "h-9")
    assert ran.code == 0
    assert "app:make has no agent 'WORKK'; if WORK was meant, `comity handoff cancel h-9` withdraws this." in ran.out
    assert "was meant" not in comity("handoff", "create", "GREET", "name=Ada", "--to", "hands").out
