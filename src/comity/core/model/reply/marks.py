"""The marks with which models and their servers set off what is not the answer: thinking, and turns of the conversation.

Servers usually take these marks out; where a server's parser is not set up, they arrive as text. The forms known here are those
of the public parsers of vLLM, SGLang and llama.cpp:

    <think>…</think>                 also thinking, thought, reasoning and the like, with a prefix such as `seed:` or `mm:`
    [THINK]…[/THINK]   ◁think▷…◁/think▷
    <|begin_of_thought|>…<|end_of_thought|>   <|START_THINKING|>…<|END_THINKING|>   <|inner_prefix|>…<|inner_suffix|>
    <|channel|>analysis<|message|>…<|end|>    then `<|channel|>final<|message|>`, also with the tokens themselves taken out
    <|open|>think<|sep|>…<|close|>think<|sep|>    <|channel>thought…<channel|>    <|content_thinking|>…<|content_text|>
    Here is my thought process:…Here is my response:
    <|im_start|>system…<|im_end|>    and other templates: a repeated prompt

A mark that closes thinking which was not opened ends thinking that began before the text: some templates write the opening mark
into the prompt. An opening mark that is not closed hides the rest. A mark in a string of a JSON object is content.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import StrEnum
from itertools import islice
from typing import Final, NamedTuple

from comity.core.model.reply.tolerant import Budget, Parsed, parse

# Places looked at in one text where a mark may begin; an answer has a handful. What is beyond cannot be told apart.
PLACES_MAX: Final = 20_000
# Objects that do not end, or not soundly, are tried so often; each attempt may read to the end of the text.
_BROKEN_MAX: Final = 8

_WORDS: Final = (
    r"(?:(?:(?!end[_-])[a-z]{1,16}[_-]){0,3}(?:think(?:ing)?|thoughts?|reason(?:ing)?)(?:[_-][a-z]+){0,3}"
    r"|reflect(?:ion)?|scratch_?pad|analysis|(?:inner_)?monologue|cot(?:_budget_reflect)?|rationale|deliberation)"
)
_QUOTING: Final = r"(?:system|user|developer|prompt|instructions|examples?|sample|blockquote)"


class Act(StrEnum):
    """What a mark does to the text after it."""

    HIDES = "hides"
    CLOSES = "closes"  # what the same kind hid; if nothing was open, what came before was hidden
    ENDS = "ends"  # what the same kind hid, and nothing else
    SHOWS = "shows"  # whatever was hidden
    ANSWERS = "answers"  # the answer begins here: nothing before it counts


_HIDES, _CLOSES, _ENDS, _SHOWS, _ANSWERS = Act


class _Form(NamedTuple):
    """A way to write marks: the pattern, and what a match of it does. A kind is closed by its own marks."""

    pattern: str
    act: Act
    kind: str


# The first form that matches counts.
_FORMS: Final = (
    _Form(rf"<\s?(?:[\w-]{{1,32}}:)?{_WORDS}(?::[\w-]{{1,32}})?(?:\s|\s[^<>]{{0,200}}[^<>/])?>", _HIDES, "tag"),
    _Form(rf"<\s?(?:/\s?(?:[\w-]{{1,32}}:)?|end[_-](?:of[_-])?){_WORDS}(?::[\w-]{{1,32}})?\s*>", _CLOSES, "tag"),
    _Form(rf"<{_QUOTING}(?:\s[^<>]{{0,200}}[^<>/])?>", _HIDES, "quote"),
    _Form(rf"</{_QUOTING}\s*>", _ENDS, "quote"),
    _Form(r"\[(?:think(?:ing)?|thoughts?|reasoning)\]", _HIDES, "bracket"),
    _Form(r"\[/(?:think(?:ing)?|thoughts?|reasoning)\]", _CLOSES, "bracket"),
    _Form(rf"◁{_WORDS}▷", _HIDES, "triangle"),
    _Form(rf"◁/{_WORDS}▷", _CLOSES, "triangle"),
    _Form(r"\[INST\]|<<SYS>>", _HIDES, "turn"),
    _Form(r"\[/INST\]|<</SYS>>", _ENDS, "turn"),
    _Form(r"<\|channel\|>\s*final\b[^<]{0,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>", _ANSWERS, ""),
    _Form(r"<\|channel\|>[^<]{1,80}(?:<\|constrain\|>[^<]{0,40})?<\|message\|>|\bto=self<\|message\|>", _HIDES, "channel"),
    _Form(r"<\|(?:end|call|eom)\|>", _ENDS, "channel"),
    _Form(r"<\|start\|>\s*assistant\b", _SHOWS, ""),
    _Form(r"<\|start\|>[^<]{1,80}(?:<\|message\|>)?", _HIDES, "channel"),
    _Form(r"<\|channel>\s*(?:thought|analysis|thinking)\b", _HIDES, "gemma"),
    _Form(r"<channel\|>", _CLOSES, "gemma"),
    _Form(rf"<\|open\|>\s*{_WORDS}\s*<\|sep\|>", _HIDES, "sep"),
    _Form(rf"<\|close\|>\s*{_WORDS}\s*<\|sep\|>", _CLOSES, "sep"),
    _Form(r"<\|open\|>\s*\w+\s*<\|sep\|>", _SHOWS, ""),
    _Form(rf"<[|｜](?:end[_▁ ]?(?:of[_▁ ]?)?|/){_WORDS}[|｜]>|<\|inner_suffix\|>", _CLOSES, "channel"),
    _Form(rf"<[|｜](?:(?:begin|start)[_▁ ]?(?:of[_▁ ]?)?|content_)?{_WORDS}[|｜]>|<\|inner_prefix\|>", _HIDES, "channel"),
    _Form(r"<\|(?:begin_of_solution|start_response|start_text|content_(?:text|final|response))\|>", _ANSWERS, ""),
    _Form(r"<\|im_start\|>\s*assistant\b|<\|start_header_id\|>\s*assistant\s*<\|end_header_id\|>", _SHOWS, ""),
    _Form(r"<\|im_start\|>\s*\w+|<\|start_header_id\|>\s*\w+\s*<\|end_header_id\|>|<start_of_turn>\s*user\b", _HIDES, "turn"),
    _Form(r"<\|im_end\|>|<\|eot_id\|>|<end_of_turn>", _ENDS, "turn"),
    _Form(r"here(?:'s|’s| is) my thought process:", _HIDES, "phrase"),
    _Form(r"here(?:'s|’s| is) my response:", _ENDS, "phrase"),
)
_MARK = re.compile("|".join(f"(?P<f{number}>{form.pattern})" for number, form in enumerate(_FORMS)), re.IGNORECASE)
# Where a mark may begin: looked for first, since looking for every form everywhere takes twenty times as long.
_BEGINS: Final = (
    r"<(?=[|｜/\w -]|</?S)(?:[|｜](?=[/\w])/?(?:channel|end|call|eom|start|open|close|begin|content_|inner_|im_|eot_|think"
    rf"|thought|reason|analysis)|\s?/?\s?(?:end[_-](?:of[_-])?)?(?:[\w-]{{1,32}}:)?{_WORDS}|/?{_QUOTING}|</?SYS|channel\|"
    r"|(?:start|end)_of_turn)|\[/?(?:think|thought|reasoning|inst)|◁|here(?:'s|’s| is) my |to=self<"
)
_BEGIN = re.compile(_BEGINS, re.IGNORECASE)
_BEGIN_OR_OBJECT = re.compile(rf"(\{{)|{_BEGINS}", re.IGNORECASE)
# A channel's tokens that a server took out of the text, with the channel's name left in it.
_BARE_CHANNELS = re.compile(r"\A\s*(?:analysis|commentary)(?=[A-Z\s\W])[\s\S]*?assistant\s*final(?=[\s\WA-Z])")
_PHRASES: Final = (
    *(f"here{verb} my {what}:" for verb in ("'s", "’s", " is") for what in ("thought process", "response")),
    "to=self",
)
_CLOSERS: Final = frozenset(">]▷")
_HELD_CHARS_MAX: Final = 120  # of a mark that is not whole yet
_STRETCH_CHARS: Final = 4_096  # of a text that are searched at once: a millisecond at most
_STARTS = re.compile(r"[<\[◁]|h(?=e|\Z)|t(?=o|\Z)", re.IGNORECASE)


_TAG_NAME = re.compile(r"[\w:-]+")


class Split(NamedTuple):
    """A text in two: the answer, and what was set off from it. `is_marked` if there was any mark."""

    answer: str
    hidden: str
    is_marked: bool


def act_of(mark: re.Match[str]) -> _Form:
    """Return what a match of a mark does."""
    assert mark.lastgroup is not None
    return _FORMS[int(mark.lastgroup[1:])]


def split(text: str, budget: Budget | None = None, *, depth_max: int = 64) -> Split:
    """Return the text outside the marks, and what was between them."""
    bare = _BARE_CHANNELS.match(text)
    if bare:
        return Split(text[bare.end() :].strip(), text[: bare.end()].strip(), True)
    if _search(_BEGIN, text, 0) is None:
        return Split(text, "", False)
    return _Walk(text, budget or Budget(), depth_max).split()


def _find(text: str) -> re.Match[str] | None:
    """Return the first mark."""
    marks = (_MARK.match(text, place.start()) for place in _places(text, 0))
    return next((mark for mark in marks if mark is not None), None)


def _places(text: str, at: int) -> Iterator[re.Match[str]]:
    """Yield where marks may begin, from a place on."""
    while place := _search(_BEGIN, text, at):
        yield place
        at = place.end()


def _search(pattern: re.Pattern[str], text: str, at: int) -> re.Match[str] | None:
    """Return the first match of a pattern from a place on; other threads have their turn while a long text is searched."""
    while at < len(text):
        if place := pattern.search(text, at, at + _STRETCH_CHARS + _HELD_CHARS_MAX):
            return place
        at += _STRETCH_CHARS
    return None


class _Walk:
    """One pass over a text with marks."""

    def __init__(self, text: str, budget: Budget, depth_max: int) -> None:
        self.text = text
        self.budget = budget
        self.depth_max = depth_max
        self.shown: list[str] = []
        self.hidden: list[str] = []
        self.lower = text.lower()
        self.closes: dict[str, int] = {}  # where each name is closed last
        self.open: list[str] = []  # the marks that hide now, each once: a mark may be mentioned inside what it hides
        self.start = 0
        self.broken = 0
        self.has_marks = False  # outside objects

    def split(self) -> Split:
        at = 0
        for _ in range(PLACES_MAX):
            # What is hidden is prose: a brace in it opens nothing.
            place = _search(_BEGIN if self.open else _BEGIN_OR_OBJECT, self.text, at)
            if place is None:
                self._keep(len(self.text))
                return self._split()
            if place.lastindex:
                at = self._after_object(place.start())
                continue
            mark = _MARK.match(self.text, place.start())
            at = place.start() + 1 if mark is None else mark.end()
            if mark is not None and not self._apply(mark):
                self.hidden.append(self.text[mark.start() :])
                return self._split()
        return Split("", self.text, True)

    def _split(self) -> Split:
        if not self.has_marks:
            return Split(self.text, "", False)
        return Split("\n".join(self.shown).strip(), "\n".join(self.hidden).strip(), True)

    def _keep(self, end: int) -> None:
        piece = self.text[self.start : end]
        if piece:
            (self.hidden if self.open else self.shown).append(piece)

    def _apply(self, mark: re.Match[str]) -> bool:
        """Do what a mark says; return False where the answer has ended with it."""
        form = act_of(mark)
        name = form.kind
        if name in {"tag", "quote"}:
            name = _TAG_NAME.findall(mark[0].lower())[0]
        if form.kind == "quote" and form.act is _HIDES and self._last_close(name) < mark.end():
            return True  # a word in angle brackets
        self.has_marks = True
        self._keep(mark.start())
        if form.kind == "turn" and form.act is _HIDES and not self.open and any(piece.strip() for piece in self.shown):
            return False  # a model that goes on after its own turn invents the next
        self.start = mark.end()
        if form.act is _HIDES:
            if name not in self.open:
                self.open.append(name)
        elif form.act is _SHOWS:
            self.open.clear()
        elif form.act is _ANSWERS:
            self._withdraw()
        elif name in self.open:
            del self.open[self.open.index(name) :]
        elif form.act is _CLOSES:
            self._withdraw()
        return True

    def _last_close(self, name: str) -> int:
        if name not in self.closes:
            self.closes[name] = self.lower.rfind(f"</{name}")
        return self.closes[name]

    def _withdraw(self) -> None:
        """Count everything so far as hidden."""
        self.hidden += self.shown
        self.shown.clear()
        self.open.clear()

    def _after_object(self, start: int) -> int:
        """Return where to look on: after a whole object, whose marks are content, or inside an object that is not whole."""
        if self.broken >= _BROKEN_MAX or self.budget.left <= 0:
            return self._next_place(start)
        outcome = parse(self.text, start, budget=self.budget, depth_max=self.depth_max)
        if isinstance(outcome, Parsed) and (outcome.cut is None or not self._closes_after(start)):
            return outcome.end
        self.broken += 1
        return self._next_place(start)

    def _next_place(self, start: int) -> int:
        """Return where to look on after a brace: at the next mark, if no brace is tried any more."""
        if self.broken < _BROKEN_MAX and self.budget.left > 0:
            return start + 1
        place = _search(_BEGIN, self.text, start + 1)
        return len(self.text) if place is None else place.start()

    def _closes_after(self, start: int) -> bool:
        """Return whether thinking is closed somewhere after a place: then an object that is cut is a draft."""
        places = islice(_places(self.text, start), PLACES_MAX)
        marks = (mark for place in places if (mark := _MARK.match(self.text, place.start())))
        return any(act_of(mark).act in {_CLOSES, _ANSWERS} for mark in marks)


class AnswerStream:
    """Takes a text in pieces and returns what each adds to the answer, without thinking; see `split`.

    It cannot take back: text before a closing mark that was never opened has been shown by then.
    """

    __slots__ = ("_buffer", "_has_object", "_has_said", "_open")

    def __init__(self) -> None:
        self._buffer = ""
        self._open: list[str] = []
        self._has_said = False  # something of the answer
        self._has_object = False  # the answer is a JSON object: marks in it are content

    def feed(self, piece: str) -> str:
        """Take a piece and return what can be shown of it and of what was held back."""
        if self._has_object:
            return piece
        self._buffer += piece
        return self._advance(is_end=False)

    def finish(self) -> str:
        """Return what was held back and is no mark after all."""
        return self._advance(is_end=True)

    def _advance(self, *, is_end: bool) -> str:
        shown: list[str] = []
        while True:
            mark = _find(self._buffer)
            is_whole = mark is not None and (is_end or mark.end() < len(self._buffer))
            end = mark.start() if mark is not None else len(self._buffer) if is_end else self._held()
            shown.append(self._shown(self._buffer[:end]))
            if self._has_object:
                shown.append(self._buffer[end:])
                self._buffer = ""
            elif mark is not None and is_whole:
                self._buffer = self._buffer[mark.end() :]
                self._apply(act_of(mark))
                continue
            else:
                self._buffer = self._buffer[end:]
            return "".join(shown)

    def _shown(self, text: str) -> str:
        if self._open:
            return ""
        if not self._has_said and text.strip():
            self._has_said = True
            self._has_object = text.lstrip().startswith("{")
        return text

    def _apply(self, form: _Form) -> None:
        if form.act is _HIDES:
            self._open.append(form.kind)
        elif form.act in {_SHOWS, _ANSWERS}:
            self._open.clear()
        elif form.kind in self._open:
            del self._open[self._open.index(form.kind) :]

    def _held(self) -> int:
        """Return where the part of the buffer begins that may be the beginning of a mark."""
        for start in _STARTS.finditer(self._buffer, max(0, len(self._buffer) - _HELD_CHARS_MAX)):
            rest = self._buffer[start.start() :].lower()
            is_open = rest[0] in "<[◁" and _CLOSERS.isdisjoint(rest)
            if is_open or rest.startswith(("<|", "<｜")) or any(phrase.startswith(rest) for phrase in _PHRASES):
                return start.start()
        return len(self._buffer)
