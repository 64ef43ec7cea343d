"""How many, how long and how much the HTTP API takes, and what it assumes where a client says nothing: clients rely on both."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from typing import Any

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.inspect import type_info

from comity import server

_BOUNDS = ("ge", "gt", "le", "lt", "min_length", "max_length")


def bounds_of(module: str) -> dict[str, Any]:
    """Return the bounds and the default of every bounded field of what a module of the server reads."""
    found: dict[str, Any] = {}
    at = importlib.import_module(f"comity.server.{module}")
    for name, made in inspect.getmembers(at, inspect.isclass):
        if issubclass(made, Struct) and made.__module__ == at.__name__ and made is not Struct:
            for field in type_info(made).fields:
                default = field.default if field.default is not NODEFAULT else None
                parts = [field.type, *getattr(field.type, "types", ()), getattr(field.type, "item_type", None)]
                told = [
                    tuple(getattr(one, bound) for bound in _BOUNDS if getattr(one, bound, None) is not None) for one in parts
                ]
                if any(told) or (type(default) in (int, float) and default):
                    found[f"{name}.{field.name}"] = (*(one for one in told if one), default)
    return found


TABLE: dict[str, dict[str, Any]] = {
    "approvals": {"ApprovalsQuery.limit": ((1, 1000), 100), "DecideBody.reason": ((1000,), "")},
    "audit": {"AuditQuery.limit": ((1, 1000), 100)},
    "guidance": {"AnswerBody.confidence": ((0.0, 1.0), 1.0)},
    "handoffs": {"HandoffsQuery.limit": ((1, 1000), 100)},
    "insights": {"InsightQuery.limit": ((1, 500), 100)},
    "keys": {"RevokeBody.token": ((1, 8192), None)},
    "live": {"EventsQuery.after": ((0,), 0)},
    "memory": {"CorrectBody.text": ((1, 2000), None)},
    "receivers": {
        "AcceptBody.agent_id": ((1, 256), None),
        "AcceptBody.capabilities": ((100,), (1, 256), None),
        "AcceptBody.lease_ms": ((1000, 600000), 30000),
        "CompleteBody.confidence": ((0.0, 1.0), 1.0),
        "CompleteBody.lease": ((1, 256), None),
        "CompleteBody.result_trace_id": ((1, 256), None),
        "CreateBody.capability": ((1, 256), None),
        "CreateBody.handoff_id": ((1, 256), None),
        "CreateBody.timeout_ms": ((1, 86400000), 300000),
        "CreateBody.to_agent": ((1, 256), None),
        "FailBody.code": ((1, 256), "TARGET_FAILED"),
        "FailBody.lease": ((1, 256), None),
        "FailBody.reason": ((1, 256), None),
        "LeaseBody.lease": ((1, 256), None),
        "ProgressBody.lease": ((1, 256), None),
        "QuestionBody.input_type": ((1, 256), "text"),
        "QuestionBody.lease": ((1, 256), None),
        "QuestionBody.options": ((100,), (1, 256), None),
        "QuestionBody.question": ((1, 256), None),
        "QuestionBody.wait_ms": ((0, 60000), 20000),
        "RejectBody.agent_id": ((1, 256), None),
        "RejectBody.capabilities": ((100,), (1, 256), None),
        "RejectBody.reason": ((1, 256), None),
        "TakeBody.capabilities": ((100,), (1, 256), None),
        "TakeBody.lease_ms": ((1000, 600000), 30000),
        "TakeBody.wait_ms": ((0, 60000), 20000),
    },
    "records": {
        "CallsQuery.limit": ((1, 1000), 100),
        "TimesQuery.buckets": ((1, 500), 80),
        "TimesQuery.limit": ((1, 1000), 100),
    },
    "sacp": {"ChainAnswer.wait_ms": ((0, 300000), 60000), "ChainBody.wait_ms": ((0, 300000), 60000)},
    "sessions": {"SessionsQuery.limit": ((1, 1000), 100)},
    "workflows": {"RunsQuery.limit": ((1, 1000), 100)},
}


@pytest.mark.parametrize("module", TABLE)
def test_what_the_api_takes_is_bounded_as_it_was(module):
    assert bounds_of(module) == TABLE[module]


def test_a_body_with_a_field_that_the_api_does_not_know_is_refused():
    lenient, seen = set(), 0
    for path in Path(server.__file__).parent.glob("*.py"):
        at = importlib.import_module(f"comity.server.{path.stem}")
        for name, made in inspect.getmembers(at, inspect.isclass):
            if name.endswith("Body") and issubclass(made, Struct) and made.__module__ == at.__name__:
                seen += 1
                if not made.__struct_config__.forbid_unknown_fields:
                    lenient.add(name)
    assert (seen > 20, lenient) == (True, set())
