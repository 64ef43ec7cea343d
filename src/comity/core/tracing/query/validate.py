"""Whether a query that parses also makes sense: types, regular expressions, and what the language does not do yet.

Children are checked before their parent, so the error names the innermost part that is wrong.
"""

from __future__ import annotations

from comity.core.tracing.query import ast
from comity.core.tracing.query.cursor import DEPTH_MAX, NESTING_MAX
from comity.core.tracing.query.errors import Fault, QueryError, place
from comity.core.tracing.query.hints import type_hint
from comity.core.tracing.query.pattern import PatternError
from comity.core.tracing.query.regex import Regex
from comity.core.tracing.query.values import NUMERIC, Type

GROUPS_MAX = 5
COMPARED_MAX = 1_000
_WITH_OWN_GROUP = frozenset({"avg_over_time", "quantile_over_time", "histogram_over_time"})  # by weight or by bucket
_LEVELS_MAX = DEPTH_MAX + NESTING_MAX
_ANY = Type.ATTRIBUTE
_NUMBERS = NUMERIC | {_ANY}
_TRUTHS = frozenset({Type.BOOL, _ANY})
_EQUALITY = frozenset({"=", "!="})

# Which operators a type takes part in; two operands must agree on the type first.
_OPERATORS: dict[Type, frozenset[str]] = {
    Type.INT: _EQUALITY | ast.ORDERING | ast.ARITHMETIC,
    Type.FLOAT: _EQUALITY | ast.ORDERING | ast.ARITHMETIC,
    Type.DURATION: _EQUALITY | ast.ORDERING | ast.ARITHMETIC,
    Type.STRING: _EQUALITY | ast.ORDERING | ast.REGEX,
    Type.BOOL: _EQUALITY | ast.LOGICAL,
    Type.STATUS: _EQUALITY,
    Type.KIND: _EQUALITY,
    Type.NIL: _EQUALITY,
    Type.ATTRIBUTE: ast.COMPARISONS | ast.ARITHMETIC | ast.LOGICAL,
}


def validate(query: ast.Query, text: str = "") -> None:
    """Raise `QueryError` (invalid or unsupported) unless the query can be run; `text` gives the error its place."""
    if not text:
        # Not from the parser, which counts for itself: a tree made by hand may be too deep even to print.
        _refuse_deep(query)
    _Checker(query, text).root(query.root)


def _refuse_deep(query: ast.Query) -> None:
    todo: list[tuple[object, int]] = [(query, 0)]
    while todo:
        node, depth = todo.pop()
        if depth > _LEVELS_MAX:
            raise QueryError("the query is too deep", fault=Fault.INVALID, expected=f"at most {_LEVELS_MAX} levels")
        if isinstance(node, tuple):
            todo.extend((part, depth) for part in node)
        else:  # a node has the names of its parts here, and what is no node has none
            todo.extend((getattr(node, name), depth + 1) for name in getattr(node, "__match_args__", ()))


class _Checker:
    __slots__ = ("query", "text")

    def __init__(self, query: ast.Query, text: str) -> None:
        self.query = query
        self.text = text

    def error(self, problem: str, at: int, expected: str = "", *, fault: Fault = Fault.INVALID, hint: str = "") -> QueryError:
        line, column = place(self.text or str(self.query), at)
        return QueryError(problem, fault=fault, line=line, column=column, expected=expected, hint=hint)

    def unsupported(self, problem: str, at: int) -> QueryError:
        return self.error(problem, at, fault=Fault.UNSUPPORTED)

    # pipelines

    def root(self, root: ast.Pipeline | ast.PipelineOperation | ast.Metrics) -> None:
        match root:
            case ast.Pipeline():
                for stage in root.stages:
                    self.stage(stage)
            case ast.PipelineOperation():
                self.root(root.left)
                self.root(root.right)
            case ast.MetricsQuery():
                self.root(root.pipeline)
                self.metrics(root.aggregate)
                self.second(root.second, comparing=isinstance(root.aggregate, ast.Compare))
            case ast.MetricsOperation():
                for side in (root.left, root.right):
                    if not isinstance(side, ast.Literal):
                        self.root(side)
                        if isinstance(side, ast.MetricsQuery) and isinstance(side.aggregate, ast.Compare):
                            raise self.error("compare() takes no part in arithmetic", root.at)
                self.second(root.second, comparing=False)

    def stage(self, stage: ast.Stage) -> None:
        match stage:
            case ast.SpansetFilter():
                self.spanset_filter(stage)
            case ast.SpansetOperation():
                self.stage(stage.left)
                self.stage(stage.right)
            case ast.ScalarFilter():
                self.scalar_filter(stage)
            case ast.GroupBy():
                self.expression(stage.expression)
                if not references_span(stage.expression):
                    raise self.error(f"{stage} is the same for every span", stage.at, "a field of the span")
            case ast.Select():
                for field in stage.fields:
                    self.expression(field)

    def spanset_filter(self, stage: ast.SpansetFilter) -> None:
        found = self.expression(stage.expression)
        if found not in _TRUTHS:
            raise self.error(f"{stage.expression} is {_a(found)}, not true or false", stage.at, "a condition")

    # scalars

    def scalar_filter(self, stage: ast.ScalarFilter) -> None:
        self.scalar(stage.left)
        self.scalar(stage.right)
        if not isinstance(stage.left, ast.Aggregate) or not isinstance(stage.right, ast.Literal):
            raise self.unsupported("only one aggregate compared with one number is supported", stage.at)

    def scalar(self, scalar: ast.Scalar) -> None:
        match scalar:
            case ast.Aggregate():
                self.aggregate(scalar)
            case ast.ScalarOperation():
                self.scalar(scalar.left)
                self.scalar(scalar.right)
            case ast.ScalarPipeline():
                self.root(scalar.pipeline)
                self.aggregate(scalar.aggregate)

    def aggregate(self, aggregate: ast.Aggregate) -> None:
        if aggregate.operand is None:
            return
        found = self.expression(aggregate.operand)
        if found not in _NUMBERS:
            raise self.error(f"{aggregate} aggregates {_a(found)}", aggregate.at, "a number")
        if not references_span(aggregate.operand):
            raise self.error(f"{aggregate} is the same for every span", aggregate.at, "a field of the span")

    # metrics

    def metrics(self, aggregate: ast.MetricsAggregate | ast.Compare) -> None:
        if isinstance(aggregate, ast.Compare):
            self.compare(aggregate)
            return
        for field in (aggregate.field, *aggregate.by):
            if field is not None:
                self.expression(field)
        groups_max = GROUPS_MAX - (aggregate.function in _WITH_OWN_GROUP)
        if len(aggregate.by) > groups_max:
            raise self.unsupported(f"at most {groups_max} fields can be grouped by", aggregate.at)
        for quantile in aggregate.quantiles:
            if not 0 <= quantile <= 1:
                raise self.error(f"{quantile} is not a quantile", aggregate.at, "a number from 0 to 1")

    def compare(self, aggregate: ast.Compare) -> None:
        self.spanset_filter(aggregate.selection)
        if aggregate.top_n is not None and not 1 <= aggregate.top_n <= COMPARED_MAX:
            raise self.error("compare() cannot keep so many values", aggregate.at, f"a number from 1 to {COMPARED_MAX:,}")
        if aggregate.window_ns and aggregate.window_ns[0] >= aggregate.window_ns[1]:
            raise self.error("the window of compare() ends before it starts", aggregate.at)

    def second(self, stages: tuple[ast.SecondStage, ...], *, comparing: bool) -> None:
        for stage in stages:
            if comparing:
                raise self.error("nothing can follow compare()", stage.at)
            if isinstance(stage, ast.Rank) and stage.limit < 1:
                raise self.error(f"{stage.function}({stage.limit}) keeps nothing", stage.at, "a number from 1")

    # expressions

    def expression(self, node: ast.Expression) -> Type:
        """Return the type of an expression, having checked all of it."""
        match node:
            case ast.Literal():
                return node.type
            case ast.Attribute():
                if node.parent:
                    raise self.unsupported("parent is not supported yet", node.at)
                return _ANY
            case ast.IntrinsicField():
                if node.intrinsic is ast.Intrinsic.PARENT:
                    raise self.unsupported("parent is not supported yet", node.at)
                return ast.INTRINSIC_TYPES[node.intrinsic]
            case ast.Unary():
                return self.unary(node)
        return self.binary(node)

    def unary(self, node: ast.Unary) -> Type:
        found = self.expression(node.operand)
        allowed, expected = (_NUMBERS, "a number") if node.op == "-" else (_TRUTHS, "true or false")
        if found not in allowed:
            raise self.error(f"{node.op} is applied to {node.operand}, {_a(found)}", node.at, expected)
        return found

    def binary(self, node: ast.Binary) -> Type:
        left, right = self.expression(node.left), self.expression(node.right)
        self.nil(node, left, right)
        if Type.NIL not in (left, right):
            same = left is right or _ANY in (left, right) or (left in NUMERIC and right in NUMERIC)
            if not same:
                problem = f"{node} sets {_a(left)} against {_a(right)}: both sides must be of one type"
                raise self.error(problem, node.at, _a(left), hint=type_hint(node))
        for found in (left, right):
            if node.op not in _OPERATORS[found]:
                raise self.error(f"{node.op} does not work with {_a(found)} in {node}", node.at)
        if node.op in ast.REGEX:
            self.regex(node)
        if node.op in ("/", "%") and left is Type.INT and node.right == ast.Literal(0):
            raise self.error(f"{node} divides by zero", node.at)
        if node.op in ast.ARITHMETIC:
            return _ANY if _ANY in (left, right) else _arithmetic_type(left, right)
        return Type.BOOL

    def nil(self, node: ast.Binary, left: Type, right: Type) -> None:
        """Refuse to ask whether something is missing that no span can lack."""
        if node.op != "=" or Type.NIL not in (left, right):
            return
        other = node.right if left is Type.NIL else node.left
        if isinstance(other, ast.IntrinsicField):
            raise self.error(f"{other} is on every span and cannot be nil", node.at)
        if isinstance(other, ast.Attribute) and (other.scope, other.name) == (ast.Scope.RESOURCE, "service.name"):
            raise self.error("resource.service.name is on every span and cannot be nil", node.at)

    def regex(self, node: ast.Binary) -> None:
        if not isinstance(node.right, ast.Literal) or not isinstance(node.right.value, str):
            raise self.error(f"{node.op} needs a pattern on its right", node.at, "a string")
        try:
            Regex(node.right.value)
        except PatternError as error:
            raise self.error(f"invalid regex {node.right}: {error}", node.right.at) from None


def _a(kind: Type) -> str:
    return f"an {kind}" if kind[0] in "ai" else f"a {kind}"


def _arithmetic_type(left: Type, right: Type) -> Type:
    return Type.INT if left is right is Type.INT else Type.FLOAT


def references_span(node: ast.Expression) -> bool:
    """Return whether the value can differ from span to span."""
    match node:
        case ast.Literal():
            return False
        case ast.Unary():
            return references_span(node.operand)
        case ast.Binary():
            return references_span(node.left) or references_span(node.right)
    return True
