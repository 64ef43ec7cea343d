"""Questions that tools ask people, over HTTP: what waits, what it would do, and the answers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from comity.core.envelope.envelope import Reply
from comity.core.reading.page import ROWS_DEFAULT, Limit
from comity.ports.reader import Reader
from comity.runtime.call.tools import REASON_CHARS_MAX, Approval
from comity.server.auth import seen_tenant
from comity.server.problem import unknown
from comity.server.routes import Ask


class ApprovalsQuery(Struct, frozen=True):
    """Which questions are wanted: waiting, decided or all."""

    state: str = "all"
    limit: Limit = ROWS_DEFAULT


class ApprovalView(Struct, frozen=True, kw_only=True):
    """A question: which agent asks for which user, what it would do, the answer. `ended`: no call waits for it."""

    id: str
    state: str
    tool: str
    use: str
    agent: str
    chain: list[str]
    inputs: Any
    risk: str
    user_id: str
    tenant_id: str
    session_id: str
    root_id: str
    asked_at: int
    decided_at: int | None
    decided_by: str
    reason: str
    ended: bool


class Approvals(Struct, frozen=True):
    """Questions; those that wait longest first, else the newest."""

    items: list[ApprovalView]
    next: str | None = None


class DecideBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Why a person answers so; the agent that asked reads why it was denied."""

    reason: Annotated[str, Meta(max_length=REASON_CHARS_MAX)] = ""


class Decided(Struct, frozen=True):
    """What came of an answer: the reply of the call that went on."""

    id: str
    granted: bool
    reply: Reply | None


async def find(ask: Ask) -> Approvals:
    """Return questions of the sender's tenant, with their inputs as the sender may see them."""
    node, wanted = ask.state.node, ask.query.state
    found = node.approvals(by=ask.principal.user_id, tenant_id=seen_tenant(ask.principal))
    found = [one for one in found if wanted == "all" or (one.granted is None) == (wanted == "waiting")]
    found.sort(key=lambda one: one.asked_at if wanted == "waiting" else -one.asked_at)
    found = found[: ask.query.limit]
    risks = {tool.name: str(tool.risk) for tool in node.tools}

    def look(reader: Reader) -> list[tuple[bool, list[str]]]:
        return [_place(reader, one) for one in found]

    places = await ask.state.reading.ask(look)
    return Approvals([_view(one, risks.get(one.tool, ""), *place) for one, place in zip(found, places, strict=True)])


async def grant(ask: Ask) -> Decided:
    """Let the tool be used as asked, and go on with its call."""
    return await _decide(ask, granted=True)


async def deny(ask: Ask) -> Decided:
    """Say no; the agent that asked goes on without."""
    return await _decide(ask, granted=False)


async def _decide(ask: Ask, *, granted: bool) -> Decided:
    approval_id, tenant_id, node = ask.params["approval_id"], seen_tenant(ask.principal), ask.state.node
    asked = next((one for one in node.approvals(tenant_id=tenant_id) if one.id == approval_id), None)
    if asked is None:
        raise unknown("approval", approval_id)
    by = ask.principal.user_id
    reason = "" if ask.body is None else ask.body.reason
    reply = await node.decide(approval_id, granted=granted, by=by, tenant_id=tenant_id, reason=reason)
    ask.state.live.tell("approval", asked.tenant_id, {"id": approval_id, "granted": granted})
    return Decided(approval_id, granted, reply)


def _place(reader: Reader, approval: Approval) -> tuple[bool, list[str]]:
    """Return whether the call that asked has ended, and the agents through which it was asked."""
    root = reader.call_row(approval.root_id)
    if root is None:
        return True, []
    rows = reader.tree(approval.root_id, 1_000)
    asker = next((one for one in reversed(rows) if one.target == approval.target), None)
    chain: list[str] = []
    by_id = {one.request_id: one for one in rows}
    while asker is not None and asker.parent_id is not None:
        asker = by_id.get(asker.parent_id)
        if asker is not None:
            chain.insert(0, asker.target)
    return root.settled_at is not None and root.status != "needs_input", chain


def _view(one: Approval, risk: str, ended: bool, chain: list[str]) -> ApprovalView:
    state = "waiting" if one.granted is None else "granted" if one.granted else "denied"
    return ApprovalView(
        id=one.id,
        state=state,
        tool=one.tool,
        use=one.use,
        agent=one.target,
        chain=chain,
        inputs=one.inputs,
        risk=risk,
        user_id=one.user_id,
        tenant_id=one.tenant_id,
        session_id=one.session_id,
        root_id=one.root_id,
        asked_at=one.asked_at,
        decided_at=one.decided_at,
        decided_by=one.decided_by,
        reason=one.reason,
        ended=ended,
    )
