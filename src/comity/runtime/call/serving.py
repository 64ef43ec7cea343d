"""What a call under way has beside its answer: its session, its watchers, its budget."""

from __future__ import annotations

from typing import Any

from comity.core.envelope.usage import Usage
from comity.core.redaction import restore_value
from comity.runtime.call import events
from comity.runtime.call.call import Call
from comity.runtime.call.environment import Environment
from comity.runtime.call.placement import Placement
from comity.runtime.session.view import SessionView


class Serving:
    """What a node does for calls that run."""

    __slots__ = ("_privacy", "clock", "holds_words", "memories", "placement", "sessions")

    def __init__(self, env: Environment, placement: Placement) -> None:
        self.clock, self.sessions, self.memories, self._privacy = env.clock, env.sessions, env.memories, env.privacy
        self.placement = placement
        # What is still to be judged is neither shown nor recorded; see `settle`.
        self.holds_words = any(one.outbound is not None and not one.streams for one in env.guardrails)

    def session_of(self, call: Call) -> SessionView:
        """Return a call's view of its session."""
        return SessionView(self.sessions, self.memories, call, self._privacy)

    def progress(self, call: Call, data: Any) -> None:
        """Keep the newest partial data and tell who watches."""
        call.progress = lambda: data
        self.tell(call, events.Kind.PROGRESS, data)

    def tell(self, call: Call, kind: events.Kind, data: Any) -> None:
        """Tell who watches, with the session's hidden values back in their places."""
        if call.log is not None:
            vault = self.sessions.vault_of(call)
            data = data if vault is None else restore_value(data, vault)
            add = call.log.put_aside if self.holds_words else call.log.add
            add(kind, self.clock.now_ns() // 1_000_000, call.request, data)

    def charge(self, call: Call, usage: Usage) -> bool:
        """Charge tokens to the call, to every call above it and to the tree's budget; return whether they were there."""
        call.use_tokens(usage)
        were_there = call.account.spend_tokens(usage.total_tokens)
        return self.placement.top_up(call, were_there=were_there)

    def count(self, parent: Call, usage: Usage) -> None:
        """Charge what a call of an earlier run used: a tree has one budget for all its runs."""
        self.placement.count_replayed(parent, usage)
        parent.calls_below += 1 + usage.calls
        self.charge(parent, usage)
