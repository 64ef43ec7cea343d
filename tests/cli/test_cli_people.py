"""Sessions, approvals and dialects from the command line."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sqlite3
import sys

import pytest

from comity import Agent, AsyncHandoffManager, AsyncHandoffReceiver, Context, Node

BANK = """
import sys
from comity import Agent, Context, Node, Tool

def pay(amount, idempotency_key):
    with open("paid.txt", "a") as out:
        out.write(f"{idempotency_key} {amount}\\n")
    return "paid"

agents = []
for index in range(3):
    agent = Agent(f"A{index}", tools_allowed=["pay"])

    @agent.capability("GO")
    async def go(ctx: Context, amount: int, _next=f"A{index + 1}", _last=index == 2):
        ctx.session.learn("amount", amount)
        ctx.session.say("noted, ann@example.com")
        if _last:
            return await ctx.use_tool("pay", amount=amount)
        return (await ctx.call(_next, "GO", {"amount": amount})).unwrap()

    agents.append(agent)

app = Node(agents, tools=[Tool(name="pay", function=pay, risk="high", takes_key=True)])

if __name__ == "__main__":
    import asyncio

    async def serve():
        async with app.elsewhere("bank.db") as node:
            reply = await node.call("A0", "GO", {"amount": 7}, user_id="ann", session_id="s", request_id="r")
            print(reply.status, flush=True)
            await asyncio.Event().wait()

    asyncio.run(serve())
"""


@pytest.fixture
def bank(place, comity, monkeypatch):
    """Run commands on the bank, in this process; return what they wrote, or their JSON document."""
    monkeypatch.setenv("COMITY_STORE", "bank.db")
    monkeypatch.setenv("COMITY_APP", "bank:app")
    monkeypatch.delitem(sys.modules, "bank", raising=False)
    (place / "bank.py").write_text(BANK)

    def run(*arguments, exits=0):
        ran = comity(*arguments)
        assert ran.code == exits, ran
        return ran.document if "--json" in arguments else ran.out + ran.err

    return run


def test_an_approval_three_levels_deep_is_granted_after_kill_9_and_the_tool_runs_once(place, bank, start_process):
    process = start_process([sys.executable, "bank.py"], cwd=place)
    assert process.stdout.readline().strip() == "needs_input"
    process.send_signal(signal.SIGKILL)
    process.wait()

    (asked,) = bank("approvals", "list", "--json")["approvals"]
    assert (asked["id"], asked["tool"], asked["granted"]) == ("r.1.1#1", "pay", None)
    assert "without a living node" not in bank("doctor")  # it waits for a person
    assert "grant APPROVAL_ID" in bank("approvals", "list")
    assert "comity approvals grant 'r.1.1#1'" in bank("show", "r")
    assert "comity approvals deny 'r.1.1#1'" in bank("show", "r")
    told = bank("approvals", "grant", asked["id"], "--app", "bank:agents", exits=2)
    assert "no tool 'pay'" in told
    assert "--app must name the node" in told
    reply = bank("approvals", "grant", asked["id"], "--by", "boss", "--json")
    assert (reply["status"], reply["data"]) == ("success", "paid")
    assert (place / "paid.txt").read_text() == "r.1.1#1 7\n"
    again = bank("approvals", "grant", asked["id"], "--json")
    assert again["data"] == "paid"
    assert "was granted by boss" in again["warnings"][0]
    assert "r.1.1#1 was granted by boss at" in (told := bank("approvals", "deny", asked["id"], exits=3))
    assert "this answer changed nothing" in told
    assert (place / "paid.txt").read_text() == "r.1.1#1 7\n"
    assert "Nothing waits" in bank("approvals", "list")
    assert "granted by boss" in bank("approvals", "list", "--all")
    bank("call", "A0", "GO", "amount=1", "--session", "other", exits=1)  # asks again, in another session
    (approval,) = bank("sessions", "export", "s", "--json")["approvals"]
    assert (approval["tool"], approval["decided_by"]) == ("pay", "boss")
    assert "no approval" in bank("approvals", "deny", "nothing", exits=4)
    assert bank("audit", "verify", "--json")["ok"]


@pytest.fixture
def noted(place, bank, run_script):
    """Have the bank note something in session s, and hide an address in it."""
    quick = BANK.replace('risk="high"', 'risk="low"').replace("await asyncio.Event().wait()", "pass")
    (place / "bank.py").write_text(quick.replace('user_id="ann"', 'user_id="ann", message="ask bob@example.com"'))
    run_script(place / "bank.py")
    return bank


async def _note(store) -> None:
    agent = Agent("A")

    @agent.capability("GO")
    async def go(ctx: Context, count: int) -> None:
        for number in range(count):
            ctx.session.decide(f"decision {number}")
            ctx.session.assume(f"assumption {number}")

    async with Node([agent], store=store, lag_ms=None) as node:
        for count in (1, 2, 3):
            await node.call("A", "GO", {"count": count}, user_id="ann", session_id=f"s{count}")


def test_a_session_shows_each_decision_and_assumption_however_many_and_a_list_is_as_long_as_asked_for(bank, place):
    asyncio.run(_note(place / "bank.db"))
    for count in (1, 2, 3):
        told = [line.strip() for line in bank("sessions", "show", f"s{count}").splitlines()]
        for number in range(3):
            assert (f"decision {number}" in told) == (f"assumption {number}" in told) == (number < count)
    listed = bank("sessions", "list", "--limit", "2", "--json")
    assert ([one["id"] for one in listed["sessions"]], listed["has_more"]) == (["s3", "s2"], True)


def test_a_session_is_listed_shown_exported_and_erased(place, noted):
    bank = noted
    (line,) = bank("sessions", "list", "--json")["sessions"]
    assert (line["id"], line["user_id"], line["status"], line["facts"]) == ("s", "ann", "active", 1)
    assert "amount: 7" in bank("sessions", "show", "s")
    exported = bank("sessions", "export", "s", "--json")
    assert exported["facts"]["amount"]["value"] == 7
    assert [(one["target"], one["capability"], one["reply"]["data"]) for one in exported["calls"]] == [
        ("A0", "GO", "paid"),
        ("A1", "GO", "paid"),
        ("A2", "GO", "paid"),
        ("tool:pay", "pay", "paid"),
    ]
    assert "cannot be undone" in bank("sessions", "erase", "s", exits=2)
    assert bank("sessions", "erase", "s", "--yes", "--json")["audit_ok"]
    assert "no session" in bank("sessions", "show", "s", exits=4)
    assert "remembers no session" in bank("sessions", "list")
    assert "nothing of session" in bank("sessions", "erase", "s", "--yes", exits=4)
    assert b"ann@example.com" not in (place / "bank.db").read_bytes()


def test_what_is_erased_from_a_damaged_store_is_gone_and_the_audit_is_not_called_whole(place, noted):
    with contextlib.closing(sqlite3.connect(place / "bank.db")) as connection, connection:
        connection.execute("DELETE FROM audit WHERE id = 2")
    told = noted("sessions", "erase", "s", "--yes", exits=5)
    assert "The audit is damaged: row 2 is missing" in told
    assert "remembers no session" in noted("sessions", "list")


def test_what_was_handed_off_in_a_session_is_exported_in_clear_and_nobody_elses(noted):
    async def hand_off():
        async with AsyncHandoffReceiver("zed", store="bank.db") as receiver:
            for session_id in ("s", "other"):
                async with AsyncHandoffManager(store="bank.db", user_id="ann", session_id=session_id) as manager:
                    await manager.create_handoff("zed", "FIX", inputs={"for": "eve@example.com"})
                (taken,) = await receiver.take()
                await receiver.complete(taken.id, {"told": "bob@example.com"})

    asyncio.run(hand_off())
    (handed_off,) = noted("sessions", "export", "s", "--json")["handoffs"]
    assert (handed_off["target"], handed_off["capability"], handed_off["state"]) == ("zed", "FIX", "completed")
    assert (handed_off["inputs"], handed_off["reply"]["data"]) == ({"for": "eve@example.com"}, {"told": "bob@example.com"})


def test_looking_at_sessions_makes_no_store(place, bank):
    assert "does not exist" in bank("sessions", "list", exits=4)
    assert "does not exist" in bank("sessions", "show", "s", exits=4)
    assert not list(place.glob("bank.db*"))


def test_convert_shows_the_document_and_what_is_lost(place, bank):
    request = {
        "source_agent": "CST",
        "target_agent": "ANL",
        "capability_code": "ANL_NPV",
        "request_id": "r1",
        "inputs_json": {"rate": 0.12},
        "context": {"user_id": "ann", "session_id": "s"},
    }
    (place / "request.json").write_text(json.dumps(request))
    told = bank("convert", "--from", "kdap", "--to", "delegation", "request.json", "--json")
    assert told["document"]["target_employee"] == "ANL"
    assert "target_agent" in told["mapped"]
    assert "capability_code" in {one["path"] for one in told["lost"]}
    assert "lost" in bank("convert", "--from", "kdap", "--to", "delegation", "request.json")
    assert "no dialect" in bank("convert", "--from", "klingon", "--to", "kdap", "request.json", exits=2)
    (place / "twice.json").write_text('{"source_agent": "A", "source_agent": "B"}')
    assert "source_agent: stands twice" in bank("convert", "--from", "kdap", "--to", "sacp", "twice.json", exits=2)
    assert "no file" in bank("convert", "--from", "kdap", "--to", "sacp", "nothing.json", exits=4)
    (place / "request.json").write_text('{"source_agent": 1}')
    assert "target_agent" in bank("convert", "--from", "kdap", "--to", "sacp", "request.json", exits=2)


def test_without_its_key_a_store_is_refused_and_reading_makes_nothing(place, noted):
    (place / "moved").mkdir()
    (place / "bank.db").rename(place / "moved" / "bank.db")
    at = ("--store", "moved/bank.db")
    assert "amount: 7" in noted("sessions", "show", "s", *at)  # shows tokens, which need no key
    for command in (("sessions", "export", "s"), ("call", "A0", "GO", "amount=1", "--session", "fresh"), ("doctor",)):
        told = noted(*command, *at, exits=5)
        assert "bank.db.key is not there" in told
        assert "COMITY_VAULT_KEY" in told
    assert {path.suffix for path in (place / "moved").iterdir()} <= {".db", ".db-shm", ".db-wal"}
    (place / "bank.db.key").rename(place / "moved" / "bank.db.key")
    assert noted("sessions", "export", "s", "--json", *at)["original_request"] == "ask bob@example.com"
    assert "it opens what the store hides" in noted("doctor", *at)


def test_a_key_that_opens_nothing_is_refused_and_its_sessions_can_still_be_erased(place, noted):
    (place / "bank.db.key").write_bytes(bytes(32))
    for command in (("call", "A0", "GO", "amount=1", "--session", "fresh"), ("doctor",)):
        told = noted(*command, exits=5)
        assert "bank.db.key cannot decrypt this store" in told
    told = noted("sessions", "export", "s", exits=5)
    assert "session s of tenant default cannot be decrypted" in told
    assert "\x1f" not in told
    assert noted("sessions", "erase", "s", "--yes", "--json")["erased"] >= 2
    assert noted("call", "A0", "GO", "amount=1", "--session", "fresh", "--json")["data"] == "paid"


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_session_is_shown_with_every_kind_of_content(comity, place, monkeypatch, number):
    (place / "notes.py").write_text(NOTES)
    monkeypatch.delitem(sys.modules, "notes", raising=False)
    comity("call", "N", "NOTE", f"number={number}", "--session", "s", "--app", "notes:agent")
    ran = comity("sessions", "show", "s")
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    for one in range(number):
        for line in (
            f"  decided {one}",
            f"  assumed {one}",
            f"  fact{one}: [{one}, 'a']",
            f"  rule{one}: {one}",
            f"  out{one}: {one}",
        ):
            assert line in lines
    assert "  step 2 of 5" in lines
    assert "  N" in lines
    assert any("said 0" in line for line in lines)


NOTES = """
from comity import Agent, Context

agent = Agent("N")

@agent.capability("NOTE")
async def note(ctx: Context, number: int):
    for one in range(number):
        ctx.session.decide(f"decided {one}")
        ctx.session.assume(f"assumed {one}")
        ctx.session.learn(f"fact{one}", [one, "a"])
        ctx.session.constrain(f"rule{one}", one)
        ctx.session.produce(f"out{one}", one)
        ctx.session.say(f"said {one}")
    ctx.session.place("step 2 of 5")
"""


def test_a_key_that_others_can_read_is_refused_by_nodes_and_the_doctor_says_how_to_mend_it(place, noted):
    key = place / "bank.db.key"
    key.chmod(0o644)
    for command in (("call", "A0", "GO", "amount=1", "--session", "fresh"), ("doctor",), ("sessions", "export", "s")):
        assert f"chmod 600 {key.name}" in noted(*command, exits=5).replace(str(place) + "/", "")
    key.chmod(0o600)
    assert "it opens what the store hides" in noted("doctor")


MAILS = """
from comity import Agent, Context, Node, Privacy, Tool

a = Agent("A", tools_allowed=["mail"])

@a.capability("GO")
async def go(ctx: Context, to: str):
    return {"to": to, "sent": await ctx.use_tool("mail", to=to)}

app = Node([a], tools=[Tool(name="mail", function=lambda to: "sent", risk="high")], privacy=Privacy(approvers={"boss": ["EMAIL"]}))
"""


@pytest.mark.parametrize(("by", "sees"), [("boss", True), ("clerk", False), ("ann", True)])
def test_who_answers_on_the_command_line_sees_of_question_and_reply_what_they_may(place, comity, monkeypatch, by, sees):
    monkeypatch.setenv("COMITY_STORE", "mails.db")
    monkeypatch.setenv("COMITY_APP", "mails:app")
    monkeypatch.delitem(sys.modules, "mails", raising=False)
    (place / "mails.py").write_text(MAILS)
    comity("call", "A", "GO", "to=ann@example.com", "--user", "ann", "--json")
    (asked,) = comity("approvals", "list", "--json").document["approvals"]
    shown = comity("approvals", "list", "--by", by, "--json").out
    told = comity("approvals", "grant", asked["id"], "--by", by, "--json").out
    assert "ann@example.com" not in str(asked)
    assert ("ann@example.com" in shown, "ann@example.com" in told) == (sees, sees)
