"""What people look at over HTTP: calls, trees, audit, sessions, approvals, breakers, handoffs, live rows."""

from __future__ import annotations

import asyncio
import json
import re
from urllib.parse import quote

import pytest
from tests.server.served import serving

from comity import Agent, Context, Limits, Node, Tool
from comity.core.access import Role
from comity.errors import UnavailableError


def _node(store=None):
    top, low = Agent("TOP", can_call=("LOW",)), Agent("LOW", tools_allowed=["pay"], can_call=("TOP",))

    @top.capability("ASK")
    async def ask(ctx: Context) -> dict:
        reply = await ctx.call("LOW", "LOOP")
        return {"told": reply.status}

    @top.capability("PAY")
    async def settle(ctx: Context) -> dict:
        return (await ctx.call("LOW", "PAY_OUT")).unwrap()

    @low.capability("LOOP")
    async def loop(ctx: Context) -> str:
        return (await ctx.call("TOP", "ASK")).error.code

    @low.capability("PAY_OUT")
    async def pay_out(ctx: Context) -> dict:
        return {"receipt": await ctx.use_tool("pay", amount=5)}

    @low.capability("FAIL")
    async def fail() -> None:
        raise UnavailableError("the feed is down")

    @low.capability("SAY")
    async def say(text: str) -> dict:
        return {"text": text}

    return Node([top, low], store=store, tools=[Tool(name="pay", function=lambda amount: f"paid {amount}", risk="high")])


@pytest.fixture(params=["memory", "store"])
def node(request, tmp_path):
    return _node(tmp_path / "work.db" if request.param == "store" else None)


async def _call(served, target, capability, inputs=None, **more):
    body = {"target": target, "capability": capability, "inputs": inputs or {}, "user_id": "ann"} | more
    return (await served.client.post("/v1/calls", json=body)).json()


async def _get(served, path, **params):
    answer = await served.client.get(path, params=params)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_a_refused_loop_is_listed_and_its_tree_names_the_rule(node):
    async def main():
        async with serving(node) as served:
            root = (await _call(served, "TOP", "ASK"))["request_id"]
            assert [one["request_id"] for one in (await _get(served, "/v1/calls", roots="true"))["items"]] == [root]
            refused = (await _get(served, "/v1/calls", status="refused,error"))["items"]
            assert [one["error_code"] for one in refused] == ["ROUTING_CYCLE_DETECTED"]
            tree = await _get(served, f"/v1/calls/{root}.1/tree")
            assert [one.get("depth", 0) for one in tree["items"]] == [0, 1, 2]
            assert tree["limits"]["depth_max"] == 5
            assert tree["limits_of"] == "node"
            one = await _get(served, f"/v1/calls/{refused[0]['request_id']}")
            assert one["chain"] == ["TOP", "LOW"]
            assert one["advice"].startswith("Answer with what you have")
            counted = await _get(served, "/v1/calls/histogram", buckets=4)
            assert sum(sum(one["counts"].values()) for one in counted["buckets"]) == 3
            assert counted["since"] == counted["buckets"][0]["start"] < counted["until"]
            asked = await _get(served, "/v1/calls/histogram", buckets=4, since=1_000, until=9_000)
            assert (asked["since"], asked["until"], len(asked["buckets"])) == (1_000, 9_000, 4)
            edges = {(one["source"], one["target"]): one for one in (await _get(served, "/v1/map"))["edges"]}
            assert edges["LOW", "TOP"]["refused"] == 1
            assert (await _get(served, "/v1/map"))["refusals"] == {"ROUTING_CYCLE_DETECTED": 1}
            assert (await served.client.get("/v1/calls/nothing")).status_code == 404

    asyncio.run(main())


def test_the_audit_is_listed_verified_and_exported(node):
    async def main():
        async with serving(node) as served:
            root = (await _call(served, "TOP", "ASK"))["request_id"]
            rows = (await _get(served, "/v1/audit", root=root))["items"]
            assert [one["kind"] for one in rows].count("refused") == 1
            assert (await _get(served, "/v1/audit/verify")) == {"ok": True, "rows": len(rows), "row_id": None, "reason": ""}
            told = (await served.client.get("/v1/audit/verify/events")).text.split("\n\n")
            assert f'data: {{"checked":{len(rows)},"of":{len(rows)}}}' in told[-3]
            assert '"ok":true' in told[-2]
            lines = (await served.client.get("/v1/audit/export")).text.splitlines()
            assert [json.loads(one)["id"] for one in lines] == [one["id"] for one in rows]

    asyncio.run(main())


def test_an_approval_asked_two_levels_down_is_granted_and_its_call_goes_on(node):
    async def main():
        async with serving(node) as served:
            root = (await _call(served, "TOP", "PAY"))["request_id"]
            (asked,) = (await _get(served, "/v1/approvals", state="waiting"))["items"]
            assert (asked["tool"], asked["agent"], asked["chain"], asked["risk"]) == ("pay", "LOW", ["TOP"], "high")
            assert asked["inputs"] == {"amount": 5}
            answer = await served.client.post(f"/v1/approvals/{quote(asked['id'], safe='')}/grant")
            assert answer.status_code == 200, answer.text
            assert answer.json()["reply"]["data"] == {"receipt": "paid 5"}
            assert (await served.client.post(f"/v1/approvals/{quote(asked['id'], safe='')}/deny")).json()[
                "code"
            ] == "APPROVAL_ANSWERED"
            (decided,) = (await _get(served, "/v1/approvals", state="decided"))["items"]
            assert (decided["state"], decided["decided_by"], decided["ended"]) == ("granted", "operator", True)
            waits = (await _get(served, f"/v1/calls/{root}/tree"))["waits"]
            assert {one["request_id"] for one in waits} >= {root}
            assert (await served.client.post("/v1/approvals/none/grant")).status_code == 404

    asyncio.run(main())


def test_an_approval_is_answered_in_the_name_of_the_user_who_signed_in(node):
    async def main():
        async with serving(node) as served:
            await _call(served, "TOP", "PAY")
            (asked,) = (await _get(served, "/v1/approvals", state="waiting"))["items"]
            state = served.server.app.state
            ann = state.auth.signed.sign_in("ann", roles=(Role.APPROVER,), now_ms=state.now_ms())
            headers = {"authorization": f"Bearer {ann}"}
            answer = await served.client.post(f"/v1/approvals/{quote(asked['id'], safe='')}/grant", headers=headers)
            assert answer.status_code == 200, answer.text
            (decided,) = (await _get(served, "/v1/approvals", state="decided"))["items"]
            assert decided["decided_by"] == "ann"

    asyncio.run(main())


def test_the_reason_of_a_denial_is_kept_and_told_to_the_agent(node):
    async def main():
        async with serving(node) as served:
            await _call(served, "TOP", "PAY")
            (asked,) = (await _get(served, "/v1/approvals", state="waiting"))["items"]
            place = f"/v1/approvals/{quote(asked['id'], safe='')}/deny"
            assert (await served.client.post(place, json={"reason": "x" * 1_001})).status_code == 400
            told = (await served.client.post(place, json={"reason": "The invoice is not ours"})).json()
            assert "denied by operator: The invoice is not ours" in str(told["reply"])
            (decided,) = (await _get(served, "/v1/approvals", state="decided"))["items"]
            assert (decided["state"], decided["reason"]) == ("denied", "The invoice is not ours")

    asyncio.run(main())


def test_a_hidden_value_is_revealed_and_the_audit_says_so_then_the_session_is_erased(node):
    async def main():
        async with serving(node) as served:
            await _call(
                served, "LOW", "SAY", {"text": "write to ann@example.com"}, session_id="s1", message="mail bob@example.com"
            )
            shown = await _get(served, "/v1/sessions/s1")
            assert shown["hidden"]["EMAIL"] == 2
            text = json.dumps(shown["turns"])
            assert "example.com" not in text
            token = "[[" + text.split("[[")[1].split("]]")[0] + "]]"
            revealed = await served.client.post("/v1/sessions/s1/reveal", json={"token": token})
            assert revealed.json()["value"].endswith("@example.com")
            (row,) = (await _get(served, "/v1/audit", kind="noted"))["items"]
            assert "EMAIL" in row["note"]
            assert row["user_id"] == "operator"
            assert "example.com" not in json.dumps(row)
            assert (await served.client.post("/v1/sessions/s1/reveal", json={"token": "EMAIL"})).status_code == 422
            unknown = re.sub(r"_\d+_", "_99_", token)
            assert (await served.client.post("/v1/sessions/s1/reveal", json={"token": unknown})).status_code == 404
            assert "example.com" in (await served.client.get("/v1/sessions/s1/export")).text
            assert [one["id"] for one in (await _get(served, "/v1/sessions", user="ann"))["items"]] == ["s1"]
            assert (await served.client.delete("/v1/sessions/s1")).json()["records"] > 0
            assert (await served.client.get("/v1/sessions/s1")).status_code == 404
            assert (await _get(served, "/v1/audit/verify"))["ok"]

    asyncio.run(main())


def test_an_open_breaker_is_listed_and_closed_by_hand(node):
    async def main():
        async with serving(node) as served:
            while (await _call(served, "LOW", "FAIL"))["error"]["code"] != "CAPABILITY_UNAVAILABLE":
                pass
            (agent,) = [one for one in (await _get(served, "/v1/map"))["agents"] if one["id"] == "LOW"]
            assert agent["breakers"] == {"FAIL": "open"}
            reset = await served.client.post("/v1/breakers/reset", json={"agent": "LOW", "capability": "FAIL"})
            assert reset.json()["state"] == "closed"
            assert (await _call(served, "LOW", "FAIL"))["error"]["code"] == "TARGET_TEMPORARY_FAILURE"
            none = await served.client.post("/v1/breakers/reset", json={"agent": "LOW", "capability": "SAY"})
            assert none.status_code == 404

    asyncio.run(main())


def test_live_rows_tell_of_a_call_and_resume_without_a_gap(node):
    async def read(served, until, after=0):
        found = []
        async with served.client.stream("GET", "/v1/events", params={"after": after} if after else {}) as answer:
            assert answer.status_code == 200
            ready = asyncio.ensure_future(until(answer)) if after == 0 else None
            number = 0
            async for line in answer.aiter_lines():
                if line.startswith("id: "):
                    number = int(line[4:])
                if line.startswith("data: ") and "request_id" in line:
                    found.append((number, json.loads(line[6:])))
                    if found[-1][1].get("status") == "success":
                        if ready is not None:
                            await ready
                        return found
        return found

    async def main():
        async with serving(node) as served:

            async def call(_answer):
                await _call(served, "LOW", "SAY", {"text": "hi"})

            first = await read(served, call)
            assert first[-1][1]["target"] == "LOW"
            assert (await served.client.get("/v1/events", params={"after": 10_000})).status_code == 410

    asyncio.run(main())


def test_a_handoff_is_listed_by_state_and_cancelled(tmp_path):
    node = Node([Agent("SENDER")], store=tmp_path / "work.db")

    async def main():
        from comity.contextcore.handoffs.manager import AsyncHandoffManager

        async with serving(node) as served:
            manager = AsyncHandoffManager("project", "SENDER", node=node, user_id="ann")
            made = await manager.create_handoff("ABSENT", "LOOK", "look at the logs", {"path": "x"})
            (one,) = (await _get(served, "/v1/handoffs", state="open"))["items"]
            assert (one["task"], one["to_agent"], one["state"]) == ("look at the logs", "ABSENT", "pending")
            assert (await _get(served, f"/v1/handoffs/{made}"))["inputs"] == {"path": "x"}
            cancelled = await served.client.post(f"/v1/handoffs/{one['id']}/cancel", json={"reason": "not needed"})
            assert cancelled.json()["state"] == "cancelled"
            assert (await _get(served, "/v1/handoffs", state="open"))["items"] == []
            assert (await served.client.get("/v1/handoffs", params={"state": "gone"})).status_code == 400

    asyncio.run(main())


def test_a_call_that_is_refused_at_once_is_answered_with_its_reply_also_without_waiting(node):
    async def main():
        async with serving(node) as served:
            body = {"target": "LOW", "capability": "SAY", "inputs": {"text": 5}, "user_id": "ann"}
            answer = await served.client.post("/v1/calls", params={"wait": "false"}, json=body)
            assert answer.status_code == 422
            assert answer.json()["error"]["problems"][0]["path"] == "inputs.text"

    asyncio.run(main())


UNKNOWN = {
    "GET /v1/calls/gone": "call",
    "GET /v1/calls/gone/events": "call",
    "POST /v1/calls/gone/cancel": "call",
    "GET /v1/calls/gone/tree": "call",
    "GET /v1/sessions/gone": "session",
    "DELETE /v1/sessions/gone": "session",
    "POST /v1/approvals/gone/grant": "approval",
    "GET /v1/handoffs/gone": "handoff",
    "GET /v1/agents/gone": "agent",
}


def test_what_does_not_exist_is_named_by_its_kind_and_its_name(node):
    async def main():
        async with serving(node) as served:
            told = {}
            for asked in UNKNOWN:
                method, path = asked.split()
                answer = await served.client.request(method, path)
                told[asked] = (answer.status_code, answer.json()["code"], answer.json()["detail"])
            assert told == {
                asked: (404, "HTTP_RESOURCE_UNKNOWN", f"there is no {what} 'gone'") for asked, what in UNKNOWN.items()
            }

    asyncio.run(main())


def test_a_call_under_way_is_shown_with_what_was_asked():
    async def main():
        async with serving() as served:
            asked = {"target": "ECHO", "capability": "WAIT", "user_id": "ann", "message": "now", "objective": "o"}
            more = {"request_id": "r", "priority": "high", "timeout_ms": 60_000}
            calling = asyncio.create_task(served.client.post("/v1/calls", json=asked | more))
            while not served.server.node.running().get("ECHO"):
                await asyncio.sleep(0.001)
            shown = await _get(served, "/v1/calls/r")
            assert served.server.node.find_call("r", user_id="ann").cancel()
            await calling
        request = shown["request"]
        assert (request["message"], request["objective"], request["priority"], request["inputs"]) == ("now", "o", "high", {})
        assert request["limits"]["depth_max"] == Limits().depth_max
        assert len(request["trace_id"]) == 32
        assert shown.get("reply") is None

    asyncio.run(main())
