"""What must hold after every event, under the names the specification gives it.

Each is a plain function that returns what is wrong, or nothing. It looks only at what an event could have changed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from comity.core.agent.tool import Tool
from comity.core.call.limits import Limits
from comity.core.envelope.envelope import Reply, Status
from comity.core.handoff.holder import Holder
from comity.core.handoff.machine import DEAD, ENDED, Handoff, State
from comity.core.journal.records import Accepted, Settled
from comity.testing.sim.observed import Observed, Running, Written

# A timer may be late by this much; the promise is a deadline and one second.
GRACE_MS: Final = 1_000
ENDED_WELL: Final = frozenset({Status.SUCCESS, Status.PARTIAL})


class Told(NamedTuple):
    """A client has a reply."""

    request_id: str
    reply: Reply
    is_written: bool  # the reply is on the disk


class Used(NamedTuple):
    """A tool is about to do what it does."""

    request_id: str
    tool: Tool
    is_written: bool  # that it would is on the disk


class Ended(NamedTuple):
    """A call was written to have ended; `call` is None if nothing is known of it."""

    record: Settled
    call: Written | None
    skew_ms: int


class Handed(NamedTuple):
    """A handoff was changed."""

    known: Handoff | None  # as it was last seen; None if it never was
    before: Handoff | None  # as who changed it found it
    after: Handoff
    by: Holder | None  # who says that he holds it


class ViolationError(AssertionError):
    """Something that must always hold did not."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"{name}: {why}")
        self.name = name
        self.why = why


# --- when a call was written to be accepted ---


def no_cycle(_: Observed, call: Written) -> str:
    """No agent stands above itself."""
    request = call.request
    return f"{request.target} is called below {' → '.join(request.chain)}" if request.target in request.chain else ""


def depth_bounded(_: Observed, call: Written) -> str:
    """A chain is no longer than its caller may make it."""
    above = call.above
    if above is None or len(call.request.chain) <= above.request.limits.depth_max:
        return ""
    return f"depth {len(call.request.chain)} exceeds depth_max {above.request.limits.depth_max}"


def limits_only_shrink(_: Observed, call: Written) -> str:
    """A callee has no more of anything than its caller."""
    if call.above is None:
        return ""
    mine, given = call.request, call.above.request
    if mine.deadline_at > call.above.deadline_at:
        return f"deadline {mine.deadline_at} is later than its caller's {call.above.deadline_at}"
    if mine.limits is given.limits:
        return ""
    for name in Limits.__struct_fields__:
        asked, had = getattr(mine.limits, name), getattr(given.limits, name)
        if had is not None and (asked is None or asked > had):
            return f"{name} {asked} is more than its caller's {had}"
    return ""


def isolation_holds(_: Observed, call: Written) -> str:
    """A call stays with the user, tenant and session of its caller."""
    if call.above is None:
        return ""
    mine, given = call.request, call.above.request
    if (mine.user_id, mine.tenant_id, mine.session_id) == (given.user_id, given.tenant_id, given.session_id):
        return ""
    return f"a call for {given.user_id} in {given.session_id} made one for {mine.user_id} in {mine.session_id}"


def budget_conserved(_: Observed, call: Written) -> str:
    """No tree makes more calls, or goes on with fewer tokens left, than it had."""
    lives = {one.life for one in (call, *call.callers())}
    for one in (call, *call.callers()):
        limits = one.request.limits
        # What was lent to another node may be used there, though one report has overdrawn the rest meanwhile.
        tokens = one.tokens if len(lives) == 1 else one.tokens - one.overdrawn
        if one.calls > limits.calls_max:
            return f"the tree of {one.request.request_id} makes {one.calls} calls; calls_max is {limits.calls_max}"
        if one is not call and limits.tokens_max is not None and tokens >= limits.tokens_max:
            return f"the tree of {one.request.request_id} goes on with {tokens} tokens of {limits.tokens_max} used"
    return ""


def accepted_once(_: Observed, call: tuple[Accepted, Written | None]) -> str:
    """A call is begun once. A tool may be begun again in another life; whether it is done again, its effect will show."""
    record, known = call
    if known is None or (known.is_tool and known.is_open):
        return ""
    return f"{record.request.request_id} was accepted before"


def caller_is_written(observed: Observed, call: Written) -> str:
    """A call made by another call has a caller that is on record and has not ended."""
    parent_id = call.request.parent_id
    if parent_id is None or (call.above is not None and call.above.is_open):
        return ""
    return f"its caller {parent_id} {'has ended' if parent_id in observed.written else 'is not on record'}"


# --- when a call was written to have ended ---


def settled_once(_: Observed, end: Ended) -> str:
    """A call ends once."""
    if end.call is None or end.call.is_open:
        return ""
    first = end.call.reply.status if end.call.reply is not None else "?"
    return f"{end.record.request.request_id} had ended as {first} and ends again as {end.record.reply.status}"


def ended_was_written(_: Observed, end: Ended) -> str:
    """What ends was begun."""
    return "" if end.call is not None else f"{end.record.request.request_id} ended and was never accepted"


def no_late_success(_: Observed, end: Ended) -> str:
    """A result that comes after the deadline is no success."""
    call, record = end.call, end.record
    if call is None or call.is_tool or record.reply.status not in ENDED_WELL:
        return ""
    late_ms = record.at_ms - record.request.deadline_at
    return f"a success {late_ms} ms after its deadline" if late_ms > GRACE_MS + end.skew_ms else ""


def tokens_conserved(_: Observed, end: Ended) -> str:
    """Who ends well has used at least what those it called used."""
    if end.call is None or end.record.reply.status not in ENDED_WELL or end.call.is_tool:
        return ""
    used = end.record.reply.usage.total_tokens
    return f"it says {used} tokens, and those below it used {end.call.tokens}" if used < end.call.tokens else ""


def written_by_holder(observed: Observed, result: tuple[str, str]) -> str:
    """What an agent did is written by the node that holds it; anybody may say that it took too long."""
    address, node_id = result
    holder = observed.claims.get(address, node_id)
    return "" if holder == node_id else f"{node_id} wrote for {address}, which {holder} has claimed since"


def tree_ends_together(_: Observed, call: Written) -> str:
    """Once a call has ended, nothing below it is open. Asked when a whole append is there."""
    left = [one.request.request_id for one in call.below.values() if one.is_open]
    return f"{call.request.request_id} ended and {', '.join(left)} below it did not" if left and not call.is_open else ""


# --- when a call came to a process ---


def no_deadlock(observed: Observed, call: Running) -> str:
    """Among the calls of which each waits for others, one can go on."""
    if call.has_place:
        return ""
    stuck = _stuck_with(observed, call)
    return f"nobody will ever end: {', '.join(sorted(one.request.request_id for one in stuck))}" if stuck else ""


def fan_out_bounded(observed: Observed, call: Running) -> str:
    """A caller has at most `fan_out_max` calls under way; an ended call does not count, though a node may still run it."""
    parent = call.parent
    if parent is None or len(parent.below) <= parent.limit:
        return ""
    # One that a former holder still runs is the same call.
    under_way = {one.request.request_id for one in parent.below if not observed.has_ended(one.request.request_id)}
    if len(under_way) <= parent.limit:
        return ""
    return f"{parent.request.request_id} has {len(under_way)} calls under way; fan_out_max is {parent.limit}"


def bounded_pending_calls(observed: Observed, call: Running) -> str:
    """No more calls run and wait at an address than it has places and room in its queue."""
    if call.has_place:
        return ""
    here, most = len(observed.beside(call)), call.places + call.queue_max
    if here <= most:
        return ""
    return f"{here} calls run or wait at {call.address}, which has {call.places} places and room for {call.queue_max}"


def single_activation(observed: Observed, call: Running) -> str:
    """No more calls run at an address than it has places."""
    here = sum(one.has_place for one in observed.beside(call))
    return f"{here} calls run at {call.address}, which has {call.places} places" if here > call.places else ""


def _stuck_with(observed: Observed, call: Running) -> dict[Running, None]:
    """Return the calls that wait for each other for ever, if this is one: what is left when all that can end has ended."""

    def holders(one: Running) -> list[Running]:
        return [other for other in observed.beside(one) if other.has_place]

    waiting: dict[Running, None] = {}
    ahead = [call]
    while ahead:
        one = ahead.pop()
        if one not in waiting:
            waiting[one] = None
            ahead.extend(one.below if one.has_place else holders(one))
    found = -1
    while found != len(waiting):
        found = len(waiting)
        for one in list(waiting):
            if one.has_place:
                is_stuck = any(other in waiting for other in one.below)
            else:
                held = holders(one)
                is_stuck = len(held) >= one.places and all(other in waiting for other in held)
            if not is_stuck:
                del waiting[one]
    return waiting if call in waiting else {}


# --- when something leaves ---


def effect_at_most_once(observed: Observed, used: Used) -> str:
    """What cannot be repeated is done once, in all lives together."""
    times = observed.effects.get(used.request_id, 0)
    return f"{used.tool.name} was done {times} times as {used.request_id}" if times > 1 and not used.tool.idempotent else ""


def audit_precedes_effect(_: Observed, used: Used) -> str:
    """That something would be done is on the disk before it is done."""
    return "" if used.is_written else f"{used.tool.name} is done as {used.request_id}, and the disk does not know"


def reply_is_written(_: Observed, told: Told) -> str:
    """A user gets only replies that survive."""
    return "" if told.is_written else f"a user was told {told.reply.status} for {told.request_id}, and the disk does not know"


def told_once(observed: Observed, told: Told) -> str:
    """A client that asks again gets the same reply."""
    first = observed.told.get(told.request_id)
    if first is None or first.status == told.reply.status or told.reply.status is Status.REFUSED:
        return ""  # a client that is refused may ask again, and may get another reply then
    return f"{told.request_id} was told to be {first.status} and then {told.reply.status}"


# --- when a handoff was changed, and when a caller reads it ---


def is_changed_from_where_it_stood(_: Observed, handed: Handed) -> str:
    """Only the queue changes a handoff, and the queue forgets none."""
    if handed.known is handed.before:
        return ""
    return f"it was {_standing(handed.known)}, and was found {_standing(handed.before)}"


def stays_ended(_: Observed, handed: Handed) -> str:
    """A handoff ends once."""
    known = handed.known
    if known is None or known.state not in ENDED:
        return ""
    return f"it had ended as {known.state} and is {handed.after.state} now"


def is_somewhere(_: Observed, handed: Handed) -> str:
    """A handoff is queued, held under a lease, or ended with a reply; one without a result says why."""
    one = handed.after
    has_ended = one.state in ENDED
    if has_ended:
        is_whole = one.reply is not None and not one.holder and (one.state not in DEAD or bool(one.reason))
    elif one.state is State.PENDING:
        is_whole = bool(one.lease_until) == bool(one.holder)  # reserved, or for anybody
    else:
        is_whole = bool(one.holder and one.lease_until and one.fence)
    return "" if is_whole and (has_ended or one.due_at is not None) else f"it is {_standing(one)}, and nobody will find it"


def is_changed_by_its_holder(_: Observed, handed: Handed) -> str:
    """Who has it keeps it until it is released; a former receiver changes nothing, and no two have it in turn by one number."""
    before, after, by = handed.before, handed.after, handed.by
    if before is None:
        return ""
    is_over = after.state is State.TIMEOUT  # a timeout is written by any process that looks
    if by is not None and not is_over and (by.name, by.fence) != (before.holder, before.fence):
        return f"{by.name} changed it under {by.fence}, and it was {_standing(before)}"
    if before.holder and after.holder and after.holder != before.holder:
        return f"{after.holder} took it from {before.holder}"
    if after.fence < before.fence or (after.fence == before.fence and after.holder and not before.holder):
        return f"{after.holder} has it under {after.fence}, which was given before"
    return ""


def ends_with_its_call(observed: Observed, handed: Handed) -> str:
    """A handoff and the call it is for end in one append."""
    call = observed.written.get(handed.after.id)
    if not handed.after.settles or call is None or call.is_open != (handed.after.state in ENDED):
        return ""
    return f"it is {handed.after.state}, and its call {'is open' if call.is_open else 'has ended'}"


def all_are_kept(observed: Observed, find: Callable[[str], Handoff | None]) -> str:
    """What was acknowledged is there, as it was last written."""
    lost = [one for one in observed.acknowledged if find(one) is not observed.handoffs.get(one)]
    return f"{', '.join(lost)} cannot be found as it was written" if lost else ""


def acknowledged_is_written(observed: Observed, handoff_id: str) -> str:
    """The maker of a handoff is notified only when the handoff is on the disk."""
    return "" if handoff_id in observed.handoffs else "it was acknowledged, and the disk does not know it"


def shown_is_written(observed: Observed, shown: Handoff) -> str:
    """A caller that reads an ended handoff gets the end and the result that are written under its id."""
    known = observed.handoffs.get(shown.id)
    if shown.state not in ENDED or (known is not None and known.state is shown.state and _result(known) == _result(shown)):
        return ""
    return f"somebody was told that it is {_standing(shown)}, and it is {_standing(known)}"


def _result(handoff: Handoff) -> Any:
    return None if handoff.reply is None else (handoff.reply.status, handoff.reply.data)


def _standing(handoff: Handoff | None) -> str:
    if handoff is None:
        return "unknown"
    return f"{handoff.state} with {handoff.holder} under {handoff.fence}" if handoff.holder else str(handoff.state)


Check = Callable[[Observed, Any], str]
Checks = tuple[tuple[str, Check], ...]

ON_ACCEPTED: Final[Checks] = (
    ("AuditComplete", caller_is_written),
    ("IsolationHolds", isolation_holds),
    ("LimitsOnlyShrink", limits_only_shrink),
    ("DepthBounded", depth_bounded),
    ("NoCycle", no_cycle),
    ("BudgetConserved", budget_conserved),
)
ON_GIVEN_UP: Final[Checks] = ON_ACCEPTED[:-1]  # on its way, so it was not begun and costs nothing
ON_TOOL_ACCEPTED: Final[Checks] = ON_ACCEPTED[:3]
ON_REPEATED: Final[Checks] = (("SettledOnce", accepted_once),)
ON_ENDED: Final[Checks] = (
    ("AuditComplete", ended_was_written),
    ("SettledOnce", settled_once),
    ("NoLateSuccess", no_late_success),
    ("BudgetConserved", tokens_conserved),
)
ON_RESULT: Final[Checks] = (("SingleActivation", written_by_holder),)
ON_APPENDED: Final[Checks] = (("AuditComplete", tree_ends_together),)
ON_QUEUED: Final[Checks] = (
    ("FanOutBounded", fan_out_bounded),
    ("BoundedPendingCalls", bounded_pending_calls),
    ("NoDeadlock", no_deadlock),
)
ON_STARTED: Final[Checks] = (("SingleActivation", single_activation),)
ON_USED: Final[Checks] = (
    ("AuditPrecedesEffect", audit_precedes_effect),
    ("EffectAtMostOnce", effect_at_most_once),
)
ON_TOLD: Final[Checks] = (("AuditComplete", reply_is_written), ("SettledOnce", told_once))
ON_HANDED: Final[Checks] = (
    ("NoLostHandoff", is_changed_from_where_it_stood),
    ("NoLostHandoff", stays_ended),
    ("NoLostHandoff", is_somewhere),
    ("NoLostHandoff", is_changed_by_its_holder),
    ("AuditComplete", ends_with_its_call),
)
ON_QUEUE_WRITTEN: Final[Checks] = (("NoLostHandoff", all_are_kept),)
ON_ACKNOWLEDGED: Final[Checks] = (("NoLostHandoff", acknowledged_is_written),)
ON_SHOWN: Final[Checks] = (("NoLostHandoff", shown_is_written),)

# What holds after every event, and what must come about once faults stop.
INVARIANTS: Final = tuple(
    dict.fromkeys(
        name
        for moment in (ON_ACCEPTED, ON_REPEATED, ON_ENDED, ON_APPENDED, ON_QUEUED, ON_STARTED, ON_USED, ON_TOLD, ON_HANDED)
        for name, _ in moment
    )
)
LIVENESS: Final = ("EveryCallEnds", "BreakerEventuallyProbes", "EveryHandoffEnds")
