"""Records as a node would write them, and how the tests write them to a journal."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from msgspec import Raw

from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Error, Reply, Request, Status
from comity.core.journal.records import Accepted, Late, Paused, Record, Refused, Settled
from comity.core.journal.terms import Terms
from comity.ports import Journal

LIMITS = Limits()
PATIENCE_S = 30  # a test that waits for this has failed


def request(
    request_id: str,
    *,
    parent_id: str | None = None,
    created_at: int = 1_000,
    inputs: bytes = b"{}",
    session_id: str = "s-1",
    user_id: str = "user-1",
    tenant_id: str = "default",
) -> Request:
    root_id = request_id if parent_id is None else parent_id.split(".")[0]
    return Request(
        request_id,
        "ANL",
        "ANL_NPV",
        user_id,
        LIMITS,
        created_at + 30_000,
        created_at,
        body=Raw(inputs),
        root_id=root_id,
        parent_id=parent_id,
        session_id=session_id,
        tenant_id=tenant_id,
    )


def accepted(request_id: str, *, node_id: str = "node", **more: Any) -> Accepted:
    return Accepted(request(request_id, **more), 2_000, node_id)


def settled(request_id: str, data: Any = None, **more: Any) -> Settled:
    return Settled(
        request(request_id, **more), Reply(status=Status.SUCCESS, data=data, confidence=1.0, request_id=request_id), 3_000
    )


def refused(request_id: str, **more: Any) -> Refused:
    error = Error.of("ROUTING_CYCLE_DETECTED", "no")
    return Refused(request(request_id, **more), Reply(status=Status.REFUSED, error=error, request_id=request_id), 2_500)


def late(request_id: str, data: Any = None, **more: Any) -> Late:
    return Late(
        request(request_id, **more), Reply(status=Status.SUCCESS, data=data, confidence=1.0, request_id=request_id), 9_000
    )


def paused(request_id: str, **more: Any) -> Paused:
    return Paused(request(request_id, **more), Reply(status=Status.NEEDS_INPUT, message="may I?", request_id=request_id), 2_700)


async def written(journal: Journal, *records: Record, terms: Terms | None = None) -> None:
    """Append records together and wait until they are durable; raise what stopped the journal."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def then(error: Exception | None) -> None:
        done.set_result(None) if error is None else done.set_exception(error)

    journal.append(records, then, terms)
    async with asyncio.timeout(PATIENCE_S):
        await done


def told_by(journal: Journal, appends: Sequence[Sequence[Record]]) -> list[Exception | None]:
    """Append each of `appends` with a listener, and return the list the listeners write to."""
    told: list[Exception | None] = []
    for records in appends:
        journal.append(tuple(records), told.append)
    return told


def run(journal: Journal, scenario: Callable[[Journal], Awaitable[None]]) -> None:
    """Open the journal, play the scenario in an event loop, and close it."""

    async def main() -> None:
        journal.open()
        try:
            await scenario(journal)
        finally:
            await journal.close()

    play(journal, main())


def play(journal: Journal, main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine in the event loop that the journal belongs to, if it has one of its own, and else in a new one."""
    loop = getattr(journal, "loop", None)
    return asyncio.run(main) if loop is None else loop.run_until_complete(main)


async def breathe() -> None:
    """Let timers go on, in simulated time too: there no timer fires as long as a task is ready."""
    await asyncio.sleep(1e-6)
