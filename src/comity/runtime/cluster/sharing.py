"""Turns a single node into a cluster member: it takes the leases of its active addresses, and its calls continue under them."""

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
    """Make a single node join a cluster. When this returns, all of its records carry fencing tokens.

    The calls in progress get their leases in one step without an await. Records written without leases before are durable when
    this returns, so other nodes see them.
    """
    await cluster.open()
    held = _held(path, cluster)
    while missing := [one for one in path.activations.addresses() if one not in held]:
        places = await asyncio.gather(*(cluster.holds.locate(address, is_hosted=True) for address in missing))
        if taken := [address for address, place in zip(missing, places, strict=True) if isinstance(place, str)]:
            raise UnavailableError(f"another node holds {taken[0]}, which is active here", code="LEASE_STALE")
        held = _held(path, cluster)
    path.join(cluster)
    for seat in path.activations.seats():
        seat.token = held[seat.address].token
    for call in path.calls.values():  # callers first: the dict is in insertion order
        call.way = _way(call, held)
    path.sessions.save_ended()
    await path.durable()


def _held(path: CallPath, cluster: Cluster) -> dict[str, Fence]:
    """Return the fencing tokens of the addresses in memory that this node holds."""
    fences = {address: cluster.holds.fence(address) for address in path.activations.addresses()}
    return {address: fence for address, fence in fences.items() if fence is not None}


def _way(call: Call, held: dict[str, Fence]) -> Way:
    """Return the way of a call that began without a lease."""
    parent, address = call.parent, call.request.target
    if parent is not None and isinstance(call.seat, Lane):  # a handoff is awaited by the agent that made it
        address = parent.request.target
    if parent is None:
        return Way(fence=held[address], is_recorded=True)
    bounds = parent.way.bounds_below(parent.request)
    return Way(fence=held[address], caller=parent.way.fence, bounds=bounds, is_recorded=True)
