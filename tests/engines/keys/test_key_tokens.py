"""Tokens and keys: what is forged, old, early, foreign, revoked or used before is refused."""

from __future__ import annotations

import base64
import json
import stat

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from comity.core.access import Left, Role, Standing
from comity.core.access.claims import AGENT_LIFE_S_MAX, USER_LIFE_S_MAX, encode
from comity.engines.keys import KeyRing, Tokens, UsedTokens
from comity.engines.keys import tokens as tokens_module
from comity.engines.keys import used as used_module
from comity.engines.keys.ring import KEYS_MAX, LOOK_MS, decode_bytes
from comity.errors import CallerError, RefusedError

NOW = 1_800_000_000_000
LEFT = Left(deadline=NOW + 30_000, calls=5, depth=2, fan_out=3)


def make(folder=None, issuer="n1"):
    return Tokens(KeyRing(folder, issuer=issuer, now_ms=NOW))


def agent_token(tokens, *, audience="n1", scope="call:ANL/*", req="", tenant_id="default"):
    standing = Standing(chain=(f"CST::{tokens.ring.issuer}",), left=LEFT, req=req)
    return tokens.for_agent(
        "CST", audience=audience, user_id="ann", standing=standing, scope=scope, now_ms=NOW, tenant_id=tenant_id
    )


def code_of(tokens, token, *, now_ms=NOW) -> str:
    with pytest.raises(RefusedError) as caught:
        tokens.verify(token, now_ms=now_ms)
    return caught.value.code


def test_what_was_signed_is_what_is_believed_until_the_calls_deadline():
    tokens = make()
    claims = tokens.verify(agent_token(tokens), now_ms=NOW)
    assert (claims.name, claims.uid, claims.cty.chain) == ("CST", "ann", ("CST::n1",))
    assert claims.exp * 1000 == LEFT.deadline
    assert code_of(tokens, agent_token(tokens), now_ms=LEFT.deadline) == "IDENTITY_EXPIRED"


def test_a_token_is_refused_before_its_time_and_at_another_node():
    tokens, other = make(), make(issuer="n2")
    early = tokens.sign(replace(tokens.verify(agent_token(tokens), now_ms=NOW), nbf=NOW // 1000 + 60, exp=NOW // 1000 + 90))
    assert code_of(tokens, early) == "IDENTITY_NOT_YET_VALID"
    assert code_of(tokens, agent_token(tokens, audience="n2")) == "IDENTITY_WRONG_AUDIENCE"
    assert code_of(other, agent_token(tokens, audience="n2")) == "IDENTITY_FORGED"


def signed_by(key, claims, *, algorithm="EdDSA", kid="", typ="comity-agent+jwt", **more):
    return jwt.PyJWS().encode(encode(claims), key, algorithm=algorithm, headers={"kid": kid, "typ": typ, **more})


def test_no_other_key_or_algorithm_signs_for_this_node():
    tokens = make()
    good = tokens.verify(agent_token(tokens), now_ms=NOW)
    kid, public = tokens.ring.signer.kid, decode_bytes(tokens.ring.signer.x)
    pem = ed25519.Ed25519PublicKey.from_public_bytes(public).public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    stranger = ed25519.Ed25519PrivateKey.generate()
    forged = [
        signed_by(stranger, good, kid=kid),
        signed_by(stranger, good, kid="unknown"),
        signed_by(rsa.generate_private_key(65537, 2048), good, algorithm="RS256", kid=kid),
        signed_by(b"0" * 64, good, algorithm="HS256", kid=kid),
        _hmac_with_public_key(good, pem, kid),
        _unsigned(good, kid),
        signed_by(stranger, good, kid=kid, jwk={"kty": "OKP"}),
    ]
    assert {code_of(tokens, token) for token in forged} == {"IDENTITY_FORGED"}


def _part(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()


def _hmac_with_public_key(claims, pem: bytes, kid: str) -> str:
    """Return a token whose HMAC key is the public key, which confused verifiers accept."""
    import hashlib
    import hmac

    head = _part(json.dumps({"alg": "HS256", "typ": "comity-agent+jwt", "kid": kid}).encode()) + "." + _part(encode(claims))
    return f"{head}.{_part(hmac.new(pem, head.encode(), hashlib.sha256).digest())}"


def _unsigned(claims, kid: str) -> str:
    return f"{_part(json.dumps({'alg': 'none', 'typ': 'comity-agent+jwt', 'kid': kid}).encode())}.{_part(encode(claims))}."


def test_no_single_character_can_be_changed_or_left_out():
    tokens = make()
    token = agent_token(tokens)
    for index in range(0, len(token), 7):
        for other in ("A" if token[index] != "A" else "B", ""):
            assert code_of(tokens, token[:index] + other + token[index + 1 :]) == "IDENTITY_FORGED"


@given(st.text(max_size=100) | st.binary(max_size=80).map(lambda raw: f"{_part(raw)}.{_part(raw)}.{_part(raw)}"))
def test_no_text_raises_anything_but_a_refusal(text):
    assert code_of(TOKENS, text) == "IDENTITY_FORGED"


TOKENS = make()


def test_a_revocation_by_another_process_holds_within_a_second(tmp_path):
    tokens, elsewhere = make(tmp_path), KeyRing(tmp_path, now_ms=NOW)
    token, other = agent_token(tokens), agent_token(tokens)
    claims = tokens.verify(token, now_ms=NOW)
    elsewhere.revoke(token_id=claims.jti, expires_s=claims.exp, now_ms=NOW)
    assert code_of(tokens, token, now_ms=NOW + LOOK_MS) == "IDENTITY_REVOKED"
    assert LOOK_MS < 1_000
    tokens.verify(other, now_ms=NOW + LOOK_MS)


def test_rotation_keeps_old_tokens_good_and_revoking_a_key_ends_them(tmp_path):
    tokens = make(tmp_path)
    old, kid = tokens.for_user("ann", roles=(Role.VIEWER,), now_ms=NOW), tokens.ring.signer.kid
    with pytest.raises(CallerError, match="rotate"):
        tokens.ring.revoke(kid=kid, now_ms=NOW)
    assert tokens.ring.rotate(NOW).kid == tokens.ring.signer.kid != kid
    new = tokens.for_user("ann", roles=(Role.VIEWER,), now_ms=NOW)
    tokens.verify(old, now_ms=NOW)
    tokens.ring.revoke(kid=kid, now_ms=NOW)
    assert code_of(tokens, old) == "IDENTITY_REVOKED"
    tokens.verify(new, now_ms=NOW)
    assert [key["kid"] for key in tokens.ring.jwks()["keys"]] == [tokens.ring.signer.kid]


def test_a_key_verifies_nothing_once_the_longest_token_must_have_expired():
    tokens = make()
    token = tokens.sign(
        replace(tokens.verify(agent_token(tokens), now_ms=NOW), iat=NOW // 1000 + 43_200, nbf=0, exp=NOW // 1000 + 43_300)
    )
    tokens.ring.rotate(NOW)
    assert code_of(tokens, token, now_ms=NOW + 43_201_000) == "IDENTITY_FORGED"


def test_a_trusted_node_speaks_for_its_agents_within_its_scope_and_tenants():
    here, there = make(issuer="n1"), make(issuer="n2")
    assert code_of(here, agent_token(there)) == "IDENTITY_FORGED"
    here.ring.trust("n2", there.ring.jwks(), scope="call:ANL/*", tenants=("default",), now_ms=NOW)
    assert here.verify(agent_token(there), now_ms=NOW).iss == "n2"
    assert code_of(here, agent_token(there, scope="call:DOC/*")) == "RIGHTS_SCOPE_EXCEEDED"
    assert code_of(here, agent_token(there, tenant_id="acme")) == "IDENTITY_MISMATCH"
    assert code_of(here, there.for_user("ann", roles=(Role.ADMIN,), now_ms=NOW, audience="n1")) == "IDENTITY_FORGED"
    token = agent_token(there)
    here.verify(token, now_ms=NOW)
    assert here.ring.distrust("n2", NOW)
    assert code_of(here, token) == "IDENTITY_FORGED"


@pytest.mark.parametrize(
    "jwks", [{}, {"keys": []}, {"keys": [{"kty": "RSA"}]}, {"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA"}]}, []]
)
def test_only_public_ed25519_keys_can_be_trusted(jwks):
    with pytest.raises(CallerError):
        make().ring.trust("n2", jwks, tenants=("default",), now_ms=NOW)


def test_a_token_says_whom_it_is_for_in_each_of_its_claims():
    tokens, now_s = make(), NOW // 1000
    user = tokens.for_user("ann", roles=(Role.ADMIN,), now_ms=NOW, tenant_id="acme", scope="call:ANL/*", life_s=60)
    said = tokens.verify(user, now_ms=NOW)
    assert (said.iss, said.aud, said.sub, said.tid, said.scope, said.roles) == (
        "n1",
        "n1",
        "user:ann",
        "acme",
        "call:ANL/*",
        ("admin",),
    )
    assert (said.iat, said.nbf, said.exp) == (now_s, now_s, now_s + 60)
    long = tokens.verify(tokens.for_user("ann", roles=(), now_ms=NOW, life_s=USER_LIFE_S_MAX + 1), now_ms=NOW)
    assert long.exp == now_s + USER_LIFE_S_MAX
    assert code_of(tokens, tokens.for_user("ann", roles=(), now_ms=NOW, audience="n2")) == "IDENTITY_WRONG_AUDIENCE"

    def ends_s(left_ms: int) -> int:
        standing = Standing(chain=("CST::n1",), left=replace(LEFT, deadline=NOW + left_ms))
        token = tokens.for_agent(
            "CST", audience="n1", user_id="ann", standing=standing, scope="call:ANL/*", now_ms=NOW, tenant_id="acme",
            session_id="s", digest="d",
        )  # fmt: skip
        agent = tokens.verify(token, now_ms=NOW)
        assert (agent.sub, agent.uid, agent.tid, agent.sid, agent.dig) == ("agent:CST", "ann", "acme", "s", "d")
        assert (agent.iat, agent.nbf) == (now_s, now_s)
        return agent.exp - now_s

    assert [ends_s(left) for left in (1_000, 1_001, 2_000, AGENT_LIFE_S_MAX * 1_000 + 1)] == [1, 2, 2, AGENT_LIFE_S_MAX]


def test_each_field_of_a_key_that_is_trusted_is_looked_at():
    there = make(issuer="n2").ring.jwks()["keys"][0]
    x = {length: base64.urlsafe_b64encode(bytes(length)).rstrip(b"=").decode() for length in (31, 32, 33)}
    sound = [dict(there), {"kty": "OKP", "crv": "Ed25519", "x": x[32]}]
    wrong = [{"kty": "EC"}, {"crv": "X25519"}, {"alg": "ES256"}, {"d": x[32]}, {"x": x[31]}, {"x": x[33]}, {"x": 7}]

    def is_trusted(*keys) -> bool:
        try:
            make().ring.trust("n2", {"keys": list(keys)}, tenants=("default",), now_ms=NOW)
        except CallerError:
            return False
        return True

    assert [is_trusted(one) for one in sound] == [True, True]
    assert [is_trusted(there | one) for one in wrong] == [False] * len(wrong)
    assert (is_trusted(*[there] * KEYS_MAX), is_trusted(*[there] * (KEYS_MAX + 1))) == (True, False)


def test_key_files_are_for_their_owner_alone(tmp_path):
    make(tmp_path / "keys").ring.rotate(NOW)
    assert stat.S_IMODE((tmp_path / "keys").stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "keys" / "keys.json").stat().st_mode) == 0o600


def test_a_token_is_bound_to_its_first_request_also_for_other_processes(tmp_path):
    tokens = make(tmp_path)
    claims = tokens.verify(agent_token(tokens), now_ms=NOW)
    UsedTokens(tmp_path).bind(claims, "r1", now_ms=NOW)
    again = UsedTokens(tmp_path)
    again.bind(claims, "r1", now_ms=NOW)
    with pytest.raises(RefusedError) as caught:
        again.bind(claims, "r2", now_ms=NOW)
    assert caught.value.code == "IDENTITY_TOKEN_REUSED"
    assert stat.S_IMODE((tmp_path / "used.log").stat().st_mode) == 0o600
    with (tmp_path / "used.log").open("ab") as file:
        file.write(b'["n1","torn')
    other = tokens.verify(agent_token(tokens), now_ms=NOW)
    UsedTokens(tmp_path).bind(other, "r3", now_ms=NOW)
    with pytest.raises(RefusedError):
        UsedTokens(tmp_path).bind(other, "r4", now_ms=NOW)


def test_a_process_reads_the_list_of_used_tokens_again_after_another_has_cleared_it_of_old_ones(tmp_path, monkeypatch):
    monkeypatch.setattr(used_module, "FILE_BYTES_MAX", 0)
    tokens = make(tmp_path)
    old, older, new = (tokens.verify(agent_token(tokens), now_ms=NOW) for _ in range(3))
    new, later = replace(new, exp=old.exp + 60), old.exp * 1000
    one, other = UsedTokens(tmp_path), UsedTokens(tmp_path)
    for claims in (old, older):
        one.bind(claims, "r1", now_ms=NOW)
        other.bind(claims, "r1", now_ms=NOW)
    one.bind(new, "r2", now_ms=later)
    assert (tmp_path / "used.log").read_bytes().count(b'"n1"') == 1  # the old ones have expired
    with pytest.raises(RefusedError):
        other.bind(new, "r3", now_ms=later)


def test_a_file_of_used_tokens_that_was_compacted_is_read_from_its_beginning_also_where_it_is_as_long_as_before(
    tmp_path, monkeypatch
):
    """Read on from where the old file ended, a process did not see the tokens that had moved before that place."""
    tokens = make(tmp_path)
    held = [replace(tokens.verify(agent_token(tokens), now_ms=NOW), exp=NOW // 1000 + 60 - n) for n in range(4)]
    one, other = UsedTokens(tmp_path), UsedTokens(tmp_path)
    other.bind(held[0], "r0", now_ms=NOW)
    one.bind(held[1], "r0", now_ms=NOW)
    one.bind(held[2], "r0", now_ms=NOW)
    monkeypatch.setattr(used_module, "FILE_BYTES_MAX", 0)
    one.bind(held[3], "r0", now_ms=NOW)  # the last to come expires first, and so stands first now
    for claims in held:
        with pytest.raises(RefusedError):
            other.bind(claims, "r1", now_ms=NOW)
        other.bind(claims, "r0", now_ms=NOW)
    assert sorted(path.name for path in tmp_path.glob("used*")) == ["used.log"]


def test_a_token_that_names_its_request_serves_no_other():
    tokens, used = make(), UsedTokens(None)
    claims = tokens.verify(agent_token(tokens, req="r1"), now_ms=NOW)
    used.bind(claims, "r1", now_ms=NOW)
    with pytest.raises(RefusedError):
        used.bind(claims, "r2", now_ms=NOW)


@pytest.mark.parametrize(("expires_s", "kept_s"), [(0, USER_LIFE_S_MAX), (NOW // 1000 + 60, 60)])
def test_a_revoked_token_stays_revoked_as_long_as_it_could_be_good(expires_s, kept_s):
    """Dies where a token whose end is not told is revoked for no time: the next revocation would forget it."""
    ring, first, second, third = make().ring, "first", "second", "third"
    ring.revoke(token_id=first, expires_s=expires_s, now_ms=NOW)
    ring.revoke(token_id=second, now_ms=NOW + (kept_s - 1) * 1000)
    assert set(ring.revoked.tokens) == {first, second}
    ring.revoke(token_id=third, now_ms=NOW + kept_s * 1000)
    assert set(ring.revoked.tokens) == {second, third}


def test_a_token_that_no_node_would_read_is_not_signed():
    tokens = make()
    good = tokens.verify(agent_token(tokens), now_ms=NOW)
    with pytest.raises(RefusedError, match="longer") as caught:
        tokens.sign(replace(good, sid="s" * tokens_module.TOKEN_CHARS_MAX))
    assert caught.value.code == "RIGHTS_SCOPE_EXCEEDED"


def test_no_more_tokens_are_remembered_than_may_be(monkeypatch):
    monkeypatch.setattr(tokens_module, "VERIFIED_MAX", 3)
    tokens = make()
    for _ in range(8):
        assert tokens.verify(agent_token(tokens), now_ms=NOW).uid == "ann"
        assert 1 <= len(tokens._verified) <= 3


def test_a_token_is_three_parts_and_says_something():
    tokens = make()
    header, body, signature = agent_token(tokens).split(".")
    for token in (f"{header}..{signature}", f"{header}.{body}", f"{header}.{body}.{signature}.{signature}", header, ""):
        assert code_of(tokens, token) == "IDENTITY_FORGED"
