"""Envelopes as they travel, and how one looks at what became of them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from comity.core.call.limits import Limits
from comity.core.envelope.codec import decode_request
from comity.core.envelope.envelope import Reply, Request, encode
from comity.errors import CallerError

REQUEST = Request("r1", "ANL", "ANL_NPV", "u1", Limits(), 2_000, body=Raw(b'{"rate":0.1}'))
REPLY = Reply.success({"npv": 1.5}, request_id="r1")


def sent(envelope: Request | Reply, **changed: Any) -> bytes:
    """The envelope as it travels, with fields changed or, given as None, taken away."""
    document = json.loads(encode(envelope)) | changed
    return json.dumps({name: value for name, value in document.items() if value is not None}).encode()


def put(value: bytes, *, envelope: Request | Reply, field: str) -> bytes:
    """An envelope with raw bytes as one field, as only somebody who does not use our encoder can send it."""
    return sent(envelope, **{field: "HERE"}).replace(b'"HERE"', value)


def refused(raw: bytes, decode=decode_request) -> CallerError:
    with pytest.raises(CallerError) as caught:
        decode(raw)
    return caught.value


def paths(raw: bytes, decode=decode_request, *, code: str = "ENVELOPE_MALFORMED") -> list[str]:
    error = refused(raw, decode)
    assert error.code == code
    assert error.facts["problems"]
    return [problem.path for problem in error.facts["problems"]]
