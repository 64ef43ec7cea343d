"""Queries as people write them, turned into queries Tempo accepts.

The ContextCore protocol shows attributes without a scope (`insight.type`), which Tempo refuses, and OpenTelemetry has
renamed attributes since. A lenient query gets the scope, and a comparison with a renamed attribute also asks for its other
name. The result is shown, so that it can be learned from and run elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from comity.core.tracing.query import ast
from comity.core.tracing.query.errors import QueryError
from comity.core.tracing.query.parse import parse
from comity.core.tracing.query.search import prepare
from comity.core.tracing.query.validate import validate

# old name: what emitters write today
RENAMED = {
    "gen_ai.system": "gen_ai.provider.name",
    "gen_ai.usage.prompt_tokens": "gen_ai.usage.input_tokens",
    "gen_ai.usage.completion_tokens": "gen_ai.usage.output_tokens",
    "agent.id": "gen_ai.agent.id",
    "agent.session_id": "gen_ai.conversation.id",
    "handoff.id": "gen_ai.tool.call.id",
    "handoff.capability_id": "gen_ai.tool.name",
    "handoff.inputs": "gen_ai.tool.call.arguments",
}
MOST_RECENT = "most_recent"
_WITH_NAMES = frozenset({ast.Scope.SPAN, ast.Scope.NONE})


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A lenient query in strict form: the tree to run, and the text to show."""

    query: ast.Query
    text: str
    is_changed: bool


def rewrite(text: str) -> Rewritten:
    """Return the strict form of a lenient query, or raise `QueryError`."""
    parsed = parse(text, lenient=True)
    validate(parsed, text)
    query = ast.Query(_root(parsed.root), parsed.hints)
    if _is_strict(text, query):
        return Rewritten(query, text, is_changed=False)
    return Rewritten(query, str(query), is_changed=True)


def lenient(query: str | ast.Query, *, strict: bool = False) -> ast.Query:
    """Return a query to run: a text in its strict form, unless it must have that already."""
    return rewrite(query).query if isinstance(query, str) and not strict else prepare(query)


def newest_first(query: ast.Query) -> ast.Query:
    """Return a query that keeps the newest traces where not all that match are wanted."""
    hints = tuple(hint for hint in query.hints if hint[0] != MOST_RECENT)
    return ast.Query(query.root, (*hints, (MOST_RECENT, ast.Literal(value=True))))


def _is_strict(text: str, query: ast.Query) -> bool:
    try:
        return parse(text) == query
    except QueryError:
        return False


def _root(node: ast.Pipeline | ast.PipelineOperation | ast.Metrics) -> ast.Pipeline | ast.PipelineOperation | ast.Metrics:
    match node:
        case ast.Pipeline() | ast.PipelineOperation():
            return _pipeline(node)
        case ast.MetricsQuery():
            return replace(node, pipeline=_stages(node.pipeline))
    left, right = (side if isinstance(side, ast.Literal) else _root(side) for side in (node.left, node.right))
    assert not isinstance(left, ast.Pipeline | ast.PipelineOperation)
    assert not isinstance(right, ast.Pipeline | ast.PipelineOperation)
    return replace(node, left=left, right=right)


def _pipeline(node: ast.Pipeline | ast.PipelineOperation) -> ast.Pipeline | ast.PipelineOperation:
    if isinstance(node, ast.PipelineOperation):
        return replace(node, left=_pipeline(node.left), right=_pipeline(node.right))
    return _stages(node)


def _stages(node: ast.Pipeline) -> ast.Pipeline:
    return replace(node, stages=tuple(_stage(stage) for stage in node.stages))


def _stage(stage: ast.Stage) -> ast.Stage:
    match stage:
        case ast.SpansetFilter() | ast.SpansetOperation():
            return _spanset(stage)
        case ast.Select():
            fields = [name for field in stage.fields for name in (field, _current(field)) if name is not None]
            return replace(stage, fields=tuple(dict.fromkeys(fields)))
    return stage


def _spanset(node: ast.Spanset) -> ast.Spanset:
    if isinstance(node, ast.SpansetOperation):
        return replace(node, left=_spanset(node.left), right=_spanset(node.right))
    return replace(node, expression=_expression(node.expression))


def _expression(node: ast.Expression) -> ast.Expression:
    match node:
        case ast.Unary():
            return replace(node, operand=_expression(node.operand))
        case ast.Binary() if node.op in ast.COMPARISONS:
            return _comparison(node)
        case ast.Binary():
            return replace(node, left=_expression(node.left), right=_expression(node.right))
    return node


def _comparison(node: ast.Binary) -> ast.Expression:
    """Return the comparison, or the same of either name. Only absence must hold for both names."""
    left, right = _current(node.left), _current(node.right)
    if left is None and right is None:
        return replace(node, left=_expression(node.left), right=_expression(node.right))
    other = replace(node, left=left or node.left, right=right or node.right)
    is_absence = node.op == "=" and any(_is_nil(side) for side in (node.left, node.right))
    return ast.Binary("&&" if is_absence else "||", node, other)


def _is_nil(node: ast.Expression) -> bool:
    return isinstance(node, ast.Literal) and node.value is None


def _current(node: ast.Expression) -> ast.Attribute | None:
    if isinstance(node, ast.Attribute) and node.scope in _WITH_NAMES and node.name in RENAMED:
        return replace(node, name=RENAMED[node.name])
    return None
