"""Dry run of admission for a user's call: nothing is started, stored, charged or audited."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call import admission
from comity.core.call.ledger import Account
from comity.core.document.payload import unpack_long
from comity.core.document.schema import Checked, SchemaError
from comity.core.envelope.envelope import Error
from comity.core.journal.records import state_key
from comity.runtime.call.snapshot import snapshot

if TYPE_CHECKING:
    from comity.core.guidance.guidance import Finding
    from comity.runtime.agent.activations import Activation
    from comity.runtime.call.call import Call
    from comity.runtime.call.draft import Arrival, Draft, Identity
    from comity.runtime.call.path import CallPath


class Rehearsal(Struct, frozen=True):
    """The rules that `passed`, in order, then the refusing `rule` and its `error`, if any."""

    passed: tuple[str, ...]
    rule: str = ""
    error: Error | None = None


def rehearse(path: CallPath, draft: Draft, identity: Identity) -> Rehearsal:
    """Return which admission rules a user's call would pass now. Guardrails and redaction are not run."""
    now_ms = path.now_ms()
    arrival = path.arrive(draft, identity, path.ids.new_request(now_ms)[0], now_ms, None)
    try:
        checked = _checked(arrival)
    except SchemaError as error:
        return Rehearsal((), "inputs", Error.of("TARGET_MISCONFIGURED", str(error)))
    world = _world(path, arrival, checked, now_ms)
    passed: list[str] = []
    for rule in admission.RULES:
        if (refusal := rule(arrival.request, world, now_ms)) is not None:
            return Rehearsal(tuple(passed), rule.__name__, refusal.error)
        passed.append(rule.__name__)
    return Rehearsal(tuple(passed))


def _checked(arrival: Arrival) -> Checked:
    capability = arrival.capability
    if capability is None or arrival.problems:
        return Checked({})
    return (capability.input_checker or capability.inputs).check(arrival.body)


def _world(path: CallPath, arrival: Arrival, checked: Checked, now_ms: int) -> admission.Snapshot:
    request, agent, capability = arrival.request, arrival.agent, arrival.capability
    seat = None if agent is None else _seat(path, request.target, request.tenant_id)
    wait_ms = None if agent is None else path.settlement.breakers.gate(agent, request.capability, now_ms)[1]
    findings: tuple[Finding, ...] = ()
    if path.guidance is not None and capability is not None and capability.touching is not None and not checked.problems:
        findings = path.guidance.findings(capability.touching, unpack_long(arrival.body))
    names_one = request.session_id != request.root_id
    live = path.sessions.find(request.tenant_id, request.session_id) if names_one else None
    place = 0 if seat is None else seat.place()
    account = Account(request.limits)
    world = snapshot(path.registry, arrival, None, live, checked, seat, place, account, wait_ms, findings, now_ms)
    named = request.parent_session_id or (request.session_id if names_one and live is None else None)
    if named is not None and (owner := path.sessions.owner_of(request.tenant_id, named)) not in {"", request.user_id}:
        return replace(world, owner=owner)
    return world


def _seat(path: CallPath, address: str, tenant_id: str) -> Activation[Call] | None:
    """Return the activation at an address, if it is in memory."""
    key = state_key(tenant_id, address)
    return next((seat for seat in path.activations.seats() if seat.key == key), None)
