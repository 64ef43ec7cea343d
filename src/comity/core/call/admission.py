"""May this call be made? One tuple of plain rules, in the order a reader would check them; the first refusal wins.

Every rule is a pure function of the request and a snapshot of what the node knows. Nothing has been sent or stored before they
have all agreed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from comity.core.agent.agent import ACTIVE, Agent, Capability, Status
from comity.core.call.refusal import Refused as Refused  # noqa: PLC0414  where its readers look for it
from comity.core.document.payload import Problem
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import Request

if TYPE_CHECKING:  # most nodes have no guidance and need not load it
    from comity.core.guidance.guidance import Finding

# How many input problems the message of a refusal names; `problems` has them all.
PROBLEMS_TOLD_MAX: Final = 5


class Caller(Struct, frozen=True, gc=False):
    """The calling call, as far as the rules need it."""

    agent: Agent
    user_id: str
    tenant_id: str
    session_id: str
    children: int  # calls it made that have not ended
    fan_out_max: int


class Snapshot(Struct, frozen=True, gc=False):
    """The facts that the rules check for one request, taken at one moment."""

    problems: tuple[Problem, ...]  # of the envelope's own fields
    problems_code: str
    caller: Caller | None
    agent: Agent | None
    capability: Capability | None
    nearest: tuple[str, ...]  # names like the unknown name
    permitted: bool
    checked: Checked
    depth_max: int  # inherited, or from the request's own limits; limits of the callee apply only to calls below it
    breaker_retry_after_ms: int | None  # None if calls may pass, or a fallback runs
    objective_in_progress: bool
    owner: str  # the user the session is bound to; empty if it is new
    is_expired: bool  # the session
    loop: tuple[str, ...]  # addresses of the loop this call would close
    place: int  # in the callee's queue; 0 if it can start at once
    calls_left: int
    tokens_left: int | None
    findings: tuple[Finding, ...] = ()  # people's constraints on what the call touches, strictest first


Rule = Callable[[Request, Snapshot, int], Refused | None]


def identity(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The envelope names a user, a session and a request, and its texts are valid."""
    if not world.problems:
        return None
    what = "; ".join(f"{p.path}: {p.message}" for p in world.problems[:3])
    return Refused(world.problems_code, what, problems=world.problems)


def isolation(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """A call keeps the tenant and user of its caller, in the same session or one below; a session keeps its user."""
    if world.owner and world.owner != call.user_id:
        return Refused("IDENTITY_MISMATCH", "a session that it names belongs to another user", facts={"claim": "user"})
    if world.is_expired:
        return Refused("SESSION_EXPIRED", f"session {call.session_id} was not used for a day")
    caller = world.caller
    if caller is None or (
        call.user_id == caller.user_id
        and call.tenant_id == caller.tenant_id
        and caller.session_id in (call.session_id, call.parent_session_id)
    ):
        return None
    return Refused("IDENTITY_MISMATCH", f"a call by {caller.agent.id} must keep the user and session it was called with")


def known(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The agent and its capability exist and take calls."""
    agent, capability = world.agent, world.capability
    if agent is None:
        return Refused("ROUTING_UNKNOWN_AGENT", f"no agent '{call.target}'{_did_you_mean(world.nearest)}")
    if agent.status is not ACTIVE:
        code = "ROUTING_AGENT_RETIRED" if agent.status is Status.RETIRED else "ROUTING_AGENT_IN_MAINTENANCE"
        return Refused(code, f"agent {agent.id} is {agent.status}")
    if capability is None:
        what = f"agent {agent.id} has no capability '{call.capability}'"
        return Refused("ROUTING_UNKNOWN_CAPABILITY", what + _did_you_mean(world.nearest))
    if not capability.active:
        return Refused("ROUTING_CAPABILITY_INACTIVE", f"capability {capability.code} of {agent.id} is switched off")
    return None


def permitted(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The calling agent may call this one."""
    if world.permitted:
        return None
    assert world.caller is not None
    allowed = ", ".join(sorted(world.caller.agent.can_call or ())) or "nobody"
    return Refused("ROUTING_NOT_PERMITTED", f"{world.caller.agent.id} may call {allowed}, not {call.target}")


def inputs(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The inputs fit the capability's schema; every problem is named."""
    problems = world.checked.problems
    if not problems:
        return None
    told = "; ".join(f"{one.path}: {one.message}" for one in problems[:PROBLEMS_TOLD_MAX])
    more = f"; and {len(problems) - PROBLEMS_TOLD_MAX} more" if len(problems) > PROBLEMS_TOLD_MAX else ""
    return Refused("INPUT_VALIDATION_FAILED", f"{told}{more}", problems=problems)


def guidance(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """No constraint of the guidance forbids what the call touches."""
    return forbidden(world.findings) if world.findings else None


def forbidden(findings: tuple[Finding, ...]) -> Refused | None:
    """Return the refusal if a constraint among the findings blocks; used for calls and tools."""
    blocking = [found for found in findings if found.is_blocking]
    if not blocking:
        return None
    more = f"; and {len(blocking) - 1} more forbid it" if len(blocking) > 1 else ""
    return Refused("GUIDANCE_BLOCKED", f"{blocking[0]}{more}", note=told(tuple(blocking)))


def told(findings: tuple[Finding, ...]) -> str:
    """Return the audit note about the constraints that apply to an action."""
    return f"guidance: {', '.join(f'{found.constraint.severity} {found.constraint.id}' for found in findings)}"


def breaker(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The capability has not just failed several times in a row."""
    wait = world.breaker_retry_after_ms
    if wait is None:
        return None
    return Refused("CAPABILITY_UNAVAILABLE", f"{call.capability} of {call.target} keeps failing; open for {wait} ms", wait)


def depth(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The chain of agents above the callee is no longer than depth_max."""
    most = world.depth_max
    if len(call.chain) <= most:
        return None
    path = " → ".join((*call.chain, call.target))
    facts = {"depth": len(call.chain), "depth_max": most}
    return Refused("LIMIT_DEPTH_EXCEEDED", f"depth {len(call.chain)} exceeds depth_max {most} on {path}", facts=facts)


def cycle(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The callee is not in its own call chain, and the caller has no open call to it with the same objective in this tree."""
    if call.target in call.chain:
        facts = {"caller": call.source, "target": call.target, "chain": list(call.chain)}
        return Refused("ROUTING_CYCLE_DETECTED", f"{call.target} is already in {' → '.join(call.chain)}", facts=facts)
    if world.objective_in_progress:
        what = f"{call.source} is already asking {call.target} for the same objective"
        return Refused("ROUTING_OBJECTIVE_IN_PROGRESS", what, facts={"caller": call.source, "target": call.target})
    return None


def deadlock(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The callee does not wait, directly or through others, for the caller."""
    if not world.loop:
        return None
    return Refused("ROUTING_DEADLOCK_PREVENTED", f"waiting would never end: {' → '.join(world.loop)}")


def fan_out(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The caller has fewer than fan_out_max calls in progress."""
    caller = world.caller
    if caller is None or caller.children < caller.fan_out_max:
        return None
    what = f"{caller.agent.id} has {caller.children} calls under way; fan_out_max is {caller.fan_out_max}"
    facts = {"calls": caller.children + 1, "fan_out_max": caller.fan_out_max}
    return Refused("LIMIT_FAN_OUT_EXCEEDED", what, facts=facts)


def pending(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The callee's queue has room."""
    assert world.agent is not None
    if world.place <= world.agent.pending_max:
        return None
    return Refused("AGENT_BUSY", f"{call.target} has {world.agent.pending_max} calls waiting already", 1_000)


def deadline(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """There is time left."""
    if call.deadline_at > now_ms:
        return None
    return Refused("LIMIT_DEADLINE_PASSED", f"the deadline of this call passed {now_ms - call.deadline_at} ms ago")


def budget(call: Request, world: Snapshot, now_ms: int) -> Refused | None:  # noqa: ARG001
    """The tree has calls and tokens left."""
    if world.calls_left < 1:
        return Refused(
            "BUDGET_CALLS_EXHAUSTED", f"the calls allowed to this tree, at most {call.limits.calls_max}, are used up"
        )
    if world.tokens_left is not None and world.tokens_left < 1:
        return Refused("BUDGET_TOKENS_EXHAUSTED", "the tokens allowed to this tree are used up")
    return None


RULES: Final[tuple[Rule, ...]] = (
    identity,
    isolation,
    known,
    permitted,
    inputs,
    guidance,
    breaker,
    depth,
    cycle,
    deadlock,
    fan_out,
    pending,
    deadline,
    budget,
)
# These rules report problems that were found before. Without any, as in most calls, none of them can refuse.
ABOUT_FAULTS: Final[frozenset[Rule]] = frozenset({identity, inputs, guidance, breaker})
RULES_WITHOUT_FAULTS: Final[tuple[Rule, ...]] = tuple(rule for rule in RULES if rule not in ABOUT_FAULTS)
# These rules compare a call with its callers, so they cannot refuse a user's call.
ABOUT_CALLERS: Final[frozenset[Rule]] = frozenset({permitted, depth, cycle, deadlock, fan_out})
RULES_FOR_USERS: Final[tuple[Rule, ...]] = tuple(rule for rule in RULES_WITHOUT_FAULTS if rule not in ABOUT_CALLERS)


def admits_user(call: Request, agent: Agent | None, capability: Capability | None, place: int, now_ms: int) -> bool:
    """Return whether no rule can refuse a user's call in its own session and without problems; quicker than each rule."""
    return (
        agent is not None
        and agent.status is ACTIVE
        and capability is not None
        and capability.active
        and place <= agent.pending_max
        and call.deadline_at > now_ms
        and call.limits.calls_max >= 1
        and (call.limits.tokens_max is None or call.limits.tokens_max >= 1)
        and not call.chain
    )


def admits_below(
    call: Request,
    caller: Request,
    agent: Agent | None,
    capability: Capability | None,
    under_way: int,
    left: tuple[int, int | None],
    now_ms: int,
) -> bool:
    """Return whether no rule can refuse a child call without problems, to an agent that it may call and that has no queue.

    `under_way` is the number of its caller's open calls, `left` the calls and tokens of its tree. False means: run the rules.
    """
    calls_left, tokens_left = left
    return (
        agent is not None
        and agent.status is ACTIVE
        and capability is not None
        and capability.active
        and agent.pending_max >= 0
        and call.session_id == caller.session_id
        and call.user_id == caller.user_id
        and call.tenant_id == caller.tenant_id
        and not call.objective
        and len(call.chain) <= caller.limits.depth_max
        and call.target not in call.chain
        and under_way < caller.limits.fan_out_max
        and call.deadline_at > now_ms
        and calls_left >= 1
        and (tokens_left is None or tokens_left >= 1)
    )


def admit(call: Request, world: Snapshot, now_ms: int) -> Refused | None:
    """Return the first refusal, or None: the call may be made."""
    if world.problems or world.checked.problems or world.findings or world.breaker_retry_after_ms is not None:
        rules = RULES
    else:
        rules = RULES_WITHOUT_FAULTS if call.chain else RULES_FOR_USERS
    for rule in rules:
        refusal = rule(call, world, now_ms)
        if refusal is not None:
            return refusal
    return None


def _did_you_mean(names: tuple[str, ...]) -> str:
    return f"; did you mean {' or '.join(names)}?" if names else ""
