"""Sessions with hidden values restored from their vaults, for readers who may see them."""

from __future__ import annotations

from functools import partial
from typing import Any

from msgspec.structs import replace

from comity.core.redaction import Vault, restore_text, restore_value
from comity.core.session.session import Session


def in_clear(plain: dict[str, Any], vault: Vault | None) -> dict[str, Any]:
    """Return the data with the values of its session's vault restored."""
    return plain if vault is None else dict(restore_value(plain, vault))


def seen(session: Session, vault: Vault, types: frozenset[str]) -> Session:
    """Return a session with hidden values of these types restored."""
    text, value = partial(restore_text, vault=vault, types=types), partial(restore_value, vault=vault, types=types)
    return replace(
        session,
        original_request=text(session.original_request),
        turns=tuple(
            replace(
                turn,
                role=text(turn.role),
                text=text(turn.text),
                task=text(turn.task),
                claimed_role=text(turn.claimed_role),
            )
            for turn in session.turns
        ),
        summary=text(session.summary),
        facts={
            text(key): replace(fact, value=value(fact.value), claimed_source=text(fact.claimed_source))
            for key, fact in session.facts.items()
        },
        decisions=tuple(map(text, session.decisions)),
        constraints=value(session.constraints),
        assumptions=tuple(map(text, session.assumptions)),
        workflow_position=text(session.workflow_position),
        workflow=replace(session.workflow, state=value(session.workflow.state)),
        prior_outputs=value(session.prior_outputs),
        private=value(session.private),
    )
