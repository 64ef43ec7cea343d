"""The bounds of a model agent's work, each with a name and a unit."""

from __future__ import annotations

from msgspec import Struct

from comity.core.retry import Retry
from comity.core.task import TOKENS_MAX_DEFAULT


class Thinking(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a model agent may work, beyond what the call's own limits say."""

    rounds_max: int = 8  # of tools, before the reply must be given
    context_tokens_max: int = TOKENS_MAX_DEFAULT  # task and background in the prompt
    result_chars_max: int = 40_000  # of what a tool or another agent answers; the rest is cut, and that is said
    retry: Retry = Retry(attempts=6, delay_ms=500, delay_ms_max=20_000)  # after rate limits and overload

    def __post_init__(self) -> None:
        if min(self.rounds_max, self.context_tokens_max, self.result_chars_max) < 0:
            raise ValueError("rounds_max, context_tokens_max and result_chars_max cannot be negative")
