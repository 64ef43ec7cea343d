"""What the node does for a running call besides its reply: session, watchers and budget."""

from __future__ import annotations

from typing import Any

from comity.core.envelope.usage import Usage
from comity.core.redaction import restore_value
from comity.core.units import NS_PER_MS
from comity.runtime.call import events
from comity.runtime.call.call import Call
from comity.runtime.call.environment import Environment
from comity.runtime.call.placement import Placement
from comity.runtime.session.view import SessionView


class Serving:
    """Sessions, watchers and budgets of running calls."""

    __slots__ = ("_privacy", "clock", "holds_words", "memories", "placement", "sessions")

    def __init__(self, env: Environment, placement: Placement) -> None:
        self.clock, self.sessions, self.memories, self._privacy = env.clock, env.sessions, env.memories, env.privacy
        self.placement = placement
        # Output that guardrails have yet to judge is neither shown nor recorded; see `settle`.
        self.holds_words = any(one.outbound is not None and not one.streams for one in env.guardrails)

    def session_of(self, call: Call) -> SessionView:
        """Return a call's view of its session."""
        return SessionView(self.sessions, self.memories, call, self._privacy)

    def progress(self, call: Call, data: Any) -> None:
        """Keep `data` as the latest partial result and send it to watchers."""
        call.progress = lambda: data
        self.tell(call, events.Kind.PROGRESS, data)

    def tell(self, call: Call, kind: events.Kind, data: Any) -> None:
        """Send an event to watchers, with the session's hidden values restored."""
        if call.log is not None:
            vault = self.sessions.vault_of(call)
            data = data if vault is None else restore_value(data, vault)
            add = call.log.put_aside if self.holds_words else call.log.add
            add(kind, self.clock.now_ns() // NS_PER_MS, call.request, data)

    def charge(self, call: Call, usage: Usage) -> bool:
        """Charge tokens to the call, the calls above it and the tree's budget; return whether the budget sufficed."""
        call.use_tokens(usage)
        were_there = call.account.spend_tokens(usage.total_tokens)
        return self.placement.top_up(call, were_there=were_there)

    def count(self, parent: Call, usage: Usage) -> None:
        """Charge the usage of a replayed child call: a tree has one budget across restarts."""
        self.placement.count_replayed(parent, usage)
        parent.calls_below += 1 + usage.calls
        self.charge(parent, usage)
