"""Handoffs for receivers behind HTTP."""

from __future__ import annotations

import asyncio
import json
import shlex
import shutil

import pytest
from served import TOKEN, serving

WORK = {"capability": "investigate", "to_agent": "o11y", "task": "Find the cause", "inputs": {"trace": "t1"}, "user_id": "u1"}


async def _made(served) -> str:
    answer = await served.client.post("/v1/handoffs", json=WORK)
    assert answer.status_code == 200, answer.text
    assert answer.json()["state"] == "pending"
    return answer.json()["id"]


async def _post(served, path, **body):
    return await served.client.post(path, json=body)


def test_a_receiver_takes_work_tells_how_far_it_is_and_completes_it() -> None:
    async def go() -> None:
        async with serving() as served:
            handoff_id = await _made(served)
            taken = (await _post(served, "/v1/receivers/o11y/take", wait_ms=5000)).json()["items"]
            assert [one["handoff"]["inputs"] for one in taken] == [{"trace": "t1"}]
            lease = taken[0]["lease"]
            place = f"/v1/handoffs/{handoff_id}"
            assert (await _post(served, f"{place}/progress", lease=lease, data={"step": 1})).json()["state"] == "in_progress"
            assert (await _post(served, f"{place}/heartbeat", lease=lease)).status_code == 200
            ended = await _post(served, f"{place}/complete", lease=lease, result={"cause": "a full disk"})
            assert (ended.status_code, ended.json()["state"]) == (200, "completed")
            shown = (await served.client.get(place)).json()
            assert shown["result"] == {"cause": "a full disk"}
            events = (await served.client.get(f"{place}/events")).text
            names = [line.removeprefix("event: ") for line in events.splitlines() if line.startswith("event: ")]
            assert names == ["created", "accepted", "progress", "completed"]

    asyncio.run(go())


def test_a_receiver_asks_for_input_and_goes_on_with_the_answer() -> None:
    async def go() -> None:
        async with serving() as served:
            place = f"/v1/handoffs/{await _made(served)}"
            lease = (await _post(served, f"{place}/accept", agent_id="o11y")).json()["lease"]
            await _post(served, f"{place}/progress", lease=lease, data={})
            asked = {"lease": lease, "question": "Which disk?", "options": ["a", "b"], "wait_ms": 0}
            assert not (await _post(served, f"{place}/ask", **asked)).json()["is_answered"]
            while (shown := (await served.client.get(place)).json())["state"] != "input_required":
                await _post(served, f"{place}/ask", **asked)
            assert shown["question"]["text"] == "Which disk?"
            waiting = asyncio.create_task(_post(served, f"{place}/ask", **asked | {"wait_ms": 30_000}))
            answered = await _post(served, f"{place}/answer", answer="b")
            assert (answered.status_code, answered.json()["inputs"]) == (200, shown["inputs"])
            told = (await waiting).json()
            assert (told["is_answered"], told["answer"]) == (True, "b")
            again = await _post(served, f"{place}/ask", **asked | {"question": "And which file?"})
            assert not again.json()["is_answered"]
            ended = await _post(served, f"{place}/complete", lease=lease, result={"disk": "b"})
            assert ended.json()["state"] == "completed"
            strange = await _post(served, f"{place}/ask", **asked | {"lease": "not-mine"})
            assert strange.json()["code"] == "HANDOFF_LEASE_LOST"

    asyncio.run(go())


def test_of_two_receivers_one_gets_it_and_only_its_lease_ends_it() -> None:
    async def go() -> None:
        async with serving() as served:
            handoff_id = await _made(served)
            place = f"/v1/handoffs/{handoff_id}"
            first = await _post(served, f"{place}/accept", agent_id="o11y")
            second = await _post(served, f"{place}/accept", agent_id="o11y", capabilities=["investigate"])
            assert (first.status_code, second.status_code) == (200, 409)
            wrong = await _post(served, f"{place}/complete", lease="not-mine", result={})
            assert (wrong.status_code, wrong.json()["code"]) == (409, "HANDOFF_LEASE_LOST")
            failed = await _post(served, f"{place}/fail", lease=first.json()["lease"], reason="no such trace")
            assert failed.json()["state"] == "failed"

    asyncio.run(go())


def test_a_receiver_that_falls_silent_loses_its_work_to_the_next() -> None:
    async def go() -> None:
        async with serving() as served:
            handoff_id = await _made(served)
            place = f"/v1/handoffs/{handoff_id}"
            first = await _post(served, f"{place}/accept", agent_id="o11y", lease_ms=1000)
            taken = (await _post(served, "/v1/receivers/o11y/take", wait_ms=10_000)).json()["items"]
            assert [one["handoff"]["id"] for one in taken] == [handoff_id]
            late = await _post(served, f"{place}/complete", lease=first.json()["lease"], result={})
            assert late.json()["code"] == "HANDOFF_LEASE_LOST"

    asyncio.run(go())


def test_progress_prolongs_a_lease_one_question_is_open_at_a_time_and_an_end_takes_the_lease() -> None:
    async def go() -> None:
        async with serving() as served:
            place = f"/v1/handoffs/{await _made(served)}"
            taken = (await _post(served, f"{place}/accept", agent_id="o11y")).json()
            lease, until, state = taken["lease"], taken["lease_until"], served.server.app.state
            for path, body in (
                ("progress", {"data": {}}),
                ("heartbeat", {}),
                ("ask", {"question": "Which disk?", "wait_ms": 0}),
            ):
                began_ms = state.now_ms()
                while state.now_ms() == began_ms:
                    await asyncio.sleep(0)
                before, until = until, (await _post(served, f"{place}/{path}", lease=lease, **body)).json()["lease_until"]
                assert until > before, path
            while (await served.client.get(place)).json()["state"] != "input_required":
                pass
            other = await _post(served, f"{place}/ask", lease=lease, question="Which file?", wait_ms=30_000)
            assert other.json()["code"] == "HANDOFF_STATE_CONFLICT"  # the answer to come is not its own
            await _post(served, f"{place}/cancel")
            ended = [await _post(served, f"{place}/heartbeat", lease=lease) for _ in range(2)]
            assert {one.json()["code"] for one in ended} == {"HANDOFF_LEASE_LOST"}
            assert [one.json()["detail"].split()[-1] for one in ended] == ["cancelled", "ended"]

    asyncio.run(go())


@pytest.mark.parametrize("then", ["another question", "a result"])
def test_a_receiver_that_waits_for_an_answer_is_told_it_or_that_its_lease_has_ended(then) -> None:
    """Dies where another request of the same receiver takes the waiting request its question, or leaves it without a response."""

    async def go() -> None:
        async with serving() as served:
            place = f"/v1/handoffs/{await _made(served)}"
            lease = (await _post(served, f"{place}/accept", agent_id="o11y")).json()["lease"]
            await _post(served, f"{place}/progress", lease=lease, data={})
            waiting = asyncio.create_task(_post(served, f"{place}/ask", lease=lease, question="Which disk?", wait_ms=30_000))
            while (await served.client.get(place)).json()["state"] != "input_required":
                pass
            if then == "a result":
                assert (await _post(served, f"{place}/complete", lease=lease, result={})).status_code == 200
                assert (await waiting).json()["code"] == "HANDOFF_LEASE_LOST"
                return
            other = await _post(served, f"{place}/ask", lease=lease, question="Which file?", wait_ms=30_000)
            assert (other.status_code, other.json()["code"]) == (409, "HANDOFF_STATE_CONFLICT")
            assert (await _post(served, f"{place}/answer", answer="b")).status_code == 200
            assert (await waiting).json()["answer"] == "b"
            asked = {"lease": lease, "wait_ms": 0}
            while (await served.client.get(place)).json()["state"] != "input_required":
                await _post(served, f"{place}/ask", **asked, question="Which file?")
            await _post(served, f"{place}/answer", answer="c")
            for _ in range(50):  # until the answer is there, which is not asked for again
                next_one = await _post(served, f"{place}/ask", **asked, question="Which line?")
                if next_one.status_code == 200:
                    break
            assert (next_one.status_code, next_one.json()["is_answered"]) == (200, False)

    asyncio.run(go())


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
def test_plain_curl_completes_a_handoff() -> None:
    async def curl(url: str, body: dict) -> dict:
        words = ["curl", "-s", "-H", f"Authorization: Bearer {TOKEN}", "-H", "Content-Type: application/json"]
        command = shlex.join([*words, "-d", json.dumps(body), url])
        process = await asyncio.create_subprocess_shell(command, stdout=asyncio.subprocess.PIPE)
        out, _ = await process.communicate()
        return json.loads(out)

    async def go() -> None:
        async with serving() as served:
            made = await curl(f"{served.url}/v1/handoffs", WORK)
            (taken,) = (await curl(f"{served.url}/v1/receivers/o11y/take", {}))["items"]
            assert taken["handoff"]["id"] == made["id"]
            done = await curl(
                f"{served.url}/v1/handoffs/{made['id']}/complete", {"lease": taken["lease"], "result": {"ok": True}}
            )
            assert done["state"] == "completed"

    asyncio.run(go())


NAMES = "investigate,other,"


def test_a_receiver_that_watches_is_told_of_each_handoff_for_it_once_and_keeps_none_from_others() -> None:
    async def go() -> None:
        async with serving() as served:
            first = await _made(served)
            async with served.client.stream("GET", "/v1/receivers/o11y/handoffs", params={"capabilities": NAMES}) as stream:
                lines = stream.aiter_lines()
                seen = [await _handoff(lines)]
                for more in ({"to_agent": "else"}, {"to_agent": None, "capability": "other"}, {}):
                    answer = await served.client.post("/v1/handoffs", json=WORK | more)
                    assert answer.status_code == 200, answer.text
                seen += [await _handoff(lines), await _handoff(lines)]
            assert seen[0]["id"] == first
            assert [(one["capability"], one["state"], one["inputs"]) for one in seen] == [
                ("investigate", "pending", {"trace": "t1"}),
                ("other", "pending", {"trace": "t1"}),
                ("investigate", "pending", {"trace": "t1"}),
            ]
            taken = (await _post(served, "/v1/receivers/o11y/take", wait_ms=5000)).json()["items"]
            assert first in [one["handoff"]["id"] for one in taken]

    asyncio.run(go())


async def _handoff(lines) -> dict:
    async with asyncio.timeout(20):
        async for line in lines:
            if line.startswith("data: "):
                return json.loads(line.removeprefix("data: "))
    raise AssertionError("the stream ended")
