"""`comity agents` shows who there is and what one can do."""

import shlex

import pytest

from comity.cli.commands.agents import kind_of


def test_every_agent_is_listed_with_status_and_capabilities(comity, app):
    ran = comity("agents")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert any(line.startswith("WORK (hands)") and "active" in line and "GREET, ECHO, CRASH" in line for line in lines)
    assert any(line.startswith("SHUT") and "maintenance" in line for line in lines)


def test_the_list_as_json_has_every_field_of_an_agent(comity, app):
    document = comity("agents", "--json").document
    assert document["app"] == "app:make"
    boss = document["agents"][0]
    assert boss["id"] == "BOSS"
    assert boss["can_call"] == ["GONE", "WORK"]
    assert boss["capabilities"][0]["code"] == "ASK"
    assert "input_schema" not in boss["capabilities"][0]


def test_an_agent_that_thinks_is_shown_with_its_model_and_what_its_prompt_costs(comity, tmp_path):
    (tmp_path / "team.yaml").write_text("agents: [{id: prime, model: openai:gpt-4o, use_standard_protocol: true}, {id: plain}]")
    app = ("--app", str(tmp_path / "team.yaml"))
    listed = comity(*app, "agents").out.splitlines()
    assert listed[0].split()[-1] == "model"
    assert listed[1].endswith("openai:gpt-4o")
    assert "thinks with openai:gpt-4o, 282 tokens of instructions" in comity(*app, "agents", "prime").out
    (prime, plain) = comity(*app, "agents", "--json").document["agents"]
    assert (prime["model"], prime["prompt_tokens"], plain["model"]) == ("openai:gpt-4o", 282, None)


def test_one_agent_is_shown_with_its_inputs_and_a_call_that_works(comity, app):
    ran = comity("agents", "hands")
    assert ran.code == 0
    assert "  name: text\n  times: whole number, optional\n" in ran.out
    (line,) = (line for line in ran.out.splitlines() if line.startswith("  comity call WORK GREET"))
    assert comity(*shlex.split(line)[1:]).code == 0


def test_a_suggested_call_has_what_nested_objects_need_and_works(comity, place):
    (place / "shop.py").write_text(
        "from typing import Literal\nfrom pydantic import BaseModel\nfrom comity import Agent\n"
        "class Tree(BaseModel):\n    name: str\n    count: int\n    size: Literal['s', 'm']\n    inner: list['Tree'] = []\n"
        "agent = Agent('A')\n"
        "@agent.capability('GO')\ndef go(trees: list[Tree], one: Tree | None, when: bool) -> int:\n    return trees[0].count\n"
    )
    (suggested,) = [line for line in comity("agents", "A", "--app", "shop:agent").out.splitlines() if "comity call" in line]
    ran = comity(*shlex.split(suggested)[1:], "--app", "shop:agent")
    assert ran.code == 0, ran


def test_the_calls_suggested_for_the_demo_work(comity, monkeypatch):
    monkeypatch.setenv("COMITY_APP", "comity.demo:agents")
    lines = [line for line in comity("agents", "ANL").out.splitlines() if "comity call ANL ANL_NPV" in line]
    assert '"npv": 17206.82' in comity(*shlex.split(lines[0])[1:]).out


def test_one_agent_as_json_has_its_schemas(comity, app):
    agent = comity("agents", "WORK", "--json").document["agent"]
    greet = agent["capabilities"][0]
    assert greet["input_schema"]["required"] == ["name"]
    assert greet["output_schema"] == {"type": "string"}
    assert greet["implementations"] == [{"name": "greet", "priority": 1, "run_in": "loop"}]


def test_an_unknown_agent_is_answered_with_the_nearest(comity, app):
    ran = comity("agents", "WROK")
    assert ran.code == 4
    assert "app:make has no agent 'WROK'" in ran.err
    assert "Did you mean WORK?" in ran.err


def test_a_capability_whose_schema_cannot_be_built_says_so(comity, place):
    (place / "odd.py").write_text(
        "from comity import Agent\nodd = Agent('ODD')\n@odd.capability('C')\ndef f(*values): return 1\n", encoding="utf-8"
    )
    ran = comity("agents", "ODD", "--app", "odd:odd")
    assert ran.code == 0
    assert "cannot be called: parameter 'values'" in ran.out
    assert "schema_error" in comity("agents", "ODD", "--app", "odd:odd", "--json").document["agent"]["capabilities"][0]


def test_an_application_without_agents_says_so(comity, place):
    (place / "r.yaml").write_text("agents: []", encoding="utf-8")
    ran = comity("agents", "--app", "r.yaml")
    assert (ran.code, ran.out) == (0, "r.yaml has no agents.\n")


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ({"type": "array", "items": {"type": "number"}}, "list of numbers"),
        ({"type": "array"}, "list"),
        ({"enum": ["a", "b"]}, "one of a, b"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "text or null"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"$ref": "#/$defs/Node"}, "object"),
        (True, "anything"),
        ({}, "anything"),
    ],
)
def test_a_schema_is_put_into_words(schema, words):
    assert kind_of(schema, {"$defs": {"Node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}}}) == words


def test_a_schema_that_refers_to_itself_ends():
    assert kind_of({"$ref": "#/$defs/Loop"}, {"$defs": {"Loop": {"$ref": "#/$defs/Loop"}}}) == "anything"
