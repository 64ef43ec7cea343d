"""TraceQL: parse, validate, rewrite, build and run queries over spans in memory.

parse(text), validate(query, text)      the query as a tree, or a `QueryError` with its place
rewrite(text)                           a lenient query in the strict form Tempo accepts
search(query, traces, …)                which traces and spans a query finds
query_range(query, traces, …)           the time series of a metrics query
query_instant(query, traces, …)         one value for each series of it
prefilter(query)                        what a store may look up in its indexes first
builder                                 queries from values instead of text
encode_search, encode_series            results as Tempo's HTTP API writes them
decode_search, decode_series            and back
"""

from __future__ import annotations

from comity.core.tracing.query.ast import Query
from comity.core.tracing.query.conditions import Prefilter, prefilter
from comity.core.tracing.query.errors import Fault, QueryError
from comity.core.tracing.query.metrics import Series, query_instant, query_range
from comity.core.tracing.query.parse import parse
from comity.core.tracing.query.rewrite import Rewritten, lenient, rewrite
from comity.core.tracing.query.search import SearchResult, matched_spans, prepare, search
from comity.core.tracing.query.validate import validate
from comity.core.tracing.query.wire import decode_search, decode_series, encode_search, encode_series

__all__ = [
    "Fault",
    "Prefilter",
    "Query",
    "QueryError",
    "Rewritten",
    "SearchResult",
    "Series",
    "decode_search",
    "decode_series",
    "encode_search",
    "encode_series",
    "lenient",
    "matched_spans",
    "parse",
    "prefilter",
    "prepare",
    "query_instant",
    "query_range",
    "rewrite",
    "search",
    "validate",
]
