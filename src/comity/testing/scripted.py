"""A model that says what a test wrote down: answers, tool calls, errors, delays and stalls, by list, by rule or by function."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from comity.core.envelope.usage import Usage
from comity.core.model.exchange import Completion, Finish, Prompt, ToolCall
from comity.core.model.tokens import count_prompt, estimate
from comity.core.units import MS_PER_S


class Answer(Struct, frozen=True, kw_only=True):
    """One thing the model does: wait `delay_ms`, send the text piece by piece, then end, or stall or fail instead of ending."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None  # estimated from the texts if not given
    finish: Finish | None = None
    delay_ms: int = 0
    piece_chars: int | None = None  # the text is sent in pieces so long; None sends only the whole answer
    piece_delay_ms: int = 0  # before each piece
    stalls: bool = False  # send the pieces, then nothing for ever
    fails: Exception | None = None  # raised after the pieces


Step = str | Answer | ToolCall | Exception | Mapping[str, Any] | Sequence[ToolCall]
"""What a script may hold: text, an `Answer`, tool calls, an error to raise, or an object that is sent as JSON text."""

Script = Iterable[Step] | Mapping[str, Step] | Callable[[Prompt], Step]


class ScriptError(AssertionError):
    """The script does not say what the model does now."""


def tool_call(name: str, /, **arguments: Any) -> ToolCall:
    """Return a call of a tool for a script; the model gives it an id when it makes it."""
    return ToolCall(id="", name=name, arguments=json.dumps(arguments))


class ScriptedModel:
    """A `Model` without a provider.

    `script` is a list of steps, taken in order; a mapping, of which the first key that stands in the newest message is
    taken; or a function from the prompt to a step. `prompts` holds every prompt it was given, `streams_open` counts the
    answers under way.
    """

    def __init__(self, script: Script, *, name: str = "scripted") -> None:
        self._name = name
        self._script = script if callable(script) or isinstance(script, Mapping) else iter(tuple(script))
        self._ids = itertools.count(1)
        self.prompts: list[Prompt] = []
        self.streams_open = 0

    @property
    def name(self) -> str:
        """How it is called in reports."""
        return self._name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Do the next step of the script."""
        self.prompts.append(prompt)
        answer = answer_of(self._next(prompt))
        self.streams_open += 1
        try:
            if answer.delay_ms:
                await asyncio.sleep(answer.delay_ms / MS_PER_S)
            for start in range(0, len(answer.text), answer.piece_chars) if answer.piece_chars else ():
                if answer.piece_delay_ms:
                    await asyncio.sleep(answer.piece_delay_ms / MS_PER_S)
                yield answer.text[start : start + answer.piece_chars]  # type: ignore[operator]
            if answer.stalls:
                await asyncio.get_running_loop().create_future()
            if answer.fails is not None:
                raise answer.fails
            yield completion_of(answer, model=self._name, ids=self._ids, count=lambda: count_prompt(prompt))
        finally:
            self.streams_open -= 1

    def _next(self, prompt: Prompt) -> Step:
        script = self._script
        if callable(script):
            return script(prompt)
        if isinstance(script, Mapping):
            newest = prompt.messages[-1].text
            for text, step in script.items():
                if text in newest:
                    return step
            raise ScriptError(f"no rule of {self._name} is for the message {newest[:200]!r}")
        try:
            return next(script)
        except StopIteration:
            raise ScriptError(f"{self._name} was asked {len(self.prompts)} times, and its script is shorter") from None


def completion_of(answer: Answer, *, model: str, ids: Iterator[int], count: Callable[[], int]) -> Completion:
    """Return an answer as the model gives it: with ids, and with its usage, for which `count` counts the prompt if need be."""
    calls = tuple(msgspec.structs.replace(call, id=call.id or f"call_{next(ids)}") for call in answer.calls)
    usage = answer.usage
    if usage is None:
        said = estimate(answer.text) + sum(estimate(call.name + call.arguments) for call in calls)
        usage = Usage(prompt_tokens=count(), completion_tokens=said)
    finish = answer.finish or (Finish.TOOL_CALLS if calls else Finish.STOP)
    return Completion(text=answer.text, calls=calls, usage=usage, finish=finish, model=model)


def answer_of(step: Step) -> Answer:
    """Return a step of a script as an answer."""
    match step:
        case str():
            return Answer(text=step)
        case Answer():
            return step
        case ToolCall():
            return Answer(calls=(step,))
        case Exception():
            return Answer(fails=step)
        case Mapping():
            return Answer(text=json.dumps(step))
        case _:
            return Answer(calls=tuple(step))
