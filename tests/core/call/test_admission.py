"""Admission: every rule passes at its boundary and refuses one beyond it, in the documented order, and decides by itself."""

from __future__ import annotations

from itertools import pairwise, product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.agent.agent import Agent, Capability, Status
from comity.core.call import admission
from comity.core.call.admission import PROBLEMS_TOLD_MAX, RULES, Caller, Refused, Snapshot, admit
from comity.core.call.limits import Limits
from comity.core.call.refusal import REASON_CHARS_MAX
from comity.core.document.payload import Problem
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import Request
from comity.core.guidance.guidance import Constraint, Finding, Severity
from comity.errors import CODES

NOW_MS = 1_000_000
CALLEE = Agent("ANL", pending_max=3)
CALLER = Agent("ORC", can_call=["ANL", "DOC"])
CALLEE.capability("NPV")(lambda: None)
CALLEE.capability("OLD", active=False)(lambda: None)
PROBLEM = Problem("inputs.rate", "must be a number")


def capability(code: str) -> Capability:
    return CALLEE.capabilities[code]


def agent_that_is(status: Status) -> Agent:
    agent = Agent("ANL", status=status, pending_max=3)
    agent.capability("NPV")(lambda: None)
    return agent


def call(**fields) -> Request:
    usual = {
        "request_id": "r2",
        "target": "ANL",
        "capability": "NPV",
        "user_id": "u",
        "limits": Limits(),
        "deadline_at": NOW_MS + 1,
        "source": "ORC",
        "chain": ("ORC",),
        "session_id": "s",
    }
    return Request(**usual | fields)


def caller(**fields) -> Caller:
    usual = {"agent": CALLER, "user_id": "u", "tenant_id": "default", "session_id": "s", "children": 0, "fan_out_max": 10}
    return Caller(**usual | fields)


def world(**fields) -> Snapshot:
    usual = {
        "problems": (),
        "problems_code": "",
        "caller": caller(),
        "agent": CALLEE,
        "capability": capability("NPV"),
        "nearest": (),
        "permitted": True,
        "checked": Checked({}),
        "depth_max": 5,
        "breaker_retry_after_ms": None,
        "objective_in_progress": False,
        "owner": "",
        "is_expired": False,
        "loop": (),
        "place": 0,
        "calls_left": 1,
        "tokens_left": None,
    }
    return Snapshot(**usual | fields)


def finding(constraint_id: str, severity: Severity = Severity.BLOCKING) -> Finding:
    rule = Constraint(id=constraint_id, rule="Leave it alone", severity=severity, reason="clients depend on it")
    return Finding(rule, "src/api/x.py")


def decide(request: dict | None = None, snapshot: dict | None = None) -> Refused | None:
    return admit(call(**request or {}), world(**snapshot or {}), now_ms=NOW_MS)


# What each rule refuses: changes of the request, changes of the snapshot, and the code that says so.
REFUSALS = [
    (admission.identity, {}, {"problems": (PROBLEM,), "problems_code": "IDENTITY_INVALID"}, "IDENTITY_INVALID"),
    (admission.isolation, {"user_id": "somebody"}, {}, "IDENTITY_MISMATCH"),
    (admission.known, {}, {"capability": None}, "ROUTING_UNKNOWN_CAPABILITY"),
    (admission.permitted, {}, {"permitted": False}, "ROUTING_NOT_PERMITTED"),
    (admission.inputs, {}, {"checked": Checked(None, (PROBLEM,))}, "INPUT_VALIDATION_FAILED"),
    (admission.guidance, {}, {"findings": (finding("a"),)}, "GUIDANCE_BLOCKED"),
    (admission.breaker, {}, {"breaker_retry_after_ms": 500}, "CAPABILITY_UNAVAILABLE"),
    (admission.depth, {"chain": ("1", "2", "3", "4", "5", "ORC")}, {}, "LIMIT_DEPTH_EXCEEDED"),
    (admission.cycle, {}, {"objective_in_progress": True}, "ROUTING_OBJECTIVE_IN_PROGRESS"),
    (admission.deadlock, {}, {"loop": ("ORC", "ANL", "ORC")}, "ROUTING_DEADLOCK_PREVENTED"),
    (admission.fan_out, {}, {"caller": caller(children=10)}, "LIMIT_FAN_OUT_EXCEEDED"),
    (admission.pending, {}, {"place": 4}, "AGENT_BUSY"),
    (admission.deadline, {"deadline_at": NOW_MS}, {}, "LIMIT_DEADLINE_PASSED"),
    (admission.budget, {}, {"calls_left": 0}, "BUDGET_CALLS_EXHAUSTED"),
]
BY_RULE = {rule: (request, snapshot, code) for rule, request, snapshot, code in REFUSALS}
NAMES = [rule.__name__ for rule in RULES]


def test_a_call_that_breaks_no_rule_is_admitted():
    assert decide() is None
    assert decide({"source": None, "chain": ()}, {"caller": None}) is None


def test_the_rules_stand_in_the_order_of_the_design():
    assert NAMES == [
        "identity",
        "isolation",
        "known",
        "permitted",
        "inputs",
        "guidance",
        "breaker",
        "depth",
        "cycle",
        "deadlock",
        "fan_out",
        "pending",
        "deadline",
        "budget",
    ]


def test_every_rule_is_tested_here():
    assert [rule for rule, *_ in REFUSALS] == list(RULES)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_refuses_with_its_code_and_no_other_rule_does(rule):
    request, snapshot, code = BY_RULE[rule]
    refusal = decide(request, snapshot)
    assert refusal is not None
    assert refusal.code == code
    assert code in CODES
    assert refusal.message
    for other in RULES:
        assert (other(call(**request), world(**snapshot), NOW_MS) is None) == (other is not rule)


@pytest.mark.parametrize(("earlier", "later"), list(pairwise(RULES)), ids=list(map(" before ".join, pairwise(NAMES))))
def test_what_breaks_two_rules_is_refused_by_the_earlier(earlier, later):
    request = BY_RULE[later][0] | BY_RULE[earlier][0]
    snapshot = BY_RULE[later][1] | BY_RULE[earlier][1]
    assert later(call(**request), world(**snapshot), NOW_MS) is not None, "the example must break the later rule too"
    refusal = decide(request, snapshot)
    assert refusal is not None
    assert refusal.code == BY_RULE[earlier][2]


@given(st.sets(st.sampled_from(RULES), min_size=1))
def test_of_any_broken_rules_the_first_one_refuses(broken):
    request: dict = {}
    snapshot: dict = {}
    for rule in sorted(broken, key=RULES.index, reverse=True):
        request |= BY_RULE[rule][0]
        snapshot |= BY_RULE[rule][1]
    refusal = decide(request, snapshot)
    assert refusal is not None
    assert refusal.code == BY_RULE[min(broken, key=RULES.index)][2]


@given(st.sets(st.sampled_from(RULES)))
def test_deciding_twice_gives_the_same_and_changes_nothing(broken):
    request: dict = {}
    snapshot: dict = {}
    for rule in broken:
        request |= BY_RULE[rule][0]
        snapshot |= BY_RULE[rule][1]
    one, other = call(**request), world(**snapshot)
    before = (repr(one), repr(other))
    assert admit(one, other, now_ms=NOW_MS) == admit(one, other, now_ms=NOW_MS)
    assert (repr(one), repr(other)) == before


@given(st.sets(st.sampled_from(sorted(admission.RULES_FOR_USERS + tuple(admission.ABOUT_FAULTS), key=RULES.index))))
def test_rules_that_are_not_asked_would_not_have_refused(broken):
    request: dict = {}
    snapshot: dict = {}
    for rule in broken:
        request |= BY_RULE[rule][0]
        snapshot |= BY_RULE[rule][1]
    request |= {"source": None, "chain": ()}
    for caller_ in (caller(), None):
        one, other = call(**request | ({"chain": ("ORC",)} if caller_ else {})), world(**snapshot | {"caller": caller_})
        assert admit(one, other, NOW_MS) == next(filter(None, (rule(one, other, NOW_MS) for rule in RULES)), None)


@given(depth_max=st.integers(0, 3), place=st.integers(0, 9), left=st.integers(-1, 2), target=st.sampled_from(["ANL", "DOC"]))
def test_a_users_call_is_decided_as_if_every_rule_had_been_asked(depth_max, place, left, target):
    request = call(source=None, chain=(), target=target, objective="plan")
    below_nobody = world(caller=None, depth_max=depth_max, place=place, calls_left=left, tokens_left=left)
    assert admit(request, below_nobody, now_ms=NOW_MS) == next(
        filter(None, (rule(request, below_nobody, NOW_MS) for rule in RULES)), None
    )


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("is_active", [True, False])
def test_a_users_call_is_admitted_at_once_exactly_when_no_rule_refuses_it(status, is_active):
    agent = agent_that_is(status)
    its = agent.capabilities["NPV"] if is_active else capability("OLD")
    borders = product(
        (agent.pending_max, agent.pending_max + 1), (NOW_MS, NOW_MS + 1), (0, 1, 2), (None, 0, 1, 2), ((), ("ORC",))
    )
    for place, deadline_at, calls_max, tokens_max, chain in borders:
        limits = Limits(calls_max=calls_max, tokens_max=tokens_max)
        one = call(source=None, chain=chain, limits=limits, deadline_at=deadline_at)
        other = world(caller=None, agent=agent, capability=its, place=place, calls_left=calls_max, tokens_left=tokens_max)
        is_refused = any(rule(one, other, NOW_MS) for rule in RULES)
        assert admission.admits_user(one, agent, its, place, NOW_MS) is not (is_refused or chain != ())
        assert not admission.admits_user(one, None, its, place, NOW_MS)
        assert not admission.admits_user(one, agent, None, place, NOW_MS)


@pytest.mark.parametrize("status", Status)
@pytest.mark.parametrize("is_active", [True, False])
def test_an_agents_call_is_admitted_at_once_only_when_no_rule_refuses_it(status, is_active):
    agent = agent_that_is(status)
    its = agent.capabilities["NPV"] if is_active else capability("OLD")
    above = call(request_id="r1", target="ORC", source=None, chain=(), limits=Limits(depth_max=2, fan_out_max=3))
    usual = {"user_id": "u", "tenant_id": "default", "session_id": "s", "chain": ("ORC",), "deadline_at": NOW_MS + 1}
    others = [
        {}, {"user_id": "v"}, {"tenant_id": "t"}, {"session_id": "z"}, {"chain": ("A", "ORC")}, {"chain": ("A", "B", "ORC")},
        {"chain": ("ANL", "ORC")}, {"deadline_at": NOW_MS},
    ]  # fmt: skip
    admitted = 0
    for other, under_way, calls_left, tokens_left in product(others, (2, 3), (0, 1), (None, 0, 1)):
        one = call(**usual | other)
        by = caller(children=under_way, fan_out_max=3)
        seen = world(
            caller=by, agent=agent, capability=its, depth_max=2, place=0, calls_left=calls_left, tokens_left=tokens_left
        )
        is_refused = any(rule(one, seen, NOW_MS) for rule in RULES)
        is_admitted = admission.admits_below(one, above, agent, its, under_way, (calls_left, tokens_left), NOW_MS)
        assert is_admitted is not is_refused, other
        admitted += is_admitted
    assert admitted == (4 if is_active and status is Status.ACTIVE else 0)
    assert not admission.admits_below(call(), above, None, its, 0, (1, None), NOW_MS)
    assert not admission.admits_below(call(), above, agent, None, 0, (1, None), NOW_MS)
    assert not admission.admits_below(call(objective="plan"), above, agent, its, 0, (1, None), NOW_MS)  # which rules look up
    agent.pending_max = -1  # as the simulator makes an agent busy
    assert not admission.admits_below(call(**usual), above, agent, its, 0, (1, None), NOW_MS)


def test_a_snapshot_and_a_refusal_cannot_be_changed():
    for value, field in ((world(), "place"), (caller(), "children"), (Refused("A_B", "why"), "code")):
        with pytest.raises(AttributeError):
            setattr(value, field, 1)


# --- the rules, one by one ----------------------------------------------------------------------------------------------


def test_identity_names_its_problems_and_says_the_first_three():
    many = tuple(Problem(f"field{number}", "is wrong") for number in range(5))
    refusal = decide(snapshot={"problems": many, "problems_code": "ENVELOPE_TOO_LARGE"})
    assert refusal is not None
    assert (refusal.code, refusal.problems) == ("ENVELOPE_TOO_LARGE", many)
    assert "field2" in refusal.message
    assert "field3" not in refusal.message


@pytest.mark.parametrize("field", ["user_id", "tenant_id", "session_id"])
def test_a_call_stays_with_the_user_tenant_and_session_of_its_caller(field):
    refusal = decide({field: "another"})
    assert refusal is not None
    assert refusal.code == "IDENTITY_MISMATCH"
    assert decide({field: "another"}, {"caller": None}) is None


@pytest.mark.parametrize("by", [caller(), None])
def test_a_session_stays_with_its_user_whoever_calls(by):
    assert decide(snapshot={"owner": "u", "caller": by}) is None
    refusal = decide(snapshot={"owner": "somebody", "caller": by})
    assert refusal is not None
    assert refusal.code == "IDENTITY_MISMATCH"
    assert "somebody" not in refusal.message


def test_an_expired_session_takes_no_calls():
    refusal = decide(snapshot={"owner": "u", "is_expired": True})
    assert refusal is not None
    assert refusal.code == "SESSION_EXPIRED"


@pytest.mark.parametrize(
    ("snapshot", "code"),
    [
        ({"agent": None, "capability": None}, "ROUTING_UNKNOWN_AGENT"),
        ({"agent": agent_that_is(Status.RETIRED)}, "ROUTING_AGENT_RETIRED"),
        ({"agent": agent_that_is(Status.MAINTENANCE)}, "ROUTING_AGENT_IN_MAINTENANCE"),
        ({"agent": agent_that_is(Status.RETIRED), "capability": None}, "ROUTING_AGENT_RETIRED"),
        ({"capability": None}, "ROUTING_UNKNOWN_CAPABILITY"),
        ({"capability": capability("OLD")}, "ROUTING_CAPABILITY_INACTIVE"),
    ],
)
def test_an_agent_and_capability_must_exist_and_take_calls(snapshot, code):
    refusal = decide(snapshot=snapshot)
    assert refusal is not None
    assert refusal.code == code


def test_what_is_unknown_is_answered_with_names_that_are_not():
    refusal = decide({"target": "ANLL"}, {"agent": None, "capability": None, "nearest": ("ANL", "DOC")})
    assert refusal is not None
    assert refusal.message == "no agent 'ANLL'; did you mean ANL or DOC?"
    refusal = decide({"capability": "NPW"}, {"capability": None, "nearest": ("NPV",)})
    assert refusal is not None
    assert refusal.message == "agent ANL has no capability 'NPW'; did you mean NPV?"


def test_a_caller_hears_whom_it_may_call():
    refusal = decide({"target": "CST"}, {"permitted": False})
    assert refusal is not None
    assert refusal.message == "ORC may call ANL, DOC, not CST"
    refusal = decide(snapshot={"permitted": False, "caller": caller(agent=Agent("ALONE", can_call=[]))})
    assert refusal is not None
    assert refusal.message == "ALONE may call nobody, not ANL"


def test_a_blocking_constraint_is_named_with_its_rule_and_reason():
    refusal = decide(snapshot={"findings": (finding("a"), finding("b"), finding("c", Severity.WARNING))})
    assert refusal is not None
    assert refusal.message == (
        "constraint a forbids touching src/api/x.py: Leave it alone (clients depend on it); and 1 more forbid it"
    )
    assert refusal.note == "guidance: blocking a, blocking b"


def test_a_single_blocking_constraint_counts_no_further_ones():
    refusal = decide(snapshot={"findings": (finding("a"),)})
    assert refusal is not None
    assert refusal.message.endswith("(clients depend on it)")


def test_constraints_that_only_warn_refuse_nothing():
    assert decide(snapshot={"findings": (finding("c", Severity.WARNING), finding("d", Severity.ADVISORY))}) is None


def test_every_problem_of_the_inputs_is_named():
    problems = (PROBLEM, Problem("inputs.a", "is required"), Problem("inputs.b", "is required"))
    refusal = decide(snapshot={"checked": Checked(None, problems)})
    assert refusal is not None
    assert refusal.problems == problems
    assert refusal.message == "inputs.rate: must be a number; inputs.a: is required; inputs.b: is required"


def test_a_message_names_the_first_problems_and_counts_the_rest():
    problems = tuple(Problem(f"inputs.{number}", "is required") for number in range(PROBLEMS_TOLD_MAX + 3))
    refusal = decide(snapshot={"checked": Checked(None, problems)})
    assert refusal is not None
    assert refusal.message.count("is required") == PROBLEMS_TOLD_MAX
    assert refusal.message.endswith("; and 3 more")
    exactly = decide(snapshot={"checked": Checked(None, problems[:PROBLEMS_TOLD_MAX])})
    assert exactly is not None
    assert "more" not in exactly.message
    assert refusal.reason.count("is required") == PROBLEMS_TOLD_MAX + 3, "the audit names them all"


def test_the_reason_for_the_audit_is_bounded_and_holds_no_personal_data():
    problems = tuple(Problem(f"inputs.ann{number}@example.com", "is unknown") for number in range(200))
    refusal = decide(snapshot={"checked": Checked(None, problems)})
    assert refusal is not None
    assert len(refusal.reason) == REASON_CHARS_MAX
    assert "example.com" not in refusal.reason


def test_an_open_breaker_says_when_to_come_back():
    refusal = decide(snapshot={"breaker_retry_after_ms": 1})
    assert refusal is not None
    assert refusal.retry_after_ms == 1
    assert decide(snapshot={"breaker_retry_after_ms": None}) is None


@pytest.mark.parametrize("depth_max", [0, 1, 5])
def test_exactly_depth_max_passes_and_one_more_is_refused(depth_max):
    chain = tuple(f"A{number}" for number in range(depth_max))
    assert decide({"chain": chain}, {"depth_max": depth_max}) is None
    refusal = decide({"chain": (*chain, "ORC")}, {"depth_max": depth_max})
    assert refusal is not None
    path = " → ".join((*chain, "ORC", "ANL"))
    assert refusal.message == f"depth {depth_max + 1} exceeds depth_max {depth_max} on {path}"


def test_the_depth_that_counts_is_the_inherited_one():
    """What a callee narrows for itself holds below it, so it is the snapshot that decides and not the request's own limits."""
    assert decide({"limits": Limits(depth_max=0)}, {"depth_max": 1}) is None


@pytest.mark.parametrize("chain", [("ANL",), ("ANL", "ORC"), ("ORC", "ANL", "CST")])
def test_an_agent_above_itself_is_a_cycle(chain):
    refusal = decide({"chain": chain})
    assert refusal is not None
    assert refusal.code == "ROUTING_CYCLE_DETECTED"
    assert " → ".join(chain) in refusal.message


def test_another_key_of_an_agent_is_another_agent():
    assert decide({"chain": ("ANL/7", "ORC"), "target": "ANL/8"}) is None
    assert decide({"chain": ("ANL/7", "ORC"), "target": "ANL/7"}) is not None


def test_a_cycle_by_chain_is_told_before_one_by_objective():
    refusal = decide({"chain": ("ANL", "ORC")}, {"objective_in_progress": True})
    assert refusal is not None
    assert refusal.code == "ROUTING_CYCLE_DETECTED"


def test_a_deadlock_is_told_with_its_loop():
    refusal = decide(snapshot={"loop": ("ORC", "ANL", "ORC")})
    assert refusal is not None
    assert "ORC → ANL → ORC" in refusal.message


@pytest.mark.parametrize("fan_out_max", [0, 1, 3])
def test_exactly_fan_out_max_calls_may_be_under_way(fan_out_max):
    at_most = {"caller": caller(children=fan_out_max - 1, fan_out_max=fan_out_max)}
    one_more = {"caller": caller(children=fan_out_max, fan_out_max=fan_out_max)}
    assert decide(snapshot=at_most) is None
    refusal = decide(snapshot=one_more)
    assert refusal is not None
    assert refusal.code == "LIMIT_FAN_OUT_EXCEEDED"
    assert refusal.facts == {"calls": fan_out_max + 1, "fan_out_max": fan_out_max}


def test_exactly_pending_max_calls_may_wait():
    assert decide(snapshot={"place": CALLEE.pending_max}) is None
    refusal = decide(snapshot={"place": CALLEE.pending_max + 1})
    assert refusal is not None
    assert refusal.code == "AGENT_BUSY"
    assert refusal.retry_after_ms == 1_000
    nobody_waits = Agent("ANL", pending_max=0)
    assert decide(snapshot={"agent": nobody_waits, "place": 0}) is None
    assert decide(snapshot={"agent": nobody_waits, "place": 1}) is not None


def test_a_deadline_that_has_come_has_passed():
    assert decide({"deadline_at": NOW_MS + 1}) is None
    refusal = decide({"deadline_at": NOW_MS - 5})
    assert refusal is not None
    assert refusal.code == "LIMIT_DEADLINE_PASSED"
    assert refusal.message == "the deadline of this call passed 5 ms ago"
    assert decide({"deadline_at": NOW_MS}) is not None


@pytest.mark.parametrize(
    ("left", "code"),
    [
        ({"calls_left": 1, "tokens_left": 1}, None),
        ({"calls_left": 1, "tokens_left": None}, None),
        ({"calls_left": 0, "tokens_left": 1}, "BUDGET_CALLS_EXHAUSTED"),
        ({"calls_left": -1, "tokens_left": 1}, "BUDGET_CALLS_EXHAUSTED"),
        ({"calls_left": 1, "tokens_left": 0}, "BUDGET_TOKENS_EXHAUSTED"),
        ({"calls_left": 0, "tokens_left": 0}, "BUDGET_CALLS_EXHAUSTED"),
    ],
)
def test_a_tree_needs_a_call_and_a_token_left(left, code):
    refusal = decide(snapshot=left)
    assert (refusal and refusal.code) == code


def test_a_refusal_can_be_written_down():
    refusal = decide(snapshot={"checked": Checked(None, (PROBLEM,))})
    assert msgspec.json.decode(msgspec.json.encode(refusal), type=Refused) == refusal
