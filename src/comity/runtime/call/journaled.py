"""Durable steps of a call (`once`), which replay returns unchanged, and its audit notes.

A model asked twice gives two different answers. So its answer is recorded under a stable id, as a tool's result is, and a tree
that resumes after a crash or an approval gets the same answer again.
"""

from __future__ import annotations

import asyncio
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Collection
from typing import TYPE_CHECKING, Any

from msgspec import Raw, Struct, convert
from msgspec.structs import replace

from comity.core.call.limits import CALLS_CEILING, TOKENS_CEILING
from comity.core.document.checks import rejected, take_whole
from comity.core.document.foreign_errors import told
from comity.core.document.payload import PayloadError, Problem, unpack
from comity.core.document.slices import whole
from comity.core.envelope.codec import decode_reply
from comity.core.envelope.envelope import Error, Reply, Request, Status, copied, encode
from comity.core.envelope.reserved import problem_of
from comity.core.journal.records import Accepted, Noted, Settled
from comity.core.tracing.telemetry import CallEnd
from comity.core.units import NS_PER_MS
from comity.errors import ComityError
from comity.ports import Clock, Journal
from comity.ports.ambient import parent_span
from comity.runtime.call.call import Call, Unjudged
from comity.runtime.tracing import standing

if TYPE_CHECKING:
    from comity.core.tracing.gen_ai import Asked
    from comity.runtime.session.privacy import Answers
    from comity.runtime.session.sealing import Seal
    from comity.runtime.tracing.recorder import Recorder

NOTHING = Raw(b"{}")
SEALED = "comity.sealed"  # metadata key of the encrypted original of a redacted outcome


class Steps:
    """Records the durable steps of running calls."""

    def __init__(
        self,
        journal: Journal,
        clock: Clock,
        recorder: Recorder,
        *,
        holds_words: bool,
        answers: Answers | None,
        seal: Seal,
    ) -> None:
        self._holds_words = holds_words
        self._answers = answers
        self._seal = seal
        self._journal = journal
        self._clock = clock
        self._recorder = recorder

    async def once(
        self,
        call: Call,
        target: str,
        capability: str,
        make: Callable[[], Awaitable[Reply]],
        is_last: Callable[[Reply], bool] | None = None,
        asked: Callable[[], Asked] | None = None,
    ) -> Reply:
        """Return the reply of `make`, or on replay the recorded one.

        Where guardrails judge replies, an outcome for which `is_last` returns True is recorded when the call settles: it may be
        withheld, and only the reply depends on it. `asked` returns the model request for the span. If `make` raises, the span
        says why and the journal gets nothing, so a replay calls `make` again.
        """
        call.tools_used += 1
        number = call.tools_used
        if call.is_again:
            known = self._journal.call(f"{call.request.request_id}#{number}")
            if known is not None and known.reply is not None:
                return self._opened(known.reply)
        started_ns = self._clock.now_ns()
        started_ms = started_ns // NS_PER_MS
        request = step_request(call.request, number, target, capability, NOTHING, started_ms, self._recorder.new_span_id())
        try:
            reply = _checked(await standing.inside(self._recorder, call, request, make()), call.told or ())
        except BaseException as raised:
            self._record_failure(call, request, raised, started_ns, asked)
            raise
        ended_ns = self._clock.now_ns()
        reply = replace(reply, request_id=request.request_id, source=target, duration_ms=(ended_ns - started_ns) / NS_PER_MS)
        written = await self._written(call, reply)
        accepted = Accepted(request, started_ms, self._journal.node_id)
        settled = Settled(request, written, ended_ns // NS_PER_MS)
        is_held = self._holds_words and is_last is not None and is_last(reply)
        end = None
        if self._recorder.ended is not None:
            what = _told_of(call, asked, is_judged=is_held)
            end = CallEnd(request, written, started_ns, ended_ns, call.remote, asked=what)
        if is_held:
            call.unjudged = [*(call.unjudged or ()), Unjudged(accepted, settled, end)]
            return reply
        self._journal.append((accepted, settled), None, call.terms)
        if end is not None and self._recorder.ended is not None:
            self._recorder.ended(end)
        return reply

    async def _written(self, call: Call, reply: Reply) -> Reply:
        """Return an outcome for the store and spans: personal data hidden, the original encrypted in it for replay."""
        raw = encode(reply)
        if self._answers is not None:
            await self._answers.rest(call, raw)
        sealed = self._seal.sealed(f"step {reply.request_id}", raw)
        if self._answers is None or sealed is raw:
            return reply
        await self._answers.rest(call, raw)
        told = encode(reply.data)
        without = await self._answers.long_data(call, told)
        # A struct keeps its type: the span of a model step is made from it.
        data = (
            reply.data
            if without == told
            else convert(unpack(without), type(reply.data) if isinstance(reply.data, Struct) else Any)
        )
        hidden = whole(self._answers.words(call, replace(reply, data=data)))
        return replace(hidden, metadata={**hidden.metadata, SEALED: b64encode(sealed).decode()})

    def _opened(self, reply: Reply) -> Reply:
        sealed = reply.metadata.get(SEALED)
        if sealed is None:
            return reply
        return decode_reply(self._seal.opened(f"step {reply.request_id}", b64decode(sealed)), is_ours=True)

    def _record_failure(
        self, call: Call, request: Request, raised: BaseException, started_ns: int, asked: Callable[[], Asked] | None
    ) -> None:
        if self._recorder.ended is None or isinstance(raised, GeneratorExit):
            return
        ended_ns = self._clock.now_ns()
        if isinstance(raised, asyncio.CancelledError):
            is_over = ended_ns >= request.deadline_at * NS_PER_MS
            status, code = (Status.TIMEOUT, "CALL_TIMEOUT") if is_over else (Status.CANCELLED, "CALL_CANCELLED")
        else:
            status, code = Status.ERROR, raised.code if isinstance(raised, ComityError) else "TARGET_CRASHED"
        reply = Reply(status=status, error=Error.of(code, told(raised)), request_id=request.request_id, source=request.target)
        what = _told_of(call, asked, is_judged=False)
        self._recorder.ended(CallEnd(request, reply, started_ns, ended_ns, call.remote, asked=what))

    def note(self, call: Call, text: str) -> None:
        """Add a note on a running call to the audit."""
        self._journal.append((Noted(call.request, text, self._clock.now_ns() // NS_PER_MS),), None, call.terms)


def _told_of(call: Call, asked: Callable[[], Asked] | None, *, is_judged: bool) -> Asked | None:
    """Return the model request for the span of a step.

    A prompt repeats earlier model output of this call. While guardrails have yet to judge that output, the span omits the
    prompt unless the step waits for the verdict too (`is_judged`).
    """
    if asked is None:
        return None
    return asked() if is_judged or call.unjudged is None else replace(asked(), prompt=None)


def _checked(reply: Any, told: Collection[str]) -> Reply:
    """Return the reply, or raise `CallerError` if it cannot be recorded: the fault is the agent's, not the store's."""
    if not isinstance(reply, Reply):
        problem = Problem("reply", f"must be a Reply, not {type(reply).__name__}")
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (problem,)))
    if what := problem_of(reply, reply.data, told):
        problem = Problem("reply", f"holds {what}, which is the platform's to say")
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (problem,)))
    try:
        usage = copied(reply).usage
        take_whole(usage.prompt_tokens, "usage.prompt_tokens", TOKENS_CEILING)
        take_whole(usage.completion_tokens, "usage.completion_tokens", TOKENS_CEILING)
        take_whole(usage.calls, "usage.calls", CALLS_CEILING)
        encode(reply)
    except PayloadError as error:
        raise rejected(error) from None
    except (TypeError, ValueError, RecursionError) as error:
        raise rejected(PayloadError("INPUT_VALIDATION_FAILED", (Problem("data", f"has no JSON form: {error}"),))) from None
    return reply


def step_request(above: Request, number: int, target: str, capability: str, body: Raw, now_ms: int, span_id: str) -> Request:
    """Return the request that records a step of a call: the caller's request, one hop deeper, without its texts."""
    return replace(
        above,
        request_id=f"{above.request_id}#{number}",
        parent_id=above.request_id,
        source=above.target,
        target=target[:256],
        capability=capability[:128],
        chain=(*above.chain, above.target),
        body=body,
        message="",
        objective="",
        context=None,
        created_at=now_ms,
        span_id=span_id,
        parent_span_id=parent_span(above),
    )
