"""One JSON document inside an envelope: encoded once, bounded, and free of what JSON cannot say.

Inputs and reply data cross from one agent to another as bytes, so that neither can change what the other holds. Encoding and
the tests for suspicious bytes run at C speed; only a document that looks wrong is walked, to name the path of what is wrong.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from enum import StrEnum
from itertools import islice
from typing import Any, TypeGuard

import msgspec

from comity.core.call.limits import ITEMS_MAX, NAME_CHARS_MAX, NESTING_MAX, PROBLEMS_MAX
from comity.core.document.slices import ONE_GO_BYTES, in_one_go

Taker = Callable[[Any], tuple[bytes, dict[str, Any]] | None]


def _foreign(value: Any) -> Any:
    """Make plain data of what the encoder does not know: pydantic models and the like."""
    if isinstance(value, Iterator):
        raise TypeError("what can be read once, or for ever, is no document")
    from pydantic_core import to_jsonable_python  # noqa: PLC0415  slow to import, and most documents are plain data

    return to_jsonable_python(value)


_encode = msgspec.json.Encoder(enc_hook=_foreign).encode
_encode_ordered = msgspec.json.Encoder(enc_hook=_foreign, order="deterministic").encode  # raises where a key is no text
_encode_known = msgspec.json.Encoder().encode
# Returns a fresh Python value of a document that has been checked.
unpack: Callable[[bytes | msgspec.Raw], Any] = msgspec.json.Decoder().decode
# Single bytes as numbers: looking for one of these does not make Python build a search string.
_BACKSLASH, _DELETE, _BRACE, _BRACKET = b"\\\x7f{["
# Below this, a document cannot hold too many values.
_SMALL_BYTES = ITEMS_MAX
# What Python turns into a whole number; more takes it quadratic time.
_DIGITS_MAX = 4_300
# Writes every digit as 0, e and E as e, and any other byte as a space: an exponent is "0e" then, whatever its number is.
_DIGITS_AND_E = bytes(ord("0") if byte in b"0123456789" else ord("e") if byte in b"eE" else ord(" ") for byte in range(256))
_EXPONENTS_MAX = 256  # of a document that the quicker decoder reads
_FEW_OBJECTS, _FEW_LISTS = 16, 4_096
_TEXT = frozenset((str,))
_LEAVES = frozenset((str, int, float, bool, type(None)))
_PLAIN = _LEAVES | {dict, list}
_SAME_BRACKETS = bytes.maketrans(b"[]{}", b"()()")
_NO_STRUCTURE_OR_QUOTE = bytes(set(range(256)) - set(b'[]{},"'))
_NO_COLON_OR_QUOTE = bytes(set(range(256)) - set(b':"'))
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


def unpack_long(raw: bytes) -> Any:
    """Return what `unpack` does, of a document that may be long. Raises `MsgspecError` and what else `unpack` raises.

    msgspec takes up to 18 µs for a number such as 1.5e300, the standard library half a microsecond.
    """
    return _unpack_exponents(raw) if has_many_exponents(raw) else unpack(raw)


def has_many_exponents(raw: bytes) -> bool:
    """Return whether a document is one that the standard library reads sooner."""
    return len(raw) >= ONE_GO_BYTES and raw.translate(_DIGITS_AND_E).count(b"0e") > _EXPONENTS_MAX


def _unpack_exponents(raw: bytes) -> Any:
    """Return what `unpack` does by the standard library, which takes some documents that are none."""
    try:
        value = json.loads(raw.decode(), parse_constant=_refused_constant, parse_float=_finite)
        if b"\\u" in raw:
            _encode(value)  # a surrogate that stands alone
    except UnicodeDecodeError:
        raise
    except ValueError as error:
        raise msgspec.DecodeError(f"JSON is malformed: {error}") from None
    return value


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise msgspec.ValidationError("Number out of range")
    return number


def _refused_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def pack(value: Any, path: str, bytes_max: int, is_named: bool = False) -> bytes:
    """Return `value` as JSON, or raise `PayloadError` naming the path of what JSON or the limits do not allow.

    Keys that are numbers become text, and two that become the same are refused. With `is_named` the caller sees to that for
    the outermost object, which costs less where it is read again anyway.
    """
    try:
        raw = _encode(value)
    except (Exception, SystemExit) as error:  # noqa: BLE001  looking at a value runs its code
        raise PayloadError("INPUT_VALIDATION_FAILED", _unpackable(value, path, error)) from None
    # Each byte that may mean trouble is looked for by itself: that takes less than gathering all of them.
    objects = raw.count(_BRACE)
    brackets = objects + raw.count(_BRACKET) if _BRACKET in raw else objects
    if (size := len(raw)) > _SMALL_BYTES or size > bytes_max or brackets > NESTING_MAX or _BACKSLASH in raw or _DELETE in raw:
        check(raw, path=path, bytes_max=bytes_max)
    if raw.partition(b"null")[1]:  # `bytes.__contains__` tries `int()` first and swallows the error; `find` is slower too
        _check_nulls(raw, value, path)
    if (objects > 1 or (objects and not is_named)) and not _has_text_keys(value, size, objects):
        check_repeats(raw, path)
    return raw


def taker(decode: Callable[[bytes], Any], as_dict: Callable[[Any], dict[str, Any]]) -> Taker:
    """Return a function that packs a value and reads it by types without tables and nulls, or returns None: `pack` has to look.

    The types bound how deep a value is nested, and no key or null in it can mean two things; only characters are looked at.
    """

    def take(value: Any) -> tuple[bytes, dict[str, Any]] | None:
        try:
            raw = _encode_known(value)
            if len(raw) >= ONE_GO_BYTES or _DELETE in raw or (_BACKSLASH in raw and _has_escaped_control(raw)):
                return None
            return raw, as_dict(decode(raw))
        except (Exception, SystemExit):  # noqa: BLE001  looking at a value runs its code
            return None

    return take


def _has_escaped_control(raw: bytes) -> bool:
    return b"\\u00" in raw or b"\\b" in raw or b"\\f" in raw


def unlooked(path: str, raised: BaseException) -> Problem:
    """Return the problem of a value whose own code raised when it was looked at."""
    return Problem(path, f"cannot be looked at: a value raised {type(raised).__name__}")


def _unpackable(value: Any, path: str, error: BaseException) -> tuple[Problem, ...]:
    """Return where a value has no JSON form."""
    try:
        problems = tuple(islice(_unencodable(value, path), PROBLEMS_MAX))
        return problems or (Problem(path, f"has no JSON form: {error}"),)
    except (Exception, SystemExit) as raised:  # noqa: BLE001
        return (unlooked(path, raised),)


def _has_text_keys(value: Any, size: int, objects: int) -> bool:
    """Return whether all keys of a value are known to be text, so that no two of them are written alike.

    Reading what was written and writing it again would tell too, in up to ten times the time. The encoder sorts keys, which
    takes long for one object of very many, so a long value of few objects is looked at here.
    """
    if size < ONE_GO_BYTES or objects > _FEW_OBJECTS:
        return _is_orderly(value)
    inner = [value]
    for one in inner:
        kind = type(one)
        if kind is dict:
            if not _TEXT.issuperset(map(type, one)):
                return False
            one = one.values()  # noqa: PLW2901
        elif kind is not list:
            return False
        kinds = set(map(type, one))
        if not _PLAIN.issuperset(kinds):
            return False
        if not _LEAVES.issuperset(kinds):
            inner += [item for item in one if type(item) not in _LEAVES]
            if len(inner) > _FEW_LISTS:
                return _is_orderly(value)
    return True


def _is_orderly(value: Any) -> bool:
    try:
        _encode_ordered(value)
    except (Exception, SystemExit):  # noqa: BLE001  as in `pack`, and for a key that is no text
        return False
    return True


def check_repeats(raw: bytes, path: str) -> None:
    """Raise `PayloadError` if two keys of an object have become one, such as a number and its digits as text."""
    written = _written_again(raw) if len(raw) < ONE_GO_BYTES else in_one_go(_written_again, raw)
    if written < len(raw) and (problems := tuple(islice(repeated_keys(raw.decode(), path), PROBLEMS_MAX))):
        raise PayloadError("INPUT_VALIDATION_FAILED", problems)


def _written_again(raw: bytes) -> int:
    """Return how many bytes a document has once it was read and written."""
    return len(_encode(unpack_long(raw)))


def _check_nulls(raw: bytes, value: Any, path: str) -> None:
    """Raise `PayloadError` if a null was a number: the encoder writes NaN and Infinity as null, which a schema may accept."""
    written = unpack_long(raw)
    try:
        if written == value:
            return
        plain = msgspec.to_builtins(value, enc_hook=_foreign, str_keys=True)
    except (Exception, SystemExit) as raised:  # noqa: BLE001
        raise PayloadError("INPUT_VALIDATION_FAILED", (unlooked(path, raised),)) from None
    if written != plain:
        _refuse(plain, path, _is_not_finite, "is not a finite number")


def check(raw: bytes, *, path: str, bytes_max: int) -> None:
    """Raise `PayloadError` unless `raw`, which is JSON, stays within the limits and holds no character we refuse."""
    if len(raw) > bytes_max:
        message = f"is {len(raw):,} bytes; at most {bytes_max:,} are allowed"
        raise PayloadError("ENVELOPE_TOO_LARGE", (Problem(path, message),))
    if len(raw) > _SMALL_BYTES or raw.count(_BRACE) + raw.count(_BRACKET) > NESTING_MAX:
        _check_shape(raw, path)
    if _DELETE in raw or (_BACKSLASH in raw and _has_escaped_control(raw)):
        _refuse(unpack_long(raw), path, _has_control, "holds a control character")


def check_keys(raw: bytes | str) -> None:
    """Raise `PayloadError` if a key stands twice in one object of `raw`, which is JSON that has been read before.

    Parsers differ in which of the two they take, so a document from outside that has both means nothing for certain. The
    decoder takes one of them, so fewer keys are written again; another parser then tells which. What Comity itself wrote
    needs no look.
    """
    try:
        encoded = raw if isinstance(raw, bytes) else raw.encode()
        if _keys_of(encoded) == _keys_of(_again(encoded)):
            return
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        pass  # the other parser reads more, and says what is wrong
    text = raw if isinstance(raw, str) else raw.decode()
    try:
        json.loads(text, object_pairs_hook=_count_keys, parse_int=str, parse_float=str)
    except RecursionError:
        raise PayloadError("ENVELOPE_MALFORMED", (Problem("$", "is nested too deep"),)) from None
    except _RepeatedKeyError:
        raise PayloadError("ENVELOPE_MALFORMED", tuple(islice(repeated_keys(text, ""), PROBLEMS_MAX))) from None


def _again(raw: bytes) -> bytes:
    """Return a document as it is written after it was read."""
    return _encode(unpack(raw)) if len(raw) < ONE_GO_BYTES else in_one_go(lambda one: _encode(unpack_long(one)), raw)


def _keys_of(raw: bytes) -> int:
    """Return how many keys stand in a document: as many as colons outside of strings."""
    return _outside(raw, _NO_COLON_OR_QUOTE).count(b":")


def repeated_keys(text: str, path: str) -> Iterator[Problem]:
    """Yield the path of every key that stands twice in one object of a JSON text."""
    stack = [(path, json.loads(text, object_pairs_hook=_Members, parse_int=str, parse_float=str))]
    while stack:
        here, item = stack.pop()
        if isinstance(item, _Members):
            seen: set[str] = set()
            for key, inner in item:
                if key in seen:
                    yield Problem(step(here, key), "stands twice")
                seen.add(key)
                stack.append((step(here, key), inner))
        elif isinstance(item, list):
            stack.extend((f"{here}[{index}]", inner) for index, inner in enumerate(item))


class _Members(list[tuple[str, Any]]):
    """The members of an object as they stand in its text."""


class _RepeatedKeyError(Exception):
    """A key stands twice in one object."""


def _count_keys(members: list[tuple[str, Any]]) -> None:
    if len(members) > 1 and len(dict(members)) < len(members):
        raise _RepeatedKeyError


def out_of_range(raw: bytes, path: str) -> tuple[Problem, ...]:
    """Name the numbers of a document that are too large to be read; the decoder does not say under which keys they stand."""
    try:
        document = json.loads(raw, parse_int=lambda digits: int(digits) if len(digits) < _DIGITS_MAX else math.inf)
    except (ValueError, RecursionError):  # something else is wrong as well
        return ()
    found = (Problem(where, "is a number out of range") for where, item, _ in walk(document, path) if _is_not_finite(item))
    return tuple(islice(found, PROBLEMS_MAX))


def is_text(value: Any) -> TypeGuard[str]:
    """Return whether a value is text that can be written down; the encoder knows no other kinds of `str`."""
    return type(value) is str or issubclass(type(value), StrEnum)


def text_problem(text: Any, *, path: str, bytes_max: int) -> Problem | None:
    """Return what is wrong with a plain text field, if anything."""
    if not is_text(text):
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


def readable(text: str, bytes_max: int) -> str:
    """Return any text, such as an exception's, as a text that `text_problem` finds nothing wrong with."""
    cut = text[:bytes_max].encode(errors="replace")[:bytes_max]
    return _CONTROL.sub("?", cut.decode(errors="ignore"))


def walk(value: Any, path: str) -> Iterator[tuple[str, Any, int]]:
    """Yield the path, value and depth of everything in a document, keys included, without recursion."""
    stack = [(path, value, 0)]
    while stack:
        here, item, depth = stack.pop()
        yield here, item, depth
        if dataclasses.is_dataclass(item) and not isinstance(item, type):
            item = {field.name: getattr(item, field.name) for field in dataclasses.fields(item)}
        elif isinstance(item, msgspec.Struct):
            item = msgspec.structs.asdict(item)
        if isinstance(item, Mapping):
            for key, inner in item.items():
                where = step(here, key)
                yield where, key, depth
                stack.append((where, inner, depth + 1))
        elif isinstance(item, (list, tuple)):
            stack.extend((f"{here}[{index}]", inner, depth + 1) for index, inner in enumerate(item))


def step(path: str, key: Any) -> str:
    """Return the path of what a key leads to; a key that cannot be shown as it is shows as `?`."""
    if isinstance(key, str):
        shown = key if key.isprintable() and len(key) <= NAME_CHARS_MAX else "?"
    else:
        shown = str(key) if isinstance(key, (int, float)) else "?"
    return f"{path}.{shown}" if path else shown


def _outside(raw: bytes, others: bytes) -> bytes:
    """Return the bytes of a document that stand outside of strings, without `others`; `[` and `{` become `(`.

    All at once: a loop over the tokens takes several times longer.
    """
    if _BACKSLASH in raw:
        raw = raw.replace(rb"\\", b"").replace(rb"\"", b"")
    # A string without a byte that counts leaves two quotes side by side. If all quotes go in pairs, no string had any.
    structure = raw.translate(_SAME_BRACKETS, others).replace(b'""', b"")
    if b'"' in structure:
        pieces = raw.split(b'"')[::2]  # every other piece is a string
        structure = b"".join(pieces).translate(_SAME_BRACKETS, others)
    return structure


def check_count(raw: bytes, path: str, items_max: int = ITEMS_MAX) -> bytes:
    """Raise `PayloadError` if a document holds too many values, before it is read; return its brackets and commas."""
    structure = _outside(raw, _NO_STRUCTURE_OR_QUOTE)
    values = structure.count(b",") + structure.count(b"(")
    if values > items_max:
        message = f"holds {values:,} values; at most {ITEMS_MAX:,} are allowed"
        raise PayloadError("ENVELOPE_TOO_LARGE", (Problem(path, message),))
    return structure


def _check_shape(raw: bytes, path: str) -> None:
    """Raise `PayloadError` if a document holds too many values, or is nested too deep."""
    brackets = check_count(raw, path).replace(b",", b"")
    for _ in range(NESTING_MAX):
        brackets = brackets.replace(b"()", b"")  # the innermost pairs go, so each round takes one level away
        if not brackets:
            return
    message = f"is nested more than {NESTING_MAX} levels deep"
    raise PayloadError("INPUT_VALIDATION_FAILED", (Problem(path, message),))


def _refuse(value: Any, path: str, is_bad: Any, message: str) -> None:
    found = (Problem(where, message) for where, item, _ in walk(value, path) if is_bad(item))
    if problems := tuple(islice(found, PROBLEMS_MAX)):
        raise PayloadError("INPUT_VALIDATION_FAILED", problems)


def _is_not_finite(item: Any) -> bool:
    return isinstance(item, float) and not math.isfinite(item)


def _has_control(item: Any) -> bool:
    return isinstance(item, str) and _CONTROL.search(item) is not None


def _unencodable(value: Any, path: str) -> Iterator[Problem]:
    """Find the leaves that have no JSON form; bounded, since the value may be endless or contain itself."""
    for count, (where, item, depth) in enumerate(walk(value, path)):
        is_inner = isinstance(item, (Mapping, list, tuple, msgspec.Struct)) or dataclasses.is_dataclass(item)
        if depth >= NESTING_MAX and is_inner:
            yield Problem(where, f"is nested more than {NESTING_MAX} levels deep, or contains itself")
            return
        if count > ITEMS_MAX:
            yield Problem(path, f"holds more than {ITEMS_MAX:,} values, one of them without a JSON form")
            return
        if is_inner:
            keys = [key for key in item if not isinstance(key, str)] if isinstance(item, Mapping) else ()
            yield from (Problem(where, f"{type(key).__name__} cannot be a key") for key in keys if not _is_encodable({key: 0}))
        elif not _is_encodable(item):
            what = "text that is not valid UTF-8" if isinstance(item, str) else type(item).__name__
            yield Problem(where, f"{what} has no JSON form")


def _is_encodable(value: Any) -> bool:
    try:
        _encode(value)
    except (TypeError, RecursionError, ValueError):
        return False
    return True
