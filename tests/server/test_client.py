"""The client of a served node."""

from __future__ import annotations

import asyncio

import pytest
from served import TOKEN, echo_agent, serving
from threaded import served_in_thread

from comity import Node, Status
from comity.client import AsyncClient, Client
from comity.errors import CallerError, RefusedError, UnavailableError


def test_a_client_calls_follows_and_lists_as_a_node_does() -> None:
    async def go() -> None:
        async with serving() as served, AsyncClient(served.url, TOKEN) as client:
            reply = await client.call("ECHO", "SAY", {"text": "hi"}, user_id="u1", session_id="s1")
            assert (reply.status, reply.unwrap()) == (Status.SUCCESS, {"text": "hi"})
            handle = await client.start_call("ECHO", "STEPS", {"count": 2}, user_id="u1")
            kinds = [str(event.kind) async for event in handle.events()]
            assert kinds == ["queued", "started", "progress", "progress", "settled"]
            assert (await handle.reply()).data == {"count": 2}
            refused = await client.call("NONE", "SAY", {}, user_id="u1")
            assert refused.status is Status.REFUSED
            with pytest.raises(CallerError):
                refused.unwrap()
            assert [one["capability"] async for one in client.calls(limit=1)] == ["SAY", "STEPS", "SAY"]
            assert [one["id"] for one in await client.agents()] == ["ECHO"]
            assert (await client.session("s1"))["user_id"] == "u1"
            assert (await client.verify_audit())["ok"]

    asyncio.run(go())


def test_the_same_request_id_runs_nothing_twice_and_a_cancel_reaches_the_call() -> None:
    async def go() -> None:
        async with serving() as served, AsyncClient(served.url, TOKEN) as client:
            handle = await client.start_call("ECHO", "WAIT", {}, user_id="u1", request_id="r-1")
            again = await client.start_call("ECHO", "WAIT", {}, user_id="u1", request_id="r-1")
            assert again.request_id == handle.request_id == "r-1"
            assert await handle.cancel()
            assert (await again.reply()).status is Status.CANCELLED
            assert not await handle.cancel()

    asyncio.run(go())


def test_a_wrong_token_and_a_server_that_is_gone_raise_what_says_who_must_act() -> None:
    async def go() -> None:
        async with serving() as served:
            async with AsyncClient(served.url, "wrong") as client:
                with pytest.raises(RefusedError):
                    await client.call("ECHO", "SAY", {"text": "hi"}, user_id="u1")
            url = served.url
        async with AsyncClient(url, TOKEN) as client:
            with pytest.raises(UnavailableError) as raised:
                await client.call("ECHO", "SAY", {"text": "hi"}, user_id="u1")
            assert raised.value.code == "NODE_UNREACHABLE"

    asyncio.run(go())


def test_scripts_have_the_same_names() -> None:
    with served_in_thread(lambda: Node([echo_agent()])) as threaded, Client(threaded.url, TOKEN) as client:
        assert client.call("ECHO", "SAY", {"text": "hi"}, user_id="u1").data == {"text": "hi"}
        handle = client.start_call("ECHO", "STEPS", {"count": 1}, user_id="u1")
        assert [str(event.kind) for event in handle.events()] == ["queued", "started", "progress", "settled"]
        assert handle.reply().data == {"count": 1}
        assert len(list(client.calls())) == 2
    public = {name for name in dir(AsyncClient) if not name.startswith("_")}
    assert public == {name for name in dir(Client) if not name.startswith("_")}
