"""The reply ladder: from whatever text a model returned to one `Reading`, without ever raising.

    raw        the whole text is the JSON object
    fenced     a fenced block is
    embedded   the first balanced object in the prose that fits is
    repaired   one of these is, once its syntax is mended (`tolerant`)
    fallback   nothing fits: the failure object that SACP §7.2 prescribes, with the raw text in it

An object *fits* when it says a status we know, holds at least one other required field, and has no field of a wrong
type. Where it reports a result (`success`, `completed`) and the agent declares a data schema, `data` must satisfy that;
the other statuses have no result to check. Case and spacing of the status word are mended; `ok` or `done` are not our
words and are not guessed at. Where several objects stand in a text, those that do not fit are passed over.

`repairs` names everything that was done on the way. Most of it is harmless: a fence, a byte order mark, a trailing
comma. A reading is `degraded` when content may have been lost or guessed (`repair.LOSSY`): the text was cut, a missing
field was filled with an empty value, two different replies fitted, a key appeared twice, or nothing fitted at all. A
degraded reading must not satisfy a `success` edge. `problems` says what is wrong in words that can be sent back to the
model; they name places and never repeat values, which may be personal.

A key that appears twice keeps its last value, as in every JSON reader. A clean reply is searched for that only where it
names `status` more than once: that word steers, and looking for every other would double the cost.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.limits import ITEMS_MAX, NESTING_MAX, REPLY_BYTES_MAX
from comity.core.payload import Problem
from comity.core.reply.places import (
    PLACES_MAX,
    Span,
    fences_in,
    mend_surrogates,
    objects_in,
    unescaped,
    without_controls,
    without_thinking,
)
from comity.core.reply.repair import LOSSY, Repair
from comity.core.reply.tolerant import STEPS_MAX, Budget
from comity.core.schema import join

TEXT_CHARS_MAX: Final = 1024 * 1024
# What looking at one more text, and judging one more object, costs beside reading it.
_TEXT_STEPS: Final = 16
_OBJECT_STEPS: Final = 10
# A character outside the first plane as UTF-8; an escaped one has two.
_BYTES_PER_CHAR_MAX: Final = 4
# A reply inside a key, an array or a string, and these inside each other.
WRAPPERS_MAX: Final = 3

FALLBACK_THOUGHT: Final = "System Note: LLM failed to provide structured JSON output."
FALLBACK_MESSAGE: Final = "The LLM returned an invalid response format."


_Path = tuple[str | int, ...]


class Status(StrEnum):
    """The status words of a structured reply, as SACP §2 and §11 spell them."""

    SUCCESS = "success"
    FAILURE = "failure"
    CLARIFICATION_NEEDED = "clarification_needed"
    COMPLETED = "completed"
    RETRY_WITH_INSTRUCTION = "retry_with_instruction"


class Rung(StrEnum):
    """How far down the ladder a reading was found."""

    RAW = "raw"
    FENCED = "fenced"
    EMBEDDED = "embedded"
    REPAIRED = "repaired"
    FALLBACK = "fallback"


class Reading(Struct, frozen=True, kw_only=True):
    """What a text was read as, and how much that can be trusted."""

    status: Status
    thought: str
    data: dict[str, Any]
    message: str
    next_step_hint: str = ""
    degraded: bool = False
    repairs: tuple[str, ...] = ()
    rung: Rung = Rung.RAW
    problems: tuple[Problem, ...] = ()


DataCheck = Callable[[dict[str, Any]], tuple[Problem, ...]]
"""Says what is wrong with `data`, with paths that start at `data`; it reports and does not raise."""


class _Clean(Struct, frozen=True):
    """A reply as it should be; read apart from `Reading`, whose other fields no model may set."""

    thought: str
    status: Status
    data: dict[str, Any]
    message: str
    next_step_hint: str = ""


class _Trail(Struct, frozen=True):
    """How one came to the text or value at hand."""

    rung: Rung = Rung.RAW
    repairs: tuple[Repair, ...] = ()
    wrappers: int = 0

    def after(self, *repairs: Repair, rung: Rung = Rung.RAW) -> _Trail:
        """Return the trail after some repairs, on the lower of both rungs."""
        return _Trail(max(self.rung, rung, key=_HEIGHT.__getitem__), (*self.repairs, *repairs), self.wrappers)

    def inside(self, *repairs: Repair) -> _Trail:
        """Return the trail one wrapper further in."""
        return _Trail(self.rung, (*self.repairs, *repairs), self.wrappers + 1)


class _Fit(Struct, frozen=True):
    """An object that fits, how it was found, and what still is wrong with it."""

    reply: _Clean
    trail: _Trail
    problems: tuple[Problem, ...] = ()


FIELDS: Final = frozenset(_Clean.__struct_fields__)
RESULTS: Final = frozenset({Status.SUCCESS, Status.COMPLETED})
_HEIGHT = {rung: height for height, rung in enumerate(Rung)}

_decode_clean = msgspec.json.Decoder(_Clean).decode
_decode_any = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_REFUSED = (msgspec.DecodeError, UnicodeError, RecursionError)

_BLANKS = " \t\r\n\x00\ufeff\u200b\u2060"
_ENCODED_OBJECT = re.compile(r'\{\s*+\\+"')
_SPACING = str.maketrans("", "", " \t\n_-")
_SPELLINGS = {status.translate(_SPACING): status for status in Status}
_KINDS = {dict: "an object", list: "an array", str: "a string", bool: "a boolean", int: "a number", float: "a number"}


def read(
    text: str,
    *,
    data_schema: DataCheck | None = None,
    text_chars_max: int = TEXT_CHARS_MAX,
    depth_max: int = NESTING_MAX,
    steps_max: int = STEPS_MAX,
) -> Reading:
    """Read a model's reply. `depth_max` bounds `data`, `steps_max` the work of mending broken text."""
    if len(text) > text_chars_max:
        problem = Problem("", f"is {len(text):,} characters; at most {text_chars_max:,} are read")
        return _fall_back(text[:text_chars_max], (problem,))
    if text.count('"status"') == 1:
        try:
            reply = _decode_clean(text)
        except _REFUSED:
            return _climb(text, data_schema, depth_max, steps_max)
        is_shallow = text.count("{") + text.count("[") <= depth_max or _depth(reply.data) <= depth_max
        if is_shallow and (data_schema is None or reply.status not in RESULTS or not data_schema(reply.data)):
            return Reading(
                status=reply.status,
                thought=reply.thought,
                data=reply.data,
                message=reply.message,
                next_step_hint=reply.next_step_hint,
            )
    return _climb(text, data_schema, depth_max, steps_max)


def _climb(text: str, check: DataCheck | None, depth_max: int, steps_max: int) -> Reading:
    if text.count("{") + text.count("[") > ITEMS_MAX:
        return _fall_back(text, (Problem("", f"holds more than {ITEMS_MAX:,} objects and arrays"),))
    search = _Search(check, depth_max, Budget(steps_max))
    whole, repairs = mend_surrogates(text)
    body = whole.removeprefix("ï»¿").strip(_BLANKS)
    if body != whole.strip():
        repairs += (Repair.BOM,)
    answer, has_thinking = without_thinking(body)
    if has_thinking:
        fit = search.best(answer, _Trail(repairs=(*repairs, Repair.THINK_BLOCK)))
        if fit is None and not search.has_seen_reply:
            fit = search.best(body, _Trail(repairs=(*repairs, Repair.INSIDE_THINKING)))
    else:
        fit = search.best(body, _Trail(repairs=repairs))
    if fit is None:
        return _fall_back(whole, search.problems(steps_max))
    return Reading(
        status=fit.reply.status,
        thought=fit.reply.thought,
        data=fit.reply.data,
        message=fit.reply.message,
        next_step_hint=fit.reply.next_step_hint,
        degraded=not LOSSY.isdisjoint(fit.trail.repairs),
        repairs=tuple(dict.fromkeys(fit.trail.repairs)),
        rung=fit.trail.rung,
        problems=fit.problems,
    )


def _fall_back(text: str, problems: tuple[Problem, ...]) -> Reading:
    # Envelopes refuse control characters and what is too long, and this is the one object that must always get through.
    data = {"raw_output": without_controls(text)}
    if len(text) * _BYTES_PER_CHAR_MAX > REPLY_BYTES_MAX:
        while (size := len(_encode(data))) > REPLY_BYTES_MAX:
            data["raw_output"] = data["raw_output"][: len(data["raw_output"]) * REPLY_BYTES_MAX // size - 1]
    return Reading(
        status=Status.FAILURE,
        thought=FALLBACK_THOUGHT,
        data=data,
        message=FALLBACK_MESSAGE,
        degraded=True,
        rung=Rung.FALLBACK,
        problems=problems,
    )


class _Search:
    """Looks for objects that fit, rung by rung, and remembers the nearest miss."""

    __slots__ = ("budget", "check", "depth_max", "near_miss", "near_miss_fields")

    def __init__(self, check: DataCheck | None, depth_max: int, budget: Budget) -> None:
        self.check = check
        self.depth_max = depth_max
        self.budget = budget
        self.near_miss: tuple[Problem, ...] = ()
        self.near_miss_fields = -1

    @property
    def has_seen_reply(self) -> bool:
        """Whether something tried to be a reply; if it does not fit, a draft thought before it is no better."""
        return self.near_miss_fields > 0

    def problems(self, steps_max: int) -> tuple[Problem, ...]:
        """Say why nothing fitted."""
        if self.budget.left <= 0:
            return (*self.near_miss, Problem("", f"is too broken to be read in {steps_max:,} steps"))
        return self.near_miss or (Problem("", "holds no JSON object"),)

    def best(self, text: str, trail: _Trail) -> _Fit | None:
        """Return what fits on the highest rung."""
        if not self.budget.spend(steps=_TEXT_STEPS):
            return None
        found = self._strict(text, trail)
        if found is not None:  # the whole text is JSON, so that no part of it is a document of its own
            return _choose(found)
        fences = fences_in(text)
        for rung in (self._fenced, self._embedded, self._repaired):
            if fit := _choose(list(rung(text, fences, trail))):
                return fit
        # Only the first object of a text may be an escaped one: a later one is what another object quotes.
        start = text.find("{")
        if trail.wrappers < WRAPPERS_MAX and start >= 0 and _ENCODED_OBJECT.match(text, start):
            return self.best(unescaped(text[start:]), trail.inside(Repair.STRING_ENCODED))
        return None

    def _fenced(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        for start, end in fences:
            yield from self._strict(text[start:end], trail.after(Repair.FENCE, rung=Rung.FENCED)) or ()

    def _embedded(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        """Try what is usual and cheap: one object, from the first brace to the last."""
        start, end = text.find("{"), text.rfind("}") + 1
        if 0 <= start < end and end - start < len(text):
            yield from self._strict(text[start:end], _found_at(start, fences, trail)) or ()

    def _repaired(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        """Read every object there is, mending where needed."""
        for start, parsed, is_doubtful in objects_in(text, self.depth_max + WRAPPERS_MAX + 1, self.budget):
            found = trail if (start, parsed.end) == (0, len(text)) else _found_at(start, fences, trail)
            if parsed.repairs:
                found = found.after(*parsed.repairs, rung=Rung.REPAIRED)
            if is_doubtful:
                found = found.after(Repair.INSIDE_BROKEN_OBJECT, rung=Rung.REPAIRED)
            yield from self._unwrap(parsed.value, parsed.cut, found)

    def _strict(self, text: str, trail: _Trail) -> list[_Fit] | None:
        """Return what fits in a text that is JSON from end to end, or None where it is not."""
        try:
            value = _decode_any(text)
            # A key that appears twice loses its first value and the quotes with it.
            if text.count('"') > _encode(value).count(b'"'):
                trail = trail.after(Repair.DUPLICATE_KEY)
        except _REFUSED:
            return None
        return list(self._unwrap(value, None, trail))

    def _unwrap(self, value: Any, cut: _Path | None, trail: _Trail) -> Iterator[_Fit]:
        """Yield what fits: the value itself, or what it wraps in a key, an array or a string."""
        if not self.budget.spend(steps=_OBJECT_STEPS if isinstance(value, dict) else 1):
            return
        if isinstance(value, dict) and (fit := self._fit(value, cut, trail)):
            yield fit
        elif trail.wrappers >= WRAPPERS_MAX:
            return
        elif isinstance(value, dict):
            found = trail.inside(Repair.WRAPPED_IN_KEY, *((Repair.DROPPED_KEYS,) if len(value) > 1 else ()))
            for key in _wrapping_keys(value, is_cut=cut is not None):
                yield from self._unwrap(value[key], _within(cut, key), found)
        elif isinstance(value, list):
            for index, inner in enumerate(value[:PLACES_MAX]):
                yield from self._unwrap(inner, _within(cut, index), trail.inside(Repair.ARRAY_WRAPPED))
        elif isinstance(value, str) and "{" in value and (fit := self.best(value, trail.inside(Repair.STRING_ENCODED))):
            yield fit

    def _fit(self, value: dict[str, Any], cut: _Path | None, trail: _Trail) -> _Fit | None:
        """Return the object as a reply, or None where it is none; what is wrong with the nearest one is kept."""
        draft = _Draft(value)
        reply = draft.reply(cut)
        if reply and (depth := _depth(reply.data)) > self.depth_max:
            draft.wrong("data", f"is nested {depth} levels deep; at most {self.depth_max} are allowed")
        elif reply and self.check and reply.status in RESULTS:
            draft.wrongs += self.check(reply.data)
        problems = (*draft.wrongs, *draft.gaps)
        if reply and not draft.wrongs:
            return _Fit(reply, trail.after(*draft.repairs), problems)
        if (fields := len(FIELDS & value.keys())) > self.near_miss_fields:
            self.near_miss, self.near_miss_fields = problems, fields
        return None


class _Draft:
    """An object measured against the fields of a reply: what is wrong in it, and what is merely not there."""

    __slots__ = ("gaps", "repairs", "value", "wrongs")

    def __init__(self, value: dict[str, Any]) -> None:
        self.value = value
        self.repairs: list[Repair] = []
        self.wrongs: list[Problem] = []
        self.gaps: list[Problem] = []

    def reply(self, cut: _Path | None) -> _Clean | None:
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
        return _Clean(thought, status, data, message, hint)

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
        value = _decode_any(text)
    except _REFUSED:
        return None
    return value if isinstance(value, dict) else None


def _depth(data: dict[str, Any]) -> int:
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


def _choose(fits: list[_Fit]) -> _Fit | None:
    """Return the soundest of those that fit, the first of equals; as sound a one that says something else is a doubt."""
    if not fits:
        return None
    sound = [fit for fit in fits if LOSSY.isdisjoint(fit.trail.repairs)] or fits
    best = min(sound, key=lambda fit: _HEIGHT[fit.trail.rung])
    said = (best.reply.status, best.reply.data, best.reply.message)
    if any((fit.reply.status, fit.reply.data, fit.reply.message) != said for fit in sound):
        return _Fit(best.reply, best.trail.after(Repair.SEVERAL_REPLIES), best.problems)
    return best


def _wrapping_keys(value: dict[str, Any], *, is_cut: bool) -> list[str]:
    """Return the keys under which a whole reply may stand.

    An object with fields of a reply is a reply, good or bad, and what it carries is data: another agent's reply in it
    is not its own. Only `{"data": {…reply…}}` and the like may be a wrapper, unless the text was cut before the rest.
    """
    named = FIELDS & value.keys()
    if not named:
        return list(islice(value, PLACES_MAX))
    return list(named) if len(named) == 1 and not is_cut else []


def _within(cut: _Path | None, step: str | int) -> _Path | None:
    """Return a cut as seen from one step further in; one that lies elsewhere still counts, but at no place."""
    return cut[1:] if cut and cut[0] == step else cut and ()


def _found_at(start: int, fences: list[Span], trail: _Trail) -> _Trail:
    if any(first <= start < last for first, last in fences):
        return trail.after(Repair.FENCE, rung=Rung.FENCED)
    return trail.after(Repair.PROSE, rung=Rung.EMBEDDED)
