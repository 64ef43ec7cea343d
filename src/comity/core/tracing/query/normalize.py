"""Expressions brought to the form in which they are executed.

Constants are folded, the field of an equation stands on the left, and alternatives for one field are joined: `.a = 1 ||
.a = 2` becomes one comparison with the array (1, 2). The last matters for more than speed, since it decides what is looked up
first; see `fetch`. For the same reason a constant to the left of `<` stays there.
"""

from __future__ import annotations

from comity.core.tracing.query import ast
from comity.core.tracing.query.operators import apply
from comity.core.tracing.query.values import Type, Undefined

_SYMMETRIC = frozenset({"=", "!="})
_JOINED_BY = {"=": "||", "=~": "||", "!=": "&&", "!~": "&&"}
_JOINABLE = frozenset({Type.STRING, Type.INT, Type.FLOAT, Type.BOOL})


def normalize(node: ast.Expression, *, join: bool = True) -> ast.Expression:
    """Return an equal expression in executable form."""
    if isinstance(node, ast.Unary):
        operand = normalize(node.operand, join=join)
        if node.op == "!" and isinstance(operand, ast.Literal) and isinstance(operand.value, bool):
            return ast.Literal(not operand.value)
        return ast.Unary(node.op, operand)
    if not isinstance(node, ast.Binary):
        return node
    left, right = normalize(node.left, join=join), normalize(node.right, join=join)
    if isinstance(left, ast.Literal) and isinstance(right, ast.Literal):
        return _folded(node.op, left, right)
    if node.op in ast.LOGICAL:
        joined = _joined(node.op, left, right) if join else None
        return joined or ast.Binary(node.op, left, right)
    if isinstance(left, ast.Literal) and node.op in _SYMMETRIC:
        return ast.Binary(node.op, right, left)
    return ast.Binary(node.op, left, right)


def _folded(op: str, left: ast.Literal, right: ast.Literal) -> ast.Expression:
    try:
        return ast.Literal(apply(op, left.value, right.value))
    except Undefined:
        return ast.Binary(op, left, right)


def _joined(op: str, left: ast.Expression, right: ast.Expression) -> ast.Expression | None:
    first, second = _alternatives(left), _alternatives(right)
    if first is None or second is None:
        return None
    (field, comparison, values), (other_field, other_comparison, other_values) = first, second
    if field != other_field or comparison != other_comparison or _JOINED_BY[comparison] != op:
        return None
    if type(values[0]) is not type(other_values[0]):
        return None
    return ast.Binary(comparison, field, ast.Literal(values + other_values))


def _alternatives(node: ast.Expression) -> tuple[ast.Field, str, tuple[object, ...]] | None:
    if not isinstance(node, ast.Binary) or node.op not in _JOINED_BY or not isinstance(node.right, ast.Literal):
        return None
    if not isinstance(node.left, ast.Attribute | ast.IntrinsicField):
        return None
    value = node.right.value
    if isinstance(value, tuple):
        return node.left, node.op, value
    return (node.left, node.op, (value,)) if node.right.type in _JOINABLE else None
