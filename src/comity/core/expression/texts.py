"""The string extension: searching, cutting, joining, quoting, formatting; and base64."""

from __future__ import annotations

import base64
import binascii
import math
import re
from collections.abc import Callable
from typing import Any, Final

from comity.core.expression import times
from comity.core.expression.errors import EvaluationError
from comity.core.expression.values import Duration, Timestamp, Type, Uint, is_list, is_map, no_overload, type_name

_LOWER: Final = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
_UPPER: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_QUOTED: Final = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
)
_SPACES: Final = "".join(chr(code) for code in (*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000))  # fmt: skip  # noqa: E501
_VERB: Final = re.compile(r"%(?:(%)|(?:\.(\d{1,3}))?([A-Za-z]))|%")
RESULT_CHARS_MAX: Final = 1_000_000


def _typed(*kinds: type) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a function that takes arguments of these types only."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        def checked(*given: Any) -> Any:
            if any(type(one) is not kind for one, kind in zip(given, kinds, strict=False)):
                raise no_overload(f"{function.__name__.strip('_')}()", *given)
            return function(*given)

        return checked

    return decorate


@_typed(str, int)
def _character(text: str, place: int) -> str:
    if not 0 <= place <= len(text):
        raise EvaluationError(f"the place {place} is outside of the text")
    return text[place : place + 1]


@_typed(str, str, int)
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise EvaluationError(f"the place {start} is outside of the text")
    return text.find(part, start)


@_typed(str, str, int)
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise EvaluationError(f"the place {start} is outside of the text")
    return text.rfind(part, 0, start + len(part))


def _join(items: Any, between: Any = "") -> str:
    if not is_list(items) or type(between) is not str or any(type(one) is not str for one in items):
        raise no_overload("join()", items, between)
    return _bounded(between.join(items))


@_typed(str, str, str, int)
def _replace(text: str, old: str, new: str, count: int = -1) -> str:
    if len(new) * (text.count(old) if old else len(text) + 1) > RESULT_CHARS_MAX:
        raise EvaluationError(f"a text may have {RESULT_CHARS_MAX} characters")
    return text.replace(old, new, count)


@_typed(str, str, int)
def _split(text: str, between: str, count: int = -1) -> list[str]:
    if count == 0:
        return []
    if not between:
        parts = list(text)
        return parts if count < 0 or len(parts) <= count else [*parts[: count - 1], "".join(parts[count - 1 :])]
    return text.split(between, -1 if count < 0 else count - 1)


@_typed(str, int, int)
def _substring(text: str, start: int, end: int | None = None) -> str:
    end = len(text) if end is None else end
    if not 0 <= start <= end <= len(text):
        raise EvaluationError(f"the places {start} to {end} are outside of the text")
    return text[start:end]


@_typed(str)
def _quote(text: str) -> str:
    sound = text.encode(errors="replace").decode(errors="replace") if not text.isascii() else text
    return f'"{sound.translate(_QUOTED)}"'


def _bounded(text: str) -> str:
    if len(text) > RESULT_CHARS_MAX:
        raise EvaluationError(f"a text may have {RESULT_CHARS_MAX} characters")
    return text


def _encode(value: Any) -> str:
    if type(value) is not bytes:
        raise no_overload("base64.encode()", value)
    return base64.b64encode(value).decode()


def _decode(value: Any) -> bytes:
    if type(value) is not str:
        raise no_overload("base64.decode()", value)
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise EvaluationError("the text is no base64") from None


def double(value: float) -> str:
    """Return a double as text: as short as it can be read back."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value.is_integer() and abs(value) < 1e21:
        return f"{'-' if math.copysign(1.0, value) < 0 else ''}{abs(int(value))}"
    return repr(value)


# --- format ---


def _format(pattern: Any, given: Any) -> str:
    if type(pattern) is not str or not is_list(given):
        raise no_overload("format()", pattern, given)
    values = iter(given)

    def piece(found: re.Match[str]) -> str:
        if found[1]:
            return "%"
        verb = found[3]
        if verb is None or verb not in _VERBS:
            raise EvaluationError(f"{found.group()!r} is no part of a format")
        try:
            value = next(values)
        except StopIteration:
            raise EvaluationError("the format has more parts than values") from None
        return _VERBS[verb](value, 6 if found[2] is None else int(found[2]))

    return _bounded(_VERB.sub(piece, pattern))


def _as_string(value: Any, _: int = 6) -> str:
    kind = type(value)
    if kind is str:
        return str(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind in (int, Uint):
        return str(int(value))
    if kind is float:
        return {"+Inf": "Infinity", "-Inf": "-Infinity"}.get(double(value), double(value))
    if kind is bytes:
        return bytes(value).decode(errors="replace")
    if kind is Type:
        return str(value.name)
    if kind is Timestamp:
        return times.timestamp_text(value)
    if kind is Duration:
        return times.duration_text(value)
    if is_list(value):
        return f"[{', '.join(map(_as_string, value))}]"
    if is_map(value):
        entries = sorted((_as_string(key), _as_string(one)) for key, one in value.items())
        return f"{{{', '.join(f'{key}: {one}' for key, one in entries)}}}"
    raise EvaluationError(f"{type_name(value)} cannot be formatted with %s")


def _special(value: Any) -> str | None:
    if type(value) is float and (math.isnan(value) or math.isinf(value)):
        return _as_string(value)
    return None


def _as_decimal(value: Any, _: int) -> str:
    if type(value) in (int, Uint):
        return str(int(value))
    if type(value) is float:
        return _special(value) or _as_string(value)
    raise EvaluationError(f"{type_name(value)} cannot be formatted with %d")


def _as_fixed(value: Any, digits: int) -> str:
    if type(value) not in (int, float, Uint):
        raise EvaluationError(f"{type_name(value)} cannot be formatted with %f")
    return _special(value) or f"{float(value):.{digits}f}"


def _as_scientific(value: Any, digits: int) -> str:
    if type(value) not in (int, float, Uint):
        raise EvaluationError(f"{type_name(value)} cannot be formatted with %e")
    return _special(value) or f"{float(value):.{digits}e}"


def _as_binary(value: Any, _: int) -> str:
    if type(value) is bool:
        return str(int(value))
    if type(value) in (int, Uint):
        return f"{int(value):b}"
    raise EvaluationError(f"{type_name(value)} cannot be formatted with %b")


def _as_octal(value: Any, _: int) -> str:
    if type(value) in (int, Uint):
        return f"{int(value):o}"
    raise EvaluationError(f"{type_name(value)} cannot be formatted with %o")


def _as_hex(value: Any, _: int) -> str:
    if type(value) in (int, Uint):
        return f"{int(value):x}"
    if type(value) is str:
        return str(value).encode(errors="replace").hex()
    if type(value) is bytes:
        return bytes(value).hex()
    raise EvaluationError(f"{type_name(value)} cannot be formatted with %x")


_VERBS: Final[dict[str, Callable[[Any, int], str]]] = {
    "s": _as_string,
    "d": _as_decimal,
    "f": _as_fixed,
    "e": _as_scientific,
    "b": _as_binary,
    "o": _as_octal,
    "x": _as_hex,
    "X": lambda value, digits: _as_hex(value, digits).upper(),
}


def _counts(*counts: int) -> frozenset[int]:
    return frozenset(counts)


def _of_text(function: Callable[[str], Any]) -> Callable[..., Any]:
    return _typed(str)(function)


def _of_texts(function: Callable[[str, str], bool]) -> Callable[..., Any]:
    return _typed(str, str)(function)


Known = dict[str, tuple[Callable[..., Any], frozenset[int]]]
METHODS: Final[Known] = {
    "contains": (_of_texts(lambda text, part: part in text), _counts(2)),
    "startsWith": (_of_texts(lambda text, part: text.startswith(part)), _counts(2)),
    "endsWith": (_of_texts(lambda text, part: text.endswith(part)), _counts(2)),
    "charAt": (_character, _counts(2)),
    "indexOf": (_index_of, _counts(2, 3)),
    "lastIndexOf": (_last_index_of, _counts(2, 3)),
    "join": (_join, _counts(1, 2)),
    "lowerAscii": (_of_text(lambda text: text.translate(_LOWER)), _counts(1)),
    "upperAscii": (_of_text(lambda text: text.translate(_UPPER)), _counts(1)),
    "replace": (_replace, _counts(3, 4)),
    "split": (_split, _counts(2, 3)),
    "substring": (_substring, _counts(2, 3)),
    "trim": (_of_text(lambda text: text.strip(_SPACES)), _counts(1)),
    "reverse": (_of_text(lambda text: text[::-1]), _counts(1)),
    "format": (_format, _counts(2)),
}
FUNCTIONS: Final[Known] = {
    "strings.quote": (_quote, _counts(1)),
    "base64.encode": (_encode, _counts(1)),
    "base64.decode": (_decode, _counts(1)),
}
