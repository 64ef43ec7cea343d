"""Whether the server lives and is ready, what it counts, the caller's identity, and its own description."""

from __future__ import annotations

from msgspec import Struct

from comity import __version__
from comity.server.auth import seen_tenant
from comity.server.metrics import MEDIA_TYPE
from comity.server.observed import node_lines
from comity.server.routes import Ask
from comity.server.web import Answer


class Health(Struct, frozen=True):
    """How the server stands; `reason` says why it is not ready."""

    status: str
    reason: str = ""


class SignIn(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The one-time code of a printed link."""

    code: str


class Console(Struct, frozen=True):
    """A token for the console, and when it ends, in epoch milliseconds."""

    token: str
    expires_at: int


class Me(Struct, frozen=True):
    """Whose token this is, and which node answers."""

    user_id: str
    tenant_id: str | None
    rights: tuple[str, ...]
    node: str
    version: str
    engine: str
    store: str | None


async def health(_ask: Ask) -> Health:
    """Answer."""
    return Health("ok")


async def ready(ask: Ask) -> Answer:
    """Say whether calls are accepted."""
    state = ask.state
    reason = "the server is about to stop" if state.is_draining else ""
    if not reason and (failure := state.node.failure) is not None:
        reason = failure.message
    return Answer(Health("unready", reason), 503) if reason else Answer(Health("ready"))


async def metrics(ask: Ask) -> Answer:
    """Return the metrics of the server and of its node."""
    lines = [*ask.state.metrics.lines(), *node_lines(ask.state)]
    return Answer("\n".join([*lines, ""]).encode(), media_type=MEDIA_TYPE)


async def openapi(ask: Ask) -> Answer:
    """Return the description of the API."""
    return Answer(ask.state.description)


async def sign_in(ask: Ask) -> Console:
    """Exchange a one-time code for a token."""
    return Console(*ask.state.auth.exchange(ask.body.code, ask.state.now_ms()))


async def me(ask: Ask) -> Me:
    """Say whose token this is."""
    node, principal = ask.state.node, ask.principal
    store = node.store
    return Me(
        principal.user_id,
        seen_tenant(principal),
        tuple(sorted(principal.rights)),
        node.node_id,
        __version__,
        "memory" if store is None else "sqlite",
        None if store is None else str(store),
    )
