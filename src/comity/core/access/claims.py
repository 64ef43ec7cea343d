"""What a token of the HTTP doors says, and the rules that decide whether it is good here and now.

An agent token names the agent that calls, the user it works for, and where its call stands: chain, depth and what is left of
the limits. A user token names a person and that person's roles. Neither can be used in place of the other.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.access.rights import Role
from comity.core.call.limits import CALLS_CEILING, CHAIN_MAX, CITED_CHARS_MAX, FAN_OUT_CEILING, TIMEOUT_MS_CEILING, Limits
from comity.core.envelope.envelope import is_id
from comity.errors import RefusedError

TOKEN_CHARS_MAX: Final = 4_096
# Between an agent and its node in a chain that crosses nodes. Not @: the audit hides names that may be mail addresses.
AT: Final = "::"
# The longest life of each kind of token. An agent's token also ends with the deadline of the call it was made for.
AGENT_LIFE_S_MAX: Final = 5 * 60
USER_LIFE_S_MAX: Final = 12 * 60 * 60
# A clock that runs ahead must not make a fresh token useless; an expired token gets no such grace.
SKEW_S: Final = 30
# Parameters by which a token would name its own key or ask for an unknown extension.
FORBIDDEN_HEADERS: Final = ("jku", "jwk", "x5u", "x5c", "x5t", "crit", "zip", "b64")


class Kind(StrEnum):
    """What a token is for; the words of its `typ` header."""

    AGENT = "comity-agent+jwt"
    USER = "comity-user+jwt"


class Left(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is left to the calling agent: an absolute deadline in epoch milliseconds, and the rest of its tree's budget."""

    deadline: int
    calls: int
    depth: int
    fan_out: int
    tokens: int | None = None

    def limits(self, *, now_ms: int, depth: int) -> Limits:
        """Return the limits of a call made with this at `depth`."""
        left_ms = min(max(self.deadline - now_ms, 0), TIMEOUT_MS_CEILING)
        return Limits(
            depth_max=min(depth + self.depth, CHAIN_MAX),
            fan_out_max=min(self.fan_out, FAN_OUT_CEILING),
            timeout_ms=left_ms,
            timeout_ms_max=left_ms,
            calls_max=min(self.calls, CALLS_CEILING),
            tokens_max=self.tokens,
        )

    def narrow(self, other: Left | None) -> Left:
        """Return the tighter of both, field by field."""
        if other is None:
            return self
        tokens = [one for one in (self.tokens, other.tokens) if one is not None]
        return Left(
            deadline=min(self.deadline, other.deadline),
            calls=min(self.calls, other.calls),
            depth=min(self.depth, other.depth),
            fan_out=min(self.fan_out, other.fan_out),
            tokens=min(tokens) if tokens else None,
        )


class Standing(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """Where the calling agent's call stands.

    `chain` lists the agents above the callee, root first, each as `agent::node`; its last is the caller. `req` is the one
    request id the token may be used for; a token without it is bound to the request it is first used for.
    """

    chain: tuple[str, ...]
    left: Left
    req: str = ""

    @property
    def depth(self) -> int:
        """Agent-to-agent hops above the callee."""
        return len(self.chain)


class Claims(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The body of a token. `sub` is `agent:ID` or `user:ID`; times are epoch seconds."""

    iss: str
    aud: str
    sub: str
    jti: str
    iat: int
    nbf: int
    exp: int
    scope: str = ""
    tid: str = "default"
    uid: str = ""  # of an agent token: the user on whose behalf the agent works
    sid: str = ""
    roles: tuple[Role, ...] = ()
    act: dict[str, Any] | None = None  # who acts for `sub`, as RFC 8693 nests it
    dig: str = ""  # SHA-256 of the body it is sent with, as base64url
    cty: Standing | None = None

    @property
    def kind(self) -> Kind:
        """Whether it is an agent's or a user's token."""
        return Kind.AGENT if self.sub.startswith("agent:") else Kind.USER

    @property
    def name(self) -> str:
        """The agent's or user's own id."""
        return self.sub.partition(":")[2]

    @property
    def user_id(self) -> str:
        """The user for whom something is done."""
        return self.uid if self.kind is Kind.AGENT else self.name


_decode = msgspec.json.Decoder(Claims).decode
encode: Final = msgspec.json.Encoder().encode


def check_header(header: Any, *, algorithm: str) -> Kind:
    """Return the kind of token a JWS header announces. Raises `RefusedError` unless the header says what its key is for."""
    if not isinstance(header, dict) or any(name in header for name in FORBIDDEN_HEADERS):
        raise refused("IDENTITY_FORGED", "the token's header names a key or an extension of its own")
    if header.get("alg") != algorithm:
        raise refused("IDENTITY_FORGED", f"the token's algorithm is not {algorithm}, which its key is for")
    kind = header.get("typ")
    if kind not in (str(Kind.AGENT), str(Kind.USER)):
        raise refused("IDENTITY_FORGED", f"the token's type is neither {Kind.AGENT} nor {Kind.USER}")
    return Kind(kind)


def read(body: bytes, kind: Kind) -> Claims:
    """Return the claims of a token whose signature was found good. Raises `RefusedError` if they are not sound."""
    try:
        claims = _decode(body)
    except (msgspec.MsgspecError, ValueError) as error:
        raise refused("IDENTITY_FORGED", f"the token's claims cannot be read: {error}") from None
    names = (claims.iss, claims.aud, claims.jti, claims.tid, claims.name, *((claims.uid,) if claims.uid else ()))
    if not all(map(is_id, names)) or (claims.sid and not is_id(claims.sid)):
        raise refused("IDENTITY_FORGED", "the token's claims do not name issuer, audience, subject, tenant and token id")
    if claims.sub != f"{'agent' if kind is Kind.AGENT else 'user'}:{claims.name}":
        raise refused("IDENTITY_FORGED", f"a token of type {kind} cannot be about {claims.sub[:CITED_CHARS_MAX]}")
    longest = AGENT_LIFE_S_MAX if kind is Kind.AGENT else USER_LIFE_S_MAX
    if not claims.iat <= claims.exp <= claims.iat + longest or claims.nbf > claims.exp:
        raise refused("IDENTITY_FORGED", f"a token of type {kind} lives {longest} s at most")
    if kind is Kind.AGENT and not (claims.uid and _stands_soundly(claims)):
        raise refused("IDENTITY_FORGED", "an agent's token names its user, its chain and what is left of the limits")
    return claims


def _stands_soundly(claims: Claims) -> bool:
    standing = claims.cty
    if standing is None or not standing.chain or len(standing.chain) > CHAIN_MAX or claims.roles:
        return False
    left = standing.left
    numbers = (left.deadline, left.calls, left.depth, left.fan_out, left.tokens or 0)
    agent, _, node = standing.chain[-1].rpartition(AT)
    is_caller = agent.partition("/")[0] == claims.name and node == claims.iss
    return is_caller and all(map(is_id, standing.chain)) and all(number >= 0 for number in numbers)


def check_time(claims: Claims, *, now_s: float) -> None:
    """Raise `RefusedError` for a token that has expired or is not valid yet."""
    if claims.exp <= now_s:
        raise refused("IDENTITY_EXPIRED", "the token has expired", claims)
    if claims.nbf > now_s + SKEW_S or claims.iat > now_s + SKEW_S:
        raise refused("IDENTITY_NOT_YET_VALID", "the token is not valid yet", claims)


def check_audience(claims: Claims, audience: str) -> None:
    """Raise `RefusedError` for a token that was made for another node."""
    if claims.aud != audience:
        raise refused("IDENTITY_WRONG_AUDIENCE", f"the token is for {claims.aud[:CITED_CHARS_MAX]}, not for {audience}", claims)


def refused(code: str, message: str, claims: Claims | None = None) -> RefusedError:
    """Return the error of a token that is not accepted; with `claims`, the error says whose genuine token it is."""
    facts: dict[str, Any] = (
        {} if claims is None else {"user_id": claims.user_id, "tenant_id": claims.tid, "token_id": claims.jti}
    )
    return RefusedError(message, code=code, **facts)
