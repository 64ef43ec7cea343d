"""Reading what a model replied: `read` turns any text into a `Reading`, which says how far it can be trusted."""

from comity.core.reply.ladder import (
    FALLBACK_MESSAGE,
    FALLBACK_THOUGHT,
    TEXT_CHARS_MAX,
    DataCheck,
    Reading,
    Rung,
    Status,
    read,
)
from comity.core.reply.repair import LOSSY, Repair

__all__ = [
    "FALLBACK_MESSAGE",
    "FALLBACK_THOUGHT",
    "LOSSY",
    "TEXT_CHARS_MAX",
    "DataCheck",
    "Reading",
    "Repair",
    "Rung",
    "Status",
    "read",
]
