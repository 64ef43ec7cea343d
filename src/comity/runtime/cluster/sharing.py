"""From alone to one of several: a node takes the leases of what it runs, and its calls go on under them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from comity.core.journal.terms import Fence
from comity.errors import UnavailableError
from comity.runtime.agent.activations import Lane
from comity.runtime.call.call import Call
from comity.runtime.call.way import Way

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath
    from comity.runtime.cluster.cluster import Cluster


async def share(path: CallPath, cluster: Cluster) -> None:
    """Let a node that was alone share the work from now on. When this returns, everything it does is written under its leases.

    The calls under way get their place among the leases in one step, in which nothing else happens. What was written without
    leases before is durable when this returns, so other nodes see it.
    """
    await cluster.open()
    while missing := [one for one in path.activations.addresses() if cluster.holds.fence(one) is None]:
        places = await asyncio.gather(*(cluster.holds.locate(address, is_hosted=True) for address in missing))
        if taken := [address for address, place in zip(missing, places, strict=True) if isinstance(place, str)]:
            raise UnavailableError(f"another node holds {taken[0]}, which is active here", code="LEASE_STALE")
    path.join(cluster)
    for seat in path.activations.seats():
        fence = cluster.holds.fence(seat.address)
        assert fence is not None  # as the loop above saw, and nothing was awaited since
        seat.token = fence.token
    for call in path.calls.values():  # callers first: each was noted before the calls it made
        call.way = _way(call, cluster)
    path.sessions.save_ended()
    await path.durable()


def _way(call: Call, cluster: Cluster) -> Way:
    """Return how a call goes on that began without leases."""
    above = None if call.parent is None else call.parent.way
    fence: Fence | None
    if isinstance(call.seat, Lane):  # work that was handed off is waited for by the agent that handed it off
        fence = None if above is None else above.fence
    else:
        fence = cluster.holds.fence(call.request.target)
    assert fence is not None
    if call.parent is None or above is None:
        return Way(fence=fence, is_recorded=True)
    bounds = above.bounds_below(call.parent.request)
    return Way(fence=fence, caller=above.fence, bounds=bounds, is_recorded=True)
