"""Keys and memories over HTTP: in which state a key is, and what a correction may say."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from comity.core.access.principal import Kind, Principal
from comity.engines.keys import KeyRing
from comity.errors import CallerError
from comity.server import keys, memory, web
from comity.server.auth import OPERATOR

NOW = 1_800_000_000_000
ANN = Principal(Kind.USER, "ann", "ann", "acme")


async def test_a_key_signs_or_is_retired_or_revoked_and_a_tenant_is_not_told_which_tokens_are_revoked():
    ring = KeyRing(None, now_ms=NOW)
    first = ring.signer.kid
    second = ring.rotate(NOW + 1).kid
    ring.rotate(NOW + 2)
    ring.revoke(kid=first, now_ms=NOW + 3)
    ring.revoke(token_id="t", expires_s=NOW // 1000 + 60, now_ms=NOW + 3)  # noqa: S106  an id
    signed = SimpleNamespace(tokens=SimpleNamespace(ring=ring))
    state = SimpleNamespace(auth=SimpleNamespace(signed=signed), now_ms=lambda: NOW + 4)
    shown = await keys.show(SimpleNamespace(state=state, principal=OPERATOR))
    assert {one.id: one.state for one in shown.keys} == {first: "revoked", second: "retired", ring.signer.kid: "signing"}
    assert shown.revoked == {"t": (NOW // 1000 + 60) * 1000}
    assert (await keys.show(SimpleNamespace(state=state, principal=ANN))).revoked == {}


@pytest.mark.parametrize("text", ["two\nlines", "a\x00b", "a\x1b[2J"])
async def test_a_correction_is_one_line_of_printable_text(make_node, text):
    async with make_node() as node:
        ask = SimpleNamespace(state=SimpleNamespace(node=node), principal=ANN, params={"user_id": "ann", "fact_id": "m1"})
        with pytest.raises(CallerError, match="printable"):
            await memory.correct(SimpleNamespace(**vars(ask), body=SimpleNamespace(text=text)))
        with pytest.raises(CallerError, match="there is no fact 'm1'"):
            await memory.correct(SimpleNamespace(**vars(ask), body=SimpleNamespace(text="one line")))
        with pytest.raises(CallerError, match="there is no fact 'm1'"):
            await memory.forget(ask)


@pytest.mark.parametrize(("wait_ms", "seconds"), [(None, 1), (0, 1), (-5_000, 1), (1, 1), (1_000, 1), (1_001, 2), (61_000, 61)])
def test_a_client_is_told_in_whole_seconds_when_to_ask_again(wait_ms, seconds):
    assert web.retry_after(wait_ms) == (b"retry-after", b"%d" % seconds)
