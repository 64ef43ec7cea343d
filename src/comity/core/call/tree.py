"""A call in its tree: what was asked and by which call, how far it is, and what the calls below it have used and given back.

The runtime's `Call` adds how the call runs. Everything here is data that rules decide on; `core/call/settling.py` decides how a
tree ends.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, Self

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call.ledger import Account
from comity.core.call.limits import Limits
from comity.core.call.machine import ADMITTED, RUNNING, SENT, State
from comity.core.envelope.envelope import Reply, Request, Status
from comity.core.envelope.usage import NO_USAGE, Usage

PARTS_KEPT_MAX: Final = 64  # replies that a call under way keeps of the calls it made, newest


class Branch(Struct, eq=False, gc=False):
    """A call with everything below it; equal only to itself."""

    request: Request
    parent: Self | None
    account: Account
    root: Self | None = None  # None for a root; read `top`
    state: State = ADMITTED
    leftovers: dict[str, Request] | None = None  # of a resumed call: calls below it that were open when its node stopped
    # None until first needed: most calls have none, and the collector need not look at empty ones.
    children: dict[Self, None] | None = None  # not settled yet
    objectives: dict[tuple[str | None, str, str], int] | None = None  # in progress under this root
    parts: list[tuple[Request, Reply]] | None = None  # what the calls it made gave back: see `core/call/unfinished.py`
    has_missed: bool = False  # a call that it made ran out of time
    calls_made: int = 0  # numbers the ids of the calls it makes
    calls_below: int = 0
    used: Usage = NO_USAGE  # tokens, here and below, with what they cost; the calls are counted beside

    @property
    def top(self) -> Self:
        """The root of the tree."""
        return self if self.root is None else self.root

    @property
    def shown(self) -> Any:
        """What the call has told of its work so far."""
        return None

    @property
    def waits_for(self) -> Collection[Self]:
        """The calls it made that have not ended."""
        return self.children or ()

    @property
    def is_queued(self) -> bool:
        """Whether it still waits for its place."""
        return self.state is not RUNNING and self.state is not SENT

    @property
    def is_resumed(self) -> bool:
        """Whether an earlier run had begun it: its calls may have been made before, under the same ids."""
        return self.leftovers is not None

    @property
    def is_again(self) -> bool:
        """Whether an earlier run may have done what it does: it or a call above it was resumed."""
        call: Branch | None = self
        while call is not None:
            if call.leftovers is not None:
                return True
            call = call.parent
        return False

    # --- calls below ---

    def attach(self, parent: Self) -> None:
        """Stand below the call that makes it."""
        self.root = top = parent.top
        if parent.children is None:
            parent.children = {}
        parent.children[self] = None
        if self.request.objective:
            if top.objectives is None:
                top.objectives = {}
            key = self._objective
            top.objectives[key] = top.objectives.get(key, 0) + 1

    def detach(self) -> None:
        """Stand below its caller no more, without having ended."""
        parent: Branch | None = self.parent
        if parent is not None and parent.children is not None:
            parent.children.pop(self, None)
            if self.request.objective:
                self._end_objective()

    def leave(self, parent: Self, reply: Reply) -> None:
        """Stand below its caller no more: it has ended, and the caller keeps what it gave back."""
        if parent.children is not None:
            del parent.children[self]
        parent.calls_below += 1 + self.calls_below
        parent.keep(self.request, reply)
        if self.request.objective:
            self._end_objective()

    def keep(self, request: Request, reply: Reply) -> None:
        """Keep what a call that it made gave back."""
        parts = self.parts
        if parts is None:
            self.parts = [(request, reply)]
        else:
            if len(parts) >= PARTS_KEPT_MAX:
                del parts[0]
            parts.append((request, reply))
        if reply.status is Status.TIMEOUT:
            self.has_missed = True

    @property
    def _objective(self) -> tuple[str | None, str, str]:
        return self.request.source, self.request.target, self.request.objective

    def _end_objective(self) -> None:
        objectives, key = self.top.objectives or {}, self._objective
        objectives[key] -= 1
        if not objectives[key]:
            del objectives[key]

    # --- what is used, and what is left ---

    def use_tokens(self, usage: Usage) -> None:
        """Note tokens that were used, and what they cost, here and in every call above; calls are not counted."""
        if not usage.total_tokens:
            return
        usage = usage if not usage.calls else replace(usage, calls=0)
        call: Branch | None = self
        while call is not None:
            call.used = usage if call.used is NO_USAGE else call.used + usage
            call = call.parent

    def usage(self) -> Usage:
        """What this call and those below it used."""
        used = self.used
        if not self.calls_below:
            return used
        return Usage(
            prompt_tokens=used.prompt_tokens,
            completion_tokens=used.completion_tokens,
            calls=self.calls_below,
            cost=used.cost,
        )

    def left(self, now_ms: int) -> Limits:
        """Return what is left to it: hops below, further parallel calls, milliseconds, and the tree's calls and tokens."""
        limits = self.request.limits
        left_ms = max(self.request.deadline_at - now_ms, 0)
        return Limits(
            depth_max=max(limits.depth_max - self.request.depth, 0),
            fan_out_max=max(limits.fan_out_max - len(self.waits_for), 0),
            timeout_ms=min(limits.timeout_ms, left_ms),
            timeout_ms_max=min(limits.timeout_ms_max, left_ms),
            calls_max=max(self.account.calls_left(), 0),
            tokens_max=self.account.tokens_left(),
        )
