"""One turn of a model agent: from a message to a reply, in two phases.

    tools      the model is asked, the tools it wants are used, it is asked again, up to the limit of rounds
    synthesis  the last answer becomes the reply; an answer that does not fit is sent back once with what is wrong with it

Everything it does goes through `ctx`: calls, tools, tokens, text for the watcher. The model reads what goes wrong with a
tool. What goes wrong with the model is raised, typed, unless trying again within the deadline may cure it.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from comity.agents.model import colleagues as others
from comity.agents.model.declared import Mind
from comity.agents.model.platform import ASK_USER, acting
from comity.core.agent.disclosure import spoken
from comity.core.call.limits import TOKENS_CEILING
from comity.core.document.checks import take_whole
from comity.core.document.payload import Problem
from comity.core.document.slices import ONE_GO_BYTES, T
from comity.core.envelope.envelope import Reply, Status
from comity.core.envelope.reserved import CYCLE_TARGET, TRANSFER_FROM
from comity.core.model.exchange import (
    TRANSIENT,
    Assistant,
    Completion,
    Fault,
    Finish,
    Message,
    Prompt,
    System,
    ToolCall,
    ToolDefinition,
    ToolResult,
    User,
    model_error,
)
from comity.core.model.quoting import QUOTED_CHARS_MAX, label, quote
from comity.core.model.reply import SENT_BACK, Reading, Repair, Rung, canonical, read
from comity.core.model.reply import Status as Word
from comity.core.model.reply.canonical import bounded
from comity.core.model.reply.marks import AnswerStream, split
from comity.core.model.reply.message import MessageStream
from comity.core.model.sacp_prompt import SYNTHESIS, WRAP_UP, correction, listed
from comity.core.model.task_prompt import brief
from comity.core.model.tokens import count_messages, count_prompt
from comity.core.session.asking import answers, reminder
from comity.core.session.conversation import plain_text
from comity.core.tracing.gen_ai import Asked
from comity.core.tracing.telemetry import MODEL_PREFIX
from comity.core.units import MS_PER_S
from comity.errors import CallerError, ComityError, RefusedError
from comity.runtime.call.context import Context
from comity.runtime.call.insider import Insider

CALLS_PER_ROUND_MAX: Final = 32
# Below this share of the tokens that the turn began with, a message asks the model to come to an end.
WRAP_UP_SHARE: Final = 0.25
NOTES_MAX: Final = 16  # of one turn in the audit about attempts to give orders; the last one says that there are more

_PEOPLE: Final = "the people responsible for this project"
_PIECE_CHARS: Final = 1_024  # of a streamed answer, between two pauses for other calls
_MARK_TOKENS: Final = 40  # of the two marks around a quotation

_encode = msgspec.json.Encoder().encode
_decode_object = msgspec.json.Decoder(dict[str, Any]).decode
_decode_completion = msgspec.json.Decoder(Completion).decode


class _EndsError(Exception):
    """The turn ends here, with this reply."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply


class Turn:
    """A model agent at work on one call."""

    def __init__(self, mind: Mind, ctx: Context, inputs: dict[str, Any]) -> None:
        self._mind = mind
        self._ctx = Insider.of(ctx)
        self._inputs = inputs
        self._seal = self._ctx.seal
        self._noted: dict[str, None] = {}
        self._messages: list[Message] = []
        self._offered: dict[str, ToolDefinition] = {}
        self._sent_back: dict[str, int] = {}
        self._warnings: list[str] = []
        self._tokens_at_start = ctx.tokens_left
        self._overdrawn = False
        self._hinted = False
        self._asked_ms = 0.0

    async def run(self) -> Reply:
        """Return the reply."""
        self._begin()
        try:
            reply = await self._finish(await self._use_tools())
            if reply.status is Status.NEEDS_INPUT:
                reply = await self._answered(reply)
        except _EndsError as ends:
            reply = ends.reply
        if not self._warnings:
            return reply
        status = Status.PARTIAL if self._overdrawn and reply.status is Status.SUCCESS else reply.status
        return replace(reply, status=status, warnings=(*reply.warnings, *self._warnings))

    # --- the prompt ---

    def _begin(self) -> None:
        ctx, mind = self._ctx, self._mind
        tokens_max = mind.thinking.context_tokens_max
        if self._tokens_at_start is not None:  # what is left of the budget is for the answer as well
            tokens_max = min(tokens_max, self._tokens_at_start // 2)
        briefing = brief(
            ctx.request, ctx.known(), seal=self._seal, inputs=self._inputs, tokens_max=tokens_max, count=mind.count
        )
        self._note(briefing.found, f"what was passed on to {mind.agent_id}")
        # What may change from call to call stands last: what was said before is the same then, and need not be read again.
        if mind.system:
            self._messages.append(System(mind.system))
        self._messages += briefing.history
        if guidance := ctx.guidance_text(spare_tokens=_MARK_TOKENS):
            self._messages.append(System(self._quoted(guidance, _PEOPLE, what="guidance", keeps_orders=True)))
        self._messages.append(User(briefing.text))
        if mind.tools:
            self._offer_tools(mind.tools)
        reachable = ctx.colleagues(limit=others.AGENTS_LISTED_MAX + 1)
        if reachable:
            self._offered[others.CALL], found = mind.call_definition(reachable, self._seal)
            self._note(found, "the list of agents")
            if targets := others.transferable(reachable, mind.can_transfer_to):
                self._offered[others.TRANSFER] = others.transfer_definition(targets, self._seal)

    def _offer_tools(self, names: Collection[str]) -> None:
        usable = self._ctx.tools(names)
        for name, (tool, checker) in usable.items():
            self._offered[name] = ToolDefinition(name=name, description=tool.description, parameters=checker.json_schema())
        if len(usable) < len(names):
            withheld = ", ".join(name for name in names if name not in usable)
            self._warnings.append(f"this call may not use these tools, so they were not offered: {withheld}")

    # --- the first phase ---

    async def _use_tools(self) -> Completion:
        """Ask until the model wants no more tools, or may not; return its last answer."""
        for _ in range(self._mind.thinking.rounds_max):
            answer = await self._ask(tuple(self._offered.values()))
            if not answer.calls:
                return answer
            self._stop_if_overdrawn()
            was_of_use = await self._use(answer)
            if not was_of_use:
                break
            self._hint_at_the_end()
        self._messages.append(User(SYNTHESIS))
        return await self._ask(())

    def _stop_if_overdrawn(self) -> None:
        if self._overdrawn:
            raise _EndsError(Reply.failure(self._warnings[-1], code="BUDGET_TOKENS_EXHAUSTED"))

    def _hint_at_the_end(self) -> None:
        left = self._ctx.tokens_left
        if self._hinted or left is None or self._tokens_at_start is None:
            return
        if left < self._tokens_at_start * WRAP_UP_SHARE:
            self._hinted = True
            self._messages.append(User(WRAP_UP))

    async def _use(self, answer: Completion) -> bool:
        """Use what the model wants used, side by side, and tell it what came of it; return whether any of it was offered."""
        self._messages.append(Assistant(answer.text, answer.calls))
        transfer = next((call for call in answer.calls if call.name == others.TRANSFER and call.name in self._offered), None)
        jobs: list[Awaitable[ToolResult]] = []
        agent_calls = sum(call.name == others.CALL for call in answer.calls)
        gate = asyncio.Semaphore(max(self._ctx.limits.fan_out_max, 1)) if agent_calls > 1 else None
        for index, call in enumerate(answer.calls):
            if call is not transfer:
                jobs.append(self._result_of(call, gate, is_beyond=index >= CALLS_PER_ROUND_MAX))
        results = await _all(jobs)
        if transfer is not None:  # after everything else: it may end the turn
            results.append(await self._transfer(transfer))
        self._messages += results
        return any(call.name in self._offered for call in answer.calls)

    async def _result_of(self, call: ToolCall, gate: asyncio.Semaphore | None, *, is_beyond: bool) -> ToolResult:
        if is_beyond:
            return ToolResult(call.id, call.name, f"not done: at most {CALLS_PER_ROUND_MAX} calls in one turn", is_error=True)
        if call.name == others.CALL:
            async with gate or contextlib.nullcontext():
                return await self._call_agent(call)
        if call.name == others.TRANSFER:
            what = "not done: a task is passed on once, and only where that is offered"
            return ToolResult(call.id, call.name, what, is_error=True)
        try:
            inputs = _decode_object(call.arguments or "{}")
            with acting(self._ctx):
                result = await self._ctx.use_offered(self._offered.keys(), call.name, inputs, call.id)
        except msgspec.MsgspecError as error:
            return self._failed(call, "the arguments are not a JSON object", error)
        except ComityError as error:
            return self._failed(call, "it failed", error)
        if call.name == ASK_USER and self._mind.asks_user:
            raise _EndsError(Reply.needs_input(result))
        return ToolResult(
            call.id, call.name, self._quoted(plain_text(result), f"tool {call.name}", self._mind.thinking.result_chars_max)
        )

    # --- other agents ---

    async def _call_agent(self, call: ToolCall) -> ToolResult:
        try:
            said = others.read_arguments(call.arguments)
        except msgspec.MsgspecError as error:
            return self._failed(call, "the arguments do not fit", error)
        if self._sent_back.get(said.agent_id, 0) > 1:
            what = f"not done: {label(said.agent_id)} has sent the work back twice; go on without it"
            return ToolResult(call.id, call.name, what, is_error=True)
        reply = await self._ctx.call(
            said.agent_id, said.capability, said.inputs, message=said.message, timeout_ms=said.clamped_ms
        )
        return self._told(call, said.agent_id, reply)

    async def _transfer(self, call: ToolCall) -> ToolResult:
        """Pass the task on. Where that is refused, the model reads the refusal and goes on itself."""
        try:
            said = others.read_arguments(call.arguments)
        except msgspec.MsgspecError as error:
            return self._failed(call, "the arguments do not fit", error)
        if said.agent_id not in self._mind.can_transfer_to:
            allowed = ", ".join(sorted(self._mind.can_transfer_to))
            return ToolResult(call.id, call.name, f"not done: the task may be passed to {allowed}", is_error=True)
        reply = await self._ctx.call(said.agent_id, said.capability, message=said.message, history=self._ctx.request.history)
        self._end_in_cycle(reply, said.agent_id)
        if reply.status is Status.REFUSED:
            return self._told(call, said.agent_id, reply)
        self._ctx.mark(TRANSFER_FROM, said.agent_id)  # these are not the words of this agent
        raise _EndsError(reply)

    def _told(self, call: ToolCall, agent_id: str, reply: Reply) -> ToolResult:
        self._end_in_cycle(reply, agent_id)
        if reply.error is not None and reply.error.code == SENT_BACK:
            self._sent_back[agent_id] = self._sent_back.get(agent_id, 0) + 1
        chars_max, times = self._mind.thinking.result_chars_max, self._sent_back.get(agent_id, 0)
        text, found = others.read_reply(reply, agent_id, self._seal, times_sent_back=times, chars_max=chars_max)
        self._note(found, f"the reply of {reply.source or agent_id}")
        return ToolResult(call.id, call.name, text, is_error=not reply.ok)

    def _end_in_cycle(self, reply: Reply, agent_id: str) -> None:
        """End the turn if it is part of a cycle, without a word of the agent that was asked."""
        target, error = others.cycle_target(reply, agent_id), reply.error
        if target and error is not None:
            if target != self._ctx.request.target:
                self._ctx.mark(CYCLE_TARGET, target)
            raise _EndsError(Reply(status=Status.ERROR, error=error, message=spoken(error, error.message)))

    # --- quoting ---

    def _quoted(
        self, text: str, source: str, chars_max: int = QUOTED_CHARS_MAX, *, what: str = "data", keeps_orders: bool = False
    ) -> str:
        """Return words that are neither the author's nor the user's as they may stand in the prompt."""
        said, found = quote(text, source, self._seal, what=what, chars_max=chars_max, keeps_orders=keeps_orders)
        self._note(found, f"{what} from {source}")
        return said

    def _failed(self, call: ToolCall, what: str, error: Exception) -> ToolResult:
        return ToolResult(call.id, call.name, f"{what}\n{self._quoted(str(error), f'tool {call.name}')}", is_error=True)

    def _note(self, found: Sequence[str], where: str) -> None:
        """Write an attempt to give orders into the audit, each once and not too many."""
        note = f"orders in {label(where)}: {', '.join(found)}"
        if not found or note in self._noted or len(self._noted) >= NOTES_MAX:
            return
        self._noted[note] = None
        self._ctx.note(note if len(self._noted) < NOTES_MAX else f"{note}; further ones of this turn are not noted")

    # --- the second phase ---

    async def _finish(self, answer: Completion) -> Reply:
        if answer.finish is Finish.REFUSED:
            raise model_error(Fault.REFUSED, answer.text or f"{self._mind.model_name} declined to answer")
        if not self._mind.has_protocol:
            return await self._parsed(partial(_plain_reply, answer), len(answer.text))
        reading = await self._read(answer)
        if (reading.degraded or reading.rung is Rung.FALLBACK) and self._may_ask_again():
            if answer.text:
                self._messages.append(Assistant(answer.text))
            wrong = self._quoted(listed(reading.problems or _doubts(reading)), "the check of your reply")
            self._messages.append(User(correction(wrong)))
            reading = await self._corrected(reading)
        return canonical(reading)

    async def _answered(self, question: Reply) -> Reply:
        """Answer a question of the model with what is known, once, and return its reply to that; else the question itself."""
        known = self._ctx.session.answers_to(question)
        if not known or not self._may_ask_again():
            return question
        told = self._quoted(answers(known), "the session")
        self._messages += (Assistant(question.message), User(reminder(told)))
        try:
            return await self._finish(await self._use_tools())
        except ComityError as error:  # the user can still be asked
            self._warnings.append(f"the question could not be answered: {error.code}")
            return question

    async def _corrected(self, first: Reading) -> Reading:
        """Return the second reading, or the first where the second is no better or could not be had."""
        try:
            answer = await self._ask(())
        except ComityError as error:  # what there is, is better than nothing
            self._warnings.append(f"the reply could not be corrected: {error.code}")
            return first
        second = await self._read(answer)
        return first if second.rung is Rung.FALLBACK and first.rung is not Rung.FALLBACK else second

    async def _read(self, answer: Completion) -> Reading:
        prompt = "\n".join(
            one.text for one in self._messages if isinstance(one, (System, User, ToolResult)) and "status" in one.text
        )
        parse = partial(read, answer.text, data_schema=self._mind.check, examples=self._mind.examples, prompt=prompt)
        reading = await self._parsed(parse, len(answer.text) + len(prompt))
        if answer.finish is Finish.LENGTH and reading.rung is not Rung.RAW and not reading.degraded:
            return replace(reading, degraded=True, repairs=(*reading.repairs, Repair.TRUNCATED))  # more was to come
        return reading

    async def _parsed(self, parse: Callable[[], T], chars: int) -> T:
        """Return the result of `parse`, which reads so many characters: a long text in a thread beside the event loop."""
        return parse() if chars < ONE_GO_BYTES else await self._ctx.aside(parse)

    def _may_ask_again(self) -> bool:
        """Return whether there is time for another answer that takes as long as the last, and a token to pay it with."""
        return not self._overdrawn and self._ctx.tokens_left != 0 and self._ctx.left_ms > self._asked_ms

    # --- asking ---

    async def _ask(self, tools: tuple[ToolDefinition, ...]) -> Completion:
        mind, ctx = self._mind, self._ctx
        prompt = Prompt(
            messages=tuple(self._messages),
            tools=tools,
            settings=mind.settings,
            response_schema=None if tools else mind.response_schema,
        )
        estimated = 0
        left = ctx.tokens_left
        if left is not None:
            estimated = count_prompt(prompt, mind.count)
            if estimated >= left:
                message = f"the prompt is about {estimated} tokens long, and {left} are left"
                raise RefusedError(message, code="BUDGET_TOKENS_EXHAUSTED")
            most = prompt.settings.max_tokens
            room = left - estimated if most is None else min(most, left - estimated)
            prompt = replace(prompt, settings=replace(prompt.settings, max_tokens=room))
        before_ms = ctx.left_ms
        failed: list[ComityError] = []
        reply = await ctx.once(
            f"{MODEL_PREFIX}{mind.model_name}",
            "complete",
            lambda: self._answer(prompt, estimated, failed),
            is_last=_wants_no_tool,
            asked=lambda: self._asked(prompt, failed),
        )
        self._asked_ms = before_ms - ctx.left_ms
        answer: Completion = reply.data if type(reply.data) is Completion else msgspec.convert(reply.data, Completion)
        try:
            ctx.charge(answer.usage)
        except RefusedError as error:
            self._overdrawn = True
            self._warnings.append(error.message)
        return answer

    def _asked(self, prompt: Prompt, failed: Sequence[ComityError]) -> Asked:
        """Return what the span of a request says of it: the words only where they are to be kept."""
        return Asked(
            facts=self._mind.facts,
            settings=prompt.settings,
            wants_json=self._mind.has_protocol,
            prompt=prompt if self._ctx.captures_content else None,
            failures=tuple(error.code for error in failed),
            status_code=failed[-1].facts.get("status_code", 0) if failed else 0,
        )

    async def _answer(self, prompt: Prompt, estimated: int, failed: list[ComityError]) -> Reply:
        """Return the model's answer as a record of it can be kept: without personal data, with what it cost.

        Each attempt that fails is added to `failed`.
        """
        answer = self._sound(await self._patiently(prompt, failed))
        is_long = len(answer.text) >= ONE_GO_BYTES
        if is_long:
            await self._ctx.pause()
        if not answer.usage.total_tokens:  # a provider that does not count
            said = count_messages((Assistant(answer.text, answer.calls),), self._mind.count)
            asked = estimated or count_prompt(prompt, self._mind.count)
            answer = replace(answer, usage=replace(answer.usage, prompt_tokens=asked, completion_tokens=said))
        answer = replace(answer, usage=self._ctx.priced(answer.usage, self._mind.model_name))
        raw = _encode(answer)
        if is_long:
            await self._ctx.pause()
        hidden = await self._ctx.hide(raw)
        if hidden is not raw:
            answer = _decode_completion(hidden)
        return Reply(status=Status.SUCCESS, data=answer, confidence=1.0, usage=answer.usage)

    def _sound(self, answer: Any) -> Completion:
        """Return an answer that can be recorded and charged for. Raises if it is none, which is its model's fault."""
        try:
            sound: Completion = _decode_completion(_encode(answer))
            take_whole(sound.usage.prompt_tokens, "usage.prompt_tokens", TOKENS_CEILING)
            take_whole(sound.usage.completion_tokens, "usage.completion_tokens", TOKENS_CEILING)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError, CallerError) as error:
            raise model_error(Fault.FAILED, f"{self._mind.model_name} answered badly: {error}") from None
        return sound

    async def _patiently(self, prompt: Prompt, failed: list[ComityError]) -> Completion:
        """Ask, and ask again after what is transient, as long as there is time."""
        while True:
            try:
                return await self._stream(prompt)
            except ComityError as error:
                failed.append(error)
                if error.code not in TRANSIENT:
                    raise
                pause_ms = self._mind.thinking.retry.pause_ms(len(failed), left_ms=self._ctx.left_ms, chance=self._ctx.chance())
                if pause_ms is None or (error.retry_after_ms or 0) >= self._ctx.left_ms:
                    raise
                await asyncio.sleep(max(pause_ms, error.retry_after_ms or 0) / MS_PER_S)

    async def _stream(self, prompt: Prompt) -> Completion:
        text = message = None
        visible = AnswerStream()
        answer: Completion | None = None
        fed = 0
        async with contextlib.aclosing(self._mind.model.stream(prompt)) as parts:
            async for part in parts:
                if type(part) is not str:
                    answer = part  # type: ignore[assignment]
                    break
                if text is None:
                    text = self._ctx.write()
                    message = MessageStream() if self._mind.has_protocol else None
                for start in range(0, len(part), _PIECE_CHARS):
                    piece = part[start : start + _PIECE_CHARS]
                    said = visible.feed(piece)
                    text.feed(piece, said if message is None else message.feed(said))
                    fed += len(piece)
                    if fed >= _PIECE_CHARS:
                        fed = 0
                        await self._ctx.pause()
        if text is not None:
            if message is None:
                text.feed("", visible.finish())
            text.finish()
        if answer is None:
            raise model_error(Fault.FAILED, f"{self._mind.model_name} broke off before its answer was whole")
        return answer


def _wants_no_tool(reply: Reply) -> bool:
    return type(reply.data) is Completion and not reply.data.calls


def _doubts(reading: Reading) -> tuple[Problem, ...]:
    """Return why a reply is doubtful in which nothing is wrong by itself."""
    return (Problem("", f"could only be read by guessing ({', '.join(reading.repairs)})"),)


def _plain_reply(answer: Completion) -> Reply:
    """Return the reply of an agent without a protocol: the text is the message."""
    said = split(answer.text)
    if not said.answer.strip():
        what = "the model said nothing" if not said.hidden else "the model thought and said nothing"
        return Reply.failure(what, code="OUTPUT_VALIDATION_FAILED", thought=bounded(said.hidden))
    reading = Reading(status=Word.SUCCESS, thought=said.hidden, data={}, message=said.answer)
    reply = replace(canonical(reading), data=None)
    if answer.finish is Finish.LENGTH:
        cut = "the answer was cut at the most tokens it may have"
        return replace(reply, status=Status.PARTIAL, degraded=True, warnings=(*reply.warnings, cut), confidence=0.5)
    return reply


async def _all(jobs: Sequence[Awaitable[ToolResult]]) -> list[ToolResult]:
    """Do jobs side by side, each to its end; then raise the first thing that ends the turn or the whole tree, if any did."""
    if len(jobs) < 2:
        return [await job for job in jobs]
    outcomes = await asyncio.gather(*jobs, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return outcomes  # type: ignore[return-value]
