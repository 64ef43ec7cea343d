"""What is recorded of calls for tracing: how it is set up, what is handed over, and under which names it appears.

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

from comity.core.document.checks import rejected
from comity.core.document.payload import PayloadError, Problem
from comity.core.envelope.envelope import Reply, Request
from comity.core.envelope.usage import Cost
from comity.core.tracing.gen_ai import OWN, AgentFacts, Asked, Chat
from comity.core.tracing.naming import Mode, emission_mode
from comity.core.tracing.span import INT64_MAX, INT64_MIN, Attributes, Span
from comity.core.tracing.trace_context import TraceContext

PROVIDER: Final = OWN
TOOL_PREFIX: Final = "tool:"
MODEL_PREFIX: Final = "model:"
TENANT: Final = "comity.tenant.id"  # on the spans of every tenant but the default one
# Spans that may wait for the collector; more are counted and dropped.
EXPORT_QUEUE_MAX: Final = 16_384
EXPORT_BATCH_MAX: Final = 512
EXPORT_TIMEOUT_MS: Final = 10_000
PROTOBUF, JSON = "http/protobuf", "http/json"

_TRACES_PATH = "/v1/traces"
_RANDOM_DIGITS, _RANDOM_RANGE = 14, 2**56  # of a trace id: the last 7 bytes, which are random in every kind of id
_SAMPLERS: Final[Mapping[str, float | None]] = {"always_on": 1.0, "always_off": 0.0, "traceidratio": None}
_YES = frozenset({"true", "1", "yes"})


class Handed(Struct, frozen=True, array_like=True, gc=False):
    """What more is known of a call that was handed off."""

    receiver: str
    state: str
    attempts: int
    result_trace_id: str
    result_span_id: str = ""  # of the span below the handoff's that its receiver left


class CallEnd(Struct, frozen=True, gc=False):
    """One call or tool use that has ended, as the call path hands it over: nothing is worked out there."""

    request: Request
    reply: Reply
    start_ns: int
    end_ns: int
    remote: TraceContext | None = None  # the trace its root came with from outside
    handed: Handed | None = None
    agent: AgentFacts | None = None  # what is known of the agent that was called
    reported: tuple[int, int] | None = None  # tokens that its code reported by itself: no other span has them
    asked: Asked | None = None  # of a request to a model
    call_id: str = ""  # of a tool use: the id that the model gave it


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
    agent: AgentFacts | None = None
    reported: tuple[int, int] | None = None
    chat: Chat | None = None  # then `content` is system instructions, input and output messages, and error
    call_id: str = ""
    correlation_id: str = ""  # if it is another than the root's id
    cost: Cost | None = None  # of the tokens, with everything below


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
    """How a node records. `endpoint` is the whole address that traces are sent to; empty means that none are sent."""

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
    endpoint = read.endpoint()
    if protocol not in (PROTOBUF, JSON):
        where = f"to {endpoint}; that must be the collector's HTTP port, usually 4318" if endpoint else "if at all"
        problems.append(f"OTLP protocol {protocol!r} is not spoken here: spans go as {PROTOBUF} {where}")
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
        endpoint=endpoint,
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
    """Reads variables; an empty variable counts as not set, as OpenTelemetry says."""

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
        TENANT: request.tenant_id if request.tenant_id != "default" else None,
        "comity.correlation.id": workflow_of(request),
    }


def workflow_of(request: Request) -> str | None:
    """Return the workflow a call is part of, if one was named."""
    return request.correlation_id if request.correlation_id != request.root_id else None


_SESSION_NAMES: Final = ("gen_ai.conversation.id", _LEGACY["gen_ai.conversation.id"], "comity.root.id", "comity.request.id")


def session_of(attributes: Attributes) -> Any:
    """Return the session of a span, under the names of any mode; one without a name is known by its root call."""
    return next((attributes[name] for name in _SESSION_NAMES if name in attributes), None)


def tenant_of(attributes: Attributes) -> str:
    """Return the tenant a span belongs to."""
    return str(attributes.get(TENANT, "default"))


def is_of_session(attributes: Attributes, session_id: str, tenant_id: str) -> bool:
    """Return whether a span with these attributes belongs to a session."""
    return bool(session_of(attributes) == session_id) and tenant_of(attributes) == tenant_id


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
    """Return the attributes that a caller gave as they can be stored, or raise `CallerError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise rejected(
            PayloadError("INPUT_VALIDATION_FAILED", (Problem("attributes", "must be a mapping of names to values"),))
        )
    return {storable(str(name)): storable(value) for name, value in given.items()}
