"""Users sign in by an OpenID Connect provider: authorisation code with PKCE, no cookie, and a token of this node in the end.

The page that begins makes a secret and sends its hash along; the one-time code that the sign-in ends with is exchanged for a
token only together with that secret. So a link that an attacker prepared signs no browser in.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import json
import secrets
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec
from msgspec import Struct
from starlette.routing import BaseRoute, Route

from comity.core.access import Role
from comity.core.access.claims import USER_LIFE_S_MAX, refused
from comity.core.call.limits import CITED_CHARS_MAX
from comity.core.envelope.envelope import is_id
from comity.core.units import MS_PER_S
from comity.engines.keys.extra import load_jwt
from comity.engines.keys.ring import encode_bytes
from comity.errors import CallerError, ComityError, UnavailableError
from comity.server.state import State
from comity.server.web import JSON_TYPE, Reader, Receive, Scope, Send, check_json_type, encode, read_body, respond

PREFIX: Final = "/v1/signin/"
BEGUN_MS_MAX: Final = 10 * 60 * 1000
CODE_MS_MAX: Final = 60 * 1000
PENDING_MAX: Final = 1_000
KEYS_MS_MAX: Final = 10 * 60 * 1000
UNKNOWN_KEY_MS: Final = 5_000  # how long after the keys were asked for an unknown one lets them be asked for again
SECRET_BYTES: Final = 24
VERIFIER_BYTES: Final = 48  # as text 64 characters: RFC 7636 wants 43 to 128
BIND_CHARS_MAX: Final = 64
BODY_BYTES_MAX: Final = 64 * 1024
ANSWER_BYTES_MAX: Final = 1024 * 1024
ASK_S: Final = 10.0
SKEW_S: Final = 30
# One algorithm for each kind of key; a symmetric one for none.
_ALGORITHMS: Final = {("RSA", ""): "RS256", ("EC", "P-256"): "ES256", ("EC", "P-384"): "ES384", ("OKP", "Ed25519"): "EdDSA"}


class Provider(Struct, frozen=True, kw_only=True):
    """A provider and what its claims mean here."""

    issuer: str
    client_id: str
    client_secret: str = ""
    redirect_url: str = ""  # of this server, with `/v1/signin/callback`
    user_claim: str = "sub"
    roles_claim: str = "comity_roles"
    tenant_claim: str = "comity_tenant"
    default_role: Role | None = None  # of a user whose token names none; without it, such a user is refused


class Begun(Struct, frozen=True):
    """A sign-in that was sent to the provider."""

    nonce: str
    verifier: str
    bind: str
    until_ms: int


class SignedIn(Struct, frozen=True):
    """A user for whom the provider has vouched."""

    user_id: str
    tenant_id: str
    roles: tuple[Role, ...]


class Finished(Struct, frozen=True):
    """A sign-in whose page has not exchanged its one-time code yet."""

    user: SignedIn
    bind: str
    until_ms: int


class Exchange(Struct, frozen=True, forbid_unknown_fields=True):
    """What a page exchanges for a token: the code its address got, and the secret it began with."""

    code: str
    secret: str


class IdToken(Struct, frozen=True, forbid_unknown_fields=True):
    """What a program exchanges for a token: an ID token that the provider gave it for this client."""

    id_token: str


class SignIns:
    """Sign-ins under way and the provider's keys."""

    def __init__(self, provider: Provider) -> None:
        self.provider = provider
        _check_url(provider.issuer)
        self._begun: dict[str, Begun] = {}
        self._codes: dict[str, Finished] = {}
        self._metadata: dict[str, Any] = {}
        self._keys: dict[str, tuple[Any, str]] = {}
        self._keys_at_ms = 0

    async def begin(self, bind: str, now_ms: int) -> str:
        """Return the provider's address for a sign-in of the page whose secret has the hash `bind`."""
        if not is_id(bind, BIND_CHARS_MAX):
            raise CallerError("bind must be the base64url SHA-256 of the page's secret", code="HTTP_QUERY_INVALID")
        where = (await self._discovered())["authorization_endpoint"]
        state, begun = (
            secrets.token_urlsafe(SECRET_BYTES),
            Begun(secrets.token_urlsafe(SECRET_BYTES), secrets.token_urlsafe(VERIFIER_BYTES), bind, now_ms + BEGUN_MS_MAX),
        )
        _keep(self._begun, state, begun)
        challenge = encode_bytes(hashlib.sha256(begun.verifier.encode()).digest())
        asked = {
            "response_type": "code", "client_id": self.provider.client_id, "redirect_uri": self.provider.redirect_url,
            "scope": "openid profile email", "state": state, "nonce": begun.nonce, "code_challenge": challenge,
            "code_challenge_method": "S256",
        }  # fmt: skip
        return f"{where}{'&' if '?' in where else '?'}{urlencode(asked)}"

    async def finish(self, state: str, code: str, now_ms: int) -> str:
        """Return a one-time code for the user that the provider sent back. Raises `RefusedError` for an unknown sign-in."""
        begun = self._begun.pop(state, None)
        if begun is None or begun.until_ms <= now_ms:
            raise refused("IDENTITY_EXPIRED", "this sign-in is unknown or took too long; begin again")
        form = {
            "grant_type": "authorization_code", "code": code, "redirect_uri": self.provider.redirect_url,
            "client_id": self.provider.client_id, "code_verifier": begun.verifier,
        } | ({"client_secret": self.provider.client_secret} if self.provider.client_secret else {})  # fmt: skip
        told = await asyncio.to_thread(_ask, (await self._discovered())["token_endpoint"], form)
        user = await self.user_of(str(told.get("id_token", "")), now_ms, nonce=begun.nonce)
        one_time = secrets.token_urlsafe(SECRET_BYTES)
        _keep(self._codes, one_time, Finished(user, begun.bind, now_ms + CODE_MS_MAX))
        return one_time

    def exchange(self, code: str, secret: str, now_ms: int) -> SignedIn:
        """Return the user of a one-time code. Raises `RefusedError` for a code that is used, expired or another page's."""
        found = self._codes.pop(code, None)
        hashed = encode_bytes(hashlib.sha256(secret.encode(errors="replace")).digest())
        if found is None or found.until_ms <= now_ms or not hmac.compare_digest(hashed, found.bind):
            raise refused("IDENTITY_EXPIRED", "the code is unknown, used, expired or of another page")
        return found.user

    async def user_of(self, id_token: str, now_ms: int, *, nonce: str | None = None) -> SignedIn:
        """Return the user an ID token names. Raises `RefusedError` unless it is the provider's, in time and for this client."""
        jwt = load_jwt()
        try:
            header = jwt.get_unverified_header(id_token)
        except Exception:  # noqa: BLE001  PyJWT raises more than its own errors for hostile input
            raise refused("IDENTITY_FORGED", "the provider's token cannot be read") from None
        key, algorithm = await self._key(str(header.get("kid", "")), now_ms)
        if header.get("alg") != algorithm:
            raise refused("IDENTITY_FORGED", f"the provider's token is not signed with {algorithm}, which its key is for")
        try:
            claims = jwt.decode(
                id_token, key, algorithms=[algorithm], audience=self.provider.client_id, issuer=self.provider.issuer,
                leeway=SKEW_S, options={"require": ["exp", "iat", "sub"]},
            )  # fmt: skip
        except jwt.ExpiredSignatureError:
            raise refused("IDENTITY_EXPIRED", "the provider's token has expired") from None
        except jwt.InvalidAudienceError:
            raise refused("IDENTITY_WRONG_AUDIENCE", "the provider's token is for another client") from None
        except Exception as error:  # noqa: BLE001  as above
            raise refused("IDENTITY_FORGED", f"the provider's token is not good: {type(error).__name__}") from None
        if nonce is not None and claims.get("nonce") != nonce:
            raise refused("IDENTITY_FORGED", "the provider's token is of another sign-in")
        return self._meant(claims)

    def _meant(self, claims: dict[str, Any]) -> SignedIn:
        """Return who is meant here by the provider's claims."""
        told = self.provider
        user_id: Any = claims.get(told.user_claim)
        tenant_id: Any = claims.get(told.tenant_claim, "default")
        if not is_id(user_id) or not is_id(tenant_id):
            raise refused("IDENTITY_INVALID", f"the provider's token names no user in {told.user_claim}")
        named = claims.get(told.roles_claim, ())
        named = named.split() if isinstance(named, str) else named
        known = [str(role) for role in Role]
        roles = tuple(Role(one) for one in named if one in known) if isinstance(named, list | tuple) else ()
        if not roles and told.default_role is not None:
            roles = (told.default_role,)
        if not roles:
            what = f"the provider gives {user_id[:CITED_CHARS_MAX]} no role here; it belongs in {told.roles_claim}"
            raise refused("RIGHTS_MISSING", what)
        return SignedIn(user_id, tenant_id, roles)

    async def _key(self, kid: str, now_ms: int) -> tuple[Any, str]:
        """Return a key of the provider and the one algorithm it is used with; unknown ones are asked for, once in a while."""
        age_ms = now_ms - self._keys_at_ms
        if age_ms > (KEYS_MS_MAX if kid in self._keys else UNKNOWN_KEY_MS):
            document = await asyncio.to_thread(_ask, (await self._discovered())["jwks_uri"])
            self._keys, self._keys_at_ms = _keys_of(document), now_ms
        found = self._keys.get(kid)
        if found is None:
            raise refused("IDENTITY_FORGED", "the provider has no such key")
        return found

    async def _discovered(self) -> dict[str, Any]:
        if not self._metadata:
            where = f"{self.provider.issuer.rstrip('/')}/.well-known/openid-configuration"
            found = await asyncio.to_thread(_ask, where)
            if found.get("issuer") != self.provider.issuer:
                raise UnavailableError(f"{where} speaks for another issuer than {self.provider.issuer}", retryable=False)
            for name in ("authorization_endpoint", "token_endpoint", "jwks_uri"):
                _check_url(str(found.get(name, "")))
            self._metadata = found
        return self._metadata


def routes(state: State, sign_ins: SignIns) -> list[BaseRoute]:
    """Return the routes of a sign-in, for `Door`; they need no token."""
    return [Route(f"{PREFIX}{{step}}", endpoint=_Step(state, sign_ins), methods=None)]


class _Step:
    """One step of a sign-in."""

    def __init__(self, state: State, sign_ins: SignIns) -> None:
        self._state, self._sign_ins = state, sign_ins
        self._exchange, self._id_token = Reader(Exchange), Reader(IdToken)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        step, method = scope["path_params"]["step"], scope["method"]
        scope["comity.route"] = f"{PREFIX}{step}" if step in ("start", "callback", "exchange", "id-token") else f"{PREFIX}…"
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        now_ms = self._state.now_ms()
        match method, step:
            case "GET", "start":
                await _redirect(send, await self._sign_ins.begin(given.get("bind", ""), now_ms))
            case "GET", "callback":
                await _redirect(send, await self._back(scope, given, now_ms))
            case "POST", "exchange":
                asked: Exchange = await self._read(scope, receive, self._exchange)
                await self._sign_in(send, self._sign_ins.exchange(asked.code, asked.secret, now_ms), now_ms)
            case "POST", "id-token":
                shown: IdToken = await self._read(scope, receive, self._id_token)
                await self._sign_in(send, await self._sign_ins.user_of(shown.id_token, now_ms), now_ms)
            case _:
                raise CallerError("there is no such step of a sign-in", code="HTTP_PATH_UNKNOWN")

    async def _back(self, scope: Scope, given: dict[str, str], now_ms: int) -> str:
        """Return where the browser goes after the provider: to the console, with a code or what went wrong in the fragment."""
        try:
            if "error" in given:
                raise refused("IDENTITY_REQUIRED", f"the provider did not sign in: {given['error'][:CITED_CHARS_MAX]}")
            code = await self._sign_ins.finish(given.get("state", ""), given.get("code", ""), now_ms)
        except ComityError as error:
            self._state.refusals.note(scope, error, now_ms)
            return f"/console/#{urlencode({'signin_error': error.code})}"
        return f"/console/#{urlencode({'signin': code})}"

    async def _read(self, scope: Scope, receive: Receive, reader: Reader) -> Any:
        heads = scope["comity.heads"]
        raw = await read_body(receive, heads, BODY_BYTES_MAX)
        check_json_type(heads)
        return reader.read(raw)

    async def _sign_in(self, send: Send, user: SignedIn, now_ms: int) -> None:
        signed = self._state.auth.signed
        token = signed.sign_in(user.user_id, roles=user.roles, tenant_id=user.tenant_id, now_ms=now_ms)
        told = {
            "token": token,
            "expires_at": now_ms + USER_LIFE_S_MAX * MS_PER_S,
            "user_id": user.user_id,
            "tenant_id": user.tenant_id,
        }
        await respond(send, 200, encode(told), JSON_TYPE)


async def _redirect(send: Send, where: str) -> None:
    await respond(send, 302, b"", b"text/plain", ((b"location", where.encode("ascii", "ignore")),))


def _keep(pending: dict[str, Any], key: str, value: Any) -> None:
    """Keep something under way; the oldest goes where there are too many."""
    while len(pending) >= PENDING_MAX:
        del pending[next(iter(pending))]
    pending[key] = value


def _keys_of(document: Any) -> dict[str, tuple[Any, str]]:
    """Return the provider's signing keys by id, each with its one algorithm; keys of other kinds are passed over."""
    jwt, found = load_jwt(), {}
    for one in document.get("keys", ()) if isinstance(document, dict) else ():
        kind = (one.get("kty"), "" if one.get("kty") == "RSA" else one.get("crv", ""))
        algorithm = _ALGORITHMS.get(kind)
        if algorithm is None or one.get("use", "sig") != "sig" or one.get("alg", algorithm) != algorithm:
            continue
        found[str(one.get("kid", ""))] = (jwt.PyJWK(one, algorithm).key, algorithm)
    return found


def _check_url(url: str) -> None:
    parts = urlsplit(url)
    is_here = parts.hostname in ("127.0.0.1", "localhost", "::1")
    if parts.scheme != "https" and not (parts.scheme == "http" and is_here):
        raise CallerError(f"{url[:CITED_CHARS_MAX]!r} is no address of a provider: it must be https", field="oidc")


def _ask(url: str, form: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the JSON that the provider answers with. Raises `UnavailableError`; the answer's text is not repeated."""
    parts = urlsplit(url)
    made = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    connection = made(parts.hostname or "", parts.port, timeout=ASK_S)
    path = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
    try:
        if form is None:
            connection.request("GET", path, headers={"Accept": "application/json"})
        else:
            headers = {"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"}
            connection.request("POST", path, urlencode(form), headers)
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX)
        if answer.status != 200:
            raise UnavailableError(f"the provider answered {answer.status} at {parts.path}", code="TARGET_TEMPORARY_FAILURE")
        told = json.loads(body)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise UnavailableError(f"the provider cannot be asked: {error}", code="TARGET_TEMPORARY_FAILURE") from None
    finally:
        connection.close()
    return told if isinstance(told, dict) else {}


def provider_of(settings: dict[str, Any]) -> Provider:
    """Return the provider that a part of the settings describes. Raises `CallerError` for incomplete settings."""
    try:
        return msgspec.convert(settings, Provider)
    except msgspec.ValidationError as error:
        raise CallerError(f"the settings of oidc are wrong: {error}", field="oidc") from None
