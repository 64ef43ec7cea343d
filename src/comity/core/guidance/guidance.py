"""What people want of agents: the `agentGuidance` of a ProjectContext, read, asked and written again.

A document is judged as a whole: every problem is reported with its path. What cannot be read is left out, except that a
constraint errs on the safe side: one whose severity or scope cannot be read blocks, and blocks everywhere. Answers to a
question are only ever added, so of several agents that answer at once none is lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from enum import StrEnum
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from comity.core.document.payload import Problem
from comity.core.guidance.scope import GlobError, compile_scope, concerns
from comity.core.insight.insight import Evidence, parse_time, time_text
from comity.errors import CallerError

_TOUCHED_CHARS_MAX = 200
_Word = TypeVar("_Word", bound=StrEnum)


class Severity(StrEnum):
    """What a constraint does to an action in its scope, strictest first."""

    BLOCKING = "blocking"
    WARNING = "warning"
    ADVISORY = "advisory"


_SEVERITIES = tuple(Severity)


class Priority(StrEnum):
    """How urgent a question is, most urgent first. `medium` is read as normal."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class QuestionStatus(StrEnum):
    """Whether the question still waits for an answer."""

    OPEN = "open"
    ANSWERED = "answered"
    DEFERRED = "deferred"


class Focus(Struct, frozen=True, kw_only=True):
    """What to work on, until a time in milliseconds."""

    areas: tuple[str, ...] = ()
    reason: str = ""
    until: int | None = None


class Constraint(Struct, frozen=True, kw_only=True):
    """A rule for actions on the paths its scope covers; without a scope, for all."""

    id: str
    rule: str
    scope: str = ""
    severity: Severity = Severity.BLOCKING
    reason: str = ""


class Preference(Struct, frozen=True, kw_only=True):
    """How people like things done."""

    id: str
    preference: str
    reason: str = ""


class Answer(Struct, frozen=True, kw_only=True):
    """What one agent answered to a question, and why it thinks so."""

    agent_id: str
    answer: str
    confidence: float
    answered_at: int
    evidence: tuple[Evidence, ...] = ()


class Question(Struct, frozen=True, kw_only=True):
    """What people want to know."""

    id: str
    question: str
    priority: Priority = Priority.NORMAL
    context: str = ""
    status: QuestionStatus = QuestionStatus.OPEN
    answers: tuple[Answer, ...] = ()


class Note(Struct, frozen=True, kw_only=True):
    """What agents should know about a topic."""

    topic: str
    content: str
    source: str = ""


class Guidance(Struct, frozen=True, kw_only=True):
    """All guidance of a project."""

    focus: Focus | None = None
    constraints: tuple[Constraint, ...] = ()
    preferences: tuple[Preference, ...] = ()
    questions: tuple[Question, ...] = ()
    context: tuple[Note, ...] = ()


# asking


def focus(guidance: Guidance, *, now_ms: int) -> Focus | None:
    """Return what to work on now, or None if nothing is set or its time is over."""
    found = guidance.focus
    return None if found is None or (found.until is not None and found.until <= now_ms) else found


class Finding(Struct, frozen=True):
    """A constraint that an action concerns, and what the action touches that it is about."""

    constraint: Constraint
    touched: str

    @property
    def is_blocking(self) -> bool:
        """Whether the action must not be done."""
        return self.constraint.severity is Severity.BLOCKING

    def __str__(self) -> str:
        one = self.constraint
        verb = "forbids" if self.is_blocking else "applies to"
        why = f" ({one.reason})" if one.reason else ""
        return f"constraint {one.id} {verb} touching {self.touched[:_TOUCHED_CHARS_MAX]}: {one.rule}{why}"


def findings(guidance: Guidance, touched: Iterable[str]) -> tuple[Finding, ...]:
    """Return the constraints on an action that touches these paths and topics, strictest first.

    This is the one place that decides whether a constraint holds for an action; calls, tools and steps are all judged here.
    """
    texts = tuple(touched)
    found = []
    for one in guidance.constraints:
        text = next((text for text in texts if concerns(one.scope, text)), None)
        if text is not None:
            found.append(Finding(one, text or "."))
    return tuple(sorted(found, key=lambda one: _SEVERITIES.index(one.constraint.severity)))


def constraints_for(guidance: Guidance, path: str) -> list[Constraint]:
    """Return the constraints on a path, strictest first."""
    return [found.constraint for found in findings(guidance, (path,))]


def blocking(guidance: Guidance, paths: Iterable[str]) -> list[Constraint]:
    """Return the constraints that forbid an action on these paths, in the document's order."""
    return [found.constraint for found in findings(guidance, paths) if found.is_blocking]


def open_questions(guidance: Guidance) -> list[Question]:
    """Return the questions without an answer, most urgent first."""
    found = [question for question in guidance.questions if question.status is QuestionStatus.OPEN]
    return sorted(found, key=lambda question: list(Priority).index(question.priority))


def context(guidance: Guidance, topic: str) -> list[Note]:
    """Return the notes whose topic contains a text, whatever its case."""
    return [note for note in guidance.context if topic.casefold() in note.topic.casefold()]


def answer(guidance: Guidance, question_id: str, given: Answer) -> Guidance:
    """Return the guidance with one more answer to a question; the same answer given again changes nothing."""
    if all(question.id != question_id for question in guidance.questions):
        raise CallerError(f"there is no question {question_id!r}", question_id=question_id)
    if not given.answer or not given.agent_id or not 0.0 <= given.confidence <= 1.0:
        raise CallerError("an answer needs a text, an agent and a confidence between 0 and 1", question_id=question_id)
    questions = tuple(
        question
        if question.id != question_id
        else replace(
            question,
            status=QuestionStatus.ANSWERED,
            answers=question.answers if given in question.answers else (*question.answers, given),
        )
        for question in guidance.questions
    )
    return replace(guidance, questions=questions)


# changing

Item = Constraint | Preference | Question | Note
_PLACES: dict[type[Item], tuple[str, str]] = {
    Constraint: ("constraints", "id"),
    Preference: ("preferences", "id"),
    Question: ("questions", "id"),
    Note: ("context", "topic"),
}


def put(guidance: Guidance, item: Item) -> Guidance:
    """Return the guidance with an item in the place of the one with its id or topic, or at the end."""
    place, key = _PLACES[type(item)]
    items: tuple[Item, ...] = getattr(guidance, place)
    name = getattr(item, key)
    if any(getattr(one, key) == name for one in items):
        return replace(guidance, **{place: tuple(item if getattr(one, key) == name else one for one in items)})
    return replace(guidance, **{place: (*items, item)})


def remove(guidance: Guidance, kind: type[Item], name: str) -> Guidance:
    """Return the guidance without the item of this id or topic; raises `CallerError` if there is none."""
    place, key = _PLACES[kind]
    items: tuple[Item, ...] = getattr(guidance, place)
    kept = tuple(one for one in items if getattr(one, key) != name)
    if len(kept) == len(items):
        raise CallerError(f"there is no {kind.__name__.lower()} {name!r}")
    return replace(guidance, **{place: kept})


# reading a document


def parse(document: Any) -> tuple[Guidance, tuple[Problem, ...]]:
    """Return the guidance in a ProjectContext, and everything that is wrong with it."""
    reader = _Reader()
    spec = reader.mapping(reader.mapping(document, "document").get("spec"), "spec")
    path = "spec.agentGuidance"
    raw = reader.known(spec.get("agentGuidance"), path, ("focus", "constraints", "preferences", "questions", "context"))
    guidance = Guidance(
        focus=reader.focus(raw.get("focus"), f"{path}.focus"),
        constraints=tuple(reader.constraint(*item) for item in reader.items(raw, "constraints", path)),
        preferences=tuple(
            Preference(
                id=reader.required(item, "id", at),
                preference=reader.required(item, "preference", at),
                reason=reader.text(item, "reason", at),
            )
            for item, at in reader.items(raw, "preferences", path)
            if reader.known(item, at, ("id", "preference", "reason"))
        ),
        questions=tuple(reader.question(*item) for item in reader.items(raw, "questions", path)),
        context=tuple(
            Note(
                topic=reader.required(item, "topic", at),
                content=reader.required(item, "content", at),
                source=reader.text(item, "source", at),
            )
            for item, at in reader.items(raw, "context", path)
            if reader.known(item, at, ("topic", "content", "source"))
        ),
    )
    for name in ("constraints", "preferences", "questions"):
        reader.unique([one.id for one in getattr(guidance, name)], f"{path}.{name}")
    return guidance, tuple(reader.problems)


class _Reader:
    """Reads parts of a document and notes what is wrong with them."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []

    def note(self, path: str, message: str) -> None:
        self.problems.append(Problem(path, message))

    def mapping(self, raw: Any, path: str) -> Mapping[str, Any]:
        if raw is None:
            return {}
        if isinstance(raw, Mapping):
            return raw
        self.note(path, "must be a mapping")
        return {}

    def known(self, raw: Any, path: str, names: Sequence[str]) -> Mapping[str, Any]:
        found = self.mapping(raw, path)
        for name in found:
            if name not in names:
                self.note(f"{path}.{name}", f"is not known here; use {', '.join(names)}")
        return found

    def items(self, raw: Mapping[str, Any], name: str, path: str) -> list[tuple[Mapping[str, Any], str]]:
        found = raw.get(name)
        if found is None:
            return []
        if not isinstance(found, list):
            self.note(f"{path}.{name}", "must be a list")
            return []
        pairs = [(self.mapping(item, f"{path}.{name}[{at}]"), f"{path}.{name}[{at}]") for at, item in enumerate(found)]
        for item, at in pairs:
            if not item:
                self.note(at, "is empty")
        return [pair for pair in pairs if pair[0]]

    def text(self, raw: Mapping[str, Any], name: str, path: str) -> str:
        found = raw.get(name)
        if found is None:
            return ""
        if not isinstance(found, str):
            self.note(f"{path}.{name}", "must be text")
            return ""
        return found

    def required(self, raw: Mapping[str, Any], name: str, path: str) -> str:
        if raw.get(name) in (None, ""):
            self.note(f"{path}.{name}", "is missing")
        return self.text(raw, name, path)

    def texts(self, raw: Mapping[str, Any], name: str, path: str) -> tuple[str, ...]:
        found = raw.get(name)
        if found is None:
            return ()
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
            self.note(f"{path}.{name}", "must be a list of texts")
            return ()
        return tuple(found)

    def word(self, raw: Mapping[str, Any], name: str, path: str, default: _Word) -> _Word:
        """Return a word of the default's kind; without a word, or with an unknown word, the default."""
        words = type(default)
        found = raw.get(name)
        if found is None:
            return default
        found = "normal" if words is Priority and found == "medium" else found
        if found not in tuple(words):
            self.note(f"{path}.{name}", f"must be one of {', '.join(words)}")
            return default
        return words(found)

    def time(self, raw: Mapping[str, Any], name: str, path: str) -> int | None:
        found = raw.get(name)
        if found is None:
            return None
        # YAML turns an unquoted time into an object.
        text = found.isoformat() if isinstance(found, date) else found
        at = parse_time(text) if isinstance(text, str) else None
        if at is None:
            self.note(f"{path}.{name}", "must be a time such as 2024-03-31T00:00:00Z")
        return at

    def unique(self, ids: Sequence[str], path: str) -> None:
        for at, one in enumerate(ids):
            if one and one in ids[:at]:
                self.note(f"{path}[{at}].id", "is used twice")

    # parts

    def focus(self, raw: Any, path: str) -> Focus | None:
        if raw is None:
            return None
        found = self.known(raw, path, ("areas", "reason", "until"))
        return Focus(
            areas=self.texts(found, "areas", path),
            reason=self.text(found, "reason", path),
            until=self.time(found, "until", path),
        )

    def constraint(self, raw: Mapping[str, Any], path: str) -> Constraint:
        self.known(raw, path, ("id", "rule", "scope", "severity", "reason"))
        return Constraint(
            id=self.required(raw, "id", path),
            rule=self.required(raw, "rule", path),
            scope=self.scope(raw, path),
            severity=self.word(raw, "severity", path, Severity.BLOCKING),
            reason=self.text(raw, "reason", path),
        )

    def scope(self, raw: Mapping[str, Any], path: str) -> str:
        found = self.text(raw, "scope", path)
        try:
            compile_scope(found)
        except GlobError as error:
            self.note(f"{path}.scope", str(error))
            return ""
        return found

    def question(self, raw: Mapping[str, Any], path: str) -> Question:
        self.known(raw, path, ("id", "question", "priority", "context", "status", "answers"))
        return Question(
            id=self.required(raw, "id", path),
            question=self.required(raw, "question", path),
            priority=self.word(raw, "priority", path, Priority.NORMAL),
            context=self.text(raw, "context", path),
            status=self.word(raw, "status", path, QuestionStatus.OPEN),
            answers=tuple(self.answer(*item) for item in self.items(raw, "answers", path)),
        )

    def answer(self, raw: Mapping[str, Any], path: str) -> Answer:
        self.known(raw, path, ("agentId", "answer", "confidence", "answeredAt", "evidence"))
        confidence = raw.get("confidence", 0.0)
        is_number = isinstance(confidence, int | float) and not isinstance(confidence, bool)
        if not is_number or not 0 <= confidence <= 1:
            self.note(f"{path}.confidence", "must be a number between 0 and 1")
            confidence = 0.0
        return Answer(
            agent_id=self.required(raw, "agentId", path),
            answer=self.required(raw, "answer", path),
            confidence=float(confidence),
            answered_at=self.time(raw, "answeredAt", path) or 0,
            evidence=tuple(
                Evidence(
                    type=self.required(item, "type", at),
                    ref=self.required(item, "ref", at),
                    description=self.text(item, "description", at),
                    query=self.text(item, "query", at),
                )
                for item, at in self.items(raw, "evidence", path)
            ),
        )


# writing a document


def to_document(guidance: Guidance, document: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return a ProjectContext with this guidance; of a document given, everything else stays."""
    whole = dict(document or {})
    spec = whole.get("spec")
    encoded: dict[str, Any] = {}
    if guidance.focus is not None:
        found = guidance.focus
        encoded["focus"] = _present(
            areas=list(found.areas), reason=found.reason, until="" if found.until is None else time_text(found.until)
        )
    encoded["constraints"] = [
        _present(id=one.id, rule=one.rule, scope=one.scope, severity=str(one.severity), reason=one.reason)
        for one in guidance.constraints
    ]
    encoded["preferences"] = [_present(id=one.id, preference=one.preference, reason=one.reason) for one in guidance.preferences]
    encoded["questions"] = [_question_document(one) for one in guidance.questions]
    encoded["context"] = [_present(topic=one.topic, content=one.content, source=one.source) for one in guidance.context]
    kept = {name: value for name, value in encoded.items() if value or name == "focus"}
    return whole | {"spec": (dict(spec) if isinstance(spec, Mapping) else {}) | {"agentGuidance": kept}}


def _question_document(question: Question) -> dict[str, Any]:
    return _present(
        id=question.id,
        question=question.question,
        priority=str(question.priority),
        context=question.context,
        status=str(question.status),
        answers=[
            _present(
                agentId=one.agent_id,
                answer=one.answer,
                answeredAt=time_text(one.answered_at),
                evidence=[
                    _present(type=item.type, ref=item.ref, description=item.description, query=item.query)
                    for item in one.evidence
                ],
            )
            | {"confidence": one.confidence}
            for one in question.answers
        ],
    )


def _present(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in ("", [])}
