"""The content of handoffs: checked and without personal data when stored, in clear for their user."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.core.agent.registry import Registry
from comity.core.call import guardrail
from comity.core.call.guardrail import Guardrail
from comity.core.call.limits import REPLY_BYTES_MAX
from comity.core.document.expected_output import output_problems
from comity.core.document.payload import PayloadError, Problem, pack, unpack, unpack_long
from comity.core.envelope.envelope import SUCCESS, Reply, Request
from comity.core.handoff.holder import result_session
from comity.core.handoff.machine import Entry, Handoff, Question
from comity.core.journal.records import Saved
from comity.core.redaction import restore_json
from comity.errors import TargetError
from comity.ports.observer import Observer
from comity.runtime.session.privacy import Privacy
from comity.runtime.session.sessions import Sessions

_encode = msgspec.json.Encoder().encode
_decode_shown = msgspec.json.Decoder(tuple[Request, Reply | None, Question | None, tuple[Entry, ...]]).decode
_MAY_HIDE: Final = re.compile(rb"\[\[[A-Z]").search  # how a token of a vault begins


class Content:
    """Checks, hides and restores the content of one node's handoffs."""

    def __init__(
        self,
        registry: Registry,
        sessions: Sessions,
        privacy: Privacy | None,
        guardrails: tuple[Guardrail, ...],
        observer: Observer | None = None,
    ) -> None:
        self._registry = registry
        self._sessions = sessions
        self._privacy = privacy
        self._guardrails = guardrails
        self._observer = observer

    def answer(
        self, request: Request, result: Any, *, message: str = "", confidence: float = 1.0
    ) -> tuple[Reply, tuple[Saved, ...]]:
        """Return the final reply for a result, checked and without personal data, and the records of hidden values."""
        try:
            raw = pack(result, path="result", bytes_max=REPLY_BYTES_MAX)
        except PayloadError as error:
            code = "OUTPUT_TOO_LARGE" if error.code == "ENVELOPE_TOO_LARGE" else "OUTPUT_VALIDATION_FAILED"
            raise TargetError(str(error), code=code, problems=error.problems) from None
        expected = request.expected_output
        problems: tuple[Problem, ...] = () if expected is None else output_problems(expected, unpack_long(raw), len(raw))
        problems = problems or self._declared_problems(request, raw)
        if problems:
            what = "; ".join(f"{problem.path}: {problem.message}" for problem in problems)
            raise TargetError(what, code="OUTPUT_VALIDATION_FAILED", problems=problems)
        raw, saved = self.hidden(request, raw)
        if message:
            words, more = self.hidden(request, msgspec.json.encode(message))
            message, saved = unpack(words), (*saved, *more)
        reply = Reply(status=SUCCESS, data=unpack_long(raw), message=message, confidence=confidence)
        if self._guardrails:
            reply = guardrail.release(request, reply, self._guardrails).reply
            reply.unwrap()  # a reply that a guardrail stopped is no result
        return reply, saved

    def failure(self, request: Request, reason: str, code: str) -> Reply:
        """Return the reply for a receiver's failure, as the guardrails release it."""
        return guardrail.release(request, Reply.failure(reason, code=code), self._guardrails).reply

    def _declared_problems(self, request: Request, raw: bytes) -> tuple[Problem, ...]:
        address = self._registry.resolve(request.target)
        capability = None if address is None else address.agent.capabilities.get(request.capability)
        outputs = None if capability is None else capability.outputs
        return () if outputs is None else outputs.check(raw).problems

    def hidden(self, request: Request, raw: bytes) -> tuple[bytes, tuple[Saved, ...]]:
        """Hide personal data in content of a receiver; return it with the records of hidden values."""
        if self._privacy is None or not self._privacy.may_hold(raw):  # as most of it
            return raw, ()
        return self._hidden(self._privacy, request, raw, result_session(request.request_id))

    def hidden_answer(self, request: Request, raw: bytes) -> tuple[bytes, tuple[Saved, ...]]:
        """Hide personal data in the answer to a receiver's question."""
        if self._privacy is None or not self._privacy.may_hold(raw):
            return raw, ()
        return self._hidden(self._privacy, request, raw, request.session_id)

    def _hidden(self, privacy: Privacy, request: Request, raw: bytes, session_id: str) -> tuple[bytes, tuple[Saved, ...]]:
        sessions = self._sessions
        live = sessions.found(request.tenant_id, request.user_id, session_id, request.created_at)
        raw = privacy.hide_data(raw, lambda: sessions.vault(live))
        return raw, sessions.saved_vault(live)

    def shown(self, handoff: Handoff) -> Handoff:
        """Return a handoff with personal data restored, for its user."""
        if self._observer is not None:
            self._observer.shown(handoff)
        request, sessions = handoff.request, self._sessions
        texts = (request.body, request.message, request.objective, request.context)  # the fields that may hold tokens
        if not _MAY_HIDE(_encode((texts, handoff.reply, handoff.question, handoff.history))):  # the usual case
            return handoff
        plain = _encode((request, handoff.reply, handoff.question, handoff.history))
        theirs = result_session(request.request_id)
        if handoff.holder or handoff.has_ended:  # the receiver's node may have hidden more values since
            sessions.forget(request.tenant_id, theirs)
        for session_id in (request.session_id, theirs):
            live = sessions.find(request.tenant_id, session_id)
            if live is None or live.vault is None or live.session.user_id != request.user_id:
                continue
            plain = restore_json(plain, live.vault)
        asked, reply, question, history = _decode_shown(plain)
        return replace(handoff, request=asked, reply=reply, question=question, history=history)
