"""The bounds of a model agent's work, each with a name and a unit."""

from __future__ import annotations

from msgspec import Struct

from comity.core.agent.retry import Retry
from comity.core.model.sacp_prompt import template_problem
from comity.core.model.task_prompt import TOKENS_MAX_DEFAULT


class Thinking(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a model agent may work, beyond what the call's own limits say."""

    rounds_max: int = 8  # of tools, before the reply must be given
    context_tokens_max: int = TOKENS_MAX_DEFAULT  # task and background in the prompt
    result_chars_max: int = 40_000  # of what a tool or another agent answers; the rest is cut, and that is said
    protocol_template: str = ""  # how to reply, instead of our own words; see `core.model.sacp_prompt`
    retry: Retry = Retry(attempts=6, delay_ms=500, delay_ms_max=20_000)  # after rate limits and overload

    def __post_init__(self) -> None:
        if min(self.rounds_max, self.context_tokens_max, self.result_chars_max) < 0:
            raise ValueError("rounds_max, context_tokens_max and result_chars_max cannot be negative")
        if not isinstance(self.protocol_template, str):
            raise TypeError(f"protocol_template must be text, not {type(self.protocol_template).__name__}")
        if problem := template_problem(self.protocol_template):
            raise ValueError(f"protocol_template: {problem}")
