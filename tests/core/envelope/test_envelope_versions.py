"""Versions: this one and the two before it are read, each by its own words; any other is refused."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from envelope_bytes import REPLY, REQUEST, paths, put, refused, sent

from comity.core.envelope.codec import VERSIONS_ACCEPTED, decode_reply, decode_request
from comity.core.envelope.envelope import VERSION


def older(version: str, **changed: Any) -> bytes:
    """A request as that version writes it."""
    return sent(REQUEST, **({"version": version, "chain": None, "deadline_at": None, "deadline_ms": 2_000} | changed))


def test_this_version_and_the_two_before_it_are_accepted():
    assert VERSIONS_ACCEPTED == ("1.0", "0.9", "0.8")


def test_an_envelope_that_names_no_version_is_of_this_one():
    assert decode_request(sent(REQUEST)).version == VERSION
    assert decode_request(sent(REQUEST, version="1.0")).version == VERSION


@pytest.mark.parametrize("version", ["0.9", "0.8"])
def test_an_older_request_becomes_one_of_this_version(version):
    arrived = decode_request(older(version))
    assert (arrived.version, arrived.deadline_at, arrived.inputs) == (VERSION, 2_000, {"rate": 0.1})


def test_version_0_8_called_the_chain_call_chain_and_gave_confidence_in_percent():
    assert decode_request(older("0.8", call_chain=["ORC"])).chain == ("ORC",)
    assert decode_reply(sent(REPLY, version="0.8", confidence=85)).confidence == 0.85
    assert decode_reply(sent(REPLY, version="0.9", confidence=0.85)).confidence == 0.85
    assert paths(sent(REPLY, version="0.8", confidence=101), decode_reply) == ["$"]
    assert paths(sent(REPLY, version="0.8", confidence=True), decode_reply) == ["confidence"]


def test_the_words_of_an_older_version_are_unknown_to_a_newer():
    assert paths(sent(REQUEST, call_chain=["ORC"])) == ["call_chain"]
    assert paths(older("0.9", call_chain=["ORC"])) == ["call_chain"]
    assert paths(sent(REQUEST, deadline_ms=2_000)) == ["deadline_ms"]


def test_the_words_of_a_newer_version_are_unknown_to_an_older():
    assert paths(older("0.8", chain=["ORC"])) == ["chain"]
    assert paths(older("0.8", call_chain=["ORC"], chain=["EVIL"])) == ["chain"]
    assert paths(older("0.9", deadline_at=2_000)) == ["deadline_at"]
    assert set(paths(older("0.8", chain=["ORC"], deadline_at=2_000))) == {"chain", "deadline_at"}


@pytest.mark.parametrize(
    ("version", "wrong", "path"),
    [
        ("0.9", {"deadline_ms": "soon"}, "deadline_ms"),
        ("0.9", {"deadline_ms": None}, "deadline_ms"),
        ("0.8", {"call_chain": "ORC"}, "call_chain"),
        ("0.8", {"call_chain": ["ORC", 1]}, "call_chain[1]"),
        ("0.8", {"call_chain": ["ORC", "\n"]}, "call_chain[1]"),
        ("0.9", {"chain": ["\n"]}, "chain[0]"),
    ],
)
def test_a_problem_is_named_by_the_word_that_the_sender_wrote(version, wrong, path):
    assert paths(older(version, **wrong)) == [path]
    assert f": {path}: " in str(refused(older(version, **wrong)))


def test_a_reply_of_an_older_version_has_no_word_of_a_request():
    assert paths(sent(REPLY, version="0.9", deadline_ms=2_000), decode_reply) == ["deadline_ms"]


def test_an_older_envelope_is_checked_like_one_of_this_version():
    assert paths(older("0.9", extra=1)) == ["extra"]
    assert paths(older("0.8", user_id="")) == ["user_id"]
    assert paths(put(b'{"a":1e999}', envelope=msgspec.structs.replace(REQUEST, version="0.8"), field="inputs")) == ["inputs.a"]


@pytest.mark.parametrize("version", ["1.1", "2.0", "0.7", "", "1", "x" * 10_000, 1.0, 1, [], {"a": 1}, True])
@pytest.mark.parametrize(("envelope", "decode"), [(REQUEST, decode_request), (REPLY, decode_reply)])
def test_any_other_version_is_refused_as_unsupported(envelope, decode, version):
    raw = sent(envelope, version=version)
    assert paths(raw, decode, code="ENVELOPE_VERSION_UNSUPPORTED") == ["version"]
    assert len(str(refused(raw, decode))) < 200
