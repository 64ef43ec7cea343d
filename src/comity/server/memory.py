"""What is remembered of users across sessions: shown, corrected and forgotten by those who may."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from comity.core.session.memory import Fact
from comity.errors import CallerError
from comity.runtime.session.memory import UserMemory
from comity.server.auth import tenant_of
from comity.server.problem import unknown
from comity.server.routes import Ask


class FactView(Struct, frozen=True):
    """One thing that is remembered."""

    id: str
    key: str
    text: str
    source: str
    confidence: float
    at_ms: int


class MemoryView(Struct, frozen=True):
    """What is remembered of a user; `dropped` is how much older is no longer kept."""

    user_id: str
    items: list[FactView]
    dropped: int


class CorrectBody(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What holds instead."""

    text: Annotated[str, Meta(min_length=1, max_length=2_000)]


class Erased(Struct, frozen=True):
    """Whether there was something to forget."""

    erased: bool


async def show(ask: Ask) -> MemoryView:
    """Return what is remembered of a user."""
    memory = _memory(ask)
    return MemoryView(ask.params["user_id"], [_view(one) for one in memory.facts], memory.dropped)


async def correct(ask: Ask) -> FactView:
    """Replace the text of one fact; who did it is kept."""
    if not ask.body.text.isprintable():
        raise CallerError("text: must be one line of printable text", code="INPUT_VALIDATION_FAILED")
    found = await _memory(ask).correct(ask.params["fact_id"], ask.body.text, by=ask.principal.user_id)
    if found is None:
        raise unknown("fact", ask.params["fact_id"])
    return _view(found)


async def forget(ask: Ask) -> Erased:
    """Forget one fact."""
    if not await _memory(ask).forget(ask.params["fact_id"]):
        raise unknown("fact", ask.params["fact_id"])
    return Erased(True)


async def erase(ask: Ask) -> Erased:
    """Forget everything of a user."""
    return Erased(await _memory(ask).erase())


def _memory(ask: Ask) -> UserMemory:
    return ask.state.node.memory(ask.params["user_id"], tenant_id=tenant_of(ask.principal, None))


def _view(fact: Fact) -> FactView:
    return FactView(fact.id, fact.key, fact.text, fact.source, fact.confidence, fact.at_ms)
