"""A model agent whose node died goes on from the words its model had said, and asks for none of them twice."""

from __future__ import annotations

import asyncio

from death import die
from team import ask, prompts, thinker

from comity import Node
from comity.testing import Answer


def test_what_a_model_said_before_the_crash_is_not_asked_for_again(tmp_path):
    store = tmp_path / "work.db"

    async def first_life():
        prime = thinker("prime", ask("byte", "first"), Answer(text="x", stalls=True), can_call=["byte"])
        byte = thinker("byte", "the total is 12")
        node = Node([prime, byte], store=store)
        await node.start()
        node.start_call("prime", "message", message="go", user_id="u", request_id="case-1", timeout_ms=300_000)
        while len(prompts(prime)) < 2:
            await asyncio.sleep(0)
        await die(node)

    async def second_life():
        prime, byte = thinker("prime", "It is 12.", can_call=["byte"]), thinker("byte")
        async with Node([prime, byte], store=store) as node:
            reply = await node.call("prime", "message", message="go", user_id="u", request_id="case-1")
            return reply, prompts(prime), prompts(byte), node.audit.verify()

    asyncio.run(first_life())
    reply, asked, delegated, verdict = asyncio.run(second_life())
    assert (reply.message, len(asked), len(delegated)) == ("It is 12.", 1, 0)
    assert "the total is 12" in asked[0].messages[-1].text
    assert verdict.ok
