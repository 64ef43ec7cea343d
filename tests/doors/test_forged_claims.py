"""What a document claims about where it comes from is compared with where it came from, claim by claim."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from comity import Agent
from comity.core.agent.registry import Registry
from comity.core.call.limits import Limits
from comity.core.call.outside import Outside
from comity.core.envelope.envelope import Request
from comity.dialects.delegation import UNKNOWN_ANCESTOR
from comity.doors.documents import Sender, _forged
from comity.runtime.call.draft import Identity

REGISTRY = Registry([Agent("ORC", aliases=["orchestrator"]), Agent("CST"), Agent("ANL")])
ANN = Identity("ann", "acme", "s")
BY_AGENT = Sender(ANN, outside=Outside(("ORC::far", "CST::far"), Limits(), 9_000))
BY_USER = Sender(ANN)
SAID = Request("r", "ANL", "NPV", "ann", Limits(), 9_000, tenant_id="acme")


def is_forged(sender: Sender, **claims: Any) -> bool:
    refusal = _forged(replace(SAID, **claims), sender, REGISTRY)
    assert refusal is None or refusal.code == "IDENTITY_MISMATCH"
    return refusal is not None


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"user_id": ""},
        {"tenant_id": "default"},
        {"source": "CST"},
        {"chain": ("CST",), "source": "CST"},  # shorter than the truth
        {"chain": ("ORC", "CST")},
        {"chain": ("orchestrator", "CST")},
        {"chain": (UNKNOWN_ANCESTOR, "CST")},
        {"chain": (UNKNOWN_ANCESTOR, UNKNOWN_ANCESTOR)},
    ],
)
def test_a_document_may_say_less_than_the_truth_and_call_agents_by_their_names(claims):
    assert not is_forged(BY_AGENT, **claims)


@pytest.mark.parametrize(
    "claims",
    [
        {"user_id": "bob"},
        {"tenant_id": "evil"},
        {"source": "ORC"},
        {"source": "nobody"},
        {"chain": ("ANL", "CST")},
        {"chain": ("CST", "ORC")},
        {"chain": ("ORC", "ORC", "CST")},
        {"chain": (UNKNOWN_ANCESTOR, UNKNOWN_ANCESTOR, "CST")},
        {"chain": (UNKNOWN_ANCESTOR, "ANL")},
        {"parent_id": "p"},
    ],
)
def test_a_document_that_claims_another_origin_is_refused(claims):
    assert is_forged(BY_AGENT, **claims)


def test_a_users_document_comes_from_no_agent_and_no_call():
    assert not is_forged(BY_USER)
    for claims in ({"source": "CST"}, {"chain": ("CST",)}, {"chain": (UNKNOWN_ANCESTOR,)}, {"parent_id": "p"}):
        assert is_forged(BY_USER, **claims)
