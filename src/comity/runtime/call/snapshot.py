"""Builds the `Snapshot` that admission rules read: what the node knows about one request at one moment."""

from __future__ import annotations

from comity.core.agent.agent import Agent
from comity.core.agent.registry import Registry
from comity.core.call import admission
from comity.core.call.ledger import Account
from comity.core.call.waits import loop_closed_by
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import Request
from comity.core.guidance.guidance import Finding
from comity.core.session.session import EXPIRED_MS, is_first
from comity.runtime.agent.activations import Activation
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Arrival
from comity.runtime.call.way import LOCAL, Way
from comity.runtime.session.live import Live


def admits_below(
    registry: Registry, arrival: Arrival, parent: Call, place: int, account: Account, way: Way, now_ms: int
) -> bool:
    """Return whether no rule can refuse a child call that has no problems; quicker than running each rule."""
    request, agent, capability = arrival.request, arrival.agent, arrival.capability
    if place or way.is_served or arrival.depth_max is not None:
        return False
    may_call = parent.agent.can_call is None or (agent is not None and registry.permits(parent.agent, agent))
    under_way = 0 if parent.children is None else len(parent.children)
    return may_call and admission.admits_below(request, parent.request, agent, capability, under_way, account.left(), now_ms)


def snapshot(
    registry: Registry,
    arrival: Arrival,
    parent: Call | None,
    live: Live | None,
    checked: Checked,
    seat: Activation[Call] | None,
    place: int,
    account: Account,
    breaker_wait_ms: int | None,
    findings: tuple[Finding, ...],
    now_ms: int,
    way: Way = LOCAL,
) -> admission.Snapshot:
    """Return the snapshot for one request."""
    request, agent, capability = arrival.request, arrival.agent, arrival.capability
    caller: admission.Caller | None = None
    permitted, in_progress = True, False
    depth_max = request.limits.depth_max
    if parent is not None:
        above = parent.request
        depth_max = above.limits.depth_max
        if arrival.depth_max is not None and arrival.depth_max < depth_max:
            depth_max = arrival.depth_max
        caller = admission.Caller(
            parent.agent,
            above.user_id,
            above.tenant_id,
            above.session_id,
            len(parent.waits_for),
            above.limits.fan_out_max,
        )
        permitted = agent is None or registry.permits(parent.agent, agent)
        key = (request.source, request.target, request.objective)
        in_progress = bool(request.objective) and key in (parent.top.objectives or ())
    loop = (loop_closed_by(parent, seat) if place and seat is not None else ()) or way.loop
    # The asking node has checked the depth against the caller's limit; a narrower limit applies to calls below.
    if way.is_served:
        depth_max = request.depth
    calls_left, tokens_left = account.left()
    return admission.Snapshot(
        arrival.problems,
        arrival.code,
        caller,
        agent,
        capability,
        () if capability is not None else _nearest(registry, request, agent),
        permitted,
        checked,
        depth_max,
        breaker_wait_ms,
        in_progress,
        "" if live is None else live.session.user_id,
        live is not None and now_ms - live.used_at >= EXPIRED_MS and is_first(request),
        loop,
        place,
        calls_left,
        tokens_left,
        findings,
    )


def _nearest(registry: Registry, request: Request, agent: Agent | None) -> tuple[str, ...]:
    if agent is None:
        return tuple(registry.nearest_agents(request.target))
    return tuple(registry.nearest_capabilities(agent, request.capability))
