"""A call that an agent of another node makes here: where it stands, and what it may use at most."""

from __future__ import annotations

from msgspec import Struct
from msgspec.structs import replace

from comity.core.access.claims import AT, Claims, Left, Standing
from comity.core.call.limits import CHAIN_MAX, Limits
from comity.core.envelope.envelope import Request
from comity.errors import RefusedError


class Outside(Struct, frozen=True, gc=False):
    """Where a call from another node stands; `chain` has this node's own agents under their plain names."""

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
    """Return where a call stands whose caller shows an agent's token."""
    assert claims.cty is not None, "an agent's token was read as one"
    chain = tuple(one.removesuffix(f"{AT}{node_name}") for one in claims.cty.chain)
    left = claims.cty.left
    return Outside(chain, left.limits(now_ms=now_ms, depth=len(chain)), left.deadline)


def standing_of(request: Request, left: Limits, node_name: str, *, outgoing_id: str) -> Standing:
    """Return where a call to another node stands that `request`, which runs here, makes with what is `left` to it.

    `request` is the call of the agent that stands for the other node's agent. The agent of this node that called it is the
    caller; where a user or an agent of a third node called it, it is the caller itself, one hop further down. Raises
    `RefusedError` if no hop is left for that.
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
