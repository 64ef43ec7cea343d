"""Calls over HTTP."""

from __future__ import annotations

import asyncio
import json

from served import serving


def test_a_call_is_answered_with_its_reply() -> None:
    async def go() -> None:
        async with serving() as served:
            answer = await served.call()
            assert answer.status_code == 200
            reply = answer.json()
            assert reply["status"] == "success"
            assert reply["data"] == {"text": "hi"}
            assert answer.headers["comity-request-id"] == reply["request_id"]

    asyncio.run(go())


def test_a_call_that_is_left_to_run_can_be_followed_to_its_reply() -> None:
    async def go() -> None:
        async with serving() as served:
            answer = await served.call("STEPS", {"count": 3}, params={"wait": "false"})
            assert answer.status_code == 202
            events = (await served.client.get(answer.json()["events"])).text
            names = [line.removeprefix("event: ") for line in events.splitlines() if line.startswith("event: ")]
            assert names == ["queued", "started", "progress", "progress", "progress", "settled", "reply"]
            last = json.loads([line for line in events.splitlines() if line.startswith("data: ")][-1].removeprefix("data: "))
            assert last["data"] == {"count": 3}
            resumed = (await served.client.get(answer.json()["events"], headers={"last-event-id": "4"})).text
            assert [line for line in resumed.splitlines() if line.startswith("id: ")] == ["id: 5", "id: 6"]

    asyncio.run(go())
