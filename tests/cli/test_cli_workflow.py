"""`comity workflow` and `comity ask` from end to end: checked, drawn, run, answered, replayed, forked."""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from death import die

from comity import Agent, Node
from comity.cli.commands.serve import served_node
from comity.cli.main import main
from comity.cli.ui.exits import Exit
from comity.workflow import load

APP = """
from comity import Agent
from comity.agents.orchestrator import Orchestrator

calc = Agent("CALC", description="Sums")

@calc.capability("ADD", description="Add two numbers", utterances=("add these numbers", "what is the sum"))
async def add(a: float, b: float) -> dict:
    return {"sum": a + b}

@calc.capability("NOTE", description="Write a note about a result", utterances=("write a note", "note it down"))
async def note(topic: str) -> dict:
    return {"note": f"About {topic}"}

agents = [calc, Orchestrator()]
"""
CLERK = "flow_clerk:agents"  # as `ask_in_two_parts` writes them
FLOW = """
workflow: adding
version: "1"
input: {type: object, required: [a, b], properties: {a: {type: number}, b: {type: number}}}
nodes:
  plus: {call: CALC/ADD, input: {a: "{{input.a}}", b: "{{input.b}}"}}
  sure: {ask: "Is {{plus.data.sum}} right?", options: ["yes", "no"], after: [plus]}
  write: {call: CALC/NOTE, input: {topic: "sum {{plus.data.sum}}"}}
edges:
  - {from: sure, when: 'response.data.answer == "yes"', to: write}
  - {from: sure, else: true, to: end}
output: {note: "{{write.data.note}}"}
"""
PLAIN = """
workflow: plain
nodes:
  plus: {call: CALC/ADD, input: {a: "{{input.a}}", b: "{{input.b}}"}}
  write: {call: CALC/NOTE, input: {topic: "sum {{plus.data.sum}}"}, after: [plus]}
output: {note: "{{write.data.note}}"}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flow_agents.py").write_text(APP)
    (tmp_path / "flow.yaml").write_text(FLOW)
    return tmp_path


def told(capsys: pytest.CaptureFixture[str], *arguments: str, app: str = "flow_agents:agents") -> tuple[int, Any]:
    capsys.readouterr()
    code = main([*arguments, "--json", "--app", app, "--store", "w.db"])
    printed = capsys.readouterr().out
    return code, json.loads(printed) if printed.strip().startswith("{") and "\n{" not in printed.strip() else printed


def test_a_definition_is_checked_with_line_and_column(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "workflow", "check", "flow.yaml") == (0, {"file": "flow.yaml", "mistakes": []})
    (here / "bad.yaml").write_text(FLOW.replace("CALC/ADD", "CALC/AD").replace("to: write", "to: wrote"))
    code, document = told(capsys, "workflow", "check", "bad.yaml")
    assert code == 2
    assert any("wrote" in one["message"] and one["line"] for one in document["mistakes"])


def test_a_run_waits_for_a_person_is_answered_in_another_process_and_ends(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, first = told(capsys, "workflow", "run", "flow.yaml", "a=1", "b=2", "--run-id", "run-1")
    (question,) = first["run"]["questions"]
    assert (code, first["reply"], question["text"]) == (1, None, "Is 3.0 right?")
    code, listed = told(capsys, "workflow", "list", "--status", "waiting")
    assert [one["run_id"] for one in listed["runs"]] == ["run-1"]
    code, ended = told(capsys, "workflow", "answer", "run-1", question["question_id"], "yes")
    assert (code, ended["reply"]["data"]) == (0, {"note": "About sum 3.0"})
    code, shown = told(capsys, "workflow", "show", "run-1")
    assert shown["states"] == {"plus": "done", "sure": "done", "write": "done"}
    code, replayed = told(capsys, "workflow", "replay", "run-1")
    assert next(one["event"] for one in replayed["events"]) == "the start"
    code, why = told(capsys, "workflow", "why", "run-1", "sure")
    assert [one["taken"] for one in why["decisions"]] == [True, False]
    code, drawn = told(capsys, "workflow", "draw", "run-1")
    assert "style write fill" in drawn["mermaid"]
    code, forked = told(capsys, "workflow", "fork", "run-1", "--at", "1", "a=5", "b=6")
    assert forked["run"]["questions"][0]["text"] == "Is 11.0 right?"
    code, _ = told(capsys, "workflow", "cancel", forked["run"]["run_id"])
    assert code == 0


def test_a_graph_is_drawn_as_lines_and_as_mermaid(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["workflow", "draw", "flow.yaml"]) == 0
    lines = capsys.readouterr().out
    assert "└─▶ sure" in lines
    assert "(else)" in lines
    assert main(["workflow", "draw", "flow.yaml", "--mermaid"]) == 0
    assert 'sure -->|"else"| end__' in capsys.readouterr().out


def test_a_template_becomes_a_file_to_begin_with(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, document = told(capsys, "workflow", "new", "mine", "--template", "campaign_analysis")
    assert (code, document) == (0, {"file": "mine.yaml"})
    assert (here / "mine.yaml").read_text().startswith("workflow: mine\n")
    assert told(capsys, "workflow", "new", "mine")[0] == 2
    assert told(capsys, "workflow", "new", "bare")[0] == 0
    code, listed = told(capsys, "workflow", "list", "--templates")
    assert len(listed["templates"]) == 11


@pytest.mark.parametrize("verb", [("show", "nothing"), ("watch", "nothing"), ("why", "nothing")])
def test_a_run_that_is_not_there_is_not_found(here: Path, capsys: pytest.CaptureFixture[str], verb: tuple[str, str]) -> None:
    told(capsys, "workflow", "run", "flow.yaml", "a=1", "b=2", "--run-id", "run-1")
    assert told(capsys, "workflow", *verb)[0] == Exit.NOT_FOUND


def test_a_request_in_words_is_served_declined_or_asked_about(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, reply = told(capsys, "ask", "what is the sum", "a=1", "b=2")
    assert (code, reply["data"]["result"]) == (0, {"sum": 3.0})
    code, reply = told(capsys, "ask", "what is the capital of mongolia")
    assert reply["error"]["code"] == "ROUTING_INTENT_UNKNOWN"
    code, reply = told(capsys, "ask", "add these numbers", "--session", "other")
    assert (reply["status"], reply["data"]) == ("needs_input", {"missing": ["a", "b"]})
    code, reply = told(capsys, "ask", "note it down", "--classify")
    assert reply["data"]["route"] == {"target": "CALC", "capability": "NOTE"}
    code, reply = told(capsys, "ask", "jot this", "--correct", "CALC/NOTE")
    lesson = reply["data"]["lesson_id"]
    assert told(capsys, "ask", "-", "--undo", lesson)[1]["data"]["lessons"] == 0


def ask_in_two_parts(here: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Return the run of a request whose second part waits for a customer; the app has no orchestrator of its own."""
    (here / "flow_clerk.py").write_text(APP.replace("[calc, Orchestrator()]", "[calc]").replace("topic", "customer"))
    code, reply = told(capsys, "ask", "what is the sum and then write a note", "a=1", "b=2", app=CLERK)
    assert (code, reply["status"], reply["data"]["result"]) == (0, "partial", {"sum": 3.0})
    (run,) = told(capsys, "workflow", "list", "--status", "waiting")[1]["runs"]
    return run


def test_the_run_of_a_request_goes_on_when_its_question_is_answered(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ask_in_two_parts(here, capsys)
    (question,) = run["questions"]
    code, ended = told(capsys, "workflow", "answer", run["run_id"], question["question_id"], "Acme", app=CLERK)
    assert (code, ended["reply"]["status"], ended["reply"]["data"]["part_2"]) == (0, "success", {"note": "About Acme"})


def test_the_next_words_of_a_session_answer_the_part_that_waits(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ask_in_two_parts(here, capsys)
    code, reply = told(capsys, "ask", "Acme", app=CLERK)
    assert (code, reply["status"], reply["data"]["result"]) == (0, "success", {"sum": 3.0, "note": "About Acme"})
    (ended,) = told(capsys, "workflow", "list")[1]["runs"]
    assert (ended["run_id"], ended["status"]) == (run["run_id"], "completed")


def test_a_server_goes_on_with_a_run_that_ask_left_waiting(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = ask_in_two_parts(here, capsys)
    (question,) = run["questions"]

    async def answer() -> tuple[str, Any]:
        args = argparse.Namespace(app=CLERK, store="w.db", memory=False)
        async with served_node(args) as node:
            await node.workflows.answer(run["run_id"], question["question_id"], "Acme")
            reply = await node.workflows.result(run["run_id"])
            return reply.status, reply.data["part_2"]

    assert asyncio.run(answer()) == ("success", {"note": "About Acme"})


def test_words_of_another_session_leave_a_waiting_run_alone(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ask_in_two_parts(here, capsys)
    assert told(capsys, "ask", "what is the sum", "a=1", "b=2", "--session", "other", app=CLERK)[0] == 0
    (run,) = told(capsys, "workflow", "list")[1]["runs"]
    assert run["status"] == "waiting"


def test_a_waiting_run_is_watched_moved_to_a_new_version_and_resumed(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert told(capsys, "workflow", "run", "flow.yaml", "a=2", "b=3", "--run-id", "r1")[0] == Exit.NO_RESULT
    code, lines = told(capsys, "workflow", "watch", "r1")
    events = [json.loads(line)["kind"] for line in lines.splitlines()]
    assert (code, events[0], "asked" in events) == (Exit.OK, "started", True)

    (here / "v2.yaml").write_text(FLOW.replace('version: "1"', 'version: "2"').replace('"sum {{', '"the sum {{'))
    code, moved = told(capsys, "workflow", "migrate", "r1", "v2.yaml")
    assert (code, moved["run"]["version"]) == (Exit.OK, "2")

    code, still = told(capsys, "workflow", "resume", "r1")
    assert (code, still["run"]["status"], still["reply"]) == (Exit.NO_RESULT, "waiting", None)
    (question,) = still["run"]["questions"]
    code, ended = told(capsys, "workflow", "answer", "r1", question["question_id"], "yes")
    assert (code, ended["reply"]["data"]) == (Exit.OK, {"note": "About the sum 5.0"})


def test_a_run_stays_with_its_version_where_a_new_one_would_have_done_something_else(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "workflow", "run", "flow.yaml", "a=2", "b=3", "--run-id", "r1")
    (here / "v2.yaml").write_text(FLOW.replace('{a: "{{input.a}}", b: "{{input.b}}"}', '{a: "{{input.b}}", b: "{{input.a}}"}'))
    capsys.readouterr()
    code = main(["workflow", "migrate", "r1", "v2.yaml", "--app", "flow_agents:agents", "--store", "w.db"])
    assert code != Exit.OK
    assert "stays with its version" in capsys.readouterr().err
    assert told(capsys, "workflow", "show", "r1")[1]["run"]["version"] == "1"


def test_a_run_whose_process_was_killed_is_shown_as_such_with_the_steps_it_made(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agent = Agent("A")

    @agent.capability("ADD")
    async def add() -> dict:
        return {"n": 1}

    @agent.capability("SLOW")
    async def slow() -> None:
        await asyncio.Event().wait()

    async def killed() -> None:
        node = Node([agent], store="w.db", lag_ms=None)
        await node.start()
        node.workflows.add("workflow: w\nnodes:\n  a: {call: A/ADD}\n  b: {call: A/SLOW, after: [a]}\n")
        run = await node.workflows.start("w", user_id="u", run_id="r")
        while "b" not in run.record.active:
            await asyncio.sleep(0)
        await die(node)

    asyncio.run(killed())
    code, shown = told(capsys, "workflow", "show", "r")
    assert (code, shown["abandoned"], shown["run"]["steps"], shown["run"]["calls"]) == (0, True, 2, 2)
    assert told(capsys, "workflow", "list")[1]["runs"][0]["steps"] == 2
    assert main(["workflow", "list", "--store", "w.db"]) == 0
    assert "its node is gone" in capsys.readouterr().out
    assert main(["workflow", "show", "r", "--store", "w.db"]) == 0
    assert "its node is gone" in capsys.readouterr().out


def killed_in_note(run_id: str) -> None:
    """Leave a run in the store whose process was killed during its step `write`."""
    agent = Agent("CALC")

    @agent.capability("ADD")
    async def add(a: float, b: float) -> dict:
        return {"sum": a + b}

    @agent.capability("NOTE")
    async def note(topic: str) -> None:
        await asyncio.Event().wait()

    async def killed() -> None:
        node = Node([agent], store="w.db", lag_ms=None)
        await node.start()
        run = await node.workflows.start(load(PLAIN), {"a": 1, "b": 2}, user_id="local", run_id=run_id)
        while "write" not in run.record.active:
            await asyncio.sleep(0)
        await die(node)

    asyncio.run(killed())


def test_a_run_whose_process_was_killed_is_resumed_by_the_same_command(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "plain.yaml").write_text(PLAIN)
    killed_in_note("r")
    code, ended = told(capsys, "workflow", "run", "plain.yaml", "a=1", "b=2", "--run-id", "r")
    assert (code, ended["run"]["status"], ended["reply"]["data"]) == (0, "completed", {"note": "About sum 3.0"})
    again = told(capsys, "workflow", "run", "plain.yaml", "a=1", "b=2", "--run-id", "r")
    assert again == (0, ended)


@pytest.mark.parametrize("waits", ['ask: "Go?"', "wait: 50ms"])
def test_a_run_that_goes_on_after_it_waited_is_shown_as_running_also_once_it_was_killed(
    here: Path, capsys: pytest.CaptureFixture[str], waits: str
) -> None:
    flow = f"workflow: w\nnodes:\n  q: {{{waits}}}\n  b: {{call: A/SLOW, after: [q]}}\n"
    agent = Agent("A")

    @agent.capability("SLOW")
    async def slow() -> None:
        await asyncio.Event().wait()

    async def killed() -> Any:
        node = Node([agent], store="w.db", lag_ms=None)
        await node.start()
        run = await node.workflows.start(load(flow), user_id="u", run_id="r")
        if "ask" in waits:
            while run.record.status != "waiting":
                await asyncio.sleep(0)
            await run.answer(run.record.questions[0].question_id, "yes")
        while "b" not in run.record.active:
            await asyncio.sleep(0.001)
        await asyncio.sleep(0)
        await node.workflows.durable()
        seen = await asyncio.to_thread(told, capsys, "workflow", "show", "r")
        await die(node)
        return seen

    for _, shown in (asyncio.run(killed()), told(capsys, "workflow", "show", "r")):
        assert (shown["run"]["status"], shown["run"]["steps"], shown["run"].get("questions", [])) == ("running", 1, [])
    assert shown["abandoned"]
    assert told(capsys, "workflow", "list", "--status", "waiting")[1]["runs"] == []
    assert main(["workflow", "show", "r", "--store", "w.db"]) == 0
    assert "`comity workflow resume r`" in capsys.readouterr().out


def test_a_list_without_a_match_says_so_and_a_status_that_there_is_not_is_refused(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told(capsys, "workflow", "run", "flow.yaml", "a=1", "b=2", "--run-id", "run-1")
    assert main(["workflow", "list", "--status", "failed", "--store", "w.db"]) == 0
    assert "No run in the store w.db is failed." in capsys.readouterr().out
    assert main(["workflow", "list", "--status", "wating", "--store", "w.db"]) == Exit.USAGE
    assert "waiting" in capsys.readouterr().err
    assert main(["workflow", "list", "--limit", "0", "--store", "w.db"]) == Exit.USAGE


def test_why_refuses_a_node_that_the_workflow_does_not_have(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told(capsys, "workflow", "run", "flow.yaml", "a=1", "b=2", "--run-id", "run-1")
    assert told(capsys, "workflow", "why", "run-1", "write") == (0, {"decisions": []})
    capsys.readouterr()
    assert main(["workflow", "why", "run-1", "nope", "--store", "w.db"]) == Exit.NOT_FOUND
    assert "has no node 'nope'; its nodes are start, plus, sure, write" in capsys.readouterr().err.replace("\n", " ")


@pytest.mark.parametrize(("options", "person"), [(["--user", "carol"], "carol"), ([], "someone")])
def test_the_person_who_answers_is_the_given_user_or_that_of_the_operating_system(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, options: list[str], person: str
) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "someone")
    _, asked = told(capsys, "workflow", "run", "flow.yaml", "a=1", "b=2", "--run-id", "run-1")
    answer = ["workflow", "answer", "run-1", asked["run"]["questions"][0]["question_id"], "yes", *options]
    assert told(capsys, *answer)[0] == 0
    assert main([*answer, "--store", "w.db"]) == Exit.USAGE
    assert f"was answered by {person} at" in capsys.readouterr().err.replace("\n", " ")
