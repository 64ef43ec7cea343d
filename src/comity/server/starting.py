"""Who may start which work: the one check behind every door that starts a call, a handoff or a run.

A token with a scope starts what a `call:` word of that scope names, at whichever door. An agent's token also starts one piece
of work only, and that work stands below the agent's chain with what is left of its limits.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from comity.core.access import Principal
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.call.outside import Outside, outside_of
from comity.core.workflow.model import Definition
from comity.errors import RefusedError
from comity.server.state import State


class Start(NamedTuple):
    """What holds for work that is started: its id, where the sender named or needs one, and where an agent's work stands."""

    request_id: str | None
    outside: Outside | None = None


def checked_start(state: State, principal: Principal, target: str, capability: str, request_id: str | None) -> Start:
    """Return what holds for work that a sender starts; `target` is `*` where any agent with the capability may do it.

    Work without an id of its own is known by the agent's token: sent again, it is a retry. Raises `RefusedError` for work
    beyond the scope of the token, and for a token that was used for other work.
    """
    principal.check_call(target, capability)
    claims = principal.claims
    if not principal.is_agent or claims is None:
        return Start(request_id)
    now_ms, signed = state.now_ms(), state.auth.signed
    request_id = request_id or f"token-{claims.jti}"
    signed.bind(principal, request_id, now_ms=now_ms)
    return Start(request_id, outside_of(claims, signed.node_name, now_ms=now_ms))


def check_run(principal: Principal, definition: Definition, library: Mapping[str, Definition]) -> None:
    """Raise `RefusedError` unless the scope of a token allows every call that a run of a workflow may make, with its parts."""
    if not principal.scope.words:
        return
    parts = {definition.name: definition}
    waiting = [definition]
    while waiting:
        one = waiting.pop()
        for node in one.nodes.values():
            for call in (node.call, node.undo):
                if call is not None:
                    principal.check_call(call.agent, call.capability)
        for name in one.uses:
            part = library.get(name)
            if part is None:
                message = f"the token has a scope, and what workflow {name[:CITED_CHARS_MAX]} calls is not known"
                raise RefusedError(message, code="RIGHTS_SCOPE_EXCEEDED")
            if name not in parts:
                parts[name] = part
                waiting.append(part)
