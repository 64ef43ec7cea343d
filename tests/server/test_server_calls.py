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


def test_a_call_joins_the_trace_of_its_headers_and_an_unreadable_one_begins_a_new_trace() -> None:
    async def go() -> None:
        async with serving() as served:
            trace_id = "0af7651916cd43dd8448eb211c80319c"
            for header in (f"00-{trace_id}-b7ad6b7169203331-01", f"00-{trace_id}-b7ad6b7169203331-01-x", "nonsense"):
                assert (await served.call(headers={"traceparent": header})).status_code == 200
            await served.server.node.flush_spans()
            assert len(served.server.node.spans.trace(trace_id)) == 1

    asyncio.run(go())


def test_the_same_idempotency_key_runs_nothing_twice_and_another_content_is_refused() -> None:
    async def go() -> None:
        async with serving() as served:
            key = {"idempotency-key": '"order-7"'}
            first, again = [await served.call(headers=key) for _ in range(2)]
            assert first.json()["request_id"] == again.json()["request_id"]
            assert "comity-replayed" not in first.headers
            assert again.headers["comity-replayed"] == "true"
            assert (await served.call(inputs={"text": "other"}, headers=key)).status_code == 422
            assert (await served.call(headers=key, user_id="u2")).json()["request_id"] != first.json()["request_id"]
            assert (await served.call(headers=key, request_id="another")).status_code == 400

    asyncio.run(go())


def test_a_client_that_comes_back_gets_what_it_has_not_seen_or_is_told_that_it_is_gone() -> None:
    async def go() -> None:
        async with serving() as served:
            started = await served.call("STEPS", {"count": 2}, request_id="followed", params={"wait": "false"})
            assert started.status_code == 202
            await served.call(request_id="waited-for")

            async def follow(request_id: str, after: int) -> tuple[int, list[str]]:
                headers = {"last-event-id": str(after)}
                answer = await served.client.get(f"/v1/calls/{request_id}/events", headers=headers)
                names = [line.removeprefix("event: ") for line in answer.text.splitlines() if line.startswith("event: ")]
                return answer.status_code, names or [answer.json()["code"]]

            _, whole = await follow("followed", 0)
            last = len(whole) - 1  # the reply has no number
            assert whole.count("progress") == 2
            assert await follow("followed", last - 1) == (200, whole[-2:])
            assert await follow("followed", last) == (200, ["reply"])
            assert await follow("followed", last + 1) == (410, ["HTTP_EVENTS_GONE"])
            assert await follow("waited-for", 1) == (410, ["HTTP_EVENTS_GONE"])  # of which no events were kept

    asyncio.run(go())
