"""Calls that name the function of a capability, so that type checkers check the inputs and know the result.

`bind(npv, cash_flows=[…])` is a call that is not made yet. Type checkers check its inputs against `npv` without `ctx`; the data
of its reply has the type that `npv` returns.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from inspect import Parameter
from typing import Any, Concatenate, Final, Generic, NamedTuple, ParamSpec, Protocol, overload

from msgspec.structs import replace
from typing_extensions import TypeVar

from comity.core.agent.agent import Agent, Capability
from comity.core.agent.registry import Registry
from comity.core.agent.running import name_of
from comity.core.call.limits import REPLY_BYTES_MAX, WARNINGS_MAX
from comity.core.document.payload import PayloadError, pack
from comity.core.document.schema import PythonType, takes
from comity.core.envelope.envelope import Reply
from comity.runtime.call.draft import Draft


class _Contextual(Protocol):
    """What `Context` and `SyncContext` have in common; it lets type checkers tell the parameter `ctx` from inputs."""

    def guidance_text(self, *, spare_tokens: int = 0) -> str:
        """Return the node's guidance as text."""
        ...

    def report_usage(self, *, prompt_tokens: int = 0, completion_tokens: int = 0, model: str = "") -> None:
        """Charge tokens."""
        ...


Given = ParamSpec("Given")
AnyContext = TypeVar("AnyContext", bound=_Contextual)  # the type of `ctx`, whichever of the two it is
Result = TypeVar("Result")
Result_co = TypeVar("Result_co", covariant=True, default=Any)

UNSAID: Final[Any] = object()  # a capability that was not named
_OPTIONS: Final = frozenset(Draft.__struct_fields__[3:])


class Bound(Generic[Result_co]):
    """A capability's function with its inputs, as `bind` makes it."""

    __slots__ = ("function", "inputs", "key")

    def __init__(self, function: Callable[..., Any], inputs: dict[str, Any], key: str = "") -> None:
        self.function = function
        self.inputs = inputs
        self.key = key

    def at(self, key: str) -> Bound[Result_co]:
        """Return the same call for the actor `agent/key`."""
        return Bound(self.function, self.inputs, key)

    def __repr__(self) -> str:
        return f"bind({name_of(self.function)}, {', '.join(self.inputs)})"


@overload
def bind(
    function: Callable[Given, Awaitable[Reply[Result]] | Reply[Result]], /, *args: Given.args, **inputs: Given.kwargs
) -> Bound[Result]: ...
@overload
def bind(
    function: Callable[Concatenate[AnyContext, Given], Awaitable[Reply[Result]] | Reply[Result]],
    /,
    *args: Given.args,
    **inputs: Given.kwargs,
) -> Bound[Result]: ...
@overload
def bind(function: Callable[Given, Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs) -> Bound[Result]: ...
@overload
def bind(
    function: Callable[Concatenate[AnyContext, Given], Awaitable[Result]], /, *args: Given.args, **inputs: Given.kwargs
) -> Bound[Result]: ...
@overload
def bind(function: Callable[Given, Result], /, *args: Given.args, **inputs: Given.kwargs) -> Bound[Result]: ...
@overload
def bind(
    function: Callable[Concatenate[AnyContext, Given], Result], /, *args: Given.args, **inputs: Given.kwargs
) -> Bound[Result]: ...
def bind(function: Callable[..., Any], /, *args: Any, **inputs: Any) -> Bound[Any]:
    """Return a call of a capability by its function, to be given to `ctx.call`, `node.call` or `node.start_call`.

    The inputs are those of the function without `ctx`. Raises `TypeError` for more than it takes.
    """
    return Bound(function, _by_name(function, args, inputs))


class Aimed(NamedTuple):
    """A call by function, translated into a call by agent and capability name."""

    draft: Draft
    capability: Capability | None  # None if the call was by name already

    async def typed(self, reply: Coroutine[Any, Any, Reply[Any]]) -> Reply[Any]:
        """Wait for the reply and return it with its data typed."""
        return typed(await reply, self.capability)


def aim(
    registry: Registry,
    draft: Draft,
    more: tuple[Any, ...],
    named: dict[str, Any],
    defaults: Mapping[str, Any] | None,
    reserved: Collection[str] = (),
) -> Aimed:
    """Translate a call whose target is a function, or a `Bound` one, into a call of the capability that it implements.

    A keyword that the function declares is an input; other keywords are options of the call. Raises `TypeError` if the function
    implements no capability of this node, or several, or if a keyword could be both an input and an option.
    """
    target, defaults = draft.target, defaults or {}
    if type(target) is Bound:
        if draft.capability is not UNSAID or named:
            raise TypeError(f"{target!r} has its inputs already")
        return _aimed(draft, _found(registry, target.function), target, {})
    if not callable(target):
        if named or more or draft.capability is UNSAID:
            what = f"an unknown option {', '.join(named)}" if named else "too much" if more else "no capability"
            raise TypeError(f"call takes an agent, a capability and inputs, then options by name; it was given {what}")
        return Aimed(draft, None)
    found = _found(registry, target)
    own, inputs, changed = takes(target), dict(named), {}
    positional = () if draft.capability is UNSAID else (draft.capability, draft.inputs, *more)
    if positional[1:] == (None,) and (len(own) < 2 or list(own.values())[1] is not Parameter.empty):
        positional = positional[:1]  # most likely not given
    for name in own.keys() & {"capability", "inputs", *reserved}:
        if name in reserved or positional:
            raise _ambiguous(target, name)
    for name, default in own.items():
        if name not in _OPTIONS:
            continue
        value = getattr(draft, name)
        if value is not defaults[name] or default is Parameter.empty:  # else it was most likely not given
            inputs[name], changed[name] = value, defaults[name]
    return _aimed(draft, found, Bound(target, _by_name(target, positional, inputs)), changed)


def typed(reply: Reply[Any], capability: Capability | None) -> Reply[Any]:
    """Return the reply with its data converted from JSON to the type that the capability's function declares."""
    checker = None if capability is None else capability.outputs
    if capability is None or not reply.ok or not isinstance(checker, PythonType):
        return reply
    try:
        checked = checker.check(pack(reply.data, path="data", bytes_max=REPLY_BYTES_MAX))
        problems = checked.problems
    except PayloadError as error:
        problems = error.problems
    if not problems:
        return replace(reply, data=checked.value)
    first = problems[0]  # most likely a placeholder of hidden personal data
    what = f"the data is not of the type that {capability.code} declares: {first.path}: {first.message}"
    return replace(reply, warnings=(*reply.warnings, what)[-WARNINGS_MAX:])


def _found(registry: Registry, function: Callable[..., Any]) -> tuple[Agent, Capability]:
    found = registry.implements(function)
    if len(found) != 1:
        where = " and ".join(f"{agent.id} {capability.code}" for agent, capability in found)
        why = f"implements {where}" if found else "implements no capability of an agent of this node"
        raise TypeError(f"{name_of(function)} {why}; name the agent and the capability: call('AGENT', 'CODE', {{…}})")
    return found[0]


def _aimed(draft: Draft, found: tuple[Agent, Capability], bound: Bound[Any], changed: dict[str, Any]) -> Aimed:
    agent, capability = found
    target = f"{agent.id}/{bound.key}" if bound.key else agent.id
    return Aimed(replace(draft, target=target, capability=capability.code, inputs=bound.inputs, **changed), capability)


def _by_name(function: Callable[..., Any], args: tuple[Any, ...], inputs: dict[str, Any]) -> dict[str, Any]:
    if not args:
        return inputs
    names: Collection[str] = takes(function)
    if len(args) > len(names):
        raise TypeError(f"{name_of(function)} takes {len(names)} inputs, not {len(args)}")
    given = dict(zip(names, args, strict=False))
    if twice := sorted(given.keys() & inputs.keys()):
        raise TypeError(f"{name_of(function)} is given {', '.join(twice)} twice")
    return given | inputs


def _ambiguous(function: Callable[..., Any], name: str) -> TypeError:
    what = f"{name!r} is an input of {name_of(function)} and an option of the call"
    return TypeError(f"{what}; say which is meant: call(bind({name_of(function)}, {name}=…), …)")
