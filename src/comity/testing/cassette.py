"""Record what a real model answered, once, and play it back in tests: same prompt, same answer, no provider.

    with Cassette("receipt.json", record=resolve("openai:gpt-4o")) as model: ...   # asks and writes down
    with Cassette("receipt.json") as model: ...                                     # plays back; a miss is an error

A prompt that was not recorded raises, and raises again when the cassette is closed: an agent's reply may have hidden it.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

import msgspec
from msgspec import Struct

from comity.core.model import Completion, Prompt
from comity.errors import ComityError, family
from comity.ports import Model

VERSION: Final = 1


class CassetteError(AssertionError):
    """The cassette does not hold what was asked for, or cannot be read."""


class Failure(Struct, frozen=True, omit_defaults=True):
    """An error the model raised, to be raised again."""

    code: str
    message: str
    retry_after_ms: int | None = None


class Take(Struct, frozen=True, omit_defaults=True):
    """One prompt and what came of it. The pieces of a stream are kept as they came."""

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


class Cassette:
    """A `Model` that plays back a file, or with `record` writes one."""

    def __init__(self, path: str | Path, *, record: Model | None = None) -> None:
        self._path = Path(path)
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
        """Return how many takes nobody asked for."""
        return sum(map(len, self._left.values()))

    def _load(self) -> None:
        try:
            file = _decode(self._path.read_bytes())
        except FileNotFoundError:
            raise CassetteError(f"there is no cassette {self._path}; record it first") from None
        except msgspec.MsgspecError as error:
            raise CassetteError(f"{self._path} is no cassette: {error}") from None
        if file.version != VERSION:
            raise CassetteError(f"{self._path} has version {file.version}, this program reads {VERSION}; record it again")
        self._name = file.model
        for take in file.takes:
            self._left.setdefault(_key(take.prompt), []).append(take)

    def _next(self, prompt: Prompt) -> Take:
        takes = self._left.get(_key(prompt))
        if takes:
            return takes.pop(0)
        self.misses.append(prompt)
        newest = prompt.messages[-1].text[:200] if prompt.messages else ""
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
        self._takes.append(take)
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(msgspec.json.format(_encode(_File(VERSION, self._name, self._takes)), indent=1))
        return take


def _key(prompt: Prompt) -> str:
    return hashlib.sha256(_encode(prompt)).hexdigest()
