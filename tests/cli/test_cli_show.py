"""`comity show` draws the tree of a call from the store alone."""

from textwrap import dedent


def test_the_whole_tree_is_drawn_with_timing_and_refusals(comity, used):
    ran = comity("show", "job-1")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert "job-1  user local" in lines[0]
    assert lines[1].startswith("BOSS ASK")
    assert any(line.startswith("├── WORK GREET") and "success" in line for line in lines)
    assert any("TARGET_CRASHED: WORK CRASH raised ValueError" in line for line in lines)
    assert any("SHUT ANY" in line and "refused" in line for line in lines)
    assert any("ROUTING_AGENT_IN_MAINTENANCE" in line for line in lines)


def test_the_tree_as_json_nests_its_calls(comity, used):
    document = comity("show", "job-1", "--json").document
    assert (document["root_id"], document["user_id"]) == ("job-1", "local")
    (root,) = document["calls"]
    assert (root["target"], root["capability"], root["status"]) == ("BOSS", "ASK", "success")
    assert root["duration_ms"] == used["duration_ms"]
    children = {child["capability"]: child for child in root["children"]}
    assert children["GREET"]["status"] == "success"
    assert children["CRASH"]["error_code"] == "TARGET_CRASHED"
    assert children["ANY"]["error_code"] == "ROUTING_AGENT_IN_MAINTENANCE"
    assert children["ANY"]["children"] == []


def test_any_call_of_the_tree_leads_to_it(comity, used):
    whole = comity("show", "job-1", "--json").document
    for child in whole["calls"][0]["children"]:  # one succeeded, one crashed, one was refused
        assert comity("show", child["request_id"], "--json").document == whole


def test_tokens_are_drawn_with_what_they_cost_or_that_it_is_unknown(comity, place):
    text = """
        from comity import Agent, Node, Prices, Usage
        from comity.testing import Answer, ScriptedModel
        said = [Answer(text="ok", usage=Usage(prompt_tokens=1_500_000))] * 2
        def free(): return Node([Agent("A", model=ScriptedModel(said, name="a:one"))])
        def paid(): return Node([Agent("A", model=ScriptedModel(said, name="a:one"))], prices=Prices("EUR", {"a:one": (2, 8)}))
    """
    (place / "priced.py").write_text(dedent(text))
    comity("call", "A", "message", "--message", "hi", "--app", "priced:free", "--request-id", "free")
    assert "1,500,000 tokens, cost unknown: no price is given" in comity("show", "free").out
    called = comity(
        "call", "A", "message", "--message", "hi", "--app", "priced:paid", "--request-id", "paid", "--json"
    ).document
    assert called["usage"]["cost"] == {"amount": 3.0, "currency": "EUR"}
    assert "1,500,000 tokens, 3.00 EUR" in comity("show", "paid").out
    (root,) = comity("show", "paid", "--json").document["calls"]
    assert root["cost"] == root["children"][0]["cost"] == {"amount": 3.0, "currency": "EUR"}


def test_last_is_the_newest_call(comity, used):
    comity("call", "WORK", "GREET", "name=Ada", "--request-id", "job-2")
    assert comity("show", "last", "--json").document["root_id"] == "job-2"


def test_a_call_that_is_named_last_is_found_by_its_name(comity, app):
    comity("call", "WORK", "GREET", "name=Ada", "--request-id", "last")
    comity("call", "WORK", "GREET", "name=Ada", "--request-id", "later")
    assert comity("show", "last", "--json").document["root_id"] == "last"


def test_an_unknown_call_is_exit_4_and_names_the_newest(comity, used):
    ran = comity("show", "job-9")
    assert ran.code == 4
    assert "has no call 'job-9'" in ran.err
    assert "The newest are job-1." in ran.err


def test_a_degraded_reply_is_marked_with_its_warning(comity, monkeypatch):
    monkeypatch.setenv("COMITY_APP", "comity.demo:agents")
    comity("call", "ANL", "ANL_MARKET_SIZE")
    ran = comity("show", "last")
    assert "degraded" in ran.out
    said = "this is the plan's own figure; planned_market_size answered; the first implementation failed with"
    assert f"{said} TARGET_TEMPORARY_FAILURE" in " ".join(ran.out.split())


def test_why_inputs_were_refused_is_shown_with_every_path(comity, app):
    comity("call", "WORK", "GREET", "tims=2", "--request-id", "bad")
    ran = comity("show", "bad")
    assert "INPUT_VALIDATION_FAILED" in ran.out
    assert "inputs.name: " in ran.out
    assert "inputs.tims: " in ran.out


def test_personal_data_in_the_reason_of_a_refusal_is_starred(comity, app, place):
    comity("call", "WORK", "GREET", "name=Ada", "ann.smith@example.com=1", "--request-id", "bad")
    ran = comity("show", "bad")
    assert "****: " in ran.out
    assert b"ann.smith" not in b"".join(file.read_bytes() for file in place.glob("comity.db*"))


def test_a_crash_says_how_to_see_its_traceback(comity, app):
    assert "--verbose" in comity("call", "WORK", "CRASH").out
    assert "Run it again" not in comity("call", "WORK", "CRASH", "--verbose").out
