"""Guidance in force on a node: read when it starts, followed while it runs, and held against what calls and tools touch.

A document that cannot be read, or that has a problem anywhere, never takes force. At the start it stops the node; later the
last good guidance stays, and `failure` says what is wrong with the newer one.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from comity.core.agent.effects import Touching
from comity.core.guidance import guidance as rules
from comity.core.guidance.guidance import Answer, Finding, Guidance, Question
from comity.errors import CallerError, ComityError, UnavailableError
from comity.ports import GuidanceSource

log = logging.getLogger("comity")


class LiveGuidance:
    """What people want now."""

    def __init__(self, source: GuidanceSource | None, current: Guidance) -> None:
        self.current = current
        self.failure = ""  # why a newer document has not taken force; empty while the newest has
        self._source = source
        self._stop: Callable[[], None] | None = None
        self._reading = threading.Lock()  # so that no older reading is put over a newer one

    @classmethod
    def of(cls, source: GuidanceSource) -> LiveGuidance:
        """Return guidance that is followed from now on."""
        live = cls(source, Guidance())
        live._stop = source.watch(partial(live.refresh_from, source))  # first: no change is missed between both
        try:
            live._take(source)
        except ComityError:
            live.close()
            raise
        return live

    def refresh(self) -> None:
        """Take the newest document of the source, if there is one and it is good."""
        if self._source is not None:
            self.refresh_from(self._source)

    def refresh_from(self, source: GuidanceSource) -> None:
        """Take the newest document, if it is good. Raises `UnavailableError` if it could not be asked for: try again."""
        try:
            self._take(source)
        except Exception as error:
            told = error.message if isinstance(error, ComityError) else f"{type(error).__name__}: {error}"
            if told != self.failure:
                log.warning("the last good guidance stays in force: %s", told)
            self.failure = told
            if isinstance(error, UnavailableError):
                raise
        else:
            self.failure = ""

    def findings(self, touching: Touching, inputs: Mapping[str, Any]) -> tuple[Finding, ...]:
        """Return the constraints on an action with these inputs, strictest first."""
        current = self.current
        return rules.findings(current, touching.touched(inputs)) if current.constraints else ()

    def answer(self, question_id: str, given: Answer) -> Question:
        """Put an answer to a question into the source; return the question. Raises `CallerError` if that cannot be done."""
        if self._source is None:
            raise CallerError("this node's guidance is fixed: an answer cannot be kept with its question")
        after = self._source.change(lambda guidance: rules.answer(guidance, question_id, given))
        return next(one for one in after.questions if one.id == question_id)

    @property
    def is_writable(self) -> bool:
        """Whether guidance can be written where it is read from."""
        return self._source is not None

    def replace(self, given: Guidance) -> None:
        """Write guidance in place of the one before; it is in force on return. Raises `CallerError` if that cannot be done."""
        if self._source is None:
            raise CallerError("this node's guidance is fixed: it cannot be replaced")
        self._source.change(lambda _: given)
        self.refresh()

    def close(self) -> None:
        """Stop following the source."""
        if self._stop is not None:
            self._stop()
            self._stop = None

    def _take(self, source: GuidanceSource) -> None:
        with self._reading:
            _, guidance, problems = source.read()
            if problems:
                what = "; ".join(f"{problem.path} {problem.message}" for problem in problems)
                raise CallerError(f"guidance has problems: {what}", problems=problems)
            self.current = guidance


async def live_guidance(given: Guidance | GuidanceSource) -> LiveGuidance:
    """Return guidance as it is in force. Reading may wait for a disk or a network; fixed guidance waits for nothing."""
    return LiveGuidance(None, given) if isinstance(given, Guidance) else await asyncio.to_thread(LiveGuidance.of, given)
