"""What a run needs of the node that drives it, and what a handle of a run asks of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from comity.core.agent.registry import Registry
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply, Request
from comity.ports import Journal
from comity.runtime.call.draft import Draft
from comity.runtime.workflow.store import RunRecord, RunStore
from comity.runtime.workflow.timers import Timers
from comity.runtime.workflow.watching import RunEvent, Watchers

if TYPE_CHECKING:
    from comity.runtime.call.path import CallPath

Ask = Callable[..., Awaitable[Reply]]  # (target, capability, inputs, *, message, objective): a call below the run
Strategy = Callable[[Sequence[tuple[str, dict[str, Any]]], dict[str, Any], Ask], Reply | Awaitable[Reply]]

# (the agents of the node, the inputs of a step): the call that serves the step, or its reply if no call is needed
Binder = Callable[[Registry, dict[str, Any]], Draft | Reply]


class Host(Protocol):
    """What a run needs of the node that drives it."""

    path: CallPath
    journal: Journal
    loop: asyncio.AbstractEventLoop
    store: RunStore
    timers: Timers
    watchers: Watchers
    step_limits: Limits

    @property
    def strategies(self) -> Mapping[str, Strategy]:
        """How replies are aggregated, by name."""
        ...

    def now_ms(self) -> int:
        """Return the time."""
        ...

    def postpone(self, request: Request, leftovers: dict[str, Request], record: RunRecord, why: Exception) -> None:
        """Go on with a run a little later."""
        ...

    def binder(self, target: str, capability: str) -> Binder | None:
        """Return what binds the calls of a capability to the calls that serve them."""
        ...

    def takes(self, target: str, capability: str) -> frozenset[str]:
        """Return the names of a capability's inputs."""
        ...


class Runs(Protocol):
    """What a handle of a run asks of the node."""

    def get(self, run_id: str) -> RunRecord:
        """Return a run as it stands."""
        ...

    async def result(self, run_id: str) -> Reply:
        """Wait for the end of a run."""
        ...

    def events(self, run_id: str) -> AsyncGenerator[RunEvent, None]:
        """Yield what happened to a run, then what happens."""
        ...

    async def answer(self, run_id: str, question_id: str, answer: Any, *, by: str = "") -> None:
        """Answer an open question."""
        ...

    async def cancel(self, run_id: str, *, reason: str = "", by: str = "") -> None:
        """Cancel a run."""
        ...

    async def signal(self, run_id: str, event: str, data: Any = None) -> None:
        """Send an event to a run."""
        ...
