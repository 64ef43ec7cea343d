"""The syntax tree of a query. `str()` of any node is text that parses to an equal node.

Nodes say what was written, nothing more: folding, type checks and execution live elsewhere. `at` is the offset of the
node in the text it was parsed from; it takes no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from comity.core.tracing.query.values import Duration, Type, type_of
from comity.core.tracing.span import INT64_MIN, Kind, Status


class Scope(StrEnum):
    """Where an attribute lives. NONE looks on the span first and then on its resource."""

    NONE = ""
    SPAN = "span"
    RESOURCE = "resource"
    EVENT = "event"
    LINK = "link"
    INSTRUMENTATION = "instrumentation"


class Intrinsic(StrEnum):
    """What every span has without being given it; each may be written in two ways, see `INTRINSICS`."""

    DURATION = "duration"
    NAME = "name"
    STATUS = "status"
    STATUS_MESSAGE = "statusMessage"
    KIND = "kind"
    CHILD_COUNT = "span:childCount"
    SPAN_ID = "span:id"
    PARENT_ID = "span:parentID"
    PARENT = "parent"
    ROOT_NAME = "rootName"
    ROOT_SERVICE_NAME = "rootServiceName"
    TRACE_DURATION = "traceDuration"
    TRACE_ID = "trace:id"
    NESTED_SET_LEFT = "nestedSetLeft"
    NESTED_SET_RIGHT = "nestedSetRight"
    NESTED_SET_PARENT = "nestedSetParent"
    EVENT_NAME = "event:name"
    EVENT_TIME_SINCE_START = "event:timeSinceStart"
    LINK_TRACE_ID = "link:traceID"
    LINK_SPAN_ID = "link:spanID"
    INSTRUMENTATION_NAME = "instrumentation:name"
    INSTRUMENTATION_VERSION = "instrumentation:version"


INTRINSICS: dict[str, Intrinsic] = {str(intrinsic): intrinsic for intrinsic in Intrinsic} | {
    "span:duration": Intrinsic.DURATION,
    "span:name": Intrinsic.NAME,
    "span:status": Intrinsic.STATUS,
    "span:statusMessage": Intrinsic.STATUS_MESSAGE,
    "span:kind": Intrinsic.KIND,
    "trace:rootName": Intrinsic.ROOT_NAME,
    "trace:rootService": Intrinsic.ROOT_SERVICE_NAME,
    "trace:duration": Intrinsic.TRACE_DURATION,
}

INTRINSIC_TYPES: dict[Intrinsic, Type] = dict.fromkeys(Intrinsic, Type.STRING) | {
    Intrinsic.DURATION: Type.DURATION,
    Intrinsic.TRACE_DURATION: Type.DURATION,
    Intrinsic.EVENT_TIME_SINCE_START: Type.DURATION,
    Intrinsic.STATUS: Type.STATUS,
    Intrinsic.KIND: Type.KIND,
    Intrinsic.PARENT: Type.NIL,
    Intrinsic.CHILD_COUNT: Type.INT,
    Intrinsic.NESTED_SET_LEFT: Type.INT,
    Intrinsic.NESTED_SET_RIGHT: Type.INT,
    Intrinsic.NESTED_SET_PARENT: Type.INT,
    # Texts, which Tempo does not check to be used as such.
    Intrinsic.INSTRUMENTATION_NAME: Type.ATTRIBUTE,
    Intrinsic.INSTRUMENTATION_VERSION: Type.ATTRIBUTE,
}

LOGICAL = frozenset({"&&", "||"})
REGEX = frozenset({"=~", "!~"})
ORDERING = frozenset({">", ">=", "<", "<="})
COMPARISONS = frozenset({"=", "!="}) | REGEX | ORDERING
ARITHMETIC = frozenset({"+", "-", "*", "/", "%", "^"})
STRUCTURAL = frozenset({">", ">>", "<", "<<", "~"})
SPANSET_OPERATORS = LOGICAL | STRUCTURAL | frozenset(f"!{op}" for op in STRUCTURAL) | frozenset(f"&{op}" for op in STRUCTURAL)
PRECEDENCE: dict[str, int] = (
    dict.fromkeys(LOGICAL, 1) | dict.fromkeys(COMPARISONS, 2) | dict.fromkeys("+-", 3) | dict.fromkeys("*/%", 5) | {"^": 6}
)
AGGREGATES = frozenset({"count", "min", "max", "avg", "sum"})
OVER_TIME = frozenset({"min_over_time", "max_over_time", "avg_over_time", "sum_over_time"})
METRICS = OVER_TIME | {"rate", "count_over_time", "quantile_over_time", "histogram_over_time", "compare"}
RANKINGS = frozenset({"topk", "bottomk"})

# Go's space characters: an attribute name that is not quoted ends at any of these, or at one of the marks.
SPACES = frozenset("\t\n\v\f\r \u0085\u00a0\u1680\u2028\u2029\u202f\u205f\u3000") | {chr(c) for c in range(0x2000, 0x200B)}
NAME_ENDS = SPACES | frozenset("{}()=~!<>&|^,")


def _node() -> Any:
    return field(default=0, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. The Python type of `value` is its type: `1` and `1.0` and a duration are three different literals."""

    value: Any
    at: int = _node()

    @property
    def type(self) -> Type:
        return type_of(self.value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.type is other.type and self.value == other.value

    def __hash__(self) -> int:
        return hash((self.type, self.value))

    def __str__(self) -> str:
        match self.value:
            case None:
                return "nil"
            case bool():
                return "true" if self.value else "false"
            case Status() | Kind():
                return str(self.value)
            case str():
                return quote(self.value)
            case Duration():
                return str(self.value)
            case float():
                return _float_text(self.value)
        return "minInt" if self.value == INT64_MIN else str(self.value)


@dataclass(frozen=True, slots=True)
class Attribute:
    """An attribute by name, such as `span.http.method`, `.region` or `parent.span.region`."""

    scope: Scope
    name: str
    parent: bool = False
    at: int = _node()

    def __str__(self) -> str:
        name = self.name
        ambiguous = self.scope is Scope.NONE and (
            name[:1].isdecimal() or (self.parent and name.startswith(("span.", "resource.")))
        )
        if not name or ambiguous or not NAME_ENDS.isdisjoint(name) or '"' in name:
            escaped = name.replace("\\", "\\\\").replace('"', '\\"')
            name = f'"{escaped}"'
        return f"{'parent' if self.parent else ''}{'.' if self.parent and self.scope else ''}{self.scope}.{name}"


@dataclass(frozen=True, slots=True)
class IntrinsicField:
    """An intrinsic as written: `duration` and `span:duration` mean the same and stay apart in labels."""

    written: str
    at: int = _node()

    @property
    def intrinsic(self) -> Intrinsic:
        return INTRINSICS[self.written]

    def __str__(self) -> str:
        return self.written


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x` or `!x`."""

    op: str
    operand: Expression
    at: int = _node()

    def __str__(self) -> str:
        return f"{self.op}{_enclosed(self.operand)}"


@dataclass(frozen=True, slots=True)
class Binary:
    """A comparison, an arithmetic operation, or `&&` and `||` between expressions about one span."""

    op: str
    left: Expression
    right: Expression
    at: int = _node()

    def __str__(self) -> str:
        return f"{_operand(self.left, self.op, is_left=True)} {self.op} {_operand(self.right, self.op, is_left=False)}"


Field = Attribute | IntrinsicField
Expression = Literal | Attribute | IntrinsicField | Unary | Binary


@dataclass(frozen=True, slots=True)
class SpansetFilter:
    """`{ expression }`; `{}` is `{ true }`."""

    expression: Expression
    at: int = _node()

    def __str__(self) -> str:
        return f"{{ {self.expression} }}"


@dataclass(frozen=True, slots=True)
class SpansetOperation:
    """Two spansets of one trace combined by logic or by structure."""

    op: str
    left: Spanset
    right: Spanset
    at: int = _node()

    def __str__(self) -> str:
        return f"{_enclosed(self.left)} {self.op} {_enclosed(self.right)}"


Spanset = SpansetFilter | SpansetOperation


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`count()` or `max(expression)` over the spans of a spanset."""

    function: str
    operand: Expression | None
    at: int = _node()

    def __str__(self) -> str:
        return f"{self.function}({'' if self.operand is None else self.operand})"


@dataclass(frozen=True, slots=True)
class ScalarOperation:
    """Arithmetic between aggregates and constants."""

    op: str
    left: Scalar
    right: Scalar
    at: int = _node()

    def __str__(self) -> str:
        return f"{_enclosed(self.left)} {self.op} {_enclosed(self.right)}"


@dataclass(frozen=True, slots=True)
class ScalarPipeline:
    """A pipeline in parentheses that ends in a bare aggregate, to be compared with another."""

    pipeline: Pipeline
    aggregate: Aggregate
    at: int = _node()

    def __str__(self) -> str:
        return f"{self.pipeline} | {self.aggregate}"


Scalar = Aggregate | ScalarOperation | ScalarPipeline | Literal


@dataclass(frozen=True, slots=True)
class ScalarFilter:
    """Keeps the spansets for which a comparison of scalars holds."""

    op: str
    left: Scalar
    right: Scalar
    at: int = _node()

    def __str__(self) -> str:
        return f"{_enclosed(self.left)} {self.op} {_enclosed(self.right)}"


@dataclass(frozen=True, slots=True)
class GroupBy:
    """`by(expression)`: splits each spanset by the value."""

    expression: Expression
    at: int = _node()

    def __str__(self) -> str:
        return f"by({self.expression})"


@dataclass(frozen=True, slots=True)
class Coalesce:
    """`coalesce()`: joins the spansets of a trace into one again."""

    at: int = _node()

    def __str__(self) -> str:
        return "coalesce()"


@dataclass(frozen=True, slots=True)
class Select:
    """`select(field, …)`: adds fields to what is returned of each span."""

    fields: tuple[Field, ...]
    at: int = _node()

    def __str__(self) -> str:
        return f"select({', '.join(map(str, self.fields))})"


Stage = SpansetFilter | SpansetOperation | ScalarFilter | GroupBy | Coalesce | Select


@dataclass(frozen=True, slots=True)
class Pipeline:
    """Stages applied to the spans of one trace, one after the other."""

    stages: tuple[Stage, ...]
    at: int = _node()

    def __str__(self) -> str:
        # A bare operation followed by a stage would read as part of it, so it is put in parentheses.
        return " | ".join(
            f"({stage})" if isinstance(stage, SpansetOperation) and len(self.stages) > 1 else str(stage)
            for stage in self.stages
        )


@dataclass(frozen=True, slots=True)
class PipelineOperation:
    """Two pipelines in parentheses combined like spansets."""

    op: str
    left: Pipeline | PipelineOperation
    right: Pipeline | PipelineOperation
    at: int = _node()

    def __str__(self) -> str:
        return f"({self.left}) {self.op} ({self.right})"


@dataclass(frozen=True, slots=True)
class MetricsAggregate:
    """`rate() by (…)` and its like: spans in, one time series per combination of labels out."""

    function: str
    field: Field | None = None
    quantiles: tuple[float, ...] = ()
    by: tuple[Field, ...] = ()
    at: int = _node()

    def __str__(self) -> str:
        arguments = [str(self.field)] if self.field is not None else []
        arguments += [_float_text(quantile) for quantile in self.quantiles]
        by = f" by ({', '.join(map(str, self.by))})" if self.by else ""
        return f"{self.function}({', '.join(arguments)}){by}"


@dataclass(frozen=True, slots=True)
class Compare:
    """`compare({filter}, top_n, start, end)`: what sets the spans of the filter apart from the rest."""

    selection: SpansetFilter
    top_n: int | None = None
    window_ns: tuple[int, int] | None = None
    at: int = _node()

    def __str__(self) -> str:
        arguments = [str(self.selection)]
        if self.top_n is not None:
            arguments.append(str(self.top_n))
        arguments += [str(bound) for bound in self.window_ns or ()]
        return f"compare({', '.join(arguments)})"


@dataclass(frozen=True, slots=True)
class Rank:
    """`topk(n)` or `bottomk(n)`, chosen anew at every time step."""

    function: str
    limit: int
    at: int = _node()

    def __str__(self) -> str:
        return f"| {self.function}({self.limit})"


@dataclass(frozen=True, slots=True)
class Threshold:
    """Keeps the samples that compare so with a constant."""

    op: str
    bound: Literal
    at: int = _node()

    def __str__(self) -> str:
        return f"{self.op} {self.bound}"


SecondStage = Rank | Threshold


@dataclass(frozen=True, slots=True)
class MetricsQuery:
    """A pipeline, what is measured of it, and what is kept of the result."""

    pipeline: Pipeline
    aggregate: MetricsAggregate | Compare
    second: tuple[SecondStage, ...] = ()
    at: int = _node()

    def __str__(self) -> str:
        return " ".join([f"{self.pipeline} | {self.aggregate}", *map(str, self.second)])


@dataclass(frozen=True, slots=True)
class MetricsOperation:
    """Arithmetic between time series, or between time series and a constant."""

    op: str
    left: MetricsOperand
    right: MetricsOperand
    second: tuple[SecondStage, ...] = ()
    at: int = _node()

    def __str__(self) -> str:
        left, right = (str(side) if isinstance(side, Literal) else f"({side})" for side in (self.left, self.right))
        return " ".join([f"{left} {self.op} {right}", *map(str, self.second)])


MetricsOperand = MetricsQuery | MetricsOperation | Literal
Metrics = MetricsQuery | MetricsOperation


@dataclass(frozen=True, slots=True)
class Query:
    """A whole query with its hints."""

    root: Pipeline | PipelineOperation | Metrics
    hints: tuple[tuple[str, Literal], ...] = ()

    @property
    def is_metrics(self) -> bool:
        return isinstance(self.root, MetricsQuery | MetricsOperation)

    def hint(self, name: str) -> Any:
        """Return the value given for a hint, or None."""
        return next((literal.value for key, literal in self.hints if key == name), None)

    def __str__(self) -> str:
        hints = ", ".join(f"{key}={literal}" for key, literal in self.hints)
        return f"{self.root} with({hints})" if hints else str(self.root)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def quote(text: str) -> str:
    """Return the text as a string literal, whatever it holds."""
    return f'"{"".join(_ESCAPES.get(c) or (c if c.isprintable() else _escape(c)) for c in text)}"'


def _escape(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _float_text(value: float) -> str:
    text = repr(value)
    return text if any(c in text for c in ".en") else f"{text}.0"


def _enclosed(node: Expression | Spanset | Scalar) -> str:
    """Return a node as an operand, in parentheses unless it is a single thing."""
    text = str(node)
    plain = isinstance(node, Attribute | IntrinsicField | SpansetFilter | Aggregate) or (
        isinstance(node, Literal) and not text.startswith("-")
    )
    return text if plain else f"({text})"


def _operand(node: Expression, op: str, *, is_left: bool) -> str:
    """Return an operand of a binary operation, in parentheses where it needs them or where a reader would."""
    if isinstance(node, Binary):
        inner, outer = PRECEDENCE[node.op], PRECEDENCE[op]
        groups_here = is_left is not (op == "^")
        mixes_logic = op in LOGICAL and node.op in LOGICAL and op != node.op
        binds = inner > outer or (inner == outer and groups_here)
        return str(node) if binds and not mixes_logic else f"({node})"
    is_last_of_comparison = not is_left and op in COMPARISONS and isinstance(node, Literal)
    is_negation_in_logic = op in LOGICAL and isinstance(node, Unary) and node.op == "!"
    return str(node) if is_last_of_comparison or is_negation_in_logic else _enclosed(node)
