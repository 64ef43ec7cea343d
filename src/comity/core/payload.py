"""One JSON document inside an envelope: encoded once, bounded, and free of what JSON cannot say.

Inputs and reply data cross from one agent to another as bytes, so that neither can change what the other holds. Encoding and
the tests for suspicious bytes run at C speed; only a document that looks wrong is walked, to name the path of what is wrong.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from pydantic_core import PydanticSerializationError, to_json

from comity.core.limits import ITEMS_MAX, NESTING_MAX

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
# Single bytes as numbers: looking for one of these does not make Python build a search string.
_BACKSLASH, _DELETE, _BRACE, _BRACKET = b"\\\x7f{["
# Below this, a document cannot hold too many values.
_SMALL_BYTES = ITEMS_MAX
# Strings are matched whole so that brackets and commas inside them do not count.
_STRUCTURE = re.compile(rb'"(?:[^"\\]|\\.)*"|([\[{])|([\]}])|(,)', re.DOTALL)
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Problem(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing that is wrong with a document: where, and what. Never the value itself, which may be personal."""

    path: str
    message: str


class PayloadError(ValueError):
    """The value cannot be a document of an envelope."""

    def __init__(self, code: str, problems: tuple[Problem, ...]) -> None:
        self.code = code
        self.problems = problems
        super().__init__("; ".join(f"{p.path}: {p.message}" for p in problems))


def pack(value: Any, *, path: str, bytes_max: int) -> bytes:
    """Return `value` as JSON, or raise `PayloadError` naming the path of what JSON or the limits do not allow."""
    try:
        raw = _encode(value)
    except (TypeError, RecursionError, ValueError):
        return _pack_carefully(value, path, bytes_max)
    if b"null" in raw:  # the fast encoder writes NaN as null, which a schema may accept
        return _pack_carefully(value, path, bytes_max)
    if (
        len(raw) > _SMALL_BYTES
        or len(raw) > bytes_max
        or _BACKSLASH in raw
        or _DELETE in raw
        or raw.count(_BRACE) + raw.count(_BRACKET) > NESTING_MAX
    ):
        check(raw, path=path, bytes_max=bytes_max)
    return raw


def _pack_carefully(value: Any, path: str, bytes_max: int) -> bytes:
    """Encode with the encoder that keeps non-finite numbers visible and knows pydantic's types."""
    try:
        raw = to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, RecursionError, ValueError) as error:
        raise _failed("INPUT_VALIDATION_FAILED", _unencodable(value, path), path, str(error)) from None
    check(raw, path=path, bytes_max=bytes_max)
    return raw


def check(raw: bytes, *, path: str, bytes_max: int) -> None:
    """Raise `PayloadError` unless `raw`, which is JSON, stays within the limits and holds no number or character we refuse."""
    if len(raw) > bytes_max:
        message = f"is {len(raw):,} bytes; at most {bytes_max:,} are allowed"
        raise PayloadError("ENVELOPE_TOO_LARGE", (Problem(path, message),))
    if len(raw) > ITEMS_MAX or raw.count(b"{") + raw.count(b"[") > NESTING_MAX:
        _check_shape(raw, path)
    if b"NaN" in raw or b"Infinity" in raw:
        _refuse(_decode_constants(raw), path, _is_not_finite, "is not a finite number")
    if b"\x7f" in raw or (b"\\" in raw and (b"\\u00" in raw or b"\\b" in raw or b"\\f" in raw)):
        _refuse(_decode_constants(raw), path, _has_control, "holds a control character")


def unpack(raw: bytes | msgspec.Raw) -> Any:
    """Return a fresh Python value of a document that has been checked."""
    return _decode(raw)


def text_problem(text: Any, *, path: str, bytes_max: int) -> Problem | None:
    """Return what is wrong with a plain text field, if anything."""
    if not isinstance(text, str):
        return Problem(path, f"must be text, not {type(text).__name__}")
    if not text:
        return None
    if text.isascii():
        size = len(text)
    else:
        try:
            size = len(text.encode())
        except UnicodeEncodeError:
            return Problem(path, "holds a surrogate that is not valid UTF-8")
    if size > bytes_max:
        return Problem(path, f"is {size:,} bytes; at most {bytes_max:,} are allowed")
    if _CONTROL.search(text):
        return Problem(path, "holds a control character")
    return None


def walk(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield every (path, value) of a document, keys included, without recursion."""
    stack = [(path, value)]
    while stack:
        here, item = stack.pop()
        yield here, item
        if isinstance(item, Mapping):
            for key, inner in item.items():
                yield f"{here}.{key}" if isinstance(key, str) and key.isprintable() else f"{here}.?", key
                stack.append((f"{here}.{key}", inner))
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{here}[{index}]", inner) for index, inner in enumerate(item))


def _check_shape(raw: bytes, path: str) -> None:
    depth = deepest = commas = opened = 0
    for match in _STRUCTURE.finditer(raw):
        opens, closes, comma = match.groups()
        if opens:
            opened += 1
            depth += 1
            deepest = max(deepest, depth)
        elif closes:
            depth -= 1
        elif comma:
            commas += 1
    if deepest > NESTING_MAX:
        message = f"is nested {deepest} levels deep; at most {NESTING_MAX} are allowed"
        raise PayloadError("INPUT_VALIDATION_FAILED", (Problem(path, message),))
    if commas + opened > ITEMS_MAX:
        message = f"holds {commas + opened:,} values; at most {ITEMS_MAX:,} are allowed"
        raise PayloadError("ENVELOPE_TOO_LARGE", (Problem(path, message),))


def _decode_constants(raw: bytes) -> Any:
    from pydantic_core import from_json  # noqa: PLC0415  only suspicious documents come here

    return from_json(raw, allow_inf_nan=True)


def _refuse(value: Any, path: str, is_bad: Any, message: str) -> None:
    problems = tuple(Problem(where, message) for where, item in walk(value, path) if is_bad(item))
    if problems:
        raise PayloadError("INPUT_VALIDATION_FAILED", problems[:ITEMS_MAX])


def _is_not_finite(item: Any) -> bool:
    return isinstance(item, float) and not math.isfinite(item)


def _has_control(item: Any) -> bool:
    return isinstance(item, str) and _CONTROL.search(item) is not None


def _unencodable(value: Any, path: str) -> Iterator[Problem]:
    """Find the leaves that have no JSON form; bounded, since the value may be endless or contain itself."""
    for count, (where, item) in enumerate(walk(value, path)):
        if count > ITEMS_MAX or where.count(".") + where.count("[") > NESTING_MAX + 8:
            yield Problem(where[:200], f"is nested deeper than {NESTING_MAX} levels or contains itself")
            return
        if isinstance(item, (Mapping, list, tuple)):
            continue
        try:
            to_json(item)
        except (PydanticSerializationError, ValueError):
            what = "text that is not valid UTF-8" if isinstance(item, str) else type(item).__name__
            yield Problem(where, f"{what} has no JSON form")


def _failed(code: str, found: Iterator[Problem], path: str, why: str) -> PayloadError:
    problems = tuple(found) or (Problem(path, f"has no JSON form: {why}"),)
    return PayloadError(code, problems)
