"""Reading what a model replied: `read` turns any text into a `Reading`, which says how far it can be trusted, and `canonical`
turns that into a `Reply`.
"""

from comity.core.model.reply.canonical import SENT_BACK, canonical
from comity.core.model.reply.fields import Status
from comity.core.model.reply.ladder import (
    FALLBACK_MESSAGE,
    FALLBACK_THOUGHT,
    TEXT_CHARS_MAX,
    DataCheck,
    Reading,
    Rung,
    read,
)
from comity.core.model.reply.repair import LOSSY, Repair

__all__ = [
    "FALLBACK_MESSAGE",
    "FALLBACK_THOUGHT",
    "LOSSY",
    "SENT_BACK",
    "TEXT_CHARS_MAX",
    "DataCheck",
    "Reading",
    "Repair",
    "Rung",
    "Status",
    "canonical",
    "read",
]
