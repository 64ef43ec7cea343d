"""How much the objects of a node hold in memory: what grows with each call is never let go."""

from __future__ import annotations

import asyncio
import types
from collections import Counter, deque

# By design: what is counted, remembered for a while, or kept as the store of a node without one.
_KEPT = (
    "comity.engines.memory",
    "comity.engines.sqlite",
    "comity.engines.clock",
    "comity.core.tracing",
    "comity.runtime.tracing",
    "comity.core.redaction",
    "comity.core.session",
)


def sizes(root: object) -> Counter[str]:
    """Return how much stands in the containers that a node's objects hold, by class and attribute."""
    found: Counter[str] = Counter()
    seen: set[int] = set()
    ahead: list[tuple[str, object]] = [("node", root)]
    while ahead:
        name, one = ahead.pop()
        if id(one) in seen or isinstance(
            one, type | types.FunctionType | types.ModuleType | str | bytes | asyncio.AbstractEventLoop
        ):
            continue
        seen.add(id(one))
        if isinstance(one, dict | list | set | deque):
            found[name] += len(one)
            inner = [*one.keys(), *one.values()] if isinstance(one, dict) else list(one)
            ahead += ((f"{name}[]", each) for each in inner)
        elif isinstance(one, tuple):
            ahead += ((name, each) for each in one)
        elif isinstance(one, types.MethodType):
            ahead.append((name, one.__self__))
        elif type(one).__module__.startswith("comity.") and not type(one).__module__.startswith(_KEPT):
            slots = [slot for made in type(one).__mro__ for slot in getattr(made, "__slots__", ())]
            held = {**{slot: getattr(one, slot, None) for slot in slots}, **getattr(one, "__dict__", {})}
            ahead += ((f"{type(one).__name__}.{attribute}", each) for attribute, each in held.items())
    return found


def grown(before: Counter[str], after: Counter[str]) -> dict[str, tuple[int, int]]:
    """Return the containers that hold more than before."""
    return {name: (before[name], size) for name, size in after.items() if size > before[name]}


def scheduled() -> list[str]:
    """Return the timers and tasks of the running loop that nothing has cancelled, but for the test itself."""
    loop = asyncio.get_running_loop()
    timers = [repr(one) for one in getattr(loop, "_scheduled", ()) if not one.cancelled()]
    tasks = [one.get_name() for one in asyncio.all_tasks() if one is not asyncio.current_task()]
    return timers + tasks
