"""What was answered at once is given after a turn, and only a refusal is kept back longer."""

import asyncio

import pytest

from comity import Reply, Status
from comity.core.envelope import Error
from comity.runtime.tasks import after_a_turn
from comity.testing import run_virtual


@pytest.mark.parametrize(
    ("reply", "seconds"),
    [
        (Reply.success(1), 0),
        (Reply(status=Status.REFUSED, error=Error.of("ROUTING_CYCLE_DETECTED", "no")), 0.5),
        (Reply(status=Status.TIMEOUT, error=Error.of("CALL_TIMEOUT", "no")), 0),
    ],
    ids=lambda value: str(getattr(value, "status", "")),
)
def test_only_a_refusal_is_kept_back(reply, seconds):
    async def wait():
        loop = asyncio.get_running_loop()
        begin = loop.time()
        assert await after_a_turn(reply, 500) is reply
        return loop.time() - begin

    assert run_virtual(wait()) == pytest.approx(seconds)
