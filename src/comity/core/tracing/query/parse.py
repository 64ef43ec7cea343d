"""Tokens to syntax tree, by recursive descent.

The language has one real ambiguity: what a parenthesis opens. It may hold a spanset, a pipeline, a pipeline ending in a
bare aggregate, a metrics query, or a number. So a group is parsed by what it begins with and then judged by what it turned
out to be: each kind allows its own operators after it, and mixing kinds is an error at the operator.

Precedence, loosest first: `&&` and `||` together, comparisons, `+ -`, `!`, `* / %`, `^` (from the right). A minus sign
binds as loosely as subtraction, so `-.a * 2` is `-(.a * 2)`.
"""

from __future__ import annotations

from functools import partial

from comity.core.tracing.query import ast
from comity.core.tracing.query.cursor import Cursor
from comity.core.tracing.query.lexer import Lex, Token, tokenize
from comity.core.tracing.query.values import Duration, Undefined, arithmetic, wrap

_OPERAND_OF_MINUS, _OPERAND_OF_NOT = 4, 5
_BOUNDS = ast.COMPARISONS - ast.REGEX
_SERIES_ARITHMETIC = frozenset("+-*/")

_Group = ast.Spanset | ast.Pipeline | ast.PipelineOperation | ast.Scalar | ast.Metrics


def parse(text: str, *, lenient: bool = False) -> ast.Query:
    """Return the syntax tree of a query, or raise `QueryError`. Whether it makes sense is for `validate` to say."""
    parser = _Parser(text, tokenize(text, lenient=lenient))
    return parser.query()


class _Parser(Cursor):
    __slots__ = ()

    # the whole

    def query(self) -> ast.Query:
        root = self.root()
        hints: tuple[tuple[str, ast.Literal], ...] = ()
        if self.sees_word("with"):
            self.take()
            self.expect("(")
            hints = tuple(self.separated(self.hint))
            self.expect(")")
        if self.token.kind is not Lex.END:
            raise self.unexpected("an operator, | or the end of the query")
        return ast.Query(root, hints)

    def hint(self) -> tuple[str, ast.Literal]:
        if self.token.kind not in (Lex.UNKNOWN, Lex.WORD):
            raise self.unexpected("the name of a hint")
        name = self.take().text
        self.expect("=")
        return name, self.literal("the value of the hint")

    def root(self) -> ast.Pipeline | ast.PipelineOperation | ast.Metrics:
        found = self.content()
        match found:
            case ast.SpansetFilter() | ast.SpansetOperation():
                return ast.Pipeline((found,), found.at)
            case ast.Pipeline() | ast.PipelineOperation() | ast.MetricsQuery() | ast.MetricsOperation():
                return found
        raise self.unexpected("a comparison" if not isinstance(found, ast.Literal) else "a metrics query in parentheses")

    def content(self) -> _Group:
        """Parse what a query or a parenthesis can hold."""
        token = self.token
        if token.kind is Lex.LITERAL or self.sees("-"):
            return self.metrics_tail(self.series_expression(None, 1))
        if not self.sees("("):
            return self.pipeline(self.first_stage())
        group = self.group()
        match group:
            case ast.SpansetFilter() | ast.SpansetOperation():
                return self.pipeline(self.spanset(group, 1))
            case ast.Pipeline() | ast.PipelineOperation():
                return self.pipeline_operation(group, 1)
            case ast.MetricsQuery() | ast.MetricsOperation() | ast.Literal():
                return self.metrics_tail(self.series_expression(group, 1))
        return self.pipeline_or_scalar(self.scalar(group, 1), token.at)

    def group(self) -> _Group:
        self.expect("(")
        found = self.nested(self.content)
        self.expect(")")
        return found

    # pipelines

    def first_stage(self) -> ast.Stage | ast.Scalar:
        if self.sees("{"):
            return self.spanset(self.spanset_filter(), 1)
        if self.sees_word(*ast.AGGREGATES):
            return self.scalar_filter_or_scalar()
        if self.sees_word("by"):
            return self.group_by()
        if self.sees_word("select"):
            return self.select()
        raise self.unexpected("{, (, by, select or an aggregate")

    def pipeline(self, first: ast.Stage | ast.Scalar) -> _Group:
        """Parse the stages after the first. A bare spanset comes back as it is, so that operators may follow it."""
        if isinstance(first, ast.Aggregate | ast.ScalarOperation | ast.ScalarPipeline | ast.Literal):
            return first
        if not self.sees("|") and isinstance(first, ast.SpansetFilter | ast.SpansetOperation):
            return first
        stages = [first]
        while self.sees("|"):
            self.take()
            if self.sees_word(*ast.METRICS):
                return self.metrics_tail(ast.MetricsQuery(ast.Pipeline(tuple(stages), first.at), self.metrics(), at=first.at))
            stage = self.stage()
            if isinstance(stage, ast.Aggregate):
                return ast.ScalarPipeline(ast.Pipeline(tuple(stages), first.at), stage, first.at)
            stages.append(stage)
        return ast.Pipeline(tuple(stages), first.at)

    def stage(self) -> ast.Stage | ast.Aggregate:
        token = self.token
        if self.sees("{"):
            return self.spanset(self.spanset_filter(), 1)
        if self.sees("("):
            group = self.group()
            if isinstance(group, ast.SpansetFilter | ast.SpansetOperation):
                return self.spanset(group, 1)
            if not isinstance(group, ast.Aggregate | ast.ScalarOperation):
                raise self.error("this cannot be a stage", token.at, "a spanset or a comparison of aggregates")
            return self.filtering(self.compared(self.scalar(group, 1), token.at))
        if self.sees_word(*ast.AGGREGATES):
            return self.filtering(self.scalar_filter_or_scalar())
        if self.sees_word("by"):
            return self.group_by()
        if self.sees_word("select"):
            return self.select()
        if self.sees_word("coalesce"):
            at = self.take().at
            self.expect("(")
            self.expect(")")
            return ast.Coalesce(at)
        raise self.unexpected("{, (, by, select, coalesce, an aggregate or a metrics function")

    def filtering(self, found: ast.ScalarFilter | ast.Scalar) -> ast.ScalarFilter | ast.Aggregate:
        # A bare aggregate is only meant for a parenthesis, where it ends the pipeline.
        if isinstance(found, ast.ScalarFilter) or (isinstance(found, ast.Aggregate) and self.nesting and self.sees(")")):
            return found
        raise self.unexpected("a comparison")

    def pipeline_operation(
        self, left: ast.Pipeline | ast.PipelineOperation, lowest: int
    ) -> ast.Pipeline | ast.PipelineOperation:
        while self.sees(*ast.SPANSET_OPERATORS) and (binds := _spanset_precedence(self.token.text)) >= lowest:
            op = self.take()
            if not self.sees("("):
                raise self.unexpected("(")
            group = self.group()
            if isinstance(group, ast.SpansetFilter | ast.SpansetOperation):
                group = ast.Pipeline((group,), group.at)
            if not isinstance(group, ast.Pipeline | ast.PipelineOperation):
                raise self.error("only pipelines of spansets can be combined", op.at, "a pipeline in parentheses")
            right = self.pipeline_operation(group, binds + 1)
            left = self.grown(ast.PipelineOperation(op.text, left, right, op.at), op.at, left, right)
        return left

    def group_by(self) -> ast.GroupBy:
        at = self.take().at
        self.expect("(")
        expression = self.expression(1)
        self.expect(")")
        return ast.GroupBy(expression, at)

    def select(self) -> ast.Select:
        at = self.take().at
        return ast.Select(self.fields(), at)

    def fields(self) -> tuple[ast.Field, ...]:
        self.expect("(")
        found = tuple(self.separated(self.field))
        self.expect(")")
        return found

    def field(self) -> ast.Field:
        if self.token.kind is not Lex.FIELD:
            raise self.unexpected("an attribute or intrinsic")
        found: ast.Field = self.take().value
        return found

    # spansets

    def spanset(self, left: ast.Spanset, lowest: int) -> ast.Spanset:
        while self.sees(*ast.SPANSET_OPERATORS) and (binds := _spanset_precedence(self.token.text)) >= lowest:
            op = self.take()
            right = self.spanset(self.spanset_primary(), binds + 1)
            left = self.grown(ast.SpansetOperation(op.text, left, right, op.at), op.at, left, right)
        return left

    def spanset_primary(self) -> ast.Spanset:
        if self.sees("("):
            at = self.token.at
            group = self.group()
            if isinstance(group, ast.SpansetFilter | ast.SpansetOperation):
                return group
            raise self.error("a pipeline cannot stand beside a spanset", at, "a spanset such as { … }")
        return self.spanset_filter()

    def spanset_filter(self) -> ast.SpansetFilter:
        at = self.token.at
        self.expect("{")
        if self.sees("}"):
            self.take()
            return ast.SpansetFilter(ast.Literal(True, at), at)
        expression = self.expression(1)
        self.expect("}")
        return self.grown(ast.SpansetFilter(expression, at), at, expression)

    # expressions about one span

    def expression(self, lowest: int) -> ast.Expression:
        left = self.operand()
        while self.token.kind is Lex.MARK and (binds := ast.PRECEDENCE.get(self.token.text, 0)) >= max(lowest, 1):
            op = self.take()
            right = self.nested(partial(self.expression, binds if op.text == "^" else binds + 1))
            left = self.grown(ast.Binary(op.text, left, right, op.at), op.at, left, right)
        return left

    def operand(self) -> ast.Expression:
        token = self.token
        if self.sees("("):
            self.take()
            inner = self.nested(partial(self.expression, 1))
            self.expect(")")
            return inner
        if self.sees("-", "!"):
            self.take()
            lowest = _OPERAND_OF_MINUS if token.text == "-" else _OPERAND_OF_NOT
            operand = self.nested(partial(self.expression, lowest))
            if token.text == "-" and isinstance(operand, ast.Literal) and (negated := _negated(operand)):
                return negated
            return self.grown(ast.Unary(token.text, operand, token.at), token.at, operand)
        if token.kind is Lex.LITERAL:
            self.take()
            return ast.Literal(token.value, token.at)
        if token.kind is Lex.FIELD:
            self.take()
            field: ast.Field = token.value
            return field
        raise self.unexpected("a value, an attribute or an intrinsic")

    def literal(self, expected: str) -> ast.Literal:
        minus = self.take() if self.sees("-") else None
        if self.token.kind is not Lex.LITERAL:
            raise self.unexpected(expected)
        token = self.take()
        literal = ast.Literal(token.value, token.at)
        if minus is None:
            return literal
        negated = _negated(literal)
        if negated is None:
            raise self.error(f"{token.text} cannot be negative", minus.at, "a number")
        return negated

    # aggregates and their comparison

    def scalar_filter_or_scalar(self) -> ast.ScalarFilter | ast.Scalar:
        at = self.token.at
        left = self.scalar(self.scalar_operand(), 1)
        return self.compared(left, at)

    def pipeline_or_scalar(self, left: ast.Scalar, at: int) -> _Group:
        found = self.compared(left, at)
        return self.pipeline(found)

    def compared(self, left: ast.Scalar, at: int) -> ast.ScalarFilter | ast.Scalar:
        if not self.sees(*_BOUNDS):
            return left
        op = self.take()
        if isinstance(left, ast.ScalarPipeline | ast.ScalarOperation) and _holds_pipeline(left):
            right = self.scalar(self.scalar_operand(), 1) if self.sees("(") else self.number()
        else:
            right = self.scalar(self.scalar_operand(), 1)
        if isinstance(left, ast.Literal) or (isinstance(left, ast.ScalarOperation) and not _holds_aggregate(left)):
            raise self.error("a comparison of constants decides nothing", at, "an aggregate on the left")
        return ast.ScalarFilter(op.text, left, right, at)

    def scalar(self, left: ast.Scalar, lowest: int) -> ast.Scalar:
        while self.sees(*ast.ARITHMETIC) and (binds := ast.PRECEDENCE[self.token.text]) >= lowest:
            op = self.take()
            right = self.scalar(self.scalar_operand(), binds if op.text == "^" else binds + 1)
            if isinstance(left, ast.Literal) and isinstance(right, ast.Literal):
                if any(isinstance(side.value, Duration) for side in (left, right)):
                    raise self.error("a duration takes no part in arithmetic here", op.at, "one duration, or numbers")
                left = self.folded(op, left, right)
            else:
                left = self.grown(ast.ScalarOperation(op.text, left, right, op.at), op.at, left, right)
        return left

    def scalar_operand(self) -> ast.Scalar:
        token = self.token
        if self.sees("("):
            # A parenthesis that begins with a number could also be read as metrics, which know no durations.
            following = self.tokens[self.at + 1]
            if following.kind is Lex.LITERAL or following.text == "-":
                self.take()
                constant = self.nested(lambda: self.scalar(self.scalar_operand(), 1))
                self.expect(")")
                return constant
            group = self.group()
            if isinstance(group, ast.Aggregate | ast.ScalarOperation | ast.ScalarPipeline | ast.Literal):
                return group
            raise self.error("a number is needed here", token.at, "an aggregate or a number")
        if self.sees_word(*ast.AGGREGATES):
            return self.aggregate()
        return self.number()

    def number(self) -> ast.Literal:
        at = self.token.at
        found = self.literal("an aggregate or a number")
        if isinstance(found.value, bool) or not isinstance(found.value, int | float):
            raise self.error(f"{found} is not a number", at, "an aggregate or a number")
        return found

    def aggregate(self) -> ast.Aggregate:
        token = self.take()
        self.expect("(")
        operand = None if token.text == "count" else self.expression(1)
        self.expect(")")
        return self.grown(ast.Aggregate(token.text, operand, token.at), token.at, operand)

    # metrics

    def metrics(self) -> ast.MetricsAggregate | ast.Compare:
        token = self.take()
        if token.text == "compare":
            return self.compare(token)
        self.expect("(")
        field: ast.Field | None = None
        quantiles: tuple[float, ...] = ()
        if token.text not in ("rate", "count_over_time"):
            field = self.field()
            if token.text == "quantile_over_time":
                self.expect(",")
                quantiles = tuple(self.separated(self.quantile))
        self.expect(")")
        by: tuple[ast.Field, ...] = ()
        if self.sees_word("by"):
            self.take()
            by = self.fields()
        return ast.MetricsAggregate(token.text, field, quantiles, by, token.at)

    def quantile(self) -> float:
        token = self.token
        if token.kind is not Lex.LITERAL or type(token.value) not in (int, float):
            raise self.unexpected("a quantile such as 0.9")
        return float(self.take().value)

    def compare(self, token: Token) -> ast.Compare:
        self.expect("(")
        selection = self.spanset_filter()
        numbers = []
        while self.sees(","):
            self.take()
            numbers.append(self.whole_number())
        self.expect(")")
        if len(numbers) not in (0, 1, 3):
            raise self.error("a window has a start and an end", token.at, "compare({…}, n, start, end)")
        window_ns = (numbers[1], numbers[2]) if len(numbers) == 3 else None
        return ast.Compare(selection, numbers[0] if numbers else None, window_ns, token.at)

    def whole_number(self) -> int:
        if self.token.kind is not Lex.LITERAL or type(self.token.value) is not int:
            raise self.unexpected("a whole number")
        found: int = self.take().value
        return found

    def metrics_tail(self, found: ast.Metrics | ast.Literal) -> ast.Metrics | ast.Literal:
        """Parse the comparisons and rankings that may follow a metrics query."""
        if isinstance(found, ast.Literal):
            return found
        second: list[ast.SecondStage] = []
        while True:
            token = self.token
            if self.sees(*_BOUNDS):
                self.take()
                second.append(ast.Threshold(token.text, self.bound(), token.at))
            elif self.sees("|"):
                self.take()
                second.append(self.rank())
            else:
                break
        if not second:
            return found
        kept = (*found.second, *second)
        if isinstance(found, ast.MetricsQuery):
            return ast.MetricsQuery(found.pipeline, found.aggregate, kept, found.at)
        return ast.MetricsOperation(found.op, found.left, found.right, kept, found.at)

    def rank(self) -> ast.Rank:
        if not self.sees_word(*ast.RANKINGS):
            raise self.unexpected("topk or bottomk")
        token = self.take()
        self.expect("(")
        limit = self.whole_number()
        self.expect(")")
        return ast.Rank(token.text, limit, token.at)

    def bound(self) -> ast.Literal:
        at = self.token.at
        if isinstance(self.token.value, Duration) or (self.sees("-") and isinstance(self.tokens[self.at + 1].value, Duration)):
            return self.literal("a number or duration")
        found = self.series_expression(None, 1)
        if not isinstance(found, ast.Literal):
            raise self.error("samples are compared with a constant", at, "a number or duration")
        return found

    def series_expression(self, left: ast.MetricsOperand | None, lowest: int) -> ast.MetricsOperand:
        left = self.series_operand() if left is None else left
        while self.sees(*_SERIES_ARITHMETIC) and (binds := ast.PRECEDENCE[self.token.text]) >= lowest:
            op = self.take()
            right = self.series_expression(None, binds + 1)
            left = self.combined(op, left, right)
        return left

    def combined(self, op: Token, left: ast.MetricsOperand, right: ast.MetricsOperand) -> ast.MetricsOperand:
        if isinstance(left, ast.Literal) and isinstance(right, ast.Literal):
            return self.folded(op, left, right)
        return self.grown(ast.MetricsOperation(op.text, left, right, at=op.at), op.at, left, right)

    def folded(self, op: Token, left: ast.Literal, right: ast.Literal) -> ast.Literal:
        try:
            return ast.Literal(arithmetic(op.text, left.value, right.value), left.at)
        except Undefined:
            raise self.error("division by zero", op.at) from None

    def series_operand(self) -> ast.MetricsOperand:
        token = self.token
        if self.sees("("):
            group = self.group()
            if isinstance(group, ast.MetricsQuery | ast.MetricsOperation | ast.Literal):
                return group
            raise self.error("a metrics query or number is needed here", token.at, "a metrics query in parentheses")
        found = self.literal("a number or a metrics query in parentheses")
        if type(found.value) not in (int, float):
            raise self.error(f"{found} is not a number", token.at, "a number")
        return found


def _spanset_precedence(op: str) -> int:
    return 1 if op in ast.LOGICAL else 2


def _negated(literal: ast.Literal) -> ast.Literal | None:
    value = literal.value
    if type(value) is int:
        return ast.Literal(wrap(-value), literal.at)
    if type(value) is float:
        return ast.Literal(-value, literal.at)
    return ast.Literal(Duration(-value), literal.at) if isinstance(value, Duration) else None


def _holds_pipeline(scalar: ast.Scalar) -> bool:
    if isinstance(scalar, ast.ScalarOperation):
        return _holds_pipeline(scalar.left) or _holds_pipeline(scalar.right)
    return isinstance(scalar, ast.ScalarPipeline)


def _holds_aggregate(scalar: ast.Scalar) -> bool:
    if isinstance(scalar, ast.ScalarOperation):
        return _holds_aggregate(scalar.left) or _holds_aggregate(scalar.right)
    return isinstance(scalar, ast.Aggregate | ast.ScalarPipeline)
