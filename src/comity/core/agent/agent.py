"""What an agent declares: its profile, its capabilities, and the functions behind them. Data and functions, nothing running."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, InitVar, dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeVar, overload

from msgspec import Struct

from comity.core.agent import effects as touch
from comity.core.agent.breaker import Policy
from comity.core.agent.declaration import DeclarationError as DeclarationError  # noqa: PLC0414  where its readers look for it
from comity.core.agent.declaration import shown
from comity.core.agent.effects import Touches, Touching
from comity.core.agent.retry import Retry
from comity.core.agent.running import RunIn, name_of, place_of
from comity.core.agent.tool import Tool
from comity.core.call.limits import NAME_CHARS_MAX, TIMEOUT_MS_CEILING, Limits
from comity.core.document.payload import Taker
from comity.core.document.schema import (
    Checker,
    JsonSchema,
    PythonType,
    SchemaError,
    from_return,
    from_signature,
    is_hinted_sync,
)
from comity.core.tracing.gen_ai import AgentFacts

Function = TypeVar("Function", bound=Callable[..., Any])
Hook = Callable[[str, dict[str, Any]], Any]  # address and state; may be async

_TOOL_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")  # what every provider accepts
_NAME = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{NAME_CHARS_MAX - 1}}}")


class Status(StrEnum):
    """Whether an agent takes calls."""

    ACTIVE = "active"
    MAINTENANCE = "maintenance"
    RETIRED = "retired"


ACTIVE: Final = Status.ACTIVE  # a bare name for the path of a call; see `core/call/machine.py`


class Implementation(Struct, frozen=True, kw_only=True):
    """One way to do what a capability promises. Lower priority numbers come first."""

    function: Callable[..., Any]
    is_async: bool
    priority: int
    name: str
    retry: Retry
    run_in: RunIn
    timeout_ms: int | None = None  # for each attempt, after which the next implementation is tried
    equivalent: bool = False  # its answer is as good as that of the first implementation
    warning: str = ""  # what a user reads where its answer stands in for that of the first


DESCRIPTION_CHARS_MAX = 256  # of an agent's, in each of its spans


@dataclass(slots=True, eq=False, repr=False)
class Capability:
    """A typed operation of an agent, with one or more implementations in priority order."""

    code: str
    _: KW_ONLY
    name: str = ""
    description: str = ""
    version: str = "1.0"
    timeout_ms: int | None = None
    active: bool = True
    examples: tuple[Mapping[str, Any], ...] = ()
    utterances: tuple[str, ...] = ()  # what users say who want it; an orchestrator learns from them
    limits: Limits | None = None
    breaker_policy: InitVar[Policy | None] = None
    input_schema: Mapping[str, Any] | None = None
    output_schema: Mapping[str, Any] | None = None
    clear: frozenset[str] = frozenset()  # types of personal data it needs in clear, if the node grants them
    doing: str = ""  # what a user reads while the agent works
    probe: Callable[[], Any] | None = None  # says whether it works again, while its breaker is open
    effects: bool = False  # whether it changes something in the world
    confidence: float = 1.0  # of what it returns without saying how sure it is
    breaker: Policy = field(init=False)
    touching: Touching | None = field(init=False, default=None)  # what people's constraints are held against
    implementations: tuple[Implementation, ...] = field(init=False, default=())
    wants_context: dict[Callable[..., Any], bool] = field(init=False, default_factory=dict)
    # Read with every call, where a property would cost as much as three rules; None until first needed, or undeclared.
    input_checker: Checker | None = field(init=False, default=None)
    output_checker: Checker | None = field(init=False, default=None)
    is_closed: bool = field(init=False, default=False)  # whether it is known to take inputs of declared names only
    take: Taker | None = field(init=False, default=None)  # encodes and reads inputs at once, where their types allow it

    def __post_init__(self, breaker_policy: Policy | None) -> None:
        """Check what was declared, and keep it in a form that does not change."""
        code, utterances, confidence = self.code, self.utterances, self.confidence
        _check_timeout(code, self.timeout_ms)
        if isinstance(utterances, str) or not all(isinstance(one, str) for one in utterances):
            raise DeclarationError(f"{code}: utterances must be a list of texts, not {shown(utterances)}")
        if type(confidence) not in (int, float) or not 0 <= confidence <= 1:
            raise DeclarationError(f"{code}: confidence must be a number from 0 to 1, not {shown(confidence)}")
        if type(self.effects) is not bool:
            raise DeclarationError(f"{code}: effects must be True or False, not {shown(self.effects)}")
        for what, schema in (("input_schema", self.input_schema), ("output_schema", self.output_schema)):
            if schema is not None:
                _check_schema(schema, f"{code}: {what}")
        _check_probe(code, self.probe)
        self.name = self.name or code
        self.examples, self.utterances, self.clear = tuple(self.examples), tuple(utterances), frozenset(self.clear)
        self.breaker = breaker_policy or Policy()
        self.confidence = float(confidence)

    def add(self, implementation: Implementation) -> None:
        """Add a way to do it; the lowest priority number goes first, equal ones in order of declaration."""
        self.implementations = tuple(sorted((*self.implementations, implementation), key=lambda one: one.priority))

    @property
    def inputs(self) -> Checker:
        """The checker of inputs, built on first use from the declared schema or the first implementation's signature."""
        if self.input_checker is None:
            self.prepare()
        assert self.input_checker is not None
        return self.input_checker

    @property
    def outputs(self) -> Checker | None:
        """The checker of results, or None where nothing is declared."""
        if self.input_checker is None:
            self.prepare()
        return self.output_checker

    def prepare(self) -> None:
        """Build the checkers; raise `SchemaError` if the declaration cannot be used."""
        if not self.implementations:
            raise SchemaError(f"{self.code} has no implementation")
        first: Checker | None = None
        for implementation in self.implementations:
            checker, wants_context = from_signature(implementation.function)
            if wants_context and implementation.run_in is RunIn.PROCESS:
                raise SchemaError(f"{implementation.name} runs in a process and cannot take ctx, which lives in this one")
            if wants_context and implementation.run_in is RunIn.LOOP and is_hinted_sync(implementation.function):
                raise SchemaError(f"{implementation.name} runs in the loop, where ctx is a Context, not a SyncContext")
            self.wants_context[implementation.function] = wants_context
            first = first or checker
        self.output_checker = (
            JsonSchema(self.output_schema, path="data")
            if self.output_schema is not None
            else from_return(self.implementations[0].function)
        )
        self.input_checker = JsonSchema(self.input_schema, path="inputs") if self.input_schema is not None else first
        if self.input_schema is None and isinstance(first, PythonType):
            self.is_closed, self.take = first.is_closed, first.take


class Agent:
    """An agent and what it can do. Capabilities are added by decorator:

    analyst = Agent("ANL", description="Financial analysis")

    @analyst.capability("ANL_NPV", timeout_ms=15_000)
    async def npv(ctx: Context, cash_flows: list[float], discount_rate: float) -> dict: ...
    """

    __slots__ = (
        "about",
        "aliases",
        "can_call",
        "can_transfer_to",
        "capabilities",
        "concurrency",
        "description",
        "id",
        "idle_ms",
        "limits",
        "on_activate",
        "on_close",
        "on_deactivate",
        "on_open",
        "owner",
        "pending_max",
        "status",
        "tags",
        "takes_handoffs",
        "tools",
        "tools_allowed",
    )

    def __init__(
        self,
        id: str,  # noqa: A002  the public word for it
        *,
        description: str = "",
        aliases: Collection[str] = (),
        tags: Collection[str] = (),
        owner: str = "",
        status: Status | str = Status.ACTIVE,
        concurrency: int = 64,
        pending_max: int = 1000,
        can_call: Collection[str] | None = None,
        tools: Collection[Tool | Callable[..., Any] | str] = (),
        tools_allowed: Collection[str] = (),
        limits: Limits | None = None,
        idle_ms: int = 300_000,
        on_activate: Hook | None = None,
        on_deactivate: Hook | None = None,
        takes_handoffs: bool = True,
    ) -> None:
        for what, names in (
            ("aliases", aliases),
            ("tags", tags),
            ("can_call", can_call),
            ("tools", tools),
            ("tools_allowed", tools_allowed),
        ):
            if isinstance(names, str):  # would be taken letter by letter
                raise DeclarationError(f"{id}: {what} must be a list of names, not the text {names!r}")
        for name in (id, *aliases):
            _check_name(name, "an agent id or alias")
        for what, number, least in (("concurrency", concurrency, 1), ("pending_max", pending_max, 0), ("idle_ms", idle_ms, 1)):
            if type(number) is not int or number < least:
                raise DeclarationError(f"{id}: {what} must be a whole number of at least {least}, not {number!r}")
        try:
            self.status = Status(status)
        except ValueError:
            raise DeclarationError(f"{id}: status must be one of {', '.join(Status)}, not {status!r}") from None
        self.id = id
        self.description = description
        # What its spans say; None if there is nothing to say, as for most in a benchmark.
        self.about = AgentFacts(description[:DESCRIPTION_CHARS_MAX]) if description and isinstance(description, str) else None
        self.aliases = tuple(aliases)
        self.tags = tuple(tags)
        self.owner = owner
        self.concurrency = concurrency
        self.pending_max = pending_max
        self.takes_handoffs = takes_handoffs  # whether a node that hosts it takes handoffs addressed to it
        self.can_call = None if can_call is None else frozenset(can_call)
        self.tools = _tools(id, tools)
        self.tools_allowed = frozenset((*tools_allowed, *self.tools))
        self.limits = limits
        self.idle_ms = idle_ms
        self.on_activate = on_activate
        self.on_deactivate = on_deactivate
        self.can_transfer_to: frozenset[str] = frozenset()  # of an agent with a model
        self.on_open: Callable[[], str] | None = None  # before a node takes calls; may take its time, returns what is wrong
        self.on_close: Callable[[], Any] | None = None  # after the last call; async
        self.capabilities: dict[str, Capability] = {}

    @overload
    def capability(self, code: Function, /) -> Function: ...
    @overload
    def capability(
        self,
        code: str | None = None,
        *,
        name: str = "",
        description: str = "",
        version: str = "1.0",
        timeout_ms: int | None = None,
        active: bool = True,
        examples: Sequence[Mapping[str, Any]] = (),
        limits: Limits | None = None,
        breaker_policy: Policy | None = None,
        input_schema: Mapping[str, Any] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        clear: Collection[str] = (),
        doing: str = "",
        probe: Callable[[], Any] | None = None,
        effects: bool = False,
        confidence: float = 1.0,
        utterances: Sequence[str] = (),
        touches: Touches = (),
        retry: Retry | None = None,
        run_in: RunIn | str | None = None,
        first_timeout_ms: int | None = None,
    ) -> Callable[[Function], Function]: ...
    def capability(
        self,
        code: Any = None,
        *,
        touches: Touches = (),
        retry: Retry | None = None,
        run_in: RunIn | str | None = None,
        first_timeout_ms: int | None = None,
        **declared: Any,
    ) -> Any:
        """Declare a capability whose first implementation is the decorated function, which stays as it is.

        code: under which it is called; the function's name if it is not given.
        name, description, examples: for people and models; the description is the first line of the function's docstring.
        utterances: what users say who want it, for an orchestrator to learn from.
        version: of the capability, for its callers.
        timeout_ms: the time of a whole call; after `first_timeout_ms` of it the fallback is tried.
        active: whether it takes calls.
        limits: narrows those of its calls.
        breaker_policy: when it is given a rest after failures. `probe` is a function without parameters that is run while the
            breaker is open; unless it raises or returns False, calls may pass again.
        input_schema, output_schema: JSON Schemas in place of the function's type hints.
        clear: types of personal data that it needs in clear, which the node must grant.
        doing: what a user reads while the agent works.
        effects: whether it changes something in the world. A caller is then handed the reply only once it is on disk, so that
            a crash never runs again what had ended.
        confidence: of an answer that is plain data; a `Reply` says its own.
        touches: paths, topics and inputs that people's constraints are held against.
        retry: how often it is tried again after a transient failure.
        run_in: `"loop"` (the default of `async def`), `"thread"` (of `def`) or `"process"`.
        """
        if callable(code):
            return self.capability()(code)
        named = None if code is None else self._new_capability(code, declared)

        def declare(function: Function) -> Function:
            capability = named or self._new_capability(getattr(function, "__name__", None), declared)
            known_as = capability.code
            if not capability.description:
                capability.description = (function.__doc__ or "").strip().partition("\n")[0]
            try:
                capability.touching = touch.declare(touches, function)
            except ValueError as error:
                raise DeclarationError(f"{known_as}: {error}") from None
            self.capabilities[known_as] = capability
            return self.implementation(known_as, priority=1, retry=retry, run_in=run_in, timeout_ms=first_timeout_ms)(function)

        return declare

    def _new_capability(self, code: Any, declared: dict[str, Any]) -> Capability:
        _check_name(code, f"a capability code of {self.id}")
        if code in self.capabilities:
            raise DeclarationError(f"{self.id} declares {code} twice; add a second implementation with fallback()")
        return Capability(code, **declared)

    def fallback(
        self,
        code: str | Callable[..., Any],
        *,
        retry: Retry | None = None,
        run_in: RunIn | str | None = None,
        timeout_ms: int | None = None,
        equivalent: bool = False,
        warning: str = "",
    ) -> Callable[[Function], Function]:
        """Declare what to do when the implementations before this one fail; `code` is the capability's, or its function.

        Its answer is partial, degraded and of medium confidence at most, with `warning` or a general sentence for the user,
        unless it is declared `equivalent`. `retry`, `run_in` and `timeout_ms` are of this implementation alone.
        """
        capability = self._declared(code)
        priority = max((one.priority for one in capability.implementations), default=0) + 1
        return self.implementation(
            capability.code,
            priority=priority,
            retry=retry,
            run_in=run_in,
            timeout_ms=timeout_ms,
            equivalent=equivalent,
            warning=warning,
        )

    def implementation(
        self,
        code: str,
        *,
        priority: int,
        retry: Retry | None = None,
        run_in: RunIn | str | None = None,
        timeout_ms: int | None = None,
        equivalent: bool = False,
        warning: str = "",
    ) -> Callable[[Function], Function]:
        """Declare one implementation of the capability `code` at a `priority`; lower numbers go first.

        `retry`, `run_in`, `timeout_ms`, `equivalent` and `warning` are as of `fallback`.
        """
        capability = self._declared(code)
        _check_timeout(f"an implementation of {code}", timeout_ms)
        for what, value, kind in (("equivalent", equivalent, bool), ("warning", warning, str)):
            if type(value) is not kind:
                raise DeclarationError(f"{code}: {what} must be a {kind.__name__}, not {shown(value)}")

        def declare(function: Function) -> Function:
            if not callable(function):
                raise DeclarationError(f"{code}: {function!r} is not a function")
            capability.add(
                Implementation(
                    function=function,
                    is_async=inspect.iscoroutinefunction(function),
                    priority=priority,
                    name=name_of(function),
                    retry=retry or Retry(),
                    run_in=place_of(function, run_in),
                    timeout_ms=timeout_ms,
                    equivalent=equivalent,
                    warning=warning,
                )
            )
            return function

        return declare

    def _declared(self, code: str | Callable[..., Any]) -> Capability:
        found = self.capabilities.get(code) if isinstance(code, str) else None
        for one in self.capabilities.values() if found is None and callable(code) else ():
            if any(way.function == code for way in one.implementations):
                found = one
        if found is None:
            what = name_of(code) if callable(code) else code
            raise DeclarationError(f"{self.id} has no capability {what}; declare it with capability() first")
        return found

    def __repr__(self) -> str:
        return f"Agent({self.id!r}, {len(self.capabilities)} capabilities)"


def _tools(agent_id: str, given: Collection[Tool | Callable[..., Any] | str]) -> dict[str, Tool | None]:
    """Return an agent's tools by name: its own, and None for those of the node that it names."""
    tools: dict[str, Tool | None] = {}
    for one in given:
        tool = Tool.of(one) if callable(one) else one
        name = tool.name if isinstance(tool, Tool) else tool
        if not isinstance(name, str) or not _TOOL_NAME.fullmatch(name):
            raise DeclarationError(f"{agent_id}: {name!r} cannot be a tool's name: use 1 to 64 letters, digits, '_' and '-'")
        if name in tools:
            raise DeclarationError(f"{agent_id} has two tools named {name}")
        tools[name] = tool if isinstance(tool, Tool) else None
    return tools


def _check_name(name: Any, what: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        allowed = f"letters, digits, '.', '_' and '-', at most {NAME_CHARS_MAX}, beginning with a letter or digit"
        raise DeclarationError(f"{name!r} cannot be {what}: use {allowed}")


def _check_timeout(whose: str, timeout_ms: Any) -> None:
    if timeout_ms is not None and not (type(timeout_ms) is int and 1 <= timeout_ms <= TIMEOUT_MS_CEILING):
        raise DeclarationError(f"{whose}: timeout_ms must be a whole number from 1 to {TIMEOUT_MS_CEILING}, not {timeout_ms!r}")


def _check_probe(code: str, probe: Any) -> None:
    if probe is not None:
        try:
            inspect.signature(probe).bind()
        except (TypeError, ValueError) as error:
            raise DeclarationError(f"{code}: probe must be a function without parameters: {error}") from None


def _check_schema(schema: Any, what: str) -> None:
    """Raise unless the schema can be used. Only the finding is kept: the validator is built when it is first needed."""
    if not isinstance(schema, Mapping):
        raise DeclarationError(f"{what} must be a JSON Schema as a mapping, not {type(schema).__name__}")
    try:
        JsonSchema(schema, path="")
    except SchemaError as error:
        raise DeclarationError(f"{what} is {error}") from None
