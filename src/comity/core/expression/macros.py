"""The macros: loops over lists and maps, what each does with the elements, and the steps that an evaluation may take."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from comity.core.expression.errors import CostError, EvaluationError
from comity.core.expression.values import is_list, is_map, make_map, no_overload

Variables = dict[str, Any]
Evaluate = Callable[[Variables], Any]

# The place in the variables of what is left of the steps that an evaluation may take. No variable can have this name.
STEPS: Final = "(steps)"
PATTERNS: Final = "(patterns)"  # likewise, of what an evaluation remembers of the patterns in it
STEPS_MAX: Final = 100_000
CHARACTERS_PER_STEP: Final = 64
ITEMS_PER_STEP: Final = 4
_SIZED: Final = (str, bytes, list, tuple, dict)


def bounded(variables: Variables) -> Variables:
    """Return the variables of one evaluation: it may take `STEPS_MAX` steps, and remembers nothing of patterns yet."""
    return {**variables, STEPS: [STEPS_MAX], PATTERNS: {}}


def weight(value: Any) -> int:
    """Return how many steps it takes to look at all of a value, whatever is nested in it."""
    if not isinstance(value, _SIZED) and not is_map(value):
        return 0
    characters, items, parts = 0, 0, [value]
    while parts:
        part = parts.pop()
        if isinstance(part, str | bytes):
            characters += len(part)
            continue
        items += len(part)
        inner = part if is_list(part) else [*part.keys(), *part.values()]
        parts += [one for one in inner if isinstance(one, _SIZED) or is_map(one)]
    return items // ITEMS_PER_STEP + characters // CHARACTERS_PER_STEP


def charge(variables: Variables, *values: Any) -> None:
    """Spend what it takes to look at all of some values."""
    if STEPS in variables:
        spend(variables, sum(map(weight, values)))


def spend(variables: Variables, steps: int) -> None:
    left = variables.get(STEPS)
    if left is None:
        return
    left[0] -= steps
    if left[0] < 0:
        raise CostError("the expression takes too many steps")


def _pairs(value: Any, names: int) -> Iterable[tuple[Any, ...]]:
    if is_list(value):
        return enumerate(value) if names == 2 else ((one,) for one in value)
    if is_map(value):
        return value.items() if names == 2 else ((one,) for one in value)
    raise no_overload("a macro", value)


def looped(kind: str, over: Evaluate, names: tuple[str, ...], body: list[Evaluate]) -> Evaluate:
    """Return a macro: `body` is evaluated with the variables `names` for each element of what is looped over."""
    loop = _LOOPS[kind]

    def macro(variables: Variables) -> Any:
        inner = dict(variables)

        def turns() -> Iterable[Variables]:
            for pair in _pairs(over(variables), len(names)):
                spend(variables, 1)
                inner.update(zip(names, pair, strict=True))
                yield inner

        return loop(turns(), names, body)

    return macro


def _all(turns: Iterable[Variables], _: tuple[str, ...], body: list[Evaluate]) -> bool:
    return not _any_is(turns, body[0], decisive=False)


def _exists(turns: Iterable[Variables], _: tuple[str, ...], body: list[Evaluate]) -> bool:
    return _any_is(turns, body[0], decisive=True)


def _any_is(turns: Iterable[Variables], test: Evaluate, *, decisive: bool) -> bool:
    """Return whether the test is `decisive` for an element; an error counts only if no element decides."""
    failed: EvaluationError | None = None
    for inner in turns:
        try:
            found = test(inner)
        except CostError:
            raise
        except EvaluationError as error:
            failed = failed or error
            continue
        if found is decisive:
            return True
        if type(found) is not bool:
            failed = failed or no_overload("a test", found)
    if failed is not None:
        raise failed
    return False


def _is_true(test: Evaluate, inner: Variables) -> bool:
    found = test(inner)
    if type(found) is bool:
        return found
    raise no_overload("a test", found)


def _exists_one(turns: Iterable[Variables], _: tuple[str, ...], body: list[Evaluate]) -> bool:
    return sum([_is_true(body[0], inner) for inner in turns]) == 1


def _filter(turns: Iterable[Variables], names: tuple[str, ...], body: list[Evaluate]) -> list[Any]:
    return [inner[names[0]] for inner in turns if _is_true(body[0], inner)]


def _map(turns: Iterable[Variables], _: tuple[str, ...], body: list[Evaluate]) -> list[Any]:
    *tests, transform = body
    return [transform(inner) for inner in turns if all(_is_true(test, inner) for test in tests)]


def _transform_map(turns: Iterable[Variables], names: tuple[str, ...], body: list[Evaluate]) -> Any:
    *tests, transform = body
    kept = (inner for inner in turns if all(_is_true(test, inner) for test in tests))
    return make_map([(inner[names[0]], transform(inner)) for inner in kept])


def _transform_entry(turns: Iterable[Variables], _: tuple[str, ...], body: list[Evaluate]) -> Any:
    *tests, transform = body
    made = [transform(inner) for inner in turns if all(_is_true(test, inner) for test in tests)]
    if any(not is_map(one) for one in made):
        raise EvaluationError("transformMapEntry needs a map for each entry")
    return make_map([entry for one in made for entry in one.items()])


_LOOPS: Final[dict[str, Callable[[Iterable[Variables], tuple[str, ...], list[Evaluate]], Any]]] = {
    "all": _all,
    "exists": _exists,
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_entry,
}
