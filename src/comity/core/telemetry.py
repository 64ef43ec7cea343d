"""What is recorded of calls for tracing: how it is set up, and how an ended call or tool use becomes a span.

Names are OpenTelemetry's for generative AI; what they have no word for begins with `comity.`. The emission mode decides
whether agent, session, provider and tokens appear under their old names, their current ones, or both. What people and agents
said is content: it is left out unless it was asked for, and so are the words of errors, which may quote it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import unquote

import msgspec
from msgspec import Struct

from comity.core.emission import Mode, emission_mode
from comity.core.envelope import Priority, Reply, Request
from comity.core.given import rejected
from comity.core.payload import PayloadError, Problem
from comity.core.span import INT64_MAX, INT64_MIN, Attributes, Kind, Span
from comity.core.span import Status as SpanStatus
from comity.core.trace_context import TraceContext

PROVIDER: Final = "comity"
TOOL_PREFIX: Final = "tool:"
MODEL_PREFIX: Final = "model:"
# Spans that may wait for the collector; more are counted and dropped.
EXPORT_QUEUE_MAX: Final = 16_384
EXPORT_BATCH_MAX: Final = 512
EXPORT_TIMEOUT_MS: Final = 10_000
PROTOBUF, JSON = "http/protobuf", "http/json"

_TRACES_PATH = "/v1/traces"
_RANDOM_DIGITS, _RANDOM_RANGE = 14, 2**56  # of a trace id: the last 7 bytes, which are random in every kind of id
_SAMPLERS: Final[Mapping[str, float | None]] = {"always_on": 1.0, "always_off": 0.0, "traceidratio": None}
_YES = frozenset({"true", "1", "yes"})
_encode = msgspec.json.Encoder().encode


class Handed(Struct, frozen=True, array_like=True, gc=False):
    """What more is known of a call that was handed off."""

    receiver: str
    state: str
    attempts: int
    result_trace_id: str


class CallEnd(Struct, frozen=True, gc=False):
    """One call or tool use that has ended, as the call path hands it over: nothing is worked out there."""

    request: Request
    reply: Reply
    start_ns: int
    end_ns: int
    remote: TraceContext | None = None  # the trace its root came with from outside
    handed: Handed | None = None


class Ended(Struct, frozen=True, array_like=True, gc=False):
    """What of an ended call goes into its span, and no more: small, and quick to write down."""

    trace_id: str
    span_id: str
    parent_span_id: str
    target: str
    capability: str
    source: str | None
    request_id: str
    root_id: str
    session_id: str
    tenant_id: str
    depth: int
    priority: str
    status: str
    code: str
    prompt_tokens: int
    completion_tokens: int
    calls: int
    confidence: float | None
    degraded: bool
    start_ns: int
    end_ns: int
    is_remote: bool = False  # its parent is in another process
    trace_state: str = ""
    content: tuple[str, ...] = ()  # objective, message, inputs, answer, data and error, where content is kept
    handed: Handed | None = None


Recorded = CallEnd | Ended | Span


class Origin(Struct, frozen=True):
    """What the spans of one node have in common."""

    mode: Mode = Mode.DUAL
    resource: Attributes = msgspec.field(default_factory=lambda: {"service.name": PROVIDER})
    version: str = ""


class ExportStats(Struct, frozen=True, kw_only=True):
    """How the export goes: spans sent, refused by the collector, dropped for want of room, still waiting."""

    exported: int = 0
    refused: int = 0
    unsound: int = 0  # of those refused: never sent, since they cannot be encoded
    dropped: int = 0
    waiting: int = 0
    failures: int = 0  # attempts in a row that failed
    last_error: str = ""
    unstored: int = 0  # recorded faster than the store could write, or not to be written at all


class Settings(Struct, frozen=True, kw_only=True):
    """How a node records. `endpoint` is the whole address that traces are sent to; empty means to nobody."""

    origin: Origin = msgspec.field(default_factory=Origin)
    project_id: str = ""
    is_disabled: bool = False
    ratio: float = 1.0
    follows_parent: bool = True
    captures_content: bool = False
    endpoint: str = ""
    protocol: str = PROTOBUF
    headers: tuple[tuple[str, str], ...] = ()
    timeout_ms: int = EXPORT_TIMEOUT_MS
    is_gzipped: bool = False
    queue_max: int = EXPORT_QUEUE_MAX
    batch_max: int = EXPORT_BATCH_MAX
    problems: tuple[str, ...] = ()

    def samples(self, trace_id: str, remote: TraceContext | None) -> bool:
        """Return whether the spans of a trace are kept."""
        if remote is not None and self.follows_parent:
            return remote.is_sampled
        return self.ratio >= 1.0 or int(trace_id[-_RANDOM_DIGITS:], 16) < self.ratio * _RANDOM_RANGE


def settings_from(environ: Mapping[str, str], *, version: str = "") -> Settings:
    """Return what the environment asks for. A value that cannot be used is named in `problems` and left out."""
    problems: list[str] = []
    read = _Variables(environ, problems)
    resource = dict(read.pairs("OTEL_RESOURCE_ATTRIBUTES"))
    resource["service.name"] = read.text("OTEL_SERVICE_NAME") or resource.get("service.name") or PROVIDER
    resource |= {"telemetry.sdk.name": PROVIDER, "telemetry.sdk.language": "python"}
    if version:
        resource["telemetry.sdk.version"] = version
    sampler = read.text("OTEL_TRACES_SAMPLER", "parentbased_always_on").lower()
    kind = sampler.removeprefix("parentbased_")
    if kind not in _SAMPLERS:
        problems.append(f"OTEL_TRACES_SAMPLER {sampler!r} is not known; every trace is kept")
    ratio = _SAMPLERS.get(kind, 1.0)
    project_id = read.text("COMITY_PROJECT", "CONTEXTCORE_PROJECT") or str(resource.get("project.id", ""))
    protocol = read.text("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL") or PROTOBUF
    if protocol not in (PROTOBUF, JSON):
        problems.append(f"OTLP protocol {protocol!r} is not spoken here; {PROTOBUF} is used")
        protocol = PROTOBUF
    compression = read.text("OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_COMPRESSION")
    return Settings(
        origin=Origin(mode=emission_mode(environ), resource=resource, version=version),
        project_id=project_id,
        is_disabled=read.flag("OTEL_SDK_DISABLED"),
        ratio=read.number("OTEL_TRACES_SAMPLER_ARG", 1.0, most=1.0) if ratio is None else ratio,
        follows_parent=sampler.startswith("parentbased_") or kind not in _SAMPLERS,
        captures_content=read.flag("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "span_only", "span_and_event")
        or read.flag("CONTEXTCORE_GENAI_CONTENT_LOGGING"),
        endpoint=read.endpoint(),
        protocol=protocol,
        headers=tuple(read.pairs("OTEL_EXPORTER_OTLP_TRACES_HEADERS") or read.pairs("OTEL_EXPORTER_OTLP_HEADERS")),
        timeout_ms=int(
            read.number(
                "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
                read.number("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_TIMEOUT_MS, least=1),
                least=1,
            )
        ),
        is_gzipped=compression == "gzip",
        queue_max=int(read.number("OTEL_BSP_MAX_QUEUE_SIZE", EXPORT_QUEUE_MAX, least=1)),
        batch_max=int(read.number("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", EXPORT_BATCH_MAX, least=1)),
        problems=tuple(problems),
    )


class _Variables:
    """Reads variables; an empty one is one that is not set, as OpenTelemetry says."""

    def __init__(self, environ: Mapping[str, str], problems: list[str]) -> None:
        self._environ = environ
        self._problems = problems

    def text(self, *names: str) -> str:
        """Return the first that is set. A word without capitals is not a name but the default."""
        return next((found for name in names if (found := self._environ.get(name, "" if name.isupper() else name).strip())), "")

    def flag(self, name: str, *also: str) -> bool:
        return self.text(name).lower() in _YES.union(also)

    def number(self, name: str, default: float, *, least: float = 0.0, most: float = 2.0**31) -> float:
        text = self.text(name)
        try:
            found = float(text) if text else default
        except ValueError:
            found = -1.0
        if least <= found <= most:
            return found
        self._problems.append(f"{name} is {text!r}; {default:g} is used")
        return default

    def pairs(self, name: str) -> list[tuple[str, str]]:
        found = []
        for part in filter(None, (part.strip() for part in self.text(name).split(","))):
            key, equals, value = part.partition("=")
            if not equals or not key.strip():
                self._problems.append(f"{name} has {part.partition('=')[0]!r} without a value")
                continue
            found.append((unquote(key.strip()), unquote(value.strip())))
        return found

    def endpoint(self) -> str:
        if self.text("OTEL_TRACES_EXPORTER").lower() == "none":
            return ""
        found = self.text("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
        if not found and (base := self.text("OTEL_EXPORTER_OTLP_ENDPOINT")):
            found = base.rstrip("/") + _TRACES_PATH
        if found and not found.startswith(("http://", "https://")):
            self._problems.append(f"the OTLP endpoint {found!r} is no http address; nothing is exported")
            return ""
        return found


# --- names under each emission mode -------------------------------------------------------------------------------------

_LEGACY: Final = {
    "gen_ai.agent.id": "agent.id",
    "gen_ai.conversation.id": "agent.session_id",
    "gen_ai.provider.name": "gen_ai.system",
    "gen_ai.usage.input_tokens": "gen_ai.usage.prompt_tokens",
    "gen_ai.usage.output_tokens": "gen_ai.usage.completion_tokens",
}


_OTEL, _ONLY_LEGACY = Mode.OTEL, Mode.LEGACY


def named(attributes: Mapping[str, Any], mode: Mode) -> dict[str, Any]:
    """Return attributes under the names of a mode, given under their current ones; what is None is left out."""
    found = {name: value for name, value in attributes.items() if value is not None}
    if mode is not _OTEL:
        for name, old in _LEGACY.items():
            if name in found:
                found[old] = found.pop(name) if mode is _ONLY_LEGACY else found[name]
    return found


def belonging(request: Request) -> dict[str, Any]:
    """Return what says to which call, session and tenant a span belongs, under current names; so it is erased with them."""
    return {
        "gen_ai.conversation.id": request.session_id if request.session_id != request.root_id else None,
        "comity.request.id": request.request_id,
        "comity.root.id": request.root_id if request.root_id != request.request_id else None,
        "comity.tenant.id": request.tenant_id if request.tenant_id != "default" else None,
    }


_SESSION_NAMES: Final = ("gen_ai.conversation.id", _LEGACY["gen_ai.conversation.id"], "comity.root.id", "comity.request.id")


def session_of(attributes: Attributes) -> Any:
    """Return the session of a span, under the names of any mode; one without a name is known by its root call."""
    return next((attributes[name] for name in _SESSION_NAMES if name in attributes), None)


def is_of_session(attributes: Attributes, session_id: str, tenant_id: str) -> bool:
    """Return whether a span with these attributes belongs to a session."""
    return bool(session_of(attributes) == session_id) and attributes.get("comity.tenant.id", "default") == tenant_id


def storable(value: Any) -> Any:
    """Return a value as an attribute can hold it; what is no attribute value becomes its text."""
    if type(value) is str and value.isascii():
        return value
    if value is None or isinstance(value, (bool, float, bytes)):
        return value
    if isinstance(value, int) and INT64_MIN <= value <= INT64_MAX:
        return int(value)
    if isinstance(value, (list, tuple)):
        return tuple(storable(one) for one in value)
    if isinstance(value, dict):
        return {storable(str(key)): storable(one) for key, one in value.items()}
    return str(value).encode(errors="replace").decode()


def plain_attributes(given: Any) -> dict[str, Any]:
    """Return what somebody gave as attributes as they can be stored, or raise `CallerError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise rejected(
            PayloadError("INPUT_VALIDATION_FAILED", (Problem("attributes", "must be a mapping of names to values"),))
        )
    return {storable(str(name)): storable(value) for name, value in given.items()}


# --- spans of calls and tools -------------------------------------------------------------------------------------------


def summarize(end: CallEnd, captures_content: bool = False) -> Ended:
    """Return what goes into the span of an ended call."""
    request, reply, remote = end.request, end.reply, end.remote
    usage, error = reply.usage, reply.error
    return Ended(
        request.trace_id,
        request.span_id,
        request.parent_span_id,
        request.target,
        request.capability,
        request.source,
        request.request_id,
        request.root_id,
        request.session_id,
        request.tenant_id,
        len(request.chain),
        request.priority,
        reply.status,
        "" if error is None else error.code,
        usage.prompt_tokens,
        usage.completion_tokens,
        usage.calls,
        reply.confidence,
        reply.degraded,
        end.start_ns,
        end.end_ns,
        remote is not None and request.parent_id is None,
        "" if remote is None else remote.state,
        _content(request, reply) if captures_content and end.handed is None else (),
        end.handed,
    )


def _content(request: Request, reply: Reply) -> tuple[str, ...]:
    data = "" if reply.data is None else _encode(reply.data).decode()
    error = "" if reply.error is None else reply.error.message
    return (request.objective, request.message, bytes(request.body).decode(), reply.message, data, error)


def span_of(one: Recorded, settings: Settings) -> Span:
    """Return the span of what was recorded, however far it was worked out."""
    if isinstance(one, CallEnd):
        one = summarize(one, captures_content=settings.captures_content)
    return one if isinstance(one, Span) else call_span(one, settings.origin)


def call_span(ended: Ended, origin: Origin) -> Span:
    """Return the span of a call, a tool use or a model's answer that has ended."""
    kind = Kind.SERVER if ended.is_remote else Kind.INTERNAL
    if ended.handed is not None:
        name, attributes = f"handoff {ended.capability}", _handoff_attributes(ended, ended.handed)
    elif ended.target.startswith(TOOL_PREFIX):
        name, attributes = f"execute_tool {ended.capability}", _tool_attributes(ended)
    elif ended.target.startswith(MODEL_PREFIX):
        attributes = _model_attributes(ended)
        name, kind = f"chat {attributes['gen_ai.request.model']}", Kind.CLIENT
    else:
        name, attributes = f"invoke_agent {ended.target.partition('/')[0]}", _call_attributes(ended)
    return Span(
        trace_id=ended.trace_id,
        span_id=ended.span_id,
        parent_id=ended.parent_span_id or None,
        name=name,
        kind=kind,
        start_ns=ended.start_ns,
        end_ns=ended.end_ns,
        status=SpanStatus.ERROR if ended.code else SpanStatus.UNSET,
        status_message=ended.content[-1] if ended.content else "",
        attributes=named(attributes, origin.mode),
        resource=origin.resource,
        scope_name=PROVIDER,
        scope_version=origin.version,
        trace_state=ended.trace_state,
    )


def _common(ended: Ended) -> dict[str, Any]:
    return {
        "gen_ai.conversation.id": ended.session_id if ended.session_id != ended.root_id else None,
        "error.type": ended.code or None,
        "comity.status": ended.status,
        "comity.request.id": ended.request_id,
        "comity.root.id": ended.root_id if ended.root_id != ended.request_id else None,
        "comity.tenant.id": ended.tenant_id if ended.tenant_id != "default" else None,
    }


def _handoff_attributes(ended: Ended, handed: Handed) -> dict[str, Any]:
    """Under the names of seed 003 and OpenTelemetry's; the inputs and the result are content, and stay out."""
    return {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.call.id": ended.request_id,
        "gen_ai.tool.name": ended.capability,
        "gen_ai.tool.type": "agent_handoff",
        "gen_ai.agent.id": ended.target,
        "gen_ai.conversation.id": ended.session_id if ended.session_id != ended.root_id else None,
        "comity.request.id": ended.request_id,
        "handoff.id": ended.request_id,
        "handoff.capability_id": ended.capability,
        "handoff.from_agent": ended.source or None,
        "handoff.to_agent": ended.target,
        "handoff.receiver": handed.receiver or None,
        "handoff.priority": str(ended.priority),
        "handoff.status": handed.state,
        "handoff.attempts": handed.attempts,
        "handoff.result_trace_id": handed.result_trace_id or None,
        "error.type": ended.code or None,
        "comity.tenant.id": ended.tenant_id if ended.tenant_id != "default" else None,
    }


def _call_attributes(ended: Ended) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": PROVIDER,
        "gen_ai.agent.id": ended.target,
        "gen_ai.agent.name": ended.target.partition("/")[0],
        "gen_ai.usage.input_tokens": ended.prompt_tokens or None,
        "gen_ai.usage.output_tokens": ended.completion_tokens or None,
        "comity.capability": ended.capability,
        "comity.source": ended.source,
        "comity.depth": ended.depth,
        "comity.priority": ended.priority if ended.priority != Priority.NORMAL else None,
        "comity.confidence": None if ended.confidence is None else float(ended.confidence),
        "comity.calls": ended.calls or None,
        "comity.degraded": ended.degraded or None,
    } | _common(ended)
    if ended.content:
        objective, message, inputs, answer, data, error = ended.content
        attributes["gen_ai.input.messages"] = _message("user", [objective, message, inputs])
        attributes["gen_ai.output.messages"] = _message("assistant", [answer, data], "error" if error else "stop")
    return attributes


def _tool_attributes(ended: Ended) -> dict[str, Any]:
    attributes = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.agent.id": ended.source,
        "gen_ai.tool.name": ended.capability,
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": ended.request_id,
    } | _common(ended)
    if ended.content:
        attributes["gen_ai.tool.call.arguments"] = ended.content[2]
        attributes["gen_ai.tool.call.result"] = ended.content[4] or None
    return attributes


def _model_attributes(ended: Ended) -> dict[str, Any]:
    provider, colon, model = ended.target.removeprefix(MODEL_PREFIX).partition(":")
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": provider if colon else PROVIDER,
        "gen_ai.request.model": model if colon else provider,
        "gen_ai.agent.id": ended.source,
        "gen_ai.usage.input_tokens": ended.prompt_tokens or None,
        "gen_ai.usage.output_tokens": ended.completion_tokens or None,
    } | _common(ended)
    if ended.content:
        attributes["gen_ai.output.messages"] = _message("assistant", [ended.content[4]], "stop")
    return attributes


def _message(role: str, texts: list[str], finish_reason: str = "") -> str:
    """Return one message as the conventions write it: JSON, since an attribute cannot hold structure."""
    message: dict[str, Any] = {"role": role, "parts": [{"type": "text", "content": text} for text in texts if text]}
    if finish_reason:
        message["finish_reason"] = finish_reason
    return _encode([message]).decode()
