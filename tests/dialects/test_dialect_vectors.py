"""Every example of the protocols is understood, and written again as it stands there."""

from __future__ import annotations

import json

import pytest
from dialect_vectors import ROOT, names

from comity.dialects import DIALECTS, call_agent, delegation, kdap_routing

NOW_MS = 1_760_000_000_000
BESIDE = {"user_id": "u-1", "request_id": "r-1", "capability": "message"}


def written_again(path):
    """Read a vector and write what was understood."""
    dialect, kind, text = DIALECTS[path.parent.name], path.stem.partition("_")[0], path.read_text(encoding="utf-8")
    match kind:
        case "request":
            beside = {name: value for name, value in BESIDE.items() if name in dialect.asks}
            return dialect.encode_request(dialect.decode_request(text, now_ms=NOW_MS, **beside), now_ms=NOW_MS)
        case "reply":
            return dialect.encode_reply(dialect.decode_reply(text))
        case "handoff":
            return kdap_routing.encode_handoff_context(kdap_routing.decode_handoff_context(text))
        case "intent":
            return kdap_routing.encode_intent(kdap_routing.decode_intent(text))
        case "context":
            request = DIALECTS["call_agent"].decode_request(
                {"agent_id": "C", "message": "x"}, now_ms=NOW_MS, call_context=json.loads(text), **BESIDE
            )
            return call_agent.encode_call_context(request)
        case "headers":
            request = delegation.decode_request((path.parent / "request_simple.json").read_bytes(), now_ms=NOW_MS)
            return delegation.encode_headers(request)
        case "tool":
            return call_agent.TOOL


DESCRIBED = ("call_agent/tool.json",)  # its descriptions are prose and ours are our own; see test_call_agent


@pytest.mark.parametrize("name", [name for name in names("*/*") if name not in DESCRIBED])
def test_an_example_of_a_seed_is_written_as_it_was_read(name):
    path = ROOT / name
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    # Compared as text, since to Python 1 is 1.0 and True.
    assert json.dumps(written_again(path), sort_keys=True) == json.dumps(expected, sort_keys=True)


def test_every_dialect_and_every_kind_of_document_has_examples():
    kinds = {(path.split("/")[0], path.split("/")[1].partition("_")[0].removesuffix(".json")) for path in names("*/*")}
    both = {(dialect.name, kind) for dialect in DIALECTS.values() for kind in ("request", "reply")} - {("sacp", "request")}
    others = {"kdap": ("handoff", "intent"), "call_agent": ("context", "tool"), "delegation": ("headers",)}
    assert kinds == both | {(dialect, kind) for dialect, named in others.items() for kind in named}
