"""One call under way: the request, where it runs, who waits for it, and what it has used so far."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from typing import Any

from msgspec import Struct

from comity.core.agent import Agent, Capability
from comity.core.call import ADMITTED, RUNNING, State
from comity.core.envelope import Reply, Request, Usage
from comity.core.ledger import Account
from comity.core.tool import EVERYTHING
from comity.core.trace_context import TraceContext
from comity.runtime.activation import Activation
from comity.runtime.events import EventLog
from comity.runtime.sessions import Live
from comity.runtime.text_stream import TextStream


class Call(Struct, eq=False, gc=False):
    """Everything the runtime knows about one call; equal only to itself.

    Its cycles (task, children, seat) are undone when it ends, so the garbage collector need not look for them.
    """

    request: Request
    parent: Call | None
    agent: Agent
    capability: Capability
    arguments: Any
    seat: Activation
    account: Account
    started_ns: int
    live: Live | None = None  # the session; None for a call without one, until something in it needs keeping
    rights: frozenset[str] = EVERYTHING  # tools it may use
    log: EventLog | None = None  # the root's, if somebody may watch it
    root: Call | None = None  # None for a root; read `top`
    state: State = ADMITTED
    # None until first needed: most calls have neither, and the collector need not look at empty ones.
    children: dict[Call, None] | None = None  # not settled yet
    objectives: dict[tuple[str | None, str, str], int] | None = None  # in progress under this root
    leftovers: dict[str, Request] | None = None  # of a resumed root: calls below it that were open when its node stopped
    uses: dict[str, Request] | None = None  # of tools, begun and not done
    task: asyncio.Task[None] | None = None
    waiters: list[asyncio.Future[None]] | None = None
    reply: Reply | None = None
    partial: Any = None  # the last progress told, or the text being written
    warnings: tuple[str, ...] = ()  # of people's constraints, for the reply
    primary_code: str = ""  # why the first implementation failed, where another answered instead
    is_delivered: bool = False  # the reply may leave: it is durable where the node promises that
    is_detached: bool = False  # nobody needs to wait for it: a handle holds it, or it was resumed
    is_probe: bool = False  # its outcome decides whether a half-open breaker closes
    skips_primary: bool = False  # the breaker is open and another implementation stands in
    uses_state: bool = False  # it looked at the agent's state, which is saved when it settles
    prompt_tokens: int = 0
    completion_tokens: int = 0
    calls_below: int = 0
    calls_made: int = 0  # numbers the ids of the calls it makes
    tools_used: int = 0  # and of the tools it uses
    remote: TraceContext | None = None  # the trace its root came with from outside

    @property
    def top(self) -> Call:
        """The root of the tree."""
        return self if self.root is None else self.root

    @property
    def is_queued(self) -> bool:
        """Whether it still waits for its place."""
        return self.state is not RUNNING

    @property
    def waits_for(self) -> Collection[Call]:
        """The calls it made that have not ended."""
        return self.children or ()

    def unfinished(self) -> Any:
        """What there is to show of a call that ends early: the last progress told, or the text written so far."""
        return self.partial.data() if isinstance(self.partial, TextStream) else self.partial

    def usage(self) -> Usage:
        """What this call and those below it used."""
        return Usage(prompt_tokens=self.prompt_tokens, completion_tokens=self.completion_tokens, calls=self.calls_below)

    def watch(self, log: EventLog) -> None:
        """Let events of this call and those below it be seen from now on."""
        self.log = log
        for child in self.waits_for:
            child.watch(log)
