"""The door for requests that come as documents, from agents and services outside this process.

Who is asking has been established before: a user by whatever let them in, an agent by its signed token. What a document says
about source, chain, depth and user is a claim. A false claim is refused and audited; a true claim adds nothing.

A document that cannot be read is refused and audited too, in the words of its dialect: no input makes the door raise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.agent.disclosure import spoken, spoken_of_code
from comity.core.agent.registry import Registry
from comity.core.call.admission import Refused
from comity.core.call.limits import CITED_CHARS_MAX, Limits
from comity.core.call.machine import State
from comity.core.call.outside import Outside, agent_of
from comity.core.call.token import Claims, verify
from comity.core.document.slices import ONE_GO_BYTES
from comity.core.envelope.envelope import Error, Reply, Request, is_id
from comity.core.envelope.request_id import as_refused, chosen_id_problem
from comity.core.model.tokens import estimate
from comity.core.tracing.trace_context import TraceContext
from comity.dialects import Dialect, contextcore, dialect_of
from comity.dialects.delegation import CLAIMED_ORIGIN, UNKNOWN_ANCESTOR
from comity.dialects.reading.form import kept
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.runtime.call.call import Call
from comity.runtime.call.draft import Draft, Identity, identity_problems, named, recordable
from comity.runtime.call.named import call_named, named_id_problem
from comity.runtime.call.path import CallPath

SENT_AT: Final = "sent_at"  # in a request's metadata: when its document says it was written, in epoch milliseconds
UNREAD: Final = "(unread)"  # stands in the audit for what a document did not say


Check = Callable[[Request], Refused | None]


class Sender(Struct, frozen=True):
    """Who really sent a document, and the call it speaks for; `refusal` if no sender could be made out."""

    identity: Identity
    parent: Call | None = None
    refusal: Refused | None = None
    outside: Outside | None = None

    @property
    def chain(self) -> tuple[str, ...]:
        """The agents through whom the document came, the sender last; none for a user."""
        if self.outside is not None:
            return tuple(map(agent_of, self.outside.chain))
        return () if self.parent is None else (*self.parent.request.chain, self.parent.request.target)


async def receive_document(
    path: CallPath,
    document: Any,
    name: Any,
    identity: Identity,
    unsaid: dict[str, str],
    *,
    token: str | None,
    now_ms: int,
    remote: TraceContext | None = None,
    outside: Outside | None = None,
    check: Check | None = None,
) -> tuple[Reply, dict[str, Any]]:
    """Take a document in a dialect; return the reply, and the answer in the same dialect or, if there is no such, ours.

    `unsaid` holds what the dialect's documents may leave out beside the user: request id, capability. `outside` is where an
    agent of another node stands that sent it. `check` is asked about what the document claims, and may refuse it.
    """
    sender, is_long = _sender(path, identity, token, now_ms, outside), _is_long(document)
    spoken: Dialect | None = None
    try:
        spoken = dialect_of(name, document)
        unsaid = unsaid | {"user_id": sender.identity.user_id}
        asked = {key: value for key, value in unsaid.items() if key in spoken.asks}
        read = partial(_decoder(spoken), document, now_ms=now_ms, limits=path.limits, **asked)
        claimed = await path.slices.aside.run(read) if is_long else read()
    except (Exception, SystemExit) as raised:  # noqa: BLE001  looking at a document of Python objects runs their code
        error, is_odd = _unreadable(raised), not isinstance(raised, CallerError)
        own_id = path.ids.new_request(now_ms)[0]
        outline = partial(_outline, None if is_odd else spoken, document, own_id, path.limits, now_ms)
        claimed = await path.slices.aside.run(outline) if is_long else outline()
        problems = error.facts.get("problems", ())
        refusal = sender.refusal or Refused(
            error.code, error.message, problems=problems, note=f"unreadable: {recordable(name)}"
        )
        reply = await _refuse(path, claimed, sender.identity, refusal, remote)
    else:
        if is_long:  # the call that the sender speaks for may have ended meanwhile
            sender = _sender(path, identity, token, now_ms, outside)
        if check is not None and sender.refusal is None:
            sender = replace(sender, refusal=check(claimed))
        reply = await _receive(path, spoken, claimed, sender, now_ms=now_ms, remote=remote)
    # Whatever our own ids became on the way, the answer carries the id that was asked with.
    reply = replace(reply, request_id=claimed.request_id)
    if not sender.chain and reply.error is not None:  # a user reads it, and has but this one text for it
        reply = replace(reply, error=replace(reply.error, message=_for_user(reply, reply.error)))
    if spoken is None:
        return reply, dict(msgspec.to_builtins(reply))
    return reply, spoken.encode_reply(spoken.finished(reply, _version(path.registry, claimed)))


def _is_long(document: Any) -> bool:
    """Return whether reading a document takes long. Plain data is the caller's own, who may change it from any thread.

    A subclass of `str` or `bytes` counts as plain data: its methods run the caller's code.
    """
    return type(document) in (str, bytes) and len(document) >= ONE_GO_BYTES


def _unreadable(raised: BaseException) -> CallerError:
    if isinstance(raised, CallerError):
        return raised
    return CallerError(f"the document cannot be looked at: a value raised {type(raised).__name__}", code="ENVELOPE_MALFORMED")


def _decoder(spoken: Dialect) -> Callable[..., Request]:
    if spoken.decode_request is None:
        raise CallerError(f"{spoken.name} has replies only; nothing can be asked in it", code="ENVELOPE_MALFORMED")
    return spoken.decode_request


async def _receive(
    path: CallPath, spoken: Dialect, claimed: Request, sender: Sender, *, now_ms: int, remote: TraceContext | None
) -> Reply:
    """Take a decoded request through the one call path, on behalf of its true sender."""
    identity, parent = sender.identity, sender.parent
    refusal = (
        sender.refusal
        or _strangers(path, claimed, identity)
        or _forged(claimed, sender, path.registry)
        or _beyond_budget(spoken, claimed)
        or _ended(claimed)
    )
    if refusal is None and parent is not None and (problem := named_id_problem(claimed.request_id, parent)):
        refusal = Refused("IDENTITY_INVALID", f"request_id {ascii(claimed.request_id)[:CITED_CHARS_MAX]} {problem}")
    if refusal is not None:
        return await _refuse(path, claimed, identity, refusal, remote)
    is_time_unsaid = spoken.time_field in kept(claimed.metadata, spoken.name)
    draft = Draft(
        claimed.target,
        claimed.capability,
        claimed.inputs,
        claimed.objective,
        claimed.message,
        None if is_time_unsaid else max(claimed.deadline_at - now_ms, 0),
        claimed.priority,
        claimed.context,
        claimed.limits,
        claimed.history,
        correlation_id=claimed.correlation_id,
        metadata={SENT_AT: claimed.created_at} if claimed.created_at else None,
        outside=sender.outside,
    )
    if parent is not None and "request_id" in spoken.asks:  # the document has none of its own
        return await path.call_child(parent, draft)
    if parent is not None:
        mine = parent.request.session_id
        if spoken.has_own_sessions and claimed.session_id != mine:  # a session without a name is named as the call
            identity = replace(identity, session_id=claimed.session_id or None, parent_session_id=mine)
        return await call_named(path, parent, draft, claimed.request_id, identity)
    if sender.outside is not None and spoken.has_own_sessions:
        above = identity.session_id or claimed.parent_session_id
        identity = replace(identity, session_id=claimed.session_id or None, parent_session_id=above)
        return await path.call_root(draft, identity, claimed.request_id, remote=remote)
    if identity.session_id is None and claimed.session_id:
        identity = replace(identity, session_id=claimed.session_id)
    if claimed.parent_session_id not in {None, identity.session_id}:
        identity = replace(identity, parent_session_id=claimed.parent_session_id)
    return await path.call_root(draft, identity, claimed.request_id, remote=remote)


def call_of(path: CallPath, token: str, now_ms: int, sender: Identity | None = None) -> Call:
    """Return the call under way that a token was made in. Raises `RefusedError` for a token that is unsound or another's."""
    found = _named_by(path, token, now_ms, sender)
    if isinstance(found, Refused):
        raise RefusedError(found.message, code=found.code)
    return found


def _sender(path: CallPath, identity: Identity, token: str | None, now_ms: int, outside: Outside | None) -> Sender:
    """Return who sent a document, and the call it speaks for if a token was shown."""
    if flaws := identity_problems(identity):
        what = "; ".join(f"{flaw.path}: {flaw.message}" for flaw in flaws)
        return Sender(named(identity), refusal=Refused("IDENTITY_INVALID", what), outside=outside)
    if token is None:
        return Sender(identity, outside=outside)
    found = _named_by(path, token, now_ms, identity)
    if isinstance(found, Refused):
        return Sender(identity, refusal=found, outside=outside)
    request = found.request
    return Sender(Identity(request.user_id, request.tenant_id, request.session_id), found)


def _named_by(path: CallPath, token: str, now_ms: int, sender: Identity | None) -> Call | Refused:
    """Return the running call that a token was made in, or the refusal of a token that is unsound or not the sender's."""
    try:
        claims = verify(token, path.identity_key, now_ms=now_ms)
    except RefusedError as error:
        return Refused(error.code, error.message)
    if sender is not None and not _is_made_for(claims, sender):
        return _mismatch("the token was made for a call of another user, tenant or session", {"claim": "user"})
    call = path.calls.get(claims.request_id)
    if call is None or call.state is not State.RUNNING or call.request.span_id != claims.span_id:
        return Refused("CALL_CANCELLED", f"the call {claims.request_id} has ended")
    return call


def _is_made_for(claims: Claims, sender: Identity) -> bool:
    """Return whether a sender is who a token was made for. A sender need not name the session."""
    is_session = sender.session_id is None or sender.session_id == claims.session_id
    return is_session and (sender.user_id, sender.tenant_id) == (claims.user_id, claims.tenant_id)


def _forged(claimed: Request, sender: Sender, registry: Registry) -> Refused | None:
    """Return the refusal of the first claim that is not true."""
    identity, parent, chain = sender.identity, sender.parent, sender.chain
    source = chain[-1] if chain else None
    if claimed.user_id and claimed.user_id != identity.user_id:
        return _mismatch("the document names another user than the one who sent it", {"claim": "user"})
    if claimed.tenant_id not in {"default", identity.tenant_id}:
        return _mismatch("the document names another tenant than the one it came from")
    # A delegation at depth 0 is a user's call, and names who it says to be all the same.
    said = claimed.source or claimed.metadata.get(CLAIMED_ORIGIN)
    if said is not None and not (source is not None and _is_name_of(said, source, registry)):
        return _mismatch(f"the document claims to come from {said}; it comes from {source or 'a user'}")
    # Some dialects know the last agent of the chain only. A chain that is too short is a document's loss, not its gain: where
    # the call stands is not read from it.
    pairs = zip(reversed(claimed.chain), reversed(chain), strict=False)
    if len(claimed.chain) > len(chain) or not all(
        one == UNKNOWN_ANCESTOR or _is_name_of(one, other, registry) for one, other in pairs
    ):
        came, claims = " → ".join(chain) or "nobody", " → ".join(claimed.chain)
        return _mismatch(f"the document claims to come through {claims}; it came through {came}")
    if claimed.parent_id and (parent is None or claimed.parent_id != parent.request.request_id):
        return _mismatch("the document claims to belong to another call")
    return None


def _mismatch(message: str, facts: dict[str, Any] | None = None) -> Refused:
    return Refused("IDENTITY_MISMATCH", message, facts=facts)


def _beyond_budget(spoken: Dialect, claimed: Request) -> Refused | None:
    """Return the refusal of a request that is longer than the tokens it allows, whether a model or code reads it."""
    budget = claimed.limits.tokens_max
    if budget is None or not spoken.has_budget:
        return None
    parts = [claimed.objective, claimed.message]
    parts += [msgspec.json.encode(one).decode() for one in (claimed.inputs, claimed.context) if one]
    estimated = sum(map(estimate, parts))
    if estimated <= budget:
        return None
    facts = {"estimated": estimated, "tokens_max": budget}
    return Refused("BUDGET_TOKENS_EXHAUSTED", f"the request is about {estimated} tokens long; it allows {budget}", facts=facts)


def _ended(claimed: Request) -> Refused | None:
    """Return the refusal of a handoff whose own document says that it has ended: it is a record, not work."""
    if not (state := contextcore.end_of(claimed)):
        return None
    return Refused("HANDOFF_ENDED", f"{claimed.request_id} has ended: {state}")


def _strangers(path: CallPath, claimed: Request, identity: Identity) -> Refused | None:
    """Return the refusal of a document that names a session of another user, as its own or as the one above."""
    try:
        owners = {
            path.sessions.owner_of(identity.tenant_id, session_id)
            for session_id in (claimed.session_id, claimed.parent_session_id)
            if session_id
        }
    except UnavailableError as error:
        return path.settlement.unavailable(error)
    if owners <= {"", identity.user_id}:
        return None
    return _mismatch("the document names a session of another user", {"claim": "user"})


def _for_user(reply: Reply, error: Error) -> str:
    """Return the message of a reply in place of its error's, where a node put it so that no agent's code is in it."""
    return reply.message if reply.message == spoken(error, "") or reply.message == spoken_of_code(error) else error.message


def _version(registry: Registry, claimed: Request) -> str:
    address = registry.resolve(claimed.target)
    capability = None if address is None else address.agent.capabilities.get(claimed.capability)
    return "" if capability is None else capability.version


def _is_name_of(said: str, address: str, registry: Registry) -> bool:
    """Return whether an agent may call itself so: by its address, by its id without the key, or by an alias for that id."""
    if said == address:
        return True
    known = registry.resolve(said)
    return known is not None and known.text in {address, address.partition("/")[0]}


def _outline(spoken: Dialect | None, document: Any, own_id: str, limits: Limits, now_ms: int) -> Request:
    """Return what can be made out of a document that cannot be read: its id, else `own_id`, and whom it asks for what."""
    plain: dict[str, Any] = {}
    names = {} if spoken is None else spoken.request_names
    with contextlib.suppress(CallerError):
        plain = {} if spoken is None else spoken.load(document)

    def said(field: str, otherwise: str) -> str:
        value = plain.get(names.get(field, ""))
        return str(value) if is_id(value) else otherwise

    return Request(
        request_id=said("request_id", own_id),
        target=said("target", UNREAD),
        capability=said("capability", UNREAD),
        user_id="",
        limits=limits,
        deadline_at=now_ms,
        created_at=now_ms,
    )


async def _refuse(path: CallPath, claimed: Request, identity: Identity, refusal: Refused, remote: TraceContext | None) -> Reply:
    """Refuse under the true identity: what was forged must not stand in the audit as a fact."""
    now_ms = path.now_ms()
    # As with every id that callers choose: an id in a node's own form may belong to another call, and is not repeated as it is.
    request_id = as_refused(claimed.request_id) if chosen_id_problem(claimed.request_id) else claimed.request_id
    trace_id = path.ids.new_request(now_ms)[1] if remote is None else remote.trace_id
    true = replace(
        claimed,
        request_id=request_id,
        user_id=identity.user_id,
        tenant_id=identity.tenant_id,
        session_id=identity.session_id or request_id,
        source=None,
        chain=(),
        parent_id=None,
        root_id=request_id,
        created_at=now_ms,
        trace_id=trace_id,
        span_id=path.ids.span_id(),
        parent_span_id="" if remote is None else remote.span_id,
    )
    reply = path.refuse(true, refusal)
    await path.recorded()
    return reply
