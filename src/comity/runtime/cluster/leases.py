"""The leases of this node with their fencing tokens, and a cache of which node holds other addresses.

One heartbeat renews all leases of a node. They count as lost when the last answered heartbeat is too old by the node's own
clock, measured from when it was sent: that is never later than by the clock of the lease service. The fencing tokens stop a
node that notices too late.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from comity.core.cluster.lease import RENEW_MS, Event, Lease, State, advance
from comity.core.journal.terms import Fence
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import UnavailableError
from comity.ports import Clock, Journal, Leases

log = logging.getLogger("comity")


class Hold:
    """What this node knows about one address."""

    __slots__ = ("address", "asking", "good_until", "lease", "spoilt", "state")

    def __init__(self, address: str) -> None:
        self.address = address
        self.state = State.UNKNOWN
        self.lease: Lease | None = None
        self.good_until = 0  # for an address of another node: when to ask again, in ms by this node's clock
        # A token that must not be used again although its lease may be valid: code that runs under it may not have stopped.
        self.spoilt = 0
        self.asking: asyncio.Task[None] | None = None

    def advance(self, event: Event) -> bool:
        """Apply an event to the lease's state machine; return whether it was valid in this state."""
        state = advance(self.state, event)
        if state is not None:
            self.state = state
        return state is not None


class Holds:
    """Leases that this node holds or knows about. `lose` is called when a lease held here ends."""

    def __init__(self, leases: Leases, journal: Journal, clock: Clock, lose: Callable[[str], None]) -> None:
        self._leases = leases
        self._journal = journal
        self._clock = clock
        self._lose = lose
        self._holds: dict[str, Hold] = {}
        self._kept_until = 0  # ms by this node's clock: its leases are valid until then
        self._tasks: dict[asyncio.Task[None], None] = {}  # the loop keeps only weak references

    async def open(self) -> None:
        """Send the first heartbeat. Raises `UnavailableError` if the lease service cannot be reached."""
        await self._beat()

    def fence(self, address: str) -> Fence | None:
        """Return the fencing token of an address that this node holds, or None."""
        hold = self._holds.get(address)
        if hold is None or hold.state is not State.HELD or hold.lease is None:
            return None
        if self._now_ms() >= self._kept_until:
            self._lose_all()
            return None
        return Fence(address, hold.lease.token)

    async def locate(self, address: str, *, is_hosted: bool) -> Fence | str | None:
        """Return the fencing token if this node holds the address, the id of another holder, or None if no node holds it.

        Take the lease of a free address if its agent `is_hosted` here. Raises `UnavailableError` if the holder is unknown.
        """
        if (place := self.known(address)) is not None:
            return place
        hold = self._holds.setdefault(address, Hold(address))
        if hold.asking is None:
            hold.asking = self._spawn(self._ask(hold, is_hosted=is_hosted))
        await asyncio.shield(hold.asking)
        if (fence := self.fence(address)) is not None:
            return fence
        return self.elsewhere(address)

    def known(self, address: str) -> Fence | str | None:
        """Return what `locate` would if it is cached, else None."""
        hold = self._holds.get(address)
        if hold is None:
            return None
        if hold.state is State.ELSEWHERE and hold.lease is not None:
            return hold.lease.holder if self._now_ms() < hold.good_until else None
        return self.fence(address)

    def elsewhere(self, address: str) -> str | None:
        """Return the other node that holds an address, if that is cached."""
        hold = self._holds.get(address)
        return hold.lease.holder if hold is not None and hold.state is State.ELSEWHERE and hold.lease is not None else None

    def gone(self, node_id: str) -> None:
        """Drop cached addresses of a node that seems to have left or died."""
        for hold in self._holds.values():
            if hold.state is State.ELSEWHERE and hold.lease is not None and hold.lease.holder == node_id:
                hold.good_until = 0

    def doubt(self, address: str, node_id: str) -> None:
        """Drop a cached address: its node does not answer, or says that it does not hold it."""
        hold = self._holds.get(address)
        if hold is not None and hold.state is State.ELSEWHERE and hold.lease is not None and hold.lease.holder == node_id:
            hold.good_until = 0

    def lost(self, address: str, token: int) -> None:
        """Note that a newer fencing token exists."""
        hold = self._holds.get(address)
        if hold is not None and hold.lease is not None and hold.lease.token <= token and hold.state is State.HELD:
            hold.spoilt = hold.lease.token
            hold.advance(Event.LOST)
            self._lose(address)

    def spoil(self, address: str) -> None:
        """Give up a valid lease: code that runs under its token cannot be trusted."""
        hold = self._holds.get(address)
        if hold is not None and hold.lease is not None:
            self.lost(address, hold.lease.token)

    def release(self, address: str) -> None:
        """Release the lease of an address once all records for it are durable."""
        hold = self._holds.get(address)
        if hold is not None and hold.lease is not None and hold.advance(Event.RELEASED):
            self._journal.append((), partial(self._give_back, hold.lease))

    async def keep(self) -> None:
        """Send heartbeats until cancelled, and drop cached addresses that are no longer used."""
        while True:
            await asyncio.sleep(RENEW_MS / MS_PER_S)
            now_ms = self._now_ms()
            for hold in [one for one in self._holds.values() if one.asking is None and one.good_until <= now_ms]:
                if hold.state is not State.HELD and not hold.spoilt:  # forgotten: asked for again when a call needs it
                    del self._holds[hold.address]
            try:
                async with asyncio.timeout(RENEW_MS / MS_PER_S):  # not wait_for: its steps differ between versions of Python
                    await self._beat()
            except (UnavailableError, TimeoutError):
                if self._now_ms() >= self._kept_until:
                    self._lose_all()

    async def _beat(self) -> None:
        asked_at = self._now_ms()
        left_ms = await self._leases.keep()
        if left_ms is None or self._now_ms() >= self._kept_until:
            self._lose_all()
        if left_ms is None:  # the lease service has restarted
            asked_at = self._now_ms()
            left_ms = await self._leases.keep()
        self._kept_until = asked_at + (left_ms or 0)

    def _lose_all(self) -> None:
        for hold in list(self._holds.values()):
            if hold.state is State.HELD and hold.lease is not None:
                self.lost(hold.address, hold.lease.token)

    async def close(self) -> None:
        """Release all leases; the journal has made their records durable."""
        mine = [hold for hold in self._holds.values() if hold.state is State.HELD or hold.spoilt]
        leases = [hold.lease for hold in mine if hold.lease is not None]
        self._holds.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*(self._release(lease) for lease in leases), *self._tasks, return_exceptions=True)

    async def _ask(self, hold: Hold, *, is_hosted: bool) -> None:
        hold.advance(Event.ASK)
        event = Event.FAILED
        try:
            node_id, address = self._journal.node_id, hold.address
            lease = await self._leases.acquire(address) if is_hosted else self._leases.find(address)
            if lease is not None and lease.holder == node_id and lease.token <= hold.spoilt:
                await self._leases.release(lease)
                lease = await self._leases.acquire(address)
            if lease is not None:
                hold.lease = lease
                if lease.holder == node_id:
                    hold.spoilt, event = 0, Event.GRANTED
                else:
                    hold.good_until, event = self._now_ms() + lease.left_ms, Event.DENIED
                    if lease.token > hold.spoilt:  # `find` may have read the lease that this node lost
                        hold.spoilt = 0
        finally:
            hold.asking = None
            hold.advance(event)

    def _give_back(self, lease: Lease, error: Exception | None) -> None:
        if error is None:
            self._spawn(self._release(lease))

    async def _release(self, lease: Lease) -> None:
        try:
            await self._leases.release(lease)
        except UnavailableError as error:
            log.info("the lease of %s could not be released and will expire: %s", lease.address, error)

    def _spawn(self, work: asyncio._CoroutineLike[None]) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.pop(task, None)
        if not task.cancelled():
            task.exception()  # its waiters got the exception; without a waiter, it is asked again

    def _now_ms(self) -> int:
        return self._clock.now_ns() // NS_PER_MS
