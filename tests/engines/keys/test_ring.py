"""A key ring: which keys sign and verify until when, which nodes are trusted with what, and what is withdrawn."""

from __future__ import annotations

import stat
from typing import Any

import pytest

from comity.core.access.claims import AT
from comity.engines.keys import ring as rings
from comity.engines.keys.ring import KEYS_MAX, LOOK_MS, USER_LIFE_S_MAX, KeyRing, Revoked, decode_bytes, keys_folder, thumbprint
from comity.errors import CallerError, UnavailableError

NOW = 1_800_000_000_000
LIFE_MS = USER_LIFE_S_MAX * 1000
LONG, SECOND, SHORT, T, THIRD, U = "long", "second", "short", "t", "third", "u"  # token ids


@pytest.fixture(params=["memory", "folder"])
def ring(request, tmp_path) -> KeyRing:
    return KeyRing(tmp_path / "keys" if request.param == "folder" else None, issuer="a", now_ms=NOW)


@pytest.mark.parametrize("name", ["x@y", f"x{AT}y", "x\n", "x" * 1_000])
def test_a_node_has_a_name_that_can_stand_in_a_token(name, ring):
    for make in (lambda: KeyRing(None, issuer=name, now_ms=NOW), lambda: ring.rename(name, NOW)):
        with pytest.raises(CallerError, match="cannot be the name of a node"):
            make()
    assert ring.issuer == "a"
    assert KeyRing(None, now_ms=NOW).issuer.startswith("node-")


def test_a_node_that_is_renamed_keeps_its_keys_and_whom_it_trusts(ring):
    other = KeyRing(None, issuer="b", now_ms=NOW)
    ring.trust("b", other.jwks(), tenants=("t",), now_ms=NOW)
    before, generation = ring.ring, ring.generation
    ring.rename("c", NOW)
    assert (ring.issuer, ring.ring.keys, ring.ring.peers) == ("c", before.keys, before.peers)
    assert ring.generation > generation
    assert ring.find("a", ring.signer.kid, NOW) is None


def test_a_key_that_was_replaced_verifies_until_the_last_token_it_signed_has_expired(ring):
    first = ring.signer
    assert ring.find("a", first.kid, NOW) == (first, None)
    second = ring.rotate(NOW + 1)
    assert (ring.signer, second.created_at) == (second, NOW + 1)
    for at, is_good in ((NOW + 1, True), (NOW + 1 + LIFE_MS, True), (NOW + 2 + LIFE_MS, False)):
        found = ring.find("a", first.kid, at)
        assert (found is not None) is is_good
    assert ring.find("a", second.kid, NOW + 9 * LIFE_MS) == (second, None)
    assert ring.find("a", "none", NOW) is None
    assert ring.find("nobody", first.kid, NOW) is None
    ring.rotate(NOW + 1 + LIFE_MS)
    assert first.kid in {key.kid for key in ring.ring.keys}
    ring.rotate(NOW + 2 + LIFE_MS)
    assert first.kid not in {key.kid for key in ring.ring.keys}


def test_a_ring_has_a_bounded_number_of_keys_of_which_the_newest_signs(ring):
    made = [ring.rotate(NOW + number) for number in range(KEYS_MAX + 2)]
    assert [key.kid for key in ring.ring.keys] == [key.kid for key in made[-KEYS_MAX:]]
    assert [key.retired_at is None for key in ring.ring.keys] == [False] * (KEYS_MAX - 1) + [True]


def test_another_node_is_trusted_with_its_own_keys_for_named_tenants_until_it_is_not(ring):
    other, third = (KeyRing(None, issuer=name, now_ms=NOW) for name in "bc")
    for issuer, tenants in (("a", ("t",)), ("b", ()), ("", ("t",))):
        with pytest.raises(CallerError):
            ring.trust(issuer, other.jwks(), tenants=tenants, now_ms=NOW)
    assert ring.ring.peers == ()
    peer = ring.trust("b", other.jwks(), tenants=("t",), now_ms=NOW)
    ring.trust("c", third.jwks(), tenants=("t",), now_ms=NOW)
    kid = other.signer.kid
    assert ring.find("b", kid, NOW) == (peer.keys[0], peer)
    assert (ring.find("c", kid, NOW), ring.find("b", "none", NOW), ring.find("a", kid, NOW)) == (None, None, None)
    again = ring.trust("b", other.jwks(), tenants=("t", "u"), scope="call:X/*", now_ms=NOW)
    assert [one.issuer for one in ring.ring.peers] == ["c", "b"]
    assert (ring.ring.peers[1], again.tenants, again.scope != peer.scope) == (again, ("t", "u"), True)
    assert [ring.distrust("b", NOW), ring.distrust("b", NOW)] == [True, False]
    assert [one.issuer for one in ring.ring.peers] == ["c"]
    assert ring.find("b", kid, NOW) is None


def key_of(**more: Any) -> dict[str, Any]:
    return KeyRing(None, issuer="b", now_ms=NOW).jwks()["keys"][0] | more


@pytest.mark.parametrize(
    "jwks",
    [
        None,
        {},
        {"keys": []},
        {"keys": [key_of()] * (KEYS_MAX + 1)},
        {"keys": ["x"]},
        {"keys": [key_of(kty="RSA")]},
        {"keys": [key_of(crv="P-256")]},
        {"keys": [key_of(alg="none")]},
        {"keys": [key_of(d="secret")]},
        {"keys": [key_of(x=5)]},
        {"keys": [key_of(x="AAAA")]},
        {"keys": [key_of(), key_of(kty="RSA")]},
    ],
)
def test_only_documents_of_public_keys_of_the_one_kind_are_trusted(ring, jwks):
    with pytest.raises(CallerError):
        ring.trust("b", jwks, tenants=("t",), now_ms=NOW)
    assert ring.ring.peers == ()


def test_as_many_keys_as_a_ring_may_have_are_read_under_their_own_ids(ring):
    keys = [key_of(kid="whatever") for _ in range(KEYS_MAX)]
    del keys[0]["alg"]
    peer = ring.trust("b", {"keys": keys}, tenants=("t",), now_ms=NOW)
    assert [key.kid for key in peer.keys] == [thumbprint(one["x"]) for one in keys]


def test_a_token_and_a_key_are_withdrawn_for_as_long_as_they_could_be_used(ring, monkeypatch):
    signer, generation = ring.signer, ring.generation
    with pytest.raises(CallerError, match="rotate the keys first"):
        ring.revoke(kid=signer.kid, now_ms=NOW)
    ring.revoke(token_id=SHORT, expires_s=NOW // 1000 + 1, now_ms=NOW)
    ring.revoke(token_id=LONG, now_ms=NOW)
    assert ring.revoked.tokens == {"short": NOW // 1000 + 1, "long": NOW // 1000 + USER_LIFE_S_MAX}
    assert (ring.is_revoked("short", "x"), ring.is_revoked("other", signer.kid)) == (True, False)
    ring.rotate(NOW)
    for _ in range(2):
        ring.revoke(kid=signer.kid, now_ms=NOW + 1_000)
    assert ring.revoked == Revoked({"long": NOW // 1000 + USER_LIFE_S_MAX}, (signer.kid,))
    assert ring.is_revoked("other", signer.kid)
    assert [one["kid"] for one in ring.jwks()["keys"]] == [ring.signer.kid]
    assert ring.generation > generation
    monkeypatch.setattr(rings, "REVOKED_MAX", 2)
    ring.revoke(token_id=SECOND, now_ms=NOW)
    with pytest.raises(UnavailableError, match="2 tokens are revoked"):
        ring.revoke(token_id=THIRD, now_ms=NOW)
    assert sorted(ring.revoked.tokens) == ["long", "second"]


def test_public_keys_are_all_that_a_ring_publishes(ring):
    (one,) = ring.jwks()["keys"]
    assert one == {"kty": "OKP", "crv": "Ed25519", "use": "sig", "alg": "EdDSA", "kid": ring.signer.kid, "x": ring.signer.x}


def test_what_another_process_changed_is_seen_after_a_while_and_before_a_change(tmp_path):
    one, two = (KeyRing(tmp_path / "keys", issuer="a", now_ms=NOW) for _ in range(2))
    assert one.ring == two.ring
    generation = two.generation
    made = one.rotate(NOW)
    one.revoke(token_id=T, now_ms=NOW)
    two.look(NOW + LOOK_MS - 1)
    assert (two.signer.kid != made.kid, two.generation) == (True, generation)
    two.look(NOW + LOOK_MS)
    assert (two.signer.kid, two.is_revoked("t", ""), two.generation) == (made.kid, True, generation + 1)
    two.look(NOW + 2 * LOOK_MS)
    assert two.generation == generation + 1
    two.look(NOW)  # a clock that was set back
    other = KeyRing(None, issuer="b", now_ms=NOW)
    one.trust("b", other.jwks(), tenants=("t",), now_ms=NOW)
    two.revoke(token_id=U, now_ms=NOW + 2 * LOOK_MS)
    assert (len(two.ring.peers), sorted(two.revoked.tokens)) == (1, ["t", "u"])
    assert KeyRing(tmp_path / "keys", now_ms=NOW).ring == two.ring


def test_keys_are_read_by_their_user_alone_and_broken_ones_by_nobody(tmp_path):
    folder = tmp_path / "deep" / "keys"
    KeyRing(folder, now_ms=NOW)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "keys.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["keys.json", "lock"]
    (folder / "keys.json").write_text("{")
    with pytest.raises(UnavailableError, match="cannot be read"):
        KeyRing(folder, now_ms=NOW)


def test_the_keys_of_a_store_are_beside_it_and_bytes_are_spelled_in_one_way():
    assert str(keys_folder("/x/store.db")) == "/x/store.db.keys"
    assert [decode_bytes(text) for text in ("AAE", "_-8", "AAF", "A", "+/8", "AAE=", "\x00")] == [
        b"\0\1",
        b"\xff\xef",
        *[b""] * 5,
    ]
