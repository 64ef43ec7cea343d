"""The fields of a structured reply, and an object measured against them."""

from __future__ import annotations

from enum import StrEnum
from itertools import chain
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.document.payload import Problem
from comity.core.document.schema import join
from comity.core.model.reply.repair import Repair

Path = tuple[str | int, ...]


class Status(StrEnum):
    """The status words of a structured reply, as SACP §2 and §11 spell them."""

    SUCCESS = "success"
    FAILURE = "failure"
    CLARIFICATION_NEEDED = "clarification_needed"
    COMPLETED = "completed"
    RETRY_WITH_INSTRUCTION = "retry_with_instruction"


class Said(Struct, frozen=True, forbid_unknown_fields=True):
    """A reply as it should be; read apart from `Reading`, whose other fields no model may set."""

    thought: str
    status: Status
    data: dict[str, Any]
    message: str
    next_step_hint: str = ""


FIELDS: Final = frozenset(Said.__struct_fields__)
REFUSED: Final = (msgspec.DecodeError, UnicodeError, RecursionError)

decode_said = msgspec.json.Decoder(Said).decode
decode_any = msgspec.json.Decoder().decode
_SPACING = str.maketrans("", "", " \t\n_-")
_SPELLINGS = {status.translate(_SPACING): status for status in Status}
_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


class Draft:
    """An object measured against the fields of a reply: what is wrong in it, and what is merely not there."""

    __slots__ = ("gaps", "repairs", "value", "wrongs")

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.repairs: list[Repair] = []
        self.wrongs: list[Problem] = []
        self.gaps: list[Problem] = []

    def reply(self, cut: Path | None) -> Said | None:
        """Return the reply, with empty values for missing fields as long as one besides the status is there."""
        # A word the text breaks off in may be another word: `success` and what would have followed.
        status = None if cut == ("status",) else self._status()
        thought: str = self._take("thought", str)
        data: dict[str, Any] = self._take("data", dict)
        message: str = self._take("message", str)
        has_content = len(self.gaps) < 3
        if self.gaps:
            self.repairs.append(Repair.FILLED_FIELD)
        hint = self._hint()
        if cut is not None:
            self.gaps.append(Problem(join(str(cut[0]), cut[1:]) if cut else "", "is cut off before its end"))
        if status is None or self.wrongs or not has_content:
            return None
        return Said(thought, status, data, message, hint)

    def wrong(self, path: str, message: str) -> None:
        self.wrongs.append(Problem(path, message))

    def _status(self) -> Status | None:
        word = self.value.get("status")
        if not isinstance(word, str):
            self.wrong("status", "is required and missing" if word is None else f"must be a string, not {_kind(word)}")
            return None
        status = _SPELLINGS.get(word.translate(_SPACING).lower())
        if status is None:
            self.wrong("status", f"must be one of {', '.join(Status)}")
        elif status != word:
            self.repairs.append(Repair.STATUS_SPELLING)
        return status

    def _take(self, name: str, kind: type[Any]) -> Any:
        found = self.value.get(name)
        if kind is dict and isinstance(found, str) and (decoded := _decode_object(found)) is not None:
            self.repairs.append(Repair.STRING_ENCODED)
            return decoded
        if isinstance(found, kind):
            return found
        if found is None:
            self.gaps.append(Problem(name, "is required and missing"))
        else:
            self.wrong(name, f"must be {_KINDS[kind]}, not {_kind(found)}")
        return kind()

    def _hint(self) -> str:
        hint = self.value.get("next_step_hint", "")
        if isinstance(hint, str):
            return hint
        if hint is None:
            self.repairs.append(Repair.NULL_HINT)
        else:
            self.wrong("next_step_hint", f"must be a string, not {_kind(hint)}")
        return ""


def _kind(value: Any) -> str:
    return _KINDS.get(type(value), "null")


def _decode_object(text: str) -> dict[str, Any] | None:
    try:
        value = decode_any(text)
    except REFUSED:
        return None
    return value if isinstance(value, dict) else None


def depth_of(data: dict[str, Any]) -> int:
    """Return how many containers stand inside each other, level by level, since recursion has a limit of its own."""
    depth = 0
    objects: list[dict[str, Any]] = [data]
    arrays: list[list[Any]] = []
    while objects or arrays:
        depth += 1
        children = [*chain.from_iterable(map(dict.values, objects)), *chain.from_iterable(arrays)]
        objects = [child for child in children if type(child) is dict]
        arrays = [child for child in children if type(child) is list]
    return depth
