"""SACP over HTTP: a chain is a workflow; it is run, and answered with the structured reply of the protocol.

A chain that asks its user a question answers `clarification_needed`; the same reply door takes the answer and goes on.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Annotated, Any, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from comity.core.units import MS_PER_S
from comity.dialects.sacp import encode_reply
from comity.errors import CallerError, UnavailableError
from comity.runtime.workflow.handle import RunHandle
from comity.runtime.workflow.store import RunRecord
from comity.server.routes import Ask
from comity.server.sight import reply_as_stored, sees_clear
from comity.server.workflows import StartBody, run_of, started

WAIT_MS_MAX: Final = 300_000  # what the protocol's origin gives a chain
WaitMs = Annotated[int, Meta(ge=0, le=WAIT_MS_MAX)]


class ChainBody(StartBody, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The input of a chain, and how long its reply is waited for."""

    wait_ms: WaitMs = 60_000


class ChainAnswer(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What the user answers; without an answer the reply of the chain is waited for. `question_id` where several are open."""

    answer: Any | UnsetType = UNSET
    question_id: str = ""
    wait_ms: WaitMs = 60_000


class ChainReply(Struct, frozen=True):
    """A reply of the protocol. `data` of a question has `run_id`, `question_id` and `options`."""

    thought: str
    status: Literal["success", "failure", "clarification_needed", "completed", "retry_with_instruction"]
    data: dict[str, Any]
    message: str
    next_step_hint: str | UnsetType = UNSET


async def run(ask: Ask) -> ChainReply:
    """Run a chain and return its reply, or the question it asks."""
    body: ChainBody = ask.body or ChainBody()
    return await _reply(ask, await started(ask, body), body.wait_ms)


async def answer(ask: Ask) -> ChainReply:
    """Answer the question of a chain and return its reply, or the next question."""
    record, body = run_of(ask), ask.body or ChainAnswer()
    workflows = ask.state.node.workflows
    if body.answer is not UNSET:
        question_id = body.question_id or _only(record)
        await workflows.answer(record.run_id, question_id, body.answer, by=ask.principal.user_id)
    return await _reply(ask, workflows.handle(record.run_id), body.wait_ms)


def _only(record: RunRecord) -> str:
    if len(record.questions) != 1:
        raise CallerError(
            f"run {record.run_id} has {len(record.questions)} open questions; name one in question_id",
            code="INPUT_VALIDATION_FAILED",
        )
    return record.questions[0].question_id


async def _reply(ask: Ask, handle: RunHandle, wait_ms: int) -> ChainReply:
    """Wait until a run has ended or asks, and return what it says."""
    try:
        async with asyncio.timeout(wait_ms / MS_PER_S):
            return await _ended_or_asked(ask, handle)
    except TimeoutError:
        raise UnavailableError(
            f"run {handle.run_id} has not ended; post to /v1/sacp/runs/{handle.run_id} to wait on",
            code="CALL_TIMEOUT",
        ) from None


async def _ended_or_asked(ask: Ask, handle: RunHandle) -> ChainReply:
    if (asked := _question(handle)) is not None:
        return asked
    async with aclosing(handle.events()) as events:
        async for event in events:
            if event.kind == "asked" and (asked := _question(handle)) is not None:
                return asked
    reply = await handle.result()
    if not sees_clear(ask.principal, handle.record):
        reply = await reply_as_stored(ask.state, handle.run_id, reply)
    said = encode_reply(reply)
    return ChainReply(
        thought=said["thought"],
        status=said["status"],
        data=said["data"],
        message=said["message"],
        next_step_hint=said.get("next_step_hint", UNSET),
    )


def _question(handle: RunHandle) -> ChainReply | None:
    """Return the oldest open question of a run as a reply of the protocol."""
    record = handle.record
    if not record.questions:
        return None
    question = record.questions[0]
    data = {"run_id": record.run_id, "question_id": question.question_id, "options": list(question.options)}
    return ChainReply("", "clarification_needed", data, question.text)
