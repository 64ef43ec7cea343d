"""From one dialect to another by way of the canonical envelope, with a list of what the other dialect cannot say.

What is lost is not looked up anywhere: the new document is read back, and whatever differs from what went in is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from enum import StrEnum
from types import ModuleType
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from comity.core.call.limits import CITED_CHARS_MAX, Limits
from comity.core.document.payload import Problem
from comity.core.envelope.envelope import Reply, Request
from comity.dialects import call_agent, contextcore, delegation, delegation_result, kdap, kdap_routing, sacp
from comity.dialects.reading import document
from comity.dialects.reading.document import MESSAGE_CAPABILITY, Names, malformed, renamed
from comity.dialects.reading.form import fields_of, is_default
from comity.errors import CallerError

UNKNOWN: Final = "unknown"


class Kind(StrEnum):
    """What a document is."""

    REQUEST = "request"
    REPLY = "reply"
    HANDOFF_CONTEXT = "handoff_context"
    INTENT = "intent_classification"


class Dialect(Struct, frozen=True, kw_only=True):
    """A dialect's functions. `request_field` is a field that only requests have; without requests it is None.

    `asks` names the keyword arguments of `decode_request` for what the dialect's documents may leave unsaid. `time_field` says
    how long a request may take, in dialects whose documents leave that to the callee when they say nothing. `finished` adds to
    a node's reply what the dialect asks for and only the node knows; it is given the version of the capability.
    """

    name: str
    load: Callable[[Any], dict[str, Any]]
    decode_reply: Callable[[Any], Reply]
    encode_reply: Callable[[Reply], dict[str, Any]]
    finished: Callable[[Reply, str], Reply] = lambda reply, _: reply
    reply_names: Names
    decode_request: Callable[..., Request] | None = None
    encode_request: Callable[..., dict[str, Any]] | None = None
    request_names: Names = {}
    request_field: str | None = None
    asks: frozenset[str] = frozenset()
    time_field: str = ""
    has_budget: bool = False  # whether a request says how many tokens may be spent on it
    has_own_sessions: bool = False  # whether what one agent asks of another is another conversation


class Conversion(Struct, frozen=True, kw_only=True):
    """A converted document, and how good it is. Paths are words of the source dialect where it has one, canonical otherwise."""

    kind: Kind
    document: dict[str, Any]
    mapped: tuple[str, ...]
    lost: tuple[Problem, ...]
    assumed: tuple[str, ...]  # canonical fields the target says and the source does not; they hold what `convert` was given


def _of(module: ModuleType, load: Callable[[Any], dict[str, Any]] = document.load, **more: Any) -> Dialect:
    """Return the dialect of a module; one without requests has functions for replies alone."""
    return Dialect(
        name=module.NAME,
        load=load,
        decode_reply=module.decode_reply,
        encode_reply=module.encode_reply,
        reply_names=module.REPLY_NAMES,
        decode_request=getattr(module, "decode_request", None),
        encode_request=getattr(module, "encode_request", None),
        request_names=getattr(module, "REQUEST_NAMES", {}),
        **more,
    )


_ALL: Final = (
    _of(
        kdap,
        lambda raw: kdap.load(raw, kdap.Heading.REQUEST, kdap.Heading.RESPONSE),
        finished=kdap.finished,
        request_field="source_agent",
        asks=frozenset({"user_id"}),
        time_field="timeout_ms",
    ),
    _of(
        delegation,
        finished=delegation_result.finished,
        request_field="origin_employee",
        asks=frozenset({"capability"}),
        has_budget=True,
        has_own_sessions=True,
    ),
    _of(
        call_agent,
        request_field="agent_id",
        asks=frozenset({"request_id", "user_id", "capability"}),
        time_field="timeout_ms",
    ),
    _of(contextcore, request_field="from_agent", asks=frozenset({"user_id"})),
    _of(sacp),
)
DIALECTS: Final = {dialect.name: dialect for dialect in _ALL}

# What KDAP's two documents of the orchestrator differ in: neither has an id, a source or a time of its own.
_ROUTING: Final = replace(
    DIALECTS[kdap.NAME],
    load=kdap_routing.load_routing,
    decode_request=kdap_routing.decode_routing,
    encode_request=None,
    request_names={},
    request_field=None,
    asks=frozenset({"user_id", "request_id"}),
)

# Read back in place of what the target could not say, so that the loss shows.
_UNSAID: Final = {"user_id": "(unsaid)", "request_id": "(unsaid)", "capability": "(unsaid)"}
# Follow from other fields.
_DERIVED: Final = frozenset({"version", "error.advice", "error.retryable"})


def convert(
    raw: Any,
    source: str,
    target: str,
    *,
    now_ms: int = 0,
    user_id: str = UNKNOWN,
    request_id: str = UNKNOWN,
    capability: str = MESSAGE_CAPABILITY,
) -> Conversion:
    """Return a request or reply of one dialect as a document of another; the ids stand in where the source says none."""
    ours, theirs = dialect(source), dialect(target)
    if source == kdap.NAME and (found := _routing(raw, target)) is not None:
        return found
    plain = ours.load(raw)
    if ours.decode_request is None or ours.request_field not in plain:
        reply = ours.decode_reply(plain)
        written = theirs.encode_reply(reply)
        comparison = _Comparison(reply, theirs.decode_reply(written), ours.reply_names, theirs.name)
        return comparison.result(Kind.REPLY, written)
    given = {"user_id": user_id, "request_id": request_id, "capability": capability}
    request = _read(plain, ours.decode_request, ours.asks, given, now_ms)
    if theirs.decode_request is None or theirs.encode_request is None:
        raise malformed([Problem("$", f"is a request, and {target} has only replies")])
    written = theirs.encode_request(request, now_ms=now_ms)
    back = _read(written, theirs.decode_request, theirs.asks, _UNSAID, now_ms)
    comparison = _Comparison(request, back, ours.request_names, theirs.name)
    return comparison.result(
        Kind.REQUEST, written, unsaid={name for name in ours.asks if getattr(request, name) == given[name]}
    )


def _routing(raw: Any, target: str) -> Conversion | None:
    """Return an orchestrator's document in KDAP's own form; None if it is another kind of document."""
    if kdap_routing.is_headed(raw, kdap.Heading.HANDOFF_CONTEXT):
        kind, written = Kind.HANDOFF_CONTEXT, kdap_routing.encode_handoff_context(kdap_routing.decode_handoff_context(raw))
    elif kdap_routing.is_headed(raw, kdap.Heading.INTENT_CLASSIFICATION):
        kind, written = Kind.INTENT, kdap_routing.encode_intent(kdap_routing.decode_intent(raw))
    else:
        return None
    if target != kdap.NAME:
        raise malformed([Problem("$", f"is of the kind {kind}, for which {target} has no words")])
    return Conversion(kind=kind, document=written, mapped=tuple(written), lost=(), assumed=())


def _read(
    plain: dict[str, Any], decode: Callable[..., Request], asks: frozenset[str], unsaid: dict[str, str], now_ms: int
) -> Request:
    """Return a request, with the same limits in every dialect, so that only what documents say differs."""
    return decode(plain, now_ms=now_ms, limits=Limits(), **{name: unsaid[name] for name in asks})


def dialect(name: str) -> Dialect:
    """Return a dialect by its name, or raise `CallerError`."""
    if type(name) is not str or name not in DIALECTS:
        shown = ascii(name)[:CITED_CHARS_MAX] if type(name) is str else f"of type {type(name).__name__}"
        raise CallerError(f"no dialect {shown}; there are {', '.join(DIALECTS)}")
    return DIALECTS[name]


def dialect_of(name: str, document: Any) -> Dialect:
    """Return the dialect that reads a document at a door, or raise `CallerError`."""
    found = dialect(name)
    return _ROUTING if name == kdap.NAME and kdap_routing.is_routing(document) else found


class _Comparison:
    """What went in against what was read back, field by field."""

    __slots__ = ("after", "before", "names", "target")

    def __init__(self, before: Request | Reply, after: Request | Reply, names: Names, target: str) -> None:
        self.before = list(_leaves(before))
        self.after = {path: (value, is_unsaid) for path, value, is_unsaid in _leaves(after)}
        self.names = names
        self.target = target

    def result(self, kind: Kind, written: dict[str, Any], *, unsaid: Collection[str] = ()) -> Conversion:
        """Sort every field into mapped, lost and assumed; `unsaid` are those the source did not say though they are set."""
        mapped: dict[str, None] = {}
        lost: dict[str, Problem] = {}
        assumed: list[str] = []
        for path, value, is_default_value in self.before:
            then, is_gone = self.after.get(path, (None, True))
            word = renamed(path, self.names)
            if is_default_value or path in unsaid:
                if path in self.after and then != _UNSAID.get(path) and (then != value or path in unsaid):
                    assumed.append(path)
            elif then == value:
                mapped[word] = None
            else:
                lost.setdefault(word, Problem(word, self._loss(value, then, is_gone=is_gone or then == _UNSAID.get(path))))
        return Conversion(
            kind=kind,
            document=written,
            mapped=tuple(word for word in mapped if word not in lost),
            lost=tuple(lost.values()),
            assumed=tuple(assumed),
        )

    def _loss(self, value: Any, then: Any, *, is_gone: bool) -> str:
        if is_gone:
            return f"has no field of its own in {self.target}"
        # Words and figures of the protocol may be shown, a person's text may not.
        return f"{value} becomes {then}" if isinstance(value, (StrEnum, float)) else "does not come back as it was"


def _leaves(value: Struct, prefix: str = "") -> Iterator[tuple[str, Any, bool]]:
    """Yield every field of an envelope by its path, and whether it holds its default."""
    for field in fields_of(type(value)):
        path, item = prefix + field.encode_name, getattr(value, field.name)
        if path in _DERIVED:
            continue
        if isinstance(value, Request) and field.name == "body":
            yield path, value.inputs, not value.inputs
        elif isinstance(item, Struct):
            yield from _leaves(item, f"{path}.")
        elif field.name in {"metadata", "extra"}:
            yield from ((f"{path}.{key}", inner, False) for key, inner in item.items() if not key.startswith("form."))
        else:
            yield path, item, is_default(field, item)
