"""Reads the arguments of a door (`Draft`) into a frozen request, once, and notes every problem. Admission decides later."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Raw, Struct, json
from msgspec.structs import replace

from comity.core.agent.agent import Agent, Capability
from comity.core.agent.registry import Registry
from comity.core.agent.tool import EVERYTHING
from comity.core.call.inheritance import Inheritance
from comity.core.call.limits import (
    ID_CHARS_MAX,
    INPUTS_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    OBJECTIVE_CHARS_MAX,
    TIMEOUT_MS_CEILING,
    Limits,
)
from comity.core.call.outside import Outside
from comity.core.document.checks import rejected
from comity.core.document.payload import PayloadError, Problem, pack, text_problem, unlooked
from comity.core.document.schema import Checked
from comity.core.envelope.envelope import VERSION, Background, Priority, Request, context_problems, encode, is_id
from comity.ports import Ids

_decode_background = json.Decoder(Background).decode
_EMPTY: Final = b"{}"
_EMPTY_BODY: Final = Raw(_EMPTY)
_NORMAL: Final = Priority.NORMAL
IDENTITIES_KEPT_MAX: Final = 10_000
# Default arguments of doors. Compared by identity: an equal value that is another object takes the slow path.
_NO_TEXT, _NORMAL_WORD, _ALL, _NONE = "", "normal", "full", "none"
_NO_PROBLEMS: Final[tuple[tuple[Problem, ...], str]] = ((), "")
_NAME_RULE: Final = f"must be printable text that is not empty, of at most {ID_CHARS_MAX} characters"
_TEXT_OR_NONE: Final = frozenset({str, type(None)})
_LISTS: Final = (list, tuple, set, frozenset)
_PRIORITIES: Final = {str(priority): priority for priority in Priority}


class Draft(Struct, frozen=True, gc=False):
    """The arguments that a door was given, unchecked: not even the types are known."""

    target: Any
    capability: Any
    inputs: Any
    objective: Any
    message: Any
    timeout_ms: Any
    priority: Any
    context: Background | None
    limits: Limits | None
    history: Any
    tools: Any = None  # granted tools; None grants what the caller was granted
    correlation_id: Any = ""  # empty means the caller's, or for a root its own request id
    metadata: dict[str, Any] | None = None  # further fields of a document, as its door read them
    outside: Outside | None = None  # for a call by an agent of another node
    is_written: bool = False  # its door only serializes the reply, so the reply's data may be `Raw` JSON


class Identity(Struct, frozen=True, gc=False):
    """The user, tenant and session of a call: bound at the root, inherited below."""

    user_id: Any
    tenant_id: Any
    session_id: Any
    parent_session_id: Any = None


class Arrival(Struct, frozen=True, gc=False):
    """A request as read, its agent and capability if they exist, and its problems."""

    request: Request
    body: bytes
    agent: Agent | None
    capability: Capability | None
    problems: tuple[Problem, ...]
    code: str  # the error code of the problems
    depth_max: int | None = None  # the limit in the request's own `limits`; it applies to this request too
    checked: Checked | None = None  # its inputs, if they were validated while they were packed


class Reader:
    """Makes requests from drafts."""

    __slots__ = ("_addresses", "_ids", "_inheritance", "_is_chained", "_limits", "_registry", "_sound")

    def __init__(self, registry: Registry, limits: Limits, ids: Ids, inheritance: Inheritance) -> None:
        self._registry = registry
        self._addresses = registry.addresses
        self._inheritance = inheritance
        self._is_chained = inheritance.is_chained
        self._limits = limits
        self._ids = ids
        # Cache of valid identities: most calls are by users who call often.
        self._sound: set[tuple[Any, ...]] = set()

    def read(
        self, draft: Draft, identity: Identity, above: Request | None, request_id: str, now_ms: int, trace_id: str = ""
    ) -> Arrival:
        """Make the request. `above` is the caller's request, which bounds limits and deadline; None for a root."""
        target, called, timeout_ms = draft.target, draft.capability, draft.timeout_ms
        agent: Agent | None = None
        capability: Capability | None = None
        address = (self._addresses.get(target) or self._registry.resolve(target)) if type(target) is str else None
        if address is not None:
            agent, target = address.agent, address.text
            capability = agent.capabilities.get(called) if type(called) is str else None
        is_plain = type(target) is str and type(called) is str and _is_plain(draft)  # the agent may be on another node
        problems, code = _NO_PROBLEMS if is_plain else draft_problems(draft)
        if above is None and (flaws := self._identity_problems(identity)):
            problems, code = flaws, "IDENTITY_INVALID"
        limits = self._limits if above is None else above.limits
        depth_max: int | None = None
        if draft.limits is not None and not problems:
            limits, depth_max = limits.narrow(draft.limits), draft.limits.depth_max
        if agent is not None and agent.limits is not None:
            limits = limits.narrow(agent.limits)
        if capability is not None:
            if capability.limits is not None:
                limits = limits.narrow(capability.limits)
            if timeout_ms is None:
                timeout_ms = capability.timeout_ms
        if not (has_own_time := type(timeout_ms) is int):
            timeout_ms = limits.timeout_ms
        if timeout_ms > limits.timeout_ms_max:  # noqa: PLR1730  `min` costs as much as three rules
            timeout_ms = limits.timeout_ms_max
        deadline_at = now_ms + timeout_ms
        raw, checked = _EMPTY, None
        if not problems and draft.inputs:
            try:
                raw, checked = _packed(draft.inputs, capability)
            except PayloadError as error:
                problems, code = error.problems, error.code
        if problems or capability is None:  # record nothing that was not validated
            target, called, identity = recordable(target), recordable(called), named(identity) if problems else identity
        if above is None:
            source = parent_id = None
            chain: tuple[str, ...] = ()
            root_id = correlation_id = request_id
            parent_span_id, priority = "", _NORMAL
            trace_id = trace_id or self._ids.trace_id()
            span_id = trace_id[16:]  # as random as any
        else:
            source, chain, root_id, parent_id = above.target, (*above.chain, above.target), above.root_id, above.request_id
            correlation_id, trace_id, parent_span_id = above.correlation_id, above.trace_id, above.span_id
            priority = above.priority
            deadline_at = self._inheritance.deadline_at(deadline_at, above.deadline_at, now_ms, has_own_time)
            span_id = self._ids.span_id()
        objective = message = ""
        history, context = draft.history, None
        if not is_plain:
            objective, message, history, context, correlation_id = _said(draft, correlation_id, is_sound=not problems)
        if draft.priority is not None and not problems:
            priority = _NORMAL if is_plain else _priority(draft.priority, priority)
        session_id = request_id if identity.session_id is None else identity.session_id
        body = _EMPTY_BODY if raw is _EMPTY else Raw(raw)
        # By position: naming two dozen fields costs as much as all the rules together.
        request = Request(
            request_id, target, called, identity.user_id, limits, deadline_at, now_ms, VERSION, source, chain, body, objective,
            message, priority, root_id, parent_id, correlation_id, identity.tenant_id, session_id, identity.parent_session_id,
            context, None, trace_id, span_id, parent_span_id, history,
        )  # fmt: skip
        if not is_plain or (above is not None and (above.tools is not None or self._is_chained)):
            request = self._furnished(request, draft, above, is_sound=not problems)
        return Arrival(request, raw, agent, capability, problems, code, depth_max, checked)

    def read_plain(self, draft: Draft, identity: Identity, request_id: str, now_ms: int, trace_id: str) -> Arrival | None:
        """Fast path of `read` for a user's call with agent, capability and inputs only, as most are; None for any other.

        The identity must be in the cache, and the capability's types must allow inputs to be validated while they are packed.
        """
        address = self._addresses.get(draft.target) if type(draft.target) is str else None
        if address is None or type(draft.capability) is not str or not _is_plain(draft):
            return None
        agent, limits = address.agent, self._limits
        capability = agent.capabilities.get(draft.capability)
        if capability is None or capability.take is None or capability.limits is not None or agent.limits is not None:
            return None
        user_id, tenant_id, session_id = key = (identity.user_id, identity.tenant_id, identity.session_id)
        is_text = type(user_id) is type(tenant_id) is str and type(session_id) in _TEXT_OR_NONE
        if not is_text or key not in self._sound or identity.parent_session_id is not None or not draft.inputs:
            return None
        taken = capability.take(draft.inputs)
        if taken is None:
            return None
        timeout_ms = limits.timeout_ms if capability.timeout_ms is None else capability.timeout_ms
        if timeout_ms > limits.timeout_ms_max:  # noqa: PLR1730  `min` costs as much as three rules
            timeout_ms = limits.timeout_ms_max
        request = Request(
            request_id, address.text, draft.capability, user_id, limits, now_ms + timeout_ms, now_ms, VERSION, None, (),
            Raw(taken[0]), "", "", _NORMAL, request_id, None, request_id, tenant_id,
            request_id if session_id is None else session_id, None, None, None, trace_id, trace_id[16:], "", draft.history,
        )  # fmt: skip
        return Arrival(request, taken[0], agent, capability, (), "", None, Checked(taken[1]))

    def _furnished(self, request: Request, draft: Draft, above: Request | None, *, is_sound: bool) -> Request:
        """Return the request with its granted tools and the further fields of its document."""
        if draft.tools is not None or (above is not None and (above.tools is not None or self._is_chained)):
            request = replace(request, tools=self._granted(above, draft.tools if is_sound else None))
        if draft.outside is not None:
            request = draft.outside.applied(request)
        return request if draft.metadata is None else replace(request, metadata=draft.metadata)

    def _granted(self, above: Request | None, named: Any) -> tuple[str, ...] | None:
        if above is None:
            return self._inheritance.tools(None, EVERYTHING, named)
        caller = self._registry.resolve(above.target)
        return self._inheritance.tools(above.tools, frozenset() if caller is None else caller.agent.tools_allowed, named)

    def _identity_problems(self, identity: Identity) -> tuple[Problem, ...]:
        user_id, tenant_id, session_id = key = (identity.user_id, identity.tenant_id, identity.session_id)
        # A subclass of str may equal a cached text but cannot be encoded.
        is_text = type(user_id) is type(tenant_id) is str and type(session_id) in _TEXT_OR_NONE
        if is_text and key in self._sound and identity.parent_session_id is None:
            return ()
        problems = identity_problems(identity)
        if not problems:
            if len(self._sound) >= IDENTITIES_KEPT_MAX:
                self._sound.clear()
            self._sound.add(key)
        return problems


def _is_plain(draft: Draft) -> bool:
    """Return whether a draft has no optional argument that would have to be checked, as most have not."""
    return (
        (type(draft.inputs) is dict or draft.inputs is None)
        and draft.objective is _NO_TEXT
        and draft.message is _NO_TEXT
        and draft.timeout_ms is None
        and draft.context is None
        and draft.limits is None
        and (draft.priority is _NORMAL_WORD or draft.priority is None)
        and (draft.history is _ALL or draft.history is _NONE)
        and draft.tools is None
        and draft.correlation_id is _NO_TEXT
        and draft.metadata is None
        and draft.outside is None
    )


def _packed(inputs: dict[str, Any], capability: Capability | None) -> tuple[bytes, Checked | None]:
    """Return inputs as JSON, and their validated form if packing validated them. Raises `PayloadError`."""
    if capability is not None and capability.take is not None and (taken := capability.take(inputs)) is not None:
        return taken[0], Checked(taken[1])
    # With declared input names, no key can be a number.
    return pack(inputs, "inputs", INPUTS_BYTES_MAX, capability is not None and capability.is_closed), None


def _said(draft: Draft, workflow: str, *, is_sound: bool) -> tuple[str, str, str | int, Background | None, str]:
    """Return objective, message, history, context and workflow in a form that can be recorded, even if they are invalid."""
    if not is_sound:  # a refusal does not record invalid values
        return "", "", "none", None, workflow
    context = draft.context
    if context is not None:
        context = _decode_background(encode(context))  # a copy: what the caller holds may change, what was sent may not
    return draft.objective, draft.message, draft.history, context, draft.correlation_id or workflow


def _priority(asked: Any, otherwise: Priority) -> Priority:
    return _PRIORITIES.get(asked, otherwise) if isinstance(asked, str) else otherwise


def draft_problems(draft: Draft) -> tuple[tuple[Problem, ...], str]:
    """Return the problems of a draft and their error code. The identity is checked elsewhere, where it is bound."""
    try:
        return _problems_of(draft)
    except (Exception, SystemExit) as raised:  # noqa: BLE001  looking at a value runs its code
        return (unlooked("request", raised),), "INPUT_VALIDATION_FAILED"


def _problems_of(draft: Draft) -> tuple[tuple[Problem, ...], str]:
    problems = [
        Problem(name, f"must be text, not {type(value).__name__}")
        for name, value in (("target", draft.target), ("capability", draft.capability))
        if type(value) is not str
    ]
    if draft.inputs is not None and type(draft.inputs) is not dict:
        problems.append(Problem("inputs", f"must be an object with named fields, not {type(draft.inputs).__name__}"))
    if draft.timeout_ms is not None and not (type(draft.timeout_ms) is int and 0 <= draft.timeout_ms <= TIMEOUT_MS_CEILING):
        problems.append(Problem("timeout_ms", f"must be a whole number from 0 to {TIMEOUT_MS_CEILING}"))
    if draft.priority is not None and not (isinstance(draft.priority, str) and draft.priority in _PRIORITIES):
        problems.append(Problem("priority", f"must be one of {', '.join(Priority)}"))
    if draft.context is not None:
        is_background = type(draft.context) is Background
        problems += context_problems(draft.context) if is_background else [Problem("context", "must be a Background")]
    history = draft.history
    is_policy = isinstance(history, str) and history in ("none", "summary", "full")
    if not is_policy and not (type(history) is int and history >= 0):
        problems.append(Problem("history", "must be none, summary, full or a number of turns"))
    if draft.limits is not None and type(draft.limits) is not Limits:
        problems.append(Problem("limits", "must be a Limits"))
    if draft.tools is not None and not (isinstance(draft.tools, _LISTS) and all(map(is_id, draft.tools))):
        problems.append(Problem("tools", "must be a list of names of tools"))
    if draft.correlation_id is not _NO_TEXT and not (type(draft.correlation_id) is str and is_id(draft.correlation_id)):
        problems.append(Problem("correlation_id", _NAME_RULE))
    code = "INPUT_VALIDATION_FAILED"
    for name, value, most in (
        ("objective", draft.objective, OBJECTIVE_CHARS_MAX),
        ("message", draft.message, MESSAGE_BYTES_MAX),
    ):
        if problem := text_problem(value, path=name, bytes_max=most):
            problems.append(problem)
            code = "ENVELOPE_TOO_LARGE" if "at most" in problem.message else code
    return (tuple(problems), code) if problems else ((), "")


def identity_problems(identity: Identity) -> tuple[Problem, ...]:
    """Return the problems of the ids of user, tenant and session."""
    return tuple(
        Problem(name, _NAME_RULE)
        for name, value, may_miss in (
            ("user_id", identity.user_id, False),
            ("tenant_id", identity.tenant_id, False),
            ("session_id", identity.session_id, True),
            ("parent_session_id", identity.parent_session_id, True),
        )
        if not (is_id(value) or (may_miss and value is None))
    )


def check_names(**names: Any) -> None:
    """Raise `CallerError` for arguments that are no valid names."""
    if problems := tuple(Problem(field, _NAME_RULE) for field, name in names.items() if not is_id(name)):
        raise rejected(PayloadError("IDENTITY_INVALID", problems))


def named(identity: Identity) -> Identity:
    """Return an identity that can be recorded; invalid ids are escaped and cut."""
    session_id = None if identity.session_id is None else recordable(identity.session_id)  # None stays None
    return Identity(recordable(identity.user_id), recordable(identity.tenant_id), session_id)


def recordable(value: Any) -> str:
    """Return a name that can be recorded. An invalid one is escaped and cut: it was noted as a problem or is unknown anyway."""
    if type(value) is str and value.isprintable() and len(value) <= ID_CHARS_MAX:
        return value
    return quoted(value)[1:-1][:ID_CHARS_MAX] if issubclass(type(value), str) else quoted(value)


def quoted(value: Any) -> str:
    """Return an invalid name for the text of a refusal: a string escaped, of any other value only its type."""
    return ascii(str.__str__(value)) if issubclass(type(value), str) else f"({type(value).__name__})"
