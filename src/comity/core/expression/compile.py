"""From the tree of an expression to nested closures: `Evaluate` takes the variables and returns the value.

`&&`, `||`, `all` and `exists` absorb errors as CEL says: a side that decides wins over a side that failed. A path such as
`response.data.score` is one closure, so that what an edge condition costs does not depend on the size of the reply.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from comity.core.expression import values
from comity.core.expression.ast import Bind, Call, Entries, Has, Index, Items, Literal, Macro, Name, Node, Select
from comity.core.expression.errors import CostError, EvaluationError, MissingError
from comity.core.expression.functions import FUNCTIONS, METHODS, TYPE_NAMES, Function
from comity.core.expression.macros import Evaluate, Variables, charge, looped, spend
from comity.core.expression.operators import OPERATORS
from comity.core.expression.values import NONE, Optional, at, equal, is_map, make_map, no_overload

_NUMBERS: Final = frozenset({int, float})
_GROWING: Final = frozenset({str, bytes, list, tuple})  # a sum of two of one of these types is as long as both
_ORDERED: Final = frozenset({str, int, float})  # two values of one of these types: Python compares them as CEL does
EXACT_MAX: Final = 2**53  # up to here every whole number is a double


def compiled(node: Node) -> Evaluate:
    """Return a function from variables to the value of an expression."""
    match node:
        case Literal():
            value = node.value
            return lambda _: value
        case Name() | Select():
            return _path(node) or _select(node)  # type: ignore[arg-type]
        case Index():
            return _index(node)
        case Has():
            return _has(node)
        case Call():
            return _call(node)
        case Items():
            return _items(node)
        case Entries():
            return _entries(node)
        case Macro():
            return _macro(node)
        case Bind():
            return _bind(node)


# --- paths ---


def _path(node: Node) -> Evaluate | None:
    """Return one closure for a variable and the fields below it, or None where a part of the path is something else."""
    keys: list[str] = []
    while isinstance(node, Select) and not node.is_optional:
        keys.append(node.field)
        node = node.operand
    if not isinstance(node, Name):
        return None
    name, fields = node.name, tuple(reversed(keys))
    if not fields:
        if name in TYPE_NAMES:
            kind = TYPE_NAMES[name]
            return lambda variables: variables.get(name, kind)

        def variable(variables: Variables) -> Any:
            try:
                return variables[name]
            except KeyError:
                raise MissingError(f"there is no variable {name}") from None

        return variable

    return _fields(name, fields)


def _fields(name: str, fields: tuple[str, ...]) -> Evaluate:
    """Return one closure for a path. Only a map takes a text as its index; anything else goes the slow way."""
    if len(fields) == 1:
        (only,) = fields

        def one(variables: Variables) -> Any:
            try:
                return variables[name][only]
            except (KeyError, TypeError):
                return _slow(name, fields, variables)

        return one
    if len(fields) == 2:
        first, second = fields

        def two(variables: Variables) -> Any:
            try:
                return variables[name][first][second]
            except (KeyError, TypeError):
                return _slow(name, fields, variables)

        return two

    def path(variables: Variables) -> Any:
        try:
            value = variables[name]
            for field in fields:
                value = value[field]
        except (KeyError, TypeError):
            return _slow(name, fields, variables)
        return value

    return path


def _slow(name: str, fields: tuple[str, ...], variables: Variables) -> Any:
    """Walk a path that is not plain: through optionals and maps with other keys, or to where it ends too early."""
    walked = name
    dotted = ".".join((name, *fields))
    if dotted in TYPE_NAMES:
        return TYPE_NAMES[dotted]
    if name not in variables:
        raise MissingError(f"there is no variable {name}")
    value = variables[name]
    for field in fields:
        value = _field(value, field, walked)
        walked = f"{walked}.{field}"
    return value


def _field(value: Any, field: str, walked: str) -> Any:
    if type(value) is Optional:
        return _optional_field(value, field)
    if not is_map(value):
        raise EvaluationError(f"{walked} is {values.type_name(value)} and has no fields")
    if field not in value:
        raise MissingError(f"{walked} has no {field}")
    return value[field]


def _optional_field(value: Any, field: Any) -> Optional:
    """Return a field or element of a value that may be absent, as an `Optional`."""
    if type(value) is Optional:
        if not value.has_value:
            return NONE
        if is_map(value.value) and not values.contains(value.value, field):
            return NONE
        return Optional(at(value.value, field))
    try:
        return Optional(at(value, field))
    except MissingError:
        return NONE


def _select(node: Select) -> Evaluate:
    operand, field = compiled(node.operand), node.field
    if node.is_optional:
        return lambda variables: _optional_field(operand(variables), field)
    return lambda variables: _field(operand(variables), field, "the value")


def _index(node: Index) -> Evaluate:
    operand, index = compiled(node.operand), compiled(node.index)
    if node.is_optional:
        return lambda variables: _optional_field(operand(variables), index(variables))

    def element(variables: Variables) -> Any:
        value, key = operand(variables), index(variables)
        return _optional_field(value, key) if type(value) is Optional else at(value, key)

    return element


def _has(node: Has) -> Evaluate:
    operand, field = compiled(node.operand), node.field

    def has(variables: Variables) -> bool:
        value = operand(variables)
        if type(value) is Optional:
            return _optional_field(value, field).has_value
        if is_map(value):
            return field in value
        if node.is_optional:
            return _optional_field(value, field).has_value
        raise no_overload("has()", value)

    return has


# --- operators ---


def _call(node: Call) -> Evaluate:
    arguments = [compiled(one) for one in node.arguments]
    match node.function:
        case "&&" | "||":
            return _logic(node.function, *arguments)
        case "?:":
            return _choice(*arguments)
        case "!":
            return _not(*arguments)
        case "==" | "!=" | "<" | "<=" | ">" | ">=":
            return _comparison(node, *arguments)
        case "in":
            return _membership(*arguments)
        case "+":
            return _sum(*arguments)
        case sign if sign in OPERATORS:
            return _operation(OPERATORS[sign], arguments)
    found = known_function(node)
    if found is None:
        return _unknown(node)
    function, is_metered = found.function, found.is_metered
    if not found.is_costly:
        return _operation(function, arguments)

    def costly(variables: Variables) -> Any:
        given = [argument(variables) for argument in arguments]
        spend(variables, 1)
        charge(variables, *given)
        return function(variables, *given) if is_metered else function(*given)

    return costly


def known_function(node: Call) -> Function | None:
    """Return the function that a call means, or None if there is none of that name with that many arguments."""
    found = (METHODS if node.is_method else FUNCTIONS).get(node.function)
    return found if found is not None and len(node.arguments) in found.counts else None


def _unknown(node: Call) -> Evaluate:
    """Return what fails when it is evaluated, as CEL says; a side that decides `||` or `&&` wins over it all the same."""
    message = unknown_function(node)

    def unknown(_: Variables) -> Any:
        raise EvaluationError(message)

    return unknown


def unknown_function(node: Call) -> str:
    """Say that there is no such function."""
    about = "method" if node.is_method else "function"
    return f"there is no {about} {node.function} with {len(node.arguments) - node.is_method} arguments"


def _membership(left: Evaluate, right: Evaluate) -> Evaluate:
    def contained(variables: Variables) -> bool:
        value, container = left(variables), right(variables)
        if values.is_list(container):  # a map is not searched
            charge(variables, container)
        return values.contains(container, value)

    return contained


def _sum(left: Evaluate, right: Evaluate) -> Evaluate:
    add = OPERATORS["+"]

    def total(variables: Variables) -> Any:
        one, other = left(variables), right(variables)
        if type(one) in _GROWING:
            charge(variables, one, other)
        return add(one, other)

    return total


def _operation(function: Callable[..., Any], arguments: list[Evaluate]) -> Evaluate:
    if len(arguments) == 1:
        (only,) = arguments
        return lambda variables: function(only(variables))
    if len(arguments) == 2:
        first, second = arguments
        return lambda variables: function(first(variables), second(variables))
    return lambda variables: function(*(argument(variables) for argument in arguments))


def _logic(sign: str, left: Evaluate, right: Evaluate) -> Evaluate:
    """Return `&&` or `||`: a side that decides (false, or true) wins over a side that fails or is no bool."""
    decisive = sign == "||"

    def both(variables: Variables) -> Any:
        try:
            first = left(variables)
        except CostError:
            raise
        except EvaluationError:
            if right(variables) is decisive:
                return decisive
            raise
        if first is decisive:
            return decisive
        second = right(variables)
        if second is decisive:
            return decisive
        if type(first) is type(second) is bool:
            return not decisive
        raise no_overload(sign, first, second)

    return both


def _choice(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    def choice(variables: Variables) -> Any:
        decided = condition(variables)
        if decided is True:
            return then(variables)
        if decided is False:
            return otherwise(variables)
        raise no_overload("?:", decided)

    return choice


def _not(operand: Evaluate) -> Evaluate:
    def negated(variables: Variables) -> bool:
        value = operand(variables)
        if value is True or value is False:
            return not value
        raise no_overload("!", value)

    return negated


_GENERAL: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": equal,
    "!=": lambda left, right: not equal(left, right),
    **{sign: partial(values.in_order, sign) for sign in ("<", "<=", ">", ">=")},
}
_PLAIN: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def _comparison(node: Call, left: Evaluate, right: Evaluate) -> Evaluate:
    general, plain = _GENERAL[node.function], _PLAIN[node.function]
    constant = node.arguments[1]
    if isinstance(constant, Literal) and type(constant.value) in (str, int, float):
        # What most edge conditions are: a path against a text or a number. Python compares those as CEL does.
        value = constant.value
        is_exact = type(value) is not str and abs(value) <= EXACT_MAX
        kinds = _NUMBERS if is_exact else frozenset({type(value)})

        def against(variables: Variables) -> bool:
            found = left(variables)
            return plain(found, value) if type(found) in kinds else general(found, value)

        return against

    def between(variables: Variables) -> bool:
        one, other = left(variables), right(variables)
        kind = type(one)
        if kind is type(other) and kind in _ORDERED:
            return plain(one, other)
        charge(variables, one, other)
        return general(one, other)

    return between


# --- lists and maps ---


def _items(node: Items) -> Evaluate:
    parts = [compiled(one) for one in node.items]
    if not node.optional:
        return lambda variables: [part(variables) for part in parts]

    def items(variables: Variables) -> list[Any]:
        found = []
        for place, part in enumerate(parts):
            value = part(variables)
            if place not in node.optional:
                found.append(value)
            elif _expect_optional(value).has_value:
                found.append(value.value)
        return found

    return items


def _entries(node: Entries) -> Evaluate:
    pairs = [(compiled(key), compiled(value)) for key, value in node.entries]

    def entries(variables: Variables) -> Any:
        found = []
        for place, (key, part) in enumerate(pairs):
            name, value = key(variables), part(variables)
            if place not in node.optional:
                found.append((name, value))
            elif _expect_optional(value).has_value:
                found.append((name, value.value))
        return make_map(found)

    return entries


def _expect_optional(value: Any) -> Optional:
    if type(value) is not Optional:
        raise no_overload("?", value)
    return value


# --- macros ---


def _macro(node: Macro) -> Evaluate:
    return looped(node.kind, compiled(node.over), node.names, [compiled(one) for one in node.body])


def _bind(node: Bind) -> Evaluate:
    value, body, name = compiled(node.value), compiled(node.body), node.name

    def bound(variables: Variables) -> Any:
        found = value(variables)
        if node.kind == "bind":
            return body({**variables, name: found})
        if not _expect_optional(found).has_value:
            return NONE
        inner = body({**variables, name: found.value})
        return Optional(inner) if node.kind == "optMap" else _expect_optional(inner)

    return bound
