"""A model that fails as providers do: it does not answer, limits how often it is asked, or answers with something unusable."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

from comity.core.model import exchange as core
from comity.core.model.exchange import Completion, Prompt
from comity.ports import Model
from comity.testing.sim.faults import Kind
from comity.testing.sim.scene import Scene

TIMEOUT_S_MAX: Final = 30.0
GARBAGE: Final = ('{"status": "succ', "```json\n{]}\n```", "\ufffd\ufffd", "", "[" * 200, '{"a": NaN}')


class FaultyModel:
    """A real or scripted model behind a provider with bad days."""

    def __init__(self, world: Scene, model: Model) -> None:
        self._world = world
        self._model = model

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return self._model.name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Ask the model, unless its provider fails first."""
        world, name = self._world, self._model.name
        if (chance := world.strikes(Kind.MODEL_TIMEOUT, name)) is not None:
            await asyncio.sleep(TIMEOUT_S_MAX * chance.random())
            raise core.model_error(core.Fault.TIMEOUT, f"{name} did not answer")
        if (chance := world.strikes(Kind.MODEL_RATE_LIMITED, name)) is not None:
            retry_after_ms = chance.randint(1, 2_000)
            raise core.model_error(core.Fault.RATE_LIMITED, f"{name} is asked too often", retry_after_ms=retry_after_ms)
        if (chance := world.strikes(Kind.MODEL_GARBAGE, name)) is not None:
            yield Completion(text=chance.choice(GARBAGE), model=name)
            return
        stream = self._model.stream(prompt)
        try:
            async for piece in stream:
                yield piece
        finally:
            await stream.aclose()
