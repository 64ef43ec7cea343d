"""Record what a real model answered, once, and play it back in tests: same prompt, same answer, no provider.

    with Cassette("receipt.json", record=resolve("openai:gpt-4o")) as model: ...   # asks and writes down
    with Cassette("receipt.json") as model: ...                                     # plays back; a miss is an error

A prompt that was not recorded raises, and raises again when the cassette is closed: an agent's reply may have hidden it.

Personal data in a prompt is written down as its kind and a number in order (`[[EMAIL_1]]`), whether it stands there in clear or
as a token, which is another one in every session. So the same input finds its take again, and gets it with the data of the
present prompt in the places where the model repeated it. The codes in the marks of quotations, which
are others on every node, are left out.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from comity.core.model.exchange import Assistant, Completion, Message, Prompt, ToolCall
from comity.core.model.quoting import without_codes
from comity.core.redaction.hiding import walls_in
from comity.core.redaction.scan import DEFAULT_SCANNER
from comity.core.redaction.vault import TOKEN
from comity.errors import ComityError, family
from comity.ports import Model

VERSION: Final = 2
_NAME: Final = re.compile(r"\[\[[A-Z][A-Z_]*_[1-9][0-9]*\]\]")
_NOTHING: Final = re.compile(r"(?!)")


class CassetteError(AssertionError):
    """The cassette does not hold what was asked for, or cannot be read."""


class Failure(Struct, frozen=True, omit_defaults=True):
    """An error the model raised, to be raised again."""

    code: str
    message: str
    retry_after_ms: int | None = None


class Take(Struct, frozen=True, omit_defaults=True):
    """One prompt and what came of it. The pieces of a stream are kept as they came, but none ends within what was hidden."""

    prompt: Prompt
    pieces: tuple[str, ...] = ()
    answer: Completion | None = None
    failure: Failure | None = None


class _File(Struct, frozen=True):
    version: int
    model: str
    takes: list[Take]


_encode = msgspec.json.Encoder(order="deterministic").encode
_decode = msgspec.json.Decoder(_File).decode


class _Names:
    """What stands for the personal data of one prompt, in it and in the answer to it."""

    def __init__(self, prompt: Prompt) -> None:
        self._names: dict[str, str] = {}
        self._counts: dict[str, int] = {}
        tools = tuple(replace(tool, description=without_codes(tool.description)) for tool in prompt.tools)
        self.prompt = replace(prompt, messages=tuple(map(self._message, prompt.messages)), tools=tools)
        longest_first = sorted(self._names, key=len, reverse=True)
        self._known = re.compile("|".join(map(re.escape, longest_first))) if longest_first else _NOTHING
        self._values = {name: value for value, name in self._names.items()}

    def hide(self, take: Take) -> Take:
        """Return a take of this prompt as it is written down. What the model brought up by itself stays as it is."""
        return Take(self.prompt, tuple(self._pieces(take.pieces)), *_outcome(take, self._hidden))

    def show(self, take: Take) -> Take:
        """Return a take that was written down, with the data of this prompt."""
        return Take(self.prompt, tuple(map(self._shown, take.pieces)), *_outcome(take, self._shown))

    def _message(self, message: Message) -> Message:
        text = self._named(message.text)
        if isinstance(message, Assistant):
            return replace(message, text=text, calls=_calls(message.calls, self._named))
        return replace(message, text=text)

    def _named(self, text: str) -> str:
        """Return a text of the prompt with a name in the place of each token, and of each value that stands in clear."""
        text = without_codes(text)
        places = [(match.start(), match.end(), match[1]) for match in TOKEN.finditer(text)]
        places += [(span.start, span.end, span.detector.type) for span in DEFAULT_SCANNER.find(text, walls_in(text))]
        parts, end = [], 0
        for start, stop, kind in sorted(places):
            parts += [text[end:start], self._name(kind, text[start:stop])]
            end = stop
        return "".join([*parts, text[end:]])

    def _name(self, kind: str, value: str) -> str:
        if value not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[value] = f"[[{kind}_{self._counts[kind]}]]"
        return self._names[value]

    def _hidden(self, text: str) -> str:
        return self._known.sub(lambda match: self._names[match[0]], text)

    def _shown(self, text: str) -> str:
        return _NAME.sub(lambda match: self._values.get(match[0], match[0]), text)

    def _pieces(self, pieces: tuple[str, ...]) -> Iterator[str]:
        text = "".join(pieces)
        hidden = [match.span() for match in self._known.finditer(text)]
        begin = end = 0
        for piece in pieces:
            end += len(piece)
            if not any(start < end < stop for start, stop in hidden):
                yield self._hidden(text[begin:end])
                begin = end


def _outcome(take: Take, change: Callable[[str], str]) -> tuple[Completion | None, Failure | None]:
    answer, failure = take.answer, take.failure
    if answer is not None:
        answer = replace(answer, text=change(answer.text), calls=_calls(answer.calls, change))
    if failure is not None:
        failure = replace(failure, message=change(failure.message))
    return answer, failure


def _calls(calls: tuple[ToolCall, ...], change: Callable[[str], str]) -> tuple[ToolCall, ...]:
    return tuple(replace(call, arguments=change(call.arguments)) for call in calls)


class Cassette:
    """A `Model` that plays back a file, or with `record` writes one."""

    def __init__(self, path: str | Path, *, record: Model | None = None) -> None:
        self._path = Path(path)
        if self._path.is_dir():
            raise CassetteError(f"{path} is a directory; a cassette is a file")
        self._model = record
        self._name = "" if record is None else record.name
        self._takes: list[Take] = []
        self._left: dict[str, list[Take]] = {}
        self.misses: list[Prompt] = []
        if record is None:
            self._load()

    @property
    def name(self) -> str:
        """The name of the model that was recorded."""
        return self._name

    async def stream(self, prompt: Prompt) -> AsyncGenerator[str | Completion, None]:
        """Play back what was recorded for this prompt, or ask and record."""
        take = self._next(prompt) if self._model is None else await self._record(self._model, prompt)
        for piece in take.pieces:
            yield piece
        if take.failure is not None:
            failure = take.failure
            raise family(failure.code)(failure.message, code=failure.code, retry_after_ms=failure.retry_after_ms)
        if take.answer is not None:
            yield take.answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        if kind is None and self.misses:
            raise CassetteError(f"{self._path} was asked {len(self.misses)} prompts that it does not hold")

    def unused(self) -> int:
        """Return how many takes no model call has asked for."""
        return sum(map(len, self._left.values()))

    def _load(self) -> None:
        try:
            file = _decode(self._path.read_bytes())
        except FileNotFoundError:
            raise CassetteError(f"there is no cassette {self._path}; record it first") from None
        except OSError as error:
            raise CassetteError(f"{self._path} cannot be read: {error.strerror}") from None
        except (msgspec.MsgspecError, ValueError) as error:
            raise CassetteError(f"{self._path} is no cassette: {error}") from None
        if file.version != VERSION:
            raise CassetteError(f"{self._path} has version {file.version}, this program reads {VERSION}; record it again")
        self._name = file.model
        for take in file.takes:
            self._left.setdefault(_key(take.prompt), []).append(take)

    def _next(self, prompt: Prompt) -> Take:
        names = _Names(prompt)
        takes = self._left.get(_key(names.prompt))
        if takes:
            return names.show(takes.pop(0))
        self.misses.append(prompt)
        newest = names.prompt.messages[-1].text[:200] if prompt.messages else ""
        raise CassetteError(f"{self._path} holds no answer to a prompt that ends with {newest!r}; record it again")

    async def _record(self, model: Model, prompt: Prompt) -> Take:
        pieces: list[str] = []
        answer: Completion | None = None
        failure: Failure | None = None
        try:
            async for part in model.stream(prompt):
                if isinstance(part, str):
                    pieces.append(part)
                else:
                    answer = part
        except ComityError as error:
            failure = Failure(error.code, error.message, error.retry_after_ms)
        take = Take(prompt, tuple(pieces), answer, failure)
        self._takes.append(_Names(prompt).hide(take))
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(msgspec.json.format(_encode(_File(VERSION, self._name, self._takes)), indent=1))
        return take


def _key(prompt: Prompt) -> str:
    return hashlib.sha256(_encode(prompt)).hexdigest()
