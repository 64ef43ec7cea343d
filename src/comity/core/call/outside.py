"""A call that an agent of another node makes here: its chain and its limits."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from comity.core.access.claims import AT, Claims, Left, Standing
from comity.core.call.limits import CHAIN_MAX, Limits
from comity.core.envelope.envelope import Request
from comity.errors import RefusedError


class Outside(Struct, frozen=True, gc=False):
    """The position of a call from another node in its tree; `chain` names this node's own agents without a node prefix."""

    chain: tuple[str, ...]
    limits: Limits
    deadline_at: int

    @property
    def source(self) -> str:
        """The agent that makes the call."""
        return self.chain[-1]

    def applied(self, request: Request) -> Request:
        """Return a request with this chain and no more than these limits."""
        return replace(
            request,
            source=self.source,
            chain=self.chain,
            limits=request.limits.narrow(self.limits),
            deadline_at=min(request.deadline_at, self.deadline_at),
        )


def agent_of(address: str) -> str:
    """Return an address in a chain without its node."""
    return address.rpartition(AT)[0] or address


def outside_of(claims: Claims, node_name: str, *, now_ms: int) -> Outside:
    """Return the position of a call whose caller presents an agent's token."""
    assert claims.cty is not None, "an agent's token was read as one"
    chain = tuple(one.removesuffix(f"{AT}{node_name}") for one in claims.cty.chain)
    left = claims.cty.left
    return Outside(chain, left.limits(now_ms=now_ms, depth=len(chain)), left.deadline)


def standing_of(request: Request, left: Limits, node_name: str, *, outgoing_id: str) -> Standing:
    """Return the position of a call to another node that `request` makes with the limits that are `left`.

    `request` is the call of the proxy for the other node's agent. The caller is the agent of this node that called the proxy;
    if a user or an agent of a third node called it, the proxy itself, one hop deeper. Raises `RefusedError` if no hop is left.
    """
    is_own = bool(request.chain) and AT not in request.chain[-1]
    chain = request.chain if is_own else (*request.chain, request.target)
    depth = left.depth_max - (len(chain) - request.depth)
    if depth < 0 or len(chain) > CHAIN_MAX:
        message = f"the call to another node would stand at depth {len(chain)}, one more than is left"
        raise RefusedError(message, code="LIMIT_DEPTH_EXCEEDED")
    return Standing(
        chain=tuple(one if AT in one else f"{one}{AT}{node_name}" for one in chain),
        left=Left(
            deadline=request.deadline_at, calls=left.calls_max, depth=depth, fan_out=left.fan_out_max, tokens=left.tokens_max
        ),
        req=outgoing_id,
    )
