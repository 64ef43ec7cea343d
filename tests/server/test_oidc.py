"""Users sign in by an OpenID Connect provider, here one on loopback that signs with RSA."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import functools
import hashlib
import json
import time
from urllib.parse import parse_qs, urlsplit

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from served import serving

from comity import Node
from comity.core.access import Role
from comity.core.units import MS_PER_S, NS_PER_MS
from comity.errors import CallerError, RefusedError, UnavailableError
from comity.server.app import Door
from comity.server.oidc import (
    ANSWER_BYTES_MAX,
    BEGUN_MS_MAX,
    BIND_CHARS_MAX,
    BODY_BYTES_MAX,
    CODE_MS_MAX,
    KEYS_MS_MAX,
    PENDING_MAX,
    PREFIX,
    UNKNOWN_KEY_MS,
    Provider,
    SignIns,
    _ask,
    _keep,
    _keys_of,
    provider_of,
    routes,
)

JSON = {"content-type": "application/json"}
SECRET = "the-secret-of-the-page"
BIND = base64.urlsafe_b64encode(hashlib.sha256(SECRET.encode()).digest()).rstrip(b"=").decode()


@functools.cache
def rsa_key(_whose: str) -> rsa.RSAPrivateKey:
    """Return the key of a name; made on first use, which takes 200 ms that no other test of a worker should spend."""
    return rsa.generate_private_key(65537, 2048)


class TestProvider:
    """A provider that signs everybody in as `claims` say."""

    __test__ = False

    def __init__(self) -> None:
        self.claims = {"sub": "ann", "comity_roles": ["operator", "astronaut"]}
        self.key, self.kid, self.algorithm = rsa_key("its own"), "k1", "RS256"
        self.asked: dict[str, str] = {}
        self.challenge = self.nonce = ""
        self.metadata: dict[str, str] = {}  # beside what a good provider says
        self.looks: list[str] = []  # at its metadata and at its keys
        self.url = ""

    async def start(self) -> web.AppRunner:
        application = web.Application()
        application.router.add_get("/.well-known/openid-configuration", self._metadata)
        application.router.add_get("/jwks", self._jwks)
        application.router.add_post("/token", self._token)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        self.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
        return runner

    async def _metadata(self, _request: web.Request) -> web.Response:
        names = {"authorization_endpoint": "authorize", "token_endpoint": "token", "jwks_uri": "jwks"}
        self.looks.append("metadata")
        good = {"issuer": self.url} | {name: f"{self.url}/{path}" for name, path in names.items()}
        return web.json_response(good | self.metadata)

    async def _jwks(self, _request: web.Request) -> web.Response:
        self.looks.append("keys")
        public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("its own").public_key()))
        return web.json_response({"keys": [public | {"kid": "k1", "use": "sig"}, {"kty": "oct", "k": "AAAA", "kid": "weak"}]})

    async def _token(self, request: web.Request) -> web.Response:
        self.asked = dict(await request.post())
        hashed = base64.urlsafe_b64encode(hashlib.sha256(self.asked["code_verifier"].encode()).digest()).rstrip(b"=").decode()
        if hashed != self.challenge or self.asked["code"] != "granted":
            return web.json_response({"error": "invalid_grant"}, status=400)
        return web.json_response({"id_token": self.id_token(nonce=self.nonce)})

    def id_token(self, **more) -> str:
        now = int(time.time())
        claims = {"iss": self.url, "aud": "comity", "iat": now, "exp": now + 60} | self.claims | more
        claims = {name: value for name, value in claims.items() if value is not ...}
        return jwt.encode(claims, self.key, algorithm=self.algorithm, headers={"kid": self.kid})


def signing_in(work, **settings):
    """Run work(provider, served) with a served node whose users sign in by a provider."""

    async def go() -> None:
        provider = TestProvider()
        runner = await provider.start()
        try:
            told = Provider(
                issuer=provider.url, client_id="comity", redirect_url="http://127.0.0.1/v1/signin/callback", **settings
            )
            sign_ins = SignIns(told)
            door = Door(lambda state: routes(state, sign_ins), open_prefixes=(PREFIX,))
            async with serving(Node(lag_ms=None), doors=[door]) as served:
                served.client.headers.pop("authorization")
                await work(provider, served)
        finally:
            await runner.cleanup()

    asyncio.run(go())


def asking(work):
    """Run work(provider) with a provider in real time: a sign-in asks it in a thread."""

    async def go() -> None:
        provider = TestProvider()
        runner = await provider.start()
        try:
            await work(provider)
        finally:
            await runner.cleanup()

    asyncio.run(go())


async def begin(provider, served) -> str:
    """Begin a sign-in, let the provider grant it, and return where the browser is sent in the end."""
    answer = await served.client.get("/v1/signin/start", params={"bind": BIND})
    asked = {name: value[0] for name, value in parse_qs(urlsplit(answer.headers["location"]).query).items()}
    assert (answer.status_code, asked["response_type"], asked["code_challenge_method"]) == (302, "code", "S256")
    provider.challenge, provider.nonce = asked["code_challenge"], asked["nonce"]
    back = await served.client.get(
        "/v1/signin/callback", params={"code": "granted", "state": asked["state"]}, headers={"sec-fetch-site": "cross-site"}
    )
    assert back.status_code == 302
    return back.headers["location"]


def fragment(location: str) -> dict[str, str]:
    return {name: value[0] for name, value in parse_qs(urlsplit(location).fragment).items()}


def test_a_page_that_began_a_sign_in_gets_a_token_with_the_roles_of_the_provider():
    async def work(provider, served) -> None:
        code = fragment(await begin(provider, served))["signin"]
        stolen = await served.client.post("/v1/signin/exchange", json={"code": code, "secret": "another page's"})
        assert (stolen.status_code, stolen.json()["code"]) == (401, "IDENTITY_EXPIRED")
        code = fragment(await begin(provider, served))["signin"]
        answer = await served.client.post("/v1/signin/exchange", json={"code": code, "secret": SECRET})
        token = answer.json()["token"]
        assert "client_secret" not in provider.asked
        assert 43 <= len(provider.asked["code_verifier"]) <= 128  # RFC 7636
        me = await served.client.get("/v1/me", headers={"authorization": f"Bearer {token}"})
        assert (me.status_code, me.json()["user_id"]) == (200, "ann")
        principal = served.server.app.state.auth.authenticate(f"Bearer {token}", served.server.app.state.now_ms())
        assert principal.claims.roles == (Role.OPERATOR,)
        assert answer.json()["expires_at"] // MS_PER_S == principal.claims.exp
        again = await served.client.post("/v1/signin/exchange", json={"code": code, "secret": SECRET})
        assert again.status_code == 401

    signing_in(work)


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"nonce": "another"}, "IDENTITY_FORGED"),
        ({"nonce": ...}, "IDENTITY_FORGED"),
        ({"aud": "another client"}, "IDENTITY_WRONG_AUDIENCE"),
        ({"iss": "https://evil.example"}, "IDENTITY_FORGED"),
        ({"exp": 1}, "IDENTITY_EXPIRED"),
        ({"sub": None}, "IDENTITY_FORGED"),
        ({"comity_roles": []}, "RIGHTS_MISSING"),
        ({"comity_roles": {"admin": True}}, "RIGHTS_MISSING"),
        ({"sub": "a\nb"}, "IDENTITY_INVALID"),
        ({"comity_tenant": "a\nb"}, "IDENTITY_INVALID"),
    ],
)
def test_a_token_of_the_provider_that_is_not_good_signs_nobody_in(change, code):
    async def work(provider, served) -> None:
        provider.claims |= change
        provider.id_token = lambda real=provider.id_token, **more: real(**(more | change))
        assert fragment(await begin(provider, served)) == {"signin_error": code}
        assert [row.error_code for row in served.server.node.audit.rows()] == [code]

    signing_in(work)


@pytest.mark.parametrize("how", ["another key", "unknown key", "symmetric", "none"])
def test_only_the_providers_keys_and_their_one_algorithm_count(how):
    async def work(provider, served) -> None:
        if how == "another key":
            provider.key = rsa_key("another")
        elif how == "unknown key":
            provider.kid = "k2"
        elif how == "symmetric":
            provider.key, provider.algorithm = "0" * 64, "HS256"
        else:
            provider.key, provider.algorithm = None, "none"
        answer = await served.client.post("/v1/signin/id-token", json={"id_token": provider.id_token()})
        assert (answer.status_code, answer.json()["code"]) == (401, "IDENTITY_FORGED")
        assert (how in ("symmetric", "none")) is ("is not signed with RS256" in answer.json()["detail"])

    signing_in(work)


def test_a_program_exchanges_its_id_token_and_a_default_role_may_be_given():
    async def work(provider, served) -> None:
        provider.claims = {"sub": "bob", "comity_tenant": "acme"}
        answer = await served.client.post("/v1/signin/id-token", json={"id_token": provider.id_token()})
        assert (answer.status_code, answer.json()["user_id"], answer.json()["tenant_id"]) == (200, "bob", "acme")
        assert roles_of(served, answer) == (Role.VIEWER,)
        provider.claims = {"sub": "bob", "comity_roles": "operator"}
        answer = await served.client.post("/v1/signin/id-token", json={"id_token": provider.id_token(nonce="its own")})
        assert roles_of(served, answer) == (Role.OPERATOR,)
        await begin(provider, served)
        assert provider.asked["client_secret"] == "shared"

    signing_in(work, default_role=Role.VIEWER, client_secret="shared")  # noqa: S106


def roles_of(served, answer) -> tuple[Role, ...]:
    """Return the roles of the token that an answer holds."""
    state = served.server.app.state
    return state.auth.authenticate(f"Bearer {answer.json()['token']}", state.now_ms()).claims.roles


def test_what_is_no_exchange_is_refused_and_steps_are_counted_by_their_names():
    async def work(provider, served) -> None:
        shown = {"id_token": provider.id_token()}
        long = {"id_token": "x" * BODY_BYTES_MAX}
        for step, body, head, status in (
            ("id-token", shown | {"more": 1}, {}, 400),
            ("exchange", {"code": "c", "secret": "s", "more": 1}, {}, 400),
            ("id-token", shown, {"content-type": "text/plain"}, 415),
            ("id-token", long, {}, 413),
            ("made-up", shown, {}, 404),
        ):
            answer = await served.client.post(f"{PREFIX}{step}", content=json.dumps(body), headers=JSON | head)
            assert answer.status_code == status, (step, answer.text)
        counted = served.server.app.state.metrics.requests
        assert counted["/v1/signin/id-token", 400] == counted["/v1/signin/id-token", 413] == counted["/v1/signin/…", 404] == 1
        for chars, status in ((BIND_CHARS_MAX, 302), (BIND_CHARS_MAX + 1, 400)):
            assert (await served.client.get("/v1/signin/start", params={"bind": "b" * chars})).status_code == status

    signing_in(work)


def test_an_unknown_sign_in_and_a_refusal_of_the_provider_lead_back_with_the_reason():
    async def work(_provider, served) -> None:
        back = await served.client.get("/v1/signin/callback", params={"code": "granted", "state": "made up"})
        assert fragment(back.headers["location"]) == {"signin_error": "IDENTITY_EXPIRED"}
        back = await served.client.get("/v1/signin/callback", params={"error": "access_denied"})
        assert fragment(back.headers["location"]) == {"signin_error": "IDENTITY_REQUIRED"}
        assert (await served.client.get("/v1/signin/start")).status_code == 400
        assert (await served.client.get("/v1/signin/odd")).status_code == 404

    signing_in(work)


def test_a_sign_in_and_its_code_end_in_the_very_millisecond_and_another_issuer_is_not_believed():
    async def work(provider) -> None:
        now_ms = time.time_ns() // NS_PER_MS
        sign_ins = SignIns(Provider(issuer=provider.url, client_id="comity", default_role=Role.VIEWER))

        async def finished(after_ms: int) -> str:
            asked = parse_qs(urlsplit(await sign_ins.begin(BIND, now_ms)).query)
            provider.challenge, provider.nonce = asked["code_challenge"][0], asked["nonce"][0]
            return await sign_ins.finish(asked["state"][0], "granted", now_ms + after_ms)

        with pytest.raises(RefusedError, match="took too long"):
            await finished(BEGUN_MS_MAX)
        since = BEGUN_MS_MAX - 1
        codes = [await finished(since) for _ in range(2)]
        with pytest.raises(RefusedError, match="expired"):
            sign_ins.exchange(codes[0], SECRET, now_ms + since + CODE_MS_MAX)
        assert sign_ins.exchange(codes[1], SECRET, now_ms + since + CODE_MS_MAX - 1).user_id == "ann"
        other = SignIns(Provider(issuer=provider.url.replace("127.0.0.1", "localhost"), client_id="comity"))
        with pytest.raises(UnavailableError, match="speaks for another issuer") as raised:
            await other.begin(BIND, now_ms)
        assert not raised.value.retryable

    asking(work)


async def test_a_token_that_cannot_be_read_and_a_sign_in_that_too_many_came_after_are_refused():
    sign_ins = SignIns(Provider(issuer="https://login.example", client_id="comity"))
    for token in ("", "x", "a.b.c", "\ud800", "." * 1_000):
        with pytest.raises(RefusedError, match="the provider's token cannot be read") as caught:
            await sign_ins.user_of(token, 0)
        assert caught.value.code == "IDENTITY_FORGED"
    pending: dict[str, int] = {}
    for number in range(PENDING_MAX + 1):
        _keep(pending, str(number), number)
    assert list(pending.values()) == list(range(1, PENDING_MAX + 1))


@pytest.mark.parametrize(
    ("issuer", "is_safe"),
    [
        ("https://login.example", True),
        ("http://127.0.0.1:80", True),
        ("http://localhost", True),
        ("http://[::1]", True),
        ("http://login.example", False),
        ("http://127.0.0.1.example", False),
        ("ftp://localhost", False),
        ("", False),
    ],
)
def test_a_provider_must_be_reached_safely(issuer, is_safe):
    with contextlib.nullcontext() if is_safe else pytest.raises(CallerError, match="it must be https"):
        SignIns(Provider(issuer=issuer, client_id="comity"))


@pytest.mark.parametrize("name", ["authorization_endpoint", "token_endpoint", "jwks_uri"])
def test_every_address_that_a_provider_names_must_be_reached_safely(name):
    async def work(provider) -> None:
        provider.metadata = {name: "http://login.example/x"}
        sign_ins = SignIns(Provider(issuer=provider.url, client_id="comity"))
        with pytest.raises(CallerError, match="it must be https"):
            await sign_ins.begin(BIND, 0)
        provider.metadata = {name: f"{provider.url}/x?tenant=acme"}
        assert ("?tenant=acme&" in await sign_ins.begin(BIND, 0)) is (name == "authorization_endpoint")
        await sign_ins.begin(BIND, 0)
        assert provider.looks == ["metadata", "metadata"]  # what was good is kept

    asking(work)


def test_the_keys_of_a_provider_are_asked_for_when_they_are_old_or_an_unknown_one_is_shown():
    async def work(provider) -> None:
        sign_ins = SignIns(Provider(issuer=provider.url, client_id="comity", default_role=Role.VIEWER))

        async def looks(kid: str, now_ms: int) -> int:
            provider.kid = kid
            with contextlib.nullcontext() if kid == "k1" else pytest.raises(RefusedError, match="has no such key"):
                await sign_ins.user_of(provider.id_token(), now_ms)
            return provider.looks.count("keys")

        first_ms, second_ms = 2 * KEYS_MS_MAX, 3 * KEYS_MS_MAX + 1
        assert [await looks("k1", at_ms) for at_ms in (first_ms, first_ms, second_ms - 1, second_ms)] == [1, 1, 1, 2]
        spaced = [(kid, second_ms + after_ms) for after_ms in (0, UNKNOWN_KEY_MS, UNKNOWN_KEY_MS + 1) for kid in ("k2", "k1")]
        assert [await looks(kid, at_ms) for kid, at_ms in spaced] == [2, 2, 2, 2, 3, 3]

    asking(work)


def test_keys_that_sign_are_taken_each_with_its_one_algorithm_and_others_are_passed_over():
    rsa_public = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(rsa_key("its own").public_key()))
    p256 = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP256R1()).public_key()))
    p384 = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(ec.generate_private_key(ec.SECP384R1()).public_key()))
    okp = json.loads(jwt.algorithms.OKPAlgorithm.to_jwk(ed25519.Ed25519PrivateKey.generate().public_key()))
    keys = [
        {"kty": "oct", "k": "AAAA", "kid": "symmetric"},
        rsa_public | {"kid": "for encryption", "use": "enc"},
        rsa_public | {"kid": "of another algorithm", "alg": "PS256"},
        rsa_public | {"kid": "of another kind", "alg": "EdDSA"},
        rsa_public | {"kid": "with a curve", "crv": "P-256"},
        rsa_public | {"kid": "rsa", "alg": "RS256", "use": "sig"},
        p256 | {"kid": "p256"},
        p384 | {"kid": "p384"},
        okp | {"kid": "okp", "alg": "EdDSA"},
    ]
    found = {kid: algorithm for kid, (_, algorithm) in _keys_of({"keys": keys}).items()}
    assert found == {"with a curve": "RS256", "rsa": "RS256", "p256": "ES256", "p384": "ES384", "okp": "EdDSA"}
    assert [_keys_of(document) for document in ({}, [], None, "keys")] == [{}] * 4


def test_the_settings_of_a_provider_are_read_or_refused_with_what_is_wrong():
    told = provider_of({"issuer": "https://login.example", "client_id": "comity"})
    assert (told.issuer, told.client_id) == ("https://login.example", "comity")
    with pytest.raises(CallerError, match="client_id"):
        provider_of({"issuer": "https://login.example"})


@pytest.mark.parametrize(
    ("status", "text"), [(404, "<html>"), (500, "{}"), (200, "<html>"), (200, f'"<html>{"x" * ANSWER_BYTES_MAX}"')]
)
def test_a_provider_that_answers_no_short_json_cannot_be_asked(status, text):
    async def go() -> None:
        async def answer(request: web.Request) -> web.Response:
            return web.Response(
                text=json.dumps(dict(request.query)) if request.query else text, status=200 if request.query else status
            )

        application = web.Application()
        application.router.add_get("/.well-known/openid-configuration", answer)
        runner = web.AppRunner(application)
        await runner.setup()
        try:
            site = web.TCPSite(runner, "127.0.0.1", 0)
            await site.start()
            url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}"
            assert await asyncio.to_thread(_ask, f"{url}/.well-known/openid-configuration?v=2") == {"v": "2"}
            with pytest.raises(UnavailableError) as raised:
                await asyncio.to_thread(_ask, f"{url}/.well-known/openid-configuration")
            assert raised.value.code == "TARGET_TEMPORARY_FAILURE"
            assert "<html>" not in str(raised.value)
        finally:
            await runner.cleanup()

    asyncio.run(go())
