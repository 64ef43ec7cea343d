"""`comity doctor` says whether machine, store and agents are fit to work."""

import asyncio
import contextlib
import sqlite3
import sys

import pytest

from comity import Agent, Node
from comity.cli.commands import doctor


def checks(ran):
    found = {}
    for check in ran.document["checks"]:
        found.setdefault(check["name"], []).append((check["level"], check["detail"]))
    return found


def test_a_sound_place_is_exit_0(comity, used):
    ran = comity("doctor", "--json")
    assert ran.code == 0
    assert ran.document["ok"]
    found = checks(ran)
    assert set(found) == {"python", "sqlite", "packages", "disk space", "durable writes", "fsync", "store", "spans", "agents"}
    assert found["python"][0][1].startswith(sys.version.split()[0])
    assert found["sqlite"] == [("ok", sqlite3.sqlite_version)]
    assert found["durable writes"] == [("ok", "WAL with synchronous=FULL works here")]
    assert "audit rows, chain whole" in found["store"][0][1]
    assert ("ok", "app:make: 4 agents, 9 capabilities") in found["agents"]


def test_it_is_told_in_words_too(comity, used):
    ran = comity("doctor")
    assert ran.code == 0
    assert "Fit to work, with 1 warning." in ran.out  # BOSS may call GONE, which is not there


def test_a_model_without_its_key_is_a_warning_that_names_the_variable(comity, place, monkeypatch):
    for name in ("OPENAI_API_KEY", "COMITY_MODEL"):
        monkeypatch.delenv(name, raising=False)
    (place / "r.yaml").write_text("agents: [{id: clerk, model: 'openai:gpt-4o', can_call: []}]", encoding="utf-8")
    ran = comity("doctor", "--app", "r.yaml", "--json")
    assert ran.code == 0
    assert any(
        level == "warning" and "clerk cannot think here" in told and "OPENAI_API_KEY" in told
        for level, told in checks(ran)["agents"]
    )


def test_a_file_system_without_a_write_ahead_log_is_exit_5(comity, monkeypatch):
    monkeypatch.setattr(doctor, "connect", sqlite3.connect)  # leaves the journal as a file system without shared memory would
    ran = comity("doctor", "--json")
    assert ran.code == 5
    assert checks(ran)["durable writes"] == [("failed", "journal delete, synchronous 2: not durable")]


def test_nothing_is_left_behind_and_no_store_is_made(comity, place):
    before = sorted(path.name for path in place.iterdir())
    ran = comity("doctor", "--store", "deep/er/none.db", "--json")
    assert ran.code == 0
    assert "does not exist yet" in checks(ran)["store"][0][1]
    assert sorted(path.name for path in place.iterdir()) == before


def test_without_an_app_the_way_to_one_is_a_warning(comity):
    ran = comity("doctor", "--json")
    assert ran.code == 0
    assert checks(ran)["agents"][0][0] == "warning"
    assert "--app comity.demo:agents" in checks(ran)["agents"][0][1]


def test_a_damaged_audit_is_exit_5(comity, used, place):
    connection = sqlite3.connect(place / "comity.db")
    connection.execute("DELETE FROM audit WHERE id = 2")
    connection.commit()
    connection.close()
    ran = comity("doctor", "--json")
    assert ran.code == 5
    assert checks(ran)["store"] == [("failed", "the audit of comity.db is damaged: row 2 is missing")]


def test_a_file_that_is_no_store_is_exit_5(comity, place):
    (place / "comity.db").write_text("text" * 1000, encoding="utf-8")
    ran = comity("doctor")
    assert ran.code == 5
    assert "1 failed: repair that first." in ran.out


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("def f(*values): return 1", "ODD C cannot be called: parameter 'values'"),
        ("def f(value: 'Unknown'): return 1", "ODD C cannot be called: the annotations of f cannot be read"),
    ],
)
def test_a_capability_that_cannot_be_prepared_is_exit_2(comity, place, source, told):
    text = f"from comity import Agent\nodd = Agent('ODD')\n@odd.capability('C')\n{source}\n"
    (place / "odd.py").write_text(text, encoding="utf-8")
    sys.modules.pop("odd", None)
    ran = comity("doctor", "--app", "odd:odd", "--json")
    assert ran.code == 2
    assert any(level == "failed" and told in detail for level, detail in checks(ran)["agents"])


def test_an_app_that_cannot_be_loaded_is_exit_2_and_the_other_checks_still_run(comity):
    ran = comity("doctor", "--app", "nowhere:agents", "--json")
    assert ran.code == 2
    assert "there is no module 'nowhere'" in checks(ran)["agents"][0][1]
    assert checks(ran)["durable writes"][0][0] == "ok"


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("odd.capability('CASE', doing='CASE is looking…')(len)\n", "ODD CASE: users would be told 'CASE is looking…'"),
        (
            "one, two = Tool(name='T', function=len), Tool(name='T', function=max)\nodd = Node([odd], tools=[one, two])\n",
            "named T",
        ),
        ("odd = Node([odd], guidance='broken.yaml')\n", "no node of unfit:odd can start: guidance has problems"),
    ],
    ids=["what users are told", "tools", "guidance"],
)
def test_a_node_that_could_not_start_is_not_fit_to_work(comity, place, more, told):
    (place / "unfit.py").write_text(f"from comity import Agent, Node, Tool\nodd = Agent('ODD')\n{more}", encoding="utf-8")
    (place / "broken.yaml").write_text("spec: 5", encoding="utf-8")
    sys.modules.pop("unfit", None)
    ran = comity("doctor", "--app", "unfit:odd", "--json")
    assert ran.code == comity("call", "ODD", "CASE", "--app", "unfit:odd").code == 2
    assert any(level == "failed" and told in detail for level, detail in checks(ran)["agents"])


def test_a_tool_that_is_allowed_and_not_there_is_a_warning(comity, place):
    text = "from comity import Agent, Node, Tool\nnode = Node([Agent('ODD', tools_allowed=['here', 'gone'])], tools=[TOOL])\n"
    (place / "unfit.py").write_text(text.replace("TOOL", "Tool(name='here', function=len)"), encoding="utf-8")
    ran = comity("doctor", "--app", "unfit:node", "--json")
    assert ("warning", "ODD may use gone, a tool that this node does not have") in checks(ran)["agents"]
    assert ran.code == 0


def test_a_name_in_can_call_that_leads_nowhere_is_a_warning(comity, app):
    assert ("warning", "BOSS may call GONE, which this node does not have") in checks(comity("doctor", "--json"))["agents"]


def test_handoffs_that_were_set_aside_are_a_warning_that_names_them(comity, place):
    comity("handoff", "create", "look", "--to", "o11y", "--id", "h-1")
    with contextlib.closing(sqlite3.connect(place / "comity.db")) as connection, connection:
        connection.execute("UPDATE handoffs SET state = 'unreadable', due_at = NULL")
    ran = comity("doctor", "--json")
    assert (ran.code, checks(ran)["handoffs"]) == (0, [("warning", "1 handoff that cannot be read: h-1")])


def test_guidance_is_looked_for_where_the_engine_keeps_it():
    from comity.cli.commands.doctor import GUIDANCE_FOLDER
    from comity.engines.files.guidance import FOLDER_DEFAULT

    assert GUIDANCE_FOLDER == FOLDER_DEFAULT


def test_a_key_that_others_can_read_fails_also_where_the_store_hides_nothing_yet(comity, used, place):
    (place / "comity.db.key").chmod(0o640)
    ran = comity("doctor", "--json")
    assert ran.code == 5
    ((level, told),) = checks(ran)["key"]
    assert level == "failed"
    assert "chmod 600 comity.db.key" in told


def test_an_agent_whose_code_ran_on_after_its_call_ended_is_named(comity, place, monkeypatch):
    monkeypatch.setattr("comity.runtime.call.stopping.SEAT_GRACE_S", 0.02)
    agent = Agent("MULE", concurrency=1)
    enough = False

    @agent.capability("STAY")
    async def stay():
        while not enough:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0.01)

    @agent.capability("NEXT")
    async def following():
        return 1

    async def main():
        nonlocal enough
        async with Node([agent], store=place / "comity.db", lag_ms=None) as node:
            for _ in range(2):
                await node.call("MULE", "STAY", user_id="u", timeout_ms=20)
                assert (await node.call("MULE", "NEXT", user_id="u")).ok
            enough = True

    asyncio.run(main())
    ran = comity("doctor", "--json")
    assert ran.code == 0
    ((level, told),) = checks(ran)["calls"]
    assert level == "warning"
    assert told.startswith("MULE STAY ran on after the end of its call, 2 times, last at ")
