"""Analyses already presented in a session: same capability, same inputs, still fresh. They are referred to, not run again."""

from __future__ import annotations

import hashlib
from typing import Any, Final

from msgspec import json

from comity.agents.orchestrator.catalogue import Offer
from comity.core.envelope.envelope import Reply

PRESENTED_MAX: Final = 50  # per session, the newest
DATA_BYTES_MAX: Final = 16_384  # of a result that is kept to be shown again; a larger one is run again


def key_of(offer: Offer, inputs: dict[str, Any], text: str) -> str:
    """Return what identifies an analysis: capability and inputs; for an agent that is asked in words, the words."""
    said = text.strip().casefold() if not inputs else ""
    document = [offer.route.target, offer.route.capability, inputs, said]
    return hashlib.sha256(json.Encoder(order="sorted").encode(document)).hexdigest()[:32]


def remembered(presented: dict[str, Any], key: str, now_ms: int, fresh_ms: int) -> dict[str, Any] | None:
    """Return what was presented under a key, if it is still fresh."""
    entry = presented.get(key)
    return entry if entry is not None and now_ms - int(entry["at"]) <= fresh_ms else None


def note(presented: dict[str, Any], key: str, offer: Offer, reply: Reply[Any], now_ms: int) -> None:
    """Remember a result without effects that was presented in full."""
    if offer.has_effects or not reply.ok or reply.degraded:
        return
    entry = {
        "at": now_ms, "data": reply.data, "message": reply.message, "confidence": reply.confidence,
        "request_id": reply.request_id, "status": reply.status.value, "warnings": list(reply.warnings),
    }  # fmt: skip
    if len(json.encode(entry)) > DATA_BYTES_MAX:
        return
    presented[key] = entry
    while len(presented) > PRESENTED_MAX:
        del presented[min(presented, key=lambda one: int(presented[one]["at"]))]


def reply_of(entry: dict[str, Any], message: str) -> Reply[Any]:
    """Return a remembered result as a reply that says so."""
    known = {"presented_at": entry["at"], "presented_in": entry["request_id"], "presented_before": True}
    told = f"{entry['message']} {message}".strip()
    confidence = entry["confidence"] if entry["confidence"] is not None else 1.0
    if entry["status"] == "partial":
        return Reply.partial(entry["data"], warnings=entry["warnings"], confidence=confidence, message=told, metadata=known)
    return Reply.success(entry["data"], confidence=confidence, message=told, metadata=known)
