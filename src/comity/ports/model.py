"""A language model."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Protocol

from comity.core.model.exchange import Completion, Prompt


class Model(Protocol):
    """A language model. Everything an agent needs of one is this.

    `stream` yields pieces of the text as they come, then the whole answer, once, and ends. A model that cannot stream yields
    the answer alone. Closing the generator, or cancelling its reader, closes the connection. What goes wrong is raised as
    `core.model.exchange.model_error`; a stream that breaks off without an answer is `MODEL_FAILED`. Nothing is retried here:
    the caller knows the deadline. A model that keeps connections has a coroutine `aclose` as well, which a node awaits when
    it closes; it can be asked again afterwards.
    """

    @property
    def name(self) -> str:
        """How the model is named to people, such as `openai:gpt-5`."""
        ...

    def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Ask, and yield pieces of the answer's text and last the whole answer."""
        ...
