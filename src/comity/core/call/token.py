"""Service identity: a signed token that names the calling agent and the call on whose behalf it speaks.

An agent outside this process shows it to call back. Who it is, whose work it does and how deep it stands come from the token
and from the call it names; what a request's body or headers claim is compared with that and never believed by itself.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from comity.core.envelope.envelope import Request
from comity.errors import RefusedError

TOKEN_CHARS_MAX: Final = 4_096
_DOMAIN: Final = b"comity identity 1\n"  # a signature made for another purpose does not fit


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a token says. It is good until `expires_at`, which is never after the deadline of the call it names.

    `span_id` is drawn by the node that runs the call, so that no other call is meant: not one of another store with the same
    key, nor a call that was given the same request id later.
    """

    agent: str
    request_id: str
    user_id: str
    tenant_id: str
    session_id: str
    chain: tuple[str, ...]
    expires_at: int
    span_id: str = ""


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Claims).decode


def sign(claims: Claims, key: bytes) -> str:
    """Return the token that says so."""
    body = _encode(claims)
    return f"{_text(body)}.{_text(_mac(body, key))}"


def token_for(request: Request, key: bytes) -> str:
    """Return the token with which an agent outside may speak for the call that serves a request."""
    claims = Claims(
        request.target,
        request.request_id,
        request.user_id,
        request.tenant_id,
        request.session_id,
        request.chain,
        request.deadline_at,
        request.span_id,
    )
    return sign(claims, key)


def verify(token: str, key: bytes, *, now_ms: int) -> Claims:
    """Return what a token says, or raise `RefusedError` if it was not signed here, was changed, or is too old."""
    body_text, _, mac_text = token.partition(".") if type(token) is str and len(token) <= TOKEN_CHARS_MAX else ("", "", "")
    try:
        body, mac = _bytes(body_text), _bytes(mac_text)
        claims = _decode(body) if hmac.compare_digest(mac, _mac(body, key)) else None
    except (ValueError, binascii.Error, msgspec.MsgspecError):
        claims = None
    if claims is None:
        raise RefusedError("the identity token was not signed by this node", code="IDENTITY_FORGED")
    if claims.expires_at <= now_ms:
        raise RefusedError("the identity token has expired", code="IDENTITY_EXPIRED")
    return claims


def _mac(body: bytes, key: bytes) -> bytes:
    return hmac.new(key, _DOMAIN + body, hashlib.sha256).digest()


def _text(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _bytes(text: str) -> bytes:
    # Strict: a second spelling of the same bytes would be a second token.
    data = base64.b64decode(text.translate(_URL_SAFE) + "=" * (-len(text) % 4), validate=True)
    if _text(data) != text:
        raise ValueError("not canonical")
    return data


_URL_SAFE = str.maketrans("-_", "+/", "+/=")
