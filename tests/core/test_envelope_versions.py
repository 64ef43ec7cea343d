"""Envelopes written by earlier versions are still read, and mean what they meant."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from comity.core.envelope import VERSION, VERSIONS_ACCEPTED, decode_reply, decode_request, negotiate

STORED = Path(__file__).parent / "envelopes"


def test_a_node_reads_its_own_version_and_the_two_before():
    assert VERSIONS_ACCEPTED == (VERSION, "0.9", "0.8")


@pytest.mark.parametrize("version", VERSIONS_ACCEPTED)
def test_a_stored_request_of_every_accepted_version_reads_the_same(version):
    request = decode_request((STORED / f"request-{version}.json").read_bytes())
    current = decode_request((STORED / "request-1.0.json").read_bytes())
    assert request.inputs == current.inputs
    assert replace(request, body=current.body) == current
    assert (request.version, request.chain, request.deadline_at) == (VERSION, ("ORC", "CST"), 1737210637000)


@pytest.mark.parametrize("version", VERSIONS_ACCEPTED)
def test_a_stored_reply_of_every_accepted_version_reads_the_same(version):
    reply = decode_reply((STORED / f"reply-{version}.json").read_bytes())
    assert reply == decode_reply((STORED / "reply-1.0.json").read_bytes())
    assert (reply.confidence, reply.version) == (0.7, VERSION)


def test_two_sides_agree_on_the_newest_version_both_speak():
    assert negotiate(["0.7", "0.8", "0.9"]) == "0.9"
    assert negotiate(["1.0", "2.0"]) == "1.0"
    assert negotiate(["2.0"]) is None
    assert negotiate([]) is None
