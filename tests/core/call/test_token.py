"""Identity tokens: only what this node signed, unchanged and in time, is believed."""

from __future__ import annotations

import base64
import hmac
import string

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comity.core.call.token import TOKEN_CHARS_MAX, Claims, sign, verify
from comity.errors import RefusedError

KEY = b"k" * 32
CLAIMS = Claims("ANL", "r.1", "ann", "default", "s", ("ORC",), 1_000)


def refused(token, *, now_ms=0) -> str:
    with pytest.raises(RefusedError) as caught:
        verify(token, KEY, now_ms=now_ms)
    return caught.value.code


def test_what_was_signed_is_what_is_read():
    assert verify(sign(CLAIMS, KEY), KEY, now_ms=999) == CLAIMS


def test_a_token_is_good_until_it_expires_and_not_a_moment_longer():
    assert refused(sign(CLAIMS, KEY), now_ms=1_000) == "IDENTITY_EXPIRED"


def test_what_the_key_signed_for_another_purpose_is_no_token():
    body = sign(CLAIMS, KEY).partition(".")[0]
    raw = base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
    mac = base64.urlsafe_b64encode(hmac.digest(KEY, raw, "sha256")).rstrip(b"=").decode()
    assert refused(f"{body}.{mac}") == "IDENTITY_FORGED"


def test_a_token_has_one_spelling():
    token = sign(CLAIMS, KEY)
    letters = string.ascii_letters + string.digits + "-_"
    others = [token[:-1] + last for last in letters if last != token[-1]]
    signed = base64.urlsafe_b64decode(token.partition(".")[2] + "=")
    same = [one for one in others if base64.urlsafe_b64decode(one.partition(".")[2] + "=") == signed]
    assert len(same) == 3, "four letters end the same bytes"
    for spelling in (*same, token + "=", token.replace("-", "+").replace("_", "/") + "="):
        assert refused(spelling) == "IDENTITY_FORGED"


def test_another_key_signs_nothing_for_this_node():
    assert refused(sign(CLAIMS, b"x" * 32)) == "IDENTITY_FORGED"


def test_no_single_character_can_be_changed_added_or_left_out():
    token = sign(CLAIMS, KEY)
    for index, character in enumerate(token):
        for other in ("A" if character != "A" else "B", "", character * 2, "=", "\n"):
            changed = token[:index] + other + token[index + 1 :]
            if changed != token:
                assert refused(changed) == "IDENTITY_FORGED"


@given(st.text() | st.none() | st.integers())
def test_nothing_that_was_not_signed_is_believed_and_nothing_else_is_raised(token):
    assert refused(token) == "IDENTITY_FORGED"


def test_a_token_of_the_greatest_length_is_read_and_a_longer_one_is_not():
    long = msgspec.structs.replace(CLAIMS, user_id="u" * 2_800)
    while len(sign(long, KEY)) < TOKEN_CHARS_MAX:
        long = msgspec.structs.replace(long, user_id=f"{long.user_id}u")
    assert len(sign(long, KEY)) == TOKEN_CHARS_MAX
    assert verify(sign(long, KEY), KEY, now_ms=0) == long
    assert refused(sign(msgspec.structs.replace(long, user_id=f"{long.user_id}u"), KEY)) == "IDENTITY_FORGED"
