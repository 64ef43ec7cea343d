"""Follow a recorded journal through the actions of the specification, and name the first record that no action allows.

A record is a plain dict: `kind` (admitted, refused, settled, late, paused, resumed, noted, or crash where a node stopped and
memory was lost), `request_id`, `parent_id`, `root_id`, `target`, `chain`, `at_ms`, `user_id`; for admitted and resumed also
`deadline_at` and `limits`; for settled `status`, `code`, `tokens`; and `batch`, the number of the append it was part of.
`of_appends` makes them from journal records and `of_rows` from audit rows. What a record does not say is not checked: an audit
row knows neither limits nor deadline.

A rule is named after the invariant of Comity.tla that would fall, or after the action whose guard does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final, NamedTuple

Record = Mapping[str, Any]

# A result that comes this long after its deadline is still one: a timer may be late by that much.
GRACE_MS: Final = 1_000
ENDED_WELL: Final = frozenset({"success", "partial"})
ENDED_FROM_OUTSIDE: Final = frozenset({"timeout", "cancelled", "error"})
LIMITS: Final = ("depth_max", "fan_out_max", "timeout_ms", "timeout_ms_max", "calls_max", "tokens_max")
KINDS: Final = {
    "Accepted": "admitted",
    "Refused": "refused",
    "Settled": "settled",
    "Late": "late",
    "Paused": "paused",
    "Noted": "noted",
    "Resumed": "resumed",
}
IDENTITY: Final = ("user_id", "tenant_id", "session_id")


class Breach(NamedTuple):
    """The first record that breaks a rule."""

    position: int
    rule: str
    why: str


class Seat(NamedTuple):
    """How many calls an agent runs at a time, and how many may wait for it."""

    places: int
    pending_max: int


@dataclass(eq=False, slots=True)
class Call:
    """What the records so far say about one call. Tool uses and models asked are too, but hold no place and cost no call."""

    request_id: str
    target: str
    chain: tuple[str, ...]
    identity: tuple[Any, ...]
    above: Call | None
    limits: Mapping[str, int | None] | None
    deadline_at: int | None
    is_tool: bool
    is_open: bool = True
    status: str = ""
    is_late: bool = False
    is_paused: bool = False
    calls_spent: int = 1
    tokens_known: int = 0
    below: list[Call] = field(default_factory=list)
    awaited: dict[Call, None] = field(default_factory=dict)  # calls it made in this life that are open

    def callers(self) -> Iterator[Call]:
        """Yield every call above, nearest first."""
        call = self.above
        while call is not None:
            yield call
            call = call.above


@dataclass(slots=True)
class State:
    """The state of the specification, as far as records show it."""

    seats: Mapping[str, Seat]
    calls: dict[str, Call] = field(default_factory=dict)
    at: dict[str, dict[Call, None]] = field(default_factory=dict)  # open calls in this life, by target
    now_ms: int = 0


Rule = tuple[str, Callable[[State, Record, Call], str]]  # its name, and why it does not hold


# --- admission ---


def _ids(_: State, record: Record, call: Call) -> str:
    if call.above is None:
        is_root = record["request_id"] == record["root_id"] and record["parent_id"] is None and not call.chain
        return "" if is_root else "a call without a caller must be a root"
    parent, dot, number = call.request_id.rpartition("#" if call.is_tool else ".")
    if parent != call.above.request_id or not dot or not number.isdigit():
        return f"{call.request_id} does not derive from {call.above.request_id}"
    if call.chain != (*call.above.chain, call.above.target):
        return f"its chain {' → '.join(call.chain)} does not follow from its caller's"
    return ""


def _has_caller(_: State, record: Record, call: Call) -> str:
    if record["parent_id"] is None:
        return ""
    if call.above is None:
        return f"its caller {record['parent_id']} is not on record"
    return "" if call.above.is_open else f"its caller {call.above.request_id} has ended"


def _isolation(_: State, __: Record, call: Call) -> str:
    above = call.above
    is_kept = above is None or call.identity == above.identity
    return "" if is_kept else f"{call.identity} is not its caller's {above.identity if above else ''}"


def _limits_shrink(_: State, __: Record, call: Call) -> str:
    above = call.above
    if above is None:
        return ""
    if call.deadline_at is not None and above.deadline_at is not None and call.deadline_at > above.deadline_at:
        return f"deadline {call.deadline_at} is later than its caller's {above.deadline_at}"
    for name in LIMITS if call.limits is not None and above.limits is not None else ():
        mine, given = (call.limits or {})[name], (above.limits or {})[name]
        if given is not None and (mine is None or mine > given):
            return f"{name} {mine} is more than its caller's {given}"
    return ""


def _depth(_: State, __: Record, call: Call) -> str:
    most = _limit(call.above, "depth_max")
    return "" if most is None or len(call.chain) <= most else f"depth {len(call.chain)} exceeds depth_max {most}"


def _cycle(_: State, __: Record, call: Call) -> str:
    return f"{call.target} is already in {' → '.join(call.chain)}" if call.target in call.chain else ""


def _deadlock(state: State, __: Record, call: Call) -> str:
    stuck = _stuck_with(state, call)
    return f"nobody will ever end: {', '.join(sorted(one.request_id for one in stuck))}" if stuck else ""


def _fan_out(_: State, __: Record, call: Call) -> str:
    most = _limit(call.above, "fan_out_max")
    if call.above is None or most is None or len(call.above.awaited) < most:
        return ""
    return f"its caller has {len(call.above.awaited)} calls under way; fan_out_max is {most}"


def _pending(state: State, __: Record, call: Call) -> str:
    seat = _seat(state, call)
    under_way = len(state.at.get(call.target, ()))
    if seat is None or under_way < seat.places + seat.pending_max:
        return ""
    return f"{under_way} calls run or wait there already"


def _deadline(_: State, record: Record, call: Call) -> str:
    return "" if call.deadline_at is None or call.deadline_at > record["at_ms"] else "its deadline has passed"


def _budget(_: State, __: Record, call: Call) -> str:
    for one in (call, *call.callers()):
        calls, tokens = _limit(one, "calls_max"), _limit(one, "tokens_max")
        spent = one.calls_spent if one is call else one.calls_spent + 1
        if calls is not None and spent > calls:
            return f"the tree of {one.request_id} would make {spent} calls; calls_max is {calls}"
        if tokens is not None and one.tokens_known >= tokens:
            return f"the tree of {one.request_id} has used {one.tokens_known} tokens; tokens_max is {tokens}"
    return ""


RECORDED: Final[tuple[Rule, ...]] = (
    ("AuditComplete", _has_caller),
    ("AcceptCall", _ids),
    ("IsolationHolds", _isolation),
    ("LimitsOnlyShrink", _limits_shrink),
)
ADMITTED: Final[tuple[Rule, ...]] = (
    *RECORDED,
    ("DepthBounded", _depth),
    ("NoCycle", _cycle),
    ("NoDeadlock", _deadlock),
    ("FanOutBounded", _fan_out),
    ("BoundedPendingCalls", _pending),
    ("AcceptCall", _deadline),
    ("BudgetConserved", _budget),
)
# A refusal must be true: the rule it names would not have held.
FOUNDED: Final[dict[str, Callable[[State, Record, Call], str]]] = {
    "LIMIT_DEPTH_EXCEEDED": _depth,
    "ROUTING_CYCLE_DETECTED": _cycle,
    "ROUTING_DEADLOCK_PREVENTED": _deadlock,
    "LIMIT_FAN_OUT_EXCEEDED": _fan_out,
    "LIMIT_DEADLINE_PASSED": _deadline,
    "BUDGET_CALLS_EXHAUSTED": _budget,
}


def _limit(call: Call | None, name: str) -> int | None:
    return None if call is None or call.limits is None else call.limits[name]


def _seat(state: State, call: Call) -> Seat | None:
    return state.seats.get(call.target.partition("/")[0])


def _stuck_with(state: State, call: Call) -> set[Call]:
    """Return the calls that would wait for each other for ever if this one were made.

    A call that has others under way holds its place; whoever has none may be running, unless such calls hold all the places.
    """

    def is_taken(target: Call) -> list[Call]:
        seat = _seat(state, target)
        holding = [one for one in state.at.get(target.target, ()) if one.awaited or one is call.above]
        return holding if seat is not None and len(holding) >= seat.places else []

    if call.above is None or not is_taken(call):
        return set()
    waiting = {one: {**one.awaited} for calls in state.at.values() for one in calls}
    waiting.setdefault(call.above, {})[call] = None
    waiting[call] = {}
    free: set[Call] = set()
    found = -1
    while len(free) != found:
        found = len(free)
        for one, awaited in waiting.items():
            holders = [] if awaited else is_taken(one)
            if all(other in free for other in awaited) and (not holders or any(holder in free for holder in holders)):
                free.add(one)
    return set(waiting) - free


# --- actions ---


def _admit(state: State, record: Record) -> tuple[str, str] | None:
    known = state.calls.get(record["request_id"])
    call = _read(state, record)
    if known is not None:
        is_begun_again = call.is_tool and known.is_open  # what an idempotent tool may be, in a later life
        return None if is_begun_again else ("SettledOnce", f"{known.request_id} was admitted before")
    for name, rule in RECORDED if call.is_tool else ADMITTED:
        if why := rule(state, record, call):
            return name, why
    state.calls[call.request_id] = call
    if call.above is not None:
        call.above.below.append(call)
        if not call.is_tool:
            _revive(state, call.above)
    if not call.is_tool:
        _revive(state, call)
        for one in call.callers():
            one.calls_spent += 1
    return None


def _revive(state: State, call: Call) -> None:
    """Take note that a call is under way in this life, and so are its callers: one makes calls only if somebody asked it to."""
    state.at.setdefault(call.target, {})[call] = None
    call.is_paused = False
    if call.above is not None and call not in call.above.awaited:
        call.above.awaited[call] = None
        _revive(state, call.above)


def _refuse(state: State, record: Record) -> tuple[str, str] | None:
    call = _read(state, record)
    if record.get("status") not in {None, "refused"}:
        return "RefuseCall", f"a refusal has the status {record['status']}"
    if why := _has_caller(state, record, call):
        return "AuditComplete", why
    rule = FOUNDED.get(record.get("code") or "")
    if rule is None or _has_facts(state, rule, call) is False:
        return None
    return None if rule(state, record, call) else ("RefuseCall", f"{record['code']} is not true of {call.request_id}")


def _has_facts(state: State, rule: Callable[[State, Record, Call], str], call: Call) -> bool:
    """Return whether the records say enough to judge a refusal."""
    if rule is _deadlock:
        return _seat(state, call) is not None
    return rule is _cycle or (call.limits is not None and call.deadline_at is not None)


def _settle(state: State, record: Record) -> tuple[str, str] | None:
    call = state.calls.get(record["request_id"])
    if call is None:
        return "AuditComplete", f"{record['request_id']} ended and was never admitted"
    if not call.is_open:
        return "SettledOnce", f"{call.request_id} had ended as {call.status}"
    deadline_at = record.get("deadline_at")
    if deadline_at is not None and call.deadline_at is not None and not call.is_tool:
        if call.above is None and deadline_at != call.deadline_at:
            return "LimitsOnlyShrink", f"the deadline of a root moved from {call.deadline_at} to {deadline_at}"
        call.deadline_at = deadline_at  # a call made again in a later life has a new one, within its caller's
        if why := _limits_shrink(state, record, call):
            return "LimitsOnlyShrink", why
    status, tokens = str(record["status"]), record.get("tokens") or 0
    if call.deadline_at is not None and not call.is_tool:
        if status in ENDED_WELL and record["at_ms"] > call.deadline_at + GRACE_MS:
            return "NoLateSuccess", f"a success {record['at_ms'] - call.deadline_at} ms after its deadline"
        passed_on = any(one.status == "timeout" for one in call.below)
        if status == "timeout" and record["at_ms"] < call.deadline_at and not passed_on:
            return "TimeOut", f"timed out {call.deadline_at - record['at_ms']} ms before its deadline"
    if status in ENDED_WELL and tokens < call.tokens_known:
        return "BudgetConserved", f"it used {tokens} tokens, and the calls below it {call.tokens_known}"
    for one in call.callers():
        one.tokens_known += max(tokens - call.tokens_known, 0)
    call.tokens_known = max(tokens, call.tokens_known)
    call.is_open, call.status = False, status
    _leave(state, call)
    return None


def _leave(state: State, call: Call) -> None:
    state.at.get(call.target, {}).pop(call, None)
    if call.above is not None:
        call.above.awaited.pop(call, None)


def _record_late(state: State, record: Record) -> tuple[str, str] | None:
    call = state.calls.get(record["request_id"])
    if call is None or call.is_open:
        return "NoLateSuccess", f"{record['request_id']} has not ended, so nothing of it can be late"
    if call.status not in ENDED_FROM_OUTSIDE or call.is_late:
        return "RecordLate", f"{call.request_id} had given its result"
    call.is_late = True
    return None


def _pause(state: State, record: Record) -> tuple[str, str] | None:
    call = state.calls.get(record["request_id"])
    if call is None or not call.is_open:
        return "SettledOnce", f"{record['request_id']} is not open and cannot wait"
    call.is_paused = True
    call.awaited.clear()
    _leave(state, call)
    if call.above is None:
        call.deadline_at = None  # waiting for a person does not use up its time; when it goes on is not on record
    return None


def _note(state: State, record: Record) -> tuple[str, str] | None:
    call = state.calls.get(record["request_id"])
    # Of a call that was ended from outside it may be noted that its code runs on.
    if call is None or not (call.is_open or call.status in ENDED_FROM_OUTSIDE):
        return "SettledOnce", f"{record['request_id']} is not open, and something was found in it"
    return None


def _take_up(state: State, record: Record) -> tuple[str, str] | None:
    """A call is made again in a later life: under its id, with a new deadline."""
    call = state.calls.get(record["request_id"])
    if call is None or not call.is_open:
        return "TakeUpCall", f"{record['request_id']} is not open and cannot be taken up"
    call.deadline_at, call.limits = record["deadline_at"], record["limits"]
    if why := _limits_shrink(state, record, call):
        return "LimitsOnlyShrink", why
    _revive(state, call)
    return None


def _crash(state: State, _: Record) -> tuple[str, str] | None:
    """Memory is lost: nobody waits for anybody until the journal shows that they do."""
    state.at.clear()
    for call in state.calls.values():
        call.awaited.clear()
    return None


ACTIONS: Final[dict[str, Callable[[State, Record], tuple[str, str] | None]]] = {
    "admitted": _admit,
    "refused": _refuse,
    "settled": _settle,
    "late": _record_late,
    "paused": _pause,
    "noted": _note,
    "resumed": _take_up,
    "crash": _crash,
}


def _read(state: State, record: Record) -> Call:
    limits = record.get("limits")
    return Call(
        request_id=record["request_id"],
        target=record["target"],
        chain=tuple(record["chain"]),
        identity=tuple(record.get(name) for name in IDENTITY),
        above=state.calls.get(record["parent_id"] or ""),
        limits=limits,
        deadline_at=record.get("deadline_at"),
        is_tool=str(record["target"]).startswith(("tool:", "model:")),
    )


# --- following a trace ---


def check(
    records: Sequence[Record],
    *,
    seats: Mapping[str, Seat] | None = None,
    skew_ms: int = 0,
    is_complete: bool = False,
) -> Breach | None:
    """Return the first breach, or None if the specification allows the trace.

    `seats` says how many calls each agent takes; without it, deadlock and pending calls are not judged. `skew_ms` is how far
    the clocks of several nodes may differ. `is_complete` says that nothing comes after the trace, so that every call must have
    ended.
    """
    state = State(seats=seats or {})
    numbered = enumerate(records)
    for _, batch in groupby(numbered, key=lambda pair: pair[1].get("batch", pair[0])):
        ended: list[tuple[int, Call]] = []
        for index, record in batch:
            at_ms = record.get("at_ms", state.now_ms)
            if at_ms < state.now_ms - skew_ms:
                return Breach(index, "Tick", f"the clock went back from {state.now_ms} to {at_ms}")
            state.now_ms = max(at_ms, state.now_ms)
            if breach := ACTIONS[record["kind"]](state, record):
                return Breach(index, *breach)
            if record["kind"] in {"settled", "paused"}:
                ended.append((index, state.calls[record["request_id"]]))
        for index, call in ended:  # one append ends, or puts aside, a whole tree
            left = [
                one.request_id for one in call.below if one.is_open and not (call.is_open and (one.is_paused or one.is_tool))
            ]
            if left:
                return Breach(index, "AuditComplete", f"{call.request_id} ended and {', '.join(left)} below it did not")
    if is_complete:
        still = [call.request_id for call in state.calls.values() if call.is_open and not call.is_paused]
        if still:
            return Breach(len(records), "EveryCallEnds", f"{', '.join(still)} never ended")
    return None


def of_appends(appends: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return journal records, as they were appended together, as plain dicts; what is not about calls is left out."""
    return [
        _plain(record, KINDS[type(record).__name__], batch)
        for batch, records in enumerate(appends)
        for record in records
        if type(record).__name__ in KINDS
    ]


def _plain(record: Any, kind: str, batch: int) -> dict[str, Any]:
    request, reply = record.request, getattr(record, "reply", None)
    plain: dict[str, Any] = {
        name: getattr(request, name)
        for name in ("request_id", "parent_id", "root_id", "target", "chain", "deadline_at", *IDENTITY)
    }
    plain |= {"kind": kind, "batch": batch, "at_ms": record.at_ms}
    plain["limits"] = {name: getattr(request.limits, name) for name in LIMITS}
    if reply is not None:
        code = None if reply.error is None else reply.error.code
        plain |= {"status": str(reply.status), "code": code, "tokens": reply.usage.total_tokens}
    return plain


def of_rows(rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Return audit rows as plain dicts. Rows do not say what was appended together: settlements of a tree at one time were."""
    records = []
    for number, row in enumerate(rows):
        together = (row.kind, row.root_id, row.created_at) if row.kind in {"settled", "paused"} else number
        records.append(
            {name: getattr(row, name) for name in ("kind", "request_id", "parent_id", "root_id", "target", "status", "tokens")}
            | {name: getattr(row, name) for name in IDENTITY}
            | {"batch": together, "at_ms": row.created_at, "code": row.error_code, "chain": tuple(row.chain.split())}
        )
    return records
