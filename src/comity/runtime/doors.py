"""The door for requests that come as documents, from agents and services outside this process.

Who is asking has been established before: a user by whatever let them in, an agent by its signed token. What a document says
about source, chain, depth and user is a claim. One that is not true is refused and audited; one that is true adds nothing.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from comity.core.admission import Refused
from comity.core.call import State
from comity.core.envelope import Reply, Request
from comity.core.identity import Claims, sign, verify
from comity.core.trace_context import TraceContext
from comity.dialects import dialect
from comity.dialects.delegation import UNKNOWN_ANCESTOR
from comity.errors import CallerError, RefusedError
from comity.runtime.arrival import Draft, Identity, identity_problems, named
from comity.runtime.call import Call
from comity.runtime.path import CallPath


def token_for(call: Call, key: bytes) -> str:
    """Return the token with which an agent outside may speak for a call under way."""
    request = call.request
    claims = Claims(
        request.target,
        request.request_id,
        request.user_id,
        request.tenant_id,
        request.session_id,
        request.chain,
        request.deadline_at,
    )
    return sign(claims, key)


async def receive(
    path: CallPath,
    claimed: Request,
    identity: Identity,
    *,
    token: str | None,
    key: bytes,
    now_ms: int,
    remote: TraceContext | None = None,
) -> Reply:
    """Take a decoded request through the one call path, on behalf of whoever really sent it."""
    if flaws := identity_problems(identity):
        what = "; ".join(f"{flaw.path}: {flaw.message}" for flaw in flaws)
        return await _refuse(path, claimed, named(identity), Refused("IDENTITY_INVALID", what))
    parent: Call | None = None
    if token is not None:
        try:
            claims = verify(token, key, now_ms=now_ms)
        except RefusedError as error:
            return await _refuse(path, claimed, identity, Refused(error.code, error.message))
        parent = path.calls.get(claims.request_id)
        if parent is None or parent.state is not State.RUNNING or not _is_for(claims, parent.request):
            return await _refuse(path, claimed, identity, Refused("CALL_CANCELLED", f"the call {claims.request_id} has ended"))
        identity = Identity(claims.user_id, claims.tenant_id, claims.session_id)
    forged = _forged(claimed, parent, identity)
    if forged:
        return await _refuse(path, claimed, identity, Refused("IDENTITY_MISMATCH", forged))
    draft = Draft(
        claimed.target,
        claimed.capability,
        claimed.inputs,
        claimed.objective,
        claimed.message,
        max(claimed.deadline_at - now_ms, 0),
        claimed.priority,
        claimed.context,
        claimed.limits,
        claimed.history,
    )
    if parent is not None:
        return await path.call_child(parent, draft)
    if identity.session_id is None and claimed.session_id:
        identity = replace(identity, session_id=claimed.session_id)  # whose it is, admission checks
    return await path.call_root(draft, identity, claimed.request_id, remote=remote)


async def receive_document(
    path: CallPath,
    document: Any,
    name: str,
    identity: Identity,
    unsaid: dict[str, str],
    *,
    token: str | None,
    key: bytes,
    now_ms: int,
    remote: TraceContext | None = None,
) -> dict[str, Any]:
    """Take a document in a dialect and answer in the same dialect. Raises `CallerError` for one that cannot be read.

    `unsaid` holds what the dialect's documents may leave out: user, request id, capability.
    """
    spoken = dialect(name)
    if spoken.decode_request is None:
        raise CallerError(f"{name} has replies only; nothing can be asked in it", code="ENVELOPE_MALFORMED")
    asked = {key: value for key, value in unsaid.items() if key in spoken.asks}
    claimed = spoken.decode_request(document, now_ms=now_ms, **asked)
    reply = await receive(path, claimed, identity, token=token, key=key, now_ms=now_ms, remote=remote)
    # Whatever our own ids became on the way, the answer carries the id that was asked with.
    return spoken.encode_reply(replace(reply, request_id=claimed.request_id))


def _is_for(claims: Claims, request: Request) -> bool:
    """Return whether a token was made for this call: once a session is erased, its ids may be chosen again."""
    mine = (request.user_id, request.tenant_id, request.session_id, request.target, request.chain)
    return mine == (claims.user_id, claims.tenant_id, claims.session_id, claims.agent, claims.chain)


def _forged(claimed: Request, parent: Call | None, identity: Identity) -> str:
    """Return the first claim that is not true, in words, or nothing."""
    chain = () if parent is None else (*parent.request.chain, parent.request.target)
    source = chain[-1] if chain else None
    if claimed.user_id and claimed.user_id != identity.user_id:
        return "the document names another user than the one who sent it"
    if claimed.tenant_id not in {"default", identity.tenant_id}:
        return "the document names another tenant than the one it came from"
    if claimed.source is not None and claimed.source != source:
        return f"the document claims to come from {claimed.source}; it comes from {source or 'a user'}"
    # Some dialects know the last agent of the chain only. A chain that is too short is a document's loss, not its gain: where
    # the call stands is not read from it.
    said, true = reversed(claimed.chain), reversed(chain)
    if len(claimed.chain) > len(chain) or any(
        one not in {UNKNOWN_ANCESTOR, other} for one, other in zip(said, true, strict=False)
    ):
        return (
            f"the document claims to come through {' → '.join(claimed.chain)}; it came through {' → '.join(chain) or 'nobody'}"
        )
    if claimed.parent_id and (parent is None or claimed.parent_id != parent.request.request_id):
        return "the document claims to belong to another call"
    return ""


async def _refuse(path: CallPath, claimed: Request, identity: Identity, refusal: Refused) -> Reply:
    """Refuse under the true identity: what was forged must not stand in the audit as a fact."""
    true = replace(
        claimed,
        user_id=identity.user_id,
        tenant_id=identity.tenant_id,
        session_id=identity.session_id or claimed.request_id,
        source=None,
        chain=(),
        parent_id=None,
        root_id=claimed.request_id,
    )
    reply = path.refuse(true, refusal)
    await path.recorded()
    return reply
