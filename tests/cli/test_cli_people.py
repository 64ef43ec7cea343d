"""Sessions, approvals and dialects from the command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

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


def comity(folder, *arguments, exits=0):
    environment = {**os.environ, "COMITY_STORE": "bank.db", "COMITY_APP": "bank:app"}
    ran = subprocess.run(
        [sys.executable, "-m", "comity", *arguments], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert ran.returncode == exits, ran.stdout + ran.stderr
    return ran.stdout + ran.stderr if "--json" not in arguments else json.loads(ran.stdout)


def test_an_approval_three_levels_deep_is_granted_after_kill_9_and_the_tool_runs_once(tmp_path):
    (tmp_path / "bank.py").write_text(BANK)
    process = subprocess.Popen([sys.executable, "bank.py"], cwd=tmp_path, stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline().strip() == "needs_input"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()

    (asked,) = comity(tmp_path, "approvals", "list", "--json")["approvals"]
    assert (asked["id"], asked["tool"], asked["granted"]) == ("r.1.1#1", "pay", None)
    assert "grant APPROVAL_ID" in comity(tmp_path, "approvals", "list")
    reply = comity(tmp_path, "approvals", "grant", asked["id"], "--by", "boss", "--json")
    assert (reply["status"], reply["data"]) == ("success", "paid")
    assert (tmp_path / "paid.txt").read_text() == "r.1.1#1 7\n"
    assert comity(tmp_path, "approvals", "grant", asked["id"], "--json")["data"] == "paid"
    assert (tmp_path / "paid.txt").read_text() == "r.1.1#1 7\n"
    assert "Nothing waits" in comity(tmp_path, "approvals", "list")
    assert "granted by boss" in comity(tmp_path, "approvals", "list", "--all")
    assert "no approval" in comity(tmp_path, "approvals", "deny", "nothing", exits=4)
    assert comity(tmp_path, "audit", "verify", "--json")["ok"]


def test_a_session_is_listed_shown_exported_and_erased(tmp_path):
    (tmp_path / "bank.py").write_text(BANK.replace('risk="high"', 'risk="low"').replace("await asyncio.Event().wait()", "pass"))
    subprocess.run([sys.executable, "bank.py"], cwd=tmp_path, check=True, capture_output=True)

    (line,) = comity(tmp_path, "sessions", "list", "--json")["sessions"]
    assert (line["id"], line["user_id"], line["status"], line["facts"]) == ("s", "ann", "active", 1)
    assert "amount: 7" in comity(tmp_path, "sessions", "show", "s")
    exported = comity(tmp_path, "sessions", "export", "s", "--json")
    assert exported["facts"]["amount"]["value"] == 7
    assert "cannot be undone" in comity(tmp_path, "sessions", "erase", "s", exits=2)
    assert comity(tmp_path, "sessions", "erase", "s", "--yes", "--json")["audit_ok"]
    assert "no session" in comity(tmp_path, "sessions", "show", "s", exits=4)
    assert "remembers no session" in comity(tmp_path, "sessions", "list")
    assert "nothing of session" in comity(tmp_path, "sessions", "erase", "s", "--yes", exits=4)
    assert b"ann@example.com" not in (tmp_path / "bank.db").read_bytes()


def test_looking_at_sessions_makes_no_store(tmp_path):
    assert "does not exist" in comity(tmp_path, "sessions", "list", exits=4)
    assert "does not exist" in comity(tmp_path, "sessions", "show", "s", exits=4)
    assert list(tmp_path.iterdir()) == []


def test_convert_shows_the_document_and_what_is_lost(tmp_path):
    request = {
        "source_agent": "CST",
        "target_agent": "ANL",
        "capability_code": "ANL_NPV",
        "request_id": "r1",
        "inputs_json": {"rate": 0.12},
        "context": {"user_id": "ann", "session_id": "s"},
    }
    (tmp_path / "request.json").write_text(json.dumps(request))
    told = comity(tmp_path, "convert", "--from", "kdap", "--to", "delegation", "request.json", "--json")
    assert told["document"]["target_employee"] == "ANL"
    assert "target_agent" in told["mapped"]
    assert "capability_code" in {one["path"] for one in told["lost"]}
    assert "lost" in comity(tmp_path, "convert", "--from", "kdap", "--to", "delegation", "request.json")
    assert "no dialect" in comity(tmp_path, "convert", "--from", "klingon", "--to", "kdap", "request.json", exits=2)
    assert "no file" in comity(tmp_path, "convert", "--from", "kdap", "--to", "sacp", "nothing.json", exits=4)
    (tmp_path / "request.json").write_text('{"source_agent": 1}')
    assert "target_agent" in comity(tmp_path, "convert", "--from", "kdap", "--to", "sacp", "request.json", exits=2)
