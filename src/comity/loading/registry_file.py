"""Agents from outside the program: a registry file in YAML or JSON, or a name in an importable module.

A file is read with every problem noted, each with its line and the path of the field.
"""

from __future__ import annotations

import importlib
import inspect
import json
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import UNSET, Struct, UnsetType

from comity.core.agent import breaker
from comity.core.agent.agent import Agent, DeclarationError, Status
from comity.core.agent.disclosure import leaks
from comity.core.agent.registry import Registry, nearest
from comity.core.agent.retry import Retry
from comity.core.agent.running import RunIn
from comity.core.call.limits import Limits
from comity.core.document.payload import Problem
from comity.core.document.schema import JsonSchema, join
from comity.core.envelope.usage import Prices
from comity.core.model.bounds import Thinking
from comity.core.model.exchange import Settings
from comity.loading.strict_file import SUFFIXES, Lines, Steps, read
from comity.node.node import Node

_REFERENCE: Final = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_EXPECTED: Final = re.compile(r"Expected `([^`]*)`, got `([^`]*)`(?: - at `(?:key` in `)?\$(.*)`)?")
_WORDS: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "null": "nothing",
    "array": "a list",
    "object": "a mapping",
}

_Entry = TypeVar("_Entry", bound=Struct)


class Flaw(NamedTuple):
    """A problem with the way to it, before it is put into words and lines."""

    steps: Steps
    message: str


class ManifestError(DeclarationError):
    """A registry file is wrong; `problems` names everything that is, in the order of the file."""

    def __init__(self, path: Path, flaws: list[tuple[int | None, Flaw]]) -> None:
        self.path = path
        self.problems = tuple(Problem(join("", flaw.steps).lstrip(".") or "(top)", flaw.message) for _, flaw in flaws)
        told = [
            f"{path}{f':{line}' if line else ''}: {problem.path}: {problem.message}"
            for (line, _), problem in zip(flaws, self.problems, strict=True)
        ]
        super().__init__("\n".join(told if len(told) == 1 else [f"{path} has {len(told)} problems", *told]))


class Function:
    """A function named as `package.module:name`, imported."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self.call = call


class Schema:
    """A JSON Schema that has been found usable."""

    __slots__ = ("document",)

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.document = document


# What is not in the file is left to the defaults of `Agent` and its parts, which stand in one place.


class ImplementationEntry(Struct, frozen=True, kw_only=True):
    """One implementation in the file; without a priority, its place in the list counts."""

    function: Function
    priority: int | UnsetType = UNSET
    retry: Retry | UnsetType = UNSET
    run_in: RunIn | UnsetType = UNSET
    timeout_ms: int | UnsetType | None = UNSET
    equivalent: bool | UnsetType = UNSET
    warning: str | UnsetType = UNSET


class CapabilityEntry(Struct, frozen=True, kw_only=True):
    """One capability in the file."""

    code: str
    implementations: list[ImplementationEntry]
    name: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    version: str | UnsetType = UNSET
    input_schema: Schema | UnsetType | None = UNSET
    output_schema: Schema | UnsetType | None = UNSET
    timeout_ms: int | UnsetType | None = UNSET
    active: bool | UnsetType = UNSET
    examples: list[dict[str, Any]] | UnsetType = UNSET
    utterances: list[str] | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
    breaker: breaker.Policy | UnsetType = UNSET
    probe: Function | UnsetType = UNSET
    effects: bool | UnsetType = UNSET
    clear: list[str] | UnsetType = UNSET
    doing: str | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    touches: list[str] | UnsetType = UNSET


class AgentEntry(Struct, frozen=True, kw_only=True):
    """One agent in the file."""

    id: str
    aliases: list[str] | UnsetType = UNSET
    description: str | UnsetType = UNSET
    tags: list[str] | UnsetType = UNSET
    owner: str | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    concurrency: int | UnsetType = UNSET
    pending_max: int | UnsetType = UNSET
    can_call: list[str] | UnsetType | None = UNSET
    tools: list[str] | UnsetType = UNSET
    tools_allowed: list[str] | UnsetType = UNSET
    limits: Limits | UnsetType = UNSET
    idle_ms: int | UnsetType = UNSET
    takes_handoffs: bool | UnsetType = UNSET
    model: str | UnsetType = UNSET
    instructions: str | UnsetType = UNSET
    output_type: Schema | UnsetType = UNSET
    use_standard_protocol: bool | UnsetType = UNSET
    response_format: str | UnsetType = UNSET
    success_criteria: list[str] | UnsetType = UNSET
    failure_criteria: list[str] | UnsetType = UNSET
    settings: Settings | UnsetType = UNSET
    thinking: Thinking | UnsetType = UNSET
    can_transfer_to: list[str] | UnsetType = UNSET
    clear: list[str] | UnsetType = UNSET
    capabilities: Any = UNSET  # read one by one


# --- the two doors ------------------------------------------------------------------------------------------------------


MakeAgent = Callable[..., Agent]


def load_agents(path: str | Path, make: MakeAgent = Agent) -> list[Agent]:
    """Return the agents of a YAML or JSON registry file. Raises `DeclarationError` that names every problem.

    `comity.Agent` makes agents with models; the plain kind, which is the default here, has none.
    """
    return _loaded(path, make)[0]


def _loaded(path: str | Path, make: MakeAgent) -> tuple[list[Agent], Prices | None]:
    """Return the agents of a registry file, and its prices of tokens if it has any."""
    document = read(Path(path))
    flaws: list[Flaw] = []
    agents = _agents(document.value, flaws, make)
    prices = None
    if isinstance(document.value, dict) and "prices" in document.value:
        prices = _read(Prices, document.value["prices"], ("prices",), flaws)
    if flaws:
        lines = Lines(document.text)
        raise ManifestError(
            document.path, sorted(((lines.of(flaw.steps), flaw) for flaw in flaws), key=lambda one: one[0] or 0)
        )
    return agents, prices


def load_node(reference: str, make: MakeAgent = Agent) -> Node:
    """Return a node, not running, of what `package.module:attribute` or a registry file names; a node brings its tools.

    The attribute is an agent, a list of agents, a node, or a function without parameters that returns one of these.
    """
    if reference.lower().endswith(SUFFIXES):
        agents, prices = _loaded(reference, make)
        return Node(agents, prices=prices)
    if not _REFERENCE.fullmatch(reference):
        raise DeclarationError(
            f"{reference!r} names no agents: write package.module:attribute, or the path of a .yaml or .json registry file"
        )
    node = _node(reference)
    if found := [str(one) for one in leaks(node.registry)]:  # a registry file says so too, with the line
        raise DeclarationError("\n".join(found))
    return node


def _node(reference: str) -> Node:
    found = import_object(reference)
    if callable(found):
        found = _call(found, reference)
    if isinstance(found, Node):
        return found
    agents = [found] if isinstance(found, Agent) else found
    if not isinstance(agents, Iterable) or isinstance(agents, str | Mapping):
        raise DeclarationError(
            f"{reference} is {_kind(found)}; it must be an Agent, a list of agents, a Node, or a function giving them"
        )
    agents = list(agents)
    for index, agent in enumerate(agents):
        if not isinstance(agent, Agent):
            raise DeclarationError(f"{reference}[{index}] is {_kind(agent)}, not an Agent")
    return Node(agents)


def import_object(reference: str) -> Any:
    """Return what `package.module:name` names. Raises `DeclarationError` that says which part of it is wrong."""
    if not _REFERENCE.fullmatch(reference):
        raise DeclarationError(f"{reference!r} is not of the form package.module:name")
    module_name, _, attribute = reference.partition(":")
    try:
        found: Any = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module_name}.".startswith(f"{error.name}."):
            raise DeclarationError(f"importing {module_name} failed: {error}") from error
        raise DeclarationError(f"there is no module {error.name!r}; install it, or run where it can be imported") from None
    except (Exception, SystemExit) as error:  # a user's module can fail in any way; it is their declaration
        raise DeclarationError(f"importing {module_name} raised {type(error).__name__}: {error}") from error
    for name in attribute.split("."):
        if not hasattr(found, name):
            names = [one for one in dir(found) if not one.startswith("_")]
            raise DeclarationError(f"{module_name} has no {attribute!r}{_did_you_mean(name, names)}")
        found = getattr(found, name)
    return found


def _call(function: Callable[..., Any], reference: str) -> Any:
    try:
        inspect.signature(function).bind()
    except TypeError as error:
        raise DeclarationError(f"{reference} must be callable without arguments: {error}") from None
    except ValueError:
        pass  # some callables have no signature to look at; calling it tells
    try:
        return function()
    except (Exception, SystemExit) as error:
        raise DeclarationError(f"{reference}() raised {type(error).__name__}: {error}") from error


# --- from a document to entries -----------------------------------------------------------------------------------------


def _agents(document: Any, flaws: list[Flaw], make: MakeAgent) -> list[Agent]:
    if not isinstance(document, dict) or not isinstance(document.get("agents"), list):
        flaws.append(Flaw((), "a registry file is a mapping with a list `agents`"))
        return []
    known = ["agents", "prices"]
    flaws.extend(Flaw((name,), f"unknown field{_did_you_mean(name, known)}") for name in document if name not in known)
    registry = Registry()
    places: dict[str, int] = {}
    for index, value in enumerate(document["agents"]):
        steps: Steps = ("agents", index)
        agent = _agent(value, steps, flaws, make)
        if agent is None:
            continue
        try:
            registry.add(agent)
        except DeclarationError as error:
            flaws.append(Flaw(steps, str(error)))
        else:
            places[agent.id] = index
    for leak in leaks(registry):
        at = places[leak.agent]
        codes = [one.get("code") if isinstance(one, dict) else None for one in document["agents"][at]["capabilities"]]
        flaws.append(Flaw(("agents", at, "capabilities", codes.index(leak.capability), "doing"), leak.told))
    return list(registry)


def _agent(value: Any, steps: Steps, flaws: list[Flaw], make: MakeAgent) -> Agent | None:
    entry = _read(AgentEntry, value, steps, flaws)
    # What is wrong with an agent's own fields shall not hide what is wrong with its capabilities.
    capabilities = value.get("capabilities", []) if isinstance(value, dict) else []
    if not isinstance(capabilities, list):
        flaws.append(Flaw((*steps, "capabilities"), f"must be a list, not {_kind(capabilities)}"))
        capabilities = []
    agent: Agent | None = None
    try:
        agent = None if entry is None else _make(entry, make)
    except DeclarationError as error:
        flaws.append(Flaw(steps, str(error)))
    for index, one in enumerate(capabilities):
        capability = _read(CapabilityEntry, one, here := (*steps, "capabilities", index), flaws)
        try:
            if agent is not None and capability is not None:
                _declare(agent, capability)
        except DeclarationError as error:
            flaws.append(Flaw(here, str(error)))
    return agent


def _make(entry: AgentEntry, make: MakeAgent) -> Agent:
    fields = _given(entry, "capabilities", "tools", "output_type")
    if isinstance(entry.tools, list):  # a function, or the name of a tool the node has
        fields["tools"] = [import_object(one) if ":" in one else one for one in entry.tools]
    if isinstance(entry.output_type, Schema):
        fields["output_type"] = entry.output_type.document
    if make is Agent and "model" in fields:
        raise DeclarationError(f"{entry.id} has a model, and agents are made without; give load_agents `comity.Agent`")
    return make(**fields)


def _declare(agent: Agent, entry: CapabilityEntry) -> None:
    if not entry.implementations:
        raise DeclarationError(f"{entry.code} needs at least one implementation")
    fields = _given(entry, "code", "implementations", "breaker", "probe", "input_schema", "output_schema")
    if isinstance(entry.probe, Function):
        fields["probe"] = entry.probe.call
    for name in ("input_schema", "output_schema"):
        if isinstance(schema := getattr(entry, name), Schema):
            fields[name] = schema.document
    if not isinstance(entry.breaker, UnsetType):
        fields["breaker_policy"] = entry.breaker
    agent.capability(entry.code, **fields)(entry.implementations[0].function.call)
    # The decorator makes its function the first; a file says for each which priority it has.
    agent.capabilities[entry.code].implementations = ()
    for place, one in enumerate(entry.implementations, 1):
        agent.implementation(entry.code, **{"priority": place} | _given(one, "function"))(one.function.call)


def _given(entry: Struct, *but: str) -> dict[str, Any]:
    """Return the fields the file has."""
    found = ((name, getattr(entry, name)) for name in entry.__struct_fields__ if name not in but)
    return {name: value for name, value in found if value is not UNSET}


def _read(kind: type[_Entry], value: Any, steps: Steps, flaws: list[Flaw]) -> _Entry | None:
    """Return one entry, or None with everything wrong with it noted."""
    if not isinstance(value, dict):
        flaws.append(Flaw(steps, f"must be a mapping, not {_kind(value)}"))
        return None
    before = len(flaws)
    fields = _fields(kind)
    flaws.extend(Flaw((*steps, name), f"unknown field{_did_you_mean(name, fields)}") for name in value if name not in fields)
    flaws.extend(Flaw((*steps, name), "is missing") for name, field in fields.items() if field.required and name not in value)
    given: dict[str, Any] = {}
    for name in (name for name in value if name in fields):
        count = len(flaws)
        found = _read_field(fields[name].type, value[name], (*steps, name), flaws)
        if len(flaws) == count:
            given[name] = found
    if any(field.required and name not in given for name, field in fields.items()):
        return None
    try:
        entry = kind(**given)
    except ValueError as error:
        flaws.append(Flaw(steps, str(error)))
    return entry if len(flaws) == before else None


@cache
def _fields(kind: type[Struct]) -> dict[str, msgspec.structs.FieldInfo]:
    return {field.name: field for field in msgspec.structs.fields(kind)}


def _read_field(kind: Any, value: Any, steps: Steps, flaws: list[Flaw]) -> Any:
    choices = typing.get_args(kind) if isinstance(kind, types.UnionType) else (kind,)
    inner = next(choice for choice in choices if choice not in {UnsetType, type(None)})
    items = typing.get_args(inner)
    if isinstance(inner, type) and issubclass(inner, Struct):
        return _read(inner, value, steps, flaws)
    if typing.get_origin(inner) is list and isinstance(value, list) and _is_struct(items[0]):
        return [_read(items[0], item, (*steps, index), flaws) for index, item in enumerate(value)]
    if isinstance(inner, type) and issubclass(inner, StrEnum) and value not in list(inner):
        flaws.append(Flaw(steps, f"must be one of {', '.join(inner)}, not {_kind(value)}"))
        return None
    try:
        return msgspec.convert(value, kind, dec_hook=_read_special)
    except msgspec.ValidationError as error:
        flaws.append(_flaw(steps, str(error), value))
        return None


def _read_special(kind: type, value: Any) -> Any:
    if kind is Function:
        if not isinstance(value, str):
            raise TypeError(f"must be text of the form package.module:name, not {_kind(value)}")
        found = import_object(value)
        if not callable(found):
            raise TypeError(f"{value} is {_kind(found)}, not a function")
        return Function(found)
    if not isinstance(value, dict):
        raise TypeError(f"must be a JSON Schema, not {_kind(value)}")
    JsonSchema(value, path="")
    return Schema(value)


def _flaw(steps: Steps, told: str, value: Any) -> Flaw:
    """Put a decoder's complaint into our words; it names the place inside a list at its end, as `$[0]`."""
    match = _EXPECTED.fullmatch(told)
    if match is None:
        return Flaw(steps, told)
    expected, got, where = match.groups()
    inside = tuple(int(index) for index in re.findall(r"\[(\d+)\]", where or ""))
    for index in inside:
        value = value[index]
    wanted = " or ".join(_WORDS.get(word, word) for word in expected.split(" | "))
    hint = "; put it in quotes" if "str" in expected and got in {"int", "float", "bool"} else ""
    return Flaw((*steps, *inside), f"must be {wanted}, not {_kind(value)}{hint}")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


def _kind(value: Any) -> str:
    """Return what a value is, in words; short plain values as they are."""
    match value:
        case None | bool() | int() | float():
            return json.dumps(value)
        case str():
            return repr(value) if len(value) <= 40 else "a long text"
        case dict():
            return "a mapping"
        case list():
            return "a list"
    return f"an object of type {type(value).__name__}"


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    known = list(known)
    found = nearest(name, known)
    if found:
        return f"; did you mean {' or '.join(found)}?"
    return f"; the names are {', '.join(known)}" if 0 < len(known) <= 15 else ""
