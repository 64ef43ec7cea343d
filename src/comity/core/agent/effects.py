"""What an action touches, as its capability or tool declares it: paths, patterns of paths, topics, and inputs that name them.

    touches=["src/api/**", "topic:payments"]      always the same
    touches=["$.path", "$.change.files"]          the texts in these inputs
    touches=lambda inputs: ["src/" + inputs["module"]]

What cannot be read as a path is taken to touch everything: a constraint then stops too much rather than too little.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from comity.core.document.foreign_errors import ENDINGS

FIELD: Final = "$."
EVERYTHING: Final = ("**",)
TOUCHED_MAX: Final = 256  # more than this is everything

Touches = Sequence[str] | Callable[[dict[str, Any]], Iterable[str]]


class Touching(Struct, frozen=True):
    """How to tell what an action with given inputs touches."""

    fixed: tuple[str, ...]
    fields: tuple[tuple[str, ...], ...]
    function: Callable[[dict[str, Any]], Iterable[str]] | None
    defaults: Mapping[str, Any]  # of the action's own parameters: what was not given is touched all the same

    def touched(self, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """Return what the action touches; everything, if the declared function fails on these inputs."""
        given = {**self.defaults, **inputs}
        found = [*self.fixed]
        for steps in self.fields:
            found += _texts(given, steps)
        if self.function is not None:
            try:
                found += _flat(self.function(given))
            except ENDINGS:
                raise
            except BaseException:  # noqa: BLE001  a user's function can fail in any way; nothing may pass because of it
                return EVERYTHING
        return tuple(dict.fromkeys(found)) if len(found) <= TOUCHED_MAX else EVERYTHING


def declare(touches: Touches, action: Callable[..., Any]) -> Touching | None:
    """Return what was declared, or None if nothing was. Raises `ValueError` that says what is wrong."""
    if callable(touches):
        return Touching((), (), touches, _defaults(action))
    texts = () if isinstance(touches, str) else tuple(touches)
    if isinstance(touches, str) or not all(isinstance(one, str) and one.strip() for one in texts):
        raise ValueError(f"touches must be a list of paths, topics or `$.field`, or a function of the inputs, not {touches!r}")
    fields = tuple(tuple(one.removeprefix(FIELD).split(".")) for one in texts if one.startswith(FIELD))
    if any("" in steps for steps in fields):
        raise ValueError("touches: write an input as `$.field` or `$.field.inner`")
    fixed = tuple(one for one in texts if not one.startswith(FIELD))
    return Touching(fixed, fields, None, _defaults(action)) if texts else None


def _defaults(action: Callable[..., Any]) -> dict[str, Any]:
    try:
        parameters = inspect.signature(action).parameters.values()
    except (TypeError, ValueError):  # some callables have no signature to look at
        return {}
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def _texts(value: Any, steps: Sequence[str]) -> tuple[str, ...]:
    for at, step in enumerate(steps):
        if value is None:
            return ()
        if isinstance(value, list | tuple):
            return tuple(text for one in value for text in _texts(one, steps[at:]))
        if not isinstance(value, Mapping):
            return EVERYTHING
        value = value.get(step)
    return _flat(value)


def _flat(value: Any) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Iterable) and not isinstance(value, Mapping | bytes):
        return tuple(text for one in value for text in _flat(one))
    return EVERYTHING
