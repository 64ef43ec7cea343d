"""The canonical `Request` and `Reply`, their parts, and the one codec for them.

A dialect is a pair of pure functions to and from these two types. Both are frozen and hold data only. Bytes become a `Request`
once, at the edge; inputs stay the JSON they arrived in until the capability's schema reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import StrEnum
from reprlib import Repr
from typing import Any, Final, Generic

import msgspec
from msgspec import Raw, Struct, field
from typing_extensions import TypeVar

from comity.core.call.limits import (
    CHAIN_MAX,
    ERROR_CHARS_MAX,
    HINTS_MAX,
    ID_CHARS_MAX,
    MESSAGE_BYTES_MAX,
    NAME_CHARS_MAX,
    OBJECTIVE_CHARS_MAX,
    WARNINGS_MAX,
    Limits,
)
from comity.core.document.checks import read
from comity.core.document.payload import PayloadError, Problem, text_problem, unpack
from comity.core.envelope.usage import Usage
from comity.errors import CODES, family

VERSION: Final = "1.0"
_CODE = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+")
Data_co = TypeVar("Data_co", covariant=True, default=Any)
Given = TypeVar("Given", default=Any)
_SHOWN_CHARS_MAX: Final = 100  # of a reply, where one is printed
_short: Final = Repr()
_short.maxlevel, _short.maxstring, _short.maxother = 3, 60, 60


class Status(StrEnum):
    """How a call ended. The values are the wire words."""

    SUCCESS = "success"
    PARTIAL = "partial"
    NEEDS_INPUT = "needs_input"
    REFUSED = "refused"
    ERROR = "error"
    TIMEOUT = "timeout"
    CANCELLED = "cancelled"


# Bare names for the path of a call: before Python 3.12, looking a member up in its class costs ten times as much.
SUCCESS, PARTIAL, NEEDS_INPUT, *_ = Status


class Priority(StrEnum):
    """Which call an agent takes next, most urgent first."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    __hash__ = str.__hash__  # that of an enum is written in Python, and each look into a table asks for it


class Reference(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """A pointer to a document or data item, passed instead of a copy."""

    source_id: str
    owner_scope: str = ""
    relevance: float | None = None


class Background(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What the callee should know about the work so far: the handoff context."""

    original_request: str = ""
    workflow_position: str = ""
    prior_agents: tuple[str, ...] = ()
    prior_outputs: dict[str, Any] = {}
    decisions: tuple[str, ...] = ()
    constraints: dict[str, Any] = {}
    assumptions: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    references: tuple[Reference, ...] = ()
    intermediate_results: Any = None
    hints: tuple[str, ...] = ()
    history_ref: str = ""
    extra: dict[str, Any] = {}


class ExpectedOutput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """What the caller wants back, beyond what the capability's own schema says."""

    type: str = ""
    fields: tuple[str, ...] = ()
    bytes_max: int | None = None


ARTIFACT_TYPES: Final = ("table", "json", "url", "id", "file")


class Artifact(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """One typed product of a call; `type` is one of table, json, url, id, file."""

    type: str
    value: Any
    label: str = ""


class Error(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """Why a call was refused or failed: a stable code, one sentence, and whether a retry can help.

    `facts` are what the sentence says, for programs: `depth` and `depth_max`, `caller`, `target` and `chain`, by code.
    """

    code: str
    message: str
    retryable: bool = False
    advice: str = ""
    retry_after_ms: int | None = None
    problems: tuple[Problem, ...] = ()
    facts: dict[str, Any] = {}

    @classmethod
    def of(
        cls,
        code: str,
        message: str,
        *,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
        problems: tuple[Problem, ...] = (),
        facts: dict[str, Any] | None = None,
    ) -> Error:
        """Make an error whose `retryable` and `advice` come from the code table unless given.

        An agent's own code must read as ours do. One that does not becomes TARGET_FAILED, and stands before the message.
        """
        meaning = CODES.get(code) if type(code) is str else None
        if type(message) is not str:
            message = str(message)
        if meaning is None and not is_code(code):
            shown = ascii(code)[1:-1][:NAME_CHARS_MAX] if isinstance(code, str) else f"({type(code).__name__})"
            code, message = "TARGET_FAILED", f"{shown}: {message}" if shown else message
        if retryable is None:
            retryable = meaning.retryable if meaning else False
        if len(message) > ERROR_CHARS_MAX or not message.isascii():
            # It may be the text of any exception, and it must not stop the store that writes it down.
            message = message[:ERROR_CHARS_MAX].encode(errors="replace").decode()
        return cls(
            code=code,
            message=message,
            retryable=retryable,
            advice=meaning.advice if meaning else "",
            retry_after_ms=retry_after_ms,
            problems=problems,
            facts=facts or {},
        )


def is_code(value: Any) -> bool:
    """Return whether a code names its category and what is wrong, as in INPUT_VALIDATION_FAILED."""
    return isinstance(value, str) and len(value) <= NAME_CHARS_MAX and _CODE.fullmatch(value) is not None


_EMPTY_INPUTS = Raw(b"{}")


class Request(
    Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    gc=False,  # holds no cycles; the collector need not look
    rename={"body": "inputs"},
):
    """One call, as it travels. `source` is None for a user; `chain` lists the addresses above the callee, root first."""

    request_id: str
    target: str
    capability: str
    user_id: str
    limits: Limits
    deadline_at: int  # epoch milliseconds
    created_at: int = 0
    version: str = VERSION
    source: str | None = None
    chain: tuple[str, ...] = ()
    body: Raw = _EMPTY_INPUTS
    objective: str = ""
    message: str = ""
    priority: Priority = Priority.NORMAL
    root_id: str = ""
    parent_id: str | None = None
    correlation_id: str = ""
    tenant_id: str = "default"
    session_id: str = ""
    parent_session_id: str | None = None
    context: Background | None = None
    expected_output: ExpectedOutput | None = None
    trace_id: str = ""
    span_id: str = ""
    parent_span_id: str = ""
    history: str | int = "none"  # how much of the conversation the callee may see: none, summary, full, or a number of turns
    fingerprint: int | None = None  # of what was asked as it came, once something in it has been hidden or rewritten
    metadata: dict[str, Any] = {}
    tools: tuple[str, ...] | None = None  # granted to the call and those below it; None: whatever their profiles allow

    @property
    def inputs(self) -> Any:
        """The inputs as a fresh Python value; changing it changes nothing else."""
        return unpack(self.body)

    @property
    def depth(self) -> int:
        """Agent-to-agent hops above the callee: 0 for a call by a user."""
        return len(self.chain)


class Reply(Struct, Generic[Data_co], frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True, gc=False):
    """How a call ended. A value: check `status`, or call `unwrap()` to get the data or an exception.

    `Reply[T]` is one whose data is a `T` where it is a result; a bare `Reply` is a `Reply[Any]`.

    A capability may return one, made by `Reply.success`, `.partial`, `.needs_input` or `.failure`; ids, usage and duration are
    filled in when the call settles.
    """

    status: Status
    data: Data_co = None  # type: ignore[assignment]  # a reply that is no result has none, whatever a result would be
    message: str = ""
    confidence: float | None = None
    warnings: tuple[str, ...] = ()
    error: Error | None = None
    usage: Usage = field(default_factory=Usage)
    request_id: str = ""
    duration_ms: float = 0.0
    degraded: bool = False
    version: str = VERSION
    source: str = ""
    session_id: str = ""
    summary: str = ""
    thought: str = ""
    next_step_hint: str = ""
    requires_followup: bool = False
    artifacts: tuple[Artifact, ...] = ()
    new_facts: tuple[str, ...] = ()
    sources: tuple[Reference, ...] = ()
    metadata: dict[str, Any] = {}

    def __post_init__(self) -> None:
        status = self.status
        if status is SUCCESS or status is PARTIAL:
            confidence = self.confidence
            try:
                is_sound = 0.0 <= confidence <= 1.0  # type: ignore[operator]
            except TypeError:  # what is no number cannot be compared
                is_sound = False
            if not is_sound:
                raise ValueError(f"a {status} reply carries a confidence from 0 to 1, not {confidence!r}")
            if status is PARTIAL and not self.warnings:
                raise ValueError("a partial reply carries at least one warning that says what is missing")
        elif type(status) is not Status:
            raise ValueError(f"the status of a reply is one of Status, such as Status.SUCCESS, not {status!r}")
        elif self.error is None and status is not NEEDS_INPUT:
            raise ValueError(f"a {status} reply carries an error")

    def __repr__(self) -> str:
        """Return one line: status, what there is to say of it, and how long it took."""
        what = ""
        if self.error is not None:
            what = " ".join(f"{self.error.code}: {self.error.message}".split())  # which may have several lines
        elif self.data is not None or self.message:
            what = _short.repr(self.message if self.data is None else self.data)
        what = f"{what[:_SHOWN_CHARS_MAX]}…" if len(what) > _SHOWN_CHARS_MAX else what
        return f"Reply({self.status}, {what + ', ' if what else ''}{self.duration_ms:.1f} ms)"

    @property
    def ok(self) -> bool:
        """Whether there is a result: success, or partial with warnings."""
        return self.status is SUCCESS or self.status is PARTIAL

    def unwrap(self) -> Data_co:
        """Return the data, or raise the error class that says who must act."""
        if self.ok:
            return self.data
        if self.error is None:
            raise family("CALL_NEEDS_INPUT")(self.message, code="CALL_NEEDS_INPUT", request_id=self.request_id)
        error = self.error
        raised = family(error.code)(
            error.message,
            code=error.code,
            retryable=error.retryable,
            retry_after_ms=error.retry_after_ms,
            problems=error.problems,
            request_id=self.request_id,
        )
        raised.facts = {**error.facts, **raised.facts}
        raise raised

    @classmethod
    def success(cls, data: Given = None, *, message: str = "", confidence: float = 1.0, **more: Any) -> Reply[Given]:  # type: ignore[assignment]
        """The work is done."""
        return Reply(status=Status.SUCCESS, data=data, message=message, confidence=confidence, **more)

    @classmethod
    def partial(
        cls, data: Given, *, warnings: list[str] | tuple[str, ...], confidence: float = 0.6, **more: Any
    ) -> Reply[Given]:
        """Part of the work is done; the warnings say what is missing or degraded."""
        return Reply(status=Status.PARTIAL, data=data, warnings=tuple(warnings), confidence=confidence, **more)

    @classmethod
    def needs_input(cls, question: str, *, data: Any = None, **more: Any) -> Reply[Any]:
        """The work cannot go on without an answer from the user."""
        return Reply(status=Status.NEEDS_INPUT, message=question, data=data, **more)

    @classmethod
    def failure(cls, message: str, *, code: str = "TARGET_FAILED", retryable: bool | None = None, **more: Any) -> Reply[Any]:
        """The agent could not do it; `code` may be the agent's own."""
        return Reply(status=Status.ERROR, error=Error.of(code, message, retryable=retryable), message=message, **more)


# --- codec --------------------------------------------------------------------------------------------------------------

encode = msgspec.json.Encoder().encode
decode_error = msgspec.json.Decoder(Error).decode
_decode_reply = msgspec.json.Decoder(Reply).decode
_decode_background = msgspec.json.Decoder(Background).decode


# --- what is wrong with one ---------------------------------------------------------------------------------------------


def request_problems(request: Request) -> tuple[Problem, ...]:
    """Return what is wrong with the fields of a request that the type alone does not say; inputs are checked elsewhere."""
    problems = [
        Problem(name, f"must be 1 to {most} printable characters")
        for name, value, most in (
            ("request_id", request.request_id, ID_CHARS_MAX),
            ("target", request.target, ID_CHARS_MAX),
            ("capability", request.capability, NAME_CHARS_MAX),
            ("user_id", request.user_id, ID_CHARS_MAX),
            ("tenant_id", request.tenant_id, ID_CHARS_MAX),
        )
        if not is_id(value, most)
    ]
    problems += [
        Problem(name, f"must be at most {ID_CHARS_MAX} printable characters")
        for name, value in (
            ("session_id", request.session_id),
            ("correlation_id", request.correlation_id),
            ("root_id", request.root_id),
            ("source", request.source),
            ("parent_id", request.parent_id),
            ("parent_session_id", request.parent_session_id),
            ("trace_id", request.trace_id),
            ("span_id", request.span_id),
            ("parent_span_id", request.parent_span_id),
            *((f"chain[{index}]", address) for index, address in enumerate(request.chain[:CHAIN_MAX])),
            *((f"tools[{index}]", name) for index, name in enumerate(request.tools or ())),
        )
        if value and not is_id(value, ID_CHARS_MAX)
    ]
    problems += _texts(("objective", request.objective, OBJECTIVE_CHARS_MAX), ("message", request.message, MESSAGE_BYTES_MAX))
    if len(request.chain) > CHAIN_MAX:
        problems.append(Problem("chain", f"has {len(request.chain)} agents; at most {CHAIN_MAX} are allowed"))
    if request.history not in {"none", "summary", "full"} and not (type(request.history) is int and request.history >= 0):
        problems.append(Problem("history", "must be none, summary, full or a number of turns"))
    if request.context is not None:
        problems += context_problems(request.context)
    problems += _document_problems(request.expected_output, "expected_output")
    problems += _document_problems(request.metadata, "metadata")
    return tuple(problems)


def context_problems(context: Background) -> list[Problem]:
    """Return what is wrong with a handoff context, from any source: types, sizes, and what JSON cannot say."""
    if problems := _document_problems(context, "context", _decode_background):
        return problems
    if len(context.hints) > HINTS_MAX:
        return [Problem("context.hints", f"has {len(context.hints)} entries; at most {HINTS_MAX} are allowed")]
    return []


def artifact_problems(artifacts: tuple[Artifact, ...]) -> tuple[Problem, ...]:
    """Return what is wrong with the types of artifacts; what was stored before types were checked is read all the same."""
    return tuple(
        Problem(f"artifacts[{index}].type", f"must be one of {', '.join(ARTIFACT_TYPES)}")
        for index, artifact in enumerate(artifacts)
        if artifact.type not in ARTIFACT_TYPES
    )


def copied(reply: Reply) -> Reply:
    """Return a copy of a reply, from any source, without its data, which is checked as a document of its own.

    Raises `PayloadError` for a reply that could not be written and read again: it would fail where it is stored.
    """
    problems = tuple(_texts(*((name, getattr(reply, name), MESSAGE_BYTES_MAX) for name in ("message", "summary", "thought"))))
    if problems:
        raise PayloadError("OUTPUT_VALIDATION_FAILED", problems)
    copy = read(msgspec.structs.replace(reply, data=None), "", _decode_reply)
    if len(copy.warnings) > WARNINGS_MAX:
        problem = Problem("warnings", f"has {len(copy.warnings)} entries; at most {WARNINGS_MAX} are allowed")
        raise PayloadError("OUTPUT_VALIDATION_FAILED", (problem,))
    return copy


def without_content(reply: Reply) -> Reply:
    """Return how a call ended, and nothing that was said: what a person who sees what the store holds gets if it holds none."""
    why = "the reply is not in the store, and is not shown"
    error = None if reply.error is None else Error.of(reply.error.code, why)
    return Reply(status=reply.status, confidence=reply.confidence, warnings=(why,), error=error, request_id=reply.request_id)


def reply_problems(reply: Reply) -> tuple[Problem, ...]:
    """Return what is wrong with a reply, but for its data."""
    try:
        copied(reply)
    except PayloadError as error:
        return tuple(Problem(problem.path or "$", problem.message) for problem in error.problems)
    return ()


def _document_problems(value: Any, path: str, typed: Callable[[bytes], Any] = unpack) -> list[Problem]:
    try:
        read(value, path, typed)
    except PayloadError as error:
        return [Problem(problem.path or "$", problem.message) for problem in error.problems]
    return []


def is_id(value: Any, most: int = ID_CHARS_MAX) -> bool:
    """Return whether `value` can name something: printable text of bounded length."""
    return (type(value) is str or issubclass(type(value), StrEnum)) and 0 < len(value) <= most and value.isprintable()


def _texts(*fields: tuple[str, str, int]) -> list[Problem]:
    found = (text_problem(value, path=name, bytes_max=most) for name, value, most in fields)
    return [problem for problem in found if problem is not None]
