"""`comity token` and `comity keys`: issued tokens are good, revoked ones are not, and trust goes as far as it was given."""

from __future__ import annotations

import json


def test_a_token_is_good_until_it_is_revoked(comity):
    token = comity("token", "issue", "--user", "ann", "--role", "admin").out.strip()
    seen = comity("token", "inspect", token, "--json")
    assert (seen.code, json.loads(seen.out)["claims"]["sub"]) == (0, "user:ann")
    assert comity("token", "revoke", token).code == 0
    seen = comity("token", "inspect", token, "--json")
    assert (seen.code, json.loads(seen.out)["problem"].partition(":")[0]) == (1, "IDENTITY_REVOKED")


def test_an_agents_token_names_its_user_and_has_no_roles(comity):
    token = comity("token", "issue", "--user", "ann", "--agent", "CST", "--scope", "call:ANL/*", "--request", "r1").out.strip()
    claims = json.loads(comity("token", "inspect", token, "--json").out)["claims"]
    assert (claims["sub"], claims["uid"], claims["scope"], claims["cty"]["req"]) == ("agent:CST", "ann", "call:ANL/*", "r1")
    assert comity("token", "issue", "--agent", "CST", "--role", "admin").code == 2


def test_rotation_can_end_the_tokens_of_the_previous_key(comity):
    token = comity("token", "issue").out.strip()
    assert comity("keys", "rotate").code == 0
    assert comity("token", "inspect", token).code == 0
    other = comity("token", "issue").out.strip()
    assert comity("keys", "rotate", "--revoke-previous").code == 0
    assert (comity("token", "inspect", token).code, comity("token", "inspect", other).code) == (0, 1)
    states = [key["revoked"] for key in json.loads(comity("keys", "list", "--json").out)["keys"]]
    assert states == [False, True, False]


def test_another_nodes_tokens_are_good_once_it_is_trusted(comity, tmp_path):
    comity("keys", "name", "there", "--keys", "there.keys")
    comity("keys", "name", "here")
    (tmp_path / "there.json").write_text(comity("keys", "jwks", "--keys", "there.keys").out)
    options = ["--agent", "CST", "--audience", "here", "--scope", "call:ANL/*", "--keys", "there.keys"]
    token = comity("token", "issue", *options).out.strip()
    assert comity("token", "inspect", token).code == 1
    assert comity("keys", "trust", "there", "there.json", "--scope", "call:ANL/*").code == 0
    assert comity("token", "inspect", token).code == 0
    assert comity("keys", "distrust", "there").code == 0
    assert comity("token", "inspect", token).code == 1
    assert comity("keys", "distrust", "there").code == 4


def test_what_is_no_token_is_wrong_usage(comity):
    assert comity("token", "inspect", "a.b.c").code == 2
