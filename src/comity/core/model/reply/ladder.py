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
from collections.abc import Callable, Iterator, Sequence
from enum import StrEnum
from itertools import islice
from typing import Any, Final

import msgspec
from msgspec import Struct

from comity.core.call.limits import ITEMS_MAX, NESTING_MAX, REPLY_BYTES_MAX
from comity.core.document.payload import Problem
from comity.core.model.reply.fields import FIELDS, REFUSED, Draft, Path, Said, Status, decode_any, decode_said, depth_of
from comity.core.model.reply.marks import split
from comity.core.model.reply.places import (
    PLACES_MAX,
    Span,
    fences_in,
    mend_surrogates,
    objects_in,
    unescaped,
    without_controls,
)
from comity.core.model.reply.quotes import (
    EXAMPLE,
    is_example,
    is_only_mentioned,
    is_part_of_code,
    is_shown_as_example,
    replies_in,
)
from comity.core.model.reply.repair import LOSSY, Repair
from comity.core.model.reply.tolerant import STEPS_MAX, Budget, Parsed, parse

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
    extra: dict[str, Any] = {}  # fields that the protocol does not know


DataCheck = Callable[[dict[str, Any]], tuple[Problem, ...]]
"""Says what is wrong with `data`, with paths that start at `data`; it reports and does not raise."""


class _Trail(Struct, frozen=True):
    """How one came to the text or value at hand."""

    rung: Rung = Rung.RAW
    repairs: tuple[Repair, ...] = ()
    wrappers: int = 0

    @property
    def is_lossy(self) -> bool:
        """Whether content may have been lost or guessed on the way."""
        return not LOSSY.isdisjoint(self.repairs)

    def after(self, *repairs: Repair, rung: Rung = Rung.RAW) -> _Trail:
        """Return the trail after some repairs, on the lower of both rungs."""
        return _Trail(max(self.rung, rung, key=_HEIGHT.__getitem__), (*self.repairs, *repairs), self.wrappers)

    def inside(self, *repairs: Repair) -> _Trail:
        """Return the trail one wrapper further in."""
        return _Trail(self.rung, (*self.repairs, *repairs), self.wrappers + 1)


class _Fit(Struct, frozen=True):
    """An object that fits, how it was found, and what still is wrong with it."""

    reply: Said
    trail: _Trail
    problems: tuple[Problem, ...] = ()
    extra: dict[str, Any] = {}

    @property
    def said(self) -> tuple[Status, dict[str, Any], str]:
        """What two replies must have in common to be the same."""
        return self.reply.status, self.reply.data, self.reply.message


RESULTS: Final = frozenset({Status.SUCCESS, Status.COMPLETED})
_HEIGHT = {rung: height for height, rung in enumerate(Rung)}

_encode = msgspec.json.Encoder().encode

_BLANKS = " \t\r\n\x00\ufeff\u200b\u2060"
_ENCODED_OBJECT = re.compile(r'\{\s*+\\+"')
# An object at the end of thinking, perhaps with the end of a fence or a tag after it.
_ENDS_WITH_OBJECT = re.compile(r"\}(?:\s|```|</\w{1,20}>)*\Z")
_ATTEMPT = re.compile(r'\{\s*+"(?:thought|status|data|message)"\s*+:')


def read(
    text: str,
    *,
    data_schema: DataCheck | None = None,
    examples: Sequence[Said] = (EXAMPLE,),
    prompt: str = "",
    text_chars_max: int = TEXT_CHARS_MAX,
    depth_max: int = NESTING_MAX,
    steps_max: int = STEPS_MAX,
) -> Reading:
    """Read a model's reply. `depth_max` bounds `data`, `steps_max` the work of mending broken text.

    `examples` are the replies that the model was shown: none of them is its own. Nor is an object of its `prompt`, unless the
    whole text is that object.
    """
    if len(text) > text_chars_max:
        problem = Problem("", f"is {len(text):,} characters; at most {text_chars_max:,} are read")
        return _fall_back(text[:text_chars_max], (problem,))
    if text.count('"status"') == 1:
        try:
            reply = decode_said(text)
        except REFUSED:
            return _climb(text, _Search(data_schema, depth_max, steps_max, examples, prompt))
        is_shallow = text.count("{") + text.count("[") <= depth_max or depth_of(reply.data) <= depth_max
        is_own = is_shallow and not is_example(reply, examples, is_cut=False)
        if is_own and (data_schema is None or reply.status not in RESULTS or not data_schema(reply.data)):
            return Reading(
                status=reply.status,
                thought=reply.thought,
                data=reply.data,
                message=reply.message,
                next_step_hint=reply.next_step_hint,
            )
    return _climb(text, _Search(data_schema, depth_max, steps_max, examples, prompt))


def _climb(text: str, search: _Search) -> Reading:
    if text.count("{") + text.count("[") > ITEMS_MAX:
        return _fall_back(text, (Problem("", f"holds more than {ITEMS_MAX:,} objects and arrays"),))
    whole, repairs = mend_surrogates(text)
    body = whole.removeprefix("ï»¿").strip(_BLANKS)
    if body != whole.strip():
        repairs += (Repair.BOM,)
    answer, hidden, is_marked = (body, "", False) if _is_json(body) else split(body, Budget(search.steps_max))
    fit = search.best(answer, _Trail(repairs=(*repairs, Repair.THINK_BLOCK) if is_marked else repairs))
    if is_marked and fit is None and not answer and _ENDS_WITH_OBJECT.search(hidden):
        # Nothing was said but thoughts, and the last of them is a reply: perhaps the model never meant to go on.
        fit = search.best(hidden, _Trail(repairs=(*repairs, Repair.INSIDE_THINKING)))
    if fit is None:
        return _fall_back(whole, search.problems())
    return Reading(
        status=fit.reply.status,
        thought=fit.reply.thought,
        data=fit.reply.data,
        message=fit.reply.message,
        next_step_hint=fit.reply.next_step_hint,
        degraded=fit.trail.is_lossy,
        repairs=tuple(dict.fromkeys(fit.trail.repairs)),
        rung=fit.trail.rung,
        problems=fit.problems,
        extra=fit.extra,
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

    __slots__ = ("budget", "check", "depth_max", "examples", "near_miss", "near_miss_fields", "prompt", "steps_max")

    def __init__(self, check: DataCheck | None, depth_max: int, steps_max: int, examples: Sequence[Said], prompt: str) -> None:
        self.check = check
        self.depth_max = depth_max
        self.steps_max = steps_max
        self.budget = Budget(steps_max)
        self.examples = examples
        self.prompt: str | list[Said] = prompt  # its replies once they were needed
        self.near_miss: tuple[Problem, ...] = ()
        self.near_miss_fields = -1

    def problems(self) -> tuple[Problem, ...]:
        """Say why nothing fitted."""
        if self.budget.left <= 0:
            return (*self.near_miss, Problem("", f"is too broken to be read in {self.steps_max:,} steps"))
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
                return self._doubted(text, fences, trail, fit)
        # Only the first object of a text may be an escaped one: a later one is what another object quotes.
        start = text.find("{")
        if trail.wrappers < WRAPPERS_MAX and start >= 0 and _ENCODED_OBJECT.match(text, start):
            return self.best(unescaped(text[start:]), trail.inside(Repair.STRING_ENCODED))
        return None

    def _doubted(self, text: str, fences: list[Span], trail: _Trail, fit: _Fit) -> _Fit:
        """Return what was chosen, in doubt if the text holds another reply beside the fences, or breaks off in one."""
        attempts = [one.start() for one in _ATTEMPT.finditer(text)]
        if len(attempts) > 1 and not fit.trail.is_lossy:
            last = parse(text, attempts[-1], budget=Budget(self.steps_max), depth_max=self.depth_max + WRAPPERS_MAX + 1)
            is_other = not isinstance(last, Parsed) or last.cut is not None
            if not is_other and fences and Repair.FENCE in fit.trail.repairs:
                others = [one for one in self._repaired(_without(text, fences), [], trail) if not one.trail.is_lossy]
                is_other = any(one.said != fit.said for one in others)
            if is_other:
                return _Fit(fit.reply, fit.trail.after(Repair.SEVERAL_REPLIES), fit.problems, fit.extra)
        return fit

    def _fenced(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        for start, end in fences:
            if not is_shown_as_example(text, start):
                yield from self._strict(text[start:end], trail.after(Repair.FENCE, rung=Rung.FENCED)) or ()

    def _embedded(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        """Try what is usual and cheap: one object, from the first brace to the last."""
        start, end = text.find("{"), text.rfind("}") + 1
        if 0 <= start < end and end - start < len(text) and not is_shown_as_example(text, start):
            yield from self._strict(text[start:end], _found_at(text, start, end, fences, trail)) or ()

    def _repaired(self, text: str, fences: list[Span], trail: _Trail) -> Iterator[_Fit]:
        """Read every object there is, mending where needed."""
        for start, parsed, is_doubtful in objects_in(text, self.depth_max + WRAPPERS_MAX + 1, self.budget):
            is_whole = (start, parsed.end) == (0, len(text))
            if not is_whole and is_shown_as_example(text, start):
                continue
            found = trail if is_whole else _found_at(text, start, parsed.end, fences, trail)
            if parsed.repairs:
                found = found.after(*parsed.repairs, rung=Rung.REPAIRED)
            if is_doubtful:
                found = found.after(Repair.INSIDE_BROKEN_OBJECT, rung=Rung.REPAIRED)
            yield from self._unwrap(parsed.value, parsed.cut, found)

    def _strict(self, text: str, trail: _Trail) -> list[_Fit] | None:
        """Return what fits in a text that is JSON from end to end, or None where it is not."""
        try:
            value = decode_any(text)
            # A key that appears twice loses its first value and the quotes with it.
            if text.count('"') > _encode(value).count(b'"'):
                trail = trail.after(Repair.DUPLICATE_KEY)
        except REFUSED:
            return None
        return list(self._unwrap(value, None, trail))

    def _unwrap(self, value: Any, cut: Path | None, trail: _Trail) -> Iterator[_Fit]:
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

    def _fit(self, value: dict[str, Any], cut: Path | None, trail: _Trail) -> _Fit | None:
        """Return the object as a reply, or None where it is none; what is wrong with the nearest one is kept."""
        draft = Draft(value)
        reply = draft.reply(cut)
        if reply and (depth := depth_of(reply.data)) > self.depth_max:
            draft.wrong("data", f"is nested {depth} levels deep; at most {self.depth_max} are allowed")
        elif reply and self.check and reply.status in RESULTS:
            draft.wrongs += self.check(reply.data)
        if reply and not draft.wrongs and self._is_shown(reply, trail, is_cut=cut is not None):
            draft.wrong("", "repeats what the instructions show; it must be your own")
        problems = (*draft.wrongs, *draft.gaps)
        if reply and not draft.wrongs:
            extra = {name: inner for name, inner in value.items() if name not in FIELDS}
            return _Fit(reply, trail.after(*draft.repairs), problems, extra)
        if (fields := len(FIELDS & value.keys())) > self.near_miss_fields:
            self.near_miss, self.near_miss_fields = problems, fields
        return None

    def _is_shown(self, reply: Said, trail: _Trail, *, is_cut: bool) -> bool:
        """Return whether the model was shown this reply, in its prompt or as an example."""
        if is_example(reply, self.examples, is_cut=is_cut):
            return True
        if trail.rung is Rung.RAW or not self.prompt:
            return False
        if isinstance(self.prompt, str):
            self.prompt = replies_in(self.prompt, Budget(self.steps_max))
        return reply in self.prompt


def _choose(fits: list[_Fit]) -> _Fit | None:
    """Return the soundest reply that fits, the first of equals; an equally sound reply that says something else is a doubt."""
    if not fits:
        return None
    sound = [fit for fit in fits if not fit.trail.is_lossy] or fits
    best = min(sound, key=lambda fit: _HEIGHT[fit.trail.rung])
    if any(fit.said != best.said for fit in sound):
        return _Fit(best.reply, best.trail.after(Repair.SEVERAL_REPLIES), best.problems, best.extra)
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


def _within(cut: Path | None, step: str | int) -> Path | None:
    """Return a cut as seen from one step further in; a cut elsewhere still counts, but at no place."""
    return cut[1:] if cut and cut[0] == step else cut and ()


def _found_at(text: str, start: int, end: int, fences: list[Span], trail: _Trail) -> _Trail:
    doubts = (Repair.QUOTED,) if is_only_mentioned(text, start, end) or is_part_of_code(text, start, fences) else ()
    if any(first <= start < last for first, last in fences):
        return trail.after(Repair.FENCE, *doubts, rung=Rung.FENCED)
    return trail.after(Repair.PROSE, *doubts, rung=Rung.EMBEDDED)


def _is_json(text: str) -> bool:
    """Return whether a text is JSON from end to end, so that marks in it are content."""
    if not text.startswith(("{", "[", '"')):
        return False
    try:
        decode_any(text)
    except REFUSED:
        return False
    return True


def _without(text: str, spans: list[Span]) -> str:
    """Return a text of the same length with nothing in these places."""
    for start, end in spans:
        text = text[:start] + " " * (end - start) + text[end:]
    return text
