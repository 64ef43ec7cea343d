"""Insights over HTTP, as a list and for an audience."""

from __future__ import annotations

import asyncio

from tests.server.served import serving

from comity import Agent, Context, Node


def _node():
    scout = Agent("SCOUT")

    @scout.capability("LOOK")
    async def look(ctx: Context) -> str:
        ctx.insight("decision", summary="Enter in steps", confidence=0.9)
        ctx.insight("blocker", summary="The feed is down", confidence=1.0)
        return "done"

    return Node([scout])


def test_insights_are_listed_by_type_and_shown_for_each_audience():
    async def main():
        async with serving(_node()) as served:
            await served.client.post("/v1/calls", json={"target": "SCOUT", "capability": "LOOK", "user_id": "u1"})
            every = (await served.client.get("/v1/insights")).json()["items"]
            assert {one["summary"] for one in every} == {"Enter in steps", "The feed is down"}
            only = (await served.client.get("/v1/insights", params={"type": "blocker"})).json()["items"]
            assert [one["agent_id"] for one in only] == ["SCOUT"]
            assert (await served.client.get("/v1/insights", params={"type": "gossip"})).status_code == 422
            for audience in ("executive", "manager", "developer", "operator"):
                view = (await served.client.get(f"/v1/views/{audience}")).json()
                assert view["document"]["total"] == 2, audience
            assert "The feed is down" in (await served.client.get("/v1/views/agent")).json()["text"]
            assert (await served.client.get("/v1/views/nobody")).status_code == 404

    asyncio.run(main())
