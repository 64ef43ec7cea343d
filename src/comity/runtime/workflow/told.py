"""What people tell a run: answers, events, reasons, the input and the replies of a fork.

It is bounded as inputs are. Personal data in it is hidden in the vault of the run's session before anything of it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from comity.core.document.checks import take
from comity.core.document.payload import unpack_long
from comity.core.document.slices import whole
from comity.core.workflow import history
from comity.core.workflow.history import Event, encode_event
from comity.runtime.call.pace import User, user_of
from comity.runtime.call.slices import LONG_BYTES
from comity.runtime.session.live import Live
from comity.runtime.workflow.store import RunRecord

if TYPE_CHECKING:
    from comity.runtime.call.call import Call
    from comity.runtime.call.path import CallPath


class Told:
    """Hides personal data in what runs are told."""

    __slots__ = ("_path",)

    def __init__(self, path: CallPath) -> None:
        self._path = path

    async def event(self, call: Call, event: Event) -> Event:
        """Return an event for the run with this root, without personal data. Raises `RefusedError` PRIVACY_BLOCKED."""
        name, words = _words_of(event)
        return _with_words(
            event, await self._hidden(lambda: self._path.sessions.live_of(call), words, name, user_of(call.request))
        )

    async def value(self, record: RunRecord, value: Any, name: str) -> Any:
        """Return a value for a run of the same session as another, without personal data. Raises `RefusedError`."""
        return await self._hidden(lambda: self._session_of(record), value, name, (record.tenant_id, record.user_id))

    def check(self, event: Event) -> None:
        """Raise what `event` would raise, where another process holds the run and its vault."""
        name, words = _words_of(event)
        raw = take(words, name, bytes)
        if self._path.answers is not None:
            self._path.answers.check_given(raw)

    async def _hidden(self, live: Callable[[], Live], value: Any, name: str, user: User) -> Any:
        raw, answers = take(value, name, bytes), self._path.answers
        if answers is not None:
            work = answers.given(live, raw)
            raw = whole(work) if len(raw) < LONG_BYTES else await self._path.slices.run(work, user)
        return unpack_long(raw)

    def _session_of(self, record: RunRecord) -> Live:
        return self._path.sessions.found(record.tenant_id, record.user_id, record.session_id, record.created_at)


def _words_of(event: Event) -> tuple[str, Any]:
    """Return what a person said in an event, and what to call it."""
    match event:
        case history.Answered():
            return "answer", event.answer
        case history.Received():
            return "event", [event.event, event.data]
        case history.Cancelled():
            return "reason", event.reason
    raise AssertionError(f"no person or program can send this event to a run: {encode_event(event)!r}")


def _with_words(event: Event, words: Any) -> Event:
    match event:
        case history.Answered():
            return replace(event, answer=words)
        case history.Received():
            return replace(event, event=words[0], data=words[1])
        case history.Cancelled():
            return replace(event, reason=words)
    return event
