"""What was answered at once is given after a turn; calls that ask too often wait in line."""

import asyncio
from types import SimpleNamespace

import pytest

from comity import Reply
from comity.runtime.call.call import Call
from comity.runtime.call.tasks import after_a_turn
from comity.testing import run_virtual


def test_others_have_a_turn_before_an_answer_that_was_there_at_once():
    async def wait():
        turns = []
        asyncio.get_running_loop().call_soon(turns.append, "other")
        reply = Reply.success(1)
        assert await after_a_turn(reply) is reply
        return turns

    assert run_virtual(wait()) == ["other"]


def test_those_in_line_wait_one_after_the_other():
    async def wait():
        loop, parent = asyncio.get_running_loop(), SimpleNamespace(line=None)
        begin = loop.time()
        await asyncio.gather(*(Call.wait_in_line(parent, 500) for _ in range(4)))
        return loop.time() - begin

    assert run_virtual(wait()) == pytest.approx(2)
